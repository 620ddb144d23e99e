//! The parent's end: starts a sidecar, calls it, and hears its streams.
