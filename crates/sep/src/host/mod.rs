//! The end that drives: lifecycle, channel, gate, events, panels, records.

pub mod channel;
pub mod events;
pub mod gate;
pub mod life;
pub mod record;
pub mod ui;
