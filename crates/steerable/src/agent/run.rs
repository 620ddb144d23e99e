//! The driver: does what the course says comes next, and tells it what came of that.

use std::sync::Arc;

use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::course::{Course, End, Next, Rules};
use super::dispatch::{Aside, Dispatcher};
use super::history::History;
use super::output::{Notice, Output};
use super::stage::Stage;
use super::structured;
use super::trace::{OpenSpan, attrs, usage_attrs};
use super::turn::{ContentMode, Ended, History as Past, Status, Steer, SteerMode, Turn, World};
use crate::chat::{Message, Role, ToolSpec, Usage};
use crate::model::{Event, Failure, FailureKind, Gone};
use crate::protocol::{EventKind, EventStatus, SpanKind, SpanStatus, TraceStatus};
use crate::store::{Seq, StoreError};

/// Runs a turn to its end, and finishes its trace.
///
/// Everything the model is shown is in the transcript before the next thing happens, so that a turn which is cut anywhere, even by
/// dropping this future, can be resumed. To end it properly, fire `cancel`: what was said so far is kept and open calls are answered.
pub async fn run(
    turn: Turn,
    world: World,
    steering: mpsc::Receiver<Steer>,
    cancel: CancellationToken,
    out: &mut dyn Output,
) -> Ended {
    let (dispatcher, asides) = Dispatcher::new(&turn, &world, &cancel);
    let opened = attrs([
        ("recordId", Value::from(turn.record.as_str())),
        ("provider", Value::from(turn.request.provider.word())),
        ("model", Value::from(turn.request.model.as_str())),
    ]);
    let span = OpenSpan::new(&world.tracer, "agent.run", SpanKind::Custom, None, opened);
    let rules = Rules {
        budgets: turn.budgets,
        max_tokens: turn.request.max_tokens,
        max_context_tokens: turn.max_context_tokens,
        schema: turn.request.response_schema.clone(),
    };
    let mut driver = Driver {
        specs: dispatcher.specs(),
        soft_at: turn.soft_timeout.map(|soft| Instant::now() + soft),
        course: Course::new(rules),
        history: History::default(),
        steering: Ear { steering: Some(steering), default: turn.steer_mode },
        stage: Stage::new(out),
        usage: Usage::default(),
        held: None,
        turn,
        world,
        dispatcher,
        asides,
        cancel,
        span,
    };
    let end = driver.go().await;
    driver.finish(end).await
}

pub(super) struct Driver<'o> {
    pub(super) turn: Turn,
    pub(super) world: World,
    pub(super) course: Course,
    pub(super) history: History,
    pub(super) steering: Ear,
    pub(super) cancel: CancellationToken,
    pub(super) stage: Stage<'o>,
    pub(super) dispatcher: Arc<Dispatcher>,
    pub(super) asides: mpsc::Receiver<Aside>,
    pub(super) specs: Vec<ToolSpec>,
    pub(super) usage: Usage,
    /// What the model thought and said last, while it is not known whether those were its last words.
    pub(super) held: Option<(String, String)>,
    pub(super) soft_at: Option<Instant>,
    pub(super) span: OpenSpan,
}

/// The transcript could not be written, which has ended the turn.
#[derive(Debug)]
pub(super) struct NotWritten;

/// Hears what people say to a turn that runs.
pub(super) struct Ear {
    steering: Option<mpsc::Receiver<Steer>>,
    default: SteerMode,
}

/// What somebody said, and whether it can wait.
pub(super) enum Heard {
    Later,
    Now,
}

impl Ear {
    /// Waits for somebody to say something; forever, if nobody can any more.
    pub(super) async fn hear(&mut self, course: &mut Course) -> Heard {
        while let Some(steering) = &mut self.steering {
            match steering.recv().await {
                Some(steer) => return self.take(steer, course),
                None => self.steering = None,
            }
        }
        std::future::pending().await
    }

    /// Takes what was said already.
    fn catch_up(&mut self, course: &mut Course) {
        while let Some(Ok(steer)) = self.steering.as_mut().map(mpsc::Receiver::try_recv) {
            self.take(steer, course);
        }
    }

    /// Takes what was said already, and nothing more.
    fn close(&mut self, course: &mut Course) {
        if let Some(steering) = &mut self.steering {
            steering.close();
        }
        self.catch_up(course);
    }

    fn take(&self, steer: Steer, course: &mut Course) -> Heard {
        match steer {
            Steer::Compact => {
                course.compact();
                Heard::Later
            }
            Steer::Say { content, mode } => {
                course.steered(content);
                match mode.unwrap_or(self.default) {
                    SteerMode::Boundary => Heard::Later,
                    SteerMode::Interrupt => Heard::Now,
                }
            }
        }
    }
}

/// Waits until a moment that may never come.
pub(super) async fn at(moment: Option<Instant>) {
    match moment {
        Some(moment) => tokio::time::sleep_until(moment).await,
        None => std::future::pending().await,
    }
}

impl Driver<'_> {
    async fn go(&mut self) -> End {
        self.begin().await;
        loop {
            self.steering.catch_up(&mut self.course);
            if self.cancel.is_cancelled() {
                self.course.cancelled(None);
            }
            let estimate = self.estimate();
            match self.course.next(estimate) {
                Next::Model(cap) => self.call_model(cap, estimate).await,
                Next::Tools(calls) => self.act(calls).await,
                Next::Compact => self.compact(estimate).await,
                Next::RoundEnd(round) => self.notice(Notice::RoundEnd { round }).await,
                Next::Hear(said) => self.heard(said).await,
                Next::Repair(problem) => {
                    self.log("structured_output.misfit", attrs([("problem", Value::from(problem.as_str()))]));
                    // What could not be written has ended the turn.
                    let _ = self.say(vec![Message::text(Role::User, structured::repair(&problem))]).await;
                }
                Next::End(end) => {
                    // From now on whoever speaks is told that nobody hears it; who was told otherwise is heard.
                    self.steering.close(&mut self.course);
                    if !self.course.heard_after_all(&end) {
                        return end;
                    }
                }
            }
        }
    }

    /// Reads what there is, and writes what is new.
    async fn begin(&mut self) {
        let (tracer, turn) = (&self.world.tracer, &mut self.turn);
        let begun = attrs([
            ("recordId", Value::from(turn.record.as_str())),
            ("newMessages", Value::from(turn.messages.len())),
            ("tools", Value::from(self.specs.len())),
        ]);
        tracer.event(EventKind::Lifecycle, "turn.begin", None, begun);
        let messages = std::mem::take(&mut turn.messages);
        if turn.history == Past::Resume {
            match self.world.store.resume(&turn.record).await {
                Ok(stored) => self.history = History::resumed(stored),
                Err(error) => return self.storage_failed(&error),
            }
        }
        if self.say(messages).await.is_ok() && !self.history.can_go_on() {
            let message = "there is nothing to answer: messages is empty or ends with an answer, \
                           and so does what is resumed";
            let failure = Failure::new(FailureKind::InvalidRequest, message);
            self.course.fail(failure, Some("nothing_to_answer".to_owned()));
        }
    }

    /// What the person said while the turn ran.
    async fn heard(&mut self, said: Vec<String>) {
        for content in said {
            let details = attrs([("content", Value::from(content.as_str()))]);
            self.world.tracer.event(EventKind::Lifecycle, "steer", None, details);
            if self.say(vec![Message::text(Role::User, content.as_str())]).await.is_err() {
                return;
            }
            self.notice(Notice::Steer { content: &content }).await;
        }
    }

    /// Writes messages to the transcript, and shows them to the model from now on. Not before they are written.
    pub(super) async fn say(&mut self, messages: Vec<Message>) -> Result<(), NotWritten> {
        if messages.is_empty() {
            return Ok(());
        }
        match self.world.store.append(&self.turn.record, &messages).await {
            Ok(last) => {
                let before = messages.len() as u64;
                for (at, message) in (1..).zip(messages) {
                    self.history.push(Seq((last.0 + at).saturating_sub(before)), message);
                }
                Ok(())
            }
            Err(error) => {
                self.storage_failed(&error);
                Err(NotWritten)
            }
        }
    }

    pub(super) fn storage_failed(&mut self, error: &StoreError) {
        let failure = Failure::new(FailureKind::Unknown, format!("storage: {error}"));
        self.course.fail(failure, Some("storage".to_owned()));
    }

    pub(super) async fn notice(&mut self, notice: Notice<'_>) {
        self.stage.get().await.notice(notice);
        self.flush().await;
    }

    /// Passes on what is buffered. A listener that does not listen is waited for, unless the turn is cancelled.
    pub(super) async fn flush(&mut self) {
        let flushed = tokio::select! {
            biased;
            flushed = self.stage.flush() => flushed,
            () = self.cancel.cancelled() => Ok(()),
        };
        if let Err(Gone) = flushed {
            self.nobody_listens();
        }
    }

    pub(super) fn nobody_listens(&mut self) {
        self.course.cancelled(Some("nobody_listens".to_owned()));
    }

    pub(super) fn estimate(&self) -> u64 {
        self.history.estimate(self.turn.system_prompt.as_deref(), &self.specs)
    }

    pub(super) fn log(&self, name: &str, details: serde_json::Map<String, Value>) {
        self.world.tracer.event(EventKind::Log, name, None, details);
    }

    async fn finish(mut self, end: End) -> Ended {
        let word = match &end {
            End::Completed { .. } => "not_made: the turn has ended",
            End::Exhausted(_) => "budget_exhausted",
            End::Cancelled { .. } => "cancelled",
            End::Failed { .. } => "not_made: the turn has failed",
        };
        // Every call has a result, whatever ended the turn, so that the transcript can always be gone on with.
        self.answer_open_calls(word).await;
        let tracer = self.world.tracer.clone();
        let usage = self.usage;
        let (status, reason, output) = match end {
            End::Completed { reason, output } => {
                self.say_last_words().await;
                let details = attrs([("reason", reason.as_deref().map_or(Value::Null, Value::from))]);
                tracer.event(EventKind::Completion, "turn.completed", Some(EventStatus::Ok), details);
                (Status::Completed, reason, output)
            }
            End::Exhausted(exhausted) => {
                let details = attrs([
                    ("budget", Value::from(exhausted.budget.word())),
                    ("limit", Value::from(exhausted.limit)),
                    ("used", Value::from(exhausted.used)),
                ]);
                tracer.event(EventKind::Budget, "budget.exhausted", Some(EventStatus::Warning), details);
                self.notice(Notice::BudgetExhausted(exhausted)).await;
                (Status::BudgetExhausted, Some(exhausted.budget.word().to_owned()), None)
            }
            End::Cancelled { reason } => {
                let details = attrs([("reason", reason.as_deref().map_or(Value::Null, Value::from))]);
                tracer.event(EventKind::Lifecycle, "turn.cancelled", Some(EventStatus::Warning), details);
                (Status::Cancelled, reason, None)
            }
            End::Failed { failure, reason } => {
                let details = attrs([
                    ("kind", Value::from(failure.kind.word())),
                    ("message", Value::from(failure.message.as_str())),
                ]);
                tracer.event(EventKind::Error, "turn.failed", Some(EventStatus::Error), details);
                (Status::Failed(failure), reason, None)
            }
        };
        let (span_status, trace_status, error) = match &status {
            Status::Completed => (SpanStatus::Ok, TraceStatus::Completed, None),
            Status::BudgetExhausted => (SpanStatus::Ok, TraceStatus::BudgetExhausted, None),
            Status::Cancelled => (SpanStatus::Cancelled, TraceStatus::Cancelled, None),
            Status::Failed(failure) => (SpanStatus::Error, TraceStatus::Error, Some(failure.message.clone())),
        };
        let mut told = usage_attrs(usage);
        told.insert("rounds".to_owned(), Value::from(self.course.round()));
        self.span.end(span_status, told);
        tracer.finish(trace_status, error, usage).await;
        Ended { status, reason, usage, output }
    }

    /// The texts of the last round, if only those are wanted.
    async fn say_last_words(&mut self) {
        let (ContentMode::Final, Some((thought, said))) = (self.turn.content, self.held.take()) else {
            return;
        };
        {
            let mut out = self.stage.get().await;
            if !thought.is_empty() {
                out.model(Event::Reasoning(thought.into()));
            }
            if !said.is_empty() {
                out.model(Event::Delta(said.into()));
            }
        }
        self.flush().await;
    }
}
