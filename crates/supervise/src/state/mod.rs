//! The life of a child as a pure function: no clock, no I/O, no process, no randomness but a seeded one.
//!
//! [`step`] takes what happened and when, and says what to do. The driver performs the actions and feeds back what came of
//! them; tests replay scripts of events. One [`Machine`] follows one child over all its restarts:
//!
//! ```text
//! idle → starting → ready ⇄ unresponsive
//!            │         │         │
//!            ▼         ▼         ▼
//!        stopping(ask → term → kill) → backoff → starting …
//!                        └───────────→ exited
//! ```
//!
//! Invariants, each held by a property test: at most one process is alive; nothing is spawned after `exited`; a kill is
//! only asked for while a process exists; events of an earlier process change nothing; after a tick the next deadline lies
//! in the future; a stop ends within its budgets once the kernel has delivered the exits.
//!
//! A dialect whose children have states of their own (paused, reclaimed) has a machine of its own; it judges ends with the
//! same [`Record`] and listens for the same [`Pulse`].

mod crashes;
mod judge;
mod machine;
mod policy;
mod pulse;
mod stop;
mod time;
mod words;

pub use judge::{End, Record};
pub use machine::{Machine, step};
pub use policy::{Ask, Backoff, Counted, CrashLimit, Heartbeat, Ladder, Policy, PolicyError, Restart, Retry};
pub use pulse::{Beat, Pong, Pulse};
pub use time::Moment;
pub use words::{
    Action, Cause, Change, Ending, Event, Fault, Final, Happening, Incarnation, Next, Phase, PingSeq, Rung,
    SpawnFailure, Trigger,
};
