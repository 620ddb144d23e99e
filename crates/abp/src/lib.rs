//! The abp dialect: work orders to agent backends, a stream of events and one receipt back.

pub mod check;
pub mod conduct;
pub mod govern;
pub mod host;
pub mod protocol;
pub mod receipt;
pub mod sidecar;
pub mod workspace;
