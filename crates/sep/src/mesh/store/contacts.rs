//! Contacts as rows: the people that a node knows.

use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, Row, params, params_from_iter};

use super::news::{self, News};
use super::{Fault, Trouble};
use crate::mesh::{Address, Change, Contact, ContactQuery};

/// The longest name of a contact.
pub const MAX_CONTACT_NAME_BYTES: usize = 256;

/// A contact as the operator writes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// What we call them.
    pub name: String,
    /// Who they are.
    pub identity: Address,
    /// Where they get messages.
    pub lxmf: Option<Address>,
    /// Where they take calls.
    pub lxst: Option<Address>,
}

/// Why the list of contacts was not changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ContactError {
    /// There is none with this number.
    #[error("there is no contact {id}")]
    Unknown {
        /// The number.
        id: u64,
    },
    /// Not a name.
    #[error(
        "`{name}` cannot be the name of a contact: it must have 1 to {MAX_CONTACT_NAME_BYTES} bytes and no control characters"
    )]
    Name {
        /// The name, cut and escaped.
        name: String,
    },
    /// There are too many.
    #[error("there are {limit} contacts already, which is as many as are kept")]
    Full {
        /// How many are kept.
        limit: u64,
    },
    /// The database cannot be used.
    #[error("the contacts cannot be changed: {why}")]
    Unavailable {
        /// Why.
        why: String,
    },
}

impl From<Trouble> for ContactError {
    fn from(trouble: Trouble) -> Self {
        Self::Unavailable { why: trouble.0 }
    }
}

pub(super) fn add(
    on: &Connection,
    owner: Address,
    entry: &Entry,
    now_ms: u64,
    limit: u64,
) -> Result<u64, Fault<ContactError>> {
    check(entry)?;
    let count = "SELECT count(*) FROM contacts WHERE owner = ?1";
    let count: i64 = on.prepare_cached(count)?.query_row([owner], |row| row.get(0))?;
    if count.cast_unsigned() >= limit {
        return Err(Fault::Refused(ContactError::Full { limit }));
    }
    on.prepare_cached(
        "INSERT INTO contacts (owner, name, identity, lxmf, lxst, created_ms, updated_ms, words)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?6, ?7)",
    )?
    .execute(params![
        owner,
        entry.name,
        entry.identity,
        entry.lxmf,
        entry.lxst,
        now_ms.cast_signed(),
        words(entry)
    ])?;
    let id = on.last_insert_rowid().cast_unsigned();
    news::add(on, owner, &News::Contact(id, Change::Added))?;
    Ok(id)
}

pub(super) fn update(
    on: &Connection,
    owner: Address,
    id: u64,
    entry: &Entry,
    now_ms: u64,
) -> Result<(), Fault<ContactError>> {
    check(entry)?;
    let changed = on
        .prepare_cached(
            "UPDATE contacts SET name = ?3, identity = ?4, lxmf = ?5, lxst = ?6, updated_ms = ?7, words = ?8
             WHERE owner = ?1 AND id = ?2",
        )?
        .execute(params![
            owner,
            id.cast_signed(),
            entry.name,
            entry.identity,
            entry.lxmf,
            entry.lxst,
            now_ms.cast_signed(),
            words(entry)
        ])?;
    if changed == 0 {
        return Err(Fault::Refused(ContactError::Unknown { id }));
    }
    Ok(news::add(on, owner, &News::Contact(id, Change::Updated))?)
}

pub(super) fn remove(on: &Connection, owner: Address, id: u64) -> Result<(), Fault<ContactError>> {
    let removed = on
        .prepare_cached("DELETE FROM contacts WHERE owner = ?1 AND id = ?2")?
        .execute(params![owner, id.cast_signed()])?;
    if removed == 0 {
        return Err(Fault::Refused(ContactError::Unknown { id }));
    }
    Ok(news::add(on, owner, &News::Contact(id, Change::Removed))?)
}

/// Contacts of `owner`, by number.
pub(super) fn list(on: &Connection, owner: Address, query: &ContactQuery) -> rusqlite::Result<Vec<Contact>> {
    let mut sql =
        "SELECT id, name, identity, lxmf, lxst, created_ms, updated_ms FROM contacts WHERE owner = ?"
            .to_owned();
    let mut values: Vec<Value> = vec![owner.0.to_vec().into()];
    if let Some(after) = query.after {
        sql.push_str(" AND id > ?");
        values.push(i64::try_from(after).unwrap_or(i64::MAX).into());
    }
    if let Some(text) = &query.text {
        sql.push_str(" AND instr(words, ?) > 0");
        values.push(text.to_lowercase().into());
    }
    sql.push_str(" ORDER BY id LIMIT ?");
    values.push(i64::try_from(query.limit).unwrap_or(i64::MAX).into());
    let mut statement = on.prepare_cached(&sql)?;
    let rows = statement.query_map(params_from_iter(values), read)?;
    rows.collect()
}

/// What `owner` calls whoever gets messages at this address.
pub(in crate::mesh) fn name_of(
    on: &Connection,
    owner: Address,
    address: Address,
) -> rusqlite::Result<Option<String>> {
    on.prepare_cached("SELECT name FROM contacts WHERE owner = ?1 AND lxmf = ?2 ORDER BY id LIMIT 1")?
        .query_row(params![owner, address], |row| row.get(0))
        .optional()
}

fn read(row: &Row<'_>) -> rusqlite::Result<Contact> {
    Ok(Contact {
        id: row.get::<_, i64>(0)?.cast_unsigned(),
        name: row.get(1)?,
        identity: row.get(2)?,
        lxmf: row.get(3)?,
        lxst: row.get(4)?,
        created_ms: row.get::<_, i64>(5)?.cast_unsigned(),
        updated_ms: row.get::<_, i64>(6)?.cast_unsigned(),
    })
}

fn check(entry: &Entry) -> Result<(), Fault<ContactError>> {
    let name = &entry.name;
    if name.is_empty() || name.len() > MAX_CONTACT_NAME_BYTES || name.contains(char::is_control) {
        let name = name.escape_debug().take(80).collect();
        return Err(Fault::Refused(ContactError::Name { name }));
    }
    Ok(())
}

/// SQLite knows the case of ASCII letters only, so what is searched is kept in lower case.
fn words(entry: &Entry) -> String {
    let mut words = format!("{}\n{}", entry.name.to_lowercase(), entry.identity);
    for address in [entry.lxmf, entry.lxst].into_iter().flatten() {
        words.push_str(&format!("\n{address}"));
    }
    words
}
