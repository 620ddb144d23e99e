//! Messages as rows.

use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ToSqlOutput, Value, ValueRef};
use rusqlite::{Connection, OptionalExtension, Row, ToSql, params, params_from_iter};
use serde::{Deserialize, Serialize};

use super::news::{self, News};
use crate::mesh::{
    Address, Attachment, AttachmentKind, DeliveryState, Direction, Message, MessageHash, MessageQuery, Method,
};

/// The columns of a message, in the order in which [`read`] takes them.
pub(in crate::mesh) const COLUMNS: &str = "hash, owner, peer, incoming, state, method, title, content, lossy, attachments, reply_to, \
     timestamp_ms, rssi, snr, quality";

/// Puts a message into the list of `owner`; `false` if it is there already.
pub(in crate::mesh) fn insert(
    on: &Connection,
    owner: Address,
    message: &Message,
    place: Place,
) -> rusqlite::Result<bool> {
    let attachments: Vec<Kept> = message.attachments.iter().map(Kept::from).collect();
    // A list of three plain fields has a spelling in JSON.
    let attachments = serde_json::to_string(&attachments).unwrap_or_else(|_| "[]".to_owned());
    let mut statement = on.prepare_cached(
        "INSERT INTO messages (owner, hash, peer, incoming, waits, state, method, title, content, lossy, attachments,
             reply_to, timestamp_ms, number, rssi, snr, quality)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17)
         ON CONFLICT (owner, hash) DO NOTHING",
    )?;
    let inserted = statement.execute(params![
        owner,
        message.hash,
        message.peer(),
        message.direction == Direction::Incoming,
        place.waits == Waits::ForAnotherNode,
        message.state.as_str(),
        message.method.as_str(),
        message.title,
        message.content,
        message.lossy,
        attachments,
        message.reply_to,
        message.timestamp_ms.cast_signed(),
        place.number.map(u64::cast_signed),
        message.rssi,
        message.snr,
        message.quality,
    ])?;
    Ok(inserted == 1)
}

/// What the store knows about a message beyond what it says.
#[derive(Clone, Copy, Debug)]
pub(in crate::mesh) struct Place {
    /// Whether it is on its way within this file.
    pub(in crate::mesh) waits: Waits,
    /// Which message of its sender it is.
    pub(in crate::mesh) number: Option<u64>,
}

/// Whether a message waits for another node of the same file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::mesh) enum Waits {
    /// That node takes it when it can.
    ForAnotherNode,
    /// Nobody takes it from here.
    No,
}

/// Where a message of `owner` is, if it is kept.
pub(in crate::mesh) fn state(
    on: &Connection,
    owner: Address,
    hash: MessageHash,
) -> rusqlite::Result<Option<DeliveryState>> {
    let mut statement = on.prepare_cached("SELECT state FROM messages WHERE owner = ?1 AND hash = ?2")?;
    statement.query_row(params![owner, hash], |row| row.get(0)).optional()
}

/// Takes an outgoing message of `owner` through `steps`, one after the other, and tells that in order.
pub(in crate::mesh) fn advance(
    on: &Connection,
    owner: Address,
    hash: MessageHash,
    from: DeliveryState,
    steps: &[DeliveryState],
) -> rusqlite::Result<()> {
    let mut previous = from;
    for &state in steps {
        news::add(on, owner, &News::State { hash, state, previous })?;
        previous = state;
    }
    set(on, owner, hash, previous)
}

/// Notes where an outgoing message of `owner` is, and tells nobody.
pub(in crate::mesh) fn set(
    on: &Connection,
    owner: Address,
    hash: MessageHash,
    state: DeliveryState,
) -> rusqlite::Result<()> {
    let mut statement = on.prepare_cached(
        "UPDATE messages SET state = ?3, waits = waits AND ?4 WHERE owner = ?1 AND hash = ?2 AND incoming = 0",
    )?;
    statement.execute(params![owner, hash, state.as_str(), !is_final(state)])?;
    Ok(())
}

/// Whether a message stays in this state.
pub(in crate::mesh) fn is_final(state: DeliveryState) -> bool {
    match state {
        DeliveryState::Generating
        | DeliveryState::Outbound
        | DeliveryState::Sending
        | DeliveryState::Sent
        | DeliveryState::Unknown => false,
        DeliveryState::Delivered
        | DeliveryState::Rejected
        | DeliveryState::Cancelled
        | DeliveryState::Failed => true,
    }
}

/// Removes the `excess` oldest messages of `owner` that are not on their way, and says how many that were.
pub(in crate::mesh) fn prune(on: &Connection, owner: Address, excess: u64) -> rusqlite::Result<u64> {
    let mut statement = on.prepare_cached(
        "DELETE FROM messages WHERE id IN (
             SELECT id FROM messages WHERE owner = ?1 AND waits = 0 ORDER BY timestamp_ms, hash LIMIT ?2)",
    )?;
    Ok(statement.execute(params![owner, excess.cast_signed()])? as u64)
}

/// Messages of `owner`, newest first.
pub(in crate::mesh) fn list(
    on: &Connection,
    owner: Address,
    query: &MessageQuery,
) -> rusqlite::Result<Vec<Message>> {
    let mut sql = format!("SELECT {COLUMNS} FROM messages WHERE owner = ?");
    let mut values: Vec<Value> = vec![owner.0.to_vec().into()];
    let signed = |ms: u64| Value::Integer(i64::try_from(ms).unwrap_or(i64::MAX));
    if let Some(peer) = query.peer {
        sql.push_str(" AND peer = ?");
        values.push(peer.0.to_vec().into());
    }
    if let Some(direction) = query.direction {
        sql.push_str(" AND incoming = ?");
        values.push(i64::from(direction == Direction::Incoming).into());
    }
    if let Some(since) = query.since_ms {
        sql.push_str(" AND timestamp_ms >= ?");
        values.push(signed(since));
    }
    if let Some(until) = query.until_ms {
        sql.push_str(" AND timestamp_ms <= ?");
        values.push(signed(until));
    }
    if let Some(after) = query.after {
        sql.push_str(" AND (timestamp_ms, hash) < (?, ?)");
        values.push(signed(after.timestamp_ms));
        values.push(after.hash.0.to_vec().into());
    }
    sql.push_str(" ORDER BY timestamp_ms DESC, hash DESC LIMIT ?");
    values.push(i64::try_from(query.limit).unwrap_or(i64::MAX).into());
    let mut statement = on.prepare_cached(&sql)?;
    let rows = statement.query_map(params_from_iter(values), read)?;
    rows.collect()
}

/// Reads the columns of [`COLUMNS`].
pub(in crate::mesh) fn read(row: &Row<'_>) -> rusqlite::Result<Message> {
    let (owner, peer): (Address, Address) = (row.get(1)?, row.get(2)?);
    let direction = if row.get(3)? { Direction::Incoming } else { Direction::Outgoing };
    let (source, destination) = match direction {
        Direction::Incoming => (peer, owner),
        Direction::Outgoing => (owner, peer),
    };
    let attachments: String = row.get(9)?;
    let attachments: Vec<Kept> = serde_json::from_str(&attachments).map_err(|error| {
        rusqlite::Error::FromSqlConversionFailure(9, rusqlite::types::Type::Text, Box::new(error))
    })?;
    Ok(Message {
        hash: row.get(0)?,
        source,
        destination,
        direction,
        state: row.get(4)?,
        method: row.get(5)?,
        title: row.get(6)?,
        content: row.get(7)?,
        lossy: row.get(8)?,
        attachments: attachments.into_iter().map(Attachment::from).collect(),
        reply_to: row.get(10)?,
        timestamp_ms: row.get::<_, i64>(11)?.cast_unsigned(),
        rssi: row.get(12)?,
        snr: row.get(13)?,
        quality: row.get(14)?,
    })
}

/// An attachment as it is kept.
#[derive(Serialize, Deserialize)]
struct Kept {
    kind: AttachmentKind,
    name: Option<String>,
    size: u64,
}

impl From<&Attachment> for Kept {
    fn from(attachment: &Attachment) -> Self {
        Self { kind: attachment.kind, name: attachment.name.clone(), size: attachment.size }
    }
}

impl From<Kept> for Attachment {
    fn from(kept: Kept) -> Self {
        Self { kind: kept.kind, name: kept.name, size: kept.size }
    }
}

macro_rules! columns {
    ($(hash $name:ident;)* $(word $word:ident;)*) => {
        $(
            impl ToSql for $name {
                fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
                    Ok(ToSqlOutput::Borrowed(ValueRef::Blob(&self.0)))
                }
            }

            impl FromSql for $name {
                fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
                    FromSql::column_result(value).map(Self)
                }
            }
        )*
        $(
            impl FromSql for $word {
                fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
                    $word::parse(value.as_str()?).map_err(|error| FromSqlError::Other(Box::new(error)))
                }
            }
        )*
    };
}

columns! {
    hash Address;
    hash MessageHash;
    word DeliveryState;
    word Method;
}
