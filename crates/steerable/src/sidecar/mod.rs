//! The child's end: serves JSON-RPC on standard input and output.
//!
//! # Theory of operation
//!
//! [`serve`] is a process: it opens the store, says that it is ready, and hands the conversation to a peer. `handler` knows
//! which method is which; what is quick is answered at once and in order, the rest in tasks of their own, so that nothing
//! delays `system.ping`. `chat` opens streams: `plain` passes one call of a model on, `turn` runs an agent. A stream speaks through
//! its `outlet`, which hands many lines at a time to the peer and waits when the host does not read; nothing else
//! holds lines back, so memory is bounded by the outbox. `streams` has the live ones and sees to it that the end of each is told
//! exactly once, also in `life`, which knows the ways in which all of it ends.
//!
//! One thread runs everything; storage and the log have their own. Nothing is loaded before it is used: no cryptography, no
//! database, no supervisor, so that a sidecar is ready within milliseconds and small while it waits.

mod answer;
mod calls;
mod chat;
mod handler;
mod life;
mod log;
mod options;
mod outlet;
mod plain;
mod port;
mod pulse;
mod runtime;
mod serve;
mod sessions;
mod streams;
mod traces;
mod turn;
mod withheld;

pub use options::{Marker, Options};
pub use serve::serve;
