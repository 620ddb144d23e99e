//! What can be done with runs, by whoever may: the API, the dashboard, the command line.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::{Notify, broadcast, watch};

use super::approval::{Answer, Approval, ApprovalId, DefaultAnswer};
use super::backend::{BackendView, Control, Receipts};
use super::books::{Inner, refused};
use super::cell::{self, Cells, Change};
use super::cut::LeftBehind;
use super::deadlines;
use super::dispatch::{self, Lane, work_for};
use super::entry::{Cancelling, Entry, Steered};
use super::follow::{Bells, Follower};
use super::id::{Actor, RunId};
use super::parts::Parts;
use super::recall;
use super::request::{NewRun, RequestError};
use super::state::{Phase, RunState};
use super::tasks::Tasks;
use crate::engine::{Begun, Changed, Engine, EngineError, HeadQuery, Millis, ReadLimit, Seq, Stored};

/// The most of a log that is read at once.
pub(super) const PAGE_BYTES: usize = 4 << 20;

/// The longest page of runs.
pub(crate) const MAX_PAGE: usize = 200;

/// The most that is said to an agent at once.
const MAX_STEER: usize = 64 * 1024;

/// All runs. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Runs {
    pub(super) inner: Arc<Inner>,
}

/// What runs are made of.
pub(crate) struct RunsOptions {
    pub(crate) engine: Arc<dyn Engine>,
    pub(crate) lanes: Vec<Lane>,
    /// Who does a task for which nobody was named.
    pub(crate) default_backend: String,
    pub(crate) receipts: Receipts,
    pub(crate) rules: RunRules,
    /// The tools that scripts can be given by name.
    pub(crate) tools: Vec<(String, String)>,
    /// What attempts that died with an earlier daemon left, by the id of their receipt.
    pub(crate) left: Left,
    /// Where complaints go.
    pub(crate) complaints: Complaints,
}

/// Finds what an attempt left, by the id of its receipt.
pub(crate) type Left = Box<dyn Fn(&str) -> Option<LeftBehind> + Send + Sync>;

/// Hears what is not as it should be.
pub(crate) type Complaints = Box<dyn Fn(&str) + Send + Sync>;

/// What is decided once for all runs.
#[derive(Clone, Debug)]
pub(crate) struct RunRules {
    /// Runs that may wait for their backends.
    pub(crate) queued: u64,
    /// How often a run is tried again that does not say so itself.
    pub(crate) retries: u32,
    /// How long people have, if the run does not say so; none for ever.
    pub(crate) approve_within: Option<Duration>,
    pub(crate) approve_default: DefaultAnswer,
    /// How long and how many of the runs that are over are kept.
    pub(crate) keep_for: Duration,
    pub(crate) keep_at_most: usize,
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

/// What waits for a person.
#[derive(Clone, Debug)]
pub(crate) struct Waiting {
    pub(crate) run: RunId,
    /// The run's title, and who does it.
    pub(crate) title: String,
    pub(crate) backend: String,
    pub(crate) approval: Approval,
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
    /// A file that should be there, whole.
    #[error("the {what} cannot be read: {why}")]
    Unreadable { what: &'static str, why: String },
    #[error(transparent)]
    Engine(#[from] EngineError),
}

impl Runs {
    /// Opens the books. Nothing is done before [`Runs::work`].
    pub(crate) fn open(options: RunsOptions) -> Self {
        let RunsOptions { engine, lanes, default_backend, receipts, rules, tools, left, complaints } =
            options;
        let lanes = lanes.into_iter().map(|lane| (lane.backend.name().to_owned(), Arc::new(lane))).collect();
        let inner = Inner {
            cells: Cells::new(Arc::clone(&engine)),
            bells: Bells::over(engine.watch()),
            parts: Parts::default(),
            engine,
            lanes,
            default_backend,
            receipts,
            rules,
            tools,
            left,
            complaints,
            live: Mutex::new(HashMap::new()),
            draining: watch::Sender::new(false),
            deadlines: Notify::new(),
            tasks: Tasks::new(),
        };
        Self { inner: Arc::new(inner) }
    }

    /// Gives queued runs to backends until [`Runs::drain`].
    pub(crate) fn work(&self) {
        for lane in self.inner.lanes.values() {
            self.inner.tasks.spawn(dispatch::attend(Arc::clone(&self.inner), Arc::clone(lane)));
        }
        self.inner.tasks.spawn(deadlines::keep(Arc::clone(&self.inner)));
    }

    /// Takes nothing new, lets what is under way stand still or end, and returns when nothing is under way any more, or when the
    /// patience is at its end.
    pub(crate) async fn drain(&self, patience: Duration) {
        self.inner.draining.send_replace(true);
        let live: Vec<RunId> = self.inner.live().keys().cloned().collect();
        for run in live {
            self.inner.command(&run, Control::Drain);
        }
        self.inner.tasks.finish(patience).await;
    }

    /// Whether it takes nothing new any more.
    pub(crate) fn is_draining(&self) -> bool {
        *self.inner.draining.borrow()
    }

    pub(crate) async fn list(&self, query: ListQuery) -> Result<Page, RunsError> {
        let limit = query.limit.clamp(1, MAX_PAGE);
        let labels = query.phases.iter().map(|phase| phase.word().to_owned()).collect();
        // One more than fits says whether there is another page.
        let query = HeadQuery { labels, before: query.before, limit: limit + 1 };
        let mut heads = self.inner.engine.heads(query).await?;
        let more = heads.len() > limit;
        heads.truncate(limit);
        let next = heads.last().filter(|_| more).map(|head| head.begun);
        let mut runs = Vec::with_capacity(heads.len());
        for head in &heads {
            if let Some(run) = RunId::of_log(&head.log) {
                runs.push(cell::read_state(&run, &head.body)?);
            }
        }
        Ok(Page { runs, next })
    }

    /// How many runs there are in each phase.
    pub(crate) async fn counts(&self) -> Result<Vec<(Phase, u64)>, RunsError> {
        let labels = self.inner.engine.labels().await?;
        let count = |phase: Phase| {
            labels.iter().find(|(label, _)| label == phase.word()).map_or(0, |(_, count)| *count)
        };
        Ok(Phase::ALL.into_iter().map(|phase| (phase, count(phase))).collect())
    }

    pub(crate) async fn show(&self, run: &RunId) -> Result<RunState, RunsError> {
        self.inner.standing(run).await.map(|(_, state)| state)
    }

    /// What was asked for.
    pub(crate) async fn request(&self, run: &RunId) -> Result<NewRun, RunsError> {
        Ok(self.inner.accepted(run).await?.request)
    }

    /// Records after a number, a page of at most `limit` of them (and at most a few megabytes).
    pub(crate) async fn events(
        &self,
        run: &RunId,
        after: Seq,
        limit: usize,
    ) -> Result<Vec<Numbered>, RunsError> {
        let limit = ReadLimit { records: limit.max(1), bytes: PAGE_BYTES };
        let stored = self.inner.engine.read(&run.log(), after, limit).await?;
        if stored.is_empty() {
            // An empty page of a run that is there is different from a run that is not.
            self.inner.standing(run).await?;
        }
        Ok(stored.into_iter().map(Numbered::from).collect())
    }

    /// The records after a number, and those that come.
    pub(crate) async fn follow(&self, run: &RunId, after: Seq) -> Result<Follower, RunsError> {
        // Listened for before it is looked at, so that nothing is missed in between.
        let bell = self.inner.bells.listen(run);
        self.inner.standing(run).await?;
        Ok(Follower::new(self.clone(), run.clone(), after, bell))
    }

    /// Runs that changed, from now on: which one, and how long its log is. For lists that are kept alive.
    pub(crate) fn changes(&self) -> broadcast::Receiver<Changed> {
        self.inner.engine.watch()
    }

    /// What waits for a person, over all runs, the oldest first.
    pub(crate) async fn waiting(&self) -> Result<Vec<Waiting>, RunsError> {
        let (mut waiting, mut before) = (Vec::new(), None);
        loop {
            let labels = vec![Phase::Waiting.word().to_owned()];
            let heads = self.inner.engine.heads(HeadQuery { labels, before, limit: MAX_PAGE }).await?;
            for head in &heads {
                if let Some(run) = RunId::of_log(&head.log) {
                    waiting.extend(cell::read_waiting(&run, &head.body)?);
                }
            }
            before = heads.last().map(|head| head.begun);
            if heads.len() < MAX_PAGE {
                break;
            }
        }
        waiting.sort_by_key(|waiting| waiting.approval.asked_at);
        Ok(waiting)
    }

    /// What was asked in full; the state has the beginning of what is long.
    pub(crate) async fn approval(&self, run: &RunId, approval: &ApprovalId) -> Result<Approval, RunsError> {
        let state = self.show(run).await?;
        let none = || RunsError::NoSuchApproval { run: run.clone(), approval: approval.0.clone() };
        let short = state.approvals.into_iter().find(|asked| asked.id == *approval).ok_or_else(none)?;
        let full = recall::asked(&*self.inner.engine, run, approval).await?;
        Ok(full.map_or_else(|| short.clone(), |full| Approval { given: short.given.clone(), ..full }))
    }

    /// Answers what waits, once: whoever comes second is told who was first.
    pub(crate) async fn answer(
        &self,
        run: &RunId,
        approval: &ApprovalId,
        answer: Answer,
        by: Actor,
    ) -> Result<RunState, RunsError> {
        self.inner.answer(run, approval, answer, by).await
    }

    /// Ends a run: soon if it is under way, at once if it waits. Without effect on one that ends already.
    pub(crate) async fn cancel(&self, run: &RunId, why: String, by: Actor) -> Result<RunState, RunsError> {
        let inner = &self.inner;
        let is_live = inner.live().contains_key(run);
        let cell = inner.cells.hold(run);
        let changed = cell.change(|state| {
            if state.phase.is_over() {
                return Err(RunsError::Phase {
                    phase: state.phase,
                    what: "there is nothing to cancel".to_owned(),
                });
            }
            let mut change = Change { entries: Vec::new(), work: Vec::new(), out: state.backend.clone() };
            if state.cancelling.is_some() {
                return Ok(change);
            }
            change.entries.push(Entry::Cancelling(Cancelling { why: why.clone(), by: by.clone() }));
            let resumes = inner.lanes.get(&state.backend).is_some_and(|lane| lane.backend.resumes());
            if !is_live && (state.attempt == 0 || !resumes) {
                change.entries.push(dispatch::cancelled(state, &why));
            } else {
                change.work.push(work_for(&state.backend, run, Millis::now()));
            }
            Ok(change)
        });
        let (state, backend) = changed.await.map_err(|error| refused(run, error))?;
        inner.command(run, Control::Cancel { why });
        inner.wake(&backend);
        Ok(state)
    }

    /// Says something to the agent of a run.
    pub(crate) async fn steer(&self, run: &RunId, text: String, by: Actor) -> Result<RunState, RunsError> {
        let inner = &self.inner;
        if text.trim().is_empty() || text.len() > MAX_STEER {
            let message =
                format!("`text` has {} bytes; it may have 1 to {MAX_STEER}, not only blanks", text.len());
            return Err(RequestError::at("text", message).into());
        }
        let cell = inner.cells.hold(run);
        let changed = cell.change(|state| {
            let what = match (state.phase.is_over(), state.script, inner.live().contains_key(run)) {
                (true, _, _) => "it is over, and nobody listens",
                (false, true, _) => "a script takes no words; answer its calls instead",
                (false, false, false) => "nobody is at work on it, so nobody listens",
                (false, false, true) => {
                    let steered = Steered { text: text.clone(), by: by.clone() };
                    return Ok(Change { entries: vec![Entry::Steered(steered)], work: Vec::new(), out: () });
                }
            };
            Err(RunsError::Phase { phase: state.phase, what: what.to_owned() })
        });
        let (state, ()) = changed.await.map_err(|error| refused(run, error))?;
        inner.command(run, Control::Steer { text });
        Ok(state)
    }

    /// The backends, looked at now.
    pub(crate) async fn backends(&self) -> Vec<BackendView> {
        // A store that cannot be read complains elsewhere; the backends are shown all the same.
        let queued = self.queued_by_backend().await.unwrap_or_default();
        let look = |lane: &Arc<Lane>| {
            let (lane, queued) = (Arc::clone(lane), queued.get(lane.backend.name()).copied().unwrap_or(0));
            async move {
                let running = lane.running.load(Ordering::Relaxed);
                BackendView { at_once: lane.at_once, running, queued, ..lane.backend.look().await }
            }
        };
        futures_util::future::join_all(self.inner.lanes.values().map(look)).await
    }

    async fn queued_by_backend(&self) -> Result<HashMap<String, u64>, RunsError> {
        let (mut queued, mut before) = (HashMap::new(), None);
        loop {
            let query = ListQuery { phases: vec![Phase::Queued], before, limit: MAX_PAGE };
            let page = self.list(query).await?;
            for run in page.runs {
                *queued.entry(run.backend).or_default() += 1;
            }
            before = page.next;
            if before.is_none() {
                return Ok(queued);
            }
        }
    }

    /// The tools that scripts can be given by name, each with a sentence.
    pub(crate) fn tools(&self) -> Vec<(String, String)> {
        self.inner.tools.clone()
    }
}

/// The id of the receipt of an attempt: the run's own for the first one.
pub(crate) fn receipt_id(run: &RunId, attempt: u32) -> String {
    if attempt <= 1 { run.as_str().to_owned() } else { format!("{run}-{attempt}") }
}

impl From<Stored> for Numbered {
    fn from(stored: Stored) -> Self {
        Self { seq: stored.seq, record: stored.record }
    }
}
