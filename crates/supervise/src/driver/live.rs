//! The process of a driver, from the launch to the last byte of its last stream.

use std::future::{Future, pending};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::unix::pipe;
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::pump::{LastCall, Pumped};
use super::session::{LastBeat, Opened, Request};
use super::supervisor::Shared;
use crate::launch::{Channels, Control, Exit, LaunchError, Launched, Plan, Wiring};
use crate::leftovers::{Leftovers, Note};
use crate::sandbox::{Contained, Enforced};
use crate::spec::{Spec, Stdin, Stdout};
use crate::state::{Incarnation, SpawnFailure};
use crate::tree::Pid;

/// A launch that takes longer is taken to be stuck.
const LAUNCH_LIMIT: Duration = Duration::from_secs(30);

/// Everything is reaped, but a descriptor may have been passed to a stranger: the streams get this long to end.
const DRAIN_LIMIT: Duration = Duration::from_millis(500);

/// What a driver has in hand.
pub(super) enum Process {
    /// Nothing.
    Absent,
    /// A launch under way. Dropping it kills what it started.
    Launching(Pin<Box<dyn Future<Output = LaunchResult> + Send>>),
    /// A process.
    Live(Box<Live>),
    /// A reaped process whose streams have not ended yet.
    Draining(Box<Live>, Exit),
}

/// How a launch ended.
pub(super) struct LaunchResult {
    /// Held until the child is no longer starting.
    pub(super) permit: Option<OwnedSemaphorePermit>,
    pub(super) launched: Result<(Launched, Option<Note>), LaunchFailure>,
}

/// Why a launch failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum LaunchFailure {
    #[error(transparent)]
    Launch(#[from] LaunchError),
    #[error("its extra descriptors could not be made: {0}")]
    Extra(#[source] std::io::Error),
    #[error("the launcher did not answer within {LAUNCH_LIMIT:?}")]
    Stuck,
    #[error("it must not run without being written down: {0}")]
    Note(String),
}

/// A process and everything that belongs to it.
pub(super) struct Live {
    pub(super) incarnation: Incarnation,
    pub(super) pid: Pid,
    pub(super) control: Control,
    pub(super) spawned: Instant,
    pub(super) pumps: JoinSet<Pumped>,
    pub(super) requests: mpsc::Sender<Request>,
    pub(super) opened: Option<oneshot::Sender<Opened>>,
    /// What the session will get when the gate has opened; `None` when it already has it.
    pub(super) undelivered: Option<Undelivered>,
    pub(super) last_beat: Arc<LastBeat>,
    /// In the registry of leftovers until everything is reaped.
    pub(super) note: Option<Note>,
    /// Tells the pumps when to stop waiting for more.
    pub(super) last_call: LastCall,
}

/// A session that waits for its standard output.
pub(super) struct Undelivered {
    pub(super) stdin: Option<pipe::Sender>,
    pub(super) enforced: Enforced,
    pub(super) requests: mpsc::Receiver<Request>,
    pub(super) opened: oneshot::Receiver<Opened>,
}

/// What happened to the process.
pub(super) enum Progress {
    Launched(Box<LaunchResult>),
    Pumped(Pumped),
    Exited(Exit),
    Drained,
}

impl Process {
    /// Waits for the next thing to happen. Can be dropped at any time; nothing is lost.
    pub(super) async fn progress(&mut self) -> Progress {
        match self {
            Self::Absent => pending().await,
            Self::Launching(launch) => Progress::Launched(Box::new(launch.await)),
            Self::Live(live) => {
                let Live { control, pumps, .. } = &mut **live;
                tokio::select! {
                    biased;
                    Some(pumped) = pumps.join_next() => Progress::Pumped(pumped.unwrap_or(Pumped::Ended)),
                    exit = control.wait() => Progress::Exited(exit),
                }
            }
            Self::Draining(live, _) => match live.pumps.join_next().await {
                Some(pumped) => Progress::Pumped(pumped.unwrap_or(Pumped::Ended)),
                None => Progress::Drained,
            },
        }
    }

    /// The process, whether its streams have ended or not.
    pub(super) fn live(&mut self) -> Option<&mut Live> {
        match self {
            Self::Absent | Self::Launching(_) => None,
            Self::Live(live) | Self::Draining(live, _) => Some(live),
        }
    }

    /// Notes that the process is reaped; its streams may still have something to say.
    pub(super) fn exited(&mut self, exit: Exit) {
        if let Self::Live(live) = std::mem::replace(self, Self::Absent) {
            live.last_call.at(Instant::now() + DRAIN_LIMIT);
            *self = Self::Draining(live, exit);
        }
    }
}

/// Begins to launch process `incarnation` of `spec`, as soon as the supervisor lets another one start.
pub(super) fn launch(shared: Arc<Shared>, spec: &Spec, incarnation: Incarnation) -> Process {
    let plan = Plan {
        name: spec.name.clone(),
        program: spec.program.path.clone(),
        args: spec.program.args.clone(),
        env: spec.program.environment.resolve(|name| std::env::var_os(name)),
        cwd: spec.program.cwd.clone(),
        umask: spec.program.umask,
        sandbox: spec.sandbox.clone(),
    };
    let (stdin, stdout, extra) = (spec.stdin, spec.stdout, spec.extra.clone());
    Process::Launching(Box::pin(async move {
        // The semaphore is never closed; if it were, starting without a permit would be the lesser evil.
        let permit = Arc::clone(&shared.starts).acquire_owned().await.ok();
        let launched = async {
            let extra = match extra {
                Some(extra) => extra.make(incarnation).map_err(LaunchFailure::Extra)?,
                None => Vec::new(),
            };
            let channels = Channels {
                stdin: match stdin {
                    Stdin::Session => Wiring::Pipe,
                    Stdin::Null => Wiring::Null,
                    Stdin::Inherit => Wiring::Inherit,
                },
                stdout: match stdout {
                    Stdout::Session | Stdout::Log => Wiring::Pipe,
                    Stdout::Null => Wiring::Null,
                    Stdout::Inherit => Wiring::Inherit,
                },
                stderr: Wiring::Pipe,
                extra,
            };
            match tokio::time::timeout(LAUNCH_LIMIT, shared.launcher.launch(plan, channels)).await {
                Ok(launched) => note(launched?, shared.leftovers.clone()).await,
                Err(_) => Err(LaunchFailure::Stuck),
            }
        };
        let launched = launched.await;
        LaunchResult { permit, launched }
    }))
}

/// Writes the tree down for the next host, if there is a registry and the kernel would not clear up by itself.
async fn note(
    launched: Launched,
    leftovers: Option<Arc<Leftovers>>,
) -> Result<(Launched, Option<Note>), LaunchFailure> {
    let (Some(leftovers), Contained::Subreaper { .. }) = (leftovers, &launched.enforced.containment) else {
        return Ok((launched, None));
    };
    let (tag, processes) = (launched.tag, [launched.launcher.clone(), launched.identity.clone()]);
    let written = tokio::task::spawn_blocking(move || leftovers.note_processes(tag, &processes)).await;
    match written {
        Ok(Ok(note)) => Ok((launched, Some(note))),
        Ok(Err(error)) => Err(LaunchFailure::Note(error.to_string())),
        Err(error) => Err(LaunchFailure::Note(error.to_string())),
    }
}

impl LaunchFailure {
    /// The stable name.
    pub(super) fn code(&self) -> &'static str {
        match self {
            Self::Launch(error) => error.code(),
            Self::Extra(_) => "extra_descriptors",
            Self::Stuck => "launcher_stuck",
            Self::Note(_) => "leftovers_registry",
        }
    }

    /// What the machine needs to know about it.
    pub(super) fn kind(&self) -> SpawnFailure {
        match self {
            Self::Launch(LaunchError::Sandbox { .. }) => SpawnFailure::Sandbox,
            Self::Launch(LaunchError::Resource { .. } | LaunchError::Busy { .. }) => SpawnFailure::Resource,
            Self::Launch(error) if error.is_permanent() => SpawnFailure::Permanent,
            Self::Launch(_) | Self::Stuck | Self::Note(_) => SpawnFailure::Unexplained,
            // Making descriptors fails when the host has too few of them.
            Self::Extra(_) => SpawnFailure::Resource,
        }
    }
}
