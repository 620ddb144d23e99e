//! Events: from the network to the extensions that may hear of them, without ever making the network wait.
//!
//! # Theory of operation
//!
//! The [`Bus`] is the network's ear. For each event it asks every extension's [`Subscription`] whether it hears about that,
//! which is one look at a number. What an extension gets to see depends on what it may do and how long its frames may be; an
//! event is written once for all that see the same. It then goes into the [`Outbox`] of the session: a [`Queue`] that is
//! bounded by count and bytes, keeps the order, lets newer news about a peer replace older ones when it is full, drops the
//! oldest of a class otherwise, and says exactly what was lost. The [`Pump`] brings them to the extension, as many at a time as
//! may be unacknowledged.
//!
//! Events of the extension's own life (`lifecycle.*`) do not come this way:
//! [`Conversation::lifecycle`](super::channel::Conversation::lifecycle) sends them at once.

mod bus;
mod fifo;
mod outbox;
mod pump;
mod queue;
mod shape;
mod subscription;
mod topic;

pub use bus::{Bus, Ledger, NoLedger};
pub use outbox::Outbox;
pub use pump::{Dry, Pump};
pub use queue::{Bounds, Delivery, Event, Loss, Queue, Tally};
pub use shape::MAX_CONTENT_BYTES;
pub use subscription::Subscription;
pub use topic::Topic;
