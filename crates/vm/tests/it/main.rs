//! What the engine promises, room by room.

mod heap;
mod regex;
mod text;
