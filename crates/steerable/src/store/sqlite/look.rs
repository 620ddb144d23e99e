//! Looking into a file without taking it: for tools of people, while a sidecar may be writing.

use std::path::{Path, PathBuf};

use rusqlite::{Connection, ErrorCode};

use super::{Fault, failed, open, session, trace};
use crate::protocol::{Session, Trace};
use crate::store::error::{OpenError, StoreError};
use crate::store::{Filter, TraceTree};

/// A file that is only read. It sees what is committed, whoever has the file.
#[derive(Debug)]
pub struct Look {
    path: PathBuf,
    connection: Connection,
}

impl Look {
    /// Opens a file for reading.
    ///
    /// # Errors
    ///
    /// When there is none, or it is not one of ours.
    pub fn open(path: &Path) -> Result<Self, OpenError> {
        // SQLite would say only that it cannot open it.
        if let Err(source) = std::fs::metadata(path) {
            return Err(OpenError::Io { what: "open the storage", path: path.to_owned(), source });
        }
        let explain = |source: rusqlite::Error| match source.sqlite_error_code() {
            Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => {
                OpenError::Corrupt { path: path.to_owned(), problem: source.to_string() }
            }
            Some(_) | None => OpenError::Sqlite { path: path.to_owned(), source },
        };
        let connection = open::reader(path).map_err(explain)?;
        let number = |of: &str| connection.query_row(of, [], |row| row.get::<_, i64>(0)).map_err(explain);
        open::ours(path, number("PRAGMA user_version")?, number("PRAGMA application_id")?)?;
        Ok(Self { path: path.to_owned(), connection })
    }

    /// The sessions that a filter lets through, the last updated first.
    ///
    /// # Errors
    ///
    /// When the file fails.
    pub fn sessions(&mut self, filter: &Filter) -> Result<Vec<Session>, StoreError> {
        self.read(|transaction| session::list(transaction, filter))
    }

    /// The last traces, the newest first, without what is in them.
    ///
    /// # Errors
    ///
    /// When the file fails.
    pub fn traces(&mut self, limit: usize) -> Result<Vec<Trace>, StoreError> {
        self.read(|transaction| trace::newest(transaction, limit))
    }

    /// The traces whose ids begin like this, with everything that is in them; at most `limit`.
    ///
    /// # Errors
    ///
    /// When the file fails.
    pub fn traces_like(&mut self, beginning: &str, limit: usize) -> Result<Vec<TraceTree>, StoreError> {
        self.read(|transaction| trace::like(transaction, beginning, limit))
    }

    fn read<T>(
        &mut self,
        work: impl FnOnce(&rusqlite::Transaction<'_>) -> Result<T, Fault<StoreError>>,
    ) -> Result<T, StoreError> {
        let done =
            self.connection.transaction().map_err(Fault::from).and_then(|transaction| work(&transaction));
        done.map_err(|fault| match fault {
            Fault::Sqlite(source) => failed(&self.path, source),
            Fault::Damaged(problem) => StoreError::Corrupt { path: self.path.clone(), problem },
            Fault::Refused(error) => error,
        })
    }
}
