//! The control plane's end: one child, its conversation, and every way in which that can go wrong.
//!
//! [`Sidecar::start`] spawns a [`BackendSpec`] under a supervisor and waits for its hello; [`Sidecar::run`] gives it one work
//! order after the other and hands every event to a [`Watcher`] in the task that reads. A [`Remote`] interferes from elsewhere.
//! [`Terms`] say how long things may take and what is forgiven. Whatever goes wrong is one [`Failure`].
//!
//! Two invariants. Nothing is queued between the pipe and the watcher: a watcher that takes its time makes the child wait, and
//! memory does not depend on what the child does. And nothing outlives its owner: dropping a [`Sidecar`], or a run in the middle,
//! kills the child with everything it started.
//!
//! ```standalone_crate
//! use std::num::NonZeroUsize;
//!
//! use outrigger_abp::host::{BackendSpec, How, RunControl, Sidecar, Terms, Watcher, Wish};
//! use outrigger_abp::protocol::{AgentEvent, OrderId, RunId, WorkOrder};
//! use outrigger_supervise::driver::{Settings, Supervisor};
//! use outrigger_supervise::launch::{Launcher, intercept};
//! use outrigger_supervise::sandbox::{Level, Limits, Request};
//!
//! struct Names(Vec<String>);
//!
//! impl Watcher for Names {
//!     fn event(&mut self, event: &AgentEvent<'_>, _line: &str) -> Wish {
//!         self.0.push(event.kind.name().to_owned());
//!         Wish::GoOn
//!     }
//! }
//!
//! fn main() -> std::process::ExitCode {
//!     if let Some(code) = intercept() {
//!         return code;
//!     }
//!     let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
//!     runtime.block_on(one_run());
//!     std::process::ExitCode::SUCCESS
//! }
//!
//! async fn one_run() {
//!     let settings =
//!         Settings { launcher: Launcher::current_exe(), starting_at_once: NonZeroUsize::new(4).unwrap() };
//!     let supervisor = Supervisor::new(settings);
//!     let script = r#"
//!         echo '{"t":"hello","contract_version":"abp/v0.1","backend":{"id":"shell"},"capabilities":{}}'
//!         read -r run; id=${run#*'"id":"'}; id=${id%%'"'*}
//!         echo '{"t":"event","ref_id":"'$id'","event":{"ts":"2026-01-31T12:00:00Z","type":"assistant_message","text":"Done"}}'
//!         echo '{"t":"final","ref_id":"'$id'","receipt":{"outcome":"complete"}}'"#;
//!     let sandbox = Request::new(Level::Basic, Limits::as_the_host());
//!     let spec = BackendSpec::new("shell", "/bin/sh", "/", sandbox).args(["-c", script]);
//!     let terms = Terms::usual();
//!
//!     let mut sidecar = Sidecar::start(&supervisor, &spec, &terms).await.unwrap();
//!     assert_eq!(sidecar.hello().backend.id, "shell");
//!     let (run, order) = (RunId::random().unwrap(), WorkOrder::new(OrderId::random().unwrap(), "say it"));
//!     let mut names = Names(Vec::new());
//!     let ended = sidecar.run(&run, &order, &mut names, RunControl::none()).await;
//!     assert!(matches!(ended.how, How::Final));
//!     assert_eq!(names.0, ["assistant_message"]);
//!     sidecar.stop(terms.ladder).await;
//! }
//! ```

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
