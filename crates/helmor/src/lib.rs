//! The helmor dialect: a bridge to the real coding agents, and the host that manages it.
//!
//! # Theory of operation
//!
//! A host writes requests on the child's standard input, a JSON object a line, and reads events from its standard output;
//! every event carries the id of the request it belongs to. The child starts the real programs (Claude Code, Codex, any
//! agent that speaks ACP), speaks the protocol of each, and passes on what they say.
//!
//! * [`protocol`]: the lines as types, both ways.
//! * [`provider`]: one driver for each program, behind one small trait, and what they share: finding the program, starting
//!   it inside a box that holds its whole tree, preparing a prompt.
//! * [`sidecar`]: the child's end. It owns what no driver may get wrong: one reader that never waits, one writer, exactly
//!   one terminal event for every request, heartbeats, who waits for which answer, and the end.
//! * [`host`]: the end that drives it: started at the first request, a bounded channel for every request, the rule of
//!   silence, and a stop that stops.
//! * [`check`]: does somebody's sidecar keep to the protocol?
//!
//! A host in any language writes lines like this one and reads events until the one that is the last for its id:
//!
//! ```
//! use outrigger_helmor::protocol::{Event, ProviderName, StopSession, request_line};
//!
//! let stop = StopSession { session_id: "s".to_owned(), provider: ProviderName::Claude };
//! let line = request_line("7", "stopSession", &stop.to_params());
//! assert_eq!(line, r#"{"id":"7","method":"stopSession","params":{"provider":"claude","sessionId":"s"}}"#);
//!
//! let event = Event::read(r#"{"id":"3","type":"aborted","reason":"user_requested"}"#).unwrap();
//! assert_eq!((event.id.as_deref(), &*event.kind, event.is_terminal()), (Some("3"), "aborted", true));
//! ```

pub mod check;
pub mod host;
pub mod protocol;
pub mod provider;
pub mod sidecar;

use std::pin::Pin;

/// A future that is boxed, as the traits of this crate return them.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
