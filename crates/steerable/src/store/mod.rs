//! Sessions, transcripts, traces and settings, in memory or in SQLite.
//!
//! A [`Store`] is one of two things that behave alike: a few maps, or a file. What a caller was told is stored is stored: with a
//! file, it is there after the process is killed. Transcripts only grow: a compaction is an entry that says what it replaces,
//! so [`Store::transcript`] reads the short form and nothing is lost. Runs are recorded by a [`Tracer`], which never waits
//! and never fails.
//!
//! ```
//! use outrigger_steerable::chat::{Message, Role};
//! use outrigger_steerable::store::{MemoryLimits, RecordId, Seq, Store};
//!
//! # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
//! let store = Store::memory(MemoryLimits::STANDARD);
//! let record = RecordId::fresh();
//! let last = store.append(&record, &[Message::text(Role::User, "hi")]).await.unwrap();
//! assert_eq!(last, Seq(1));
//! assert_eq!(store.transcript(&record).await.unwrap()[0].message.plain_text(), "hi");
//! # });
//! ```

mod encode;
mod error;
mod id;
mod memory;
pub mod otlp;
mod payload;
pub mod redact;
mod session;
mod sqlite;
mod tracer;
mod transcript;

use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Map, Value};

pub use error::{ForkError, OpenError, StoreError};
pub use id::{RecordId, Seq, fresh_id};
pub use memory::MemoryLimits;
pub use payload::{PAYLOAD_LIMIT, TEXT_LIMIT};
pub use session::{Filter, NewSession, Which};
pub use sqlite::Look;
pub use tracer::{RECORD_LIMIT, SpanId, TRACE_BYTES, TraceHead, Tracer};
pub use transcript::{Fork, ForkPoint, Forked, MESSAGE_LIMIT, Stored, interrupted};

use crate::chat::Message;
use crate::protocol::{Session, Span, Trace, TraceEvent, TraceStatus};
use memory::Memory;
use tracer::TraceOp;
use transcript::{Close, close, encoded, fold};

/// How many sessions a list has at most.
pub const LIST_LIMIT: usize = 10_000;

/// How many bytes one transcript in a file has at most.
pub const RECORD_BYTES: usize = 128 << 20;

/// Where sessions, transcripts, traces and settings are. Copies are the same store.
#[derive(Clone, Debug)]
pub struct Store(Arc<Shared>);

/// Which trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceKey<'a> {
    /// The one of this id.
    Trace(&'a str),
    /// The last one of this stream.
    Stream(&'a str),
}

/// A trace with everything in it: spans in the order in which they opened, events by their sequence.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct TraceTree {
    /// The run.
    pub trace: Trace,
    /// What took time in it.
    pub spans: Vec<Span>,
    /// What happened in it.
    pub events: Vec<TraceEvent>,
}

/// How a store is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Health {
    /// In a word.
    pub level: Level,
    /// In a sentence, if there is something to say.
    pub message: Option<String>,
    /// How long the last write took; `None` in memory.
    pub latency: Option<Duration>,
}

/// How something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Well.
    Ok,
    /// Somebody should look.
    Warn,
    /// It does not work.
    Error,
}

impl Store {
    /// A store in memory. Starts nothing and takes no memory until it is used.
    #[must_use]
    pub fn memory(limits: MemoryLimits) -> Self {
        Self::of(Backend::Memory(Box::new(Mutex::new(Memory::new(limits)))), 1)
    }

    /// Opens a store in a file, and makes it if there is none. What a crash left half done is closed first.
    ///
    /// # Errors
    ///
    /// When another process has it, a newer program wrote it, or it cannot be opened.
    pub fn open(path: &Path) -> Result<Self, OpenError> {
        let file = sqlite::open(path)?;
        let next_trace = file.next_trace;
        Ok(Self::of(Backend::File(file), next_trace))
    }

    fn of(backend: Backend, next_trace: u64) -> Self {
        let next_trace = AtomicU64::new(next_trace);
        Self(Arc::new(Shared { backend, active: AtomicUsize::new(0), next_trace }))
    }

    /// Makes a session, or makes it anew.
    ///
    /// # Errors
    ///
    /// When the store is full or fails.
    pub async fn create_session(&self, new: NewSession) -> Result<Session, StoreError> {
        match &self.0.backend {
            Backend::Memory(memory) => lock(memory).create_session(new),
            Backend::File(file) => file.create_session(new).await,
        }
    }

    /// The session of this name.
    ///
    /// # Errors
    ///
    /// When the store fails.
    pub async fn session(&self, id: &str) -> Result<Option<Session>, StoreError> {
        match &self.0.backend {
            Backend::Memory(memory) => Ok(lock(memory).session(id)),
            Backend::File(file) => file.session(id).await,
        }
    }

    /// Sessions, the last updated first; at most [`LIST_LIMIT`].
    ///
    /// # Errors
    ///
    /// When the store fails.
    pub async fn sessions(&self, filter: Filter) -> Result<Vec<Session>, StoreError> {
        match &self.0.backend {
            Backend::Memory(memory) => Ok(lock(memory).sessions(&filter)),
            Backend::File(file) => file.sessions(filter).await,
        }
    }

    /// Writes messages at the end of a transcript, all or none, and returns the place of the last; those before it have the
    /// places before. The transcript is made if there is none. A session of the same name counts as updated.
    ///
    /// # Errors
    ///
    /// When one is too large, or the store is full or fails.
    pub async fn append(&self, record: &RecordId, messages: &[Message]) -> Result<Seq, StoreError> {
        let texts = encoded(messages)?;
        match &self.0.backend {
            Backend::Memory(memory) => lock(memory).append(record, texts),
            Backend::File(file) => file.append(record, texts).await,
        }
    }

    /// The messages of a transcript as a model is shown them: summaries stand for what they replaced, and calls of turns that
    /// are over but were never answered have the answer [`interrupted`]. An unknown transcript is empty.
    ///
    /// # Errors
    ///
    /// When the store fails.
    pub async fn transcript(&self, record: &RecordId) -> Result<Vec<Stored>, StoreError> {
        let (entries, old) = self.entries(record).await?;
        self.view(&entries, Close::Until(old))
    }

    /// The same for a turn that begins: every call that was never answered is answered now, also in the store, so that the
    /// turn can write after it.
    ///
    /// # Errors
    ///
    /// When the store is full or fails.
    pub async fn resume(&self, record: &RecordId) -> Result<Vec<Stored>, StoreError> {
        match &self.0.backend {
            Backend::Memory(memory) => lock(memory).close_calls(record)?,
            Backend::File(file) => file.close_calls(record).await?,
        }
        let (entries, _) = self.entries(record).await?;
        self.view(&entries, Close::All)
    }

    /// Every message of a transcript as it was written, also those that a summary replaced; without the summaries.
    ///
    /// # Errors
    ///
    /// When the store fails.
    pub async fn history(&self, record: &RecordId) -> Result<Vec<Stored>, StoreError> {
        let (mut entries, old) = self.entries(record).await?;
        entries.retain(|entry| entry.replaces.is_none());
        self.view(&entries, Close::Until(old))
    }

    /// Whether there is a transcript or a session of this name.
    ///
    /// # Errors
    ///
    /// When the store fails.
    pub async fn has_record(&self, record: &RecordId) -> Result<bool, StoreError> {
        match &self.0.backend {
            Backend::Memory(memory) => Ok(lock(memory).has_record(record)),
            Backend::File(file) => file.has_record(record).await,
        }
    }

    /// Writes that a summary stands for messages, which are named by the places that [`Store::transcript`] gave them. The
    /// summary is read in their place, with the place of the last; they stay in the [`Store::history`].
    ///
    /// # Errors
    ///
    /// When there is no such transcript, the summary is too large, or the store is full or fails.
    pub async fn note_compaction(
        &self,
        record: &RecordId,
        replaced: RangeInclusive<Seq>,
        summary: &Message,
    ) -> Result<Seq, StoreError> {
        let text = encoded(std::slice::from_ref(summary))?.pop().unwrap_or_default();
        match &self.0.backend {
            Backend::Memory(memory) => lock(memory).note_compaction(record, replaced, text),
            Backend::File(file) => file.note_compaction(record, replaced, text).await,
        }
    }

    /// Copies the beginning of a transcript, and its session if it has one.
    ///
    /// # Errors
    ///
    /// When there is no such transcript or place in it, the new name is taken, or the store is full or fails.
    pub async fn fork(&self, fork: Fork) -> Result<Forked, ForkError> {
        match &self.0.backend {
            Backend::Memory(memory) => lock(memory).fork(fork),
            Backend::File(file) => file.fork(fork).await,
        }
    }

    /// The settings that were kept.
    ///
    /// # Errors
    ///
    /// When the store fails.
    pub async fn settings(&self) -> Result<Map<String, Value>, StoreError> {
        let kept = match &self.0.backend {
            Backend::Memory(memory) => lock(memory).settings(),
            Backend::File(file) => file.settings().await?,
        };
        // A setting that is no JSON was not written by us; a default is as good as anything.
        Ok(kept
            .into_iter()
            .filter_map(|(name, value)| Some((name, serde_json::from_str(&value).ok()?)))
            .collect())
    }

    /// Keeps settings, instead of those that were kept before.
    ///
    /// # Errors
    ///
    /// When the store fails.
    pub async fn keep_settings(&self, settings: &Map<String, Value>) -> Result<(), StoreError> {
        let texts = settings.iter().map(|(name, value)| (name.clone(), value.to_string())).collect();
        match &self.0.backend {
            Backend::Memory(memory) => {
                lock(memory).keep_settings(texts);
                Ok(())
            }
            Backend::File(file) => file.keep_settings(texts).await,
        }
    }

    /// Begins to record a run.
    #[must_use]
    pub fn begin_trace(&self, head: TraceHead) -> Tracer {
        Tracer::begin(Arc::clone(&self.0), head)
    }

    /// A trace, also one of a run that goes on.
    ///
    /// # Errors
    ///
    /// When the store fails.
    pub async fn trace(&self, key: TraceKey<'_>) -> Result<Option<TraceTree>, StoreError> {
        match &self.0.backend {
            Backend::Memory(memory) => Ok(lock(memory).trace(key)),
            Backend::File(file) => file.trace(key).await,
        }
    }

    /// How many runs are being recorded.
    #[must_use]
    pub fn active_traces(&self) -> usize {
        self.0.active.load(Ordering::Relaxed)
    }

    /// How the store is, as far as is known without asking it; cheap enough for every ping.
    #[must_use]
    pub fn health(&self) -> Health {
        match &self.0.backend {
            Backend::Memory(memory) => match lock(memory).percent_used() {
                ..NEARLY_FULL => Health { level: Level::Ok, message: None, latency: None },
                used => {
                    let message = Some(format!("{used} % of the store in memory is used"));
                    Health { level: Level::Warn, message, latency: None }
                }
            },
            Backend::File(file) => file.health(),
        }
    }

    async fn entries(&self, record: &RecordId) -> Result<(Vec<transcript::Entry>, Seq), StoreError> {
        match &self.0.backend {
            Backend::Memory(memory) => Ok((lock(memory).entries(record), Seq(0))),
            Backend::File(file) => file.entries(record).await,
        }
    }

    fn view(&self, entries: &[transcript::Entry], whose: Close) -> Result<Vec<Stored>, StoreError> {
        let damaged = |problem| match &self.0.backend {
            Backend::Memory(_) => StoreError::Corrupt { path: "memory".into(), problem },
            Backend::File(file) => StoreError::Corrupt { path: file.path().to_owned(), problem },
        };
        Ok(close(fold(entries).map_err(damaged)?, whose))
    }
}

impl TraceTree {
    /// The same with counts that are right while the run goes on, too.
    fn counted(mut self) -> Self {
        if self.trace.status == TraceStatus::Running {
            self.trace.span_count = u64::try_from(self.spans.len()).unwrap_or(u64::MAX);
            self.trace.event_count = u64::try_from(self.events.len()).unwrap_or(u64::MAX);
        }
        self
    }
}

/// From how many percent on a store in memory is nearly full.
const NEARLY_FULL: usize = 90;

#[derive(Debug)]
struct Shared {
    backend: Backend,
    /// How many traces have not ended.
    active: AtomicUsize,
    next_trace: AtomicU64,
}

#[derive(Debug)]
enum Backend {
    Memory(Box<Mutex<Memory>>),
    File(sqlite::File),
}

impl Shared {
    /// Records a change of a trace; `false` if there is no room for it.
    fn record(&self, op: TraceOp, bytes: usize) -> bool {
        match &self.backend {
            Backend::Memory(memory) => lock(memory).record(op, bytes),
            Backend::File(file) => file.record(op, bytes),
        }
    }
}

fn lock(memory: &Mutex<Memory>) -> MutexGuard<'_, Memory> {
    // Every change of the maps is whole before anything in it can panic.
    memory.lock().unwrap_or_else(PoisonError::into_inner)
}
