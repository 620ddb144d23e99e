//! The mustard dialect: a sandboxed JavaScript engine that suspends at every host call into a snapshot.
//!
//! * [`protocol`]: the messages, as types; `docs/protocol/mustard.md` says the same in words.
//! * [`sidecar`]: the child's end. Blocking, single-threaded, without any privilege.
//! * [`host`]: the end that drives it: capability handlers, snapshot stores, a pool of warm children.
//! * [`image`]: the engine as it is after its standard library has been run, made by the build.

pub mod host;
pub mod image;
pub mod protocol;
pub mod sidecar;
