//! The one shape of everything that can do a run: it is given an attempt, tells what happens, and says how it ended.

use std::sync::Arc;

use outrigger_abp::protocol::AgentEvent;
use outrigger_abp::receipt::{Folder, SigningKey};
use outrigger_policy::Digest;
use serde::Serialize;
use serde_json::value::RawValue;
use tokio::sync::{mpsc, oneshot};

use super::approval::{Approval, Choice, DefaultAnswer};
use super::entry::{Accepted, Entry, Note, Suspended, Told};
use super::id::RunId;
use super::request::{NewRun, RequestError};
use super::state::{Moment, Phase, Receipt, RunState, Spent};
use crate::engine::{BoxFuture, Engine, EngineError};

/// How many commands may wait for a backend.
pub(crate) const COMMANDS: usize = 64;

/// How many entries of a run may wait to be written. A backend that tells more waits.
pub(crate) const UNWRITTEN: usize = 256;

/// Does runs: one implementation a dialect.
pub(crate) trait Backend: Send + Sync + 'static {
    /// What it is called in requests.
    fn name(&self) -> &str;

    /// Whether an attempt that a killed daemon left goes on where it was. If not, it counts as ended and is tried again.
    fn resumes(&self) -> bool;

    /// Whether it takes this; what is wrong with it otherwise.
    fn check(&self, new: &NewRun) -> Result<(), RequestError>;

    /// What it can do and how it is, looked at now.
    fn look(&self) -> BoxFuture<'_, BackendView>;

    /// Does it. Dropping the future ends everything that it started.
    fn attempt(&self, attempt: Attempt) -> BoxFuture<'_, Concluded>;
}

/// One attempt at a run.
pub(crate) struct Attempt {
    pub(crate) run: RunId,
    /// Counts from 1.
    pub(crate) number: u32,
    pub(crate) order: Order,
    /// What was known when it was given out. A script finds here where it stands, and what was answered.
    pub(crate) state: RunState,
    pub(crate) teller: Teller,
    /// What is wanted of it meanwhile. Closed when the daemon leaves without a word.
    pub(crate) control: mpsc::Receiver<Control>,
    pub(crate) receipts: Receipts,
}

/// What is to be done, as it was accepted.
#[derive(Clone, Debug)]
pub(crate) struct Order {
    pub(crate) request: NewRun,
    pub(crate) seed: u64,
    pub(crate) now_ms: u64,
    /// For a replay: the answers to give, by the number of the call.
    pub(crate) recorded: Option<Vec<Recorded>>,
}

/// A host call of an earlier run and what it got.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Recorded {
    pub(crate) call: u64,
    pub(crate) capability: String,
    pub(crate) args: serde_json::Value,
    pub(crate) outcome: Result<serde_json::Value, serde_json::Value>,
}

/// What can be wanted of an attempt under way.
#[derive(Clone, Debug)]
pub(crate) enum Control {
    /// End soon, with a receipt.
    Cancel { why: String },
    /// Somebody says this to the agent.
    Steer { text: String },
    /// This was answered.
    Answered(Box<Approval>),
    /// The daemon leaves: stand still if you can, else end as you like; it is tried again later.
    Drain,
}

/// Where receipts are put, and who signs them.
#[derive(Clone)]
pub(crate) struct Receipts {
    pub(crate) folder: Arc<Folder>,
    /// Nobody if there is none.
    pub(crate) sign: Option<SigningKey>,
}

/// How an attempt ended.
#[derive(Debug)]
pub(crate) enum Concluded {
    /// It is over.
    Ended(Box<Ended>),
    /// Nothing goes on before an approval is answered; nothing is held meanwhile.
    AtRest,
    /// It stands still because the daemon leaves, and goes on (or is tried again) under the next one.
    Drained,
    /// The daemon leaves, and nothing was done yet.
    Unbegun,
}

/// How an attempt ended for good.
#[derive(Debug)]
pub(crate) struct Ended {
    /// `Completed`, `Failed` or `Cancelled`.
    pub(crate) phase: Phase,
    pub(crate) error: Option<String>,
    /// A word of the contract: `final`, `fatal`, `cancelled`, `budget`, `policy`, `timeout`, `stalled`, `exited`, `protocol`.
    pub(crate) ending: String,
    pub(crate) receipt: Option<Receipt>,
    pub(crate) value: Option<serde_json::Value>,
    pub(crate) patch: Option<String>,
    /// Whether another attempt could do better.
    pub(crate) again: Again,
    /// What was counted at the end, if that is better than what the events say.
    pub(crate) spent: Option<Spent>,
}

/// Whether another attempt could do better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Again {
    /// The same backend could.
    Same,
    /// Only another one could.
    Other,
    /// Nobody could.
    Nobody,
}

/// A backend as it is shown.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct BackendView {
    pub(crate) name: String,
    /// `mustard`, `abp`, `helmor`, `steerable`.
    pub(crate) dialect: String,
    /// In a sentence.
    pub(crate) about: String,
    pub(crate) health: Health,
    /// What it can do: names of the contract and how well (`native`, `emulated`, …).
    pub(crate) capabilities: std::collections::BTreeMap<String, String>,
    /// Runs it may do at once, and does.
    pub(crate) at_once: usize,
    pub(crate) running: usize,
    pub(crate) queued: u64,
}

/// How a backend is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case", tag = "state")]
pub(crate) enum Health {
    /// It can take runs.
    Ready,
    /// It is not here, and what to do about it.
    Missing { why: String },
    /// It was tried and failed.
    Failing { why: String },
}

/// What an attempt says what happens with. Cheap to clone; everything is written in the order in which it was told.
#[derive(Clone, Debug)]
pub(crate) struct Teller {
    run: RunId,
    attempt: u32,
    entries: mpsc::Sender<Telling>,
    engine: Arc<dyn Engine>,
}

/// What is on its way into the log.
#[derive(Debug)]
pub(crate) enum Telling {
    /// An event of the contract; its number is given when it is written.
    Event(Box<RawValue>),
    Entry(Box<Entry>),
    /// Something for a person; the answer is what was written.
    Ask(Box<NewApproval>, oneshot::Sender<Approval>),
    /// Everything before this is written.
    Flush(oneshot::Sender<()>),
}

/// Something that a person has to say something to.
#[derive(Clone, Debug)]
pub(crate) struct NewApproval {
    pub(crate) key: String,
    pub(crate) tool: String,
    /// JSON text.
    pub(crate) input: String,
    pub(crate) input_sha256: Digest,
    pub(crate) reason: String,
    pub(crate) choices: Vec<Choice>,
    pub(crate) deadline: Option<Moment>,
    pub(crate) default: DefaultAnswer,
}

/// The log cannot be written any more, so that the attempt is over: somebody else has the run, or the store failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the run cannot be written down any more")]
pub(crate) struct NotHeard;

impl Teller {
    pub(crate) fn new(run: RunId, attempt: u32, engine: Arc<dyn Engine>) -> (Self, mpsc::Receiver<Telling>) {
        let (entries, telling) = mpsc::channel(UNWRITTEN);
        (Self { run, attempt, entries, engine }, telling)
    }

    /// An event of the contract.
    pub(crate) async fn event(&self, event: &AgentEvent<'_>) -> Result<(), NotHeard> {
        let mut text = Vec::new();
        event.write(&mut text);
        self.raw_event(String::from_utf8(text).unwrap_or_default()).await
    }

    /// The same as the text of an event.
    pub(crate) async fn raw_event(&self, text: String) -> Result<(), NotHeard> {
        let event = RawValue::from_string(text).map_err(|_| NotHeard)?;
        self.entries.send(Telling::Event(event)).await.map_err(|_| NotHeard)
    }

    /// The same from code that cannot wait as a task does: the thread waits if the log is slow.
    pub(crate) fn raw_event_blocking(&self, text: String) -> Result<(), NotHeard> {
        let event = RawValue::from_string(text).map_err(|_| NotHeard)?;
        self.send_blocking(Telling::Event(event))
    }

    /// Something that somebody should know.
    pub(crate) fn note_blocking(&self, text: impl Into<String>) -> Result<(), NotHeard> {
        self.send_blocking(Telling::Entry(Box::new(Entry::Note(Note { text: text.into() }))))
    }

    fn send_blocking(&self, telling: Telling) -> Result<(), NotHeard> {
        match self.entries.try_send(telling) {
            Ok(()) => Ok(()),
            Err(mpsc::error::TrySendError::Closed(_)) => Err(NotHeard),
            Err(mpsc::error::TrySendError::Full(telling)) => {
                tokio::task::block_in_place(|| self.entries.blocking_send(telling)).map_err(|_| NotHeard)
            }
        }
    }

    /// Something that somebody should know.
    pub(crate) async fn note(&self, text: impl Into<String>) -> Result<(), NotHeard> {
        self.entry(Entry::Note(Note { text: text.into() })).await
    }

    /// A script stands still here. The snapshot must have been kept before.
    pub(crate) async fn suspended(&self, suspended: Suspended) -> Result<(), NotHeard> {
        self.entry(Entry::Suspended(suspended)).await?;
        self.flush().await
    }

    async fn entry(&self, entry: Entry) -> Result<(), NotHeard> {
        self.entries.send(Telling::Entry(Box::new(entry))).await.map_err(|_| NotHeard)
    }

    /// Asks a person. When this returns it is written down.
    pub(crate) async fn ask(&self, new: NewApproval) -> Result<Approval, NotHeard> {
        let (written, is_written) = oneshot::channel();
        self.entries.send(Telling::Ask(Box::new(new), written)).await.map_err(|_| NotHeard)?;
        is_written.await.map_err(|_| NotHeard)
    }

    /// The same from code that cannot wait; the approval comes through the channel.
    pub(crate) fn ask_blocking(&self, new: NewApproval) -> Result<oneshot::Receiver<Approval>, NotHeard> {
        let (written, is_written) = oneshot::channel();
        self.send_blocking(Telling::Ask(Box::new(new), written))?;
        Ok(is_written)
    }

    /// Waits until everything that was told is written down.
    pub(crate) async fn flush(&self) -> Result<(), NotHeard> {
        let (written, is_written) = oneshot::channel();
        self.entries.send(Telling::Flush(written)).await.map_err(|_| NotHeard)?;
        is_written.await.map_err(|_| NotHeard)
    }

    /// Keeps bytes with the run.
    pub(crate) async fn keep(&self, bytes: Vec<u8>) -> Result<Digest, EngineError> {
        self.engine.put_blob(&self.run.log(), bytes).await
    }

    /// Bytes that were kept with the run.
    pub(crate) async fn kept(&self, digest: &Digest) -> Result<Option<Vec<u8>>, EngineError> {
        self.engine.get_blob(&self.run.log(), digest).await
    }

    /// Reads the run's own log, page by page: what was told is there after a [`Teller::flush`].
    pub(crate) async fn read(
        &self,
        after: crate::engine::Seq,
        limit: crate::engine::ReadLimit,
    ) -> Result<Vec<crate::engine::Stored>, EngineError> {
        self.engine.read(&self.run.log(), after, limit).await
    }

    pub(crate) fn attempt(&self) -> u32 {
        self.attempt
    }
}

impl Order {
    pub(crate) fn of(accepted: Accepted, recorded: Option<Vec<Recorded>>) -> Self {
        let Accepted { request, seed, now_ms, .. } = accepted;
        Self { request, seed, now_ms, recorded }
    }
}

impl Ended {
    /// It did not end well, and nothing was left behind.
    pub(crate) fn failed(ending: &str, error: impl Into<String>, again: Again) -> Self {
        Self::without_trace(Phase::Failed, ending, error.into(), again)
    }

    /// It was cancelled before anything was done.
    pub(crate) fn cancelled(why: String) -> Self {
        Self::without_trace(Phase::Cancelled, "cancelled", why, Again::Nobody)
    }

    fn without_trace(phase: Phase, ending: &str, error: String, again: Again) -> Self {
        Self {
            phase,
            error: Some(error),
            ending: ending.to_owned(),
            receipt: None,
            value: None,
            patch: None,
            again,
            spent: None,
        }
    }
}

/// An event as it is written under its number.
pub(crate) fn told(attempt: u32, number: u64, event: Box<RawValue>) -> Entry {
    Entry::Event(Told { attempt, number, event })
}
