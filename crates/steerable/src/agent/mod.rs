//! An agent's turn: model, tools, model, until there is an answer.
//!
//! # Theory of operation
//!
//! [`run`] takes a [`Turn`] (what the host wants) and a [`World`] (what there is to work with), speaks to an [`Output`], asks a
//! [`HostPort`], and comes back with [`Ended`]. Inside, two things are kept apart. `course` decides what comes next and does
//! nothing: every surprise (a budget, a steer, an overflow, an answer that does not fit its schema) is a method of it, tested as a
//! sequence of events. `run` with its steps `speak` (the model), `act` (tools) and `shorten` (compaction) does what `course` says.
//!
//! Three rules hold everywhere:
//!
//! * **First the transcript, then the world.** A message is shown to the model, and told to the host, after it was stored.
//!   So a turn that is cut anywhere can be resumed, and nobody was told what is then not there.
//! * **A call has a result.** Whatever stops a turn, the calls that were not made are answered, because a provider refuses a
//!   transcript in which they are not.
//! * **Judged before it is spent.** A budget, a consent, a schema stands before the model call or the tool, never behind it.

mod act;
mod approve;
mod compact;
mod consent;
mod course;
mod dispatch;
mod history;
mod output;
mod patience;
mod port;
mod question;
mod repeat;
mod round;
mod run;
mod shorten;
mod speak;
mod stage;
mod structured;
mod suggest;
mod trace;
mod turn;

pub use consent::Consents;
pub use output::{Budget, Exhausted, Notice, Output};
pub use port::{ApprovalAsk, Decision, HostGone, HostPort, Verdict};
pub use run::run;
pub use turn::{
    Approval, Budgets, ContentMode, Ended, History, Model, Questions, Routing, Status, Steer, SteerMode,
    Turn, World,
};
