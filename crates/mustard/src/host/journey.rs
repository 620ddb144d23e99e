//! A run on its way: step, calls, answers, step. Children come and go; what was answered is never asked again.

use std::collections::BTreeMap;
use std::num::{NonZeroU32, NonZeroUsize};
use std::time::Duration;

use outrigger_vm::boundary::Plain;

use super::calling::{Patience, Work};
use super::capability::Capabilities;
use super::journal::Journal;
use super::key::HostKey;
use super::outcome::{RunError, Statistics};
use super::pool::{LendError, Lent, Pool};
use super::script::Script;
use super::sidecar::{Lost, SidecarError};
use super::step::{self, Frame, Snapshot, Step, Way};
use super::store::{CallId, Record, RunId, Ticket, UnixMillis};
use crate::protocol::limits::Limits;
use crate::protocol::request::Answer;

/// How a run is conducted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunRules {
    /// What the script may use.
    pub limits: Limits,
    /// How long a script may compute between two host calls.
    pub step_within: Duration,
    /// How long the run may take altogether, with its calls.
    pub total_within: Duration,
    /// How many handlers of one run may be at work at once.
    pub parallel_calls: NonZeroUsize,
    /// When answers are sent.
    pub fanout: Fanout,
    /// How many children a single step may cost.
    pub attempts: NonZeroU32,
    /// The wait before a step is repeated for the first time; it doubles.
    pub backoff: Duration,
}

impl RunRules {
    /// The sidecar's own limits, ten seconds for a step and an hour for all, 32 calls at once, sent together, 3 children
    /// for a step.
    pub fn usual() -> Self {
        Self {
            limits: Limits::DEFAULTS,
            step_within: Duration::from_secs(10),
            total_within: Duration::from_secs(3600),
            parallel_calls: NonZeroUsize::new(32).unwrap_or(NonZeroUsize::MIN),
            fanout: Fanout::Together,
            attempts: NonZeroU32::new(3).unwrap_or(NonZeroU32::MIN),
            backoff: Duration::from_millis(10),
        }
    }
}

/// When the answers of several calls are sent. With children of version 2 there is only ever one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fanout {
    /// When all are there: the fewest steps, right for `Promise.all`.
    Together,
    /// As they come: the script can go on with the first, right for `Promise.race` and for pipelines.
    AsTheyCome,
}

/// Where a run begins.
#[derive(Debug)]
pub(super) enum Position {
    /// At its beginning.
    Start { script: Script, inputs: Vec<(String, Plain)> },
    /// At its calls.
    At(Snapshot),
}

/// Where a run got to.
#[derive(Debug)]
pub(super) enum Arrival {
    Finished(Plain),
    Parked(Box<Record>, Option<Ticket>),
}

/// A run and where it stands.
#[derive(Debug)]
pub(super) struct Standing {
    pub(super) pool: Pool,
    pub(super) key: HostKey,
    pub(super) run: RunId,
    pub(super) capabilities: Capabilities,
    pub(super) frame: Frame,
    pub(super) rules: RunRules,
    pub(super) journal: Option<Journal>,
    pub(super) position: Position,
    /// How many snapshots there were before this position.
    pub(super) step: u64,
}

/// A run on its way. Dropping it stops it: handlers are cancelled, and a child in the middle of a step is killed.
#[derive(Debug)]
pub(super) struct Journey {
    now: Standing,
    /// Answers that no snapshot has seen yet. They outlive children.
    answers: BTreeMap<CallId, Answer>,
    pub(super) statistics: Statistics,
    work: Work,
    lent: Option<Lent>,
    way: Way,
}

impl Journey {
    pub(super) fn new(from: Standing) -> Self {
        Self {
            answers: BTreeMap::new(),
            statistics: Statistics::NONE,
            work: Work::new(from.rules.parallel_calls),
            lent: None,
            way: Way::Raw,
            now: from,
        }
    }

    /// Goes on to the end, or to where only somebody else can help.
    pub(super) async fn travel(&mut self) -> Result<Arrival, RunError> {
        loop {
            let mut sent = Vec::new();
            if let Position::At(snapshot) = &self.now.position {
                self.work.call_out(
                    snapshot,
                    &self.now.run,
                    &self.now.capabilities,
                    self.now.journal.as_ref(),
                    &mut self.statistics,
                    &self.answers,
                );
                sent = self.gather().await?;
                if sent.is_empty() {
                    return self.park().await;
                }
            }
            match self.step(sent).await? {
                Step::Completed(value) => {
                    self.conclude().await?;
                    return Ok(Arrival::Finished(value));
                }
                Step::Failed(failure) => {
                    self.conclude().await?;
                    return Err(RunError::Script(Box::new(failure.into())));
                }
                Step::Suspended { snapshot, policy } => {
                    self.way = Way::Cached(policy);
                    self.arrive(snapshot).await?;
                }
            }
        }
    }

    /// Cancels the handlers that are at work, as far as they let themselves be cancelled.
    pub(super) fn stop_calling(&mut self) {
        self.work.stop();
    }

    /// The run is over, and so is its journal.
    pub(super) async fn conclude(&mut self) -> Result<(), RunError> {
        match &self.now.journal {
            Some(journal) => Ok(journal.forget().await?),
            None => Ok(()),
        }
    }

    /// Writes down answers that came from outside, and finds those of an earlier life, which come first.
    pub(super) async fn remember(&mut self, given: BTreeMap<CallId, Answer>) -> Result<(), RunError> {
        let Position::At(snapshot) = &self.now.position else { return Ok(()) };
        let waits = |call: &CallId| snapshot.calls.iter().any(|waiting| waiting.call == *call);
        if let Some(call) = given.keys().find(|call| !waits(call)) {
            return Err(RunError::NoSuchCall { call: *call });
        }
        let mut answers = given;
        if let Some(journal) = &self.now.journal {
            // A run that comes from somewhere else has nothing here yet, and an answer without a snapshot is no use.
            if journal.latest().await?.is_none()
                && let Some(record) = self.record()
            {
                journal.checkpoint(record).await?;
            }
            let mut noted = journal.answers().await?;
            noted.retain(|call, _| waits(call));
            self.statistics.remembered += noted.len() as u64;
            for (call, answer) in answers.iter().filter(|(call, _)| !noted.contains_key(call)) {
                journal.answer(*call, answer).await?;
            }
            answers.append(&mut noted);
        }
        self.answers = answers;
        Ok(())
    }

    /// Waits for the answers of calls, as the fan-out says. None means that all that is left was parked.
    async fn gather(&mut self) -> Result<Vec<(CallId, Answer)>, RunError> {
        let Position::At(snapshot) = &self.now.position else { return Ok(Vec::new()) };
        loop {
            let answered =
                snapshot.calls.iter().filter(|waiting| self.answers.contains_key(&waiting.call)).count();
            let parked = snapshot.calls.iter().filter(|waiting| self.work.is_parked(waiting.call)).count();
            let enough = match self.now.rules.fanout {
                Fanout::Together => answered + parked >= snapshot.calls.len(),
                Fanout::AsTheyCome => answered > 0 || parked >= snapshot.calls.len(),
            };
            // What is already there goes along, whoever waited for it.
            let patience = if enough { Patience::Now } else { Patience::Wait };
            match self.work.next(patience).await {
                Some(joined) => self.work.note(joined, &mut self.answers)?,
                None => break,
            }
        }
        let answer = |call: CallId| self.answers.get(&call).map(|answer| (call, answer.clone()));
        Ok(snapshot.calls.iter().filter_map(|waiting| answer(waiting.call)).collect())
    }

    /// Takes one step, in as many children as it takes.
    async fn step(&mut self, sent: Vec<(CallId, Answer)>) -> Result<Step, RunError> {
        let mut attempt = 0;
        loop {
            attempt += 1;
            let lost = match self.attempt(sent.clone()).await {
                Ok(step) => return Ok(step),
                Err(Setback::Lost(lost)) => lost,
                Err(Setback::Final(error)) => return Err(error),
            };
            // What is left of it is not worth keeping.
            self.lent = None;
            self.way = Way::Raw;
            if attempt >= self.now.rules.attempts.get() {
                return Err(RunError::KeepsDying {
                    step: self.now.step,
                    attempts: attempt,
                    last: Box::new(lost),
                });
            }
            self.statistics.repeats += 1;
            let doublings = attempt.saturating_sub(1).min(10);
            tokio::time::sleep(self.now.rules.backoff.saturating_mul(1 << doublings)).await;
        }
    }

    async fn attempt(&mut self, sent: Vec<(CallId, Answer)>) -> Result<Step, Setback> {
        let sidecar = match &mut self.lent {
            Some(sidecar) => sidecar,
            None => {
                let mut sidecar = self.now.pool.lend().await?;
                sidecar.count_run();
                self.statistics.children += 1;
                self.lent.insert(sidecar)
            }
        };
        let stepped = match &self.now.position {
            Position::Start { script, inputs } => step::start(sidecar, script, inputs, &self.now.frame).await,
            Position::At(snapshot) => {
                let last = snapshot.calls.iter().map(|waiting| waiting.call.0).max().unwrap_or(0);
                let next = CallId(last.saturating_add(1));
                step::resume(sidecar, snapshot, sent, next, &self.now.frame, &self.now.key, self.way).await
            }
        };
        stepped.map_err(|error| Setback::from_step(error, self.now.step))
    }

    /// Stands at a new snapshot. It is written down before any of its calls is made.
    async fn arrive(&mut self, snapshot: Snapshot) -> Result<(), RunError> {
        self.statistics.hops += 1;
        self.statistics.largest_snapshot = self.statistics.largest_snapshot.max(snapshot.bytes.len() as u64);
        self.now.step += 1;
        let waits = |call: &CallId| snapshot.calls.iter().any(|waiting| waiting.call == *call);
        self.answers.retain(|call, _| waits(call));
        self.work.retain(waits);
        self.now.position = Position::At(snapshot);
        if let (Some(journal), Some(record)) = (&self.now.journal, self.record()) {
            journal.checkpoint(record).await?;
        }
        Ok(())
    }

    async fn park(&mut self) -> Result<Arrival, RunError> {
        let Some(record) = self.record() else { unreachable!("only a run that waits for calls is parked") };
        let ticket = match &self.now.journal {
            Some(journal) => Some(journal.park(record.clone()).await?),
            None => None,
        };
        Ok(Arrival::Parked(Box::new(record), ticket))
    }

    /// What another host needs to go on from here.
    fn record(&self) -> Option<Record> {
        let Position::At(snapshot) = &self.now.position else { return None };
        Some(Record {
            run: self.now.run.clone(),
            step: self.now.step,
            dialect: self.now.pool.source().dialect(),
            capabilities: self.now.frame.capabilities.clone(),
            limits: self.now.frame.limits,
            calls: snapshot.calls.clone(),
            stored_at: UnixMillis::now(),
            snapshot: snapshot.bytes.clone(),
        })
    }
}

/// Why an attempt at a step failed.
enum Setback {
    /// With its child; another one may do better.
    Lost(Lost),
    /// For good.
    Final(RunError),
}

impl Setback {
    fn from_step(error: SidecarError, step: u64) -> Self {
        match error {
            SidecarError::Lost(lost) => Self::Lost(lost),
            SidecarError::TooLarge { bytes, limit } => Self::Final(RunError::TooLarge { step, bytes, limit }),
            SidecarError::Refused(failure) => Self::Final(RunError::Script(Box::new(failure.into()))),
            error @ SidecarError::Spawn(_) => Self::Final(RunError::NoChild(error.into())),
        }
    }
}

impl From<LendError> for Setback {
    fn from(error: LendError) -> Self {
        match error {
            LendError::Start(SidecarError::Lost(lost)) => Self::Lost(lost),
            other => Self::Final(other.into()),
        }
    }
}
