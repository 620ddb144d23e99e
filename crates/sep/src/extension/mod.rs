//! The kit for authors: an extension is a trait, and the kit does the rest.
//!
//! # Theory of operation
//!
//! [`run`] reads the bootstrap line, reaches the host over the socket it names, shows the token, agrees on a version and then
//! calls the methods of an [`Extension`] as the host asks for them. Everything blocks; there is no runtime.
//!
//! ```text
//! reader      takes lines apart. Writes nothing and runs no handler, so nothing keeps it from reading.
//! conductor   (the thread of `run`) answers health, agrees on a version, says goodbye.
//! events      on_initialize, then on_event, one after the other.
//! action      one thread for each on_action.  lifecycle, health, shutdown: one each, when first needed.
//! lifeline    waits for the end of standard input. Then the process ends, whatever handlers do.
//! ```
//!
//! A call of a [`HostClient`] waits for its answer in the thread that made it. When the host gives up a request (`$/cancel`), the
//! calls that its handler waits for end too, and the host is told that they are given up.
//!
//! ```no_run
//! use outrigger_sep::extension::{Event, Extension, HostClient, Trouble, run};
//! use outrigger_sep::protocol::LogLevel;
//!
//! struct Listener;
//!
//! impl Extension for Listener {
//!     fn on_event(&self, host: &HostClient, event: &Event) -> Result<(), Trouble> {
//!         host.log(LogLevel::Info, &format!("heard {}", event.topic))?;
//!         Ok(())
//!     }
//! }
//!
//! fn main() -> std::process::ExitCode {
//!     run(Listener)
//! }
//! ```
//!
//! [`testing`] has a host for tests.

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
pub mod testing;
#[cfg(test)]
mod tests;
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
