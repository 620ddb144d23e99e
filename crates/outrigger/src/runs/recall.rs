//! What only the log of a run knows, read when somebody asks: calls and their answers, suspensions, questions in full.

use std::collections::BTreeMap;

use outrigger_abp::protocol::{AgentEvent, EventKind};

use super::approval::{Approval, ApprovalId};
use super::backend::Recorded;
use super::entry::{Entry, Line, Suspended};
use super::id::RunId;
use super::service::PAGE_BYTES;
use crate::engine::{Engine, EngineError, ReadLimit, Seq};

/// How many records are read at once.
const PAGE: usize = 512;

/// The host calls of a script in the order in which they were made, with what they got.
pub(super) async fn recorded(engine: &dyn Engine, run: &RunId) -> Result<Vec<Recorded>, EngineError> {
    let mut calls: BTreeMap<u64, Recorded> = BTreeMap::new();
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
                let call = number(tool_use_id.as_deref()).and_then(|call| calls.get_mut(&call));
                if let Some(recorded) = call {
                    let output = output.to_value();
                    recorded.outcome = if is_error { Err(output) } else { Ok(output) };
                }
            }
            _ => {}
        }
        Walk::On
    })
    .await?;
    Ok(calls.into_values().collect())
}

/// The number of a host call in the id of its event.
fn number(id: Option<&str>) -> Option<u64> {
    id?.strip_prefix('c')?.parse().ok()
}

/// The suspension that is this record.
pub(super) async fn suspension(
    engine: &dyn Engine,
    run: &RunId,
    at: Seq,
) -> Result<Option<Suspended>, EngineError> {
    let before = Seq(at.0.saturating_sub(1));
    let limit = ReadLimit { records: 1, bytes: PAGE_BYTES };
    let page = engine.read(&run.log(), before, limit).await?;
    let found =
        page.first().filter(|stored| stored.seq == at).and_then(|stored| Line::read(&stored.record).ok());
    Ok(found.and_then(|line| match line.entry {
        Entry::Suspended(suspended) => Some(suspended),
        _ => None,
    }))
}

/// The number of the last suspension.
pub(super) async fn last_suspension(engine: &dyn Engine, run: &RunId) -> Result<Option<Seq>, EngineError> {
    let mut last = None;
    walk(engine, run, |seq, entry| {
        if let Entry::Suspended(_) = entry {
            last = Some(seq);
        }
        Walk::On
    })
    .await?;
    Ok(last)
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
