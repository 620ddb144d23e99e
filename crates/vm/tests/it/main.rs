//! What the engine promises, room by room.

mod builtins;
mod exec;
mod heap;
mod hostile;
mod parse;
mod regex;
mod scripts;
mod text;
