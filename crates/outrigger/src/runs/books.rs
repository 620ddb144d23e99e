//! The books of all runs: what the dispatcher, the deadlines and the doors share.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{Notify, mpsc, watch};

use super::approval::{Answer, Approval, ApprovalId, Choice};
use super::backend::{Control, Order, Receipts, Recorded};
use super::cell::{self, Cells, Change, ChangeError};
use super::cut::LeftBehind;
use super::dispatch::{self, Lane, work_for};
use super::entry::{Accepted, Answered, Entry, Line};
use super::follow::Bells;
use super::id::{Actor, RunId};
use super::parts::Parts;
use super::recall;
use super::request::{NewRun, RequestError};
use super::service::{Complaints, Left, PAGE_BYTES, RunRules, RunsError, receipt_id};
use super::state::{Phase, RunState};
use super::tasks::Tasks;
use crate::config::nearest;
use crate::engine::{Engine, EngineError, Millis, ReadLimit, Seq, Stored};

pub(super) struct Inner {
    pub(super) engine: Arc<dyn Engine>,
    pub(super) cells: Cells,
    pub(super) lanes: BTreeMap<String, Arc<Lane>>,
    pub(super) default_backend: String,
    pub(super) receipts: Receipts,
    pub(super) rules: RunRules,
    pub(super) tools: Vec<(String, String)>,
    pub(super) left: Left,
    pub(super) complaints: Complaints,
    /// Attempts under way.
    pub(super) live: Mutex<HashMap<RunId, mpsc::Sender<Control>>>,
    pub(super) draining: watch::Sender<bool>,
    pub(super) deadlines: Notify,
    pub(super) tasks: Tasks,
    pub(super) bells: Arc<Bells>,
    pub(super) parts: Parts,
}

impl Inner {
    /// Tells whoever looks after the daemon that something is not as it should be.
    pub(super) fn complain(&self, what: impl AsRef<str>) {
        (self.complaints)(what.as_ref());
    }

    pub(super) fn live(&self) -> std::sync::MutexGuard<'_, HashMap<RunId, mpsc::Sender<Control>>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes an attempt reachable until the guard is dropped.
    pub(super) fn enliven(self: &Arc<Self>, run: &RunId, commands: mpsc::Sender<Control>) -> Live {
        self.live().insert(run.clone(), commands);
        Live { inner: Arc::clone(self), run: run.clone() }
    }

    /// Tells an attempt something, if there is one. One that does not listen misses it; what matters is in the log.
    pub(super) fn command(&self, run: &RunId, control: Control) {
        let commands = self.live().get(run).cloned();
        if let Some(commands) = commands
            && let Err(TrySendError::Full(_)) = commands.try_send(control)
        {
            self.complain(format!("the attempt at {run} does not listen"));
        }
    }

    /// There is something in the queue of a backend.
    pub(super) fn wake(&self, backend: &str) {
        if let Some(lane) = self.lanes.get(backend) {
            lane.wake.notify_one();
        }
        self.deadlines.notify_one();
    }

    /// What an attempt that died with an earlier daemon left behind.
    pub(super) fn left_by(&self, state: &RunState) -> Option<LeftBehind> {
        (self.left)(&receipt_id(&state.id, state.attempt))
    }

    /// The order of a run, with what it needs from elsewhere.
    pub(super) async fn order(&self, state: &RunState) -> Result<Order, RunsError> {
        let accepted = self.accepted(&state.id).await?;
        let recorded: Option<Vec<Recorded>> = match &accepted.origin {
            Some(origin) if dispatch::is_replay(state) => {
                Some(recall::recorded(&*self.engine, &origin.run).await?)
            }
            Some(_) | None => None,
        };
        Ok(Order::of(accepted, recorded))
    }

    /// How a run was accepted: its first record.
    pub(super) async fn accepted(&self, run: &RunId) -> Result<Accepted, RunsError> {
        let first = self.engine.read(&run.log(), Seq(0), ReadLimit { records: 1, bytes: PAGE_BYTES }).await?;
        let unreadable = |why: String| {
            RunsError::Engine(EngineError::Failed {
                what: format!("has a first record of the run {run} that cannot be read"),
                why,
            })
        };
        match first.first() {
            None => Err(RunsError::NoSuchRun(run.as_str().to_owned())),
            Some(Stored { record, .. }) => match Line::read(record) {
                Ok(Line { entry: Entry::Accepted(accepted), .. }) => Ok(*accepted),
                Ok(Line { entry, .. }) => Err(unreadable(format!("it is `{}`", entry.kind()))),
                Err(error) => Err(unreadable(error.to_string())),
            },
        }
    }

    pub(super) async fn standing(&self, run: &RunId) -> Result<(Seq, RunState), RunsError> {
        let head = self.engine.head(&run.log()).await?;
        let head = head.ok_or_else(|| RunsError::NoSuchRun(run.as_str().to_owned()))?;
        Ok((head.seq, cell::read_state(run, &head.body)?))
    }

    pub(super) async fn queued(&self) -> Result<u64, RunsError> {
        let labels = self.engine.labels().await?;
        Ok(labels.iter().find(|(label, _)| label == Phase::Queued.word()).map_or(0, |(_, count)| *count))
    }

    /// Who does what is asked for, if everybody who may have to takes it.
    pub(super) fn choose(&self, new: &NewRun) -> Result<String, RunsError> {
        let default = if new.script.is_some() { "mustard" } else { self.default_backend.as_str() };
        let chosen = new.backend.as_deref().unwrap_or(default);
        for (field, name) in [("backend", chosen)]
            .into_iter()
            .chain(new.fallback.iter().map(|name| ("fallback", name.as_str())))
        {
            let Some(lane) = self.lanes.get(name) else {
                let names = || self.lanes.keys().map(String::as_str);
                let hint = match nearest(name, names()) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("there are: {}", names().collect::<Vec<_>>().join(", ")),
                };
                return Err(RequestError::at(field, format!("there is no backend `{name}`; {hint}")).into());
            };
            lane.backend.check(new)?;
        }
        Ok(chosen.to_owned())
    }

    pub(super) async fn answer(
        &self,
        run: &RunId,
        approval: &ApprovalId,
        answer: Answer,
        by: Actor,
    ) -> Result<RunState, RunsError> {
        let cell = self.cells.hold(run);
        let changed = cell.change(|state| {
            let none = || RunsError::NoSuchApproval { run: run.clone(), approval: approval.0.clone() };
            let asked = state.approvals.iter().find(|asked| asked.id == *approval).ok_or_else(none)?;
            if !asked.is_open() {
                return Err(RunsError::Answered { approval: Box::new(asked.clone()) });
            }
            if state.phase.is_over() {
                return Err(RunsError::Phase {
                    phase: state.phase,
                    what: "nothing waits any more".to_owned(),
                });
            }
            fits(asked, &answer)?;
            let answered = Answered { approval: approval.clone(), answer: answer.clone(), by: by.clone() };
            Ok(Change {
                entries: vec![Entry::Answered(answered)],
                work: vec![work_for(&state.backend, run, Millis::now())],
                out: state.backend.clone(),
            })
        });
        let (state, backend) = changed.await.map_err(|error| refused(run, error))?;
        if let Some(asked) = state.approvals.iter().find(|asked| asked.id == *approval) {
            self.command(run, Control::Answered(Box::new(asked.clone())));
        }
        self.wake(&backend);
        Ok(state)
    }
}

/// Whether an answer goes with what was asked.
fn fits(asked: &Approval, answer: &Answer) -> Result<(), RunsError> {
    if !asked.choices.contains(&answer.choice) {
        let words: Vec<&str> = asked.choices.iter().map(|choice| choice.word()).collect();
        let wrong = answer.choice.word();
        let message = format!("`{}` takes {}, not `{wrong}`", asked.id.0, words.join(", "));
        return Err(RequestError::at("choice", message).into());
    }
    let lacks = match answer.choice {
        Choice::Edit if answer.arguments.is_none() => Some(("arguments", "`edit` needs `arguments`")),
        Choice::Answer if answer.value.is_none() => Some(("value", "`answer` needs `value`")),
        Choice::Edit | Choice::Answer | Choice::Approve | Choice::ApproveAlways | Choice::Deny => None,
    };
    match lacks {
        Some((field, lacks)) => Err(RequestError::at(field, lacks).into()),
        None => Ok(()),
    }
}

pub(super) fn refused(run: &RunId, error: ChangeError<RunsError>) -> RunsError {
    match error {
        ChangeError::NoSuchRun => RunsError::NoSuchRun(run.as_str().to_owned()),
        ChangeError::Refused(error) => error,
        ChangeError::Engine(error) => error.into(),
    }
}

/// An attempt that can be reached.
pub(super) struct Live {
    inner: Arc<Inner>,
    run: RunId,
}

impl Drop for Live {
    fn drop(&mut self) {
        self.inner.live().remove(&self.run);
    }
}
