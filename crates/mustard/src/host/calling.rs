//! Handlers at work: every call of a script is made once, several at a time, and its answer is written down before anybody
//! hears of it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::num::NonZeroUsize;
use std::sync::Arc;

use tokio::sync::Semaphore;
use tokio::task::{Id, JoinError, JoinSet};

use super::capability::{Call, Capabilities, Reply, is_too_deep, too_deep};
use super::journal::Journal;
use super::outcome::{RunError, Statistics};
use super::step::Snapshot;
use super::store::{CallId, PutError, RunId};
use crate::protocol::request::{Answer, HostError};

/// Handlers at work.
#[derive(Debug)]
pub(super) struct Work {
    tasks: JoinSet<Result<Reply, PutError>>,
    calls: HashMap<Id, CallId>,
    /// Calls that have a handler, or had one.
    begun: BTreeSet<CallId>,
    /// Calls whose handler said that somebody else will answer.
    parked: BTreeSet<CallId>,
    seats: Arc<Semaphore>,
}

/// What a handler that is done left.
pub(super) type Joined = Result<(Id, Result<Reply, PutError>), JoinError>;

/// Whether to wait for a handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Patience {
    Wait,
    Now,
}

impl Work {
    pub(super) fn new(parallel_calls: NonZeroUsize) -> Self {
        Self {
            tasks: JoinSet::new(),
            calls: HashMap::new(),
            begun: BTreeSet::new(),
            parked: BTreeSet::new(),
            seats: Arc::new(Semaphore::new(parallel_calls.get().min(Semaphore::MAX_PERMITS))),
        }
    }

    /// Whether the handler of this call said that somebody else will answer.
    pub(super) fn is_parked(&self, call: CallId) -> bool {
        self.parked.contains(&call)
    }

    /// The next handler that is done: the one that comes first, or only one that is done already.
    pub(super) async fn next(&mut self, patience: Patience) -> Option<Joined> {
        match patience {
            Patience::Wait => self.tasks.join_next_with_id().await,
            Patience::Now => self.tasks.try_join_next_with_id(),
        }
    }

    /// Forgets the calls that no longer wait.
    pub(super) fn retain(&mut self, waits: impl Fn(&CallId) -> bool) {
        self.begun.retain(&waits);
        self.parked.retain(&waits);
    }

    /// Cancels what is at work, as far as it lets itself be cancelled.
    pub(super) fn stop(&mut self) {
        self.tasks.abort_all();
    }

    /// Makes every call that was not made yet.
    pub(super) fn call_out(
        &mut self,
        snapshot: &Snapshot,
        run: &RunId,
        capabilities: &Capabilities,
        journal: Option<&Journal>,
        statistics: &mut Statistics,
        answers: &BTreeMap<CallId, Answer>,
    ) {
        for waiting in &snapshot.calls {
            if answers.contains_key(&waiting.call) || !self.begun.insert(waiting.call) {
                continue;
            }
            statistics.calls += 1;
            let call = Call {
                run: run.clone(),
                id: waiting.call,
                capability: waiting.capability.clone(),
                args: waiting.args.clone(),
            };
            let task = make_call(call, capabilities.clone(), journal.cloned(), Arc::clone(&self.seats));
            let id = self.tasks.spawn(task).id();
            self.calls.insert(id, waiting.call);
        }
    }

    /// Keeps what a handler said.
    pub(super) fn note(
        &mut self,
        joined: Joined,
        answers: &mut BTreeMap<CallId, Answer>,
    ) -> Result<(), RunError> {
        let (id, reply) = match joined {
            Ok((id, reply)) => (id, reply?),
            Err(error) => (error.id(), Reply::Error(panicked())),
        };
        // Every task was put into the map when it was spawned.
        let Some(call) = self.calls.remove(&id) else { return Ok(()) };
        match reply {
            Reply::Value(value) => {
                answers.insert(call, Answer::Value(value));
            }
            Reply::Error(error) => {
                answers.insert(call, Answer::Error(error));
            }
            Reply::Park => {
                self.parked.insert(call);
            }
        }
        Ok(())
    }
}

/// One call: a seat, a note that it begins, the handler, a note of the answer. Only then anybody hears of it.
async fn make_call(
    call: Call,
    capabilities: Capabilities,
    journal: Option<Journal>,
    seats: Arc<Semaphore>,
) -> Result<Reply, PutError> {
    // The semaphore is never closed; without a seat the call would only be early.
    let _seat = seats.acquire_owned().await.ok();
    let (id, capability) = (call.id, call.capability.clone());
    if let Some(journal) = &journal {
        journal.begin(id).await?;
    }
    let reply = match capabilities.reply_to(call).await {
        Reply::Value(value) if is_too_deep(&value) => Reply::Error(too_deep(&capability)),
        reply => reply,
    };
    let answer = match &reply {
        Reply::Value(value) => Answer::Value(value.clone()),
        Reply::Error(error) => Answer::Error(error.clone()),
        Reply::Park => return Ok(reply),
    };
    if let Some(journal) = &journal {
        journal.answer(id, &answer).await?;
    }
    Ok(reply)
}

fn panicked() -> HostError {
    HostError {
        name: "Error".to_owned(),
        message: "the host's handler of this call panicked".to_owned(),
        code: Some("handler_panicked".to_owned()),
        details: None,
    }
}
