//! The end that drives a sidecar.

mod key;
mod limits;
pub mod store;

pub use key::HostKey;
pub use limits::Limits;
