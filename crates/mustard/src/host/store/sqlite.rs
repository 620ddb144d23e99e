//! A store that is a SQLite database: write-ahead log, every change one transaction. For hosts that already keep one file.

use std::collections::BTreeMap;
use std::fs::{DirBuilder, OpenOptions};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};

use super::directory::{answer_name, entries, is_abandoned, open_answer};
use super::seal::{Kind, seal};
use super::{
    CallId, Capacity, Entry, HoldError, Lease, Listed, PeekError, PutError, Record, RunId, Store, StoreError,
    TakeError, Ticket, UnixMillis, Usage,
};
use crate::host::key::HostKey;

/// How long a process waits for another one's transaction.
const PATIENCE: Duration = Duration::from_secs(30);

/// The version of the tables below.
const VERSION: i64 = 1;

const TABLES: &str = "
    CREATE TABLE tickets (
        ticket TEXT PRIMARY KEY,
        used_at INTEGER,
        bytes INTEGER NOT NULL,
        sealed BLOB NOT NULL
    );
    CREATE TABLE checkpoints (
        run TEXT PRIMARY KEY,
        sealed BLOB NOT NULL
    );
    CREATE TABLE answers (
        run TEXT NOT NULL,
        call INTEGER NOT NULL,
        -- NULL: the call has begun.
        sealed BLOB,
        PRIMARY KEY (run, call)
    );
    PRAGMA user_version = 1;
";

/// A store that is a SQLite database. Any number of processes may use it at once.
#[derive(Debug)]
pub struct Sqlite {
    connection: Mutex<Connection>,
    /// Locks are files, because a row cannot tell that its writer died.
    leases: PathBuf,
    key: HostKey,
    capacity: Capacity,
}

impl Sqlite {
    /// Opens a database, and makes it if there is none. Only this user can read it. Beside it there is a directory with the
    /// locks of runs, `<path>-leases`.
    ///
    /// # Errors
    ///
    /// When it cannot be opened, or was made by a later version of this program.
    pub fn open(path: impl AsRef<Path>, key: HostKey, capacity: Capacity) -> Result<Self, StoreError> {
        let path = path.as_ref();
        let failed = |what, source| StoreError::Io { what, path: path.to_owned(), source };
        let made = OpenOptions::new().create(true).append(true).mode(0o600).open(path);
        made.map_err(|error| failed("make the database", error))?;
        let mut leases = path.as_os_str().to_owned();
        leases.push("-leases");
        let leases = PathBuf::from(leases);
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&leases);
        made.map_err(|error| failed("make the lock directory of", error))?;

        let mut connection = Connection::open(path)?;
        connection.busy_timeout(PATIENCE)?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let found: i64 = transaction.query_row("PRAGMA user_version", [], |row| row.get(0))?;
        match found {
            0 => transaction.execute_batch(TABLES)?,
            VERSION => {}
            found => return Err(StoreError::DatabaseVersion { found, known: VERSION }),
        }
        transaction.commit()?;
        let store = Self { connection: Mutex::new(connection), leases, key, capacity };
        store.sweep()?;
        Ok(store)
    }

    /// Removes the locks of runs that never came to their first snapshot.
    fn sweep(&self) -> Result<(), StoreError> {
        for path in entries(&self.leases)? {
            let run = path.file_name().and_then(|name| name.to_str()).and_then(|name| name.parse().ok());
            if let Some(run) = run
                && is_abandoned(&path)
                && self.latest_sealed(&run)?.is_none()
                // One that is held is somebody's, however old it is.
                && let Ok(_lease) = self.hold(&run)
            {
                self.forget(&run)?;
            }
        }
        Ok(())
    }

    fn latest_sealed(&self, run: &RunId) -> Result<Option<Vec<u8>>, StoreError> {
        let select = "SELECT sealed FROM checkpoints WHERE run = ?1";
        Ok(self.connection().query_row(select, [run.as_str()], |row| row.get(0)).optional()?)
    }

    fn connection(&self) -> MutexGuard<'_, Connection> {
        // A panic in the middle of a transaction rolls it back, so the connection is as good as before.
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does something as a whole or not at all, alone.
    fn transact<T, E: From<StoreError>>(
        &self,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        let mut connection = self.connection();
        let transaction =
            connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(StoreError::from)?;
        let done = work(&transaction)?;
        transaction.commit().map_err(StoreError::from)?;
        Ok(done)
    }

    fn open_ticket(&self, ticket: &Ticket, sealed: &[u8]) -> Result<Record, StoreError> {
        Record::open(&self.key, Kind::Ticket, ticket.as_str(), sealed)
    }

    fn find(&self, transaction: &Connection, ticket: &Ticket) -> Result<Option<(Record, Usage)>, StoreError> {
        let row: Option<(Vec<u8>, Option<i64>)> = transaction
            .query_row("SELECT sealed, used_at FROM tickets WHERE ticket = ?1", [ticket.as_str()], |row| {
                Ok((row.get(0)?, row.get(1)?))
            })
            .optional()?;
        row.map(|(sealed, used)| Ok((self.open_ticket(ticket, &sealed)?, usage(used)))).transpose()
    }

    fn make_room(&self, transaction: &Transaction<'_>, needed: u64) -> Result<(), PutError> {
        loop {
            let (entries, bytes) = transaction
                .query_row("SELECT count(*), coalesce(sum(bytes), 0) FROM tickets", [], |row| {
                    Ok((count(row.get(0)?), row.get::<_, i64>(1)?.cast_unsigned()))
                })
                .map_err(StoreError::from)?;
            if entries < self.capacity.entries && bytes.saturating_add(needed) <= self.capacity.bytes {
                return Ok(());
            }
            let removed = transaction
                .execute(
                    "DELETE FROM tickets WHERE ticket IN
                     (SELECT ticket FROM tickets WHERE used_at IS NOT NULL ORDER BY used_at LIMIT 1)",
                    [],
                )
                .map_err(StoreError::from)?;
            if removed == 0 {
                return Err(PutError::Full { entries, bytes, needed, capacity: self.capacity });
            }
        }
    }
}

impl Store for Sqlite {
    fn put(&self, record: &Record) -> Result<Ticket, PutError> {
        let ticket = Ticket::random().map_err(StoreError::from)?;
        let sealed = record.seal(&self.key, Kind::Ticket, ticket.as_str());
        let needed = self.capacity.admit(sealed.len())?;
        self.transact(|transaction| {
            self.make_room(transaction, needed)?;
            let insert = "INSERT INTO tickets (ticket, bytes, sealed) VALUES (?1, ?2, ?3)";
            transaction
                .execute(insert, params![ticket.as_str(), needed.cast_signed(), sealed])
                .map_err(|error| PutError::Store(error.into()))
        })?;
        Ok(ticket)
    }

    fn take(&self, ticket: &Ticket) -> Result<Record, TakeError> {
        self.transact(|transaction| match self.find(transaction, ticket)? {
            None => Err(TakeError::Unknown { ticket: ticket.clone() }),
            Some((_, Usage::Used(when))) => Err(TakeError::AlreadyUsed { ticket: ticket.clone(), when }),
            Some((record, Usage::Fresh)) => {
                let update = "UPDATE tickets SET used_at = ?2 WHERE ticket = ?1";
                transaction
                    .execute(update, params![ticket.as_str(), UnixMillis::now().0.cast_signed()])
                    .map_err(StoreError::from)?;
                Ok(record)
            }
        })
    }

    fn peek(&self, ticket: &Ticket) -> Result<(Record, Usage), PeekError> {
        let found = self.find(&self.connection(), ticket)?;
        found.ok_or_else(|| PeekError::Unknown { ticket: ticket.clone() })
    }

    fn list(&self) -> Result<Vec<Listed>, StoreError> {
        let connection = self.connection();
        let mut statement = connection.prepare("SELECT ticket, used_at, bytes, sealed FROM tickets")?;
        let mut rows = statement.query([])?;
        let mut listed = Vec::new();
        while let Some(row) = rows.next()? {
            // What does not look like a ticket was not written by us, and nobody could take it.
            let Ok(ticket) = row.get::<_, String>(0)?.parse::<Ticket>() else { continue };
            let sealed: Vec<u8> = row.get(3)?;
            let record = self.open_ticket(&ticket, &sealed).map(Record::without_snapshot);
            listed.push(Listed {
                ticket,
                usage: usage(row.get(1)?),
                bytes: row.get::<_, i64>(2)?.cast_unsigned(),
                record,
            });
        }
        Ok(listed)
    }

    fn remove(&self, ticket: &Ticket) -> Result<(), StoreError> {
        self.connection().execute("DELETE FROM tickets WHERE ticket = ?1", [ticket.as_str()])?;
        Ok(())
    }

    fn hold(&self, run: &RunId) -> Result<Lease, HoldError> {
        Lease::at(&self.leases.join(run.as_str()), run)
    }

    fn checkpoint(&self, record: &Record) -> Result<(), PutError> {
        let run = record.run.as_str();
        let sealed = record.seal(&self.key, Kind::Checkpoint, run);
        let needed = self.capacity.admit(sealed.len())?;
        self.transact(|transaction| {
            let is_new = transaction
                .query_row("SELECT 1 FROM checkpoints WHERE run = ?1", [run], |_| Ok(()))
                .optional()
                .map_err(StoreError::from)?
                .is_none();
            let entries = transaction
                .query_row("SELECT count(*) FROM checkpoints", [], |row| Ok(count(row.get(0)?)))
                .map_err(StoreError::from)?;
            if is_new && entries >= self.capacity.entries {
                return Err(PutError::Full { entries, bytes: 0, needed, capacity: self.capacity });
            }
            let replace = "INSERT OR REPLACE INTO checkpoints (run, sealed) VALUES (?1, ?2)";
            transaction.execute(replace, params![run, sealed]).map_err(StoreError::from)?;
            for call in calls_of(transaction, run)?.into_iter().filter(|call| !record.waits_for(*call)) {
                let delete = "DELETE FROM answers WHERE run = ?1 AND call = ?2";
                transaction.execute(delete, params![run, call.0.cast_signed()]).map_err(StoreError::from)?;
            }
            Ok(())
        })
    }

    fn latest(&self, run: &RunId) -> Result<Option<Record>, StoreError> {
        let sealed = self.latest_sealed(run)?;
        sealed.map(|sealed| Record::open(&self.key, Kind::Checkpoint, run.as_str(), &sealed)).transpose()
    }

    fn unfinished(&self) -> Result<Vec<RunId>, StoreError> {
        let connection = self.connection();
        let mut statement = connection.prepare("SELECT run FROM checkpoints")?;
        let names = statement.query_map([], |row| row.get::<_, String>(0))?;
        let mut runs = Vec::new();
        for name in names {
            runs.extend(name?.parse::<RunId>().ok());
        }
        Ok(runs)
    }

    fn begin(&self, run: &RunId, call: CallId) -> Result<(), StoreError> {
        let insert = "INSERT OR IGNORE INTO answers (run, call) VALUES (?1, ?2)";
        self.connection().execute(insert, params![run.as_str(), call.0.cast_signed()])?;
        Ok(())
    }

    fn answer(&self, run: &RunId, call: CallId, payload: &str) -> Result<(), PutError> {
        let sealed = seal(&self.key, Kind::Answer, &answer_name(run, call), &[], payload.as_bytes());
        self.capacity.admit(sealed.len())?;
        let insert = "INSERT INTO answers (run, call, sealed) VALUES (?1, ?2, ?3)
             ON CONFLICT (run, call) DO UPDATE SET sealed = coalesce(sealed, excluded.sealed)";
        let params = params![run.as_str(), call.0.cast_signed(), sealed];
        self.connection().execute(insert, params).map_err(StoreError::from)?;
        Ok(())
    }

    fn journal(&self, run: &RunId) -> Result<BTreeMap<CallId, Entry>, StoreError> {
        let connection = self.connection();
        let mut statement = connection.prepare("SELECT call, sealed FROM answers WHERE run = ?1")?;
        let mut rows = statement.query([run.as_str()])?;
        let mut journal = BTreeMap::new();
        while let Some(row) = rows.next()? {
            let call = CallId(row.get::<_, i64>(0)?.cast_unsigned());
            let sealed: Option<Vec<u8>> = row.get(1)?;
            let entry = match sealed {
                None => Entry::Begun,
                Some(sealed) => Entry::Answered(open_answer(&self.key, run, call, &sealed)?),
            };
            journal.insert(call, entry);
        }
        Ok(journal)
    }

    fn forget(&self, run: &RunId) -> Result<(), StoreError> {
        self.transact::<_, StoreError>(|transaction| {
            transaction.execute("DELETE FROM checkpoints WHERE run = ?1", [run.as_str()])?;
            transaction.execute("DELETE FROM answers WHERE run = ?1", [run.as_str()])?;
            Ok(())
        })?;
        let lock = self.leases.join(run.as_str());
        match std::fs::remove_file(&lock) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(StoreError::Io { what: "remove", path: lock, source: error })
            }
            Ok(()) | Err(_) => Ok(()),
        }
    }
}

fn calls_of(transaction: &Transaction<'_>, run: &str) -> Result<Vec<CallId>, StoreError> {
    let mut statement = transaction.prepare("SELECT call FROM answers WHERE run = ?1")?;
    let calls =
        statement.query_map([run], |row| row.get::<_, i64>(0).map(|call| CallId(call.cast_unsigned())))?;
    Ok(calls.collect::<Result<_, _>>()?)
}

fn usage(used_at: Option<i64>) -> Usage {
    used_at.map_or(Usage::Fresh, |when| Usage::Used(UnixMillis(when.cast_unsigned())))
}

fn count(rows: i64) -> usize {
    usize::try_from(rows).unwrap_or(usize::MAX)
}
