//! The sep dialect: extensions with manifests, and permissions checked on every call.
//!
//! Nothing is here yet. Three rooms will stand here: `protocol` (the messages, as types), `extension`
//! (the child's end) and `host` (the end that drives it).
