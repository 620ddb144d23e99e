//! Model providers: one call of a model as a stream of events.
//!
//! [`Client::stream`] takes a [`Request`], speaks the provider's own dialect, and tells a [`Sink`] what comes: text, thoughts,
//! complete tool calls, and at the end why it ended and what it cost. It waits no longer than the request's [`Patience`],
//! and makes a call again only while the sink has heard nothing of it.
//!
//! Every dialect is a pair: `encode` writes the request, `decode` reads one server-sent event after the other. What they
//! share — collecting tool calls, retries, timeouts, errors — is beside them, written once.

mod attempt;
mod body;
mod calls;
mod client;
mod completions;
mod details;
mod dialect;
mod estimate;
mod event;
mod failure;
mod gemini;
mod json;
mod messages;
mod provider;
mod request;
mod responses;
mod retry;
mod scripted;
mod telling;

pub use client::Client;
pub use estimate::estimate_tokens;
pub use event::{Event, Gone, Sink, Summary};
pub use failure::{Failure, FailureKind};
pub use provider::{NAMES, Provider};
pub use request::{CacheMarks, Patience, Request};
pub use scripted::{Script, ScriptError};
