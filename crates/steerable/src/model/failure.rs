//! How a model call fails, in words that do not change.

use std::borrow::Cow;
use std::time::Duration;

use super::json::Piece;
use super::provider::Provider;
use crate::chat::Secret;

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

/// How many characters of a provider's own words are shown.
const SHOWN: usize = 300;

/// Words that say that a conversation is too long, in the error bodies of many servers.
const OVERFLOW: [&str; 13] = [
    "context length",
    "context_length",
    "context window",
    "context size",
    "maximum context",
    "prompt is too long",
    "input is too long",
    "too many tokens",
    "input token count",
    "maximum number of tokens",
    "maximum prompt length",
    "reduce the length",
    "request_too_large",
];

/// Who fails: every message begins with the provider, and none has its key.
#[derive(Clone, Copy, Debug)]
pub(super) struct Voice<'r> {
    pub(super) provider: Provider,
    pub(super) key: Option<&'r Secret>,
}

impl Voice<'_> {
    /// A failure in our own words.
    pub(super) fn failure(self, kind: FailureKind, words: &str) -> Failure {
        Failure::new(kind, format!("{}: {words}", self.provider.word()))
    }

    /// The failure that an HTTP status and its body say.
    pub(super) fn status(self, status: u16, body: &str) -> Failure {
        let kind = status_kind(status, body);
        let words = format!("HTTP {status} ({}): {}", kind.word(), self.shown(body));
        Failure { status: Some(status), ..self.failure(kind, &words) }
    }

    /// The failure that a provider's error object says in the middle of a stream. It may be a text, too.
    pub(super) fn error(self, error: Piece<'_>) -> Failure {
        let member = |name: &str| error.get(name).and_then(Piece::string);
        let message = error.string().or_else(|| member("message")).unwrap_or(Cow::Borrowed(error.raw()));
        let status = error.get("code").and_then(Piece::number).and_then(|code| u16::try_from(code).ok());
        let status = status.filter(|code| (400..600).contains(code));
        let words = ["type", "code", "status"].map(|name| member(name).unwrap_or_default());
        let kind = match status {
            Some(status) => status_kind(status, &message),
            None => words_kind(&words.join(" ").to_ascii_lowercase(), &message),
        };
        let words = format!("error in the stream ({}): {}", kind.word(), self.shown(&message));
        Failure { status, ..self.failure(kind, &words) }
    }

    /// The failure of an event that cannot be read.
    pub(super) fn no_json(self, event: &str, why: &serde_json::Error) -> Failure {
        let words = format!("an event is no JSON ({why}): {}", self.shown(event));
        self.failure(FailureKind::Server, &words)
    }

    /// What a provider said, as much of it as is shown, without the key.
    pub(super) fn shown(self, text: &str) -> String {
        let key = self.key.map(Secret::reveal).filter(|key| key.len() >= SHORTEST_KEY);
        let concealed = key.map_or(Cow::Borrowed(text), |key| Cow::Owned(text.replace(key, "***")));
        concealed.trim().chars().take(SHOWN).collect()
    }
}

/// Shorter ones are placeholders (`x`, `no`), and replacing them would only garble messages.
const SHORTEST_KEY: usize = 4;

fn status_kind(status: u16, body: &str) -> FailureKind {
    match status {
        400 | 413 | 422 if is_overflow(body) => FailureKind::ContextOverflow,
        401 | 403 => FailureKind::Auth,
        408 => FailureKind::Transport,
        429 => FailureKind::RateLimit,
        500..=599 => FailureKind::Server,
        // A redirect is not followed: the address is wrong, and asking again does not make it right.
        300..=499 => FailureKind::InvalidRequest,
        _ => FailureKind::Unknown,
    }
}

fn words_kind(words: &str, message: &str) -> FailureKind {
    let says = |any: &[&str]| any.iter().any(|word| words.contains(word));
    if is_overflow(words) || is_overflow(message) {
        FailureKind::ContextOverflow
    } else if says(&["rate_limit", "too_many_requests", "resource_exhausted", "quota"]) {
        FailureKind::RateLimit
    } else if says(&["authentication", "permission", "unauthenticated", "api_key"]) {
        FailureKind::Auth
    } else if says(&["overloaded", "server", "internal", "api_error", "unavailable", "timeout"]) {
        FailureKind::Server
    } else if says(&["invalid", "not_found"]) {
        FailureKind::InvalidRequest
    } else {
        FailureKind::Unknown
    }
}

fn is_overflow(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    OVERFLOW.iter().any(|words| text.contains(words))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn voice(key: Option<&Secret>) -> Voice<'_> {
        Voice { provider: Provider::ChatCompletions, key }
    }

    #[test]
    fn a_status_says_what_sort_of_failure_it_is() {
        let kind = |status| voice(None).status(status, "no").kind;
        for (status, expected) in [
            (401, FailureKind::Auth),
            (403, FailureKind::Auth),
            (408, FailureKind::Transport),
            (429, FailureKind::RateLimit),
            (400, FailureKind::InvalidRequest),
            (404, FailureKind::InvalidRequest),
            (413, FailureKind::InvalidRequest),
            (307, FailureKind::InvalidRequest),
            (500, FailureKind::Server),
            (503, FailureKind::Server),
            (529, FailureKind::Server),
            (199, FailureKind::Unknown),
        ] {
            assert_eq!(kind(status), expected, "{status}");
        }
    }

    #[test]
    fn a_body_that_speaks_of_the_context_is_an_overflow() {
        for body in [
            "This model's maximum context length is 128000 tokens",
            "prompt is too long: 213462 tokens > 200000 maximum",
            "The input token count (1100000) exceeds the maximum number of tokens allowed",
            "the request exceeds the available context size",
        ] {
            assert_eq!(voice(None).status(400, body).kind, FailureKind::ContextOverflow);
            assert_eq!(voice(None).status(413, body).kind, FailureKind::ContextOverflow);
            assert_eq!(voice(None).status(500, body).kind, FailureKind::Server);
        }
    }

    #[test]
    fn three_hundred_characters_of_a_body_are_shown_and_never_the_key() {
        let key = Secret::new("sk-very-secret");
        let body = format!("{}sk-very-secret{}", "é".repeat(295), "z".repeat(100));
        let failure = voice(Some(&key)).status(500, &body);
        assert_eq!(failure.message, format!("openai: HTTP 500 (server): {}***zz", "é".repeat(295)));
    }

    #[test]
    fn an_error_in_the_stream_is_read_by_its_code_or_its_words() {
        let kind = |text: &str| voice(None).error(Piece::read(text).unwrap()).kind;
        assert_eq!(kind(r#"{"message":"x","code":429}"#), FailureKind::RateLimit);
        assert_eq!(kind(r#"{"message":"x","code":"rate_limit_exceeded"}"#), FailureKind::RateLimit);
        assert_eq!(kind(r#"{"message":"x","type":"overloaded_error"}"#), FailureKind::Server);
        assert_eq!(kind(r#"{"message":"x","type":"authentication_error"}"#), FailureKind::Auth);
        assert_eq!(kind(r#"{"message":"x","type":"invalid_request_error"}"#), FailureKind::InvalidRequest);
        assert_eq!(kind(r#"{"message":"x","code":"context_length_exceeded"}"#), FailureKind::ContextOverflow);
        assert_eq!(kind(r#""boom""#), FailureKind::Unknown);
    }
}
