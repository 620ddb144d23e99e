//! The messages of the dialect, as types.
