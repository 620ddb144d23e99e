//! What can go wrong with a store. A sidecar answers all of these with -32004; only [`StoreError::is_unknown`] is the
//! caller's fault.

use std::io;
use std::path::PathBuf;

use super::id::{RecordId, Seq};

/// Why a store could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process has it.
    #[error("the storage {} is in use{}", .path.display(), holder(*.by))]
    Locked {
        /// The storage.
        path: PathBuf,
        /// The process that has it, if it said so.
        by: Option<u32>,
    },
    /// A later version of this program made it.
    #[error(
        "the storage {} was written by a newer program: it has version {found}, this program knows {known}",
        .path.display()
    )]
    TooNew {
        /// The storage.
        path: PathBuf,
        /// The version it has.
        found: i64,
        /// The version that this program makes.
        known: i64,
    },
    /// It is a database of something else.
    #[error("{} is a database of another program; choose another path", .path.display())]
    Foreign {
        /// The storage.
        path: PathBuf,
    },
    /// It is no database, or a broken one.
    #[error("{} is not a database, or is damaged: {problem}", .path.display())]
    Corrupt {
        /// The storage.
        path: PathBuf,
        /// What SQLite says.
        problem: String,
    },
    /// The system refused.
    #[error("cannot {what} {}: {source}", .path.display())]
    Io {
        /// What was tried.
        what: &'static str,
        /// With which file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// SQLite refused for another reason.
    #[error("cannot open the storage {}: {source}", .path.display())]
    Sqlite {
        /// The storage.
        path: PathBuf,
        /// What SQLite says.
        source: rusqlite::Error,
    },
}

fn holder(by: Option<u32>) -> String {
    by.map_or_else(|| " by another process".to_owned(), |pid| format!(" by process {pid}"))
}

/// Why a store did not do what it was asked for.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// There is no such thing.
    #[error("{what} not found: {id}")]
    Unknown {
        /// What sort of thing: `session`, `record`, `trace`.
        what: &'static str,
        /// The name that nothing has.
        id: String,
    },
    /// There is no room for more.
    #[error("the store is full: it holds at most {limit} {what}")]
    Full {
        /// What there is too much of.
        what: &'static str,
        /// How much of it may be.
        limit: u64,
    },
    /// One thing is larger than anything may be.
    #[error("a {what} of {bytes} bytes is too large to be stored; the limit is {limit}")]
    TooLarge {
        /// What it is.
        what: &'static str,
        /// How large it is.
        bytes: usize,
        /// How large it may be.
        limit: usize,
    },
    /// What is stored cannot be read.
    #[error("the storage {} is damaged: {problem}", .path.display())]
    Corrupt {
        /// The storage.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// The disk is full.
    #[error("the disk of the storage {} is full", .path.display())]
    DiskFull {
        /// The storage.
        path: PathBuf,
    },
    /// SQLite or the system below it refused.
    #[error("the storage {} failed: {source}", .path.display())]
    Sqlite {
        /// The storage.
        path: PathBuf,
        /// What SQLite says.
        source: rusqlite::Error,
    },
    /// The store's thread is gone.
    #[error("the storage is closed")]
    Closed,
}

impl StoreError {
    /// Whether the caller named something that is not there. Everything else is the storage's own failure.
    #[must_use]
    pub const fn is_unknown(&self) -> bool {
        matches!(self, Self::Unknown { .. })
    }
}

/// Why a transcript was not forked.
#[derive(Debug, thiserror::Error)]
pub enum ForkError {
    /// The new name is taken.
    #[error("newRecordId must be a new one: {record} exists")]
    Taken {
        /// The name.
        record: RecordId,
    },
    /// The transcript does not go that far.
    #[error("untilSeq must be at most {last}, which is the last of {record}")]
    BeyondEnd {
        /// The transcript.
        record: RecordId,
        /// Its last message.
        last: Seq,
    },
    /// It has no such message of a user.
    #[error("{record} has {users} messages of a user; there is none to fork before")]
    NoUserMessage {
        /// The transcript.
        record: RecordId,
        /// How many it has.
        users: usize,
    },
    /// The store refused.
    #[error(transparent)]
    Store(#[from] StoreError),
}
