//! HTTP and server-sent events: how the runtime reaches the outside.
