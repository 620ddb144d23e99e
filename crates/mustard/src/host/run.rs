//! A run as its owner describes it: what it gets, what it may use, where it is written down.

use std::collections::BTreeMap;
use std::sync::Arc;

use outrigger_vm::boundary::Plain;
use tokio::sync::watch;

use super::Host;
use super::capability::{Capabilities, Reply, is_too_deep};
use super::journal::{Interrupted, Journal};
use super::journey::{Arrival, Journey, Position, RunRules, Standing};
use super::outcome::{Ending, Failed, Finished, Parked, RunError, Statistics};
use super::script::Script;
use super::step::{Frame, Snapshot};
use super::store::{CallId, HoldError, Record, RunId, Store, StoreError};
use crate::protocol::ids::SnapshotId;
use crate::protocol::request::Answer;

/// A run that has not begun. [`Run::go`] begins it; dropping that future stops it.
#[derive(Debug)]
pub struct Run {
    host: Host,
    id: RunId,
    from: From,
    capabilities: Capabilities,
    revoked: Vec<String>,
    rules: RunRules,
    seed: Option<u64>,
    now_ms: Option<f64>,
    answers: BTreeMap<CallId, Reply>,
    store: Option<Arc<dyn Store>>,
    journal: Option<Journal>,
    interrupted: Interrupted,
    cancel: watch::Sender<Cancel>,
}

#[derive(Debug)]
enum From {
    Script { script: Script, inputs: Vec<(String, Plain)> },
    Record(Box<Record>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cancel {
    No,
    Yes,
}

/// Stops a run from elsewhere. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Canceller(watch::Sender<Cancel>);

impl Canceller {
    /// Stops the run: its handlers are dropped, a child that computes is killed.
    pub fn cancel(&self) {
        self.0.send_replace(Cancel::Yes);
    }
}

impl Run {
    pub(super) fn of_script(host: Host, id: RunId, script: Script) -> Self {
        Self::new(host, id, From::Script { script, inputs: Vec::new() }, RunRules::usual())
    }

    pub(super) fn of_record(host: Host, record: Record, journal: Option<Journal>) -> Self {
        let rules = RunRules { limits: record.limits, ..RunRules::usual() };
        let run = Self::new(host, record.run.clone(), From::Record(Box::new(record)), rules);
        Self { journal, ..run }
    }

    fn new(host: Host, id: RunId, from: From, rules: RunRules) -> Self {
        Self {
            host,
            id,
            from,
            capabilities: Capabilities::none(),
            revoked: Vec::new(),
            rules,
            seed: None,
            now_ms: None,
            answers: BTreeMap::new(),
            store: None,
            journal: None,
            interrupted: Interrupted::CallAgain,
            cancel: watch::Sender::new(Cancel::No),
        }
    }

    /// Which run it is: the same in the store, in every handler, and after every restart.
    pub fn id(&self) -> &RunId {
        &self.id
    }

    /// The calls that wait, if it is continued.
    pub fn waiting(&self) -> &[super::store::Waiting] {
        match &self.from {
            From::Script { .. } => &[],
            From::Record(record) => &record.calls,
        }
    }

    /// Gives the script a global variable. Without effect on a run that is continued: it has begun long ago.
    #[must_use]
    pub fn input(mut self, name: impl Into<String>, value: Plain) -> Self {
        if let From::Script { inputs, .. } = &mut self.from {
            inputs.push((name.into(), value));
        }
        self
    }

    /// What it may call. A run that is continued keeps the names it was given; those that are not in the table park it.
    #[must_use]
    pub fn capabilities(mut self, capabilities: Capabilities) -> Self {
        self.capabilities = capabilities;
        self
    }

    /// Takes a name away from a run that is continued. If its script still holds it, the sidecar refuses to go on.
    #[must_use]
    pub fn revoke(mut self, name: impl Into<String>) -> Self {
        self.revoked.push(name.into());
        self
    }

    /// How it is conducted, limits included. A run that is continued keeps its limits unless these are given.
    #[must_use]
    pub fn rules(mut self, rules: RunRules) -> Self {
        self.rules = rules;
        self
    }

    /// What `Math.random` is seeded with. Children of version 2 cannot.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// What the clock says, in milliseconds since 1970. Children of version 2 cannot.
    #[must_use]
    pub fn now_ms(mut self, now_ms: f64) -> Self {
        self.now_ms = Some(now_ms);
        self
    }

    /// Answers a call that waits, in the place of its handler.
    #[must_use]
    pub fn answer(mut self, call: CallId, reply: impl Into<Reply>) -> Self {
        self.answers.insert(call, reply.into());
        self
    }

    /// Writes the run down as it goes, so that it survives this host; and parks it there.
    #[must_use]
    pub fn store(mut self, store: Arc<dyn Store>) -> Self {
        self.store = Some(store);
        self
    }

    /// What to do with a call that an earlier host had begun when it died.
    #[must_use]
    pub fn interrupted(mut self, interrupted: Interrupted) -> Self {
        self.interrupted = interrupted;
        self
    }

    /// A way to stop it.
    pub fn canceller(&self) -> Canceller {
        Canceller(self.cancel.clone())
    }

    /// Runs it to its end, or until only somebody else can help.
    ///
    /// A run that was cancelled, or whose script failed, is over. One that failed for another reason, and has a store, can
    /// be recovered from there.
    ///
    /// # Errors
    ///
    /// With the reason and what it took.
    pub async fn go(self) -> Result<Ending, Failed> {
        let id = self.id.clone();
        let failed = |why, statistics| Failed { run: id, why, statistics };
        let (total, mut cancelled) = (self.rules.total_within, self.cancel.subscribe());
        let begun = self.begin().await;
        let (mut journey, answers) = match begun {
            Ok(begun) => begun,
            Err(why) => return Err(failed(why, Statistics::NONE)),
        };
        let travelled = tokio::select! {
            biased;
            Ok(_) = cancelled.wait_for(|cancel| *cancel == Cancel::Yes) => Err(RunError::Cancelled),
            () = tokio::time::sleep(total) => Err(RunError::Deadline { within: total }),
            travelled = travel(&mut journey, answers) => travelled,
        };
        let statistics = journey.statistics;
        match travelled {
            Ok(Arrival::Finished(value)) => Ok(Ending::Finished(Finished { value, statistics })),
            Ok(Arrival::Parked(record, ticket)) => {
                Ok(Ending::Parked(Box::new(Parked { record: *record, ticket, statistics })))
            }
            Err(RunError::Cancelled) => {
                journey.stop_calling();
                let why = journey.conclude().await.err().unwrap_or(RunError::Cancelled);
                Err(failed(why, statistics))
            }
            Err(why) => Err(failed(why, statistics)),
        }
    }

    async fn begin(self) -> Result<(Journey, BTreeMap<CallId, Answer>), RunError> {
        if let Some(what) = self.what_is_too_deep() {
            return Err(RunError::TooDeep { what });
        }
        let Self { host, id, from, capabilities, revoked, rules, seed, now_ms, answers, .. } = self;
        let journal = match (self.journal, self.store) {
            (Some(journal), _) => Some(journal),
            (None, Some(store)) => {
                Some(Journal::open(store, id.clone(), self.interrupted).await.map_err(held)?)
            }
            (None, None) => None,
        };
        let journal = journal.map(|journal| journal.with(self.interrupted));
        let (position, step, mut names) = match from {
            From::Script { script, inputs } => (Position::Start { script, inputs }, 0, capabilities.names()),
            From::Record(record) => {
                let Record { step, calls, snapshot: bytes, capabilities, .. } = *record;
                let snapshot = Snapshot { id: SnapshotId::of(&bytes), bytes, calls };
                (Position::At(snapshot), step, capabilities)
            }
        };
        names.retain(|name| !revoked.contains(name));
        let frame =
            Frame { capabilities: names, limits: rules.limits, seed, now_ms, within: rules.step_within };
        let answer = |(call, reply)| match reply {
            Reply::Value(value) => Some((call, Answer::Value(value))),
            Reply::Error(error) => Some((call, Answer::Error(error))),
            Reply::Park => None,
        };
        let answers = answers.into_iter().filter_map(answer).collect();
        let (pool, key) = (host.pool().clone(), host.key().clone());
        let standing = Standing { pool, key, run: id, capabilities, frame, rules, journal, position, step };
        Ok((Journey::new(standing), answers))
    }
}

impl Run {
    fn what_is_too_deep(&self) -> Option<String> {
        let given = self.answers.iter().find_map(|(call, reply)| match reply {
            Reply::Value(value) if is_too_deep(value) => Some(format!("the answer to call {call}")),
            Reply::Value(_) | Reply::Error(_) | Reply::Park => None,
        });
        let From::Script { inputs, .. } = &self.from else { return given };
        let input = inputs.iter().find(|(_, value)| is_too_deep(value));
        given.or_else(|| input.map(|(name, _)| format!("the input `{name}`")))
    }
}

async fn travel(journey: &mut Journey, answers: BTreeMap<CallId, Answer>) -> Result<Arrival, RunError> {
    journey.remember(answers).await?;
    journey.travel().await
}

/// A new run has an id that nobody else has, so that it can only be held by itself.
fn held(error: HoldError) -> RunError {
    match error {
        HoldError::Store(error) => error.into(),
        HoldError::Held { run } => {
            StoreError::Tampered { name: run.to_string(), why: "it is held although it is new" }.into()
        }
    }
}
