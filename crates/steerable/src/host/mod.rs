//! The parent's end: one sidecar over all its processes, its methods as types, its streams as bounded queues.
//!
//! [`Sidecar::start`] spawns a [`SidecarSpec`] under a supervisor and waits until it is ready, by its marker or by its
//! notification. From then on a *keeper* passes on the supervisor's pings, and when the process is gone tells everybody who waits:
//! calls fail and streams end as [`StreamEnd::Lost`], with the exit status and the last lines of its log. [`Terms`] say
//! whether and when there is another process; sessions can be resumed in it. What the sidecar asks of its host is answered by a
//! [`Reverse`].
//!
//! Three promises:
//!
//! * A [`Stream`] has exactly one end, whatever happens to the sidecar, and nothing of it is missed, because its place is
//!   made before it is asked for.
//! * Nothing grows. A stream that is not read is full at [`StreamLimits`]; then nothing more is read from the sidecar, which
//!   waits. Pings are excused meanwhile, because it is we who do not hear the answers. A stream that is cancelled, dropped or
//!   that belongs to a sidecar that leaves makes nobody wait; what it misses is counted.
//! * Nothing outlives its owner: dropping the last [`Sidecar`] kills the child with everything it started.
//!
//! ```no_run
//! use std::num::NonZeroUsize;
//! use std::sync::Arc;
//!
//! use outrigger_steerable::host::{Nobody, Sidecar, SidecarSpec, StreamEvent, Terms};
//! use outrigger_supervise::driver::{Settings, Supervisor};
//! use outrigger_supervise::launch::Launcher;
//! use outrigger_supervise::sandbox::{Level, Limits, Network, Request};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let settings = Settings { launcher: Launcher::current_exe(), starting_at_once: NonZeroUsize::MIN };
//! let mut sandbox = Request::new(Level::Basic, Limits::as_the_host());
//! sandbox.network = Network::Allow;
//! let spec = SidecarSpec::new("agent", "steerable-sidecar", "/", sandbox).inherit_env();
//! let sidecar = Sidecar::start(&Supervisor::new(settings), &spec, Terms::usual(), Arc::new(Nobody)).await?;
//!
//! let params = serde_json::json!({
//!     "provider": "ollama", "model": "qwen3", "messages": [{"role": "user", "content": "Say hi."}],
//! });
//! let mut stream = sidecar.stream(&params).await?;
//! while let Some(event) = stream.next().await {
//!     match event {
//!         StreamEvent::Chunk(chunk) => print!("{}", chunk.delta.unwrap_or_default()),
//!         StreamEvent::Missed(missed) => print!("[{missed} chunks were missed]"),
//!         StreamEvent::End(end) => println!("{end:?}"),
//!     }
//! }
//! sidecar.shutdown().await;
//! # Ok(())
//! # }
//! ```

mod chunk;
mod connection;
mod end;
mod error;
mod hub;
mod keeper;
mod marker;
mod members;
mod methods;
mod queue;
mod reverse;
mod sidecar;
mod spec;
mod stream;
mod terms;

pub use chunk::{Chunk, Notice, ToolCallChunk, ToolResultChunk};
pub use end::{Done, Lost, StreamEnd, StreamFailure};
pub use error::{CallError, RemoteError, StartError, StartErrorKind};
pub use methods::{
    Consent, Export, Exported, Fork, Forked, Invocation, NewSession, SessionFilter, SteerBy, Steered, Tool,
    TraceOf, TraceRecord, Transcript, Until,
};
pub use reverse::{
    Answers, ApprovalRequest, Decision, Nobody, Question, Questions, Reverse, ToolAnswer, ToolInvocation,
    Verdict,
};
pub use sidecar::{Hello, Irregular, Sidecar};
pub use spec::SidecarSpec;
pub use stream::{Stream, StreamEvent, StreamId};
pub use terms::{Pulse, ReadyBy, StreamLimits, Terms};
