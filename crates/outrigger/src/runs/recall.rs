//! What only the log of a run knows, read when somebody asks: calls and their answers, suspensions, questions in full.

use std::collections::{BTreeMap, BTreeSet};

use outrigger_abp::protocol::{AgentEvent, EventKind};
use serde_json::value::RawValue;

use super::approval::{Approval, ApprovalId};
use super::backend::Recorded;
use super::entry::{Entry, Line, Suspended};
use super::id::RunId;
use super::service::PAGE_BYTES;
use crate::engine::{Engine, EngineError, ReadLimit, Seq};

/// How many records are read at once.
const PAGE: usize = 512;

/// The host calls of a script in the order in which they were answered, with what they got; those that were not, come last.
pub(super) async fn recorded(engine: &dyn Engine, run: &RunId) -> Result<Vec<Recorded>, EngineError> {
    let mut calls: BTreeMap<u64, Recorded> = BTreeMap::new();
    let mut answered = Vec::new();
    walk(engine, run, |_, entry| {
        let Entry::Event(told) = entry else { return Walk::On };
        let Ok(event) = AgentEvent::read(told.event.get()) else { return Walk::On };
        match event.kind {
            EventKind::ToolCall { tool_name, tool_use_id, input, .. } => {
                if let Some(call) = number(tool_use_id.as_deref()) {
                    let (capability, args) = (tool_name.into_owned(), input.to_value());
                    let outcome =
                        Err(serde_json::json!({"name": "Error", "message": "no answer was recorded"}));
                    calls.entry(call).or_insert(Recorded { call, capability, args, outcome });
                }
            }
            EventKind::ToolResult { tool_use_id, output, is_error, .. } => {
                let call = number(tool_use_id.as_deref()).and_then(|call| calls.remove(&call));
                if let Some(call) = call {
                    let output = output.to_value();
                    let outcome = if is_error { Err(output) } else { Ok(output) };
                    answered.push(Recorded { outcome, ..call });
                }
            }
            _ => {}
        }
        Walk::On
    })
    .await?;
    answered.extend(calls.into_values());
    Ok(answered)
}

/// The number of a host call in the id of its event.
fn number(id: Option<&str>) -> Option<u64> {
    id?.strip_prefix('c')?.parse().ok()
}

/// Where a script stood still, and the calls that were made since, as far as they were answered.
pub(super) struct Standstill {
    pub(super) at: Seq,
    pub(super) suspended: Suspended,
    /// Events of calls and their results.
    pub(super) since: Vec<Box<RawValue>>,
}

/// The suspension that is this record. Whoever goes on from here makes the calls anew.
pub(super) async fn suspension(
    engine: &dyn Engine,
    run: &RunId,
    at: Seq,
) -> Result<Option<Standstill>, EngineError> {
    let before = Seq(at.0.saturating_sub(1));
    let limit = ReadLimit { records: 1, bytes: PAGE_BYTES };
    let page = engine.read(&run.log(), before, limit).await?;
    let found =
        page.first().filter(|stored| stored.seq == at).and_then(|stored| Line::read(&stored.record).ok());
    Ok(found.and_then(|line| match line.entry {
        Entry::Suspended(suspended) => Some(Standstill { at, suspended, since: Vec::new() }),
        _ => None,
    }))
}

/// The last suspension. Whoever goes on from here makes no call again that was answered.
pub(super) async fn last_suspension(
    engine: &dyn Engine,
    run: &RunId,
) -> Result<Option<Standstill>, EngineError> {
    let mut last: Option<Standstill> = None;
    walk(engine, run, |seq, entry| {
        match entry {
            Entry::Suspended(suspended) => last = Some(Standstill { at: seq, suspended, since: Vec::new() }),
            Entry::Event(told) => {
                if let Some(last) = &mut last
                    && is_of_a_call(told.event.get())
                {
                    last.since.push(told.event);
                }
            }
            _ => {}
        }
        Walk::On
    })
    .await?;
    if let Some(last) = &mut last {
        keep_answered(&mut last.since);
    }
    Ok(last)
}

/// Whether an event is a call or its result.
fn is_of_a_call(event: &str) -> bool {
    let event = AgentEvent::read(event);
    event.is_ok_and(|event| matches!(event.kind, EventKind::ToolCall { .. } | EventKind::ToolResult { .. }))
}

/// Drops calls of which nobody knows the result: whoever goes on decides about them anew.
fn keep_answered(events: &mut Vec<Box<RawValue>>) {
    let id = |event: &RawValue, result: bool| match AgentEvent::read(event.get()).ok()?.kind {
        EventKind::ToolResult { tool_use_id, .. } => tool_use_id.map(|id| id.into_owned()),
        EventKind::ToolCall { tool_use_id, .. } if !result => tool_use_id.map(|id| id.into_owned()),
        _ => None,
    };
    let answered: BTreeSet<String> = events.iter().filter_map(|event| id(event, true)).collect();
    events.retain(|event| id(event, false).is_some_and(|id| answered.contains(&id)));
}

/// A question as it was asked.
pub(super) async fn asked(
    engine: &dyn Engine,
    run: &RunId,
    id: &ApprovalId,
) -> Result<Option<Approval>, EngineError> {
    let mut found = None;
    walk(engine, run, |_, entry| match entry {
        Entry::Asked(approval) if approval.id == *id => {
            found = Some(approval);
            Walk::Stop
        }
        _ => Walk::On,
    })
    .await?;
    Ok(found)
}

enum Walk {
    On,
    Stop,
}

/// Reads a log from its beginning. What cannot be read is passed over: the log is for people too.
async fn walk(
    engine: &dyn Engine,
    run: &RunId,
    mut see: impl FnMut(Seq, Entry) -> Walk,
) -> Result<(), EngineError> {
    let mut after = Seq(0);
    loop {
        let page = engine.read(&run.log(), after, ReadLimit { records: PAGE, bytes: PAGE_BYTES }).await?;
        let Some(last) = page.last() else { return Ok(()) };
        after = last.seq;
        for stored in &page {
            if let Ok(line) = Line::read(&stored.record)
                && let Walk::Stop = see(stored.seq, line.entry)
            {
                return Ok(());
            }
        }
    }
}
