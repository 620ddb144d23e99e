//! The integration tests of this crate, one binary.

mod host_store;
