//! What a process that was killed left half done: runs that never ended. They are closed before anything else happens.

use rusqlite::{Transaction, params};

use super::trace::{json, read_row};
use crate::protocol::{Span, SpanStatus, Timestamp, Trace, TraceStatus};

/// Why a run that was cut off failed.
const CUT_OFF: &str = "the runtime ended before the run did";

/// Ends every trace that is still running as an error, and its open spans as cancelled, at the last moment known of it.
pub(super) fn close_runs(transaction: &Transaction<'_>) -> rusqlite::Result<()> {
    let mut select = transaction.prepare("SELECT number, data FROM traces WHERE status = 'running'")?;
    let running = select.query_map([], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?)))?;
    for found in running {
        let (number, data) = found?;
        let end = last_moment(transaction, number)?;
        close_spans(transaction, number, end)?;
        let count = |of: &str| transaction.query_row(of, [number], |row| row.get::<_, i64>(0));
        let spans = count("SELECT count(*) FROM spans WHERE trace = ?1")?;
        let events = count("SELECT count(*) FROM events WHERE trace = ?1")?;
        // One that cannot be read is closed by its status alone; reading it says that it is damaged.
        let data = match serde_json::from_str::<Trace>(&data) {
            Ok(trace) => json(&Trace {
                status: TraceStatus::Error,
                had_error: true,
                error_message: Some(CUT_OFF.to_owned()),
                duration_ms: Some(end.saturating_sub(trace.started_at_ms.unwrap_or(end))),
                span_count: spans.cast_unsigned(),
                event_count: events.cast_unsigned(),
                updated_at: Timestamp::now(),
                ..trace
            }),
            Err(_) => data,
        };
        let update = "UPDATE traces SET status = 'error', data = ?2 WHERE number = ?1";
        transaction.execute(update, params![number, data])?;
    }
    Ok(())
}

fn close_spans(transaction: &Transaction<'_>, number: i64, end: u64) -> rusqlite::Result<()> {
    let mut select = transaction
        .prepare_cached("SELECT ordinal, data FROM spans WHERE trace = ?1 AND status = 'running'")?;
    let open = select.query_map([number], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?)))?;
    for found in open {
        let (ordinal, data) = found?;
        let data = match serde_json::from_str::<Span>(&data) {
            Ok(span) => json(&Span {
                status: SpanStatus::Cancelled,
                end_ms: Some(end.max(span.start_ms)),
                duration_ms: Some(end.saturating_sub(span.start_ms)),
                ..span
            }),
            Err(_) => data,
        };
        let update = "UPDATE spans SET status = 'cancelled', data = ?3 WHERE trace = ?1 AND ordinal = ?2";
        transaction.execute(update, params![number, ordinal, data])?;
    }
    Ok(())
}

/// When something was last heard of a run, in milliseconds since 1970; the last span and the last event are enough to know.
fn last_moment(transaction: &Transaction<'_>, number: i64) -> rusqlite::Result<u64> {
    let last = |of: &str, member: &str| {
        let data = read_row(transaction, of, number)?;
        let value = data.and_then(|data| serde_json::from_str::<serde_json::Value>(&data).ok());
        Ok(value.and_then(|value| value[member].as_u64()).unwrap_or(0))
    };
    let moments: [rusqlite::Result<u64>; 4] = [
        last("SELECT data FROM traces WHERE number = ?1", "startedAtMs"),
        last("SELECT data FROM events WHERE trace = ?1 ORDER BY sequence DESC LIMIT 1", "timestampMs"),
        last("SELECT data FROM spans WHERE trace = ?1 ORDER BY ordinal DESC LIMIT 1", "startMs"),
        last("SELECT data FROM spans WHERE trace = ?1 ORDER BY ordinal DESC LIMIT 1", "endMs"),
    ];
    moments.into_iter().try_fold(0, |latest, moment| moment.map(|moment: u64| moment.max(latest)))
}
