//! New runs: what was left open is filled in, and what is accepted is written down before anybody hears of it.

use super::backend::told;
use super::cell;
use super::dispatch::work_for;
use super::entry::{Accepted, Entry, Line, Origin, OriginKind, Started, Suspended};
use super::id::{Actor, RunId};
use super::recall::Standstill;
use super::request::{ApprovalTerms, NewRun, RequestError};
use super::service::{Runs, RunsError};
use super::state::RunState;
use crate::engine::{Append, AppendError, EngineError, Millis, Seq};

impl Runs {
    /// Accepts a run. When this returns it cannot be lost. The same id again is the same run, if it asks for the same.
    pub(crate) async fn submit(&self, new: NewRun, by: Actor) -> Result<RunState, RunsError> {
        self.accept(new, by, None, None).await
    }

    pub(super) async fn accept(
        &self,
        mut new: NewRun,
        by: Actor,
        origin: Option<Origin>,
        from: Option<(Standstill, Vec<u8>)>,
    ) -> Result<RunState, RunsError> {
        let inner = &self.inner;
        if let Some(id) = &new.id
            && let Ok(run) = RunId::parse(id)
            && let Some(state) = self.asked_before(&run, &new).await?
        {
            return Ok(state);
        }
        if self.is_draining() {
            return Err(RunsError::Draining);
        }
        let backend = inner.choose(&new)?;
        new.retries.get_or_insert(inner.rules.retries);
        if new.approvals.is_none() {
            new.approvals = Some(ApprovalTerms {
                within: inner.rules.approve_within.map(|within| format!("{}s", within.as_secs())),
                default: inner.rules.approve_default,
            });
        }
        let random = |error| {
            RunsError::Engine(EngineError::Failed {
                what: "cannot name a run".to_owned(),
                why: format!("the system has no randomness to give: {error}"),
            })
        };
        let run = match &new.id {
            Some(id) => RunId::parse(id).map_err(|error| RequestError::at("id", error.to_string()))?,
            None => RunId::random().map_err(random)?,
        };
        let queued = inner.queued().await?;
        if queued >= inner.rules.queued {
            return Err(RunsError::Full { queued, limit: inner.rules.queued });
        }
        let mut seed = [0u8; 8];
        getrandom::fill(&mut seed).map_err(random)?;
        let now = Millis::now();
        // Of 53 bits, so that it can be shown and given again as a number of JavaScript.
        let (seed, now_ms) = (u64::from_le_bytes(seed) >> 11, now.0);
        let (seed, now_ms) = match &origin {
            Some(Origin { how: OriginKind::Replay, run, .. }) => {
                let first = inner.accepted(run).await?;
                (first.seed, first.now_ms)
            }
            Some(Origin { how: OriginKind::Fork, .. }) | None => (seed, now_ms),
        };
        let accepted = Accepted { backend: backend.clone(), request: new.clone(), by, seed, now_ms, origin };
        let mut lines = vec![Line::now(Entry::Accepted(Box::new(accepted)))];
        if let Some((Standstill { suspended, since, .. }, blob)) = from {
            inner.engine.put_blob(&run.log(), blob).await?;
            let started = Started { attempt: 1, backend: backend.clone(), resumed: true };
            lines.push(Line::now(Entry::Started(started)));
            lines.push(Line::now(Entry::Suspended(Suspended { attempt: 1, ..suspended })));
            lines.extend((1..).zip(since).map(|(number, event)| Line::now(told(1, number, event))));
        }
        let mut state = RunState::begin(run.clone(), &lines[0])
            .ok_or_else(|| RunsError::Refused("the run cannot be begun".to_owned()))?;
        for line in &lines[1..] {
            state.fold(line);
        }
        let append = Append {
            log: run.log(),
            expected: Seq(0),
            records: lines.iter().map(Line::write).collect(),
            head: Some(cell::head(&state)),
            work: vec![work_for(&backend, &run, now)],
        };
        match inner.engine.append_if(append).await {
            Ok(_) => {
                inner.wake(&backend);
                Ok(state)
            }
            Err(AppendError::Conflict { .. }) => {
                let before = self.asked_before(&run, &new).await?;
                before.ok_or_else(|| RunsError::NoSuchRun(run.to_string()))
            }
            Err(AppendError::Engine(error)) => Err(error.into()),
        }
    }

    /// The run of this id, if there is one and it was asked for the same.
    async fn asked_before(&self, run: &RunId, new: &NewRun) -> Result<Option<RunState>, RunsError> {
        let first = match self.inner.accepted(run).await {
            Ok(accepted) => accepted.request,
            Err(RunsError::NoSuchRun(_)) => return Ok(None),
            Err(error) => return Err(error),
        };
        // What was left open was filled in when it was accepted, perhaps by rules that are others now.
        let mut again = new.clone();
        again.retries = again.retries.or(first.retries);
        again.approvals = again.approvals.or_else(|| first.approvals.clone());
        if again != first {
            let message = format!("there is a run `{run}` already, and it asks for something else");
            return Err(RunsError::Refused(message));
        }
        self.show(run).await.map(Some)
    }
}
