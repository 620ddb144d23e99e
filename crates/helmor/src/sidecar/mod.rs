//! The child's end.
