//! The end that drives a backend.
