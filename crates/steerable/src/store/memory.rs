//! The store of a sidecar that has no file: everything is gone when the process is. It costs nothing until it is used.

use std::collections::{HashMap, VecDeque};
use std::ops::RangeInclusive;

use super::error::{ForkError, StoreError};
use super::id::{RecordId, Seq};
use super::session::{Filter, NewSession};
use super::tracer::TraceOp;
use super::transcript::{Entry, Fork, Forked, fold, fork_end, missing_answers};
use super::{TraceKey, TraceTree, transcript};
use crate::protocol::{Session, Timestamp, Trace, TraceStatus};

/// How much is kept in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryLimits {
    /// Sessions.
    pub sessions: usize,
    /// Bytes of sessions and transcripts together.
    pub bytes: usize,
    /// Traces. The oldest goes when one more begins.
    pub traces: usize,
    /// Bytes of traces together. The oldest that is over goes when one grows beyond.
    pub trace_bytes: usize,
}

impl MemoryLimits {
    /// What a sidecar without `--storage-path` keeps.
    pub const STANDARD: Self =
        Self { sessions: 10_000, bytes: 64 << 20, traces: 1_000, trace_bytes: 64 << 20 };
}

/// Everything, in maps.
#[derive(Debug)]
pub(super) struct Memory {
    limits: MemoryLimits,
    sessions: HashMap<String, Session>,
    records: HashMap<RecordId, Vec<Entry>>,
    bytes: usize,
    settings: HashMap<String, String>,
    traces: Traces,
}

#[derive(Debug, Default)]
struct Traces {
    /// The oldest first.
    order: VecDeque<u64>,
    runs: HashMap<u64, Run>,
    by_id: HashMap<String, u64>,
    by_stream: HashMap<String, u64>,
    bytes: usize,
}

#[derive(Debug)]
struct Run {
    stream_id: Option<String>,
    tree: TraceTree,
    bytes: usize,
}

impl Memory {
    pub(super) fn new(limits: MemoryLimits) -> Self {
        Self {
            limits,
            sessions: HashMap::new(),
            records: HashMap::new(),
            bytes: 0,
            settings: HashMap::new(),
            traces: Traces::default(),
        }
    }

    /// How full the fullest part is, in percent; traces make room by themselves.
    pub(super) fn percent_used(&self) -> usize {
        let share = |used: usize, limit: usize| used.saturating_mul(100) / limit.max(1);
        share(self.sessions.len(), self.limits.sessions).max(share(self.bytes, self.limits.bytes))
    }

    pub(super) fn create_session(&mut self, new: NewSession) -> Result<Session, StoreError> {
        let old = self.sessions.get(&new.session_id);
        if old.is_none() && self.sessions.len() >= self.limits.sessions {
            return Err(StoreError::Full { what: "sessions", limit: count(self.limits.sessions) });
        }
        let freed = old.map_or(0, weigh_session);
        let session = new.into_session(old.map(|old| old.created_at.clone()));
        self.charge(weigh_session(&session), freed)?;
        self.sessions.insert(session.session_id.clone(), session.clone());
        Ok(session)
    }

    pub(super) fn session(&self, id: &str) -> Option<Session> {
        self.sessions.get(id).cloned()
    }

    pub(super) fn sessions(&self, filter: &Filter) -> Vec<Session> {
        let mut found: Vec<&Session> =
            self.sessions.values().filter(|session| filter.admits(session)).collect();
        // Two of the same microsecond are in some order, but always in the same.
        found.sort_unstable_by_key(|session| (&session.updated_at, &session.session_id));
        found.into_iter().rev().take(filter.limit.unwrap_or(usize::MAX)).cloned().collect()
    }

    pub(super) fn append(&mut self, record: &RecordId, texts: Vec<String>) -> Result<Seq, StoreError> {
        self.charge(texts.iter().map(|text| text.len() + ENTRY_BYTES).sum(), 0)?;
        self.touch(record);
        let entries = self.records.entry(record.clone()).or_default();
        let mut last = entries.last().map_or(Seq(0), |entry| entry.seq);
        for text in texts {
            last = Seq(last.0 + 1);
            entries.push(Entry { seq: last, replaces: None, text });
        }
        Ok(last)
    }

    pub(super) fn note_compaction(
        &mut self,
        record: &RecordId,
        replaced: RangeInclusive<Seq>,
        text: String,
    ) -> Result<Seq, StoreError> {
        if !self.records.contains_key(record) {
            return Err(StoreError::Unknown { what: "record", id: record.as_str().to_owned() });
        }
        self.charge(text.len() + ENTRY_BYTES, 0)?;
        self.touch(record);
        let entries = self.records.entry(record.clone()).or_default();
        let seq = Seq(entries.last().map_or(0, |entry| entry.seq.0) + 1);
        entries.push(Entry { seq, replaces: Some(replaced), text });
        Ok(seq)
    }

    pub(super) fn has_record(&self, record: &RecordId) -> bool {
        self.records.contains_key(record) || self.sessions.contains_key(record.as_str())
    }

    pub(super) fn entries(&self, record: &RecordId) -> Vec<Entry> {
        self.records.get(record).cloned().unwrap_or_default()
    }

    /// Writes the answers that are missing at the end of a transcript.
    pub(super) fn close_calls(&mut self, record: &RecordId) -> Result<(), StoreError> {
        let Some(entries) = self.records.get(record) else { return Ok(()) };
        // What was encoded here can be decoded here.
        let missing = missing_answers(&fold(entries).unwrap_or_default());
        if !missing.is_empty() {
            self.append(record, transcript::encoded(&missing)?)?;
        }
        Ok(())
    }

    pub(super) fn fork(&mut self, fork: Fork) -> Result<Forked, ForkError> {
        let record = fork.new_record.clone().unwrap_or_else(RecordId::fresh);
        if !self.has_record(&fork.source) {
            let id = fork.source.as_str().to_owned();
            return Err(StoreError::Unknown { what: "record", id }.into());
        }
        if self.has_record(&record) {
            return Err(ForkError::Taken { record });
        }
        let entries = self.entries(&fork.source);
        let end = fork_end(&fork, &entries)?;
        let kept: Vec<Entry> = entries.into_iter().take_while(|entry| Some(entry.seq) <= end).collect();
        let charged = kept.iter().map(|entry| entry.text.len() + ENTRY_BYTES).sum();
        self.charge(charged, 0)?;
        let session = self.sessions.get(fork.source.as_str());
        if let Some(copy) = session.map(|session| NewSession::copy_of(session, record.as_str())) {
            self.create_session(copy).inspect_err(|_| self.bytes -= charged)?;
        }
        let seed_messages = transcript::messages_in(&kept);
        self.records.insert(record.clone(), kept);
        Ok(Forked {
            record,
            source: fork.source,
            source_until: end.unwrap_or(Seq(0)),
            label: fork.label,
            seed_messages,
        })
    }

    pub(super) fn settings(&self) -> Vec<(String, String)> {
        self.settings.iter().map(|(name, value)| (name.clone(), value.clone())).collect()
    }

    pub(super) fn keep_settings(&mut self, settings: Vec<(String, String)>) {
        self.settings = settings.into_iter().collect();
    }

    pub(super) fn trace(&self, key: TraceKey<'_>) -> Option<TraceTree> {
        let number = match key {
            TraceKey::Trace(id) => self.traces.by_id.get(id),
            TraceKey::Stream(id) => self.traces.by_stream.get(id),
        }?;
        self.traces.runs.get(number).map(|run| run.tree.clone().counted())
    }

    /// Records a change of a trace; `false` if there is no room for it.
    pub(super) fn record(&mut self, op: TraceOp, bytes: usize) -> bool {
        let limits = self.limits;
        let traces = &mut self.traces;
        let (TraceOp::Begin { number, .. }
        | TraceOp::Span { number, .. }
        | TraceOp::Event { number, .. }
        | TraceOp::End { number, .. }) = op;
        if let TraceOp::Begin { stream_id, trace, .. } = op {
            while traces.order.len() >= limits.traces.max(1) {
                traces.forget_oldest(|_| true);
            }
            traces.begin(number, stream_id, trace);
            return true;
        }
        while traces.bytes + bytes > limits.trace_bytes {
            if !traces.forget_oldest(|trace| trace.status != TraceStatus::Running) {
                // The end of a run is always recorded: it makes the trace one that can go.
                if matches!(op, TraceOp::End { .. }) {
                    break;
                }
                return false;
            }
        }
        traces.grow(op, number, bytes)
    }

    fn charge(&mut self, added: usize, freed: usize) -> Result<(), StoreError> {
        let bytes = (self.bytes + added).saturating_sub(freed);
        if bytes > self.limits.bytes && added > freed {
            return Err(StoreError::Full {
                what: "bytes of sessions and transcripts",
                limit: count(self.limits.bytes),
            });
        }
        self.bytes = bytes;
        Ok(())
    }

    fn touch(&mut self, record: &RecordId) {
        if let Some(session) = self.sessions.get_mut(record.as_str()) {
            session.updated_at = Timestamp::now().max(session.updated_at.clone());
        }
    }
}

impl Traces {
    fn begin(&mut self, number: u64, stream_id: Option<String>, trace: Trace) {
        self.order.push_back(number);
        self.by_id.insert(trace.trace_id.clone(), number);
        if let Some(stream) = &stream_id {
            self.by_stream.insert(stream.clone(), number);
        }
        let tree = TraceTree { trace, spans: Vec::new(), events: Vec::new() };
        self.runs.insert(number, Run { stream_id, tree, bytes: 0 });
    }

    fn grow(&mut self, op: TraceOp, number: u64, bytes: usize) -> bool {
        let Some(run) = self.runs.get_mut(&number) else { return false };
        match op {
            TraceOp::Begin { trace, .. } | TraceOp::End { trace, .. } => run.tree.trace = trace,
            TraceOp::Span { ordinal, span, .. } => {
                // Spans are numbered from 1 without gaps, in the order in which they come here.
                match run.tree.spans.get_mut((ordinal as usize).saturating_sub(1)) {
                    Some(known) => *known = span,
                    None => run.tree.spans.push(span),
                }
            }
            TraceOp::Event { event, .. } => run.tree.events.push(event),
        }
        run.bytes += bytes;
        self.bytes += bytes;
        true
    }

    /// Forgets the oldest trace that may go; `false` if there is none.
    fn forget_oldest(&mut self, may_go: impl Fn(&Trace) -> bool) -> bool {
        let found = self
            .order
            .iter()
            .position(|number| self.runs.get(number).is_none_or(|run| may_go(&run.tree.trace)));
        let Some(number) = found.and_then(|place| self.order.remove(place)) else { return false };
        if let Some(run) = self.runs.remove(&number) {
            self.bytes -= run.bytes;
            self.by_id.remove(&run.tree.trace.trace_id);
            if let Some(stream) = run.stream_id
                && self.by_stream.get(&stream) == Some(&number)
            {
                self.by_stream.remove(&stream);
            }
        }
        true
    }
}

/// What an entry costs besides its text, roughly.
const ENTRY_BYTES: usize = 96;

fn weigh_session(session: &Session) -> usize {
    let texts =
        [&session.session_id, &session.user_id, &session.chat_id, &session.current_stage, &session.scenario];
    let more = session.project_id.as_ref().map_or(0, String::len)
        + session.stage_data.as_ref().map_or(0, |data| data.get().len());
    texts.iter().map(|text| text.len()).sum::<usize>() + more + 512
}

fn count(limit: usize) -> u64 {
    u64::try_from(limit).unwrap_or(u64::MAX)
}
