//! Runs: what was asked for, what happened, what waits for a person, how it ended. Each is an event log in the engine.
//!
//! # Theory of operation
//!
//! A run begins with an [`entry::Entry::Accepted`] in its log, together with work in the queue of its backend: from then on it cannot be
//! lost. The *dispatcher* claims work as backends have room, and gives each [`Backend`] an [`Attempt`]. What the backend tells becomes entries; what entries fold to is the
//! [`RunState`], which is the head of the log. Every change of a run, by whomever, is an append under the expected length, so that two clicks are one click.
//!
//! A backend ends an attempt with a verdict: ended (with a receipt), or *at rest*: nothing goes on before somebody answers, and nothing of
//! it is in memory or in a process. An answer to an approval of a run at rest queues it again. A daemon that is killed leaves claims behind;
//! the next one claims the same work and the backend takes up what the log says.

mod accept;
mod again;
pub(crate) mod approval;
pub(crate) mod backend;
mod books;
mod cell;
mod cut;
mod deadlines;
pub(crate) mod dispatch;
pub(crate) mod entry;
mod follow;
pub(crate) mod id;
mod kept;
mod parts;
mod recall;
pub(crate) mod request;
mod scribe;
pub(crate) mod service;
pub(crate) mod state;
mod tasks;
#[cfg(test)]
mod tests;

pub(crate) use approval::{Answer, Approval, ApprovalId, Choice, DefaultAnswer, Given};
pub(crate) use backend::{
    Attempt, Backend, BackendView, Concluded, Control, Ended, Health, Order, Receipts, Teller,
};
pub(crate) use cut::{LeftBehind, LeftEnd};
pub(crate) use entry::Line;
pub(crate) use follow::Follower;
pub(crate) use id::{Actor, RunId};
pub(crate) use parts::Part;
pub(crate) use request::{NewRun, RequestError};
pub(crate) use service::{ListQuery, Numbered, RunRules, Runs, RunsError, RunsOptions, Waiting, receipt_id};
pub(crate) use state::{Phase, RunState};
