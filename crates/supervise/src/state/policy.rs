//! What the owner of a child decides once: how long to wait, how to tell that it hangs, when to try again.
//! A policy that could never keep its own promise is refused here, with the arithmetic in the message.

use std::num::NonZeroU32;
use std::time::Duration;

/// The time a killed child is allowed to take until it is reaped, in the crash-loop arithmetic.
const REAP_ALLOWANCE: Duration = Duration::from_secs(1);

/// The largest jitter: more would let a delay come close to nothing.
const MAX_JITTER_PERCENT: u8 = 50;

/// The rules of one child over all its restarts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// The time from spawn to ready; `None` means that a spawned child is ready.
    pub ready_within: Option<Duration>,
    /// How we notice that a ready child hangs.
    pub heartbeat: Heartbeat,
    /// What happens when it ends without being asked to.
    pub restart: Restart,
    /// Whether somebody can ask it to leave before signals are used.
    pub ask: Ask,
}

/// How we notice that a ready child hangs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heartbeat {
    /// We do not look.
    None,
    /// We send a ping every `every`; after `missed` unanswered in a row the child is unhealthy.
    WePing {
        /// The interval; the first ping goes out one interval after ready.
        every: Duration,
        /// How many pings in a row may go unanswered before the child is killed.
        missed: NonZeroU32,
    },
    /// The child sends something by itself; `silence` without anything means that it is unhealthy.
    TheyBeat {
        /// The longest silence that is still healthy.
        silence: Duration,
        /// When silence counts.
        counted: Counted,
    },
}

/// When the silence of a child counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    /// From ready to the end.
    Always,
    /// Only while the session says that a stream is active (a child with nothing to do may be silent).
    WhileStreaming,
}

/// Whether the first rung of the stop ladder exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask {
    /// The session knows how to say goodbye in the child's own protocol.
    Session,
    /// Nobody speaks to this child; a stop begins with SIGTERM.
    Skip,
}

/// The budgets of a stop: how long each polite rung may take before the next one.
///
/// A rung with a budget of zero is skipped. The last rung, SIGKILL for the whole tree, has no budget: the stop ends when
/// everything is reaped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ladder {
    /// From asking to SIGTERM. Not spent when nobody can ask.
    pub ask: Duration,
    /// From SIGTERM to SIGKILL.
    pub term: Duration,
}

/// What happens when a child ends without being asked to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Restart {
    /// It stays ended.
    Never,
    /// It is started again unless it left with code 0 after it was ready.
    OnFailure(Retry),
    /// It is started again, whatever its code.
    Always(Retry),
}

/// How often and how long to keep trying.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Retry {
    /// The waits between tries.
    pub backoff: Backoff,
    /// After being ready for this long without a break, the next wait is the first one again.
    pub stable_after: Duration,
    /// Give up after this many restarts in a row; `None` leaves it to the crash limits.
    pub max_attempts: Option<NonZeroU32>,
    /// Crashes in a sliding window that end it all.
    pub crash_loop: CrashLimit,
    /// The same for a child that crashes slowly but for ever (20 in a day, say).
    pub slow_crash: Option<CrashLimit>,
    /// Exit codes that say "trying again cannot help" (a bad configuration, an incompatible version).
    pub permanent_codes: Vec<i32>,
}

/// Waits that double from `first` to `cap`, each spread by up to ± `jitter_percent`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// The wait before the first restart.
    pub first: Duration,
    /// No wait is longer (before jitter).
    pub cap: Duration,
    /// The spread, so that a thousand children do not come back in the same instant.
    pub jitter_percent: u8,
}

/// The crash that makes `crashes` within `within` is the last one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CrashLimit {
    /// How many crashes are too many.
    pub crashes: NonZeroU32,
    /// The sliding window; a crash exactly this long ago still counts.
    pub within: Duration,
}

/// Why a policy was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    /// A time of zero would fire for ever.
    #[error("`{field}` is zero; it must be longer, or be left out")]
    Zero {
        /// The offending field.
        field: &'static str,
    },
    /// The longest wait is shorter than the first.
    #[error("backoff cap {cap:?} is shorter than its first wait {first:?}")]
    CapBelowFirst {
        /// The first wait.
        first: Duration,
        /// The cap.
        cap: Duration,
    },
    /// The spread is so large that a wait could vanish.
    #[error("a jitter of {percent} % is more than {MAX_JITTER_PERCENT} %")]
    Jitter {
        /// The spread asked for.
        percent: u8,
    },
    /// A child that fails as slowly as it may would never be given up.
    #[error(
        "{field}: {crashes} crashes within {within:?} can never happen: a child that fails at every ready deadline needs \
         {needed:?} for {crashes} crashes ({crashes} × {per_start:?} to start and be reaped, plus {waits:?} of backoff), so it would \
         be restarted for ever; make the window at least {needed:?}, or the deadline or the backoff shorter"
    )]
    NeverTrips {
        /// Which limit.
        field: &'static str,
        /// The crashes it wants to see.
        crashes: NonZeroU32,
        /// The window it wants to see them in.
        within: Duration,
        /// The time that one start can take until it has failed and is reaped.
        per_start: Duration,
        /// The waits between the starts at their longest.
        waits: Duration,
        /// The shortest window that can trip.
        needed: Duration,
    },
}

impl Policy {
    /// Refuses what could never work: zero intervals, and crash limits that a slowly failing child cannot reach.
    pub fn check(&self) -> Result<(), PolicyError> {
        if let Some(within) = self.ready_within {
            nonzero("ready.within", within)?;
        }
        match self.heartbeat {
            Heartbeat::None => {}
            Heartbeat::WePing { every, missed: _ } => nonzero("heartbeat.every", every)?,
            Heartbeat::TheyBeat { silence, counted: _ } => nonzero("heartbeat.silence", silence)?,
        }
        match &self.restart {
            Restart::Never => Ok(()),
            Restart::OnFailure(retry) | Restart::Always(retry) => {
                retry.check(self.ready_within.unwrap_or(Duration::ZERO))
            }
        }
    }
}

impl Retry {
    /// The shortest window in which `crashes` failures fit when each one takes as long as it may.
    ///
    /// Callers that derive the window from the child's own timeouts use this and add some slack.
    pub fn shortest_window(backoff: Backoff, crashes: NonZeroU32, ready_within: Duration) -> Duration {
        per_start(ready_within)
            .saturating_mul(crashes.get())
            .saturating_add(backoff.longest_total(crashes.get() - 1))
    }

    fn check(&self, ready_within: Duration) -> Result<(), PolicyError> {
        let Backoff { first, cap, jitter_percent } = self.backoff;
        nonzero("restart.backoff.first", first)?;
        if cap < first {
            return Err(PolicyError::CapBelowFirst { first, cap });
        }
        if jitter_percent > MAX_JITTER_PERCENT {
            return Err(PolicyError::Jitter { percent: jitter_percent });
        }
        self.check_limit("restart.crash_loop", self.crash_loop, ready_within)?;
        match self.slow_crash {
            Some(limit) => self.check_limit("restart.slow_crash", limit, ready_within),
            None => Ok(()),
        }
    }

    fn check_limit(
        &self,
        field: &'static str,
        limit: CrashLimit,
        ready_within: Duration,
    ) -> Result<(), PolicyError> {
        let CrashLimit { crashes, within } = limit;
        let needed = Self::shortest_window(self.backoff, crashes, ready_within);
        if within >= needed {
            return Ok(());
        }
        let waits = self.backoff.longest_total(crashes.get() - 1);
        Err(PolicyError::NeverTrips {
            field,
            crashes,
            within,
            per_start: per_start(ready_within),
            waits,
            needed,
        })
    }
}

impl Backoff {
    /// The wait before restart `attempt` (1, 2, …) before jitter.
    pub fn base(self, attempt: u32) -> Duration {
        let doublings = attempt.saturating_sub(1).min(31);
        self.first.saturating_mul(1 << doublings).min(self.cap)
    }

    /// The sum of the first `waits` waits, each at its longest. `u32::MAX` waits cost no loop of that length.
    fn longest_total(self, waits: u32) -> Duration {
        let growing = waits.min(32);
        let grown: Duration =
            (1..=growing).fold(Duration::ZERO, |sum, attempt| sum.saturating_add(self.base(attempt)));
        let flat = self.base(33).saturating_mul(waits - growing);
        let total = grown.saturating_add(flat);
        total.saturating_mul(100 + u32::from(self.jitter_percent)) / 100
    }
}

fn per_start(ready_within: Duration) -> Duration {
    ready_within.saturating_add(REAP_ALLOWANCE)
}

fn nonzero(field: &'static str, duration: Duration) -> Result<(), PolicyError> {
    if duration.is_zero() { Err(PolicyError::Zero { field }) } else { Ok(()) }
}
