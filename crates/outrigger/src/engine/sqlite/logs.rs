//! Logs in tables: appending, reading, heads, forgetting.

use std::collections::BTreeSet;

use rusqlite::{Connection, OptionalExtension, Row, params};

use super::fault::Fault;
use super::schema::{signed, unsigned};
use super::writer::{Batch, Freed};
use super::{MAX_TEXT, queue};
use crate::engine::{
    Append, Begun, Changed, EngineError, Head, HeadQuery, LogId, Millis, ReadLimit, Seq, Stored,
};

/// How many bits of a record's place are its number in the log; the others say which log.
const SEQ_BITS: u32 = 32;

/// How much there is to write, if every part of it may be.
pub(super) fn weigh(append: &Append) -> Result<usize, EngineError> {
    let check = |what: &str, text: &String| match text.len() {
        length @ ..=MAX_TEXT => Ok(length),
        length => Err(EngineError::Failed {
            what: format!("does not take a {what} of {length} bytes"),
            why: format!("it may have {MAX_TEXT}"),
        }),
    };
    let mut bytes = 0;
    for record in &append.records {
        bytes += check("record", record)?;
    }
    if let Some(head) = &append.head {
        bytes += check("head", &head.body)? + check("label", &head.label)?;
    }
    Ok(bytes)
}

/// Appends if the log is as long as expected, and gives its new length; else its length as it is.
pub(super) fn append(batch: &mut Batch<'_>, append: &Append) -> Result<Result<Seq, Seq>, Fault> {
    let known = place(batch.connection, &append.log)?;
    let actual = known.map_or(Seq(0), |known| known.seq);
    if actual != append.expected {
        return Ok(Err(actual));
    }
    let seq = Seq(actual.0 + append.records.len() as u64);
    if seq.0 >= 1 << SEQ_BITS {
        return Err(Fault::Refused(format!("a log may have {} records", (1u64 << SEQ_BITS) - 1)));
    }
    if !append.records.is_empty() || append.head.is_some() {
        let log = match known {
            Some(known) => grow(batch.connection, known.log, seq)?,
            None => begin(batch.connection, &append.log, seq)?,
        };
        let mut insert =
            batch.connection.prepare_cached("INSERT INTO records (place, record) VALUES (?1, ?2)")?;
        for (number, record) in (actual.0 + 1..).zip(&append.records) {
            insert.execute(params![log << SEQ_BITS | signed(number), record])?;
        }
        if let Some(head) = &append.head {
            let sql = "INSERT INTO heads (log, label, body) VALUES (?1, ?2, ?3)
                       ON CONFLICT (log) DO UPDATE SET label = excluded.label, body = excluded.body";
            batch.connection.prepare_cached(sql)?.execute(params![log, head.label, head.body])?;
        }
    }
    let now = Millis::now();
    for work in &append.work {
        queue::put(batch.connection, &append.log, work, now)?;
    }
    batch.changed.push(Changed { log: append.log.clone(), seq });
    Ok(Ok(seq))
}

/// The records after a number, as many as fit, and at least one if there is one.
pub(super) fn read(
    connection: &Connection,
    log: &LogId,
    after: Seq,
    limit: ReadLimit,
) -> Result<Vec<Stored>, Fault> {
    let Some(known) = place(connection, log)? else { return Ok(Vec::new()) };
    if after >= known.seq {
        return Ok(Vec::new());
    }
    let sql = "SELECT place, record FROM records WHERE place > ?1 AND place <= ?2 ORDER BY place";
    let mut statement = connection.prepare_cached(sql)?;
    let base = known.log << SEQ_BITS;
    let mut rows = statement.query(params![base | signed(after.0), base | signed(known.seq.0)])?;
    let (mut stored, mut bytes) = (Vec::new(), 0);
    while let Some(row) = rows.next()? {
        let place: i64 = row.get(0)?;
        let text = row.get_ref(1)?.as_str()?;
        bytes += text.len();
        let full = stored.len() >= limit.records || bytes > limit.bytes;
        if full && !stored.is_empty() {
            break;
        }
        stored.push(Stored { seq: Seq(unsigned(place - base)), record: text.to_owned() });
    }
    Ok(stored)
}

pub(super) fn head(connection: &Connection, log: &LogId) -> Result<Option<Head>, Fault> {
    let Some(known) = place(connection, log)? else { return Ok(None) };
    head_of(connection, known.log)
}

/// Heads, the log that was begun last first.
pub(super) fn heads(connection: &Connection, which: &HeadQuery) -> Result<Vec<Head>, Fault> {
    let before = which.before.map_or(i64::MAX, |begun| signed(begun.0));
    let limit = i64::try_from(which.limit).unwrap_or(i64::MAX);
    let mut logs: Vec<i64> = Vec::new();
    if which.labels.is_empty() {
        let sql = "SELECT log FROM heads WHERE log < ?1 ORDER BY log DESC LIMIT ?2";
        let mut statement = connection.prepare_cached(sql)?;
        for log in statement.query_map([before, limit], |row| row.get(0))? {
            logs.push(log?);
        }
    } else {
        // The newest of each label come straight out of the index; sorting all that have any of them would read them all.
        let sql = "SELECT log FROM heads WHERE label = ?1 AND log < ?2 ORDER BY log DESC LIMIT ?3";
        let mut statement = connection.prepare_cached(sql)?;
        for label in which.labels.iter().collect::<BTreeSet<_>>() {
            for log in statement.query_map(params![label, before, limit], |row| row.get(0))? {
                logs.push(log?);
            }
        }
        logs.sort_unstable_by(|one, other| other.cmp(one));
        logs.truncate(which.limit);
    }
    let mut heads = Vec::with_capacity(logs.len());
    for log in logs {
        heads.extend(head_of(connection, log)?);
    }
    Ok(heads)
}

/// How many logs there are with each label.
pub(super) fn labels(connection: &Connection) -> Result<Vec<(String, u64)>, Fault> {
    let sql = "SELECT label, count(*) FROM heads GROUP BY label ORDER BY label";
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map([], |row| Ok((row.get(0)?, unsigned(row.get(1)?))))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Forgets a log and what belongs to it.
pub(super) fn forget(batch: &mut Batch<'_>, log: &LogId) -> Result<(), Fault> {
    let connection = batch.connection;
    let mut gone = 0;
    let known = place(connection, log)?;
    if let Some(known) = known {
        let base = known.log << SEQ_BITS;
        let ends = [base, base | signed(known.seq.0)];
        gone += connection.execute("DELETE FROM records WHERE place BETWEEN ?1 AND ?2", ends)?;
        gone += connection.execute("DELETE FROM heads WHERE log = ?1", [known.log])?;
        gone += connection.execute("DELETE FROM logs WHERE log = ?1", [known.log])?;
    }
    // Both can be there before the log is begun.
    gone += connection.execute("DELETE FROM blobs WHERE log = ?1", [&log.0])?;
    gone += connection.execute("DELETE FROM work WHERE log = ?1", [&log.0])?;
    if gone > 0 {
        batch.freed = Freed::Some;
        batch.changed.push(Changed { log: log.clone(), seq: Seq(0) });
    }
    Ok(())
}

/// A log that has been begun.
#[derive(Clone, Copy)]
struct Known {
    log: i64,
    seq: Seq,
}

fn place(connection: &Connection, log: &LogId) -> Result<Option<Known>, Fault> {
    let mut statement = connection.prepare_cached("SELECT log, seq FROM logs WHERE name = ?1")?;
    let known = |row: &Row<'_>| Ok(Known { log: row.get(0)?, seq: Seq(unsigned(row.get(1)?)) });
    Ok(statement.query_row([&log.0], known).optional()?)
}

fn begin(connection: &Connection, name: &LogId, seq: Seq) -> Result<i64, Fault> {
    let sql = "INSERT INTO logs (name, seq) VALUES (?1, ?2)";
    let log = connection.prepare_cached(sql)?.insert(params![name.0, signed(seq.0)])?;
    match log {
        ..0x8000_0000 => Ok(log),
        _ => Err(Fault::Refused("a store may have seen 2147483647 logs".to_owned())),
    }
}

fn grow(connection: &Connection, log: i64, seq: Seq) -> Result<i64, Fault> {
    let sql = "UPDATE logs SET seq = ?2 WHERE log = ?1";
    connection.prepare_cached(sql)?.execute([log, signed(seq.0)])?;
    Ok(log)
}

fn head_of(connection: &Connection, log: i64) -> Result<Option<Head>, Fault> {
    let sql = "SELECT name, seq, label, body FROM heads JOIN logs USING (log) WHERE log = ?1";
    let mut statement = connection.prepare_cached(sql)?;
    let head = |row: &Row<'_>| {
        Ok(Head {
            log: LogId(row.get(0)?),
            seq: Seq(unsigned(row.get(1)?)),
            begun: Begun(unsigned(log)),
            label: row.get(2)?,
            body: row.get(3)?,
        })
    };
    Ok(statement.query_row([log], head).optional()?)
}
