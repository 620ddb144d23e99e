//! The kit for authors: an extension is a trait, and the kit does the rest.

mod bootstrap;
pub mod exit;
mod link;

pub use bootstrap::{Bootstrap, BootstrapError, Endpoint};
pub use link::{Inherited, Link};
