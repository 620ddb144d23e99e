//! Questions to a person: what was asked, until when, and who answered what.

mod ledger;
mod line;

use std::fmt;

use outrigger_policy::{Digest, canonical};
use serde::{Deserialize, Serialize};

pub use ledger::{AnswerError, Ledger, LedgerError, MAX_OPEN, MAX_REQUESTS};
pub use line::MAX_LINE_BYTES;

use super::reach::MAX_INPUT_BYTES;
use crate::protocol::{RunId, Timestamp};

/// How much of an input is kept for showing, in bytes.
pub const MAX_SHOWN_INPUT: usize = 16 * 1024;

/// The longest text of any other member that is kept, in bytes: names, reasons, who answered.
pub const MAX_SHOWN_TEXT: usize = 1024;

/// The name of one request, unique in the folder of its run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ApprovalId(String);

impl ApprovalId {
    /// The text of an id as somebody typed it.
    #[must_use]
    pub fn new(text: impl Into<String>) -> ApprovalId {
        ApprovalId(text.into())
    }

    /// The `number`th request of `run`: short enough to be typed, and unlikely to be another run's.
    #[must_use]
    pub fn numbered(run: &RunId, number: usize) -> ApprovalId {
        let letters = run.as_str().chars().filter(char::is_ascii_alphanumeric);
        let run: String = letters.take(8).collect();
        ApprovalId(format!("{run}-{number}"))
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ApprovalId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What a person can say, and what applies when nobody does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Choice {
    /// This call may be made.
    Allow,
    /// So may every further call of this tool in this run.
    AllowAlways,
    /// It may not.
    Deny,
}

impl Choice {
    /// Whether the call may be made.
    #[must_use]
    pub fn allows(self) -> bool {
        match self {
            Choice::Allow | Choice::AllowAlways => true,
            Choice::Deny => false,
        }
    }

    /// For sentences: "it was …".
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Choice::Allow => "allowed",
            Choice::AllowAlways => "allowed, with every further call in this run,",
            Choice::Deny => "denied",
        }
    }
}

/// Whether the child waits for the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Waits {
    /// It asked and waits.
    Asked,
    /// It only reported the call and goes on; a denial ends the run.
    Reported,
}

/// A question to a person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ApprovalRequest {
    /// Its name.
    pub id: ApprovalId,
    /// The run that it belongs to.
    pub run_id: RunId,
    /// Which tool is to be called.
    pub tool_name: String,
    /// The child's name of the call.
    pub tool_use_id: Option<String>,
    /// The JSON text of the input, cut at [`MAX_SHOWN_INPUT`].
    pub input: String,
    /// The length of the whole text.
    pub input_bytes: u64,
    /// The hash of the whole input in its canonical spelling; see [`input_hash`].
    pub input_sha256: Digest,
    /// Why it needs an answer.
    pub reason: String,
    /// Whether the child waits.
    pub waits: Waits,
    /// When it was asked.
    pub asked_at: Timestamp,
    /// Until when an answer counts.
    pub deadline: Timestamp,
    /// What applies afterwards.
    pub default: Choice,
}

/// An answer, and whose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answered {
    /// To which request.
    pub id: ApprovalId,
    /// What.
    pub choice: Choice,
    /// Who.
    pub by: String,
    /// When.
    pub at: Timestamp,
    /// Why, if somebody said so.
    pub reason: Option<String>,
}

/// The hash by which the input of a call is known: of its canonical spelling, so that a child may write the same input in
/// two ways. One that is too large or too deep to have such a spelling is hashed as it came.
#[must_use]
pub fn input_hash(input: &str) -> Digest {
    let spelled = || {
        if input.len() > MAX_INPUT_BYTES {
            return None;
        }
        let value = serde_json::from_str(input).ok()?;
        canonical::hash(&value, canonical::Spelling::ByteOrder).ok()
    };
    spelled().unwrap_or_else(|| Digest::of(input.as_bytes()))
}

/// The beginning of a text, at most `bytes` of it.
pub(super) fn cut(text: &str, bytes: usize) -> String {
    text[..text.floor_char_boundary(bytes)].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_input_has_the_same_hash_however_it_is_written() {
        let hash = input_hash(r#"{"command":"ls","n":1}"#);
        assert_eq!(input_hash(r#" { "n": 1, "command": "l\u0073" } "#), hash);
        assert_ne!(input_hash(r#"{"command":"ls","n":2}"#), hash);
        assert_ne!(input_hash("not json"), input_hash("not jso"));
        let deep = format!("{}{}", "[".repeat(1000), "]".repeat(1000));
        assert_eq!(input_hash(&deep), Digest::of(deep.as_bytes()));
    }

    #[test]
    fn a_request_is_numbered_within_its_run() {
        let run = RunId::new("1435d8a3-b669-4b75-82d5-df8e55e2c877");
        assert_eq!(ApprovalId::numbered(&run, 3).as_str(), "1435d8a3-3");
        assert_eq!(ApprovalId::numbered(&RunId::new("../../x y"), 1).as_str(), "xy-1");
    }

    #[test]
    fn a_text_is_cut_between_characters() {
        assert_eq!(cut("aé", 2), "a");
        assert_eq!(cut("aé", 3), "aé");
        assert_eq!(cut("aé", 30), "aé");
    }
}
