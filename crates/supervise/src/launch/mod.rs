//! Starting one program inside its box, and the grip the host keeps on it afterwards.
//!
//! Nothing here runs between `fork` and `exec`. The host starts *itself* again as `<exe> __launch …`; that process is
//! single-purpose, may allocate and fail like any other, puts itself into the box and only then starts the program:
//!
//! ```text
//! host ──spawn──► stage A ──spawn──► keeper (pid 1 of a new pid namespace) ──spawn──► program ─► whatever it forks
//!   └────────────── control socket: plan and descriptors down, reports up ──────┘
//! ```
//!
//! * The host is gone: the kernel sends SIGKILL to stage A, and through it to the keeper (parent-death signal); the
//!   keeper also reads end-of-file on the control socket. A pid namespace without its pid 1 is emptied by the kernel, so
//!   a `setsid` double fork does not help anybody to survive.
//! * Where pid namespaces are forbidden, stage A is the keeper itself: a child subreaper that inherits every orphan of
//!   the tree and sweeps until no child is left ([`Containment::Subreaper`](crate::sandbox::Containment)).
//!
//! The executable that plays launcher must call [`intercept`] first thing in its `main`.

mod control;
mod error;
pub(crate) mod exact;
mod exit;
mod plan;

use std::path::PathBuf;
use std::process::ExitCode;

use tokio::net::unix::pipe;

pub use control::Control;
pub use error::LaunchError;
pub use exit::{Exit, Signal, Status, signal_name};
pub use plan::{Channels, NotATag, Plan, TREE_VARIABLE, TreeTag, Umask, Wiring};

use crate::sandbox::Enforced;
use crate::tree::{Identity, Pid};

/// Call first in `main`: if this process was started as `<exe> __launch …` it becomes the launcher, and the exit code to
/// return from `main` comes back. In every other process it only notes the descriptor limit the host was born with, so
/// that children get that one even when the host raises its own, and returns `None`.
///
/// ```
/// fn main() -> std::process::ExitCode {
///     if let Some(code) = outrigger_supervise::launch::intercept() {
///         return code;
///     }
///     // … the program itself …
///     std::process::ExitCode::SUCCESS
/// }
/// ```
pub fn intercept() -> Option<ExitCode> {
    crate::platform::intercept()
}

/// Which executable plays launcher; its `main` must call [`intercept`].
#[derive(Clone, Debug)]
pub struct Launcher {
    executable: PathBuf,
    ahead: Ahead,
}

/// How many launchers are started before they are needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ahead {
    None,
    One,
}

impl Launcher {
    /// This very program, through `/proc/self/exe`: right even when the file on disk was replaced by an upgrade.
    pub fn current_exe() -> Self {
        Self { executable: crate::platform::own_executable(), ahead: Ahead::None }
    }

    /// Another executable that calls [`intercept`], for hosts that cannot (an embedding in another language).
    pub fn at(executable: PathBuf) -> Self {
        Self { executable, ahead: Ahead::None }
    }

    /// Keeps one launcher waiting from the first launch on, so that later ones are over in a fraction of the time. It is
    /// two sleeping processes of a few megabytes, which end with this host like any tree. For hosts that start children
    /// often.
    #[must_use]
    pub fn with_spare(self) -> Self {
        Self { ahead: Ahead::One, ..self }
    }

    pub(crate) fn executable(&self) -> &std::path::Path {
        &self.executable
    }

    /// Starts the program of `plan` in its box. When this returns `Ok` the program has been executed; every reason why
    /// it could not be is a [`LaunchError`], and then nothing is left running. Dropping the future kills what it started.
    ///
    /// Must be called inside a tokio runtime with I/O enabled.
    pub async fn launch(&self, plan: Plan, channels: Channels) -> Result<Launched, LaunchError> {
        crate::platform::launch(&self.executable, self.ahead, plan, channels).await
    }
}

/// A program that has been started.
#[derive(Debug)]
pub struct Launched {
    /// The program's process id as the host sees it (inside a pid namespace it sees itself under another number).
    pub pid: Pid,
    /// The program's identity, which no later process can have.
    pub identity: Identity,
    /// The identity of stage A, the direct child of the host; it ends when everything in the tree has.
    pub launcher: Identity,
    /// The tag in the environment of every process of the tree, see [`TREE_VARIABLE`].
    pub tag: TreeTag,
    /// The program's standard input, if it was wired as [`Wiring::Pipe`].
    pub stdin: Option<pipe::Sender>,
    /// The program's standard output, if it was wired as [`Wiring::Pipe`].
    pub stdout: Option<pipe::Receiver>,
    /// The program's standard error, if it was wired as [`Wiring::Pipe`].
    pub stderr: Option<pipe::Receiver>,
    /// What the box is really made of.
    pub enforced: Enforced,
    /// The grip on the tree. Dropping it kills the tree.
    pub control: Control,
}
