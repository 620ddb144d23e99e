//! The life of one extension as a pure machine: no clock, no I/O, no process, no randomness but a seeded one.
//!
//! [`Life::step`] takes what happened and when, and says what to do. The driver performs the [`Effect`]s and feeds back what
//! came of them. One machine follows one extension over all its processes, on a desktop and on a phone; on a desktop there
//! are simply no platform signals.
//!
//! ```text
//! stopped → starting → ready ⇄ unresponsive        ready → pausing → suspended → resuming → ready
//!    ▲          │         │         │                          └────────┴───────────┴──→ reclaimed → starting
//!    └ stopping ┴─────────┴─────────┴→ backoff → starting …
//!                                    └→ disabled (crash loop), failed (starting again cannot help)
//! ```
//!
//! Crashes are judged by the record that every supervised process has, and silence is noticed by the same pulse; what is
//! told here is only what extensions have beyond that. The laws, each held by the tests: at most one process; one
//! [`Effect::Ended`] for each [`Effect::Spawn`]; nothing is spawned that may not run; after a step the next deadline lies in
//! the future; only what dies ready or starting, and seen by the user, counts as a crash.
//!
//! ```
//! use std::{num::NonZeroU32, time::Duration};
//! use outrigger_sep::host::life::{Activation, Effect, Event, Life, LifeTerms};
//! use outrigger_sep::protocol::{LaunchReason, State};
//! use outrigger_supervise::state::Moment;
//!
//! let terms = LifeTerms {
//!     startup: Duration::from_secs(15),
//!     heartbeat: Duration::from_secs(10),
//!     missed: NonZeroU32::new(3).expect("not zero"),
//!     threshold: NonZeroU32::new(5).expect("not zero"),
//!     activation: Activation::Eager,
//!     android: None,
//! };
//! let (mut life, mut effects) = (Life::new(terms, 7), Vec::new());
//! life.step(Moment::ORIGIN, Event::Admitted, &mut effects);
//! life.step(Moment::ORIGIN, Event::Start(LaunchReason::First), &mut effects);
//! assert!(effects.contains(&Effect::Spawn(LaunchReason::First)));
//! assert_eq!(life.view().state, State::Starting);
//! ```

mod end;
mod leave;
pub mod ledger;
mod machine;
pub mod model;
mod pause;
pub mod platform;
mod serve;
mod terms;
mod view;
mod wish;
mod words;

pub use machine::Life;
pub use platform::{PlatformSignal, TrimLevel};
pub use terms::{
    ABORT_AFTER, Activation, AndroidTerms, CHANNEL_SETTLE, DEBOUNCE, HEALTH_REFUSALS, LEAVING_WITHIN,
    LifeTerms, PROBE_WITHIN, SHUTDOWN_ASK, SHUTDOWN_TERM, STOP_BOUND, TOLD_WITHIN,
};
pub use words::{
    Effect, Event, ExitRecord, Ground, LifecycleTopic, SpawnTrouble, StartPhase, Transition, View,
};

#[cfg(test)]
mod tests;
