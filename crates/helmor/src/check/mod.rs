//! Does a sidecar keep the contract? Each rule is a named check with its evidence and what to do about it, for anybody's tests.
//!
//! A child is started several times. In one long conversation it is told lines that are wrong in every way, its methods are
//! called, and, where a provider is named or a script is there, turns are run, stopped and crossed. Others show how it ends. No
//! agent is started unless [`Limits::turns`] names one. What hosts depend on (MUST) fails; what they can live with (SHOULD), most
//! of which the original is known to break, warns; what could not be seen is skipped, and says why.
//!
//! A script for the turns has one for each of these prompts:
//!
//! ```json
//! {"turns": [{"when": "check-short", "steps": [{"say": "hello"}]},
//!            {"when": "check-long",  "steps": [{"say": "hello"}, {"hang": true}]}]}
//! ```

mod conversation;
mod life;
mod lines;
mod methods;
mod rules;
mod suite;
mod turns;

pub use outrigger_wire::conformance::{Check, Report, Status};
pub use suite::{Limits, Turns, run};
