//! Sessions and settings in the file.

use rusqlite::{OptionalExtension, Row, Transaction, params};

use super::trace::json;
use super::{Fault, File};
use crate::protocol::{Session, Timestamp};
use crate::store::LIST_LIMIT;
use crate::store::error::StoreError;
use crate::store::session::{Filter, NewSession, Which};

impl File {
    pub(in crate::store) async fn create_session(&self, new: NewSession) -> Result<Session, StoreError> {
        self.write(move |transaction| create(transaction, new)).await
    }

    pub(in crate::store) async fn session(&self, id: &str) -> Result<Option<Session>, StoreError> {
        let id = id.to_owned();
        self.read(move |transaction| find(transaction, &id)).await
    }

    pub(in crate::store) async fn sessions(&self, filter: Filter) -> Result<Vec<Session>, StoreError> {
        self.read(move |transaction| list(transaction, &filter)).await
    }

    pub(in crate::store) async fn settings(&self) -> Result<Vec<(String, String)>, StoreError> {
        self.read(|transaction| {
            let mut select = transaction.prepare_cached("SELECT name, value FROM settings")?;
            let rows = select.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
        .await
    }

    pub(in crate::store) async fn keep_settings(
        &self,
        settings: Vec<(String, String)>,
    ) -> Result<(), StoreError> {
        self.write(move |transaction| {
            transaction.execute("DELETE FROM settings", [])?;
            for (name, value) in settings {
                transaction.execute("INSERT INTO settings (name, value) VALUES (?1, ?2)", [name, value])?;
            }
            Ok(())
        })
        .await
    }
}

/// Makes a session, or makes it anew.
pub(super) fn create<E>(transaction: &Transaction<'_>, new: NewSession) -> Result<Session, Fault<E>> {
    let created = find(transaction, &new.session_id)?.map(|old| old.created_at);
    let session = new.into_session(created);
    let insert = "INSERT OR REPLACE INTO sessions (session_id, user_id, chat_id, is_active, updated_at, data)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    transaction.prepare_cached(insert)?.execute(params![
        session.session_id,
        session.user_id,
        session.chat_id,
        session.is_active,
        session.updated_at.as_str(),
        json(&session)
    ])?;
    Ok(session)
}

/// The session of this name.
pub(super) fn find<E>(transaction: &Transaction<'_>, id: &str) -> Result<Option<Session>, Fault<E>> {
    let mut select =
        transaction.prepare_cached("SELECT updated_at, data FROM sessions WHERE session_id = ?1")?;
    let found = select.query_row([id], columns).optional()?;
    found.map(parse).transpose()
}

/// Says that a session has changed now, if there is one of this name.
pub(super) fn touch(transaction: &Transaction<'_>, id: &str) -> rusqlite::Result<()> {
    let update = "UPDATE sessions SET updated_at = max(updated_at, ?2) WHERE session_id = ?1";
    transaction.prepare_cached(update)?.execute([id, Timestamp::now().as_str()])?;
    Ok(())
}

/// The sessions that a filter lets through, the last updated first.
pub(super) fn list(
    transaction: &Transaction<'_>,
    filter: &Filter,
) -> Result<Vec<Session>, Fault<StoreError>> {
    let select = "SELECT updated_at, data FROM sessions
         WHERE (?1 IS NULL OR user_id = ?1) AND (?2 IS NULL OR chat_id = ?2) AND is_active >= ?3
         ORDER BY updated_at DESC, session_id DESC LIMIT ?4";
    let active_least = match filter.which {
        Which::All => 0,
        Which::Active => 1,
    };
    let limit = i64::try_from(filter.limit.unwrap_or(LIST_LIMIT).min(LIST_LIMIT)).unwrap_or(i64::MAX);
    let mut select = transaction.prepare_cached(select)?;
    let rows = select.query_map(params![filter.user_id, filter.chat_id, active_least, limit], columns)?;
    let mut found = Vec::new();
    for row in rows {
        found.push(parse(row?)?);
    }
    Ok(found)
}

fn columns(row: &Row<'_>) -> rusqlite::Result<(String, String)> {
    Ok((row.get(0)?, row.get(1)?))
}

fn parse<E>((updated_at, data): (String, String)) -> Result<Session, Fault<E>> {
    let damaged = |error| Fault::Damaged(format!("a session is none: {error}"));
    let mut session: Session = serde_json::from_str(&data).map_err(damaged)?;
    session.updated_at = Timestamp::stored(updated_at);
    Ok(session)
}
