//! Opening the file: the lock, the version, the tables, and what a crash left.

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior};

use super::lock::Lock;
use super::queue::Queue;
use super::{File, Inner, Pulse, Writer, repair};
use crate::store::error::OpenError;

/// The version of the tables below.
const VERSION: i64 = 1;

/// Says that a database is ours: `orst` in ASCII.
const APPLICATION: i64 = 0x6f72_7374;

/// How long another program that looks into the file may hold us up.
const PATIENCE: Duration = Duration::from_secs(5);

/// Messages, sessions, spans and events are JSON in a column `data`; other columns are what is searched or sorted by.
const TABLES: &str = "
    CREATE TABLE sessions (
        session_id TEXT PRIMARY KEY,
        user_id TEXT NOT NULL,
        chat_id TEXT NOT NULL,
        is_active INTEGER NOT NULL,
        -- This one counts; the data have the time at which the session was made.
        updated_at TEXT NOT NULL,
        data TEXT NOT NULL
    );
    CREATE INDEX sessions_by_time ON sessions (updated_at, session_id);
    CREATE TABLE records (
        record TEXT PRIMARY KEY,
        last_seq INTEGER NOT NULL,
        bytes INTEGER NOT NULL,
        -- NULL: it is no fork.
        source TEXT,
        source_until INTEGER,
        label TEXT
    );
    CREATE TABLE entries (
        id INTEGER PRIMARY KEY,
        record TEXT NOT NULL,
        seq INTEGER NOT NULL,
        -- A summary replaces messages; NULL: it is a message.
        first_replaced INTEGER,
        last_replaced INTEGER,
        data TEXT NOT NULL,
        UNIQUE (record, seq)
    );
    CREATE TABLE settings (
        name TEXT PRIMARY KEY,
        value TEXT NOT NULL
    );
    CREATE TABLE traces (
        number INTEGER PRIMARY KEY,
        trace_id TEXT NOT NULL UNIQUE,
        stream_id TEXT,
        status TEXT NOT NULL,
        data TEXT NOT NULL
    );
    CREATE INDEX traces_by_stream ON traces (stream_id, number) WHERE stream_id IS NOT NULL;
    CREATE INDEX traces_running ON traces (number) WHERE status = 'running';
    CREATE TABLE spans (
        trace INTEGER NOT NULL,
        ordinal INTEGER NOT NULL,
        status TEXT NOT NULL,
        data TEXT NOT NULL,
        PRIMARY KEY (trace, ordinal)
    ) WITHOUT ROWID;
    CREATE INDEX spans_running ON spans (trace, ordinal) WHERE status = 'running';
    CREATE TABLE events (
        trace INTEGER NOT NULL,
        sequence INTEGER NOT NULL,
        data TEXT NOT NULL,
        PRIMARY KEY (trace, sequence)
    ) WITHOUT ROWID;
    PRAGMA application_id = 0x6f727374;
    PRAGMA user_version = 1;
";

/// Opens the file, and makes it if there is none; only this user can read it.
pub(in crate::store) fn open(path: &Path) -> Result<File, OpenError> {
    let lock = Lock::take(path)?;
    let made = OpenOptions::new().create(true).append(true).mode(0o600).open(path);
    made.map_err(|source| OpenError::Io { what: "open the storage", path: path.to_owned(), source })?;
    let (connection, left) = prepare(path)?;
    let inner = Arc::new(Inner {
        path: path.to_owned(),
        queue: Queue::new(),
        pulse: Pulse::default(),
        reader: OnceLock::new(),
        boundary: left.boundary,
        _lock: lock,
    });
    let writer = Writer { inner: Arc::clone(&inner), connection };
    let thread = std::thread::Builder::new().name("store".to_owned()).spawn(move || writer.run());
    let thread = thread.map_err(|source| OpenError::Io {
        what: "start the thread of",
        path: path.to_owned(),
        source,
    })?;
    Ok(File { inner, writer: Some(thread), next_trace: left.next_trace })
}

/// A connection for reading.
pub(super) fn reader(path: &Path) -> rusqlite::Result<Connection> {
    let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    connection.busy_timeout(PATIENCE)?;
    Ok(connection)
}

/// What was found in the file.
struct Left {
    boundary: i64,
    next_trace: u64,
}

fn prepare(path: &Path) -> Result<(Connection, Left), OpenError> {
    let failed = |source: rusqlite::Error| match source.sqlite_error_code() {
        Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => {
            OpenError::Corrupt { path: path.to_owned(), problem: source.to_string() }
        }
        Some(_) | None => OpenError::Sqlite { path: path.to_owned(), source },
    };
    let mut connection = Connection::open(path).map_err(failed)?;
    connection.busy_timeout(PATIENCE).map_err(failed)?;
    // Nothing is written before it is known whose file it is.
    let number = |of: &str| connection.query_row(of, [], |row| row.get::<_, i64>(0)).map_err(failed);
    let found = number("PRAGMA user_version")?;
    let application = number("PRAGMA application_id")?;
    let tables = number("SELECT count(*) FROM sqlite_schema")?;
    let is_new = found == 0 && tables == 0 && application == 0;
    if !is_new {
        ours(path, found, application)?;
    }
    let left = set_up(&mut connection, is_new.then_some(TABLES)).map_err(failed)?;
    Ok((connection, left))
}

/// Refuses a file of a newer program, and of another one.
pub(super) fn ours(path: &Path, version: i64, application: i64) -> Result<(), OpenError> {
    if version > VERSION {
        return Err(OpenError::TooNew { path: path.to_owned(), found: version, known: VERSION });
    }
    if application != APPLICATION || version != VERSION {
        return Err(OpenError::Foreign { path: path.to_owned() });
    }
    Ok(())
}

fn set_up(connection: &mut Connection, tables: Option<&str>) -> rusqlite::Result<Left> {
    // A new file has nothing to lose yet, and waiting for the disk would make a sidecar late to be ready.
    let first = if tables.is_some() { "OFF" } else { "NORMAL" };
    connection.pragma_update(None, "synchronous", first)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "journal_size_limit", 64 << 20)?;
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    if let Some(tables) = tables {
        transaction.execute_batch(tables)?;
    }
    repair::close_runs(&transaction)?;
    let last = |of: &str| transaction.query_row(of, [], |row| row.get::<_, Option<i64>>(0));
    let left = Left {
        boundary: last("SELECT max(id) FROM entries")?.unwrap_or(0),
        next_trace: last("SELECT max(number) FROM traces")?.unwrap_or(0).cast_unsigned() + 1,
    };
    transaction.commit()?;
    // What is committed is in the log, which the kernel keeps when this process dies; only a power cut can lose the last
    // of it, and never tears it.
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    Ok(left)
}
