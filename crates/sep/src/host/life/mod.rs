//! The life of one extension as a pure machine: no clock, no I/O, no process, no randomness but a seeded one.

pub mod platform;
mod terms;
mod words;

pub use platform::{PlatformSignal, TrimLevel};
pub use terms::{
    ABORT_AFTER, Activation, AndroidTerms, CHANNEL_SETTLE, DEBOUNCE, HEALTH_REFUSALS, LEAVING_WITHIN,
    LifeTerms, PROBE_WITHIN, SHUTDOWN_ASK, SHUTDOWN_TERM, STOP_BOUND, TOLD_WITHIN,
};
pub use words::{
    Effect, Event, ExitRecord, Ground, LifecycleTopic, SpawnTrouble, StartPhase, Transition, View,
};
