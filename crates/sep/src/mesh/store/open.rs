//! Opening the file: whose it is, its version, its tables, and the node that we are in it.

use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rusqlite::{
    Connection, ErrorCode, OpenFlags, OptionalExtension, Transaction, TransactionBehavior, params,
};
use sha2::{Digest, Sha256};

use super::bell::{Belfry, Bell, HangError};
use crate::mesh::Address;

/// The version of the tables below.
pub(super) const VERSION: i64 = 1;

/// Says that a database is ours: `orms` in ASCII.
const APPLICATION: i64 = 0x6f72_6d73;

/// How long another node's transaction may hold us up.
const PATIENCE: Duration = Duration::from_secs(5);

/// A file up to this size is read once from end to end before it is used.
const CHECKED_BYTES: u64 = 32 << 20;

/// The longest name of a node.
pub const MAX_NODE_NAME_BYTES: usize = 64;

const TABLES: &str = "
    CREATE TABLE nodes (
        address BLOB PRIMARY KEY,
        identity BLOB NOT NULL,
        name TEXT NOT NULL UNIQUE,
        -- Nobody runs it: what is sent to it has arrived, what it says is said by others.
        puppet INTEGER NOT NULL,
        online INTEGER NOT NULL,
        -- Grows as long as the node lives.
        beat INTEGER NOT NULL,
        -- How many messages it has made.
        made INTEGER NOT NULL
    ) WITHOUT ROWID;
    -- One row for each node that has a message: the sender has one, the receiver has one.
    CREATE TABLE messages (
        id INTEGER PRIMARY KEY,
        owner BLOB NOT NULL,
        hash BLOB NOT NULL,
        peer BLOB NOT NULL,
        incoming INTEGER NOT NULL,
        -- It is on its way to another node of this file.
        waits INTEGER NOT NULL,
        state TEXT NOT NULL,
        method TEXT NOT NULL,
        title TEXT NOT NULL,
        content TEXT NOT NULL,
        lossy INTEGER NOT NULL,
        attachments TEXT NOT NULL,
        reply_to BLOB,
        timestamp_ms INTEGER NOT NULL,
        -- Which message of its sender; a part of the hash.
        number INTEGER,
        rssi REAL,
        snr REAL,
        quality REAL,
        UNIQUE (owner, hash)
    );
    CREATE INDEX messages_by_time ON messages (owner, timestamp_ms, hash);
    CREATE INDEX messages_by_peer ON messages (owner, peer, timestamp_ms, hash);
    CREATE INDEX messages_waiting ON messages (peer, id) WHERE waits = 1;
    -- What a node has not been told yet, in order. A row goes when it has been.
    CREATE TABLE news (
        id INTEGER PRIMARY KEY,
        owner BLOB NOT NULL,
        kind TEXT NOT NULL,
        hash BLOB,
        contact INTEGER,
        state TEXT,
        previous TEXT
    );
    CREATE INDEX news_by_owner ON news (owner, id);
    CREATE TABLE contacts (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        owner BLOB NOT NULL,
        name TEXT NOT NULL,
        identity BLOB NOT NULL,
        lxmf BLOB,
        lxst BLOB,
        created_ms INTEGER NOT NULL,
        updated_ms INTEGER NOT NULL,
        -- What a search looks at: the name and the addresses in lower case, a line each.
        words TEXT NOT NULL
    );
    CREATE INDEX contacts_by_owner ON contacts (owner, id);
    CREATE TABLE blocks (
        owner BLOB NOT NULL,
        address BLOB NOT NULL,
        PRIMARY KEY (owner, address)
    ) WITHOUT ROWID;
    PRAGMA application_id = 0x6f726d73;
    PRAGMA user_version = 1;
";

/// Why a mesh cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Not a name for a node.
    #[error(
        "`{name}` is not a name for a node: it must have 1 to {MAX_NODE_NAME_BYTES} bytes and no control characters"
    )]
    Name {
        /// The name, cut and escaped.
        name: String,
    },
    /// Another process, or this one, is that node already.
    #[error("node `{node}` of {} is in use: one process at a time can be a node", path.display())]
    InUse {
        /// The database.
        path: PathBuf,
        /// The node.
        node: String,
    },
    /// A newer program made it.
    #[error("{} has version {found}, and this program knows up to {known}: use a newer program", path.display())]
    TooNew {
        /// The database.
        path: PathBuf,
        /// Its version.
        found: i64,
        /// Ours.
        known: i64,
    },
    /// Another program made it.
    #[error("{} is not a mesh: another program made this database", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// It is damaged.
    #[error("{} is damaged and was left as it is ({problem}); restore a copy, or move it away to begin anew", path.display())]
    Corrupt {
        /// The database.
        path: PathBuf,
        /// What was found.
        problem: String,
    },
    /// The database says no.
    #[error("cannot open {}", path.display())]
    Sqlite {
        /// The database.
        path: PathBuf,
        /// Why.
        #[source]
        source: rusqlite::Error,
    },
    /// The system says no.
    #[error("cannot {what} {}", path.display())]
    Io {
        /// What was tried.
        what: &'static str,
        /// With which file.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
}

/// Which node is opened.
#[derive(Clone, Debug)]
pub(in crate::mesh) enum Who {
    /// The one with this name. It gets an identity when it is new.
    Named(String),
    /// One whose identity is kept elsewhere.
    Given { address: Address, identity: Address, name: String },
}

/// An opened mesh: ours is one node of it.
pub(super) struct Opened {
    pub(super) connection: Connection,
    pub(super) me: Address,
    pub(super) bell: Bell,
    pub(super) belfry: Belfry,
    /// How many messages this node has.
    pub(super) messages: u64,
}

pub(super) fn open(path: &Path, who: &Who) -> Result<Opened, OpenError> {
    let name = match who {
        Who::Named(name) | Who::Given { name, .. } => name,
    };
    check_name(name)?;
    let io = |what| move |source: io::Error| OpenError::Io { what, path: path.to_owned(), source };
    let made = OpenOptions::new().create(true).append(true).mode(0o600).open(path).map_err(io("open"))?;
    let size = made.metadata().map_err(io("look at"))?.len();
    // SQLite locks with locks that a process loses when it closes any descriptor of the file; so this one is closed first.
    drop(made);
    let mut fresh = [0; 16];
    getrandom::fill(&mut fresh).map_err(|error| io("make an identity for")(io::Error::other(error)))?;
    let failed = |source| sort(path, source);
    let mut connection = Connection::open(path).map_err(failed)?;
    be_patient(&mut connection).map_err(failed)?;
    examine(path, &connection, size)?;
    set_up(&mut connection).map_err(failed)?;
    let begun = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed)?;
    let me = become_node(&begun, who, Address(fresh)).map_err(failed)?;
    let count = "SELECT count(*) FROM messages WHERE owner = ?1";
    let messages = begun.query_row(count, [me.0.as_slice()], |row| row.get::<_, i64>(0)).map_err(failed)?;
    let hung = Belfry::beside(path).and_then(|belfry| belfry.hang(me).map(|bell| (belfry, bell)));
    let (belfry, bell) = hung.map_err(|error| match error {
        HangError::Taken => OpenError::InUse { path: path.to_owned(), node: name.clone() },
        HangError::Io { what, path, source } => OpenError::Io { what, path, source },
    })?;
    begun.commit().map_err(failed)?;
    Ok(Opened { connection, me, bell, belfry, messages: messages.cast_unsigned() })
}

/// A connection for reading.
pub(super) fn reader(path: &Path) -> rusqlite::Result<Connection> {
    let mut connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    be_patient(&mut connection)?;
    Ok(connection)
}

/// Refuses what cannot be the name of a node.
pub(in crate::mesh) fn check_name(name: &str) -> Result<(), OpenError> {
    if name.is_empty() || name.len() > MAX_NODE_NAME_BYTES || name.contains(char::is_control) {
        return Err(OpenError::Name { name: name.escape_debug().take(80).collect() });
    }
    Ok(())
}

/// Where the node with this identity gets its messages.
pub(in crate::mesh) fn address_of(identity: Address) -> Address {
    let digest = Sha256::new().chain_update(b"outrigger mesh delivery\n").chain_update(identity.0).finalize();
    let mut address = [0; 16];
    address.copy_from_slice(&digest[..16]);
    Address(address)
}

/// Nothing is written before it is known whose file it is and that it is whole.
fn examine(path: &Path, connection: &Connection, size: u64) -> Result<(), OpenError> {
    let failed = |source| sort(path, source);
    let number = |of: &str| connection.query_row(of, [], |row| row.get::<_, i64>(0)).map_err(failed);
    let version = number("PRAGMA user_version")?;
    let application = number("PRAGMA application_id")?;
    let tables = number("SELECT count(*) FROM sqlite_schema")?;
    if version == 0 && application == 0 && tables == 0 {
        return Ok(());
    }
    if application != APPLICATION || version < 1 {
        return Err(OpenError::Foreign { path: path.to_owned() });
    }
    if version > VERSION {
        return Err(OpenError::TooNew { path: path.to_owned(), found: version, known: VERSION });
    }
    if size <= CHECKED_BYTES {
        let found: String =
            connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0)).map_err(failed)?;
        if found != "ok" {
            let problem = found.escape_debug().take(200).collect();
            return Err(OpenError::Corrupt { path: path.to_owned(), problem });
        }
    }
    Ok(())
}

fn set_up(connection: &mut Connection) -> rusqlite::Result<()> {
    connection.pragma_update(None, "journal_mode", "WAL")?;
    // What is committed survives the end of this process; only a power cut can lose the last of it, and never tears it.
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    connection.pragma_update(None, "journal_size_limit", 16 << 20)?;
    connection.set_prepared_statement_cache_capacity(64);
    let begun = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Another process may have made the tables since we looked.
    if begun.query_row("PRAGMA user_version", [], |row| row.get::<_, i64>(0))? == 0 {
        begun.execute_batch(TABLES)?;
    }
    begun.commit()
}

fn become_node(begun: &Transaction<'_>, who: &Who, fresh: Address) -> rusqlite::Result<Address> {
    let (address, identity, name) = match who {
        Who::Named(name) => {
            let known = begun
                .query_row("SELECT address FROM nodes WHERE name = ?1", [name], |row| {
                    row.get::<_, [u8; 16]>(0)
                })
                .optional()?;
            if let Some(address) = known {
                begun.execute("UPDATE nodes SET puppet = 0 WHERE address = ?1", [address.as_slice()])?;
                return Ok(Address(address));
            }
            (address_of(fresh), fresh, name)
        }
        Who::Given { address, identity, name } => (*address, *identity, name),
    };
    begun.execute(
        "INSERT INTO nodes (address, identity, name, puppet, online, beat, made) VALUES (?1, ?2, ?3, 0, 0, 0, 0)
         ON CONFLICT (address) DO UPDATE SET name = excluded.name",
        params![address.0.as_slice(), identity.0.as_slice(), name],
    )?;
    Ok(address)
}

/// Waits for another node's transaction in short steps: most take some microseconds.
fn be_patient(connection: &mut Connection) -> rusqlite::Result<()> {
    let mut since: Option<Instant> = None;
    connection.busy_handler(Some(move |times| {
        if times == 0 {
            since = None;
        }
        let began = *since.get_or_insert_with(Instant::now);
        let step = if times < 20 { Duration::from_micros(50) } else { Duration::from_millis(1) };
        std::thread::sleep(step);
        began.elapsed() < PATIENCE
    }))
}

fn sort(path: &Path, source: rusqlite::Error) -> OpenError {
    let path = path.to_owned();
    match source.sqlite_error_code() {
        Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => {
            OpenError::Corrupt { path, problem: source.to_string() }
        }
        Some(_) | None => OpenError::Sqlite { path, source },
    }
}
