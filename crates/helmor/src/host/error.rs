//! What can go wrong with a sidecar: it does not start, it is gone, or a request is not answered as it should be.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use outrigger_supervise::logs::LogLine;
use outrigger_supervise::report::Report;

/// Why a request has no result.
#[derive(Clone, Debug, thiserror::Error)]
pub enum BridgeError {
    /// The sidecar could not be started. Nothing was sent.
    #[error(transparent)]
    Start(#[from] StartError),
    /// It died too often. Nothing was sent.
    #[error("the sidecar is not started again: it died {deaths} times within {within:?}; last: {last}")]
    CrashLoop {
        /// How often.
        deaths: u32,
        /// In which time.
        within: Duration,
        /// How it died last.
        last: Lost,
    },
    /// The bridge was shut down. Nothing was sent.
    #[error("the bridge was shut down")]
    Closed,
    /// It is not running, so nobody in it waits for this. Nothing was sent.
    #[error("`{method}` was not sent: the sidecar is not running, so nobody waits for it")]
    NotRunning {
        /// What was to be said.
        method: &'static str,
    },
    /// The session has a stream that has not ended. Nothing was sent.
    #[error("session `{session}` is busy: its last turn has not ended")]
    Busy {
        /// Which.
        session: String,
    },
    /// The request is longer than a line may be. Nothing was sent.
    #[error("`{method}` was not sent: {length} bytes are more than {limit}")]
    TooLong {
        /// What was asked.
        method: &'static str,
        /// How long it would have been.
        length: usize,
        /// How long it may be.
        limit: usize,
    },
    /// The sidecar answered with an error.
    #[error("`{method}` failed: {refusal}")]
    Refused {
        /// What was asked.
        method: &'static str,
        /// What it answered.
        refusal: Refusal,
    },
    /// It did not answer in time. It may still do what it was asked for.
    #[error("`{method}` was not answered within {after:?}")]
    Late {
        /// What was asked.
        method: &'static str,
        /// How long was waited.
        after: Duration,
    },
    /// It died. The next request starts another one.
    #[error("`{method}` cannot be answered: {lost}")]
    Lost {
        /// What was asked.
        method: &'static str,
        /// What happened to it.
        lost: Lost,
    },
    /// The answer is not what the contract says.
    #[error("`{method}` was answered with something else: {what}")]
    Unreadable {
        /// What was asked.
        method: &'static str,
        /// What is wrong with the answer.
        what: String,
    },
}

impl BridgeError {
    /// A stable word for programs; that of the sidecar where it answered with one.
    #[must_use]
    pub fn code(&self) -> &str {
        match self {
            Self::Start(error) => error.kind.word(),
            Self::CrashLoop { .. } => "crash_loop",
            Self::Closed => "closed",
            Self::NotRunning { .. } => "not_running",
            Self::Busy { .. } => "session_busy",
            Self::TooLong { .. } => "too_long",
            Self::Refused { refusal, .. } => refusal.code.as_deref().unwrap_or("refused"),
            Self::Late { .. } => "timeout",
            Self::Lost { .. } => "sidecar_lost",
            Self::Unreadable { .. } => "unreadable",
        }
    }
}

/// An `error` that a sidecar answered with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// A sentence for people.
    pub message: String,
    /// A stable word for programs; those of the original have none.
    pub code: Option<String>,
    /// Whether it is a defect of the sidecar itself.
    pub internal: bool,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match &self.code {
            Some(code) => write!(f, " ({code})"),
            None => Ok(()),
        }
    }
}

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
    /// It ended before it was ready, or said what no sidecar says.
    Exited,
    /// It speaks a version that this host does not.
    Incompatible,
}

impl StartErrorKind {
    fn word(self) -> &'static str {
        match self {
            Self::Spawn => "not_started",
            Self::Late => "not_ready",
            Self::Exited => "exited",
            Self::Incompatible => "incompatible",
        }
    }
}

/// The last lines, or the whole report, after the sentence.
struct Details<'a> {
    report: Option<&'a Report>,
    stderr: &'a [LogLine],
}

impl fmt::Display for Details<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.report {
            Some(report) => write!(f, "\n{report}"),
            None => self.stderr.iter().try_for_each(|line| write!(f, "\n  | {}", line.text.escape_debug())),
        }
    }
}

/// What happened to a sidecar that is gone.
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
