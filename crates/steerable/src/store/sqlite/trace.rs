//! Traces in the file.

use rusqlite::{OptionalExtension, Transaction, params};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Fault, File};
use crate::protocol::Trace;
use crate::store::error::StoreError;
use crate::store::tracer::TraceOp;
use crate::store::{TraceKey, TraceTree};

/// How many traces a file keeps; the oldest go.
pub(crate) const KEPT: u64 = 10_000;

/// How many traces begin between two looks at how many there are.
const LOOK: u64 = 500;

impl File {
    pub(in crate::store) async fn trace(&self, key: TraceKey<'_>) -> Result<Option<TraceTree>, StoreError> {
        let (select, id) = match key {
            TraceKey::Trace(id) => ("SELECT number, data FROM traces WHERE trace_id = ?1", id.to_owned()),
            TraceKey::Stream(id) => (
                "SELECT number, data FROM traces WHERE stream_id = ?1 ORDER BY number DESC LIMIT 1",
                id.to_owned(),
            ),
        };
        // What is known of a run that goes on is written first.
        self.finish_trace(Vec::new()).await;
        self.read(move |transaction| {
            let found =
                transaction.query_row(select, [id], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
            let Some((number, data)) = found else { return Ok(None) };
            tree(transaction, number, data).map(Some)
        })
        .await
    }
}

/// Writes changes of traces.
pub(super) fn keep(transaction: &Transaction<'_>, ops: &[TraceOp]) -> rusqlite::Result<()> {
    for op in ops {
        match op {
            TraceOp::Begin { number, stream_id, trace } => {
                let insert = "INSERT INTO traces (number, trace_id, stream_id, status, data)
                     VALUES (?1, ?2, ?3, ?4, ?5)";
                transaction.prepare_cached(insert)?.execute(params![
                    number.cast_signed(),
                    trace.trace_id,
                    stream_id,
                    trace.status.word(),
                    json(trace)
                ])?;
                if number % LOOK == 0 {
                    forget_old(transaction, *number)?;
                }
            }
            TraceOp::Span { number, ordinal, span } => {
                let insert =
                    "INSERT OR REPLACE INTO spans (trace, ordinal, status, data) VALUES (?1, ?2, ?3, ?4)";
                let row = params![number.cast_signed(), ordinal, span.status.word(), json(span)];
                transaction.prepare_cached(insert)?.execute(row)?;
            }
            TraceOp::Event { number, event } => {
                let insert = "INSERT INTO events (trace, sequence, data) VALUES (?1, ?2, ?3)";
                let row = params![number.cast_signed(), event.sequence.cast_signed(), json(event)];
                transaction.prepare_cached(insert)?.execute(row)?;
            }
            TraceOp::End { number, trace } => {
                let update = "UPDATE traces SET status = ?2, data = ?3 WHERE number = ?1";
                let row = params![number.cast_signed(), trace.status.word(), json(trace)];
                transaction.prepare_cached(update)?.execute(row)?;
            }
        }
    }
    Ok(())
}

/// Something of ours as JSON.
pub(super) fn json(value: &impl Serialize) -> String {
    // Types of ours with texts and numbers in them: nothing of it can fail to be written.
    serde_json::to_string(value).unwrap_or_default()
}

/// The one text that a query about a trace finds.
pub(super) fn read_row(
    transaction: &Transaction<'_>,
    select: &str,
    number: i64,
) -> rusqlite::Result<Option<String>> {
    transaction.query_row(select, [number], |row| row.get(0)).optional()
}

/// The last traces, the newest first.
pub(super) fn newest(transaction: &Transaction<'_>, limit: usize) -> Result<Vec<Trace>, Fault<StoreError>> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    rows(transaction, "SELECT data FROM traces ORDER BY number DESC LIMIT ?1", limit)
}

/// The traces whose ids begin like this.
pub(super) fn like(
    transaction: &Transaction<'_>,
    beginning: &str,
    limit: usize,
) -> Result<Vec<TraceTree>, Fault<StoreError>> {
    let select = "SELECT number, data FROM traces WHERE substr(trace_id, 1, length(?1)) = ?1 LIMIT ?2";
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut select = transaction.prepare(select)?;
    let mut found = select.query(params![beginning, limit])?;
    let mut trees = Vec::new();
    while let Some(row) = found.next()? {
        trees.push(tree(transaction, row.get(0)?, row.get(1)?)?);
    }
    Ok(trees)
}

fn tree(transaction: &Transaction<'_>, number: i64, data: String) -> Result<TraceTree, Fault<StoreError>> {
    let tree = TraceTree {
        trace: parse(&data)?,
        spans: rows(transaction, "SELECT data FROM spans WHERE trace = ?1 ORDER BY ordinal", number)?,
        events: rows(transaction, "SELECT data FROM events WHERE trace = ?1 ORDER BY sequence", number)?,
    };
    Ok(tree.counted())
}

fn rows<T: DeserializeOwned>(
    transaction: &Transaction<'_>,
    select: &str,
    number: i64,
) -> Result<Vec<T>, Fault<StoreError>> {
    let mut select = transaction.prepare_cached(select)?;
    let mut rows = select.query([number])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(parse(row.get_ref(0)?.as_str().map_err(rusqlite::Error::from)?)?);
    }
    Ok(found)
}

fn parse<T: DeserializeOwned>(data: &str) -> Result<T, Fault<StoreError>> {
    serde_json::from_str(data).map_err(|error| Fault::Damaged(format!("a part of a trace is none: {error}")))
}

fn forget_old(transaction: &Transaction<'_>, newest: u64) -> rusqlite::Result<()> {
    let Some(last) = newest.checked_sub(KEPT) else { return Ok(()) };
    for delete in [
        "DELETE FROM events WHERE trace <= ?1",
        "DELETE FROM spans WHERE trace <= ?1",
        "DELETE FROM traces WHERE number <= ?1",
    ] {
        transaction.execute(delete, [last.cast_signed()])?;
    }
    Ok(())
}
