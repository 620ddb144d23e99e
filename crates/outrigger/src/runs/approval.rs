//! What waits for a person, and what a person can say.

use outrigger_policy::Digest;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::id::Actor;
use super::state::Moment;

/// Which approval of a run: `a1`, `a2`, …
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) struct ApprovalId(pub(crate) String);

/// Something that waits for a person, or did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Approval {
    pub(crate) id: ApprovalId,
    /// In which attempt it was asked.
    pub(crate) attempt: u32,
    /// The backend's own name for it: the call of a script, the id in a ledger. With `input_sha256` and `tool` it tells whether a later attempt asks the same.
    pub(crate) key: String,
    /// What wants to be called, or `question`.
    pub(crate) tool: String,
    /// What it would be given, as JSON text; the beginning of it when it is long. A question has its form here.
    pub(crate) input: String,
    pub(crate) input_sha256: Digest,
    /// Why somebody is asked.
    pub(crate) reason: String,
    /// What can be said.
    pub(crate) choices: Vec<Choice>,
    pub(crate) asked_at: Moment,
    /// When the default is taken.
    pub(crate) deadline: Option<Moment>,
    pub(crate) default: DefaultAnswer,
    /// What was said.
    pub(crate) given: Option<Given>,
}

/// What can be said to an approval.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Choice {
    /// Let it happen.
    Approve,
    /// And every later call of the same tool in this run.
    ApproveAlways,
    /// Let it happen with other arguments.
    Edit,
    /// Do not call it; this is its result.
    Answer,
    /// Do not.
    Deny,
}

/// An answer as it is given.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Answer {
    /// Which of the choices.
    pub(crate) choice: Choice,
    /// With `edit`: the arguments instead. For a script: an array.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) arguments: Option<Value>,
    /// With `answer`: the result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) value: Option<Value>,
    /// In words; with `deny` the run is told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
}

/// What is taken when nobody answers in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum DefaultAnswer {
    Approve,
    Deny,
}

/// An answer that was given.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Given {
    pub(crate) answer: Answer,
    pub(crate) by: Actor,
    pub(crate) at: Moment,
}

impl Approval {
    pub(crate) fn is_open(&self) -> bool {
        self.given.is_none()
    }
}

impl Choice {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Choice::Approve => "approve",
            Choice::ApproveAlways => "approve_always",
            Choice::Edit => "edit",
            Choice::Answer => "answer",
            Choice::Deny => "deny",
        }
    }
}

impl Answer {
    /// A bare choice.
    pub(crate) fn plain(choice: Choice) -> Self {
        Self { choice, arguments: None, value: None, reason: None }
    }
}
