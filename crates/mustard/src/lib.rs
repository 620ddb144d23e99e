//! The mustard dialect: a sandboxed JavaScript engine that suspends at every host call into a snapshot.
//!
//! * [`protocol`]: the messages, as types; `docs/protocol/mustard.md` says the same in words.
//! * [`sidecar`]: the child's end. Blocking, single-threaded, without any privilege.
//! * [`host`]: the end that drives it: capability handlers, snapshot stores, a pool of warm children.

pub mod host;
pub mod protocol;
pub mod sidecar;
