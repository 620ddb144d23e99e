//! One run as it stands, for everybody in this process who wants to change it: one change at a time, each an append.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::approval::Approval;
use super::entry::{Entry, Line};
use super::id::RunId;
use super::service::Waiting;
use super::state::RunState;
use crate::engine::{Append, AppendError, Engine, EngineError, NewHead, Seq, Work};

/// How often a change is tried again because somebody else was faster.
const TRIES: usize = 16;

/// The runs that somebody holds.
#[derive(Debug)]
pub(super) struct Cells {
    engine: Arc<dyn Engine>,
    held: Mutex<HashMap<RunId, Weak<Cell>>>,
}

/// A run that somebody holds.
#[derive(Debug)]
pub(super) struct Cell {
    run: RunId,
    engine: Arc<dyn Engine>,
    /// Where it stands, if that is known.
    standing: tokio::sync::Mutex<Option<Standing>>,
}

#[derive(Clone, Debug)]
struct Standing {
    seq: Seq,
    state: RunState,
}

/// What somebody wants to happen.
pub(super) struct Change<T> {
    pub(super) entries: Vec<Entry>,
    pub(super) work: Vec<Work>,
    pub(super) out: T,
}

/// Why nothing happened.
#[derive(Debug)]
pub(super) enum ChangeError<E> {
    /// There is no such run.
    NoSuchRun,
    /// Whoever decides does not want it.
    Refused(E),
    Engine(EngineError),
}

impl Cells {
    pub(super) fn new(engine: Arc<dyn Engine>) -> Self {
        Self { engine, held: Mutex::new(HashMap::new()) }
    }

    /// The cell of a run, the same for everybody.
    pub(super) fn hold(&self, run: &RunId) -> Arc<Cell> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(cell) = held.get(run).and_then(Weak::upgrade) {
            return cell;
        }
        // What nobody holds any more is swept now and then, so that this is as large as what is held.
        if held.len() >= 64 && held.len().is_power_of_two() {
            held.retain(|_, cell| cell.strong_count() > 0);
        }
        let engine = Arc::clone(&self.engine);
        let cell = Arc::new(Cell { run: run.clone(), engine, standing: tokio::sync::Mutex::new(None) });
        held.insert(run.clone(), Arc::downgrade(&cell));
        cell
    }
}

impl Cell {
    /// Where the run stands.
    pub(super) async fn state(&self) -> Result<Option<(Seq, RunState)>, EngineError> {
        let mut standing = self.standing.lock().await;
        self.load(&mut standing).await?;
        Ok(standing.as_ref().map(|standing| (standing.seq, standing.state.clone())))
    }

    /// Changes the run as `decide` says, who is asked again if somebody else was faster. Without entries nothing is written but
    /// the work.
    pub(super) async fn change<T, E>(
        &self,
        mut decide: impl FnMut(&RunState) -> Result<Change<T>, E>,
    ) -> Result<(RunState, T), ChangeError<E>> {
        let mut standing = self.standing.lock().await;
        for _ in 0..TRIES {
            self.load(&mut standing).await.map_err(ChangeError::Engine)?;
            let Some(now) = standing.as_mut() else { return Err(ChangeError::NoSuchRun) };
            let Change { entries, work, out } = decide(&now.state).map_err(ChangeError::Refused)?;
            if entries.is_empty() && work.is_empty() {
                return Ok((now.state.clone(), out));
            }
            let mut state = now.state.clone();
            let mut records = Vec::with_capacity(entries.len());
            for entry in entries {
                let line = Line::now(entry);
                state.fold(&line);
                records.push(line.write());
            }
            let head = (!records.is_empty()).then(|| head(&state));
            let append = Append { log: self.run.log(), expected: now.seq, records, head, work };
            match self.engine.append_if(append).await {
                Ok(seq) => {
                    *now = Standing { seq, state };
                    return Ok((now.state.clone(), out));
                }
                Err(AppendError::Conflict { .. }) => *standing = None,
                Err(AppendError::Engine(error)) => {
                    // Nobody knows whether it was written.
                    *standing = None;
                    return Err(ChangeError::Engine(error));
                }
            }
        }
        let why = format!("{TRIES} others were faster");
        Err(ChangeError::Engine(EngineError::Failed {
            what: format!("cannot change the run {}", self.run),
            why,
        }))
    }

    async fn load(&self, standing: &mut Option<Standing>) -> Result<(), EngineError> {
        if standing.is_some() {
            return Ok(());
        }
        let Some(head) = self.engine.head(&self.run.log()).await? else { return Ok(()) };
        *standing = Some(Standing { seq: head.seq, state: read_state(&self.run, &head.body)? });
        Ok(())
    }
}

/// A state as it is kept.
pub(super) fn head(state: &RunState) -> NewHead {
    // Strings, numbers, lists: JSON has them all.
    NewHead { label: state.phase.word().to_owned(), body: serde_json::to_string(state).unwrap_or_default() }
}

/// The state that was kept.
pub(super) fn read_state(run: &RunId, body: &str) -> Result<RunState, EngineError> {
    read(run, body)
}

/// What waits for a person in the state that was kept, without reading the rest of it.
pub(super) fn read_waiting(
    run: &RunId,
    body: &str,
) -> Result<impl Iterator<Item = Waiting> + use<>, EngineError> {
    #[derive(serde::Deserialize)]
    struct Glimpse {
        title: String,
        backend: String,
        approvals: Vec<Approval>,
    }
    let Glimpse { title, backend, approvals } = read(run, body)?;
    let run = run.clone();
    let open = approvals.into_iter().filter(Approval::is_open);
    Ok(open.map(move |approval| Waiting {
        run: run.clone(),
        title: title.clone(),
        backend: backend.clone(),
        approval,
    }))
}

fn read<T: serde::de::DeserializeOwned>(run: &RunId, body: &str) -> Result<T, EngineError> {
    serde_json::from_str(body).map_err(|error| EngineError::Failed {
        what: format!("has a state of the run {run} that cannot be read"),
        why: error.to_string(),
    })
}
