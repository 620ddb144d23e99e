//! The mustard dialect: a sandboxed JavaScript engine that suspends at every host call into a snapshot.
//!
//! Nothing is here yet. Three rooms will stand here: `protocol` (the messages, as types), `sidecar`
//! (the child's end) and `host` (the end that drives it).
