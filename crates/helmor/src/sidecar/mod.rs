//! The child's end: serves a host on standard input and output.
//!
//! # Theory of operation
//!
//! [`serve`] is a process. One thread holds the conversation: a reader that waits for nothing but input, a writer that takes all
//! lines that wait at once, and the timers of heartbeats. Drivers have threads of their own, started with the first of them, so
//! that one that blocks or never waits delays nobody else.
//!
//! `conversation` is what is under way with the host, under one lock: the lines that wait, the requests in flight, the open
//! questions. So the order on the wire is the order in which things happened, and nothing can follow the end of a request. A
//! `reply` is one request; who drops it without a last event has `error` said for him. A `stream` is the desk of a driver.
//!
//! `dispatch` knows which method is which. `sessions` are idle or busy; what happens to each happens in order. `turn` runs one
//! from its request to its end, `warm` ends what has been kept too long, `queries` are all other questions to providers, and
//! `life` knows the ways in which all of it ends.

mod conversation;
mod core;
mod defaults;
mod dispatch;
mod life;
mod log;
mod object;
mod options;
mod providers;
mod queries;
mod replay;
mod reply;
mod serve;
mod sessions;
mod spell;
mod stream;
mod title;
mod turn;
mod warm;
mod write;

pub use life::Exit;
pub use log::LogLevel;
pub use options::{ApiErrors, Options, Warm};
pub use providers::{Make, Providers, Settings};
pub use serve::{Signal, converse, serve};
