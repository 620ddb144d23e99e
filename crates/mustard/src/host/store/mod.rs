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
mod error;
mod id;
mod lease;
mod record;
mod seal;
mod sqlite;

use std::collections::BTreeMap;
use std::fmt;

pub use directory::Directory;
pub use error::{HoldError, PeekError, PutError, StoreError, TakeError};
pub use id::{CallId, NotAnId, RunId, Ticket, UnixMillis};
pub use lease::Lease;
pub use record::{Dialect, Record, Waiting};
pub(super) use record::{value_of, value_text};
pub use sqlite::Sqlite;

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

impl Capacity {
    /// Refuses what could never fit.
    fn admit(self, needed: usize) -> Result<u64, PutError> {
        let needed = needed as u64;
        if needed > self.bytes { Err(PutError::TooLarge { needed, capacity: self }) } else { Ok(needed) }
    }
}
