//! What the policy says about an end that nobody asked for: again, after which wait, or never.

use std::time::Duration;

use super::crashes::Crashes;
use super::policy::{Backoff, CrashLimit, Restart, Retry};
use super::time::Moment;
use super::words::{Cause, Final, Next, Phase};
use crate::launch::Status;

/// The end of one process, before it is judged.
#[derive(Clone, Copy, Debug)]
pub struct End {
    /// What ended it.
    pub cause: Cause,
    /// Where it was.
    pub died_in: Phase,
    /// How long it had been ready without a break.
    pub ready_for: Duration,
    /// `None` when there never was a process.
    pub status: Option<Status>,
}

/// The memory that a fair judgement needs.
#[derive(Clone, Debug)]
pub struct Record {
    /// Restarts in a row, without a stable stretch between them.
    attempts: u32,
    crashes: Crashes,
    jitter: Jitter,
}

impl Record {
    /// A clean record; the seed decides the jitter of the waits.
    pub fn new(restart: &Restart, seed: u64) -> Self {
        Self { attempts: 0, crashes: Crashes::for_limits(limits(restart)), jitter: Jitter(seed) }
    }

    /// Counts a crash of an earlier run of the host. Times must not go backwards.
    pub fn remember_crash(&mut self, at: Moment) {
        self.crashes.record(at);
    }

    /// What follows this end.
    pub fn judge(&mut self, restart: &Restart, end: &End, now: Moment) -> Next {
        let retry = match (restart, end.cause) {
            (Restart::Never | Restart::OnFailure(_), Cause::Voluntary) => {
                return Next::Final(Final::Voluntary);
            }
            (Restart::Never, cause) => return Next::Final(Final::NotRestarted(cause)),
            (Restart::OnFailure(retry) | Restart::Always(retry), _) => retry,
        };
        match self.give_up(retry, end, now) {
            Some(why) => Next::Final(why),
            None => {
                self.attempts = self.attempts.saturating_add(1);
                Next::Restart {
                    after: self.jitter.spread(retry.backoff, self.attempts),
                    attempt: self.attempts,
                }
            }
        }
    }

    fn give_up(&mut self, retry: &Retry, end: &End, now: Moment) -> Option<Final> {
        let cause = end.cause;
        if cause.is_permanent() || end.is_permanent_code(retry) {
            return Some(Final::Failed(cause));
        }
        if end.ready_for >= retry.stable_after {
            self.attempts = 0;
        }
        if cause.counts_as_crash() {
            self.crashes.record(now);
            if self.crashes.reach(retry.crash_loop, now) {
                return Some(Final::CrashLoop(cause));
            }
            if retry.slow_crash.is_some_and(|limit| self.crashes.reach(limit, now)) {
                return Some(Final::SlowCrash(cause));
            }
        }
        let exhausted = retry.max_attempts.is_some_and(|max| self.attempts >= max.get());
        exhausted.then_some(Final::AttemptsExhausted(cause))
    }
}

impl End {
    fn is_permanent_code(&self, retry: &Retry) -> bool {
        match self.status {
            Some(Status::Code(code)) => retry.permanent_codes.contains(&code),
            Some(Status::Signal(_) | Status::Unknown) | None => false,
        }
    }
}

fn limits(restart: &Restart) -> Vec<CrashLimit> {
    match restart {
        Restart::Never => Vec::new(),
        Restart::OnFailure(retry) | Restart::Always(retry) => {
            [Some(retry.crash_loop), retry.slow_crash].into_iter().flatten().collect()
        }
    }
}

/// SplitMix64: enough to spread waits, and the same on every machine.
#[derive(Clone, Debug)]
struct Jitter(u64);

impl Jitter {
    /// The wait before restart `attempt`, somewhere in base ± jitter.
    fn spread(&mut self, backoff: Backoff, attempt: u32) -> Duration {
        // More than a century is as good as never, and keeps the arithmetic below within its type.
        let base = backoff.base(attempt).as_nanos().min(1 << 62);
        let half_width = base * u128::from(backoff.jitter_percent) / 100;
        let offset = (u128::from(self.next()) * (2 * half_width)) >> 64;
        let nanos = base - half_width + offset;
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}
