//! The daemon of `outrigger up`: what it is made of and where it keeps things.

pub(crate) mod app;
pub(crate) mod args;
mod assemble;
mod browser;
pub(crate) mod client;
mod example;
mod extensions;
pub(crate) mod place;
pub(crate) mod up;

pub(crate) use app::{App, Entrance, Extensions};
