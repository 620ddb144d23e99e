//! What SQLite says when it cannot, as sentences.

use std::path::Path;

use rusqlite::ErrorCode;

use crate::engine::EngineError;

/// Why something inside a transaction did not happen.
#[derive(Debug, thiserror::Error)]
pub(super) enum Fault {
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
    /// SQLite would, but we do not.
    #[error("{0}")]
    Refused(String),
}

impl From<rusqlite::types::FromSqlError> for Fault {
    fn from(error: rusqlite::types::FromSqlError) -> Self {
        Fault::Sqlite(error.into())
    }
}

/// A failure of an open store.
pub(super) fn failed(what: &str, fault: &Fault) -> EngineError {
    EngineError::Failed { what: what.to_owned(), why: sentence(fault) }
}

/// A failure in which it matters which file it was.
pub(super) fn of_file(what: &str, path: &Path, fault: &Fault) -> EngineError {
    EngineError::Failed { what: format!("`{}` {what}", path.display()), why: sentence(fault) }
}

fn sentence(fault: &Fault) -> String {
    let code = match fault {
        Fault::Refused(why) => return why.clone(),
        Fault::Sqlite(error) => error.sqlite_error_code(),
    };
    let known = match code {
        Some(ErrorCode::DiskFull) => "the disk is full; make room and try again",
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => {
            "the file or its folder may not be written"
        }
        Some(ErrorCode::CannotOpen) => {
            "the file cannot be made or opened; its folder must be there and writable"
        }
        Some(ErrorCode::NotADatabase) => {
            "it is not a SQLite database; move it away and a new one will be made"
        }
        Some(ErrorCode::DatabaseCorrupt) => {
            "the file is damaged; move it away, and `sqlite3 FILE .recover` saves what can be"
        }
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            "another program holds the file; close what looks into it"
        }
        Some(ErrorCode::SystemIoFailure) => "the disk failed",
        Some(ErrorCode::OutOfMemory) => "there is no memory left",
        _ => return fault.to_string(),
    };
    format!("{known} ({fault})")
}

#[cfg(test)]
mod tests {
    use rusqlite::ffi;

    use super::*;

    #[test]
    fn what_a_person_can_do_something_about_is_said_in_words_with_sqlites_own_behind() {
        let check = |code, words: &str| {
            let fault = Fault::Sqlite(rusqlite::Error::SqliteFailure(ffi::Error::new(code), None));
            let said = failed("could not write", &fault).to_string();
            assert!(said.starts_with(&format!("the store could not write: {words}")), "{said}");
            assert!(said.ends_with(&format!("({fault})")), "{said}");
        };
        check(ffi::SQLITE_FULL, "the disk is full");
        check(ffi::SQLITE_READONLY, "the file or its folder may not be written");
        check(ffi::SQLITE_PERM, "the file or its folder may not be written");
        check(ffi::SQLITE_CANTOPEN, "the file cannot be made or opened");
        check(ffi::SQLITE_NOTADB, "it is not a SQLite database");
        check(ffi::SQLITE_CORRUPT, "the file is damaged");
        check(ffi::SQLITE_BUSY, "another program holds the file");
        check(ffi::SQLITE_IOERR_FSYNC, "the disk failed");
    }
}
