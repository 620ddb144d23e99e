//! A plain stream: one call of a model, passed on as it comes.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::outlet::Outlet;
use super::runtime::Runtime;
use super::streams::Place;
use crate::chat::BoxFuture;
use crate::model::{Event, Failure, FailureKind, Gone, Request, Sink, Summary};
use crate::protocol::{EventKind, EventStatus, Failed, SpanKind, SpanStatus, Terminal, TraceStatus};
use crate::store::{SpanId, Tracer};

/// Runs a stream to its end, and tells it.
pub(super) async fn run(
    runtime: Arc<Runtime>,
    place: Place,
    request: Request,
    tracer: Tracer,
    mut outlet: Outlet,
) {
    let span = begin(&tracer, &request);
    let ended = {
        let mut sink = Traced { outlet: &mut outlet, tracer: &tracer };
        tokio::select! {
            biased;
            () = place.live.cancel.cancelled() => None,
            ended = runtime.client.stream(&request, &mut sink) => Some(ended),
        }
    };
    match ended {
        None => {
            finish(&tracer, span, SpanStatus::Cancelled, TraceStatus::Cancelled, None, None).await;
            outlet.end(&place.live, &Terminal::Cancelled).await;
        }
        Some(Ok(summary)) => {
            finish(&tracer, span, SpanStatus::Ok, TraceStatus::Completed, Some(&summary), None).await;
            outlet.end(&place.live, &Terminal::Done).await;
        }
        Some(Err(failure)) => {
            let failure = outlet.take_problem().unwrap_or(failure);
            runtime.log.warning("steerable.stream", format_args!("{}: {}", place.live.id, failure.message));
            finish(&tracer, span, span_status(&failure), TraceStatus::Error, None, Some(&failure)).await;
            outlet.end(&place.live, &Terminal::Failed(failed(&failure, None))).await;
        }
    }
}

/// A failure as a terminal tells it.
pub(super) fn failed<'f>(failure: &'f Failure, turn: Option<(&'f str, &'f str)>) -> Failed<'f> {
    Failed {
        kind: failure.kind.word(),
        message: &failure.message,
        status: failure.status,
        retry_after: failure.retry_after,
        retryable: failure.is_retryable(),
        turn,
    }
}

/// Passes events on and remembers retries.
struct Traced<'t> {
    outlet: &'t mut Outlet,
    tracer: &'t Tracer,
}

impl Sink for Traced<'_> {
    fn event(&mut self, event: Event<'_>) {
        if let Event::Retry { attempt, delay, error } = &event {
            let details = json!({
                "attempt": attempt,
                "delayMs": millis(*delay),
                "kind": error.kind.word(),
                "error": error.message,
            });
            self.tracer.event(EventKind::Retry, "llm.retry", Some(EventStatus::Warning), members(details));
        }
        self.outlet.event(event);
    }

    fn flush(&mut self) -> BoxFuture<'_, Result<(), Gone>> {
        Sink::flush(self.outlet)
    }
}

fn begin(tracer: &Tracer, request: &Request) -> SpanId {
    let told = members(json!({
        "provider": request.provider.word(),
        "model": request.model,
        "messages": request.messages.len(),
        "tools": request.tools.len(),
        "maxTokens": request.max_tokens,
        "temperature": request.temperature,
    }));
    tracer.event(EventKind::LlmRequest, "llm.request", None, told.clone());
    tracer.span("llm.request", SpanKind::Llm, None, told)
}

async fn finish(
    tracer: &Tracer,
    span: SpanId,
    span_status: SpanStatus,
    status: TraceStatus,
    summary: Option<&Summary>,
    failure: Option<&Failure>,
) {
    let usage = summary.and_then(|summary| summary.usage);
    if let Some(summary) = summary {
        let told = members(json!({
            "finishReason": summary.finish_reason,
            "attempts": summary.attempts,
            "firstTokenMs": summary.first_event_after.map(millis),
            "promptTokens": usage.map(|usage| usage.prompt_tokens),
            "completionTokens": usage.map(|usage| usage.completion_tokens),
            "totalTokens": usage.map(|usage| usage.total_tokens),
            "cachedPromptTokens": usage.map(|usage| usage.cached_prompt_tokens),
        }));
        tracer.event(EventKind::LlmResponse, "llm.response", Some(EventStatus::Ok), told.clone());
        tracer.end_span(span, span_status, told);
    } else if let Some(failure) = failure {
        let told = members(json!({
            "kind": failure.kind.word(),
            "status": failure.status,
            "error": failure.message,
        }));
        tracer.event(EventKind::Error, "llm.error", Some(EventStatus::Error), told.clone());
        tracer.end_span(span, span_status, told);
    } else {
        tracer.end_span(span, span_status, Map::new());
    }
    let error = failure.map(|failure| failure.message.clone());
    tracer.finish(status, error, usage.unwrap_or_default()).await;
}

fn span_status(failure: &Failure) -> SpanStatus {
    match failure.kind {
        FailureKind::Timeout => SpanStatus::Timeout,
        FailureKind::Cancelled => SpanStatus::Cancelled,
        FailureKind::Transport
        | FailureKind::RateLimit
        | FailureKind::ContextOverflow
        | FailureKind::Auth
        | FailureKind::InvalidRequest
        | FailureKind::Server
        | FailureKind::Unknown => SpanStatus::Error,
    }
}

/// The members of an object that are not null.
fn members(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(members) => members.into_iter().filter(|(_, value)| !value.is_null()).collect(),
        _ => Map::new(),
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
