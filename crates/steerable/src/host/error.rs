//! What can go wrong with a sidecar: it does not start, or a call has no answer.

use std::sync::Arc;
use std::time::Duration;

use outrigger_supervise::logs::LogLine;
use outrigger_supervise::report::Report;
use outrigger_wire::rpc::{Code, ErrorObject};
use serde_json::value::RawValue;

use super::end::Lost;
use super::stream::StreamId;

/// Why a sidecar did not become ready. It is dead when this is told.
#[derive(Clone, Debug, thiserror::Error)]
#[error("sidecar `{name}` {what}{}", Details { report: report.as_deref(), stderr })]
pub struct StartError {
    /// The sort of it.
    pub kind: StartErrorKind,
    /// The sidecar.
    pub name: String,
    /// What happened, to be read after its name.
    pub what: String,
    /// How its process ended, if it had one.
    pub report: Option<Arc<Report>>,
    /// Its last lines on standard error.
    pub stderr: Vec<LogLine>,
}

/// In which way a sidecar did not become ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartErrorKind {
    /// It could not be started at all.
    Spawn,
    /// It was not ready in time.
    Late,
    /// It ended before it was ready.
    Exited,
    /// It says that it is ready in words that are none: a marker without a health, a `lifecycle.ready` without a version.
    Garbled,
    /// It speaks a version that this host does not.
    Incompatible,
}

/// The last lines, or the whole report, after the sentence.
struct Details<'a> {
    report: Option<&'a Report>,
    stderr: &'a [LogLine],
}

impl std::fmt::Display for Details<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.report {
            Some(report) => write!(f, "\n{report}"),
            None => self.stderr.iter().try_for_each(|line| write!(f, "\n  | {}", line.text.escape_debug())),
        }
    }
}

/// Why a call has no answer.
#[derive(Clone, Debug, thiserror::Error)]
pub enum CallError {
    /// The sidecar answered with an error.
    #[error("`{method}` failed: {error}")]
    Remote {
        /// What was called.
        method: String,
        /// What it answered.
        error: RemoteError,
    },
    /// It did not answer in time. It may still do what it was asked for.
    #[error("`{method}` was not answered within {after:?}")]
    Late {
        /// What was called.
        method: String,
        /// How long was waited.
        after: Duration,
    },
    /// It is gone; the next process, if there is to be one, knows nothing of this call.
    #[error("`{method}` cannot be answered: {lost}")]
    Lost {
        /// What was called.
        method: String,
        /// What happened to the sidecar.
        lost: Lost,
    },
    /// There is no process right now: wait for [`Sidecar::ready`](super::Sidecar::ready).
    #[error("`{method}` was not sent: the sidecar is being started again")]
    Down {
        /// What was called.
        method: String,
    },
    /// The answer is not what the contract says.
    #[error("`{method}` was answered with something else: {what}")]
    Unreadable {
        /// What was called.
        method: String,
        /// What is wrong with the answer.
        what: String,
    },
    /// The params are no object or too long. Nothing was sent.
    #[error("`{method}` was not sent: {what}")]
    NotSent {
        /// What was called.
        method: String,
        /// What is wrong with the params.
        what: String,
    },
    /// There is a stream of that id. Nothing was sent.
    #[error("there is already a stream `{0}`")]
    StreamExists(StreamId),
}

impl CallError {
    /// The word that hosts branch on, if the sidecar answered with one.
    #[must_use]
    pub fn kind(&self) -> Option<&str> {
        match self {
            Self::Remote { error, .. } => error.kind.as_deref(),
            Self::Late { .. }
            | Self::Lost { .. }
            | Self::Down { .. }
            | Self::Unreadable { .. }
            | Self::NotSent { .. }
            | Self::StreamExists(_) => None,
        }
    }
}

/// An error that a sidecar answered with.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message} (code {code}{})", kind.as_ref().map(|kind| format!(", {kind}")).unwrap_or_default())]
pub struct RemoteError {
    /// The number.
    pub code: Code,
    /// The stable word, if there is one.
    pub kind: Option<String>,
    /// A sentence for people.
    pub message: String,
    /// Details for programs.
    pub data: Option<Box<RawValue>>,
}

impl From<ErrorObject> for RemoteError {
    fn from(error: ErrorObject) -> Self {
        let kind = error.member("kind").and_then(|raw| serde_json::from_str(raw.get()).ok());
        Self { code: error.code, kind, message: error.message, data: error.data }
    }
}
