//! Runs again: the same order as a run of its own, from its beginning, from where a script stood still, or with the answers that it got.

use super::books::refused;
use super::cell::Change;
use super::dispatch::work_for;
use super::entry::{Origin, OriginKind};
use super::id::{Actor, RunId};
use super::recall::{self, Standstill};
use super::request::NewRun;
use super::service::{Runs, RunsError};
use super::state::{Phase, RunState};
use crate::engine::{Millis, Seq};

impl Runs {
    /// The same again as a run of its own; a script from one of its suspensions on (`at` is the number of the record).
    pub(crate) async fn fork(&self, run: &RunId, at: Option<Seq>, by: Actor) -> Result<RunState, RunsError> {
        let Some(at) = at else { return self.go_on(run, None, by).await };
        let from = recall::suspension(&*self.inner.engine, run, at).await?.ok_or_else(|| {
            RunsError::Refused(format!("record {} of the run {run} is no suspension of a script", at.0))
        })?;
        self.go_on(run, Some(from), by).await
    }

    /// The same order as a run of its own, from its beginning or from where its script stood still.
    async fn go_on(&self, run: &RunId, from: Option<Standstill>, by: Actor) -> Result<RunState, RunsError> {
        let request = NewRun { id: None, ..self.request(run).await? };
        let at = from.as_ref().map(|from| from.at);
        let origin = Origin { how: OriginKind::Fork, run: run.clone(), at: at.map(|at| at.0) };
        let from = match from {
            None => None,
            Some(from) => {
                let blob = self.inner.engine.get_blob(&run.log(), &from.suspended.snapshot).await?;
                let gone = || {
                    RunsError::Refused(format!("the snapshot of record {} is not kept any more", from.at.0))
                };
                let blob = blob.ok_or_else(gone)?;
                Some((from, blob))
            }
        };
        self.accept(request, by, Some(origin), from).await
    }

    /// A script again with the answers that it got; nothing is called.
    pub(crate) async fn replay(&self, run: &RunId, by: Actor) -> Result<RunState, RunsError> {
        let state = self.show(run).await?;
        let not = |what: &str| Err(RunsError::Phase { phase: state.phase, what: what.to_owned() });
        if !state.script {
            return not("only a script can be replayed; fork it to do it again");
        }
        if !state.phase.is_over() {
            return not("it can be replayed when it is over");
        }
        if state.origin.as_ref().is_some_and(|origin| origin.at.is_some()) {
            return not("it began in the middle; replay the run that it was forked from");
        }
        let request = NewRun { id: None, ..self.request(run).await? };
        let origin = Origin { how: OriginKind::Replay, run: run.clone(), at: None };
        self.accept(request, by, Some(origin), None).await
    }

    /// A run that waits to be tried again is tried now; one that failed or was cancelled goes on as a run of its own.
    pub(crate) async fn resume(&self, run: &RunId, by: Actor) -> Result<RunState, RunsError> {
        let state = self.show(run).await?;
        match state.phase {
            Phase::Failed | Phase::Cancelled => {
                let from = match state.script {
                    true => recall::last_suspension(&*self.inner.engine, run).await?,
                    false => None,
                };
                self.go_on(run, from, by).await
            }
            Phase::Queued => {
                let cell = self.inner.cells.hold(run);
                let changed = cell.change(|state| {
                    let work = vec![work_for(&state.backend, run, Millis::now())];
                    Ok(Change { entries: Vec::new(), work, out: state.backend.clone() })
                });
                let (state, backend) = changed.await.map_err(|error| refused(run, error))?;
                self.inner.wake(&backend);
                Ok(state)
            }
            phase @ Phase::Waiting => {
                Err(RunsError::Phase { phase, what: "it goes on when somebody answers".to_owned() })
            }
            phase @ Phase::Running => Err(RunsError::Phase { phase, what: "it is under way".to_owned() }),
            phase @ Phase::Completed => Err(RunsError::Phase {
                phase,
                what: "there is nothing left to do; fork it to do it again".to_owned(),
            }),
        }
    }
}
