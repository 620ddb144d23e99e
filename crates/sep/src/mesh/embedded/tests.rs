//! Two nodes in one process.
