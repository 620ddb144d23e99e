//! One child process from spawn to reap, over all its restarts: started in its box, known to be ready, watched, restarted,
//! stopped, and reported on. Nothing it started outlives its owner.
//!
//! # Theory of operation
//!
//! Three layers, each of which can be understood without the next:
//!
//! * [`state`] decides. It is a pure function from *what happened, and when* to *what to do now*, so that everything hard (a
//!   stop during a start, a late heartbeat, a crash loop, an event of a process that has been replaced) is a line in a table
//!   of tests and needs no process.
//! * [`driver`] acts. One task per child owns the machine and the process. It turns exits, ready lines, requests of the owner
//!   and findings of the session into events, one after the other, and performs the actions. There is one timer per child,
//!   and none while there is nothing to wait for.
//! * [`launch`] touches the system. The host starts *itself* again as a launcher, which builds the box ([`sandbox`]), starts
//!   the program inside it and stays as its keeper. Killing is by the tree, and an exit is only reported when everything in
//!   the tree is reaped.
//!
//! A host writes a [`Spec`](spec::Spec), gives it to a [`Supervisor`](driver::Supervisor) and holds a
//! [`Child`](driver::Child). Whoever speaks the child's protocol takes a [`Session`](driver::Session) for each process: the
//! pipes, pings to send, the request to leave, and a handle to say what the conversation shows. Every end gives a
//! [`Report`](report::Report) that says what, why, its last words, and what happens next.
//!
//! Invariants:
//!
//! * Dropping the last [`Child`](driver::Child) kills the tree; so does the end of the host, however it ends.
//! * A stop returns when everything is reaped, within its [`Ladder`](state::Ladder) plus the kernel's time to kill.
//! * Standard error is always read. What a child says is bounded in lines, bytes, file sizes and rate; what does not fit is
//!   counted, never waited for. Only a [`Tee`](spec::Tee) makes the child wait, because its owner asked for every byte; one
//!   that is held and not read also holds up a stop, which [`Child::kill`](driver::Child::kill) does not wait for.
//! * Nobody who watches can slow a child down: events are kept in a ring, and who is late is told how many were missed.
//!
//! # Example
//!
//! The executable that supervises must call [`launch::intercept`] first, because it is also the launcher.
//!
//! ```standalone_crate
//! use std::num::NonZeroUsize;
//! use std::time::Duration;
//!
//! use outrigger_supervise::driver::{Settings, Supervisor};
//! use outrigger_supervise::launch::{Launcher, intercept};
//! use outrigger_supervise::ready::{Before, Gate, LineMatch, Ready, StdoutGate};
//! use outrigger_supervise::sandbox::{Level, Limits, Request};
//! use outrigger_supervise::spec::{Logs, Rules, Spec};
//! use outrigger_supervise::state::{Cause, Final, Heartbeat, Restart};
//!
//! fn main() -> std::process::ExitCode {
//!     if let Some(code) = intercept() {
//!         return code;
//!     }
//!     let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
//!     runtime.block_on(supervise());
//!     std::process::ExitCode::SUCCESS
//! }
//!
//! async fn supervise() {
//!     let supervisor = Supervisor::new(Settings {
//!         launcher: Launcher::current_exe(),
//!         starting_at_once: NonZeroUsize::new(4).unwrap(),
//!     });
//!     let gate = Gate::Stdout(StdoutGate {
//!         line: LineMatch::json("/type", "ready"),
//!         before: Before::Refuse,
//!         max_line_bytes: 64 * 1024,
//!     });
//!     let rules = Rules {
//!         ready: Ready::When { gate, within: Duration::from_secs(10) },
//!         heartbeat: Heartbeat::None,
//!         restart: Restart::Never,
//!         logs: Logs { tail_lines: 20, tail_bytes: 16 * 1024, max_line_bytes: 4096, file: None },
//!     };
//!     let sandbox = Request::new(Level::Basic, Limits::as_the_host());
//!     let script = r#"echo '{"type":"ready"}'; echo 'out of cheese' >&2; exit 3"#;
//!     let spec = Spec::new("demo", "/bin/sh", "/", sandbox, rules).args(["-c", script]).spoken_to();
//!
//!     let child = supervisor.start(spec).unwrap();
//!     let mut session = child.next_session().await.unwrap();
//!     assert!(session.ready().await.is_some());
//!     let outcome = child.wait().await;
//!     assert_eq!(outcome.why, Final::NotRestarted(Cause::Crash));
//!     let report = outcome.report.unwrap().to_string();
//!     assert!(report.starts_with("`demo` #1 failed with exit code 3"));
//!     assert!(report.contains("| out of cheese"));
//! }
//! ```

pub mod driver;
pub mod launch;
pub mod leftovers;
pub mod logs;
pub mod metrics;
mod platform;
pub mod ready;
pub mod report;
pub mod sandbox;
pub mod spec;
pub mod state;
pub mod tree;
