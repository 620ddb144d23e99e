//! Agents as runs: a work order to one configured backend (the mock, a sidecar, a process, a coding agent), from its queue to its
//! receipt.
//!
//! [`job`] makes of a run what [`conduct`] takes, [`conversation`] remembers what agents call their sessions, [`onlooker`] tells the run's log what the child does, [`attend`] passes on what
//! people want meanwhile, [`ending`] says what came of it. An attempt lives in its process: it does not outlive the daemon, and what is left
//! of one that was killed with it is sealed by the next daemon and tried again.

pub(super) mod attend;
mod conversation;
mod ending;
pub(super) mod job;
pub(super) mod look;
pub(super) mod memory;
mod onlooker;
mod recover;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::Arc;

use outrigger_abp::conduct;
use outrigger_abp::protocol::PolicyProfile;
use outrigger_supervise::driver::Supervisor;
use tokio::sync::{Notify, mpsc};

pub(crate) use recover::left_behind;

use self::attend::Attendant;
use self::job::Made;
use self::look::Looks;
use self::memory::Memory;
use self::onlooker::Onlooker;
use super::turns::{First, Turns, first_of};
use crate::config;
use crate::engine::BoxFuture;
use crate::runs::backend::Again;
use crate::runs::{Attempt, Backend, BackendView, Concluded, Ended, NewRun, RequestError};

/// How many things an onlooker may say before the attendant has listened.
const NEWS: usize = 256;

/// What all backends of the daemon share.
#[derive(Clone, Debug)]
pub(crate) struct House {
    /// Where programs start whose configuration does not say where.
    pub(crate) here: PathBuf,
    /// Where copies are worked in.
    pub(crate) stages: PathBuf,
    /// Where runs work that name no folder.
    pub(crate) scratch: PathBuf,
    /// What holds for a run that brings no policy; if there is none either, what is usual for the backend.
    pub(crate) policy: Option<PolicyProfile>,
}

/// Does work orders with one configured backend.
pub(crate) struct Orders {
    name: String,
    backend: config::Backend,
    at_once: usize,
    house: House,
    supervisor: Supervisor,
    looks: Looks,
    /// An agent knows one end of a conversation, so that two runs of a thread cannot both go on from it.
    turns: Turns,
}

impl Orders {
    pub(crate) fn new(
        name: impl Into<String>,
        backend: config::Backend,
        at_once: usize,
        house: House,
        supervisor: Supervisor,
    ) -> Self {
        let (name, looks, turns) = (name.into(), Looks::none(), Turns::default());
        Self { name, backend, at_once, house, supervisor, looks, turns }
    }

    async fn perform(&self, attempt: Attempt) -> Concluded {
        let Attempt { run, number, order, state, teller, mut control, receipts } = attempt;
        let _turn = match (&self.backend, &order.request.thread) {
            (config::Backend::Agent(_), Some(thread)) => {
                match first_of(self.turns.take(thread), &mut control).await {
                    First::Come(turn) => Some(turn),
                    First::Cancelled { why } => return Concluded::Ended(Box::new(Ended::cancelled(why))),
                    First::Leaving => return Concluded::Unbegun,
                }
            }
            _ => None,
        };
        let made = job::make(&self.house, &self.name, &self.backend, &run, number, &order.request, receipts);
        let Made { job, scratch, conversation, window } = match made {
            Ok(made) => made,
            Err(why) => return Concluded::Ended(Box::new(Ended::failed("fatal", why, Again::Nobody))),
        };
        let (remote, orders) = conduct::control();
        let (news, heard) = mpsc::channel(NEWS);
        let deaf = Arc::new(Notify::new());
        let mut onlooker =
            Onlooker::new(teller.clone(), news, Arc::clone(&deaf), job.ledger(), Memory::of(&state), window);
        let mut attendant = Attendant::new(number, &job, remote, control, heard, deaf, teller);
        let concluded = {
            let conducted = conduct::conduct(&self.supervisor, job, &mut onlooker, orders);
            tokio::select! {
                concluded = conducted => concluded,
                never = attendant.attend() => match never {},
            }
        };
        if let Some(scratch) = scratch {
            // A folder with something in it stays: nobody else has what the agent made.
            let _ = std::fs::remove_dir(scratch);
        }
        let seen = onlooker.seen();
        if let (Some(conversation), Some(thread), Some(session)) =
            (conversation, &order.request.thread, &seen.session)
            && let Err(error) = conversation.keep(thread, session)
        {
            attendant.say(format!("the next run of this thread will not know of this one: {error}")).await;
        }
        ending::conclude(concluded, seen, state.spent, attendant.leaving())
    }
}

impl Backend for Orders {
    fn name(&self) -> &str {
        &self.name
    }

    fn resumes(&self) -> bool {
        false
    }

    fn check(&self, new: &NewRun) -> Result<(), RequestError> {
        job::check(new)
    }

    fn look(&self) -> BoxFuture<'_, BackendView> {
        Box::pin(async {
            let look = look::look(&self.supervisor, &self.name, &self.backend, &self.house.here);
            let seen = self.looks.last_or(look).await;
            BackendView {
                name: self.name.clone(),
                dialect: look::dialect(&self.backend).to_owned(),
                about: seen.about,
                health: seen.health,
                capabilities: seen.capabilities,
                at_once: self.at_once,
                running: 0,
                queued: 0,
            }
        })
    }

    fn attempt(&self, attempt: Attempt) -> BoxFuture<'_, Concluded> {
        Box::pin(self.perform(attempt))
    }
}
