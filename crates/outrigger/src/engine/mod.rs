//! Where runs live: logs that are appended to, a queue of work that is claimed, and blobs.
//!
//! # Theory of operation
//!
//! A **log** is a numbered list of records that is only ever appended to, by whoever knows how long it is ([`Engine::append_if`]).
//! Two writers who both think they know are told apart: one of them gets [`AppendError::Conflict`]. Beside its records a log
//! has a **head**: what they fold to, so that a list of logs needs no reading of logs. Records, head and queued work of one
//! append become true together or not at all.
//!
//! **Work** is a key in a queue, at most once at a time, due at a moment. Whoever claims it has it for the length of a lease,
//! extends that while they live, and acknowledges when it is done; a lease that ran out makes the work claimable again.
//!
//! **Blobs** belong to a log and go with it. Their name is the hash of their bytes.
//!
//! Everything that returned `Ok` survives the death of the process and of the machine. There is one implementation, [`sqlite`];
//! the suite in `conformance` is written against the trait alone.

#[cfg(test)]
mod conformance;
pub(crate) mod sqlite;

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use outrigger_policy::Digest;
use tokio::sync::broadcast;

/// A future that an implementation behind `dyn` gives.
pub(crate) type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A store of logs, work and blobs. Calls of one task that follow each other happen in that order.
pub(crate) trait Engine: fmt::Debug + Send + Sync + 'static {
    /// Appends to a log if it has exactly `expected` records, and gives its new length.
    fn append_if(&self, append: Append) -> BoxFuture<'_, Result<Seq, AppendError>>;

    /// The records after `after`, oldest first, as many as fit in the limit and at least one if there is one.
    fn read(
        &self,
        log: &LogId,
        after: Seq,
        limit: ReadLimit,
    ) -> BoxFuture<'_, Result<Vec<Stored>, EngineError>>;

    /// The head of one log, if it has one.
    fn head(&self, log: &LogId) -> BoxFuture<'_, Result<Option<Head>, EngineError>>;

    /// Heads, the log that was begun last first.
    fn heads(&self, which: HeadQuery) -> BoxFuture<'_, Result<Vec<Head>, EngineError>>;

    /// How many logs there are with each label.
    fn labels(&self) -> BoxFuture<'_, Result<Vec<(String, u64)>, EngineError>>;

    /// Takes the work of a queue that has been due for longest, for as long as the lease lasts.
    fn claim(&self, queue: &QueueName, lease: Duration) -> BoxFuture<'_, Result<Claimed, EngineError>>;

    /// Keeps what was claimed for longer.
    fn extend(&self, claim: &Claim, lease: Duration) -> BoxFuture<'_, Result<(), ClaimError>>;

    /// The work is done and leaves its queue; what was queued under the same key since it was claimed stays.
    fn ack(&self, claim: &Claim) -> BoxFuture<'_, Result<(), ClaimError>>;

    /// Keeps bytes that belong to a log. Keeping the same bytes again changes nothing.
    fn put_blob(&self, log: &LogId, bytes: Vec<u8>) -> BoxFuture<'_, Result<Digest, EngineError>>;

    /// Bytes that were kept.
    fn get_blob(&self, log: &LogId, digest: &Digest) -> BoxFuture<'_, Result<Option<Vec<u8>>, EngineError>>;

    /// Forgets a log: its records, its head, its blobs and its work.
    fn forget(&self, log: &LogId) -> BoxFuture<'_, Result<(), EngineError>>;

    /// What is appended from now on. Who is too slow is told how much they missed and reads the logs instead.
    fn watch(&self) -> broadcast::Receiver<Changed>;
}

/// The name of a log.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct LogId(pub(crate) String);

/// How many records a log has, and so the number of its last one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Seq(pub(crate) u64);

/// Milliseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Millis(pub(crate) u64);

/// The name of a queue.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct QueueName(pub(crate) String);

/// What is appended.
#[derive(Clone, Debug)]
pub(crate) struct Append {
    pub(crate) log: LogId,
    /// How many records it has, to the best of the caller's knowledge; 0 begins it.
    pub(crate) expected: Seq,
    /// May be empty: then only the head or the work changes, under the same condition.
    pub(crate) records: Vec<String>,
    /// What the log folds to from now on.
    pub(crate) head: Option<NewHead>,
    /// What is to be done because of it. A key that is queued already stays where it is, and is due at the earlier of the two moments.
    pub(crate) work: Vec<Work>,
}

/// A head as it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NewHead {
    /// A word that lists can be narrowed to.
    pub(crate) label: String,
    pub(crate) body: String,
}

/// A head as it is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) log: LogId,
    pub(crate) seq: Seq,
    /// Grows from log to log in the order in which they were begun.
    pub(crate) begun: Begun,
    pub(crate) label: String,
    pub(crate) body: String,
}

/// The place of a log among all, by when it was begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Begun(pub(crate) u64);

/// Which heads.
#[derive(Clone, Debug)]
pub(crate) struct HeadQuery {
    /// Only those with one of these labels; none for all.
    pub(crate) labels: Vec<String>,
    /// Only those begun before this one.
    pub(crate) before: Option<Begun>,
    pub(crate) limit: usize,
}

/// Something to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Work {
    pub(crate) queue: QueueName,
    pub(crate) key: String,
    /// Not before this moment.
    pub(crate) due: Millis,
}

/// What came of an attempt to claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Claimed {
    /// This is yours.
    Work(Claim),
    /// Nothing is due; the next will be at this moment, be it because it is then due or because its lease ends.
    NotBefore(Millis),
    /// The queue is empty.
    Nothing,
}

/// Work that somebody has claimed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Claim {
    pub(crate) queue: QueueName,
    pub(crate) key: String,
    /// Which claim of it: whoever comes with an older one has lost it.
    pub(crate) token: u64,
}

/// One record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stored {
    pub(crate) seq: Seq,
    pub(crate) record: String,
}

/// How much is read at once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReadLimit {
    pub(crate) records: usize,
    pub(crate) bytes: usize,
}

/// A log has grown to this length, or was forgotten (0).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Changed {
    pub(crate) log: LogId,
    pub(crate) seq: Seq,
}

/// Why something was not appended.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AppendError {
    /// Somebody else was faster.
    #[error("the log has {} records, not {}", actual.0, expected.0)]
    Conflict { expected: Seq, actual: Seq },
    #[error(transparent)]
    Engine(#[from] EngineError),
}

/// Why a claim is no good.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ClaimError {
    /// Its lease ran out, and maybe somebody else has it.
    #[error("the claim on `{key}` ran out")]
    Lost { key: String },
    #[error(transparent)]
    Engine(#[from] EngineError),
}

/// Why the store cannot do anything.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum EngineError {
    /// The disk is full, the file is damaged, the file is of a later version.
    #[error("the store {what}: {why}")]
    Failed { what: String, why: String },
    /// It was closed.
    #[error("the store is closed")]
    Closed,
}

impl fmt::Display for LogId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Millis {
    /// By the clock of this machine.
    pub(crate) fn now() -> Self {
        let since = std::time::UNIX_EPOCH.elapsed().unwrap_or_default();
        Self(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
    }

    /// So much later.
    pub(crate) fn after(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)))
    }

    /// How long it is from now until then.
    pub(crate) fn left(self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(Self::now().0))
    }
}
