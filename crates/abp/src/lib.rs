//! The abp dialect: work orders to agent backends, a stream of events and one receipt back.
//!
//! Nothing is here yet. Three rooms will stand here: `protocol` (the messages, as types), `sidecar`
//! (the child's end) and `host` (the end that drives it).
