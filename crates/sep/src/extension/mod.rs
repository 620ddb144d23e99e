//! The kit for authors: an extension is a trait, and the kit does the rest.

mod api;
mod bootstrap;
mod client;
mod conduct;
mod desk;
mod error;
pub mod exit;
mod lanes;
mod link;
mod news;
mod run;
mod session;
mod welcome;

pub use api::{About, ActionReply, Extension, Health, Lifecycle, Shutdown, Trouble};
pub use bootstrap::{Bootstrap, BootstrapError, Endpoint};
pub use client::{Contact, HostClient, Message, Pages, Query};
pub use conduct::Ending;
pub use error::HostError;
pub use link::{Inherited, Link};
pub use news::{Event, News};
pub use run::run;
pub use welcome::{NoCommonVersion, Welcome};
