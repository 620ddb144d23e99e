//! The vocabulary of a life: what can happen to an extension, what the host must do about it, and how it looks from outside.

use std::time::Duration;

use outrigger_supervise::launch::Status;
use outrigger_supervise::state::{Ladder, Moment, PingSeq};

use super::platform::{PlatformSignal, TrimLevel};
use crate::protocol::words::words;
use crate::protocol::{DisabledReason, ExitKind, FailedReason, LaunchReason, ShutdownReason, State};

/// What happened.
///
/// Events of a process (from [`Spawned`](Self::Spawned) to [`Exited`](Self::Exited)) are about the one that the latest
/// [`Effect::Spawn`] asked for. The driver forgets a process with its `Exited`; nothing that it still hears of it is passed on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// It should run. `First` starts only what is eager, `LazyEvent` and `LazyAction` only what is lazy.
    Start(LaunchReason),
    /// It should leave; a second stop means now.
    Stop(ShutdownReason),
    /// It should leave and not come back until it is enabled.
    Disable(DisabledReason),
    /// It may run again, unless it was switched off by a crash loop: that takes a reset.
    Enable,
    /// Forget its crashes and what has failed.
    Reset,
    /// Its manifest, its files and the operator say that it may run.
    Admitted,
    /// It may not: `Invalid`, `Blocked`, `Unavailable` or `NeedsConsent`, and why. A process that runs is left alone.
    NotAdmitted(State, String),
    /// Its folder is gone.
    Removed,
    /// There is no process. Answers [`Effect::Spawn`].
    SpawnFailed(SpawnTrouble),
    /// There is a process. Answers [`Effect::Spawn`]; the budget for its start runs from here.
    Spawned,
    /// It has its channel.
    Attached,
    /// Its answer to `sep.initialize` was accepted.
    Initialized,
    /// There is no common version; the text says which.
    Incompatible(String),
    /// It answered `sep.initialize` with an error.
    InitializeFailed,
    /// It answered this ping.
    Pong(PingSeq),
    /// It said that it is about to leave by itself.
    HealthStopping,
    /// It does not know `sep.health`.
    HealthUnsupported,
    /// It has left a request of ours without an answer for three seconds.
    Overdue,
    /// It has answered everything that was overdue.
    Answered,
    /// Whoever speaks with it found it broken: `WriteStall`, `ChannelLost`, `ProtocolViolation`, `FrameOverrun`, `Memory`.
    Broken(ExitKind, String),
    /// It and everything it started are gone.
    Exited(Status),
    /// The platform said something. Without android terms nobody listens.
    Signal(PlatformSignal),
    /// It has acknowledged `lifecycle.pausing`.
    PauseAcknowledged,
    /// It has acknowledged this lifecycle event (or refused it, which is as good).
    Told(LifecycleTopic),
    /// It has answered the probe.
    ProbeAnswered,
    /// The timer for [`Life::deadline`](super::Life::deadline) fired.
    Tick,
}

/// What the driver must do, in this order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Start a process; answer with `Spawned` or `SpawnFailed`.
    Spawn(LaunchReason),
    /// Ask it to leave and walk down the ladder; answer with `Exited`.
    Stop {
        /// What it is told.
        reason: ShutdownReason,
        /// How long each rung may take; a rung of zero is skipped.
        ladder: Ladder,
    },
    /// SIGKILL for its whole tree; answer with `Exited`.
    Kill,
    /// Send `sep.health` with this number; answer with `Pong`.
    Ping(PingSeq),
    /// Send `sep.health` with this number after a resume; answer with `ProbeAnswered` or `Pong`.
    Probe(PingSeq),
    /// Send this lifecycle event past the queue; answer with `Told` (`PauseAcknowledged` for pausing).
    Tell(LifecycleTopic),
    /// Its requests are answered with `suspended` from now on, and the deadlines of requests to it stand still.
    Suspend,
    /// The end of [`Suspend`](Self::Suspend), or of a pause before it came to that: deadlines run, queued events flow.
    Resume,
    /// The state changed, or something that shows in it.
    Changed(Transition),
    /// A process ended, or could not be made. Exactly one for each `Spawn`.
    Ended(ExitRecord),
    /// What must survive the host has changed: [`View::disabled`] or [`Life::crashes`](super::Life::crashes).
    Persist,
}

/// One step from state to state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transition {
    /// The state that ended.
    pub from: State,
    /// The state that began.
    pub to: State,
    /// What made it so: a stable word.
    pub cause: String,
}

/// The end of one process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExitRecord {
    /// How it ended.
    pub kind: ExitKind,
    /// Its exit code.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// The longest time that it was ready without a break.
    pub ready_for: Duration,
    /// What is known beyond the kind.
    pub detail: Option<String>,
    /// Whether it counts towards the crash loop.
    pub counted: bool,
    /// The state that follows.
    pub next: State,
    /// The wait before the next start, when there is one.
    pub restart_in: Option<Duration>,
}

/// How an extension looks from outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    /// Where it is in its life.
    pub state: State,
    /// How far its start has come.
    pub phase: Option<StartPhase>,
    /// Why it is switched off. Kept while another state hides it.
    pub disabled: Option<DisabledReason>,
    /// Why starting it cannot help.
    pub failed: Option<FailedReason>,
    /// What is known beyond the state.
    pub detail: Option<String>,
    /// Whether the user sees the host. Always `Foreground` on a desktop.
    pub ground: Ground,
    /// Processes that were asked for.
    pub starts: u64,
    /// Those of them that replaced one that had ended by itself.
    pub restarts: u64,
    /// Processes that the platform took.
    pub reclaims: u64,
    /// Pings that were not answered in time.
    pub missed: u64,
    /// When the next start is due.
    pub next_start: Option<Moment>,
}

/// Why there is no process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SpawnTrouble {
    /// No such program, or it cannot be executed.
    Missing,
    /// The host is short of something and may have it later.
    Resource,
    /// The box that it must have cannot be built.
    Sandbox,
    /// Its files are not those that were approved.
    Tampered,
    /// Anything else; it is tried again.
    Other,
}

words! {
    /// How far a start has come.
    StartPhase ("phase of a start") {
        /// The process is being made.
        Spawning = "spawning",
        /// It has to take its channel.
        Attaching = "attaching",
        /// It has to answer `sep.initialize`.
        Initializing = "initializing",
    }
}

words! {
    /// Whether the user sees the host.
    Ground ("ground") {
        /// The user looks at it.
        Foreground = "foreground",
        /// The user does something else.
        Background = "background",
    }
}

/// A lifecycle event: it needs no permission and waits in no queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LifecycleTopic {
    /// You will be suspended.
    Pausing,
    /// You may go on.
    Resumed,
    /// Give back memory.
    Trim(TrimLevel),
    /// The user has turned away; you may go on.
    Background,
}

impl LifecycleTopic {
    /// The topic as the extension sees it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pausing => "lifecycle.pausing",
            Self::Resumed => "lifecycle.resumed",
            Self::Trim(_) => "lifecycle.trim",
            Self::Background => "lifecycle.background",
        }
    }
}
