//! Where a turn speaks to: pieces of the model's answer, results of tools, notices.

use std::time::Duration;

use crate::chat::{BoxFuture, ToolCall, ToolResult};
use crate::model::{self, Failure, Gone};

/// The listener of a turn. Everything but `flush` only buffers; `flush` waits until the listener has room.
pub trait Output: Send {
    /// A piece of the answer. Only [`model::Event::Delta`], [`model::Event::Reasoning`] and
    /// [`model::Event::ToolCall`] come here; the rest of the events are notices or stay inside.
    fn model(&mut self, event: model::Event<'_>);

    /// A call was made, or was answered without being made.
    fn tool_result(&mut self, call: &ToolCall, result: &ToolResult, took: Duration);

    /// Something that the host should know.
    fn notice(&mut self, notice: Notice<'_>);

    /// Passes on what is buffered.
    fn flush(&mut self) -> BoxFuture<'_, Result<(), Gone>>;
}

/// What the host should know about the course of a turn.
#[derive(Clone, Copy, Debug)]
pub enum Notice<'a> {
    /// A round is over: the model has spoken and its calls are answered.
    RoundEnd {
        /// Which, the first being 1.
        round: u64,
    },
    /// The turn takes longer than the host hoped.
    SoftTimeout,
    /// The next call would cross a budget, so it was not made.
    BudgetExhausted(Exhausted),
    /// What the person said meanwhile was given to the model.
    Steer {
        /// What they said.
        content: &'a str,
    },
    /// Older parts of the transcript were replaced by a summary.
    Compaction {
        /// The estimate of the prompt's tokens before.
        before: u64,
        /// And after.
        after: u64,
    },
    /// The provider failed and is called again.
    Retry {
        /// Which attempt failed, the first being 1.
        attempt: u32,
        /// How long is waited before the next.
        delay: Duration,
        /// What went wrong.
        error: &'a Failure,
    },
    /// A call that needs consent was decided upon.
    Approval {
        /// The tool.
        tool: &'a str,
        /// The word of the decision.
        decision: &'static str,
    },
    /// A server whose tools the turn should have had cannot be reached; the turn goes on without them.
    McpUnreachable {
        /// Its name.
        server: &'a str,
        /// Why.
        error: &'a str,
    },
}

impl Notice<'_> {
    /// The word on the wire.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::RoundEnd { .. } => "round_end",
            Self::SoftTimeout => "soft_timeout",
            Self::BudgetExhausted(_) => "budget_exhausted",
            Self::Steer { .. } => "steer",
            Self::Compaction { .. } => "compaction",
            Self::Retry { .. } => "retry",
            Self::McpUnreachable { .. } => "mcp_unreachable",
            Self::Approval { .. } => "approval",
        }
    }
}

/// A budget that the next step would cross.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exhausted {
    /// Which.
    pub budget: Budget,
    /// The most that may be used.
    pub limit: u64,
    /// What is used.
    pub used: u64,
}

/// What a turn has only so much of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Budget {
    /// Tokens, of prompts and answers; cached ones count a tenth.
    Tokens,
    /// Calls of the model.
    Rounds,
    /// Calls of tools.
    ToolCalls,
    /// Calls of tools that failed.
    ToolErrors,
}

impl Budget {
    /// The word on the wire.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Tokens => "tokens",
            Self::Rounds => "rounds",
            Self::ToolCalls => "tool_calls",
            Self::ToolErrors => "tool_errors",
        }
    }
}
