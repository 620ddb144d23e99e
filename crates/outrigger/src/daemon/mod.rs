//! The daemon of `outrigger up`: what it is made of and where it keeps things.

pub(crate) mod app;
pub(crate) mod args;
pub(crate) mod client;
mod example;
pub(crate) mod place;

pub(crate) use app::{App, Entrance, Extensions};
