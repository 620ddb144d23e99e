//! The messages, as types.
