//! What a node has yet to be told. It waits in the file, so that a process that is killed takes nothing of it along.

use rusqlite::{Connection, OptionalExtension, params};

use super::rows;
use crate::mesh::{Address, Change, DeliveryState, MeshEvent, MessageHash};

/// Something to tell.
#[derive(Clone, Copy, Debug)]
pub(in crate::mesh) enum News {
    Received(MessageHash),
    Sent(MessageHash, DeliveryState),
    State { hash: MessageHash, state: DeliveryState, previous: DeliveryState },
    Contact(u64, Change),
}

/// Which entry; numbers are used again when everything has been told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NewsId(i64);

/// Adds something for `owner`, after everything that is there.
pub(in crate::mesh) fn add(on: &Connection, owner: Address, news: &News) -> rusqlite::Result<()> {
    let mut statement = on.prepare_cached(
        "INSERT INTO news (owner, kind, hash, contact, state, previous) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    )?;
    let (kind, hash, contact, state, previous) = match news {
        News::Received(hash) => ("received", Some(*hash), None, None, None),
        News::Sent(hash, state) => ("sent", Some(*hash), None, Some(state.as_str()), None),
        News::State { hash, state, previous } => {
            ("state", Some(*hash), None, Some(state.as_str()), Some(previous.as_str()))
        }
        News::Contact(id, change) => ("contact", None, Some(id.cast_signed()), Some(change.as_str()), None),
    };
    statement.execute(params![owner, kind, hash, contact, state, previous])?;
    Ok(())
}

/// The next things to tell `owner`, oldest first. One about a message that is not kept any more has no event.
pub(super) fn next(
    on: &Connection,
    owner: Address,
    limit: usize,
) -> rusqlite::Result<Vec<(NewsId, Option<MeshEvent>)>> {
    let mut statement = on.prepare_cached(
        "SELECT id, kind, hash, contact, state, previous FROM news WHERE owner = ?1 ORDER BY id LIMIT ?2",
    )?;
    let mut rows = statement.query(params![owner, limit.min(1 << 20) as i64])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let hash = || row.get::<_, MessageHash>(2);
        let event = match row.get_ref(1)?.as_str()? {
            "received" => message(on, owner, hash()?)?.map(MeshEvent::Received),
            "sent" => {
                let state = row.get(4)?;
                // It is told as it was when it was sent, wherever it is by now.
                message(on, owner, hash()?)?
                    .map(|message| MeshEvent::Sent(crate::mesh::Message { state, ..message }))
            }
            "state" => Some(MeshEvent::State { hash: hash()?, state: row.get(4)?, previous: row.get(5)? }),
            "contact" => Change::parse(row.get_ref(4)?.as_str()?)
                .ok()
                .map(|change| Ok::<_, rusqlite::Error>((row.get::<_, i64>(3)?.cast_unsigned(), change)))
                .transpose()?
                .map(|(id, change)| MeshEvent::Contact { id, change }),
            _ => None,
        };
        found.push((NewsId(row.get(0)?), event));
    }
    Ok(found)
}

/// Forgets what has been told.
pub(super) fn remove(on: &Connection, told: &[NewsId]) -> rusqlite::Result<()> {
    let mut statement = on.prepare_cached("DELETE FROM news WHERE id = ?1")?;
    for id in told {
        statement.execute([id.0])?;
    }
    Ok(())
}

/// Keeps no more than the `keep` newest things for `owner`: nobody has listened for a long time.
pub(super) fn bound(on: &Connection, owner: Address, keep: u64) -> rusqlite::Result<()> {
    let mut statement = on.prepare_cached(
        "DELETE FROM news WHERE owner = ?1 AND id <= (
             SELECT id FROM news WHERE owner = ?1 ORDER BY id DESC LIMIT 1 OFFSET ?2)",
    )?;
    statement.execute(params![owner, keep.cast_signed()])?;
    Ok(())
}

fn message(
    on: &Connection,
    owner: Address,
    hash: MessageHash,
) -> rusqlite::Result<Option<crate::mesh::Message>> {
    let sql = format!("SELECT {} FROM messages WHERE owner = ?1 AND hash = ?2", rows::COLUMNS);
    let mut statement = on.prepare_cached(&sql)?;
    statement.query_row(params![owner, hash], rows::read).optional()
}
