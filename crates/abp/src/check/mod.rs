//! Does a sidecar keep the contract? Each rule is a named check with its evidence, for anybody's tests.
//!
//! A child is started several times. Each conversation shows something else: a usual run and a second one, a cancel, input that
//! is closed right after `run`, and lines that it cannot know. What the contract demands (MUST) fails; what it advises
//! (SHOULD) warns; what could not be seen is skipped, and says why.

mod conversation;
mod report;
mod seen;
mod suite;

pub use outrigger_wire::conformance::{Check, Report, Status};
pub use suite::{Limits, run};
