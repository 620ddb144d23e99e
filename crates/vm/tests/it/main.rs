//! What the engine promises, room by room.

mod exec;
mod heap;
mod parse;
mod regex;
mod scripts;
mod text;
