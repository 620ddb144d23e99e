//! The vocabulary of the machine: phases, events, actions, causes. Every word has a stable code for programs.

use std::fmt;
use std::time::Duration;

use super::policy::Ladder;
use super::time::Moment;
use crate::launch::Status;

/// Which life of the child an event belongs to: 1 for the first process, one more for each restart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(transparent)]
pub struct Incarnation(pub u32);

impl fmt::Display for Incarnation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.0)
    }
}

/// The number of a ping, so that a late answer is not taken for a fresh one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PingSeq(pub u64);

/// Where a child is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    /// Nobody has asked for it yet.
    Idle,
    /// Spawned, or about to be; not ready.
    Starting,
    /// It works.
    Ready,
    /// It was ready and has missed a heartbeat; one more chance.
    Unresponsive,
    /// On its way out.
    Stopping(Rung),
    /// Waiting before the next start.
    Backoff,
    /// The end; this child is never started again.
    Exited,
}

/// How far down the stop ladder we are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rung {
    /// Asked in its own protocol.
    Ask,
    /// SIGTERM was sent, and SIGCONT, because a stopped process ignores SIGTERM until it continues.
    Term,
    /// SIGKILL for the whole tree.
    Kill,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The owner wants it to run.
    Start,
    /// The owner wants it gone; a second stop means now.
    Stop(Ladder),
    /// The owner wants it gone this instant.
    StopNow,
    /// The owner wants a fresh process; this is neither a crash nor a backoff.
    Restart(Ladder),
    /// The timer for [`next_deadline`](super::Machine::next_deadline) fired.
    Tick,
    /// Something that concerns one process; ignored when that process is not the current one.
    Of(Incarnation, Happening),
}

/// What happened to one process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Happening {
    /// It exists.
    Spawned,
    /// It could not be made to exist.
    SpawnFailed(SpawnFailure),
    /// Its ready gate opened.
    Ready,
    /// It answered a ping.
    Pong(PingSeq),
    /// It gave a sign of life, at this moment.
    Beat(Moment),
    /// A stream of it began: silence counts from here ([`Counted::WhileStreaming`](super::Counted)).
    StreamBegan,
    /// The last stream of it ended: silence no longer counts.
    StreamEnded,
    /// Whoever speaks with it found it broken.
    Fault(Fault),
    /// The request to leave could not be delivered.
    AskRefused,
    /// It and everything it started are gone.
    Reaped(Status),
}

/// Why a process could not be made to exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpawnFailure {
    /// Trying again cannot help: no such program, not executable, no such directory.
    Permanent,
    /// The box it must run in cannot be built here.
    Sandbox,
    /// The host is short of something (processes, memory, descriptors) and may have it later.
    Resource,
    /// Nobody knows why; it counts as a crash, so that it cannot go on for ever.
    Unexplained,
    /// We withdrew the request.
    Cancelled,
}

/// What whoever speaks with the child can find.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// The channel closed while the process lives.
    ChannelLost,
    /// It broke the rules of its protocol beyond repair.
    ProtocolViolation,
    /// It does not read what we write.
    WriteStall,
    /// A health check of the dialect's own failed.
    Unhealthy,
    /// It speaks a version that we do not. Trying again cannot help.
    Incompatible,
}

/// What the driver must do, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Start a process and answer with `Spawned` or `SpawnFailed`.
    Spawn(Incarnation),
    /// Withdraw the spawn and answer with `SpawnFailed(Cancelled)`, or `Spawned` if it came too late.
    CancelSpawn(Incarnation),
    /// Ask it to leave in its own protocol.
    Ask {
        /// What is left until SIGTERM.
        within: Duration,
    },
    /// SIGTERM to its group, then SIGCONT.
    Term,
    /// SIGKILL to its whole tree.
    Kill,
    /// Send this ping.
    Ping(PingSeq),
    /// Tell everybody that the phase changed.
    Changed(Change),
    /// Tell everybody that a process ended, why, and what comes next.
    Ended(Ending),
}

/// One transition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// The process it concerns.
    pub incarnation: Incarnation,
    /// The phase that ended.
    pub from: Phase,
    /// The phase that began.
    pub to: Phase,
    /// What made it so.
    pub trigger: Trigger,
}

/// What made a phase change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Trigger {
    /// The owner started it.
    Started,
    /// Its ready gate opened, or it has none.
    GateOpened,
    /// It did not answer a ping in time.
    PingMissed,
    /// It answered again.
    PongReceived,
    /// The owner wants it gone.
    StopRequested,
    /// The owner wants a fresh process.
    RestartRequested,
    /// The last rung of the ladder took longer than its budget.
    BudgetSpent,
    /// The request to leave could not be delivered.
    AskRefused,
    /// The wait before a restart is over.
    BackoffElapsed,
    /// This is why it has to go, or has gone.
    Cause(Cause),
}

/// Why one process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cause {
    /// The owner wanted it gone.
    Requested,
    /// The owner wanted a fresh one.
    Restarted,
    /// It left with code 0 after it was ready.
    Voluntary,
    /// It left with another code or died of a signal after it was ready.
    Crash,
    /// It was not ready in time.
    StartupTimeout,
    /// It ended before it was ready, whatever its code.
    ExitBeforeReady,
    /// It missed too many heartbeats.
    Unhealthy,
    /// It did not read what we wrote.
    WriteStall,
    /// The channel closed and the process stayed.
    ChannelLost,
    /// It broke its protocol.
    ProtocolViolation,
    /// It speaks a version that we do not.
    Incompatible,
    /// It could not be started, and trying again cannot help.
    SpawnFailed,
    /// It could not be started because the host is short of something.
    HostResource,
    /// It could not be started, for a reason that may pass.
    LaunchFailed,
    /// The box it must run in cannot be built here.
    Sandbox,
}

/// The end of one process, and what comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ending {
    /// The process.
    pub incarnation: Incarnation,
    /// The phase it was in when its end was decided.
    pub died_in: Phase,
    /// Why.
    pub cause: Cause,
    /// What comes next.
    pub next: Next,
}

/// What comes after the end of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Another one, after a wait.
    Restart {
        /// The wait, jitter included.
        after: Duration,
        /// 1 for the first restart in a row.
        attempt: u32,
    },
    /// Another one, at once, because the owner wanted it.
    Respawn,
    /// Nothing.
    Final(Final),
}

/// Why a child is never started again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Final {
    /// The owner wanted it gone.
    Requested,
    /// It left with code 0 and its policy leaves it at that.
    Voluntary,
    /// Its policy says never.
    NotRestarted(Cause),
    /// Trying again cannot help.
    Failed(Cause),
    /// Too many restarts in a row.
    AttemptsExhausted(Cause),
    /// Too many crashes in the window.
    CrashLoop(Cause),
    /// Too many crashes in the long window.
    SlowCrash(Cause),
}

impl Next {
    /// Whether another process will come.
    pub fn is_restart(self) -> bool {
        match self {
            Self::Restart { .. } | Self::Respawn => true,
            Self::Final(_) => false,
        }
    }
}

impl Phase {
    /// The stable name.
    pub fn code(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Starting => "starting",
            Self::Ready => "ready",
            Self::Unresponsive => "unresponsive",
            Self::Stopping(Rung::Ask) => "stopping_ask",
            Self::Stopping(Rung::Term) => "stopping_term",
            Self::Stopping(Rung::Kill) => "stopping_kill",
            Self::Backoff => "backoff",
            Self::Exited => "exited",
        }
    }

    /// Every phase, in the order of a life; for tables and metrics.
    pub const ALL: [Self; 9] = [
        Self::Idle,
        Self::Starting,
        Self::Ready,
        Self::Unresponsive,
        Self::Stopping(Rung::Ask),
        Self::Stopping(Rung::Term),
        Self::Stopping(Rung::Kill),
        Self::Backoff,
        Self::Exited,
    ];
}

impl Cause {
    /// The stable name.
    pub fn code(self) -> &'static str {
        match self {
            Self::Requested => "requested",
            Self::Restarted => "restarted",
            Self::Voluntary => "voluntary",
            Self::Crash => "crash",
            Self::StartupTimeout => "startup_timeout",
            Self::ExitBeforeReady => "exit_before_ready",
            Self::Unhealthy => "unhealthy",
            Self::WriteStall => "write_stall",
            Self::ChannelLost => "channel_lost",
            Self::ProtocolViolation => "protocol_violation",
            Self::Incompatible => "incompatible",
            Self::SpawnFailed => "spawn_failed",
            Self::HostResource => "host_resource",
            Self::LaunchFailed => "launch_failed",
            Self::Sandbox => "sandbox",
        }
    }

    /// Every cause; for tables and metrics.
    pub const ALL: [Self; 15] = [
        Self::Requested,
        Self::Restarted,
        Self::Voluntary,
        Self::Crash,
        Self::StartupTimeout,
        Self::ExitBeforeReady,
        Self::Unhealthy,
        Self::WriteStall,
        Self::ChannelLost,
        Self::ProtocolViolation,
        Self::Incompatible,
        Self::SpawnFailed,
        Self::HostResource,
        Self::LaunchFailed,
        Self::Sandbox,
    ];

    /// Whether it counts towards the crash limits: the child's own failures do, the host's and the owner's do not.
    pub fn counts_as_crash(self) -> bool {
        match self {
            Self::Crash
            | Self::StartupTimeout
            | Self::ExitBeforeReady
            | Self::Unhealthy
            | Self::WriteStall
            | Self::ChannelLost
            | Self::ProtocolViolation
            | Self::LaunchFailed => true,
            Self::Requested
            | Self::Restarted
            | Self::Voluntary
            | Self::Incompatible
            | Self::SpawnFailed
            | Self::HostResource
            | Self::Sandbox => false,
        }
    }

    /// Whether trying again cannot help.
    pub fn is_permanent(self) -> bool {
        matches!(self, Self::Incompatible | Self::SpawnFailed | Self::Sandbox)
    }
}

impl SpawnFailure {
    pub(super) fn cause(self) -> Cause {
        match self {
            Self::Permanent => Cause::SpawnFailed,
            Self::Sandbox => Cause::Sandbox,
            Self::Resource => Cause::HostResource,
            Self::Unexplained => Cause::LaunchFailed,
            Self::Cancelled => Cause::Requested,
        }
    }
}

impl Fault {
    /// The cause of the end that it leads to.
    pub fn cause(self) -> Cause {
        match self {
            Self::ChannelLost => Cause::ChannelLost,
            Self::ProtocolViolation => Cause::ProtocolViolation,
            Self::WriteStall => Cause::WriteStall,
            Self::Unhealthy => Cause::Unhealthy,
            Self::Incompatible => Cause::Incompatible,
        }
    }
}

impl Trigger {
    /// The stable name.
    pub fn code(self) -> &'static str {
        match self {
            Self::Started => "started",
            Self::GateOpened => "gate_opened",
            Self::PingMissed => "ping_missed",
            Self::PongReceived => "pong_received",
            Self::StopRequested => "stop_requested",
            Self::RestartRequested => "restart_requested",
            Self::BudgetSpent => "budget_spent",
            Self::AskRefused => "ask_refused",
            Self::BackoffElapsed => "backoff_elapsed",
            Self::Cause(cause) => cause.code(),
        }
    }
}

impl Final {
    /// The stable name of the reason: `crash_loop`, or the cause of the last end when that says more.
    pub fn code(self) -> &'static str {
        match self {
            Self::Requested => "requested",
            Self::Voluntary => "voluntary",
            Self::NotRestarted(cause) | Self::Failed(cause) => cause.code(),
            Self::AttemptsExhausted(_) => "attempts_exhausted",
            Self::CrashLoop(_) => "crash_loop",
            Self::SlowCrash(_) => "slow_crash",
        }
    }

    /// Whether the owner got what the owner wanted, or the child said that it was done.
    pub fn is_clean(self) -> bool {
        matches!(self, Self::Requested | Self::Voluntary)
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}
