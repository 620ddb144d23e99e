//! What a model call tells while it runs, and who listens.

use std::borrow::Cow;
use std::time::Duration;

use serde_json::value::RawValue;

use super::failure::Failure;
use crate::chat::{BoxFuture, ToolCall, Usage};

/// Something that a model did.
///
/// Texts come as they arrive and are never empty. The rest comes when the answer is complete, in this order: details, the tool
/// calls in the model's order, the finish reason, the usage; each of them at most once, tool calls once each.
#[derive(Debug)]
pub enum Event<'a> {
    /// It said something.
    Delta(Cow<'a, str>),
    /// It thought something.
    Reasoning(Cow<'a, str>),
    /// The provider's own record of the thinking, to be sent back with the message.
    Details(Box<RawValue>),
    /// It called a tool.
    ToolCall {
        /// The call; its arguments are `{}` if what came is no JSON object.
        call: ToolCall,
        /// What came instead of a JSON object.
        unread: Option<String>,
    },
    /// What the call cost.
    Usage(Usage),
    /// Why it ended, in the provider's words.
    Finish(Cow<'a, str>),
    /// The call failed before anything was told and is made again.
    Retry {
        /// Which attempt failed, from one.
        attempt: u32,
        /// How long until the next one.
        delay: Duration,
        /// Why.
        error: &'a Failure,
    },
}

/// Who listens to a model.
pub trait Sink: Send {
    /// Takes an event. It must not wait: what has to be written is kept until [`flush`](Self::flush).
    fn event(&mut self, event: Event<'_>);

    /// Waits until what was kept is on its way. It is called whenever the provider is silent, and at the latest after
    /// every 32 KiB of it, so that a listener who does not read makes the provider wait.
    fn flush(&mut self) -> BoxFuture<'_, Result<(), Gone>>;
}

/// Nobody listens any more: the call ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("nobody listens any more")]
pub struct Gone;

/// What a call came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// What it cost, if the provider said so.
    pub usage: Option<Usage>,
    /// Why it ended, in the provider's words.
    pub finish_reason: Option<String>,
    /// How often the call was made.
    pub attempts: u32,
    /// From the call until the first event of the attempt that succeeded.
    pub first_event_after: Option<Duration>,
}
