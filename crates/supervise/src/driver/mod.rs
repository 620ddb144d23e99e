//! The machine with hands: starts processes, reads their streams, keeps the one timer, tells everybody who listens.
//!
//! Each child has one driver task that owns its [`Machine`](crate::state::Machine) and its process. Everything that happens
//! (an exit, a ready line, a request of the owner, a fault that a session found) reaches that task as an event, one after the
//! other, so there is nothing to lock and nothing to race. The owner holds a [`Child`]; a dialect takes a [`Session`] per
//! process from it. Idle children cost memory and descriptors, but no time: no thread, no polling, no timer.

mod child;
mod clock;
mod events;
mod live;
mod pump;
mod run;
mod session;
mod supervisor;

pub(crate) use child::WeakChild;
pub use child::{Child, ChildId, ChildStatus, Outcome};
pub use events::{ChildEvent, Events, Heard};
pub use session::{Opened, Output, Request, Session, SessionHandle};
pub use supervisor::{Settings, Supervisor};
