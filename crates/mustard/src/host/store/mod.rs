//! Where runs wait and what they remember: snapshots behind single-use tickets, and a journal that lets a run survive the
//! death of its host without doing anything twice.
//!
//! There are two things in a store, and two implementations of both ([`Directory`], [`Sqlite`]):
//!
//! * **Tickets.** A parked run is put into the store and becomes a [`Ticket`]. [`Store::take`] gives it back once; whoever comes
//!   second is told when it was used. [`Store::replay`] is the explicit way to run it again, as another run.
//! * **Journals.** A run that goes on is held by one process at a time ([`Store::hold`]; the lease ends with the process, however
//!   that ends). It keeps its last snapshot and the answers that came since then. The order is what makes it right: a
//!   snapshot is stored before any of its calls is made, and an answer before it is sent. A host that is killed leaves
//!   either no answer, or an answer that is used instead of a second call.
//!
//! Everything on disk is versioned, and sealed with the host's key: what was changed, swapped or cut is refused.
//!
//! The trait blocks. Async code goes through [`tokio::task::spawn_blocking`], which the host does by itself.

mod directory;
mod lease;
mod record;
mod seal;
mod sqlite;

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

pub use directory::Directory;
pub use lease::Lease;
pub use record::{Dialect, Record, Waiting};
pub(super) use record::{value_of, value_text};
pub use sqlite::Sqlite;

use super::key::{hex, id_of};

/// Keeps snapshots and journals. Every method blocks until what it did would survive a crash of the machine.
pub trait Store: fmt::Debug + Send + Sync + 'static {
    /// Stores a parked run; the ticket is good for one [`Store::take`]. To make room, used tickets go, the oldest first.
    ///
    /// # Errors
    ///
    /// [`PutError::Full`] when only unused ones are left, [`PutError::TooLarge`] when it can never fit.
    fn put(&self, record: &Record) -> Result<Ticket, PutError>;

    /// Uses a ticket. Of all who try, in whatever process, exactly one gets the record.
    ///
    /// # Errors
    ///
    /// [`TakeError::AlreadyUsed`] for everyone else. A record that was changed is refused and stays unused.
    fn take(&self, ticket: &Ticket) -> Result<Record, TakeError>;

    /// Looks at a ticket without using it.
    ///
    /// # Errors
    ///
    /// When there is none, or it was changed.
    fn peek(&self, ticket: &Ticket) -> Result<(Record, Usage), PeekError>;

    /// The record of a ticket, used or not, as a run of its own: it has a new [`RunId`] and an empty journal, so everything that
    /// it does is done again. Nothing is marked.
    ///
    /// # Errors
    ///
    /// As [`Store::peek`], and when there is no randomness for the new id.
    fn replay(&self, ticket: &Ticket) -> Result<Record, PeekError> {
        let (record, _) = self.peek(ticket)?;
        Ok(Record { run: RunId::random().map_err(StoreError::from)?, ..record })
    }

    /// All tickets, in no particular order. One that cannot be read is listed with its error.
    ///
    /// # Errors
    ///
    /// When the store itself cannot be read.
    fn list(&self) -> Result<Vec<Listed>, StoreError>;

    /// Removes a ticket, used or not; without effect when there is none.
    ///
    /// # Errors
    ///
    /// When the store cannot be written.
    fn remove(&self, ticket: &Ticket) -> Result<(), StoreError>;

    /// Takes hold of a run. The lease ends when it is dropped, or with this process.
    ///
    /// # Errors
    ///
    /// [`HoldError::Held`] while somebody else has it.
    fn hold(&self, run: &RunId) -> Result<Lease, HoldError>;

    /// Makes this the run's last snapshot, in one step: there is always either the one before or this one. Answers to calls
    /// that no longer wait are forgotten. Only for whoever holds the run.
    ///
    /// # Errors
    ///
    /// As [`Store::put`].
    fn checkpoint(&self, record: &Record) -> Result<(), PutError>;

    /// The last snapshot of a run that did not come to its end.
    ///
    /// # Errors
    ///
    /// When it was changed, or cannot be read.
    fn latest(&self, run: &RunId) -> Result<Option<Record>, StoreError>;

    /// The runs that have a snapshot and did not come to their end.
    ///
    /// # Errors
    ///
    /// When the store cannot be read.
    fn unfinished(&self) -> Result<Vec<RunId>, StoreError>;

    /// Notes that a call is about to be made.
    ///
    /// # Errors
    ///
    /// When the store cannot be written.
    fn begin(&self, run: &RunId, call: CallId) -> Result<(), StoreError>;

    /// Notes the answer to a call, as the JSON of its payload. The first one stays.
    ///
    /// # Errors
    ///
    /// [`PutError::TooLarge`] when it is larger than the whole store may be.
    fn answer(&self, run: &RunId, call: CallId, payload: &str) -> Result<(), PutError>;

    /// What was noted about the calls of a run.
    ///
    /// # Errors
    ///
    /// When something was changed, or cannot be read.
    fn journal(&self, run: &RunId) -> Result<BTreeMap<CallId, Entry>, StoreError>;

    /// The run is over: its last snapshot and its journal go. Its tickets stay.
    ///
    /// # Errors
    ///
    /// When the store cannot be written.
    fn forget(&self, run: &RunId) -> Result<(), StoreError>;
}

/// How much a store may hold. There is no default: the owner of the disk decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capacity {
    /// Tickets, and separately runs that go on.
    pub entries: usize,
    /// The bytes of all tickets together; also the most that one snapshot or one answer of a run that goes on may have.
    pub bytes: u64,
}

/// What is known about a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// It was about to be made; whether it was, nobody knows.
    Begun,
    /// It was answered with this payload.
    Answered(String),
}

/// A ticket in a list.
#[derive(Debug)]
pub struct Listed {
    /// The ticket.
    pub ticket: Ticket,
    /// Whether it is still good.
    pub usage: Usage,
    /// What it takes in the store.
    pub bytes: u64,
    /// What it is for, without the snapshot itself; or why it cannot be used.
    pub record: Result<Record, StoreError>,
}

/// Whether a ticket is still good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Usage {
    /// It is.
    Fresh,
    /// It was used then.
    Used(UnixMillis),
}

/// A moment, in milliseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct UnixMillis(pub u64);

impl UnixMillis {
    /// What the machine's clock says.
    pub fn now() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
    }
}

impl fmt::Display for UnixMillis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ms after 1970", self.0)
    }
}

/// Which call of a run. The number is the same whoever runs it and however often a step is repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CallId(pub u64);

impl fmt::Display for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// 16 random bytes as 32 lower-case hex digits: safe as a file name.
macro_rules! random_id {
    ($(#[$doc:meta])* $name:ident, $what:literal) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// One that nobody has seen before.
            ///
            /// # Errors
            ///
            /// When the system has no randomness to give.
            pub fn random() -> Result<Self, getrandom::Error> {
                let mut bytes = [0; 16];
                getrandom::fill(&mut bytes)?;
                Ok(Self(hex(&bytes)))
            }

            /// Its 32 hex digits.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl FromStr for $name {
            type Err = NotAnId;

            fn from_str(text: &str) -> Result<Self, NotAnId> {
                let good = text.len() == 32 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
                if good { Ok(Self(text.to_owned())) } else { Err(NotAnId { what: $what }) }
            }
        }

        impl TryFrom<String> for $name {
            type Error = NotAnId;

            fn try_from(text: String) -> Result<Self, NotAnId> {
                text.parse()
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> Self {
                id.0
            }
        }
    };
}

random_id! {
    /// The right to continue a parked run, once. Whoever has it can take the run, so treat it like a password.
    Ticket, "ticket"
}
random_id! {
    /// One logical run, over all its steps, children and hosts.
    RunId, "run id"
}

impl RunId {
    /// The run with this number of a host with this random beginning.
    pub(super) fn derived(lineage: &Self, number: u64) -> Self {
        let mut id = id_of(format!("{lineage}/{number}").as_bytes());
        id.truncate(32);
        Self(id)
    }
}

/// Text that should have been an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a {what} is 32 lower-case hex digits, and this is not")]
pub struct NotAnId {
    what: &'static str,
}

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

impl Capacity {
    /// Refuses what could never fit.
    fn admit(self, needed: usize) -> Result<u64, PutError> {
        let needed = needed as u64;
        if needed > self.bytes { Err(PutError::TooLarge { needed, capacity: self }) } else { Ok(needed) }
    }
}
