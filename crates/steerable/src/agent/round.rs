//! One call of the model: what it says is passed on and collected, so that whatever cuts it leaves what was said.

use std::collections::HashSet;

use serde_json::Value;
use serde_json::value::RawValue;

use super::course::Asked;
use super::output::Notice;
use super::stage::Stage;
use super::trace::attrs;
use super::turn::ContentMode;
use crate::chat::{BoxFuture, Message, Role, ToolCall, Usage};
use crate::model::{Event, Gone, Sink};
use crate::protocol::{EventKind, EventStatus};
use crate::store::Tracer;

/// The most that a model may say in one round; what says more is not read to its end.
const MOST_BYTES: usize = 16 << 20;

/// What a model said so far in this round.
pub(super) struct Collector<'s, 'o> {
    stage: &'s Stage<'o>,
    tracer: &'s Tracer,
    content: ContentMode,
    round: u64,
    ids: HashSet<String>,
    pub(super) text: String,
    pub(super) reasoning: String,
    details: Option<Box<RawValue>>,
    pub(super) calls: Vec<Asked>,
    pub(super) usage: Option<Usage>,
    pub(super) end: Option<EarlyEnd>,
}

/// Why a round was not heard to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EarlyEnd {
    /// Nobody listens any more.
    NobodyListens,
    /// It said too much.
    TooLong,
}

impl<'s, 'o> Collector<'s, 'o> {
    pub(super) fn new(stage: &'s Stage<'o>, tracer: &'s Tracer, content: ContentMode, round: u64) -> Self {
        Self {
            stage,
            tracer,
            content,
            round,
            ids: HashSet::new(),
            text: String::new(),
            reasoning: String::new(),
            details: None,
            calls: Vec::new(),
            usage: None,
            end: None,
        }
    }

    /// The complete message; `None` if nothing was said that a provider would take back.
    pub(super) fn message(&self) -> Option<Message> {
        if self.text.is_empty() && self.calls.is_empty() {
            return None;
        }
        let mut message = Message::text(Role::Assistant, self.text.as_str());
        if self.text.is_empty() {
            message.parts.clear();
        }
        message.tool_calls = self.calls.iter().map(|asked| asked.call.clone()).collect();
        message.reasoning = Some(self.reasoning.clone()).filter(|text| !text.is_empty());
        message.reasoning_details = self.details.clone();
        Some(message)
    }

    /// What is kept of a round that was cut: what was said. Calls are not, because they were not made, and neither is the thinking, which
    /// providers take back only whole.
    pub(super) fn partial(&self) -> Option<Message> {
        (!self.text.is_empty()).then(|| Message::text(Role::Assistant, self.text.as_str()))
    }

    fn grow(&mut self, bytes: usize) {
        if self.text.len() + self.reasoning.len() + bytes > MOST_BYTES {
            self.end = Some(EarlyEnd::TooLong);
        }
    }

    /// Results find their calls by id, so an id that is missing or used twice is replaced.
    fn identified(&mut self, mut call: ToolCall) -> ToolCall {
        if call.id.is_empty() || self.ids.contains(&call.id) {
            let place = self.calls.len() + 1;
            call.id = format!("call_{}_{place}", self.round);
        }
        self.ids.insert(call.id.clone());
        call
    }

    fn retried(&self, attempt: u32, delay: std::time::Duration, error: &crate::model::Failure) {
        let millis = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
        let details = attrs([
            ("attempt", Value::from(attempt)),
            ("delayMs", Value::from(millis)),
            ("kind", Value::from(error.kind.word())),
            ("error", Value::from(error.message.as_str())),
        ]);
        self.tracer.event(EventKind::Retry, "llm.retry", Some(EventStatus::Warning), details);
        if let Some(mut out) = self.stage.try_get() {
            out.notice(Notice::Retry { attempt, delay, error });
        }
    }
}

impl Sink for Collector<'_, '_> {
    fn event(&mut self, event: Event<'_>) {
        let is_shown = match self.content {
            ContentMode::All => true,
            ContentMode::Final => false,
        };
        let shown = match event {
            Event::Delta(text) => {
                self.grow(text.len());
                self.text.push_str(&text);
                is_shown.then_some(Event::Delta(text))
            }
            Event::Reasoning(text) => {
                self.grow(text.len());
                self.reasoning.push_str(&text);
                is_shown.then_some(Event::Reasoning(text))
            }
            Event::ToolCall { call, unread } => {
                let call = self.identified(call);
                self.calls.push(Asked { call: call.clone(), unread: unread.clone() });
                Some(Event::ToolCall { call, unread })
            }
            Event::Details(details) => {
                self.details = Some(details);
                None
            }
            Event::Usage(usage) => {
                self.usage = Some(usage);
                None
            }
            Event::Finish(_) => None,
            Event::Retry { attempt, delay, error } => {
                self.retried(attempt, delay, error);
                None
            }
        };
        if let (Some(event), Some(mut out)) = (shown, self.stage.try_get()) {
            out.model(event);
        }
    }

    fn flush(&mut self) -> BoxFuture<'_, Result<(), Gone>> {
        Box::pin(async {
            if self.end.is_some() {
                return Err(Gone);
            }
            let flushed = self.stage.flush().await;
            if flushed.is_err() {
                self.end = Some(EarlyEnd::NobodyListens);
            }
            flushed
        })
    }
}
