//! What can go wrong with a store, an operation at a time.

use std::io;
use std::path::PathBuf;

use super::{Capacity, RunId, Ticket, UnixMillis};

/// What can go wrong with any store.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The file system said no.
    #[error("failed to {what} `{}`: {source}", path.display())]
    Io {
        /// What was tried.
        what: &'static str,
        /// With which file.
        path: PathBuf,
        /// What it said.
        source: io::Error,
    },
    /// The database said no.
    #[error("the snapshot database failed: {0}")]
    Sqlite(#[from] rusqlite::Error),
    /// It is a database, but of a later time.
    #[error("the snapshot database has version {found}, and this program knows {known}")]
    DatabaseVersion {
        /// Its version.
        found: i64,
        /// Ours.
        known: i64,
    },
    /// It is not what was stored, or was stored under another key.
    #[error("{name} was changed, or belongs to a host with another key: {why}")]
    Tampered {
        /// Which entry.
        name: String,
        /// What gave it away.
        why: &'static str,
    },
    /// It was written by a later version of this program.
    #[error("{name} has format {found}, and this program knows {known}")]
    Format {
        /// Which entry.
        name: String,
        /// Its format.
        found: u16,
        /// Ours.
        known: u16,
    },
    /// No randomness for an id.
    #[error("the system has no randomness to give: {0}")]
    Random(#[from] getrandom::Error),
}

/// Why something was not stored.
#[derive(Debug, thiserror::Error)]
pub enum PutError {
    /// There is no room, and nothing that may go.
    #[error("the store is full: {entries} entries with {bytes} bytes, {needed} more are needed, and it may have {} entries with {} bytes; take or remove some", capacity.entries, capacity.bytes)]
    Full {
        /// How many there are.
        entries: usize,
        /// What they take.
        bytes: u64,
        /// What this one would take.
        needed: u64,
        /// The limits.
        capacity: Capacity,
    },
    /// It would not even fit alone.
    #[error("{needed} bytes cannot be stored: the store may have {} bytes", capacity.bytes)]
    TooLarge {
        /// What it would take.
        needed: u64,
        /// The limits.
        capacity: Capacity,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Why a ticket was not taken.
#[derive(Debug, thiserror::Error)]
pub enum TakeError {
    /// Somebody was faster.
    #[error("ticket {ticket} was used {when}; a replay has to be asked for")]
    AlreadyUsed {
        /// The ticket.
        ticket: Ticket,
        /// When it was used.
        when: UnixMillis,
    },
    /// There is no such ticket, or it was removed.
    #[error("there is no ticket {ticket} in this store")]
    Unknown {
        /// The ticket.
        ticket: Ticket,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Why a ticket cannot be looked at.
#[derive(Debug, thiserror::Error)]
pub enum PeekError {
    /// There is no such ticket, or it was removed.
    #[error("there is no ticket {ticket} in this store")]
    Unknown {
        /// The ticket.
        ticket: Ticket,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Why a run cannot be held.
#[derive(Debug, thiserror::Error)]
pub enum HoldError {
    /// Somebody has it.
    #[error("run {run} goes on in another place; it can be taken over when that process is gone")]
    Held {
        /// The run.
        run: RunId,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<PeekError> for TakeError {
    fn from(error: PeekError) -> Self {
        match error {
            PeekError::Unknown { ticket } => Self::Unknown { ticket },
            PeekError::Store(error) => Self::Store(error),
        }
    }
}
