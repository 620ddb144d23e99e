//! The engine of one machine: a SQLite file with one writer.
//!
//! # Theory of operation
//!
//! Everything that changes something goes through a bounded channel to one thread, which owns the only connection that may
//! write. It takes all that waits, does it in one transaction with a savepoint around each, commits once, and answers
//! ([`writer`]). So a hundred tasks that append share one `fsync`, and a conflict of one does not undo its neighbours. What
//! was sent is done, whether or not the one who sent it still waits for the answer.
//!
//! Reading happens on a few connections that cannot write, on threads that may block ([`readers`]).
//!
//! The file belongs to one process: `<file>.lock` is locked for as long as the engine is open ([`lock`]). Nobody else can
//! therefore hold a lease in it, and opening it ends those that a dead process left: its work is claimable at once. A claim
//! by itself is therefore not waited for until it is on disk.
//!
//! Leases and due moments go by the wall clock. When that jumps forward, as after a night asleep, leases run out and their
//! holders are told so.

mod blobs;
mod fault;
mod lock;
mod logs;
mod queue;
mod readers;
mod schema;
#[cfg(test)]
mod tests;
mod writer;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use outrigger_policy::Digest;
use tokio::sync::broadcast;

use self::lock::Lock;
use self::readers::Readers;
use self::writer::Writer;
use super::{
    Append, AppendError, BoxFuture, Changed, Claim, ClaimError, Claimed, Engine, EngineError, Head,
    HeadQuery, LogId, QueueName, ReadLimit, Seq, Stored,
};

/// The longest record and the longest head.
pub(crate) const MAX_TEXT: usize = 32 << 20;

/// The longest blob.
pub(crate) const MAX_BLOB: usize = 256 << 20;

/// How many changes a watcher may be behind before it is told that it missed some.
const WATCHED: usize = 1024;

/// A store in a file. Cheap to clone; the last one that is dropped finishes what waits, tidies the file up and lets go of it.
#[derive(Clone)]
pub(crate) struct Sqlite {
    inner: Arc<Inner>,
}

/// The order of the members is the order in which they go: the writer ends, then nobody reads, then others may.
struct Inner {
    writer: Writer,
    readers: Arc<Readers>,
    changes: broadcast::Sender<Changed>,
    path: PathBuf,
    _lock: Lock,
}

impl Sqlite {
    /// Opens the file, or makes it. Its folder must be there. Leases that a dead process left are over.
    pub(crate) fn open(path: &Path) -> Result<Self, EngineError> {
        let lock = Lock::take(path)?;
        let connection = schema::open(path)?;
        let readers = Arc::new(Readers::open(path)?);
        let (changes, _) = broadcast::channel(WATCHED);
        let writer = Writer::start(connection, changes.clone())?;
        Ok(Self { inner: Arc::new(Inner { writer, readers, changes, path: path.to_owned(), _lock: lock }) })
    }

    /// What the file and its journal take up on disk.
    pub(crate) fn size(&self) -> u64 {
        let length = |path: PathBuf| std::fs::metadata(path).map_or(0, |about| about.len());
        ["", "-wal", "-shm"].map(|end| length(lock::beside(&self.inner.path, end))).iter().sum()
    }
}

impl Engine for Sqlite {
    fn append_if(&self, append: Append) -> BoxFuture<'_, Result<Seq, AppendError>> {
        Box::pin(async move {
            let bytes = logs::weigh(&append)?;
            let expected = append.expected;
            let appended = self.inner.writer.call(bytes, move |batch| logs::append(batch, &append)).await?;
            appended.map_err(|actual| AppendError::Conflict { expected, actual })
        })
    }

    fn read(
        &self,
        log: &LogId,
        after: Seq,
        limit: ReadLimit,
    ) -> BoxFuture<'_, Result<Vec<Stored>, EngineError>> {
        let log = log.clone();
        Box::pin(
            self.inner.readers.call_for_log(move |connection| logs::read(connection, &log, after, limit)),
        )
    }

    fn head(&self, log: &LogId) -> BoxFuture<'_, Result<Option<Head>, EngineError>> {
        let log = log.clone();
        Box::pin(self.inner.readers.call(move |connection| logs::head(connection, &log)))
    }

    fn heads(&self, which: HeadQuery) -> BoxFuture<'_, Result<Vec<Head>, EngineError>> {
        Box::pin(self.inner.readers.call(move |connection| logs::heads(connection, &which)))
    }

    fn labels(&self) -> BoxFuture<'_, Result<Vec<(String, u64)>, EngineError>> {
        Box::pin(self.inner.readers.call(logs::labels))
    }

    fn claim(&self, queue: &QueueName, lease: Duration) -> BoxFuture<'_, Result<Claimed, EngineError>> {
        let queue = queue.clone();
        Box::pin(self.inner.writer.call_in_passing(move |batch| queue::claim(batch, &queue, lease)))
    }

    fn extend(&self, claim: &Claim, lease: Duration) -> BoxFuture<'_, Result<(), ClaimError>> {
        let claim = claim.clone();
        Box::pin(async move {
            let key = claim.key.clone();
            let held =
                self.inner.writer.call_in_passing(move |batch| queue::extend(batch, &claim, lease)).await?;
            held.map_err(|queue::NotHeld| ClaimError::Lost { key })
        })
    }

    fn ack(&self, claim: &Claim) -> BoxFuture<'_, Result<(), ClaimError>> {
        let claim = claim.clone();
        Box::pin(async move {
            let key = claim.key.clone();
            let held = self.inner.writer.call(0, move |batch| queue::ack(batch, &claim)).await?;
            held.map_err(|queue::NotHeld| ClaimError::Lost { key })
        })
    }

    fn put_blob(&self, log: &LogId, bytes: Vec<u8>) -> BoxFuture<'_, Result<Digest, EngineError>> {
        let log = log.clone();
        Box::pin(async move {
            blobs::weigh(&bytes)?;
            let weight = bytes.len();
            // Hashing a large one takes long enough to be in the way of other tasks, and of the one writer.
            let hashed = tokio::task::spawn_blocking(move || (Digest::of(&bytes), bytes)).await;
            let (digest, bytes) = hashed.map_err(|_| EngineError::Closed)?;
            self.inner.writer.call(weight, move |batch| blobs::put(batch, &log, &digest, &bytes)).await?;
            Ok(digest)
        })
    }

    fn get_blob(&self, log: &LogId, digest: &Digest) -> BoxFuture<'_, Result<Option<Vec<u8>>, EngineError>> {
        let (log, digest) = (log.clone(), *digest);
        Box::pin(self.inner.readers.call(move |connection| blobs::get(connection, &log, &digest)))
    }

    fn forget(&self, log: &LogId) -> BoxFuture<'_, Result<(), EngineError>> {
        let log = log.clone();
        Box::pin(self.inner.writer.call(0, move |batch| logs::forget(batch, &log)))
    }

    fn watch(&self) -> broadcast::Receiver<Changed> {
        self.inner.changes.subscribe()
    }
}

impl fmt::Debug for Sqlite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sqlite({})", self.inner.path.display())
    }
}
