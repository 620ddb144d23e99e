//! HTTP and server-sent events: how the runtime reaches the outside.
//!
//! [`Http`] hands out the pooled client, [`sse`] takes bodies apart. Nothing here knows what a model is.

pub mod http;
pub mod sse;

pub use http::{Http, HttpError};
