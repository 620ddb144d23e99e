//! Blobs in a table, by the log that they belong to and their hash.

use outrigger_policy::Digest;
use rusqlite::{Connection, OptionalExtension, params};

use super::MAX_BLOB;
use super::fault::Fault;
use super::writer::Batch;
use crate::engine::{EngineError, LogId};

/// Refuses one that is too long.
pub(super) fn weigh(bytes: &[u8]) -> Result<(), EngineError> {
    match bytes.len() {
        ..=MAX_BLOB => Ok(()),
        length => Err(EngineError::Failed {
            what: format!("does not take a blob of {length} bytes"),
            why: format!("it may have {MAX_BLOB}"),
        }),
    }
}

/// Keeps bytes, unless they are kept already.
pub(super) fn put(batch: &mut Batch<'_>, log: &LogId, digest: &Digest, bytes: &[u8]) -> Result<(), Fault> {
    let sql = "INSERT INTO blobs (log, digest, bytes) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING";
    batch.connection.prepare_cached(sql)?.execute(params![log.0, digest.as_bytes(), bytes])?;
    Ok(())
}

pub(super) fn get(connection: &Connection, log: &LogId, digest: &Digest) -> Result<Option<Vec<u8>>, Fault> {
    let mut statement =
        connection.prepare_cached("SELECT bytes FROM blobs WHERE log = ?1 AND digest = ?2")?;
    Ok(statement.query_row(params![log.0, digest.as_bytes()], |row| row.get(0)).optional()?)
}
