//! Who can be reached. A node shows that it lives by counting up; who has not counted for the length of a lease is gone. It is
//! measured by our own clock only, so that nobody's wrong time of day matters. Pure.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::mesh::Address;

/// What the file says about a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Sign {
    pub(super) address: Address,
    pub(super) puppet: bool,
    pub(super) online: bool,
    pub(super) beat: i64,
}

/// What follows from looking at the signs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It has come.
    Came(Address),
    /// It has gone.
    Went(Address),
    /// The file says that it is there, and it is not: that is to be corrected, unless it has counted since.
    Lost { address: Address, beat: i64 },
}

/// What we know about the others.
#[derive(Debug)]
pub(super) struct Presence {
    lease: Duration,
    looked: Option<Instant>,
    seen: BTreeMap<Address, Seen>,
}

#[derive(Debug)]
struct Seen {
    online: bool,
    beat: i64,
    /// When it counted last, as far as we saw.
    at: Instant,
}

impl Presence {
    pub(super) fn new(lease: Duration) -> Self {
        Self { lease, looked: None, seen: BTreeMap::new() }
    }

    /// How often a node counts, and looks.
    pub(super) fn pace(&self) -> Duration {
        self.lease / 3
    }

    /// Looks at all others. `is_there` says whether some process is that node; it is only asked when there is doubt.
    pub(super) fn look(
        &mut self,
        signs: &[Sign],
        now: Instant,
        is_there: impl Fn(Address) -> bool,
    ) -> Vec<Verdict> {
        // Who was stopped itself, or suspended with the machine, cannot say how long the others have been silent.
        let slept = self.looked.is_some_and(|looked| now.saturating_duration_since(looked) > self.lease);
        self.looked = Some(now);
        let mut verdicts = Vec::new();
        for sign in signs {
            let Sign { address, puppet, online, beat } = *sign;
            let is_new = !self.seen.contains_key(&address);
            let seen = self.seen.entry(address).or_insert(Seen { online: false, beat, at: now });
            if seen.beat != beat || slept {
                seen.beat = beat;
                seen.at = now;
            }
            let silent = now.saturating_duration_since(seen.at);
            let is_doubtful = is_new || silent > self.lease / 2;
            let is_lost = online && !puppet && (silent >= self.lease || (is_doubtful && !is_there(address)));
            let is_online = puppet || (online && !is_lost);
            if is_lost {
                verdicts.push(Verdict::Lost { address, beat });
            }
            match (seen.online, is_online) {
                (false, true) => verdicts.push(Verdict::Came(address)),
                (true, false) => verdicts.push(Verdict::Went(address)),
                (true, true) | (false, false) => {}
            }
            seen.online = is_online;
        }
        verdicts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEASE: Duration = Duration::from_secs(6);
    const ANN: Address = Address([7; 16]);

    fn sign(online: bool, beat: i64) -> [Sign; 1] {
        [Sign { address: ANN, puppet: false, online, beat }]
    }

    /// Looks at a series of `(second, online, beat, is somebody there)` and says what follows from each.
    fn check(series: &[(u64, bool, i64, bool)]) -> Vec<Vec<Verdict>> {
        let start = Instant::now();
        let mut presence = Presence::new(LEASE);
        let look = |&(second, online, beat, there): &(u64, bool, i64, bool)| {
            presence.look(&sign(online, beat), start + Duration::from_secs(second), |_| there)
        };
        series.iter().map(look).collect()
    }

    #[test]
    fn a_node_that_counts_stays_and_one_that_says_goodbye_goes() {
        let series = [(0, true, 1, true), (2, true, 2, true), (4, true, 3, true), (5, false, 3, false)];
        assert_eq!(check(&series), [vec![Verdict::Came(ANN)], vec![], vec![], vec![Verdict::Went(ANN)]]);
    }

    #[test]
    fn a_node_that_hangs_is_gone_after_its_lease_and_not_before() {
        let series = [
            (0, true, 1, true),
            (3, true, 1, true),
            (5, true, 1, true),
            (6, true, 1, true),
            (8, false, 1, true),
            (9, true, 2, true),
        ];
        let lost = Verdict::Lost { address: ANN, beat: 1 };
        assert_eq!(
            check(&series),
            [
                vec![Verdict::Came(ANN)],
                vec![],
                vec![],
                vec![lost, Verdict::Went(ANN)],
                vec![],
                vec![Verdict::Came(ANN)]
            ]
        );
    }

    #[test]
    fn a_node_that_was_killed_is_gone_as_soon_as_it_is_late() {
        let lost = Verdict::Lost { address: ANN, beat: 1 };
        assert_eq!(
            check(&[(0, true, 1, true), (3, true, 1, false), (4, true, 1, false)]),
            [vec![Verdict::Came(ANN)], vec![], vec![lost, Verdict::Went(ANN)]]
        );
    }

    #[test]
    fn what_a_crash_left_in_the_file_is_not_believed_for_a_moment() {
        assert_eq!(check(&[(0, true, 9, false)]), [vec![Verdict::Lost { address: ANN, beat: 9 }]]);
    }

    #[test]
    fn who_slept_does_not_blame_the_others() {
        assert_eq!(
            check(&[(0, true, 1, true), (100, true, 1, true), (102, true, 2, true)]),
            [vec![Verdict::Came(ANN)], vec![], vec![]]
        );
    }

    #[test]
    fn a_puppet_is_always_there() {
        let mut presence = Presence::new(LEASE);
        let puppet = [Sign { address: ANN, puppet: true, online: false, beat: 0 }];
        let now = Instant::now();
        assert_eq!(presence.look(&puppet, now, |_| false), [Verdict::Came(ANN)]);
        assert_eq!(presence.look(&puppet, now + 10 * LEASE, |_| false), []);
    }
}
