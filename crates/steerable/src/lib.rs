//! The steerable dialect: an agent runtime in a child process, spoken to in JSON-RPC 2.0 lines.
//!
//! # Theory of operation
//!
//! [`sidecar`] is the child: it reads requests, answers them, and runs *streams*. A stream is one model call ([`model`]) or
//! an agent's turn ([`agent`]): model, tools, model, until there is an answer. Tools are in [`tools`], the sessions, transcripts
//! and traces in [`store`], and what all of them talk about (messages, calls, usage) in [`chat`]. What goes over the
//! wire is in [`protocol`]. [`host`] is the parent's end, and [`check`] judges any sidecar, ours or not.
//!
//! The rooms know each other only in this direction:
//!
//! ```text
//! sidecar ─► agent ─► model │ tools │ store ─► net │ chat
//!    └─────► protocol ◄───── host ◄── check
//! ```
//!
//! ```
//! use outrigger_steerable::chat::{Message, Role};
//!
//! let message = Message::text(Role::User, "Say hi");
//! assert_eq!(message.plain_text(), "Say hi");
//! ```

pub mod agent;
pub mod chat;
pub mod check;
pub mod host;
pub mod model;
pub mod net;
pub mod protocol;
pub mod sidecar;
pub mod store;
pub mod tools;
