//! The end that drives a sidecar.
