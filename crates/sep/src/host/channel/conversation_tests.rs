//! The conversation over an in-memory pipe.
