//! What the engine promises, room by room.

mod heap;
mod text;
