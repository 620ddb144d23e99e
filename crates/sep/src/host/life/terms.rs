//! What one extension is promised and held to over its life: budgets, heartbeat, how many crashes are too many.

use std::num::NonZeroU32;
use std::time::Duration;

use outrigger_supervise::state::{Backoff, CrashLimit, Heartbeat, Ladder, Restart, Retry};

/// From asking an extension to leave to SIGTERM.
pub const SHUTDOWN_ASK: Duration = Duration::from_secs(3);
/// From SIGTERM to SIGKILL.
pub const SHUTDOWN_TERM: Duration = Duration::from_secs(2);
/// A stop that has not ended by then is killed, whatever became of its ladder.
pub const STOP_BOUND: Duration = Duration::from_secs(6);
/// How long an extension that said it would leave may take.
pub const LEAVING_WITHIN: Duration = Duration::from_secs(10);
/// How long a lifecycle event may stay unacknowledged.
pub const TOLD_WITHIN: Duration = Duration::from_secs(2);
/// How long a resumed extension may take to show that it lives.
pub const PROBE_WITHIN: Duration = Duration::from_secs(3);
/// How long a start may go on in the background when nothing may run there.
pub const ABORT_AFTER: Duration = Duration::from_secs(2);
/// Of changes between foreground and background that follow each other faster than this, the last one counts.
pub const DEBOUNCE: Duration = Duration::from_millis(250);
/// When a channel closes, the end of the process usually follows by itself and says more than "channel lost".
pub const CHANNEL_SETTLE: Duration = Duration::from_millis(500);
/// So many times an extension may say that it does not know `sep.health`.
pub const HEALTH_REFUSALS: u32 = 3;

const BACKOFF: Backoff =
    Backoff { first: Duration::from_millis(500), cap: Duration::from_secs(60), jitter_percent: 20 };
const STABLE_AFTER: Duration = Duration::from_secs(5 * 60);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// Crashes in a day that are too many, however slowly they come.
pub(super) const SLOW_CRASHES: NonZeroU32 = NonZeroU32::new(20).expect("twenty is not zero");
/// Losses in ten minutes, under the user's eyes, after which a loss is taken for a crash.
const RECLAIMS: CrashLimit =
    CrashLimit { crashes: NonZeroU32::new(10).expect("ten is not zero"), within: Duration::from_secs(600) };

/// The terms of one extension; a change acts at its next start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LifeTerms {
    /// From the process to its accepted `initialize`: the smallest of manifest, trust and platform.
    pub startup: Duration,
    /// Between two pings; twice that in the background.
    pub heartbeat: Duration,
    /// So many unanswered pings in a row are too many.
    pub missed: NonZeroU32,
    /// The crash that makes so many within [`window`](Self::window) switches it off.
    pub threshold: NonZeroU32,
    /// When it is started.
    pub activation: Activation,
    /// `None` on a desktop, where nobody pauses it.
    pub android: Option<AndroidTerms>,
}

/// When an extension is started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Activation {
    /// With the host.
    Eager,
    /// When somebody needs it.
    Lazy,
}

/// What the platform has a say in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AndroidTerms {
    /// Whether it may run while the user does something else: its manifest asks for it and the policy allows it.
    pub background_ok: bool,
}

impl LifeTerms {
    /// The sliding window of the crash loop: long enough that an extension which fails as slowly as it may is caught.
    #[must_use]
    pub fn window(&self) -> Duration {
        // `shortest_window` allows one second for the reaping of each process; the contract allows six.
        let slow_start = self.startup + Duration::from_secs(5);
        let needed = Retry::shortest_window(BACKOFF, self.threshold, slow_start) + Duration::from_secs(30);
        needed.max(Duration::from_secs(600))
    }

    /// What follows a crash.
    pub(super) fn after_crash(&self) -> Restart {
        let crash_loop = CrashLimit { crashes: self.threshold, within: self.window() };
        Restart::OnFailure(retry(crash_loop, Some(CrashLimit { crashes: SLOW_CRASHES, within: DAY })))
    }

    pub(super) fn heartbeat(&self, stretch: u32) -> Heartbeat {
        Heartbeat::WePing { every: self.heartbeat.saturating_mul(stretch), missed: self.missed }
    }

    pub(super) fn background_ok(&self) -> bool {
        self.android.is_none_or(|android| android.background_ok)
    }
}

/// What follows a loss to the platform.
pub(super) fn after_reclaim() -> Restart {
    Restart::OnFailure(retry(RECLAIMS, None))
}

/// The way down for an extension that can be spoken with.
pub(super) const FULL_LADDER: Ladder = Ladder { ask: SHUTDOWN_ASK, term: SHUTDOWN_TERM };
/// The way down for one that has nobody to ask yet.
pub(super) const SILENT_LADDER: Ladder = Ladder { ask: Duration::ZERO, term: SHUTDOWN_TERM };
/// The way down for one that cannot even hear a signal.
pub(super) const NO_LADDER: Ladder = Ladder { ask: Duration::ZERO, term: Duration::ZERO };

fn retry(crash_loop: CrashLimit, slow_crash: Option<CrashLimit>) -> Retry {
    Retry {
        backoff: BACKOFF,
        stable_after: STABLE_AFTER,
        max_attempts: None,
        crash_loop,
        slow_crash,
        // Which codes are final depends on the state that the process died in; the machine looks at them itself.
        permanent_codes: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use outrigger_supervise::state::{Ask, Policy};

    use super::*;

    fn terms(startup: u64, threshold: u32) -> LifeTerms {
        LifeTerms {
            startup: Duration::from_secs(startup),
            heartbeat: Duration::from_secs(10),
            missed: NonZeroU32::MIN,
            threshold: NonZeroU32::new(threshold).expect("not zero"),
            activation: Activation::Eager,
            android: None,
        }
    }

    #[test]
    fn no_terms_let_a_slow_failure_go_on_for_ever() {
        for (startup, threshold) in [(1, 1), (1, 3), (15, 3), (60, 5), (120, 1), (120, 5), (120, 20)] {
            let terms = terms(startup, threshold);
            let policy = Policy {
                ready_within: Some(terms.startup),
                heartbeat: terms.heartbeat(2),
                restart: terms.after_crash(),
                ask: Ask::Session,
            };
            assert_eq!(policy.check(), Ok(()), "{startup} s, {threshold} crashes");
        }
    }

    #[test]
    fn the_window_is_ten_minutes_unless_slow_failures_need_more() {
        assert_eq!(terms(15, 3).window(), Duration::from_secs(600));
        // 5 × (120 + 6) + (0.5 + 1 + 2 + 4) × 1.2 + 30 = 669
        assert_eq!(terms(120, 5).window(), Duration::from_secs(669));
        // 5 × (60 + 6) + 9 + 30 = 369
        assert_eq!(terms(60, 5).window(), Duration::from_secs(600));
    }
}
