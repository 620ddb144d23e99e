//! The driver's step that makes the transcript smaller: a summary by the model, or without one if that fails.

use serde_json::Value;

use super::compact::{self, PROMPT};
use super::course::Compacted;
use super::history::{Edit, weight};
use super::output::Notice;
use super::run::Driver;
use super::trace::{Cost, attrs};
use crate::chat::{BoxFuture, Message, Role, Usage};
use crate::model::{Event, Gone, Request, Sink, estimate_tokens};
use crate::protocol::{EventKind, EventStatus, SpanStatus};
use crate::store::Stored;

/// The most that a summary may have.
const SUMMARY_TOKENS: u64 = 8_192;
/// The most that the writer of a summary reads where nobody said how much a prompt may have.
const MOST_READ_BYTES: usize = 400_000;
/// A summary of more is not one.
const MOST_SUMMARY_BYTES: usize = 128 << 10;

impl Driver<'_> {
    /// Makes the transcript smaller. `before` is the estimate of the prompt now.
    pub(super) async fn compact(&mut self, before: u64) {
        let limit = self.turn.max_context_tokens;
        // Without a limit somebody just wants it smaller, or the provider does.
        let target = limit.filter(|limit| *limit < before).unwrap_or(before / 2);
        let keep = self.in_our_measure(target / 2, before);
        let mut changed = Compacted::Nothing;
        if let Some(edits) = self.summaries(keep).await {
            changed = self.replace(edits, changed).await;
        }
        let now = self.estimate();
        if changed == Compacted::Nothing || now > target {
            let target = self.in_our_measure(target, now);
            let edits = compact::shrink(self.history.items(), target);
            changed = self.replace(edits, changed).await;
        }
        if self.course.is_over() {
            return;
        }
        self.course.compacted(changed);
        if changed == Compacted::Smaller {
            let after = self.estimate();
            let details = attrs([("before", Value::from(before)), ("after", Value::from(after))]);
            self.world.tracer.event(EventKind::Lifecycle, "compaction", Some(EventStatus::Ok), details);
            self.notice(Notice::Compaction { before, after }).await;
        }
    }

    /// A number of the provider's tokens in tokens as we estimate them by bytes, if the provider has counted `before`
    /// where we see something else.
    fn in_our_measure(&self, tokens: u64, before: u64) -> u64 {
        let ours: u64 = self.history.items().iter().map(|stored| weight(&stored.message)).sum();
        let scaled = u128::from(tokens) * u128::from(ours) / u128::from(before.max(1));
        u64::try_from(scaled).unwrap_or(u64::MAX)
    }

    /// A summary of each part that can be told in one; `None` if one of them could not be had.
    async fn summaries(&mut self, keep: u64) -> Option<Vec<Edit>> {
        let mut edits = Vec::new();
        for range in compact::summarise(self.history.items(), keep) {
            let part: Vec<Stored> = self.history.items()[range.clone()].to_vec();
            let summary = self.summary(&part).await?;
            edits.push(Edit { range, replacement: compact::summary_message(&summary) });
        }
        Some(edits)
    }

    /// Lets the model tell a part in fewer words.
    async fn summary(&mut self, part: &[Stored]) -> Option<String> {
        let most = self.turn.max_context_tokens.and_then(|limit| usize::try_from(limit).ok());
        let most = most.map_or(MOST_READ_BYTES, |limit| limit.saturating_mul(2).min(MOST_READ_BYTES));
        let messages = vec![
            Message::text(Role::System, PROMPT),
            Message::text(Role::User, compact::request_text(part, most)),
        ];
        let prompt = estimate_tokens(&messages, &[]);
        let max_tokens = match self.course.tokens_left() {
            None => SUMMARY_TOKENS,
            // A summary that the budget does not cover is not asked for.
            Some(left) => Some(left.saturating_sub(prompt)).filter(|left| *left > 0)?.min(SUMMARY_TOKENS),
        };
        let request = Request {
            messages: messages.into(),
            tools: Vec::new(),
            max_tokens: Some(max_tokens),
            response_schema: None,
            ..self.turn.request.clone()
        };
        let span = self.open_request(&request, self.course.round(), prompt);
        let mut writer = Writer { text: String::new(), usage: None };
        let written = tokio::select! {
            biased;
            () = self.cancel.cancelled() => None,
            written = self.world.model.stream(&request, &mut writer) => Some(written),
        };
        let counted = match &written {
            Some(Ok(summary)) => summary.usage.or(writer.usage),
            Some(Err(_)) | None => writer.usage,
        };
        let said = writer.text.len() as u64 / 4;
        let cost = counted.map_or_else(|| Cost::guess(prompt, said), Cost::Counted);
        self.spend(cost);
        let mut told = cost.attrs();
        told.insert("purpose".to_owned(), Value::from("compaction"));
        match written {
            Some(Ok(_)) => {
                span.end(SpanStatus::Ok, told);
                Some(writer.text).filter(|text| !text.trim().is_empty())
            }
            Some(Err(failure)) => {
                told.insert("error".to_owned(), Value::from(failure.message));
                span.end(SpanStatus::Error, told);
                None
            }
            None => {
                span.end(SpanStatus::Cancelled, told);
                self.course.cancelled(None);
                None
            }
        }
    }

    /// Replaces messages, in the transcript first.
    async fn replace(&mut self, edits: Vec<Edit>, so_far: Compacted) -> Compacted {
        let mut done = Vec::new();
        for edit in edits {
            let places = self.history.items()[edit.range.clone()].iter().map(|stored| stored.seq);
            let (Some(first), Some(last)) = (places.clone().min(), places.max()) else { continue };
            let noted =
                self.world.store.note_compaction(&self.turn.record, first..=last, &edit.replacement).await;
            match noted {
                Ok(_) => done.push(edit),
                Err(error) => {
                    self.storage_failed(&error);
                    break;
                }
            }
        }
        let outcome = if done.is_empty() { so_far } else { Compacted::Smaller };
        self.history.apply(done);
        outcome
    }
}

/// Collects a summary. Nobody hears it being written.
struct Writer {
    text: String,
    usage: Option<Usage>,
}

impl Sink for Writer {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Delta(text) => self.text.push_str(&text),
            Event::Usage(usage) => self.usage = Some(usage),
            Event::Reasoning(_)
            | Event::Details(_)
            | Event::ToolCall { .. }
            | Event::Finish(_)
            | Event::Retry { .. } => {}
        }
    }

    fn flush(&mut self) -> BoxFuture<'_, Result<(), Gone>> {
        let flushed = if self.text.len() > MOST_SUMMARY_BYTES { Err(Gone) } else { Ok(()) };
        Box::pin(std::future::ready(flushed))
    }
}
