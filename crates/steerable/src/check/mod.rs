//! Does a sidecar keep the contract? Each rule is a named check with its evidence and what to do about it, for anybody's tests.
//!
//! A child is started several times. In one long conversation it is told lines that are wrong in every way, its methods are
//! called, and its streams are tried against a model server that the checks run themselves on the loopback. Others show how it
//! begins and how it ends. What hosts depend on (MUST) fails; what they can live with (SHOULD) warns; what could not be seen is
//! skipped, and says why.

mod conversation;
mod life;
mod lines;
mod methods;
mod rules;
mod server;
mod streams;
mod suite;

pub use outrigger_wire::conformance::{Check, Report, Status};
pub use suite::{Limits, run};
