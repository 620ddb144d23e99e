//! What can happen to a run, as it is written into its log.
//!
//! A record is `{"v":1,"at":"…","kind":"…","data":{…}}`. Readers skip kinds that they do not know; what an agent said is kept byte for byte.

use outrigger_policy::Digest;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::approval::{Answer, Approval, ApprovalId};
use super::id::{Actor, RunId};
use super::request::NewRun;
use super::state::{Moment, Phase, Receipt, Spent};

/// The version of what is written.
const VERSION: u32 = 1;

/// Something that happened.
#[derive(Clone, Debug)]
pub(crate) enum Entry {
    /// It was accepted.
    Accepted(Box<Accepted>),
    /// A backend has begun, or goes on after a rest.
    Started(Started),
    /// The backend reported something: an event of the abp contract.
    Event(Told),
    /// A script stands still at its host calls, and this is it.
    Suspended(Suspended),
    /// Something waits for a person.
    Asked(Approval),
    /// A person said something, or the deadline did.
    Answered(Answered),
    /// Somebody said something to the agent.
    Steered(Steered),
    /// Somebody wants it to end.
    Cancelling(Cancelling),
    /// An attempt ended, and it goes on with another one.
    Attempted(Attempted),
    /// Something that somebody should know.
    Note(Note),
    /// It is over.
    Finished(Finished),
    /// Of a later version.
    Other(String),
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Accepted {
    pub(crate) backend: String,
    pub(crate) request: NewRun,
    pub(crate) by: Actor,
    /// What `Math.random` of a script is seeded with, so that it can be replayed.
    pub(crate) seed: u64,
    /// The clock that a script begins with.
    pub(crate) now_ms: u64,
    /// What it goes on from, if it does not begin at the beginning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) origin: Option<Origin>,
}

/// Where a run comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Origin {
    pub(crate) how: OriginKind,
    pub(crate) run: RunId,
    /// The record of that run that it goes on from: a suspension.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) at: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum OriginKind {
    /// The same order again, or the same script from one of its calls on.
    Fork,
    /// The same script with the answers that it got then; nothing is called.
    Replay,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Started {
    pub(crate) attempt: u32,
    pub(crate) backend: String,
    /// Whether it goes on from where it was.
    pub(crate) resumed: bool,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Told {
    pub(crate) attempt: u32,
    /// Counts the events of an attempt, from 1.
    pub(crate) number: u64,
    pub(crate) event: Box<RawValue>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Suspended {
    pub(crate) attempt: u32,
    /// How many host calls it had stood still at before.
    pub(crate) step: u64,
    /// The sealed snapshot, a blob of the run's log.
    pub(crate) snapshot: Digest,
    pub(crate) snapshot_bytes: u64,
    pub(crate) calls: Vec<Call>,
}

/// A host call that waits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Call {
    pub(crate) id: u64,
    pub(crate) capability: String,
    /// As ordinary JSON, for people.
    pub(crate) args: serde_json::Value,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Answered {
    pub(crate) approval: ApprovalId,
    pub(crate) answer: Answer,
    pub(crate) by: Actor,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Steered {
    pub(crate) text: String,
    pub(crate) by: Actor,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Cancelling {
    pub(crate) why: String,
    pub(crate) by: Actor,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Attempted {
    pub(crate) attempt: u32,
    pub(crate) error: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) receipt: Option<Receipt>,
    /// Who tries next.
    pub(crate) next_backend: String,
    pub(crate) not_before: Moment,
    /// Whether it ended with the daemon, which costs no try.
    #[serde(default)]
    pub(crate) interrupted: bool,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Note {
    pub(crate) text: String,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Finished {
    /// `completed`, `failed` or `cancelled`.
    pub(crate) phase: Phase,
    /// Why, if it did not end well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
    /// How the control plane saw the end, in a word of the contract.
    pub(crate) ending: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) receipt: Option<Receipt>,
    pub(crate) spent: Spent,
    /// What a script gave, as ordinary JSON; the beginning of it is in the state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) value: Option<serde_json::Value>,
    /// The file with what changed in the workspace, beside the receipt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) patch: Option<String>,
}

/// A record: what happened, and when.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub(crate) at: Moment,
    pub(crate) entry: Entry,
}

#[derive(Serialize)]
struct Written<'a, T> {
    v: u32,
    at: &'a Moment,
    kind: &'a str,
    data: &'a T,
}

#[derive(Deserialize)]
struct Read<'a> {
    at: Moment,
    kind: String,
    #[serde(borrow)]
    data: &'a RawValue,
}

impl Line {
    pub(crate) fn now(entry: Entry) -> Self {
        Self { at: Moment::now(), entry }
    }

    /// As it is stored and as it is shown.
    pub(crate) fn write(&self) -> String {
        fn text<T: Serialize>(at: &Moment, kind: &str, data: &T) -> String {
            // Strings, numbers, and maps whose keys are strings: JSON has them all.
            serde_json::to_string(&Written { v: VERSION, at, kind, data }).unwrap_or_default()
        }
        let (at, kind) = (&self.at, self.entry.kind());
        match &self.entry {
            Entry::Accepted(data) => text(at, kind, data),
            Entry::Started(data) => text(at, kind, data),
            Entry::Event(data) => text(at, kind, data),
            Entry::Suspended(data) => text(at, kind, data),
            Entry::Asked(data) => text(at, kind, data),
            Entry::Answered(data) => text(at, kind, data),
            Entry::Steered(data) => text(at, kind, data),
            Entry::Cancelling(data) => text(at, kind, data),
            Entry::Attempted(data) => text(at, kind, data),
            Entry::Note(data) => text(at, kind, data),
            Entry::Finished(data) => text(at, kind, data),
            Entry::Other(kind) => text(at, kind, &()),
        }
    }

    /// Reads a record.
    pub(crate) fn read(text: &str) -> Result<Self, serde_json::Error> {
        fn data<'a, T: Deserialize<'a>>(raw: &'a RawValue) -> Result<T, serde_json::Error> {
            serde_json::from_str(raw.get())
        }
        let Read { at, kind, data: raw } = serde_json::from_str(text)?;
        let entry = match kind.as_str() {
            "accepted" => Entry::Accepted(Box::new(data(raw)?)),
            "started" => Entry::Started(data(raw)?),
            "event" => Entry::Event(data(raw)?),
            "suspended" => Entry::Suspended(data(raw)?),
            "asked" => Entry::Asked(data(raw)?),
            "answered" => Entry::Answered(data(raw)?),
            "steered" => Entry::Steered(data(raw)?),
            "cancelling" => Entry::Cancelling(data(raw)?),
            "attempted" => Entry::Attempted(data(raw)?),
            "note" => Entry::Note(data(raw)?),
            "finished" => Entry::Finished(data(raw)?),
            _ => Entry::Other(kind),
        };
        Ok(Self { at, entry })
    }
}

impl Entry {
    /// The word that is written for it.
    pub(crate) fn kind(&self) -> &str {
        match self {
            Entry::Accepted(_) => "accepted",
            Entry::Started(_) => "started",
            Entry::Event(_) => "event",
            Entry::Suspended(_) => "suspended",
            Entry::Asked(_) => "asked",
            Entry::Answered(_) => "answered",
            Entry::Steered(_) => "steered",
            Entry::Cancelling(_) => "cancelling",
            Entry::Attempted(_) => "attempted",
            Entry::Note(_) => "note",
            Entry::Finished(_) => "finished",
            Entry::Other(kind) => kind,
        }
    }
}
