//! The tables, how they came to be, and how the file is opened.

use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, TransactionBehavior};

use super::fault::{self, Fault};
use super::queue;
use super::writer::Tokens;
use crate::engine::EngineError;

/// How long we wait for somebody who looks at the file with another program.
pub(super) const BUSY: Duration = Duration::from_secs(5);

/// What marks a file as ours: `Outr`.
const APPLICATION: i64 = 0x4f75_7472;

/// How long the journal may stay after it was moved into the file.
const JOURNAL_BYTES: u64 = 16 << 20;

/// What leads from each version of the file to the next. Never changed, only added to.
const STEPS: [&str; 1] = [FIRST];

/// A record's place is its log's number in the upper half and its own number in the lower: one tree, in which the records of
/// a log lie side by side, instead of a table and an index.
///
/// Blobs and work name their log by its name, because both may be there before it is begun, and beginning gives the number.
/// The number of a log is never given again (`AUTOINCREMENT`): it is how old the log is among all.
const FIRST: &str = "
CREATE TABLE logs (
    log INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE,
    seq INTEGER NOT NULL
) STRICT;
CREATE TABLE heads (
    log INTEGER PRIMARY KEY,
    label TEXT NOT NULL,
    body TEXT NOT NULL
) STRICT;
CREATE INDEX heads_by_label ON heads (label, log);
CREATE TABLE records (
    place INTEGER PRIMARY KEY,
    record TEXT NOT NULL
) STRICT;
CREATE TABLE blobs (
    blob INTEGER PRIMARY KEY,
    log TEXT NOT NULL,
    digest BLOB NOT NULL,
    bytes BLOB NOT NULL,
    UNIQUE (log, digest)
) STRICT;
CREATE TABLE work (
    work INTEGER PRIMARY KEY AUTOINCREMENT,
    queue TEXT NOT NULL,
    key TEXT NOT NULL,
    log TEXT NOT NULL,
    due INTEGER NOT NULL,
    token INTEGER NOT NULL DEFAULT 0,
    lease_until INTEGER,
    again INTEGER,
    UNIQUE (queue, key)
) STRICT;
CREATE INDEX work_by_due ON work (queue, due, work);
CREATE INDEX work_by_log ON work (log);
CREATE TABLE openings (
    only INTEGER PRIMARY KEY CHECK (only = 1),
    count INTEGER NOT NULL
) STRICT;
INSERT INTO openings VALUES (1, 0);
";

/// Opens the file for writing, brings it to this version, and ends the leases that were left in it.
pub(super) fn open(path: &Path) -> Result<(Connection, Tokens), EngineError> {
    let opened = || {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut connection = Connection::open_with_flags(path, flags)?;
        prepare(&connection)?;
        owned(&connection)?;
        // Only a file without tables can still be told that it may shrink.
        connection.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
        let journal: String =
            connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0))?;
        if journal != "wal" {
            return Err(Fault::Refused(format!("its journal is `{journal}` and cannot be `wal` here")));
        }
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.pragma_update(None, "journal_size_limit", signed(JOURNAL_BYTES))?;
        upgrade(&mut connection)?;
        queue::end_leases(&connection)?;
        let sql = "UPDATE openings SET count = count + 1 RETURNING count";
        let opening = connection.query_row(sql, [], |row| row.get(0))?;
        Ok((connection, Tokens::of_opening(opening)))
    };
    opened().map_err(|fault| fault::of_file("cannot be opened", path, &fault))
}

/// What holds for every connection.
pub(super) fn prepare(connection: &Connection) -> Result<(), Fault> {
    connection.busy_timeout(BUSY)?;
    connection.set_prepared_statement_cache_capacity(64);
    // Without it a statement is planned anew whenever it is given other numbers, which costs as much as doing it.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    Ok(())
}

/// Refuses a database that another program made.
fn owned(connection: &Connection) -> Result<(), Fault> {
    let application: i64 = connection.pragma_query_value(None, "application_id", |row| row.get(0))?;
    let tables: i64 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    match (application, tables) {
        (APPLICATION, _) | (0, 0) => Ok(()),
        _ => Err(Fault::Refused("it is the database of another program".to_owned())),
    }
}

/// Takes every step that the file has not taken yet, in one transaction.
fn upgrade(connection: &mut Connection) -> Result<(), Fault> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let version: usize = transaction.pragma_query_value(None, "user_version", |row| {
        row.get::<_, i64>(0).map(|version| usize::try_from(version).unwrap_or(usize::MAX))
    })?;
    let Some(steps) = STEPS.get(version..) else {
        return Err(Fault::Refused(format!(
            "it has version {version}, and this program knows versions up to {}; use a later program",
            STEPS.len()
        )));
    };
    if steps.is_empty() {
        return Ok(());
    }
    for step in steps {
        transaction.execute_batch(step)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION)?;
    transaction.pragma_update(None, "user_version", STEPS.len() as i64)?;
    transaction.commit()?;
    Ok(())
}

/// A number as SQLite keeps it. What is beyond its reach is a moment that never comes.
pub(super) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// The same on the way back. Nothing negative is ever written.
pub(super) fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}
