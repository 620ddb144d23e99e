//! One attempt at a script: step, calls, answers, step, until it is done, at rest, or somebody wants it to end.

mod answer;
mod tell;

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::future::Future;
use std::time::Duration;

use outrigger_abp::protocol::{AgentEvent, BackendIdentity, EventKind, Outcome as How, Usage, WorkOrder};
use outrigger_abp::receipt::Ending;
use outrigger_mustard::host::store::{CallId, Record};
use outrigger_mustard::host::{Capabilities, Ending as Stepped, Host, Run, TopLevelReturn};
use outrigger_policy::{Digest, Policy};
use serde_json::Map;
use tokio::sync::mpsc;
use tokio::task::{Id, JoinSet};

use self::answer::{Gathered, Making};
use super::end::End;
use super::journal::{Journal, ReadError, Told};
use super::outcome::{HostCall, Outcome};
use super::{NAME, Scripts, manifest, rules};
use crate::backends::seal::{Sealing, seal};
use crate::backends::tools::{Said, Tools, plain};
use crate::engine::EngineError;
use crate::runs::backend::{Again, NotHeard};
use crate::runs::entry::Suspended;
use crate::runs::{Attempt, Concluded, Control, Ended, Order, Phase, Receipts, RunId, Teller};

/// How long tools that were begun have when the daemon leaves.
const DRAIN: Duration = Duration::from_secs(5);

/// The name that snapshots are sealed under: the same for every run, so that a fork can go on with a copy.
const SEALED_AS: &str = "run";

/// An attempt under way.
pub(super) struct Course<'a> {
    host: &'a Host,
    tools: &'a Tools,
    /// What no script may do.
    house: &'a Policy,
    run: RunId,
    order: Order,
    /// What the receipt says was ordered.
    work_order: WorkOrder,
    /// What this one may not do.
    policy: Policy,
    teller: Teller,
    control: mpsc::Receiver<Control>,
    receipts: Receipts,
    journal: Journal,
    /// How many suspensions there were before this one.
    step: u64,
    /// The calls of the snapshot that the script stands at.
    waiting: BTreeMap<u64, HostCall>,
    /// Those of them that are to be made, in their order.
    queue: VecDeque<Making>,
    /// Those of them that are queued or being made.
    busy: BTreeSet<u64>,
    tasks: JoinSet<Said>,
    /// Which task makes which call.
    makers: HashMap<Id, u64>,
    /// What the script has not heard yet.
    answers: BTreeMap<u64, Outcome>,
}

/// Why a course is not continued.
enum Stop {
    /// The script ended, or was ended.
    End(Box<End>),
    /// The daemon leaves.
    Drain,
    /// Nothing can be written down any more; somebody else goes on with what was.
    Silence,
}

impl From<End> for Stop {
    fn from(end: End) -> Self {
        Self::End(Box::new(end))
    }
}

impl From<NotHeard> for Stop {
    fn from(NotHeard: NotHeard) -> Self {
        Self::Silence
    }
}

impl From<EngineError> for Stop {
    fn from(_: EngineError) -> Self {
        Self::Silence
    }
}

impl From<ReadError> for Stop {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Engine(error) => error.into(),
            ReadError::Record(_) => End::failed(Ending::Fatal, error.to_string()).into(),
        }
    }
}

impl<'a> Course<'a> {
    /// Makes an attempt.
    pub(super) async fn run(scripts: &'a Scripts, attempt: Attempt) -> Concluded {
        let Scripts { host, tools, house } = scripts;
        let Attempt { run, number: _, order, state, teller, control, receipts } = attempt;
        let script = order.request.script.clone().unwrap_or_default();
        let prepared = order.request.work_order(run.as_str()).map_err(|error| error.to_string());
        let compiled = prepared.and_then(|work_order| {
            let policy = work_order.policy.compile().map_err(|error| error.to_string())?;
            // The receipt vouches for the script, which is what was to be done.
            Ok((WorkOrder { task: script, ..work_order }, policy))
        });
        let (work_order, policy) = match compiled {
            Ok(compiled) => compiled,
            Err(why) => {
                let ended = Ended::failed("fatal", why, Again::Nobody);
                return Concluded::Ended(Box::new(ended));
            }
        };
        let mut course = Self {
            host,
            tools,
            house,
            run,
            order,
            work_order,
            policy,
            teller,
            control,
            receipts,
            journal: Journal::default(),
            step: 0,
            waiting: BTreeMap::new(),
            queue: VecDeque::new(),
            busy: BTreeSet::new(),
            tasks: JoinSet::new(),
            makers: HashMap::new(),
            answers: BTreeMap::new(),
        };
        let started = if state.attempt_events > 0 { Told::Yes } else { Told::No };
        match course.travel(state.suspended, started).await {
            Ok(()) => Concluded::AtRest,
            Err(Stop::End(end)) => course.conclude(*end).await,
            Err(Stop::Drain) => course.drain().await,
            Err(Stop::Silence) => Concluded::Drained,
        }
    }

    /// Goes from where it stands to where only people can help.
    async fn travel(&mut self, suspended: Option<Suspended>, started: Told) -> Result<(), Stop> {
        if suspended.is_some() || started == Told::Yes {
            let waiting =
                suspended.iter().flat_map(|suspended| &suspended.calls).map(|call| call.id).collect();
            self.journal = Journal::read(&self.teller, &waiting).await?;
            // A daemon that died while the end was written down had seen it already.
            if let Some(end) = self.journal.end.clone() {
                return Err(end.into());
            }
        }
        if started == Told::No {
            let message = "the script begins".into();
            self.teller.event(&AgentEvent::now(EventKind::RunStarted { message })).await?;
        }
        let mut record = match suspended {
            Some(suspended) => {
                let record = self.take_up(&suspended).await?;
                self.stand(&record)?;
                record
            }
            None => {
                let run = self.begin().await?;
                self.advance(run).await?
            }
        };
        loop {
            match self.gather().await? {
                Gathered::Rest => return Ok(()),
                Gathered::Answers => {
                    let run = self.go_on(record)?;
                    record = self.advance(run).await?;
                }
            }
        }
    }

    /// The script from its beginning.
    async fn begin(&mut self) -> Result<Run, Stop> {
        let (host, source) = (self.host.clone(), self.work_order.task.clone());
        let compiled = self.while_hearing(async move { host.compile(source, TopLevelReturn::Allowed).await });
        let script = compiled.await?.map_err(|error| End::not_compiled(&error))?;
        let request = &self.order.request;
        let table = request.tools.keys().fold(Capabilities::none(), |table, name| table.park(name));
        let mut run = self.host.run(&script).capabilities(table).rules(rules(&request.limits));
        run = run.seed(self.order.seed).now_ms(self.order.now_ms as f64);
        for (name, value) in &request.inputs {
            run = run.input(name, plain(value));
        }
        Ok(run)
    }

    /// The snapshot that an earlier life left.
    async fn take_up(&mut self, suspended: &Suspended) -> Result<Record, Stop> {
        let lost = |why: String| End::failed(Ending::Fatal, format!("the script cannot go on: {why}"));
        let bytes = self.teller.kept(&suspended.snapshot).await?;
        let bytes = bytes.ok_or_else(|| lost("its snapshot is not there".to_owned()))?;
        let opened = Record::from_sealed(self.host.key(), SEALED_AS, &bytes);
        Ok(opened.map_err(|error| lost(error.to_string()))?)
    }

    /// The script from where it stands, with the answers that there are.
    fn go_on(&mut self, record: Record) -> Result<Run, Stop> {
        let refused = |error: &dyn std::error::Error| End::failed(Ending::Fatal, error.to_string());
        let run = self.host.continue_record(record).map_err(|error| refused(&error))?;
        let mut run = run.rules(rules(&self.order.request.limits)).now_ms(self.order.now_ms as f64);
        for (call, outcome) in std::mem::take(&mut self.answers) {
            run = run.answer(CallId(call), outcome.reply());
        }
        Ok(run)
    }

    /// Takes a step, and writes down where it led to before anything is done about it.
    async fn advance(&mut self, run: Run) -> Result<Record, Stop> {
        let stepped = self.while_hearing(run.go()).await?;
        let record = match stepped.map_err(|failed| End::of_run(&failed.why))? {
            Stepped::Finished(finished) => return Err(End::completed(&finished.value).into()),
            Stepped::Parked(parked) => parked.record,
        };
        self.stand(&record)?;
        let sealed = record.to_sealed(self.host.key(), SEALED_AS);
        let snapshot_bytes = sealed.len() as u64;
        let snapshot = self.teller.keep(sealed).await?;
        let calls = self.waiting.values().map(HostCall::shown).collect();
        let attempt = self.teller.attempt();
        self.teller
            .suspended(Suspended { attempt, step: record.step, snapshot, snapshot_bytes, calls })
            .await?;
        Ok(record)
    }

    /// Stands at the calls of a snapshot. Those that waited before go on as they were.
    fn stand(&mut self, record: &Record) -> Result<(), Stop> {
        let mut before = std::mem::take(&mut self.waiting);
        for waiting in &record.calls {
            let id = waiting.call.0;
            let call = before.remove(&id).unwrap_or_else(|| HostCall::of(waiting));
            self.waiting.insert(id, call);
        }
        self.step = record.step;
        let waiting = &self.waiting;
        self.journal.retain(|call| waiting.contains_key(&call));
        match self.order.request.limits.host_calls {
            Some(limit) if waiting.keys().any(|call| *call > limit) => Err(End::too_many_calls(limit).into()),
            Some(_) | None => Ok(()),
        }
    }

    /// Waits for something while it listens to what is wanted.
    async fn while_hearing<T>(&mut self, work: impl Future<Output = T>) -> Result<T, Stop> {
        let mut work = std::pin::pin!(work);
        loop {
            tokio::select! {
                biased;
                control = self.control.recv() => self.hear(control).await?,
                done = &mut work => return Ok(done),
            }
        }
    }

    async fn hear(&mut self, control: Option<Control>) -> Result<(), Stop> {
        match control {
            None | Some(Control::Drain) => Err(Stop::Drain),
            Some(Control::Cancel { why }) => Err(End::cancelled(&why).into()),
            Some(Control::Steer { text: _ }) => Ok(self.teller.note("scripts take no steering").await?),
            Some(Control::Answered(approval)) => {
                if let Some(given) = approval.given.clone() {
                    self.journal.give(&approval.id, given);
                }
                Ok(())
            }
        }
    }

    /// The daemon leaves: what was begun has a moment to end, and its results are not lost.
    async fn drain(mut self) -> Concluded {
        let until = tokio::time::Instant::now() + DRAIN;
        while let Ok(Some(joined)) = tokio::time::timeout_at(until, self.tasks.join_next_with_id()).await {
            if self.settle(joined).await.is_err() {
                break;
            }
        }
        // If it cannot be written down, the next daemon finds what is.
        let _ = self.teller.flush().await;
        Concluded::Drained
    }

    /// It is over: what is still open is closed, the end is told, and the log is sealed.
    async fn conclude(mut self, end: End) -> Concluded {
        if self.journal.end.is_none() && self.tell_end(&end).await.is_err() {
            return Concluded::Drained;
        }
        let script = &self.work_order.task;
        let mut account = Map::new();
        account.insert("script_sha256".to_owned(), Digest::of(script.as_bytes()).to_string().into());
        account.insert("seed".to_owned(), self.order.seed.into());
        let sealing = Sealing {
            run: self.run,
            attempt: self.teller.attempt(),
            order: self.work_order,
            backend: BackendIdentity {
                id: NAME.to_owned(),
                backend_version: Some(env!("CARGO_PKG_VERSION").to_owned()),
                adapter_version: None,
            },
            capabilities: manifest(),
            ending: end.ending.clone(),
            error: end.error.clone(),
            outcome: match end.phase {
                Phase::Completed => How::Complete,
                Phase::Queued | Phase::Running | Phase::Waiting | Phase::Failed | Phase::Cancelled => {
                    How::Failed
                }
            },
            usage: Usage::default(),
            account,
        };
        let receipt = match seal(&self.teller, &self.receipts, sealing).await {
            Ok(receipt) => Some(receipt),
            Err(error) => {
                // The run is over all the same; that it has no receipt is for everybody to read.
                let _ = self.teller.note(format!("there is no receipt: {error}")).await;
                None
            }
        };
        Concluded::Ended(Box::new(Ended {
            phase: end.phase,
            error: end.error,
            ending: end.ending.as_str().to_owned(),
            receipt,
            value: end.value,
            patch: None,
            again: end.again,
            spent: None,
        }))
    }
}
