//! What a reader of a stream gets: what the agent says, what the sidecar adds, and exactly one end.

use std::fmt;
use std::time::Duration;

use serde_json::Value;

use super::error::{Lost, Refusal};
use crate::protocol::Steer;
use crate::provider::{InputAsk, PermissionAsk};

/// One event of a stream. Heartbeats are not among them: they only show that the stream lives.
#[derive(Clone, Debug)]
pub enum StreamEvent {
    /// What the agent says, and everything that this host knows no better.
    Passed(Passed),
    /// May this tool be used? To be answered with [`Bridge::permission`](super::Bridge::permission).
    Permission(PermissionAsk),
    /// Nobody waits for the answer any more.
    PermissionCancelled {
        /// Which question.
        permission_id: String,
    },
    /// A question for the user. To be answered with [`Bridge::input`](super::Bridge::input).
    Input(InputAsk),
    /// Nobody waits for the answer any more.
    InputCancelled {
        /// Which question.
        user_input_id: String,
    },
    /// What the agent may do unasked has changed.
    PermissionMode(String),
    /// A steer was taken; what follows may be the reaction to it.
    Steered(Steer),
    /// The agent made a plan and stops.
    Plan {
        /// The call it was made with.
        tool_use_id: String,
        /// The plan, if it is known.
        plan: Option<String>,
    },
    /// How full the window is: JSON as a text.
    ContextUsage(Option<String>),
    /// The goal of a Codex session: JSON as a text.
    Goal(Option<String>),
    /// What was to be gone on with is lost; the turn starts anew.
    ContextReset {
        /// The provider's name of the session that is lost.
        resume: String,
        /// Why.
        reason: String,
    },
    /// The end; nothing follows it.
    End(StreamEnd),
}

/// A line that is passed on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Passed {
    /// Its `type`.
    pub kind: String,
    /// The whole line as it came, one JSON object.
    pub line: String,
}

impl Passed {
    /// The line, read. `null` if it is no JSON, which this host does not pass on.
    #[must_use]
    pub fn value(&self) -> Value {
        serde_json::from_str(&self.line).unwrap_or_default()
    }
}

/// How a stream ended. There is exactly one, whatever happens to the sidecar. In every case the provider's name of the session is
/// kept, so the next turn goes on where this one was.
#[derive(Clone, Debug)]
pub enum StreamEnd {
    /// As it should.
    Ended,
    /// The provider says that it failed, after it had said something.
    EndedBadly {
        /// What it says.
        message: Option<String>,
    },
    /// It was stopped.
    Aborted {
        /// Why: `user_requested`, `shutdown`, …
        reason: String,
    },
    /// It did not work.
    Failed(Refusal),
    /// Nothing was heard of it, not even a heartbeat. Its turn is stopped.
    Silent {
        /// For how long.
        after: Duration,
    },
    /// It was read too slowly. What had come was delivered; its turn is stopped.
    Overflow {
        /// How many bytes may wait.
        limit: usize,
    },
    /// The sidecar is gone, or was let go of.
    Lost(Lost),
}

impl StreamEnd {
    /// Whether the turn came to its own end.
    #[must_use]
    pub fn is_good(&self) -> bool {
        matches!(self, Self::Ended)
    }

    /// A stable word for programs; that of the sidecar where it has one.
    #[must_use]
    pub fn code(&self) -> &str {
        match self {
            Self::Ended => "ended",
            Self::EndedBadly { .. } => "ended_badly",
            Self::Aborted { .. } => "aborted",
            Self::Failed(refusal) => refusal.code.as_deref().unwrap_or("failed"),
            Self::Silent { .. } => "silent",
            Self::Overflow { .. } => "overflow",
            Self::Lost(_) => "sidecar_lost",
        }
    }
}

/// A sentence for people.
impl fmt::Display for StreamEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ended => f.write_str("it ended"),
            Self::EndedBadly { message: None } => f.write_str("the agent says that it failed"),
            Self::EndedBadly { message: Some(message) } => {
                write!(f, "the agent says that it failed: {message}")
            }
            Self::Aborted { reason } => write!(f, "it was stopped ({reason})"),
            Self::Failed(refusal) => write!(f, "{refusal}"),
            Self::Silent { after } => {
                write!(f, "nothing was heard of it for {after:?}, not even a heartbeat; it was stopped")
            }
            Self::Overflow { limit } => {
                write!(f, "it was read too slowly: more than {limit} bytes of it waited; it was stopped")
            }
            Self::Lost(lost) => write!(f, "{lost}"),
        }
    }
}
