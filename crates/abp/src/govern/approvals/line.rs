//! The lines of a ledger, as text.

use std::borrow::Cow;

use outrigger_policy::Digest;
use serde::{Deserialize, Serialize};

use super::{Answered, ApprovalId, ApprovalRequest, Choice, MAX_SHOWN_INPUT, MAX_SHOWN_TEXT, Waits, cut};
use crate::protocol::{RunId, Timestamp};

/// The longest line that is read, in bytes. What is written is shorter: every byte of a shown input can become six.
pub const MAX_LINE_BYTES: usize = 256 * 1024;

/// The version that is written, outside of what it describes.
const VERSION: u64 = 1;

/// What a line says.
#[derive(Debug)]
pub(super) enum Line {
    /// Somebody is asked.
    Request(Box<ApprovalRequest>),
    /// Somebody answered.
    Answer(Answered),
}

/// Both kinds, as they are written.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "t", rename_all = "snake_case")]
enum Written<'a> {
    Request {
        v: u64,
        #[serde(borrow)]
        id: Cow<'a, str>,
        run_id: Cow<'a, str>,
        tool_name: Cow<'a, str>,
        tool_use_id: Option<Cow<'a, str>>,
        input: Cow<'a, str>,
        input_bytes: u64,
        input_sha256: Digest,
        reason: Cow<'a, str>,
        waits: Waits,
        asked_at: String,
        deadline: String,
        default: Choice,
    },
    Answer {
        v: u64,
        #[serde(borrow)]
        id: Cow<'a, str>,
        decision: Choice,
        by: Cow<'a, str>,
        at: String,
        reason: Option<Cow<'a, str>>,
    },
}

/// The line of a request, with its newline.
pub(super) fn request(request: &ApprovalRequest) -> Result<Vec<u8>, serde_json::Error> {
    let text = |text: &str| Cow::Owned(cut(text, MAX_SHOWN_TEXT));
    line(&Written::Request {
        v: VERSION,
        id: text(request.id.as_str()),
        run_id: text(request.run_id.as_str()),
        tool_name: text(&request.tool_name),
        tool_use_id: request.tool_use_id.as_deref().map(text),
        input: Cow::Owned(cut(&request.input, MAX_SHOWN_INPUT)),
        input_bytes: request.input_bytes,
        input_sha256: request.input_sha256,
        reason: text(&request.reason),
        waits: request.waits,
        asked_at: request.asked_at.to_string(),
        deadline: request.deadline.to_string(),
        default: request.default,
    })
}

/// The line of an answer, with its newline.
pub(super) fn answer(answer: &Answered) -> Result<Vec<u8>, serde_json::Error> {
    let text = |text: &str| Cow::Owned(cut(text, MAX_SHOWN_TEXT));
    line(&Written::Answer {
        v: VERSION,
        id: text(answer.id.as_str()),
        decision: answer.choice,
        by: text(&answer.by),
        at: answer.at.to_string(),
        reason: answer.reason.as_deref().map(text),
    })
}

/// What a line says; nothing if it is torn or of another kind or version.
pub(super) fn read(line: &[u8]) -> Option<Line> {
    match serde_json::from_slice(line).ok()? {
        Written::Request {
            v: VERSION,
            id,
            run_id,
            tool_name,
            tool_use_id,
            input,
            input_bytes,
            input_sha256,
            reason,
            waits,
            asked_at,
            deadline,
            default,
        } => Some(Line::Request(Box::new(ApprovalRequest {
            id: ApprovalId::new(id),
            run_id: RunId::new(run_id),
            tool_name: tool_name.into_owned(),
            tool_use_id: tool_use_id.map(Cow::into_owned),
            input: input.into_owned(),
            input_bytes,
            input_sha256,
            reason: reason.into_owned(),
            waits,
            asked_at: Timestamp::parse(&asked_at).ok()?,
            deadline: Timestamp::parse(&deadline).ok()?,
            default,
        }))),
        Written::Answer { v: VERSION, id, decision, by, at, reason } => Some(Line::Answer(Answered {
            id: ApprovalId::new(id),
            choice: decision,
            by: by.into_owned(),
            at: Timestamp::parse(&at).ok()?,
            reason: reason.map(Cow::into_owned),
        })),
        Written::Request { .. } | Written::Answer { .. } => None,
    }
}

fn line(written: &Written<'_>) -> Result<Vec<u8>, serde_json::Error> {
    let mut line = serde_json::to_vec(written)?;
    line.push(b'\n');
    Ok(line)
}
