//! The child's end: a kit for authors, and two children that are ready to run.
//!
//! A handler gets a [`Run`]: the work order, methods that send events at once, a sign to stop, and [`Run::ask`] for what may be
//! done. It answers with [`Done`] or [`Failure`]; whatever it does, also when it panics or ignores a cancel, the run ends with
//! exactly one `final` or `fatal`, and nothing follows that. Pings are answered while it works, input that is closed after
//! `run` does not end the run, and several runs follow each other.
//!
//! ```
//! use outrigger_abp::sidecar::{Done, Identity, Options, serve_on};
//! use tokio::io::{AsyncReadExt, AsyncWriteExt};
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> std::io::Result<()> {
//! let (mut host, child) = tokio::io::duplex(4096);
//! let (input, output) = tokio::io::split(child);
//! let serving = tokio::spawn(serve_on(input, output, Identity::named("echo"), Options::usual(), |run| async move {
//!     run.message(&format!("you said: {}", run.order().task)).await?;
//!     Ok(Done::as_it_went())
//! }));
//!
//! host.write_all(b"{\"t\":\"run\",\"id\":\"r1\",\"work_order\":{\"task\":\"hello\"}}\n").await?;
//! host.shutdown().await?;
//! let mut heard = String::new();
//! host.read_to_string(&mut heard).await?;
//! let lines: Vec<&str> = heard.lines().collect();
//! assert!(lines[0].starts_with(r#"{"t":"hello","contract_version":"abp/v0.1","backend":{"id":"echo""#));
//! assert!(lines[1].contains(r#""type":"assistant_message","text":"you said: hello""#));
//! assert!(lines[2].contains(r#""outcome":"complete""#));
//! # serving.await.unwrap(); Ok(()) }
//! ```
//!
//! An executable calls [`serve`] or [`main`](fn@main) instead, on its own standard streams. [`mock`] plays a script, [`process`] runs any
//! program.

mod ask;
mod gate;
pub mod mock;
mod output;
pub mod process;
mod run;
mod say;
mod serve;
mod terms;

pub use ask::{Answered, By, Question};
pub use run::{EmitError, MAX_ARTIFACTS, MAX_QUESTIONS, Run};
pub use say::{ToolUse, Tooled};
pub use serve::{main, serve, serve_on};
pub use terms::{Done, Failure, Identity, Options};
