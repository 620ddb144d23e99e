//! What the engine promises, room by room.

