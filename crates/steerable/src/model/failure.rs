//! How a model call fails, in words that do not change.

use std::time::Duration;

/// What sort of failure it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FailureKind {
    /// The provider could not be reached, or its answer broke off.
    Transport,
    /// Too much was asked in too short a time.
    RateLimit,
    /// The conversation is longer than the model can read.
    ContextOverflow,
    /// The key is missing, wrong or not allowed to.
    Auth,
    /// The provider did not accept what was asked.
    InvalidRequest,
    /// The provider failed.
    Server,
    /// Something took longer than it may.
    Timeout,
    /// Nobody wants the answer any more.
    Cancelled,
    /// Nobody knows.
    Unknown,
}

impl FailureKind {
    /// Every kind.
    pub const ALL: [Self; 9] = [
        Self::Transport,
        Self::RateLimit,
        Self::ContextOverflow,
        Self::Auth,
        Self::InvalidRequest,
        Self::Server,
        Self::Timeout,
        Self::Cancelled,
        Self::Unknown,
    ];

    /// The word on the wire.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Transport => "transport",
            Self::RateLimit => "rate_limit",
            Self::ContextOverflow => "context_overflow",
            Self::Auth => "auth",
            Self::InvalidRequest => "invalid_request",
            Self::Server => "server",
            Self::Timeout => "timeout",
            Self::Cancelled => "cancelled",
            Self::Unknown => "unknown",
        }
    }

    /// The kind of a word.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.word() == word)
    }

    /// Whether the same call may succeed the next time.
    #[must_use]
    pub const fn is_retryable(self) -> bool {
        match self {
            Self::Transport | Self::RateLimit | Self::Server | Self::Timeout | Self::Unknown => true,
            Self::ContextOverflow | Self::Auth | Self::InvalidRequest | Self::Cancelled => false,
        }
    }
}

/// Why a model call failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    /// What sort of failure.
    pub kind: FailureKind,
    /// A sentence for people. It never has the key in it.
    pub message: String,
    /// The provider's HTTP status.
    pub status: Option<u16>,
    /// How long the provider wants us to wait.
    pub retry_after: Option<Duration>,
}

impl Failure {
    /// A failure without a status.
    #[must_use]
    pub fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), status: None, retry_after: None }
    }

    /// Whether the same call may succeed the next time.
    #[must_use]
    pub const fn is_retryable(&self) -> bool {
        self.kind.is_retryable()
    }
}
