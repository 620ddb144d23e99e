//! One run, as its handler sees it: the work order, the way to say what is done, and the sign to stop.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{mpsc, oneshot, watch};

use super::ask::{Answered, By, Question};
use super::gate::Gate;
use super::output::{HostGone, Output};
use super::terms::{Failure, Identity};
use crate::protocol::{
    AgentEvent, Answer, Artifact, Ask, AskAction, AskDecision, Counts, Envelope, ErrorCode, EventKind,
    Feature, Mode, Offer, RunId, Timestamp, Usage, UsageReport, WorkOrder,
};

/// The most questions that may wait for an answer at the same time.
pub const MAX_QUESTIONS: usize = 256;

/// The most things said by the user that may wait to be looked at.
pub(super) const MAX_STEERS: usize = 64;

/// The most artifacts of one receipt.
pub const MAX_ARTIFACTS: usize = 4096;

/// How much of many events is gathered before it leaves.
const GATHERED: usize = 64 * 1024;

/// A run under way. Clones are the same run.
#[derive(Clone)]
pub struct Run {
    pub(super) inner: Arc<Inner>,
}

/// Why an event was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EmitError {
    /// The run has ended; nothing may follow its end.
    #[error("the run has ended")]
    Ended,
    /// The host has closed its end.
    #[error("the host is gone")]
    HostGone,
}

impl From<HostGone> for EmitError {
    fn from(HostGone: HostGone) -> Self {
        Self::HostGone
    }
}

impl From<EmitError> for Failure {
    fn from(error: EmitError) -> Self {
        Self::new(error.to_string(), ErrorCode::StreamClosed)
    }
}

pub(super) struct Inner {
    pub(super) id: RunId,
    pub(super) order: WorkOrder,
    pub(super) mode: Mode,
    pub(super) started_at: Timestamp,
    offer: Option<Offer>,
    output: Arc<Output>,
    gate: Gate,
    cancel: watch::Sender<Option<String>>,
    steers: (mpsc::Sender<String>, tokio::sync::Mutex<mpsc::Receiver<String>>),
    questions: Mutex<Questions>,
    notes: Mutex<Notes>,
    trace_events: usize,
    /// Looked at and set only while the output is held, so that nothing can follow the end.
    ended: AtomicBool,
}

/// What waits for an answer.
struct Questions {
    waiting: HashMap<String, (Question, oneshot::Sender<Answered>)>,
    asked: u64,
    host: Listening,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Listening {
    Yes,
    No,
}

/// What the receipt will say.
pub(super) struct Notes {
    pub(super) spent: Usage,
    pub(super) artifacts: Vec<Artifact>,
    /// The first events, separated by commas.
    pub(super) trace: Vec<u8>,
    kept: usize,
}

impl Run {
    pub(super) fn new(
        run: crate::protocol::Run,
        identity: &Identity,
        output: Arc<Output>,
        trace_events: usize,
    ) -> Self {
        let crate::protocol::Run { id, order, outrigger } = run;
        let asked = order.config.vendor("abp", "mode").and_then(|mode| mode.parse::<String>().ok());
        let mode = match asked.as_deref() {
            Some("passthrough") => Mode::Passthrough,
            Some("mapped") => Mode::Mapped,
            Some(_) | None => identity.mode.clone(),
        };
        let gate = Gate::new(&order, &identity.backend.id);
        let questions = Questions { waiting: HashMap::new(), asked: 0, host: Listening::Yes };
        let notes = Notes { spent: Usage::default(), artifacts: Vec::new(), trace: Vec::new(), kept: 0 };
        let (say, said) = mpsc::channel(MAX_STEERS);
        let inner = Inner {
            id,
            order,
            mode,
            started_at: Timestamp::now(),
            offer: outrigger,
            output,
            gate,
            cancel: watch::Sender::new(None),
            steers: (say, tokio::sync::Mutex::new(said)),
            questions: Mutex::new(questions),
            notes: Mutex::new(notes),
            trace_events,
            ended: AtomicBool::new(false),
        };
        Self { inner: Arc::new(inner) }
    }

    /// Its id.
    pub fn id(&self) -> &RunId {
        &self.inner.id
    }

    /// What is to be done. What the host left out is empty.
    pub fn order(&self) -> &WorkOrder {
        &self.inner.order
    }

    /// `passthrough` when the order says so (`config.vendor.abp.mode`), else the identity's.
    pub fn mode(&self) -> &Mode {
        &self.inner.mode
    }

    /// Whether the host knows an extension.
    pub fn offers(&self, feature: &Feature) -> bool {
        self.inner.offer.as_ref().is_some_and(|offer| offer.has(feature))
    }

    /// Why it was cancelled, if it was.
    pub fn cancel_reason(&self) -> Option<String> {
        self.inner.cancel.borrow().clone()
    }

    /// Waits for the next thing that the user says while it works; none when there will be nothing more. Only a sidecar whose
    /// [`Identity::takes`] has [`Taking::Steer`](crate::protocol::Taking::Steer) is told such things.
    pub async fn steered(&self) -> Option<String> {
        self.inner.steers.1.lock().await.recv().await
    }

    /// The user said something; false when too much waits already.
    pub(super) fn steer(&self, text: String) -> bool {
        self.inner.steers.0.try_send(text).is_ok()
    }

    /// Waits until it is cancelled, and says why.
    pub async fn cancelled(&self) -> String {
        let mut cancel = self.inner.cancel.subscribe();
        match cancel.wait_for(Option::is_some).await {
            Ok(reason) => reason.clone().unwrap_or_default(),
            // The sender lives as long as we do.
            Err(_) => String::new(),
        }
    }

    /// Sends an event. It has left when this returns; a slow host makes it wait.
    ///
    /// # Errors
    /// When the run has ended or the host is gone.
    pub async fn emit(&self, event: AgentEvent<'_>) -> Result<(), EmitError> {
        self.emit_all([event]).await
    }

    /// Sends many events with few writes.
    ///
    /// # Errors
    /// When the run has ended or the host is gone.
    pub async fn emit_all<'e>(
        &self,
        events: impl IntoIterator<Item = AgentEvent<'e>>,
    ) -> Result<(), EmitError> {
        let Inner { output, id, ended, trace_events, .. } = &*self.inner;
        let mut sink = output.begin().await?;
        if ended.load(Ordering::Acquire) {
            return Err(EmitError::Ended);
        }
        for event in events {
            if *trace_events > 0 {
                self.notes().keep(&event, *trace_events);
            }
            sink.push(|line| Envelope::Event { ref_id: Cow::Borrowed(id.as_str()), event }.write(line));
            if sink.waiting() >= GATHERED {
                output.finish(sink).await?;
                sink = output.begin().await?;
                if ended.load(Ordering::Acquire) {
                    return Err(EmitError::Ended);
                }
            }
        }
        Ok(output.finish(sink).await?)
    }

    /// Counts what was spent: in the receipt, and for the host at once if it knows the extension.
    ///
    /// # Errors
    /// When the run has ended or the host is gone.
    pub async fn usage(&self, report: UsageReport) -> Result<(), EmitError> {
        self.notes().count(&report);
        match self.offers(&Feature::Usage) {
            true => self.emit(AgentEvent::now(EventKind::Usage(report))).await,
            false => Ok(()),
        }
    }

    /// Adds a file to the receipt; its path is relative to the root of the workspace. Beyond [`MAX_ARTIFACTS`] it is left out.
    pub fn artifact(&self, kind: impl Into<String>, path: impl Into<String>) {
        let mut notes = self.notes();
        if notes.artifacts.len() < MAX_ARTIFACTS {
            notes.artifacts.push(Artifact { kind: kind.into(), path: path.into() });
        }
    }

    /// Asks before doing. The host answers if it takes questions; else the policy of the work order does, and what needs a
    /// person's approval is denied.
    ///
    /// # Errors
    /// When the run has ended or the host is gone.
    pub async fn ask(&self, question: Question) -> Result<Answered, EmitError> {
        if let Some(reason) = self.cancel_reason() {
            return Ok(cancelled(reason));
        }
        let (id, answer) = {
            let mut questions = self.questions();
            let feature = match question.action {
                AskAction::Question => Feature::Question,
                _ => Feature::Ask,
            };
            let deaf = questions.host == Listening::No || !self.offers(&feature);
            if deaf || questions.waiting.len() >= MAX_QUESTIONS {
                drop(questions);
                return Ok(self.inner.gate.judge(&question));
            }
            questions.asked += 1;
            let id = format!("ask-{}", questions.asked);
            let (give, answer) = oneshot::channel();
            questions.waiting.insert(id.clone(), (question.clone(), give));
            (id, answer)
        };
        let text = |text: &Option<String>| text.clone().map(Cow::Owned);
        let message = Envelope::Ask(Box::new(Ask {
            ref_id: Cow::Borrowed(self.inner.id.as_str()),
            id: Cow::Owned(id),
            action: question.action.clone(),
            tool_name: text(&question.tool_name),
            input: question.input.clone(),
            path: text(&question.path),
            host: text(&question.host),
            tool_use_id: text(&question.tool_use_id),
            needs: question.needs.clone(),
        }));
        self.send(&message).await?;
        // Whoever is waited for is answered by the host, by a cancel or by the end of the input; else the run is over.
        answer.await.map_err(|_| EmitError::Ended)
    }

    /// The host answered a question; false when nobody asked it.
    pub(super) fn answer(&self, answer: Answer) -> bool {
        let Answer { ref_id, id, decision, reason, content } = answer;
        if ref_id != self.inner.id.as_str() {
            return false;
        }
        let waiting = self.questions().waiting.remove(&id);
        let Some((_, give)) = waiting else { return false };
        let _ = give.send(Answered { decision, reason, by: By::Host, content });
        true
    }

    /// The host has closed our input: nobody will answer any more, so the policy does.
    pub(super) fn host_is_silent(&self) {
        let waiting = {
            let mut questions = self.questions();
            questions.host = Listening::No;
            std::mem::take(&mut questions.waiting)
        };
        for (question, give) in waiting.into_values() {
            let _ = give.send(self.inner.gate.judge(&question));
        }
    }

    pub(super) fn cancel(&self, reason: String) {
        self.inner.cancel.send_replace(Some(reason.clone()));
        for (_, give) in std::mem::take(&mut self.questions().waiting).into_values() {
            let _ = give.send(cancelled(reason.clone()));
        }
    }

    /// Sends the last message of the run. Nothing can follow it.
    pub(super) async fn end(&self, message: &Envelope<'_>) -> Result<(), HostGone> {
        let mut sink = self.inner.output.begin().await?;
        self.inner.ended.store(true, Ordering::Release);
        sink.push(|line| message.write(line));
        self.inner.output.finish(sink).await
    }

    pub(super) fn notes(&self) -> MutexGuard<'_, Notes> {
        self.inner.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn send(&self, message: &Envelope<'_>) -> Result<(), EmitError> {
        let mut sink = self.inner.output.begin().await?;
        if self.inner.ended.load(Ordering::Acquire) {
            return Err(EmitError::Ended);
        }
        sink.push(|line| message.write(line));
        Ok(self.inner.output.finish(sink).await?)
    }

    fn questions(&self) -> MutexGuard<'_, Questions> {
        self.inner.questions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Notes {
    /// Adds a report to the sums. What nobody counted stays unknown.
    fn count(&mut self, report: &UsageReport) {
        let more = |sum: Option<u64>, told: Option<u64>| match (report.counts, told) {
            (_, None) => sum,
            (Counts::Increments, Some(told)) => Some(sum.unwrap_or(0).saturating_add(told)),
            (Counts::Totals, Some(told)) => sum.max(Some(told)),
        };
        let (spent, told) = (self.spent, report.usage);
        let cost = match (report.counts, spent.estimated_cost_usd, told.estimated_cost_usd) {
            (_, sum, None) => sum,
            (Counts::Increments, sum, Some(told)) => Some(sum.unwrap_or(0.0) + told),
            (Counts::Totals, sum, Some(told)) => Some(sum.unwrap_or(0.0).max(told)),
        };
        self.spent = Usage {
            input_tokens: more(spent.input_tokens, told.input_tokens),
            output_tokens: more(spent.output_tokens, told.output_tokens),
            cache_read_tokens: more(spent.cache_read_tokens, told.cache_read_tokens),
            cache_write_tokens: more(spent.cache_write_tokens, told.cache_write_tokens),
            request_units: more(spent.request_units, told.request_units),
            // JSON has no infinity.
            estimated_cost_usd: cost.filter(|cost| cost.is_finite()),
        };
    }

    fn keep(&mut self, event: &AgentEvent<'_>, most: usize) {
        if self.kept >= most {
            return;
        }
        if self.kept > 0 {
            self.trace.push(b',');
        }
        event.write(&mut self.trace);
        self.kept += 1;
    }
}

fn cancelled(reason: String) -> Answered {
    Answered { decision: AskDecision::Deny, reason, by: By::Cancel, content: None }
}

impl std::fmt::Debug for Run {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Run").field("id", &self.inner.id).finish_non_exhaustive()
    }
}
