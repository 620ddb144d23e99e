//! The answer of one attempt: what is told at once, and what is kept until the answer is complete.

use std::borrow::Cow;
use std::time::Duration;

use serde_json::value::RawValue;
use tokio::time::Instant;

use super::calls::{self, Calls, Fragment, one_line};
use super::event::{Event, Sink};
use super::failure::{Failure, FailureKind, Voice};
use crate::chat::Usage;

/// Stands between a dialect and the one who listens.
pub(super) struct Telling<'s> {
    sink: &'s mut dyn Sink,
    voice: Voice<'s>,
    begun: Instant,
    first_after: Option<Duration>,
    /// Whether the sink holds something that was not flushed.
    is_fresh: bool,
    calls: Calls,
    /// Pieces of the provider's record of its thinking, as JSON.
    details: Vec<String>,
    details_bytes: usize,
    usage: Option<Usage>,
    finish: Option<String>,
}

impl<'s> Telling<'s> {
    /// Nothing was told. `begun` is when the call was made.
    pub(super) fn new(sink: &'s mut dyn Sink, begun: Instant, voice: Voice<'s>) -> Self {
        Self {
            sink,
            voice,
            begun,
            first_after: None,
            is_fresh: false,
            calls: Calls::default(),
            details: Vec::new(),
            details_bytes: 0,
            usage: None,
            finish: None,
        }
    }

    /// The model said something.
    #[inline]
    pub(super) fn delta(&mut self, text: Cow<'_, str>) {
        if !text.is_empty() {
            self.tell(Event::Delta(text));
        }
    }

    /// The model thought something.
    #[inline]
    pub(super) fn reasoning(&mut self, text: Cow<'_, str>) {
        if !text.is_empty() {
            self.tell(Event::Reasoning(text));
        }
    }

    /// A piece of a tool call.
    pub(super) fn call(&mut self, fragment: Fragment<'_>) -> Result<(), Failure> {
        let voice = self.voice;
        self.calls.add(fragment).map_err(|failure| voice.failure(failure.kind, &failure.message))
    }

    /// A call that is no piece of one before, whatever its id.
    pub(super) fn another_call(&mut self, fragment: Fragment<'_>) -> Result<(), Failure> {
        let index = Some(self.calls.next_index());
        self.call(Fragment { index, ..fragment })
    }

    /// A piece of the provider's record of its thinking: one JSON value.
    pub(super) fn detail(&mut self, json: &str) -> Result<(), Failure> {
        self.details_bytes += json.len();
        self.check_size(0)?;
        self.details.push(one_line(json));
        Ok(())
    }

    /// Whether so many bytes more of that record may be kept.
    pub(super) fn check_size(&self, more: usize) -> Result<(), Failure> {
        if self.details_bytes + more > calls::LIMIT {
            let words = format!("the reasoning of one answer is larger than {} bytes", calls::LIMIT);
            return Err(self.voice.failure(FailureKind::Server, &words));
        }
        Ok(())
    }

    /// What it cost. Providers that count as they go say it often; the last one counts.
    pub(super) fn usage(&mut self, usage: Usage) {
        self.usage = Some(usage);
    }

    /// Why it ended. The first reason counts.
    pub(super) fn finish(&mut self, reason: Cow<'_, str>) {
        if self.finish.is_none() && !reason.is_empty() {
            self.finish = Some(reason.into_owned());
        }
    }

    /// Whether the listener has heard anything of this attempt.
    pub(super) fn has_told(&self) -> bool {
        self.first_after.is_some()
    }

    /// Lets the listener catch up.
    pub(super) async fn flush(&mut self) -> Result<(), Failure> {
        if std::mem::take(&mut self.is_fresh) {
            self.sink.flush().await.map_err(|gone| Failure::new(FailureKind::Cancelled, gone.to_string()))?;
        }
        Ok(())
    }

    /// Tells what was kept. The answer is complete.
    pub(super) async fn end(mut self) -> Result<End, Failure> {
        let details = std::mem::take(&mut self.details);
        if !details.is_empty()
            && let Ok(details) = RawValue::from_string(format!("[{}]", details.join(",")))
        {
            self.tell(Event::Details(details));
        }
        for call in std::mem::take(&mut self.calls).finish() {
            self.tell(call);
        }
        let finish_reason = self.finish.take();
        if let Some(reason) = &finish_reason {
            self.tell(Event::Finish(Cow::Borrowed(reason)));
        }
        let usage = self.usage;
        if let Some(usage) = usage {
            self.tell(Event::Usage(usage));
        }
        self.flush().await?;
        Ok(End { usage, finish_reason, first_event_after: self.first_after })
    }

    #[inline]
    fn tell(&mut self, event: Event<'_>) {
        if self.first_after.is_none() {
            self.first_after = Some(self.begun.elapsed());
        }
        self.is_fresh = true;
        self.sink.event(event);
    }
}

/// What a complete answer came to.
pub(super) struct End {
    pub(super) usage: Option<Usage>,
    pub(super) finish_reason: Option<String>,
    pub(super) first_event_after: Option<Duration>,
}
