//! How a run is recorded while it goes on. Nothing here waits for the storage or fails: a run is worth more than its record,
//! so what does not fit is counted and left out.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use serde_json::{Map, Value};

use super::id::fresh_id;
use super::payload;
use super::{Backend, Shared, redact};
use crate::chat::Usage;
use crate::protocol::{
    EventKind, EventStatus, Span, SpanKind, SpanStatus, Timestamp, Trace, TraceEvent, TraceStatus,
};

/// How many spans and events a trace has at most; one event more says how many did not fit.
pub const RECORD_LIMIT: usize = 10_000;

/// How many bytes the spans and events of a trace have at most, roughly.
pub const TRACE_BYTES: usize = 16 << 20;

/// How many characters the reason of a failure has at most.
const ERROR_CHARS: usize = 2_048;

/// Whose run it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TraceHead {
    /// The stream that the run is.
    pub stream_id: Option<String>,
    /// Whose it is.
    pub user_id: Option<String>,
    /// The chat it belongs to.
    pub chat_id: Option<String>,
    /// The session it belongs to.
    pub session_id: Option<String>,
    /// The model it uses.
    pub model_id: Option<String>,
}

/// The record of one run. Copies record the same run. When the last copy goes before [`Tracer::finish`] was called, the
/// run was cut off, and its trace says `cancelled`.
#[derive(Clone, Debug)]
pub struct Tracer(Arc<Run>);

/// A span of a run. One that did not fit into the trace is like any other to its owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SpanId(u32);

impl Tracer {
    pub(super) fn begin(store: Arc<Shared>, head: TraceHead) -> Self {
        let now = SystemTime::now();
        let trace = Trace {
            trace_id: fresh_id("trace_"),
            user_id: head.user_id,
            chat_id: head.chat_id,
            session_id: head.session_id,
            assistant_message_id: None,
            status: TraceStatus::Running,
            duration_ms: None,
            had_error: false,
            error_message: None,
            event_count: 0,
            span_count: 0,
            total_tokens: None,
            model_id: head.model_id,
            started_at_ms: Some(millis(now)),
            created_at: Timestamp::of(now),
            updated_at: Timestamp::of(now),
        };
        let number = store.next_trace.fetch_add(1, Ordering::Relaxed);
        store.active.fetch_add(1, Ordering::Relaxed);
        let id = trace.trace_id.clone();
        let begin = TraceOp::Begin { number, stream_id: head.stream_id, trace: trace.clone() };
        let is_begun = store.record(begin.clone(), payload::ROW_BYTES);
        let state = State {
            trace,
            spans: 0,
            events: 0,
            bytes: 0,
            open: BTreeMap::new(),
            dropped: Dropped { spans: 0, events: 0 },
            begin: (!is_begun).then_some(begin),
            phase: Phase::Live,
        };
        Self(Arc::new(Run {
            store,
            number,
            id,
            began: Instant::now(),
            began_ms: millis(now),
            state: Mutex::new(state),
        }))
    }

    /// The id of the trace.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.0.id
    }

    /// Something begins that takes time. It must be ended with [`Tracer::end_span`]; what is still open when the run ends
    /// was cut off.
    pub fn span(
        &self,
        name: &str,
        kind: SpanKind,
        parent: Option<SpanId>,
        attrs: Map<String, Value>,
    ) -> SpanId {
        let run = &*self.0;
        let (attrs, bytes) = payload::fit(attrs);
        let mut state = run.state();
        if !state.admits(bytes) {
            state.dropped.spans += 1;
            return SpanId(0);
        }
        let number = state.spans + 1;
        let span = Span {
            span_id: span_name(SpanId(number)),
            trace_id: Some(run.id.clone()),
            parent_span_id: parent.filter(|parent| parent.0 != 0).map(span_name),
            name: payload::name(name),
            kind,
            start_ms: run.now_ms(),
            end_ms: None,
            duration_ms: None,
            status: SpanStatus::Running,
            attrs,
        };
        let op = TraceOp::Span { number: run.number, ordinal: number, span: span.clone() };
        if !run.store.record(op, bytes) {
            state.dropped.spans += 1;
            return SpanId(0);
        }
        state.spans = number;
        state.bytes += bytes;
        state.open.insert(number, OpenSpan { span, began: Instant::now() });
        SpanId(number)
    }

    /// What began ends. `attrs` are added to those it began with. Ending twice changes nothing.
    pub fn end_span(&self, id: SpanId, status: SpanStatus, attrs: Map<String, Value>) {
        let run = &*self.0;
        let (attrs, bytes) = payload::fit(attrs);
        let mut state = run.state();
        let Some(open) = state.open.remove(&id.0) else { return };
        state.trace.had_error |= matches!(status, SpanStatus::Error | SpanStatus::Timeout);
        let mut span = open.ended(status);
        if state.bytes + bytes <= TRACE_BYTES {
            span.attrs.extend(attrs);
            state.bytes += bytes;
        }
        // A queue that is full now is emptied later: the end of a span is kept until then.
        if !run.store.record(run.span_op(id.0, span.clone()), bytes) {
            state.open.insert(id.0, OpenSpan { span, began: open.began });
        }
    }

    /// Something happens.
    pub fn event(
        &self,
        kind: EventKind,
        name: &str,
        status: Option<EventStatus>,
        details: Map<String, Value>,
    ) {
        let run = &*self.0;
        let (details, bytes) = payload::fit(details);
        let mut state = run.state();
        state.trace.had_error |= status == Some(EventStatus::Error);
        if !state.admits(bytes) {
            state.dropped.events += 1;
            return;
        }
        let event = run.event(state.events, kind, payload::name(name), status, details);
        if run.store.record(TraceOp::Event { number: run.number, event }, bytes) {
            state.events += 1;
            state.bytes += bytes;
        } else {
            state.dropped.events += 1;
        }
    }

    /// The run is over. When this returns, the trace is stored, unless the storage failed, which
    /// [`Store::health`](super::Store::health) then says. Only the first end counts.
    pub async fn finish(&self, status: TraceStatus, error: Option<String>, usage: Usage) {
        let Some(last) = self.0.end(status, error, Some(usage)) else { return };
        match &self.0.store.backend {
            Backend::Memory(memory) => {
                let mut memory = super::lock(memory);
                for op in last {
                    memory.record(op, payload::ROW_BYTES);
                }
            }
            Backend::File(file) => {
                // Whoever waits here may be dropped; what is in the queue is written all the same.
                let mut last = last.into_iter();
                let refused = last.by_ref().find(|op| !file.record(op.clone(), payload::ROW_BYTES));
                file.finish_trace(refused.into_iter().chain(last).collect()).await;
            }
        }
    }
}

/// One change of a trace, as it goes to the storage.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum TraceOp {
    /// It begins.
    Begin { number: u64, stream_id: Option<String>, trace: Trace },
    /// A span, as it is now.
    Span { number: u64, ordinal: u32, span: Span },
    /// An event.
    Event { number: u64, event: TraceEvent },
    /// The trace as it ended.
    End { number: u64, trace: Trace },
}

/// What is known about a run while it goes on.
#[derive(Debug)]
struct Run {
    store: Arc<Shared>,
    number: u64,
    id: String,
    /// Durations are taken from this clock, which never goes back.
    began: Instant,
    began_ms: u64,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    trace: Trace,
    spans: u32,
    events: u64,
    bytes: usize,
    open: BTreeMap<u32, OpenSpan>,
    dropped: Dropped,
    /// The beginning, if there was no room for it when it happened.
    begin: Option<TraceOp>,
    phase: Phase,
}

#[derive(Debug)]
struct OpenSpan {
    /// Open still, or ended but not yet recorded as that.
    span: Span,
    began: Instant,
}

#[derive(Debug)]
struct Dropped {
    spans: u64,
    events: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Live,
    Over,
}

impl Run {
    fn state(&self) -> MutexGuard<'_, State> {
        // Every change below is whole before anything in it can panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now_ms(&self) -> u64 {
        self.began_ms + self.elapsed_ms()
    }

    fn elapsed_ms(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn span_op(&self, ordinal: u32, span: Span) -> TraceOp {
        TraceOp::Span { number: self.number, ordinal, span }
    }

    fn event(
        &self,
        sequence: u64,
        kind: EventKind,
        name: String,
        status: Option<EventStatus>,
        details: Map<String, Value>,
    ) -> TraceEvent {
        TraceEvent {
            id: None,
            trace_id: self.id.clone(),
            kind,
            name,
            sequence,
            timestamp_ms: self.now_ms(),
            duration_ms: None,
            status,
            payload: (!details.is_empty()).then_some(details),
            created_at: None,
        }
    }

    /// The last changes of the trace; `None` if it had ended already.
    fn end(&self, status: TraceStatus, error: Option<String>, usage: Option<Usage>) -> Option<Vec<TraceOp>> {
        let mut state = self.state();
        if state.phase == Phase::Over {
            return None;
        }
        state.phase = Phase::Over;
        self.store.active.fetch_sub(1, Ordering::Relaxed);
        let mut last: Vec<TraceOp> = state.begin.take().into_iter().collect();
        for (ordinal, open) in std::mem::take(&mut state.open) {
            last.push(self.span_op(ordinal, open.ended(SpanStatus::Cancelled)));
        }
        if state.dropped.spans + state.dropped.events > 0 {
            let mut details = Map::new();
            details.insert("spans".to_owned(), state.dropped.spans.into());
            details.insert("events".to_owned(), state.dropped.events.into());
            let status = Some(EventStatus::Warning);
            let event = self.event(state.events, EventKind::Log, "trace.dropped".to_owned(), status, details);
            state.events += 1;
            last.push(TraceOp::Event { number: self.number, event });
        }
        let trace = &state.trace;
        let trace = Trace {
            had_error: trace.had_error || status == TraceStatus::Error,
            status,
            duration_ms: Some(self.elapsed_ms()),
            error_message: error.map(|error| cut(&error)),
            event_count: state.events,
            span_count: state.spans.into(),
            total_tokens: usage.map(|usage| usage.total_tokens),
            updated_at: Timestamp::now().max(trace.created_at.clone()),
            ..trace.clone()
        };
        last.push(TraceOp::End { number: self.number, trace });
        Some(last)
    }
}

impl State {
    fn admits(&self, bytes: usize) -> bool {
        let records = u64::from(self.spans) + self.events;
        self.phase == Phase::Live
            && usize::try_from(records).is_ok_and(|records| records < RECORD_LIMIT)
            && self.bytes + bytes <= TRACE_BYTES
    }
}

impl OpenSpan {
    /// The span as it ended: now, unless it ended before.
    fn ended(&self, status: SpanStatus) -> Span {
        let mut span = self.span.clone();
        if span.status == SpanStatus::Running {
            let took = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
            span.status = status;
            span.end_ms = Some(span.start_ms + took);
            span.duration_ms = Some(took);
        }
        span
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        let reason = "the run was dropped before it ended".to_owned();
        for op in self.end(TraceStatus::Cancelled, Some(reason), None).into_iter().flatten() {
            self.store.record(op, payload::ROW_BYTES);
        }
    }
}

fn span_name(id: SpanId) -> String {
    format!("span_{}", id.0)
}

/// The reason of a failure without secrets, and short enough for the schema.
fn cut(error: &str) -> String {
    redact::text(error).chars().take(ERROR_CHARS).collect()
}

fn millis(moment: SystemTime) -> u64 {
    let since = moment.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
