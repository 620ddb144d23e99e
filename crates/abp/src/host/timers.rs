//! The clocks of one run: silence, pings, the whole, a cancel that waits, a write that does not move. Pure: it is told the
//! time, and says what is due and when to ask again.

use std::time::Duration;

use tokio::time::Instant;

use super::terms::{Pulse, Terms};

/// What is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    /// A ping is to be sent.
    Ping,
    /// That was one interval too many without a line.
    Stalled,
    /// Nothing was said for too long.
    Silent,
    /// The run took too long.
    Total,
    /// A cancelled run had its chance to end by itself.
    Grace,
    /// What we write is not read.
    WriteStall,
    /// The streams of a child that is gone had their chance to end.
    Drained,
}

/// The clocks of one run.
#[derive(Debug)]
pub(super) struct Timers {
    heard: Instant,
    silence: Option<Duration>,
    /// Questions of the child that have no answer yet: as long as there are any, its silence is ours.
    unanswered: u64,
    pulse: Option<Beat>,
    total: Option<Instant>,
    grace: Option<Instant>,
    write: Option<Instant>,
    /// When it last took something of what we write, which is a sign of life but no word.
    took: Instant,
    write_stall: Duration,
    drained: Option<Instant>,
}

#[derive(Debug)]
struct Beat {
    every: Duration,
    limit: u32,
    next: Instant,
    missed: u32,
    /// When the last round was.
    last: Instant,
    /// Whether there was a ping that could be answered.
    asked: Asked,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    NotYet,
    Yes,
}

impl Timers {
    /// The clocks of a run that begins now.
    pub(super) fn begin(terms: &Terms, now: Instant) -> Self {
        let pulse = match terms.pulse {
            Pulse::None => None,
            Pulse::Ping { every, missed } => {
                // A zero interval would ping without end.
                let every = every.max(Duration::from_millis(1));
                let beat = Beat {
                    every,
                    limit: missed.get(),
                    next: now + every,
                    missed: 0,
                    last: now,
                    asked: Asked::NotYet,
                };
                Some(beat)
            }
        };
        Self {
            heard: now,
            silence: terms.silence,
            unanswered: 0,
            pulse,
            total: terms.total.and_then(|total| now.checked_add(total)),
            grace: None,
            write: None,
            took: now,
            write_stall: terms.write_stall,
            drained: None,
        }
    }

    /// The child said something, and all of it has been dealt with.
    pub(super) fn heard(&mut self, now: Instant) {
        self.heard = now;
    }

    /// The child asked something that was not answered at once.
    pub(super) fn asked(&mut self) {
        self.unanswered = self.unanswered.saturating_add(1);
    }

    /// One of its questions was answered; silence counts from here if that was the last.
    pub(super) fn answered(&mut self, now: Instant) {
        self.unanswered = self.unanswered.saturating_sub(1);
        self.heard = self.heard.max(now);
    }

    /// The child cannot be pinged.
    pub(super) fn no_more_pings(&mut self) {
        self.pulse = None;
    }

    /// The run is to end: it has this long, and the whole is of no interest any more.
    pub(super) fn cancelled(&mut self, grace: Duration, now: Instant) {
        self.total = None;
        self.grace = now.checked_add(grace);
    }

    /// The child is being stopped by its supervisor, which has clocks of its own.
    pub(super) fn leaving(&mut self) {
        (self.total, self.grace, self.write, self.pulse, self.silence) = (None, None, None, None, None);
    }

    /// Something waits to be written: since now, or since before.
    pub(super) fn writing(&mut self, now: Instant) {
        if self.write.is_none() {
            self.write = now.checked_add(self.write_stall);
        }
    }

    /// Some of what waited was taken.
    pub(super) fn wrote(&mut self, left: usize, now: Instant) {
        if left == 0 {
            self.write = None;
            return;
        }
        // Only what comes after a full pipe says that somebody reads; a ping fits in without.
        self.took = now;
        self.write = now.checked_add(self.write_stall);
    }

    /// The child is gone; its streams have this long to end.
    pub(super) fn gone(&mut self, within: Duration, now: Instant) {
        self.leaving();
        self.drained = now.checked_add(within);
    }

    /// When to ask again.
    pub(super) fn next(&self) -> Option<Instant> {
        let ping = self.pulse.as_ref().map(|beat| beat.next);
        [ping, self.silent_at(), self.total, self.grace, self.write, self.drained].into_iter().flatten().min()
    }

    /// What is due. Asked again until nothing is.
    pub(super) fn due(&mut self, now: Instant) -> Option<Due> {
        let passed = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        if passed(self.drained) {
            self.drained = None;
            return Some(Due::Drained);
        }
        if passed(self.grace) {
            self.grace = None;
            return Some(Due::Grace);
        }
        if passed(self.total) {
            self.total = None;
            return Some(Due::Total);
        }
        if passed(self.write) {
            self.write = None;
            return Some(Due::WriteStall);
        }
        if passed(self.silent_at()) {
            return Some(Due::Silent);
        }
        // A child that waits for us is as good as heard.
        let alive = if self.unanswered > 0 { now } else { self.heard.max(self.took) };
        self.pulse.as_mut().filter(|beat| beat.next <= now).map(|beat| beat.round(alive, now))
    }

    fn silent_at(&self) -> Option<Instant> {
        if self.unanswered > 0 {
            return None;
        }
        self.silence.and_then(|silence| self.heard.checked_add(silence))
    }
}

impl Beat {
    fn round(&mut self, alive: Instant, now: Instant) -> Due {
        // A timer that comes more than an interval late says that we were away, and then the child had no fair chance.
        let fair = now.duration_since(self.next) <= self.every;
        if alive > self.last || !fair {
            self.missed = 0;
        } else if self.asked == Asked::Yes {
            self.missed += 1;
            if self.missed >= self.limit {
                return Due::Stalled;
            }
        }
        (self.last, self.next, self.asked) = (now, now + self.every, Asked::Yes);
        Due::Ping
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;

    fn secs(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn pinged(missed: u32) -> Terms {
        let missed = NonZeroU32::new(missed).expect("not zero");
        Terms { pulse: Pulse::Ping { every: secs(10), missed }, ..Terms::usual() }
    }

    #[test]
    fn silence_is_due_at_its_limit_and_not_before() {
        let start = Instant::now();
        let mut timers = Timers::begin(&Terms { silence: Some(secs(5)), ..Terms::usual() }, start);
        timers.heard(start + secs(3));
        assert_eq!(timers.next(), Some(start + secs(8)));
        assert_eq!(timers.due(start + secs(7)), None);
        assert_eq!(timers.due(start + secs(8)), Some(Due::Silent));
    }

    #[test]
    fn a_child_that_waits_for_an_answer_is_not_silent() {
        let start = Instant::now();
        let mut timers = Timers::begin(&Terms { silence: Some(secs(5)), ..Terms::usual() }, start);
        timers.asked();
        assert_eq!((timers.next(), timers.due(start + secs(500))), (None, None));
        timers.answered(start + secs(600));
        assert_eq!(timers.due(start + secs(604)), None);
        assert_eq!(timers.due(start + secs(605)), Some(Due::Silent));
    }

    #[test]
    fn a_child_is_stalled_after_as_many_silent_intervals_as_it_may_miss() {
        let start = Instant::now();
        let mut timers = Timers::begin(&pinged(2), start);
        assert_eq!(timers.due(start + secs(10)), Some(Due::Ping));
        assert_eq!(timers.due(start + secs(10)), None);
        assert_eq!(timers.due(start + secs(20)), Some(Due::Ping));
        assert_eq!(timers.due(start + secs(30)), Some(Due::Stalled));
    }

    #[test]
    fn any_line_counts_as_a_sign_of_life() {
        let start = Instant::now();
        let mut timers = Timers::begin(&pinged(1), start);
        for round in 1..10 {
            timers.heard(start + secs(round * 10 - 1));
            assert_eq!(timers.due(start + secs(round * 10)), Some(Due::Ping));
        }
        assert_eq!(timers.due(start + secs(100)), Some(Due::Stalled));
    }

    #[test]
    fn a_child_that_is_busy_reading_a_large_order_is_not_stalled() {
        let start = Instant::now();
        let mut timers = Timers::begin(&pinged(1), start);
        timers.writing(start);
        for round in 1..5 {
            timers.wrote(1000, start + secs(round * 10 - 1));
            assert_eq!(timers.due(start + secs(round * 10)), Some(Due::Ping));
        }
        assert_eq!(timers.due(start + secs(50)), Some(Due::Stalled));
    }

    #[test]
    fn a_host_that_was_away_does_not_blame_the_child() {
        let start = Instant::now();
        let mut timers = Timers::begin(&pinged(1), start);
        assert_eq!(timers.due(start + secs(10)), Some(Due::Ping));
        assert_eq!(timers.due(start + secs(31)), Some(Due::Ping));
        assert_eq!(timers.due(start + secs(41)), Some(Due::Stalled));
    }

    #[test]
    fn a_cancelled_run_has_its_grace_and_no_total() {
        let start = Instant::now();
        let mut timers = Timers::begin(&Terms { total: Some(secs(60)), ..Terms::usual() }, start);
        assert_eq!(timers.due(start + secs(59)), None);
        assert_eq!(timers.due(start + secs(60)), Some(Due::Total));
        timers.cancelled(secs(5), start + secs(60));
        assert_eq!(timers.next(), Some(start + secs(65)));
        assert_eq!(timers.due(start + secs(65)), Some(Due::Grace));
        assert_eq!((timers.next(), timers.due(start + secs(1000))), (None, None));
    }

    #[test]
    fn a_write_is_stalled_only_when_it_does_not_move() {
        let start = Instant::now();
        let mut timers = Timers::begin(&Terms { write_stall: secs(5), ..Terms::usual() }, start);
        timers.writing(start);
        timers.writing(start + secs(4));
        timers.wrote(10, start + secs(4));
        assert_eq!(timers.due(start + secs(8)), None);
        assert_eq!(timers.due(start + secs(9)), Some(Due::WriteStall));
        timers.writing(start + secs(10));
        timers.wrote(0, start + secs(11));
        assert_eq!((timers.next(), timers.due(start + secs(1000))), (None, None));
    }
}
