//! The integration tests of this crate, one binary.

mod host_fake;
mod host_pool;
mod host_run;
mod host_store;
mod protocol;
mod sidecar;
