//! How a stream ends: done, failed, or lost with the sidecar.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use outrigger_supervise::report::Report;
use serde_json::value::RawValue;

use super::members::{Text, keep, members, place, read_usage, take};
use crate::chat::Usage;

/// How a stream ended. There is exactly one, whatever happens to the sidecar.
#[derive(Clone, Debug)]
pub enum StreamEnd {
    /// With `stream.done`.
    Done(Done),
    /// With `stream.error`.
    Failed(StreamFailure),
    /// The sidecar is gone, or was let go of.
    Lost(Lost),
}

/// What `stream.done` says. A plain stream has nothing but `ok` and `cancelled`.
#[derive(Clone, Debug, Default)]
pub struct Done {
    /// Whether it is complete.
    pub ok: bool,
    /// Whether somebody cancelled it.
    pub cancelled: bool,
    /// `completed`, `budget_exhausted`, `cancelled`, or another word.
    pub status: Option<String>,
    /// Why, for people.
    pub reason: Option<String>,
    /// Under which name the turn was traced.
    pub trace_id: Option<String>,
    /// Under which name the turn was written down.
    pub record_id: Option<String>,
    /// What the turn cost.
    pub usage: Option<Usage>,
    /// The structured answer.
    pub output: Option<Box<RawValue>>,
    /// Further members, as they came.
    pub other: Vec<(String, Box<RawValue>)>,
}

/// What `stream.error` says.
#[derive(Clone, Debug, Default)]
pub struct StreamFailure {
    /// The stable word, or the name of an exception of the original.
    pub kind: String,
    /// What went wrong.
    pub message: String,
    /// The HTTP status of the provider.
    pub status: Option<u16>,
    /// After which time trying again may help.
    pub retry_after: Option<Duration>,
    /// Whether trying again may help.
    pub retryable: Option<bool>,
    /// Under which name the turn was traced.
    pub trace_id: Option<String>,
    /// Under which name the turn was written down.
    pub record_id: Option<String>,
    /// Further members, as they came.
    pub other: Vec<(String, Box<RawValue>)>,
}

/// Why there is no answer any more: the sidecar is gone.
#[derive(Clone, Debug)]
pub struct Lost {
    /// What happened, in one sentence.
    pub what: String,
    /// How its process ended and what it said last; not there when the host let go of it.
    pub report: Option<Arc<Report>>,
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)?;
        match &self.report {
            Some(report) => write!(f, "\n{report}"),
            None => Ok(()),
        }
    }
}

impl Done {
    pub(super) fn read(params: &RawValue) -> Option<(Cow<'_, str>, Self)> {
        let mut stream = None;
        let mut done = Self::default();
        let (mut ok, mut cancelled) = (None, None);
        for (name, raw) in members(params)? {
            let known = match &*name {
                "streamId" => take(&mut stream, raw),
                "ok" => take(&mut ok, raw),
                "cancelled" => take(&mut cancelled, raw),
                "status" => take(&mut done.status, raw),
                "reason" => take(&mut done.reason, raw),
                "traceId" => take(&mut done.trace_id, raw),
                "recordId" => take(&mut done.record_id, raw),
                "usage" => place(&mut done.usage, read_usage(raw)),
                "output" => place(&mut done.output, Some(raw.to_owned())),
                _ => false,
            };
            keep(&mut done.other, known, name, raw);
        }
        done.cancelled = cancelled.unwrap_or(false);
        done.ok = ok.unwrap_or(!done.cancelled);
        stream.map(|Text(stream)| (stream, done))
    }
}

impl StreamFailure {
    pub(super) fn read(params: &RawValue) -> Option<(Cow<'_, str>, Self)> {
        let mut stream = None;
        let mut failure = Self::default();
        let (mut kind, mut message, mut millis) = (None, None, None::<u64>);
        for (name, raw) in members(params)? {
            let known = match &*name {
                "streamId" => take(&mut stream, raw),
                "kind" => take(&mut kind, raw),
                "message" => take(&mut message, raw),
                "status" => take(&mut failure.status, raw),
                "retryAfterMs" => take(&mut millis, raw),
                "retryable" => take(&mut failure.retryable, raw),
                "traceId" => take(&mut failure.trace_id, raw),
                "recordId" => take(&mut failure.record_id, raw),
                _ => false,
            };
            keep(&mut failure.other, known, name, raw);
        }
        failure.kind = kind.unwrap_or_else(|| "unknown".to_owned());
        failure.message = message.unwrap_or_default();
        failure.retry_after = millis.map(Duration::from_millis);
        stream.map(|Text(stream)| (stream, failure))
    }
}
