//! When a sidecar that died may be started again: after a pause that grows, and not for ever.

use std::collections::VecDeque;
use std::time::Duration;

use outrigger_supervise::state::{Backoff, CrashLimit};
use tokio::time::Instant;

use super::error::Lost;

/// The deaths of a sidecar. Pure: the caller has the clock.
#[derive(Debug)]
pub(super) struct Deaths {
    backoff: Backoff,
    limit: CrashLimit,
    /// The last ones, oldest first; never more than the limit counts.
    recent: VecDeque<Instant>,
    last: Option<Lost>,
}

/// There were too many.
#[derive(Clone, Debug)]
pub(super) struct TooMany {
    pub(super) deaths: u32,
    pub(super) within: Duration,
    pub(super) last: Lost,
}

impl Deaths {
    pub(super) fn new(backoff: Backoff, limit: CrashLimit) -> Self {
        Self { backoff, limit, recent: VecDeque::new(), last: None }
    }

    pub(super) fn died(&mut self, now: Instant, how: Lost) {
        self.expire(now);
        if self.recent.len() == self.limit.crashes.get() as usize {
            self.recent.pop_front();
        }
        self.recent.push_back(now);
        self.last = Some(how);
    }

    /// Somebody who knows better wants it to run.
    pub(super) fn forgive(&mut self) {
        self.recent.clear();
    }

    /// The moment from which on it may be started, or that it died too often. The first death costs nothing.
    pub(super) fn next_start(&mut self, now: Instant) -> Result<Instant, TooMany> {
        self.expire(now);
        let deaths = u32::try_from(self.recent.len()).unwrap_or(u32::MAX);
        if deaths >= self.limit.crashes.get() {
            let unknown = || Lost { what: "nobody knows how".to_owned(), report: None };
            let last = self.last.clone().unwrap_or_else(unknown);
            return Err(TooMany { deaths, within: self.limit.within, last });
        }
        let wait =
            self.recent.back().filter(|_| deaths > 1).map(|last| *last + self.backoff.base(deaths - 1));
        Ok(wait.unwrap_or(now))
    }

    fn expire(&mut self, now: Instant) {
        let within = self.limit.within;
        while self.recent.front().is_some_and(|death| now.duration_since(*death) > within) {
            self.recent.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;

    fn deaths() -> Deaths {
        let millis = Duration::from_millis;
        let backoff = Backoff { first: millis(100), cap: millis(300), jitter_percent: 0 };
        let crashes = NonZeroU32::new(4).unwrap();
        Deaths::new(backoff, CrashLimit { crashes, within: Duration::from_secs(10) })
    }

    fn lost(what: &str) -> Lost {
        Lost { what: what.to_owned(), report: None }
    }

    #[test]
    fn the_pause_before_a_start_doubles_with_every_death_and_ends_at_the_limit() {
        let (mut deaths, now) = (deaths(), Instant::now());
        let pause = |deaths: &mut Deaths| {
            deaths.next_start(now).map(|at| (at - now).as_millis()).map_err(|many| many.deaths)
        };
        let mut pauses = Vec::new();
        for _ in 0..5 {
            pauses.push(pause(&mut deaths));
            deaths.died(now, lost("so"));
        }
        assert_eq!(pauses, [Ok(0), Ok(0), Ok(100), Ok(200), Err(4)]);
    }

    #[test]
    fn deaths_are_forgotten_with_time_and_by_whoever_knows_better() {
        let (mut deaths, now) = (deaths(), Instant::now());
        (0..9).for_each(|number| deaths.died(now, lost(&number.to_string())));
        let at_the_end = now + Duration::from_secs(10);
        let many = deaths.next_start(at_the_end).unwrap_err();
        assert_eq!((many.deaths, many.last.what.as_str()), (4, "8"));
        let after = at_the_end + Duration::from_nanos(1);
        assert_eq!(deaths.next_start(after).unwrap(), after);
        (0..9).for_each(|_| deaths.died(after, lost("again")));
        deaths.forgive();
        assert_eq!(deaths.next_start(after).unwrap(), after);
    }
}
