//! How many children there are and may be: the pool's decisions, without any child.

use super::PoolRules;

/// The numbers of a pool. `lent + idle + warming` never exceeds the size.
#[derive(Debug)]
pub(super) struct Ledger {
    rules: PoolRules,
    lent: usize,
    idle: usize,
    warming: usize,
    phase: Phase,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Open,
    Closed,
}

/// What is known about a child that comes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Facts {
    /// It can take another request.
    pub(super) usable: Usable,
    /// How many scripts it has run.
    pub(super) runs: u32,
    /// What it holds of memory; 0 if that cannot be known.
    pub(super) rss_bytes: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Usable {
    Yes,
    No,
}

/// What becomes of a child that comes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// It waits for the next run.
    Keep,
    /// It ends.
    Retire,
}

impl Ledger {
    pub(super) fn new(rules: PoolRules) -> Self {
        Self { rules, lent: 0, idle: 0, warming: 0, phase: Phase::Open }
    }

    /// Somebody got a seat and takes a child: one that waits, or a new one.
    pub(super) fn lend(&mut self) {
        self.lent += 1;
        self.idle = self.idle.saturating_sub(1);
    }

    /// A child that waited turned out to be dead.
    pub(super) fn idle_died(&mut self) {
        self.idle = self.idle.saturating_sub(1);
    }

    /// A child comes back.
    pub(super) fn give_back(&mut self, facts: Facts) -> Fate {
        self.lent = self.lent.saturating_sub(1);
        let spent = facts.runs >= self.rules.runs_per_child.get()
            || self.rules.rss_bytes.is_some_and(|limit| facts.rss_bytes > limit);
        let room = self.lent + self.idle + self.warming < self.rules.size.get();
        if facts.usable == Usable::No || spent || !room || self.phase == Phase::Closed {
            return Fate::Retire;
        }
        self.idle += 1;
        Fate::Keep
    }

    /// A seat was given up without a child.
    pub(super) fn unlend(&mut self) {
        self.lent = self.lent.saturating_sub(1);
    }

    /// How many children should be started now so that enough wait. They count as warming until [`Ledger::warmed`].
    pub(super) fn warm_up(&mut self) -> usize {
        if self.phase == Phase::Closed {
            return 0;
        }
        let room = self.rules.size.get().saturating_sub(self.lent + self.idle + self.warming);
        let missing = self.rules.warm.saturating_sub(self.idle + self.warming);
        let start = room.min(missing);
        self.warming += start;
        start
    }

    /// A child that was warming is there; it is kept unless the pool was closed, or filled up, in the meantime.
    pub(super) fn warmed(&mut self) -> Fate {
        self.warming = self.warming.saturating_sub(1);
        let room = self.lent + self.idle + self.warming < self.rules.size.get();
        if self.phase == Phase::Closed || !room {
            return Fate::Retire;
        }
        self.idle += 1;
        Fate::Keep
    }

    /// A child that was warming did not make it.
    pub(super) fn failed_to_warm(&mut self) {
        self.warming = self.warming.saturating_sub(1);
    }

    pub(super) fn close(&mut self) {
        self.phase = Phase::Closed;
        self.idle = 0;
    }

    pub(super) fn is_closed(&self) -> bool {
        self.phase == Phase::Closed
    }

    /// How many wait, are lent and are being started.
    pub(super) fn counts(&self) -> (usize, usize, usize) {
        (self.idle, self.lent, self.warming)
    }
}

#[cfg(test)]
mod tests {
    use std::num::{NonZeroU32, NonZeroUsize};

    use super::*;

    fn ledger(size: usize, warm: usize) -> Ledger {
        Ledger::new(PoolRules {
            size: NonZeroUsize::new(size).expect("not zero"),
            warm,
            runs_per_child: NonZeroU32::new(3).expect("not zero"),
            rss_bytes: Some(1000),
        })
    }

    const FRESH: Facts = Facts { usable: Usable::Yes, runs: 1, rss_bytes: 10 };

    #[test]
    fn as_many_are_warmed_as_should_wait_and_no_more_than_fit() {
        let mut ledger = ledger(3, 2);
        assert_eq!(ledger.warm_up(), 2);
        assert_eq!(ledger.warm_up(), 0, "they are on their way");
        assert_eq!(ledger.warmed(), Fate::Keep);
        assert_eq!(ledger.warmed(), Fate::Keep);
        ledger.lend();
        assert_eq!(ledger.warm_up(), 1, "one was taken");
        assert_eq!(ledger.warmed(), Fate::Keep);
        ledger.lend();
        ledger.lend();
        assert_eq!(ledger.warm_up(), 0, "three are lent, which is all there may be");
        assert_eq!(ledger.counts(), (0, 3, 0));
    }

    #[test]
    fn a_child_is_kept_until_its_last_run_and_its_last_byte() {
        let mut ledger = ledger(2, 0);
        let fate = |ledger: &mut Ledger, facts| {
            ledger.lend();
            ledger.give_back(facts)
        };
        assert_eq!(fate(&mut ledger, FRESH), Fate::Keep);
        assert_eq!(fate(&mut ledger, Facts { runs: 2, ..FRESH }), Fate::Keep);
        assert_eq!(fate(&mut ledger, Facts { runs: 3, ..FRESH }), Fate::Retire);
        assert_eq!(fate(&mut ledger, Facts { rss_bytes: 1000, ..FRESH }), Fate::Keep);
        assert_eq!(fate(&mut ledger, Facts { rss_bytes: 1001, ..FRESH }), Fate::Retire);
        assert_eq!(fate(&mut ledger, Facts { usable: Usable::No, ..FRESH }), Fate::Retire);
    }

    #[test]
    fn nothing_is_kept_after_the_end() {
        let mut ledger = ledger(3, 3);
        assert_eq!(ledger.warm_up(), 3);
        assert_eq!(ledger.warmed(), Fate::Keep);
        ledger.lend();
        ledger.close();
        assert_eq!(ledger.warmed(), Fate::Retire);
        ledger.failed_to_warm();
        assert_eq!(ledger.give_back(FRESH), Fate::Retire);
        assert_eq!(ledger.warm_up(), 0);
        assert_eq!(ledger.counts(), (0, 0, 0));
    }

    #[test]
    fn a_child_that_was_warmed_for_nothing_does_not_stay() {
        let mut ledger = ledger(1, 1);
        assert_eq!(ledger.warm_up(), 1);
        ledger.lend();
        assert_eq!(ledger.warmed(), Fate::Retire, "whoever came meanwhile started one of their own");
        assert_eq!(ledger.counts(), (0, 1, 0));
    }
}
