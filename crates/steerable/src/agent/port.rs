//! What a turn asks its host: to run a tool, to allow a call, to answer a question.

use std::time::Duration;

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::chat::{BoxFuture, ToolCall, ToolResult};
use crate::tools::Mode;

/// The way back to the host. Every future may be dropped: that takes the question back.
pub trait HostPort: Send + Sync {
    /// Runs a tool of the host's.
    fn invoke<'a>(
        &'a self,
        call: &'a ToolCall,
        context: &'a Map<String, Value>,
    ) -> BoxFuture<'a, Result<ToolResult, HostGone>>;

    /// May this call be made? A host that is gone or answers nonsense says [`Verdict::DenyOnce`].
    fn approve<'a>(&'a self, ask: &'a ApprovalAsk<'a>) -> BoxFuture<'a, Decision>;

    /// Puts `{intro?, questions, chatId?}` to the person; what comes back has `answers`.
    fn ask<'a>(&'a self, questions: &'a Value) -> BoxFuture<'a, Result<Value, HostGone>>;
}

/// The host could not be asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the host did not answer: {reason}")]
pub struct HostGone {
    /// Why, in words that fit behind a colon.
    pub reason: String,
}

/// A call that somebody has to allow.
#[derive(Clone, Copy, Debug)]
pub struct ApprovalAsk<'a> {
    /// The call as the model made it.
    pub call: &'a ToolCall,
    /// How much harm it could do.
    pub mode: Mode,
    /// What kind of thing it is: `command`, `file`, `network`, `mcp`, `host` or `tool`.
    pub category: &'static str,
    /// The round of the turn, the first being 1.
    pub round: u64,
    /// The host's chat.
    pub chat_id: Option<&'a str>,
    /// Why somebody is asked.
    pub reason: &'a str,
    /// How long the answer is waited for; the turn itself keeps this time.
    pub patience: Duration,
}

/// What was decided about a call.
#[derive(Clone, Debug)]
pub struct Decision {
    /// Yes or no, and for how long.
    pub verdict: Verdict,
    /// Why, for the model.
    pub reason: Option<String>,
    /// The arguments that the call is to be made with instead of its own.
    pub amended: Option<Box<RawValue>>,
}

impl Decision {
    /// A decision without a word of explanation.
    #[must_use]
    pub const fn plain(verdict: Verdict) -> Self {
        Self { verdict, reason: None, amended: None }
    }
}

/// Yes or no, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// This call.
    AllowOnce,
    /// This call and those like it, for the rest of the record.
    AllowForSession,
    /// This call and those like it, as long as the sidecar lives.
    AllowAlways,
    /// Not this call.
    DenyOnce,
    /// Not this call nor those like it, for the rest of the record.
    DenyForSession,
    /// Not this call nor those like it, as long as the sidecar lives.
    DenyAlways,
    /// Nobody answered in time: not this call.
    TimedOut,
    /// Not this call, and the turn ends.
    Abort,
}

impl Verdict {
    const ALL: [Self; 8] = [
        Self::AllowOnce,
        Self::AllowForSession,
        Self::AllowAlways,
        Self::DenyOnce,
        Self::DenyForSession,
        Self::DenyAlways,
        Self::TimedOut,
        Self::Abort,
    ];

    /// The word on the wire.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::AllowOnce => "allow_once",
            Self::AllowForSession => "allow_for_session",
            Self::AllowAlways => "allow_always",
            Self::DenyOnce => "deny_once",
            Self::DenyForSession => "deny_for_session",
            Self::DenyAlways => "deny_always",
            Self::TimedOut => "timed_out",
            Self::Abort => "abort",
        }
    }

    /// The verdict of a word.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|verdict| verdict.word() == word)
    }

    /// Whether the call is made.
    #[must_use]
    pub const fn allows(self) -> bool {
        match self {
            Self::AllowOnce | Self::AllowForSession | Self::AllowAlways => true,
            Self::DenyOnce | Self::DenyForSession | Self::DenyAlways | Self::TimedOut | Self::Abort => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_verdict_is_read_back_from_its_word() {
        for verdict in Verdict::ALL {
            assert_eq!(Verdict::from_word(verdict.word()), Some(verdict));
        }
        assert_eq!(Verdict::from_word("yes"), None);
    }
}
