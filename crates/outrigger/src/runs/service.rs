//! What can be done with runs, by whoever may: the API, the dashboard, the command line.

use std::path::PathBuf;
use std::sync::Arc;

use outrigger_abp::receipt::Check;

use super::approval::{Answer, Approval, ApprovalId};
use super::backend::{Backend, BackendView};
use super::id::{Actor, RunId};
use super::request::{NewRun, RequestError};
use super::state::{Phase, RunState};
use crate::engine::{Begun, Engine, EngineError, Seq};

/// All runs. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Runs {
    inner: Arc<Inner>,
}

struct Inner {
    engine: Arc<dyn Engine>,
}

/// Which runs.
#[derive(Clone, Debug, Default)]
pub(crate) struct ListQuery {
    /// Only those in one of these; none for all.
    pub(crate) phases: Vec<Phase>,
    pub(crate) before: Option<Begun>,
    /// 1 to 200.
    pub(crate) limit: usize,
}

/// A page of runs, the newest first.
#[derive(Clone, Debug)]
pub(crate) struct Page {
    pub(crate) runs: Vec<RunState>,
    /// Where the next page begins, if there is one.
    pub(crate) next: Option<Begun>,
}

/// A record of a run's log.
#[derive(Clone, Debug)]
pub(crate) struct Numbered {
    pub(crate) seq: Seq,
    /// `{"v":1,"at":…,"kind":…,"data":{…}}`
    pub(crate) record: String,
}

/// Why something could not be done with a run.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RunsError {
    #[error("there is no run `{0}`")]
    NoSuchRun(String),
    #[error("the run `{run}` has no approval `{approval}`")]
    NoSuchApproval { run: RunId, approval: String },
    /// Somebody was faster.
    #[error("`{}` was answered already: {} by {} at {}", approval.id.0, approval.given.as_ref().map_or("", |given| given.answer.choice.word()), approval.given.as_ref().map_or("", |given| given.by.0.as_str()), approval.given.as_ref().map_or_else(String::new, |given| given.at.to_string()))]
    Answered { approval: Box<Approval> },
    /// What was said does not go with what was asked.
    #[error("{0}")]
    Refused(String),
    /// The run is not in a state in which that means something.
    #[error("the run is {}: {what}", phase.word())]
    Phase { phase: Phase, what: String },
    #[error(transparent)]
    Request(#[from] RequestError),
    /// More runs wait than may.
    #[error("{queued} runs wait already, and {limit} may; try again later")]
    Full { queued: u64, limit: u64 },
    /// The daemon leaves.
    #[error("the daemon is going down and takes nothing new")]
    Draining,
    #[error(transparent)]
    Engine(#[from] EngineError),
}

impl Runs {
    /// Accepts a run. When this returns it cannot be lost. The same id again is the same run, if it asks for the same.
    pub(crate) async fn submit(&self, new: NewRun, by: Actor) -> Result<RunState, RunsError> {
        unimplemented!()
    }

    pub(crate) async fn list(&self, query: ListQuery) -> Result<Page, RunsError> {
        unimplemented!()
    }

    /// How many runs there are in each phase.
    pub(crate) async fn counts(&self) -> Result<Vec<(Phase, u64)>, RunsError> {
        unimplemented!()
    }

    pub(crate) async fn show(&self, run: &RunId) -> Result<RunState, RunsError> {
        unimplemented!()
    }

    /// What was asked for.
    pub(crate) async fn request(&self, run: &RunId) -> Result<NewRun, RunsError> {
        unimplemented!()
    }

    /// Records after a number, a page of at most `limit` of them (and at most a few megabytes).
    pub(crate) async fn events(
        &self,
        run: &RunId,
        after: Seq,
        limit: usize,
    ) -> Result<Vec<Numbered>, RunsError> {
        unimplemented!()
    }

    /// The records after a number, and those that come.
    pub(crate) async fn follow(&self, run: &RunId, after: Seq) -> Result<Follower, RunsError> {
        unimplemented!()
    }

    /// Runs that changed, from now on: which one, and how long its log is. For lists that are kept alive.
    pub(crate) fn changes(&self) -> tokio::sync::broadcast::Receiver<crate::engine::Changed> {
        self.inner.engine.watch()
    }

    /// What waits for a person, over all runs, the oldest first.
    pub(crate) async fn waiting(&self) -> Result<Vec<(RunState, Approval)>, RunsError> {
        unimplemented!()
    }

    /// Answers what waits, once: whoever comes second is told who was first.
    pub(crate) async fn answer(
        &self,
        run: &RunId,
        approval: &ApprovalId,
        answer: Answer,
        by: Actor,
    ) -> Result<RunState, RunsError> {
        unimplemented!()
    }

    /// Ends a run: soon if it is under way, at once if it waits. Without effect on one that ends already.
    pub(crate) async fn cancel(&self, run: &RunId, why: String, by: Actor) -> Result<RunState, RunsError> {
        unimplemented!()
    }

    /// Says something to the agent of a run.
    pub(crate) async fn steer(&self, run: &RunId, text: String, by: Actor) -> Result<RunState, RunsError> {
        unimplemented!()
    }

    /// The same again as a run of its own; a script from one of its suspensions on (`at` is the number of the record), with
    /// another order if one is given.
    pub(crate) async fn fork(&self, run: &RunId, at: Option<Seq>, by: Actor) -> Result<RunState, RunsError> {
        unimplemented!()
    }

    /// A script again with the answers that it got; nothing is called.
    pub(crate) async fn replay(&self, run: &RunId, by: Actor) -> Result<RunState, RunsError> {
        unimplemented!()
    }

    /// A run that waits to be tried again is tried now; one that failed or was cancelled goes on as a run of its own.
    pub(crate) async fn resume(&self, run: &RunId, by: Actor) -> Result<RunState, RunsError> {
        unimplemented!()
    }

    /// The receipt of a run, and whether it holds.
    pub(crate) async fn receipt(&self, run: &RunId) -> Result<Option<(PathBuf, Check)>, RunsError> {
        unimplemented!()
    }

    /// What changed in the workspace, as a patch.
    pub(crate) async fn patch(&self, run: &RunId) -> Result<Option<Vec<u8>>, RunsError> {
        unimplemented!()
    }

    /// Forgets a run that is over. Its receipt stays.
    pub(crate) async fn forget(&self, run: &RunId) -> Result<(), RunsError> {
        unimplemented!()
    }

    /// The backends, looked at now.
    pub(crate) async fn backends(&self) -> Vec<BackendView> {
        unimplemented!()
    }

    /// The tools that scripts can be given by name, each with a sentence.
    pub(crate) fn tools(&self) -> Vec<(String, String)> {
        unimplemented!()
    }
}

/// Reads a log as it grows.
pub(crate) struct Follower {
    runs: Runs,
    run: RunId,
    after: Seq,
}

impl Follower {
    /// The next records, at least one; none when the run is over and everything was read.
    pub(crate) async fn next(&mut self) -> Result<Option<Vec<Numbered>>, RunsError> {
        unimplemented!()
    }
}
