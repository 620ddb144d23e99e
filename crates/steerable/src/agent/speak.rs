//! The driver's step that calls the model and hears it out, or cuts it.

use serde_json::Value;

use super::course::{Cap, Spoken};
use super::history::weight;
use super::round::{Collector, EarlyEnd};
use super::run::{Driver, Heard, at};
use super::trace::{Cost, OpenSpan, attrs};
use super::turn::ContentMode;
use crate::chat::{Message, Usage};
use crate::model::{Failure, FailureKind, Request, Summary};
use crate::protocol::{EventKind, EventStatus, SpanKind, SpanStatus};

/// How a call of the model ended.
enum Outcome {
    Done(Result<Summary, Failure>),
    Interrupted,
    Cancelled,
}

impl Driver<'_> {
    /// Calls the model once.
    pub(super) async fn call_model(&mut self, cap: Cap, estimate: u64) {
        let round = self.course.round();
        self.dispatcher.set_round(round);
        self.held = None;
        let request = Request {
            messages: self.history.prompt(self.turn.system_prompt.as_deref()).into(),
            tools: self.specs.clone(),
            max_tokens: cap.max_tokens(),
            ..self.turn.request.clone()
        };
        let span = self.open_request(&request, round, estimate);
        let tracer = self.world.tracer.clone();
        let (outcome, said) = {
            let mut sink = Collector::new(&self.stage, &tracer, self.turn.content, round);
            let outcome = {
                let mut call = self.world.model.stream(&request, &mut sink);
                loop {
                    tokio::select! {
                        biased;
                        () = self.cancel.cancelled() => break Outcome::Cancelled,
                        heard = self.steering.hear(&mut self.course) => match heard {
                            Heard::Now => break Outcome::Interrupted,
                            Heard::Later => {}
                        },
                        () = at(self.soft_at) => {
                            self.soft_at = None;
                            // A listener that is gone is noticed by the call itself.
                            let _ = self.stage.soft_timeout().await;
                        }
                        done = &mut call => break Outcome::Done(done),
                    }
                }
            };
            (outcome, Said::of(sink))
        };
        let cost = said.cost(estimate);
        match outcome {
            Outcome::Done(Ok(summary)) => self.spoke(said, summary, cost, span).await,
            Outcome::Done(Err(failure)) => self.failed(&said, failure, span),
            Outcome::Interrupted => {
                self.cut(said.partial, cost, span).await;
                self.course.interrupted();
            }
            Outcome::Cancelled => {
                self.cut(said.partial, cost, span).await;
                self.course.cancelled(None);
            }
        }
        self.flush().await;
    }

    async fn spoke(&mut self, said: Said, summary: Summary, cost: Cost, span: OpenSpan) {
        let cost = summary.usage.map_or(cost, Cost::Counted);
        self.spend(cost);
        let finish = summary.finish_reason.as_deref().map_or(Value::Null, Value::from);
        let first =
            summary.first_event_after.map(|after| u64::try_from(after.as_millis()).unwrap_or(u64::MAX));
        let mut told = attrs([
            ("finishReason", finish),
            ("attempts", Value::from(summary.attempts)),
            ("firstTokenMs", first.map_or(Value::Null, Value::from)),
            ("toolCalls", Value::from(said.spoken.calls.len())),
        ]);
        told.extend(cost.attrs());
        span.end(SpanStatus::Ok, told.clone());
        told.insert("text".to_owned(), Value::from(said.spoken.text.as_str()));
        self.world.tracer.event(EventKind::LlmResponse, "llm.response", Some(EventStatus::Ok), told);
        let message = said.message.into_iter().collect();
        if self.say(message).await.is_err() {
            return;
        }
        if let Some(usage) = cost.counted() {
            self.history.measure(usage);
        }
        if self.turn.content == ContentMode::Final {
            self.held = Some((said.reasoning, said.spoken.text.clone()));
        }
        self.course.answered(Spoken { finish: summary.finish_reason, ..said.spoken });
    }

    fn failed(&mut self, said: &Said, failure: Failure, span: OpenSpan) {
        let details = attrs([
            ("kind", Value::from(failure.kind.word())),
            ("status", failure.status.map_or(Value::Null, Value::from)),
            ("error", Value::from(failure.message.as_str())),
        ]);
        span.end(SpanStatus::Error, details.clone());
        self.world.tracer.event(EventKind::Error, "llm.error", Some(EventStatus::Error), details);
        match said.end {
            Some(EarlyEnd::NobodyListens) => self.nobody_listens(),
            Some(EarlyEnd::TooLong) => {
                let failure =
                    Failure::new(FailureKind::InvalidRequest, "the model said more than 16 MiB in one round");
                self.course.fail(failure, Some("answer_too_long".to_owned()));
            }
            None => self.course.failed(failure),
        }
    }

    /// Keeps what was said until the call was cut. What it cost is not known, so it is guessed.
    async fn cut(&mut self, partial: Option<Message>, cost: Cost, span: OpenSpan) {
        self.spend(cost);
        span.end(SpanStatus::Cancelled, cost.attrs());
        // What could not be written has ended the turn already, and the cut ends it too.
        let _ = self.say(partial.into_iter().collect()).await;
    }

    pub(super) fn spend(&mut self, cost: Cost) {
        self.course.spent(cost.usage());
        if let Some(usage) = cost.counted() {
            self.usage = self.usage.plus(usage);
        }
    }

    /// The span of a call, and the event that it begins with.
    pub(super) fn open_request(&self, request: &Request, round: u64, estimate: u64) -> OpenSpan {
        let told = attrs([
            ("provider", Value::from(request.provider.word())),
            ("model", Value::from(request.model.as_str())),
            ("round", Value::from(round)),
            ("messages", Value::from(request.messages.len())),
            ("tools", Value::from(request.tools.len())),
            ("maxTokens", request.max_tokens.map_or(Value::Null, Value::from)),
            ("temperature", request.temperature.map_or(Value::Null, Value::from)),
            ("estimatedPromptTokens", Value::from(estimate)),
        ]);
        self.world.tracer.event(EventKind::LlmRequest, "llm.request", None, told.clone());
        OpenSpan::new(&self.world.tracer, "llm.request", SpanKind::Llm, Some(self.span.id()), told)
    }
}

/// What was heard of a round, taken out of its collector.
struct Said {
    message: Option<Message>,
    partial: Option<Message>,
    spoken: Spoken,
    reasoning: String,
    usage: Option<Usage>,
    end: Option<EarlyEnd>,
}

impl Said {
    fn of(sink: Collector<'_, '_>) -> Self {
        Self {
            message: sink.message(),
            partial: sink.partial(),
            usage: sink.usage,
            end: sink.end,
            reasoning: sink.reasoning,
            spoken: Spoken { text: sink.text, calls: sink.calls, finish: None },
        }
    }

    /// What the round cost, by the look of it if nobody has counted.
    fn cost(&self, prompt: u64) -> Cost {
        let thought = self.reasoning.len() as u64 / 4;
        let said = self.message.as_ref().map_or(0, weight);
        self.usage.map_or_else(|| Cost::guess(prompt, said.max(thought)), Cost::Counted)
    }
}
