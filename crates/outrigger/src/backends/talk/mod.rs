//! Conversations as runs: the steerable runtime as a backend.
