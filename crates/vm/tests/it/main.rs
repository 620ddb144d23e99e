//! What the engine promises, room by room.

mod async_iteration;
mod boundary;
mod builtins;
mod errors;
mod eval;
mod exec;
mod golden;
mod heap;
mod hop;
mod hostile;
mod language;
mod large;
mod parse;
mod regex;
mod scripts;
mod sites;
mod slices;
mod snapshot;
mod text;
