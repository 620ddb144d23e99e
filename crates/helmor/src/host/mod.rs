//! The end that drives the bridge: a sidecar that is started when it is needed, its streams as bounded queues, its answers as types.
//!
//! A [`Bridge`] starts nothing by itself. The first request spawns the [`BridgeSpec`] under a supervisor and waits for `ready`; a
//! request that finds it dead starts another one, after a pause that grows with every death and not for ever. One task reads and
//! gives every line to the request whose id it carries, one writes whole lines, and a *keeper* tells everybody when the process
//! is gone and how. What the sidecar asks of its host is answered by a [`Reverse`].
//!
//! Promises:
//!
//! * A [`Stream`] has exactly one end, whatever happens to the sidecar, and nothing of it is missed, because its place is made
//!   before it is asked for.
//! * What a provider calls a session is remembered over the death of the sidecar, over silence and over a restart: the next turn
//!   goes on where the last one was. Only a `contextReset` or [`Bridge::forget`] loses it.
//! * The reader waits for nobody. A stream that is not read keeps what comes, up to [`Terms::stream_bytes`]; then that one ends
//!   with a name for it and its turn is stopped, and no other stream was ever late. (Holding the sidecar up instead would make
//!   one forgotten window stop all agents.)
//! * A stream on which nothing comes for [`Terms::silence`], not even a heartbeat, ends and its turn is stopped. A sidecar that
//!   does not answer that and says nothing else either is killed.
//! * Nothing outlives its owner: dropping the last [`Bridge`] kills the child with everything it started.
//!
//! ```no_run
//! use std::num::NonZeroUsize;
//! use std::sync::Arc;
//!
//! use outrigger_helmor::host::{Bridge, BridgeSpec, Nobody, StreamEvent, Terms};
//! use outrigger_helmor::protocol::{ProviderName, SendMessage};
//! use outrigger_helmor::provider::Verdict;
//! use outrigger_supervise::driver::{Settings, Supervisor};
//! use outrigger_supervise::launch::Launcher;
//! use outrigger_supervise::sandbox::{Level, Limits, Network, Request};
//!
//! # async fn example(turn: SendMessage) -> Result<(), Box<dyn std::error::Error>> {
//! let settings = Settings { launcher: Launcher::current_exe(), starting_at_once: NonZeroUsize::MIN };
//! let mut sandbox = Request::new(Level::Basic, Limits::as_the_host());
//! sandbox.network = Network::Allow;
//! let spec = BridgeSpec::new("bridge", "helmor-sidecar", "/", sandbox).inherit_env();
//! let bridge = Bridge::new(Supervisor::new(settings), spec, Terms::usual(), Arc::new(Nobody));
//!
//! let mut stream = bridge.send(turn).await?;
//! while let Some(event) = stream.next().await {
//!     match event {
//!         StreamEvent::Passed(passed) => println!("{}", passed.line),
//!         StreamEvent::Permission(ask) => bridge.permission(&ask.id, Verdict::Deny { message: None }).await?,
//!         StreamEvent::End(end) => println!("{end}"),
//!         _ => {}
//!     }
//! }
//! bridge.shutdown().await;
//! # Ok(())
//! # }
//! ```

mod bridge;
mod connection;
mod error;
mod event;
mod hub;
mod keeper;
mod methods;
mod queue;
mod read;
mod reverse;
mod sessions;
mod spec;
mod starts;
mod stream;
mod terms;

pub use bridge::{Bridge, Stopped, StoppedBy};
pub use error::{BridgeError, Lost, Refusal, StartError, StartErrorKind};
pub use event::{Passed, StreamEnd, StreamEvent};
pub use methods::{CommandChoice, Irregular, ModelChoice, Steered, Title};
pub use reverse::{Nobody, Notice, Reverse};
pub use spec::BridgeSpec;
pub use stream::Stream;
pub use terms::{ReverseLimits, Terms, Waits};
