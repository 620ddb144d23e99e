//! The control plane's end: one child, its conversation, and every way in which that can go wrong.
//!
//! [`Sidecar::start`] spawns a [`BackendSpec`] under a supervisor and waits for its hello; [`Sidecar::run`] gives it one work
//! order after the other and hands every event to a [`Watcher`] in the task that reads. A [`Remote`] interferes from elsewhere.
//! [`Terms`] say how long things may take and what is forgiven. Whatever goes wrong is one [`Failure`].
//!
//! Two invariants. Nothing is queued between the pipe and the watcher: a watcher that takes its time makes the child wait, and
//! memory does not depend on what the child does. And nothing outlives its owner: dropping a [`Sidecar`], or a run in the middle,
//! kills the child with everything it started.

mod control;
mod ended;
mod failure;
mod hear;
mod outbox;
mod process;
mod run;
mod sidecar;
mod spec;
mod talk;
mod terms;
mod timers;
mod warning;
mod watch;

pub use control::{Command, Over, Remote, RunControl};
pub use ended::{Ended, How, Observed};
pub use failure::{Failure, FailureKind, Fatal};
pub use sidecar::{Sidecar, Stopped};
pub use spec::BackendSpec;
pub use terms::{Foreign, Noise, Pulse, Terms};
pub use warning::{MOST_WARNINGS, Warning, Warnings};
pub use watch::{Unwatched, Watcher, Wish};
