//! The helmor dialect: a bridge to the real coding agents, and the host that manages it.
//!
//! Nothing is here yet. Three rooms will stand here: `protocol` (the messages, as types), `sidecar`
//! (the child's end) and `host` (the end that drives it).
