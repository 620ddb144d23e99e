//! What the engine promises, room by room.

mod heap;
mod parse;
mod regex;
mod text;
mod exec;
