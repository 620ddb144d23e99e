//! Transcripts in the file.

use std::ops::RangeInclusive;

use rusqlite::{OptionalExtension, Transaction, params};

use super::{Fault, File, session};
use crate::store::RECORD_BYTES;
use crate::store::error::{ForkError, StoreError};
use crate::store::id::{RecordId, Seq};
use crate::store::session::NewSession;
use crate::store::transcript::{Entry, Fork, Forked, encoded, fold, fork_end, messages_in, missing_answers};

impl File {
    pub(in crate::store) async fn append(
        &self,
        record: &RecordId,
        texts: Vec<String>,
    ) -> Result<Seq, StoreError> {
        let record = record.clone();
        self.write(move |transaction| append(transaction, &record, &texts)).await
    }

    pub(in crate::store) async fn note_compaction(
        &self,
        record: &RecordId,
        replaced: RangeInclusive<Seq>,
        text: String,
    ) -> Result<Seq, StoreError> {
        let record = record.clone();
        self.write(move |transaction| {
            let Some((last, bytes)) = head(transaction, &record)? else {
                let id = record.as_str().to_owned();
                return Err(Fault::Refused(StoreError::Unknown { what: "record", id }));
            };
            let entry = Entry { seq: Seq(last.0 + 1), replaces: Some(replaced), text };
            add(transaction, &record, &entry)?;
            keep_head(transaction, &record, entry.seq, bytes + entry.text.len())?;
            Ok(entry.seq)
        })
        .await
    }

    pub(in crate::store) async fn has_record(&self, record: &RecordId) -> Result<bool, StoreError> {
        let record = record.clone();
        self.read(move |transaction| exists(transaction, &record)).await
    }

    /// The entries of a transcript, and the last of them that was there when the file was opened.
    pub(in crate::store) async fn entries(&self, record: &RecordId) -> Result<(Vec<Entry>, Seq), StoreError> {
        let record = record.clone();
        let boundary = self.inner.boundary;
        self.read(move |transaction| {
            let select = "SELECT max(seq) FROM entries WHERE record = ?1 AND id <= ?2";
            let old: Option<i64> =
                transaction.query_row(select, params![record.as_str(), boundary], |row| row.get(0))?;
            Ok((entries(transaction, &record)?, seq(old.unwrap_or(0))))
        })
        .await
    }

    /// Writes the answers that are missing at the end of a transcript.
    pub(in crate::store) async fn close_calls(&self, record: &RecordId) -> Result<(), StoreError> {
        let record = record.clone();
        self.write(move |transaction| {
            let missing = missing_answers(&fold(&entries(transaction, &record)?).map_err(Fault::Damaged)?);
            if !missing.is_empty() {
                append(transaction, &record, &encoded(&missing).map_err(Fault::Refused)?)?;
            }
            Ok(())
        })
        .await
    }

    pub(in crate::store) async fn fork(&self, wanted: Fork) -> Result<Forked, ForkError> {
        self.write(move |transaction| fork(transaction, wanted)).await
    }
}

fn append(
    transaction: &Transaction<'_>,
    record: &RecordId,
    texts: &[String],
) -> Result<Seq, Fault<StoreError>> {
    let (mut last, mut bytes) = head(transaction, record)?.unwrap_or((Seq(0), 0));
    for text in texts {
        last = Seq(last.0 + 1);
        bytes += text.len();
        add(transaction, record, &Entry { seq: last, replaces: None, text: text.clone() })?;
    }
    if bytes > RECORD_BYTES {
        let limit = u64::try_from(RECORD_BYTES).unwrap_or(u64::MAX);
        return Err(Fault::Refused(StoreError::Full { what: "bytes in one transcript", limit }));
    }
    keep_head(transaction, record, last, bytes)?;
    Ok(last)
}

fn fork(transaction: &Transaction<'_>, fork: Fork) -> Result<Forked, Fault<ForkError>> {
    let record = fork.new_record.clone().unwrap_or_else(RecordId::fresh);
    if !exists(transaction, &fork.source)? {
        let id = fork.source.as_str().to_owned();
        return Err(Fault::Refused(StoreError::Unknown { what: "record", id }.into()));
    }
    if exists(transaction, &record)? {
        return Err(Fault::Refused(ForkError::Taken { record }));
    }
    let mut kept = entries(transaction, &fork.source)?;
    let end = fork_end(&fork, &kept).map_err(Fault::Refused)?;
    kept.retain(|entry| Some(entry.seq) <= end);
    for entry in &kept {
        add(transaction, &record, entry)?;
    }
    let last = end.unwrap_or(Seq(0));
    keep_head(transaction, &record, last, kept.iter().map(|entry| entry.text.len()).sum())?;
    let update = "UPDATE records SET source = ?2, source_until = ?3, label = ?4 WHERE record = ?1";
    let lineage = params![record.as_str(), fork.source.as_str(), last.0.cast_signed(), fork.label];
    transaction.execute(update, lineage)?;
    if let Some(original) = session::find(transaction, fork.source.as_str())? {
        session::create(transaction, NewSession::copy_of(&original, record.as_str()))?;
    }
    let seed_messages = messages_in(&kept);
    Ok(Forked { record, source: fork.source, source_until: last, label: fork.label, seed_messages })
}

fn exists<E>(transaction: &Transaction<'_>, record: &RecordId) -> Result<bool, Fault<E>> {
    let select = "SELECT EXISTS (SELECT 1 FROM records WHERE record = ?1)
         OR EXISTS (SELECT 1 FROM sessions WHERE session_id = ?1)";
    Ok(transaction.query_row(select, [record.as_str()], |row| row.get(0))?)
}

/// The last entry of a transcript and how many bytes all of them have.
fn head<E>(transaction: &Transaction<'_>, record: &RecordId) -> Result<Option<(Seq, usize)>, Fault<E>> {
    let mut select = transaction.prepare_cached("SELECT last_seq, bytes FROM records WHERE record = ?1")?;
    let found =
        select.query_row([record.as_str()], |row| Ok((row.get(0)?, row.get::<_, i64>(1)?))).optional()?;
    Ok(found.map(|(last, bytes)| (seq(last), usize::try_from(bytes).unwrap_or(usize::MAX))))
}

fn keep_head<E>(
    transaction: &Transaction<'_>,
    record: &RecordId,
    last: Seq,
    bytes: usize,
) -> Result<(), Fault<E>> {
    let insert = "INSERT INTO records (record, last_seq, bytes) VALUES (?1, ?2, ?3)
         ON CONFLICT (record) DO UPDATE SET last_seq = excluded.last_seq, bytes = excluded.bytes";
    let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
    transaction.prepare_cached(insert)?.execute(params![record.as_str(), last.0.cast_signed(), bytes])?;
    session::touch(transaction, record.as_str())?;
    Ok(())
}

fn add<E>(transaction: &Transaction<'_>, record: &RecordId, entry: &Entry) -> Result<(), Fault<E>> {
    let insert =
        "INSERT INTO entries (record, seq, first_replaced, last_replaced, data) VALUES (?1, ?2, ?3, ?4, ?5)";
    let replaced = entry.replaces.as_ref();
    transaction.prepare_cached(insert)?.execute(params![
        record.as_str(),
        entry.seq.0.cast_signed(),
        replaced.map(|range| range.start().0.cast_signed()),
        replaced.map(|range| range.end().0.cast_signed()),
        entry.text
    ])?;
    Ok(())
}

fn entries<E>(transaction: &Transaction<'_>, record: &RecordId) -> Result<Vec<Entry>, Fault<E>> {
    let select =
        "SELECT seq, first_replaced, last_replaced, data FROM entries WHERE record = ?1 ORDER BY seq";
    let mut select = transaction.prepare_cached(select)?;
    let rows = select.query_map([record.as_str()], |row| {
        let replaces = match (row.get(1)?, row.get(2)?) {
            (Some(first), Some(last)) => Some(seq(first)..=seq(last)),
            (Some(_), None) | (None, Some(_)) | (None, None) => None,
        };
        Ok(Entry { seq: seq(row.get(0)?), replaces, text: row.get(3)? })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn seq(column: i64) -> Seq {
    Seq(column.cast_unsigned())
}
