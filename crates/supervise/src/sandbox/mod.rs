//! The box: what a child may touch, what was asked for and what the kernel really enforces.
//!
//! A [`Request`] names a [`Level`], a [`Containment`], paths, a [`Network`] choice and [`Limits`]. The launcher builds
//! the box and answers with [`Enforced`], layer by layer, so that nobody has to believe a configuration file.
//! A child of ours that needs nothing but its pipes also puts itself into one: [`confine_self`].

mod enforced;
mod own;
mod report;
mod request;

pub use enforced::{Contained, Enforced, Landlock, LandlockStatus, Layer};
pub use own::{OwnBox, confine_self};
pub use report::{Capabilities, Capability, Cgroup, probe};
pub use request::{Containment, Level, Limits, Network, Processes, Request};
