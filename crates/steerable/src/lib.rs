//! The steerable dialect: an agent runtime over JSON-RPC lines on stdio.
//!
//! Nothing is here yet. Three rooms will stand here: `protocol` (the messages, as types), `sidecar`
//! (the child's end) and `host` (the end that drives it).
