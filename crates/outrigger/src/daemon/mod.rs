//! The daemon of `outrigger up`: what it is made of and where it keeps things.

pub(crate) mod app;

pub(crate) use app::{App, Entrance, Extensions};
