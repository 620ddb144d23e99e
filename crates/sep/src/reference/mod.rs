//! The extensions that ship: one that shows everything, and one that misbehaves on request.

pub mod autoreply;
pub mod fault;
mod install;

pub use install::{Draft, InstallError, Kind, Program, install};
