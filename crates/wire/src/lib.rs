//! Bytes ⇄ frames ⇄ calls: what every conversation with a child process is made of.
//!
//! # Theory of operation
//!
//! Each protocol piece is a *pure core* that knows no I/O and no clock, wrapped by thin adapters:
//!
//! * [`mod@line`] splits a stream into lines. [`line::Splitter`] is pushed bytes and gives lines; it holds at most one
//!   limit of unfinished line, and every awkward case (too long, not UTF-8, CRLF, a byte order mark, the stream ending
//!   inside a line) has an answer in a [`line::LinePolicy`]. There is one ready-made policy per dialect.
//! * [`frame`] does the same for two-length binary frames: header and blob, the limit judged before the body is read,
//!   and a name for every place where a stream can end.
//! * [`rpc`] reads a line as a JSON-RPC 2.0 message, as an [`rpc::EnvelopePolicy`] says, and writes messages. Every
//!   error code of every dialect is in [`rpc::code`].
//! * [`peer`] lets both sides call each other at once over any pair of streams: deadlines, cancellation, priorities,
//!   back-pressure, and a clear reason for every end.
//! * [`conformance`] is what a check of a sidecar finds, rule by rule, whatever the dialect.
//! * [`standard`] takes the standard streams of a child for its protocol.
//! * [`tape`] records a conversation and replays it in tests, cut at every offset.
//!
//! Nothing here is unbounded, nothing here starts a process, and nothing here knows a dialect beyond its limits.
//!
//! ```
//! use outrigger_wire::line::{Item, Splitter, dialect};
//!
//! let mut splitter = Splitter::new(dialect::STEERABLE);
//! let first = splitter.decode(b"{\"id\":1}\r\n{\"id").unwrap();
//! assert_eq!(first.consumed, 10);
//! let Some(Item::Line(line)) = first.item else { panic!("a whole line was pushed") };
//! assert_eq!(line.text(), Ok("{\"id\":1}"));
//! ```

pub mod conformance;
pub mod frame;
pub mod line;
pub mod peer;
pub mod rpc;
pub mod standard;
pub mod tape;
