//! What an author says about a sidecar and about the end of a run.

use std::time::Duration;

use crate::protocol::{
    AskAction, BackendIdentity, ErrorCode, Manifest, Mode, Outcome, Raw, Taking, Verification,
};

/// Who a sidecar is and what it can do: its `hello`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Its name and versions.
    pub backend: BackendIdentity,
    /// What it can do, and how well.
    pub capabilities: Manifest,
    /// How it works when the order does not say.
    pub mode: Mode,
    /// What it never does without asking. The host believes it, and its receipt says `enforced`.
    pub asks: Vec<AskAction>,
    /// What it listens to in the middle of a run.
    pub takes: Vec<Taking>,
}

impl Identity {
    /// One that can nothing in particular, works in mapped mode and promises nothing.
    pub fn named(id: impl Into<String>) -> Self {
        Self {
            backend: BackendIdentity::named(id),
            capabilities: Manifest::default(),
            mode: Mode::Mapped,
            asks: Vec::new(),
            takes: Vec::new(),
        }
    }
}

/// How runs are served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// How many events the receipt repeats. A host has seen them all, and fills in a trace that is empty.
    pub trace_events: usize,
    /// How long a handler may go on after a cancel. Then it is dropped, and the run ends as partial.
    pub cancel_grace: Duration,
}

impl Options {
    /// No events in the receipt, five seconds after a cancel.
    pub fn usual() -> Self {
        Self { trace_events: 0, cancel_grace: Duration::from_secs(5) }
    }
}

/// A run that came to its end: a `final` with a receipt.
#[derive(Clone, Debug, PartialEq)]
pub struct Done {
    /// How; none is complete, or partial when the run was cancelled.
    pub outcome: Option<Outcome>,
    /// What the vendor counted, as it came.
    pub usage_raw: Option<Raw<'static>>,
    /// What was checked.
    pub verification: Verification,
}

impl Done {
    /// As it went: complete, or partial when the run was cancelled.
    pub fn as_it_went() -> Self {
        let verification = Verification { git_diff: None, git_status: None, harness_ok: true };
        Self { outcome: None, usage_raw: None, verification }
    }

    /// With an outcome.
    pub fn with(outcome: Outcome) -> Self {
        Self { outcome: Some(outcome), ..Self::as_it_went() }
    }
}

/// A run that broke: a `fatal`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    /// For people.
    pub message: String,
    /// For programs.
    pub code: ErrorCode,
}

impl Failure {
    /// A failure with a code. Hosts of the original refuse a code that is not in the contract, so such a one is not sent.
    pub fn new(message: impl Into<String>, code: ErrorCode) -> Self {
        Self { message: message.into(), code }
    }

    /// A failure of the sidecar itself.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(message, ErrorCode::Internal)
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::internal(error.to_string())
    }
}
