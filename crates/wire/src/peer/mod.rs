//! A JSON-RPC peer: both sides call and are called at once, over any pair of byte streams.
//!
//! # Theory of operation
//!
//! Three small cores decide everything and know no I/O: `calls` (own calls that await answers, with deadlines),
//! `desk` (the other side's requests: which run, which wait, which ids are taken) and `outbox` (what waits to be written,
//! the most urgent first). They sit behind one lock that is never held while anything waits or any handler runs.
//!
//! Three tasks drive them. The *driver* reads, takes lines apart, starts handlers in order of arrival and watches
//! deadlines. The *writer* writes what waits in the outbox, many lines at a time, and notices when the other side stops
//! reading. The *listener* runs notification handlers one after the other. Handlers run in tasks of their own, so the
//! driver never waits for one.
//!
//! Everything is bounded: when the other side asks for more than it may, it is refused or not read from
//! ([`Crowded`]); when it reads too slowly, senders wait, events are dropped and counted, and no further request is
//! started; when it reads nothing at all, the conversation ends as [`End::WriteStall`].
//!
//! ```
//! use std::{sync::Arc, time::Duration};
//! use outrigger_wire::line::dialect;
//! use outrigger_wire::peer::*;
//! use outrigger_wire::rpc::{EnvelopePolicy, ErrorObject, code};
//!
//! struct Echo;
//!
//! impl Handler for Echo {
//!     fn request(&self, call: Call) -> Answer {
//!         Answer::Now(match (call.method.as_str(), call.params) {
//!             ("echo", Some(params)) => Ok(params),
//!             _ => Err(ErrorObject::new(code::METHOD_NOT_FOUND, "unknown method")),
//!         })
//!     }
//!     fn notification(&self, _: Note) -> Option<BoxFuture<()>> {
//!         None
//!     }
//! }
//!
//! const CONFIG: PeerConfig = PeerConfig {
//!     lines: dialect::STEERABLE,
//!     envelope: EnvelopePolicy::STANDARD,
//!     max_line_out: 1 << 20,
//!     max_calls: 64,
//!     incoming: IncomingLimits { running: 16, waiting: 64, notifications: 64, crowded: Crowded::Pause },
//!     outbox: OutboxLimits { bytes: 1 << 20, reply_bytes: 1 << 20, events: 256, event_bytes: 1 << 18 },
//!     write_stall: Duration::from_secs(10),
//!     drain: Duration::from_secs(5),
//!     cancel: CancelWire::Notify("$/cancel"),
//!     duplicate_ids: DuplicateIds::Refuse,
//! };
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! let (near, far) = tokio::io::duplex(4096);
//! let (input, output) = tokio::io::split(far);
//! let _server = Peer::start(Wiring::new(input, output), Arc::new(Echo), CONFIG);
//! let (input, output) = tokio::io::split(near);
//! let client = Peer::start(Wiring::new(input, output), Arc::new(NoMethods), CONFIG);
//!
//! let params = serde_json::value::to_raw_value(&["hello"]).unwrap();
//! let answer = client.call("echo", Some(&params), Deadline::After(Duration::from_secs(1))).await.unwrap();
//! assert_eq!(answer.get(), r#"["hello"]"#);
//! assert_eq!(client.close().await, End::Closed);
//! # });
//! ```

mod calls;
mod config;
mod desk;
mod drive;
mod end;
mod handle;
mod handler;
mod outbox;
mod shared;
mod write;

pub use config::{
    CallIds, CancelWire, Crowded, Deadline, DuplicateIds, IncomingLimits, Lane, OutboxLimits, PeerConfig,
};
pub use end::{CallError, End, NotifyError};
pub use handle::{Answering, CONTROL_PLACES, Offered, Peer, Wiring};
pub use handler::{
    Answer, BoxFuture, Call, Complaint, Farewell, Handler, NoMethods, Note, Outcome, Reaction, Receipt,
};
pub use shared::Counts;
