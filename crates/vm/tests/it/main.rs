//! What the engine promises, room by room.

mod text;
