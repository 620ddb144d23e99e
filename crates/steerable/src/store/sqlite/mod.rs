//! The store of a sidecar that has a file: SQLite with a write-ahead log. One thread writes, so that what was answered is on
//! disk in the order in which it was answered; reads have a connection of their own and never wait for a write.

mod lock;
mod look;
mod open;
mod queue;
mod repair;
mod session;
mod trace;
mod transcript;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode, Transaction, TransactionBehavior};
use tokio::sync::oneshot;

use self::queue::{Next, Queue};
use super::error::StoreError;
use super::tracer::TraceOp;
use super::{Health, Level};

pub use self::look::Look;
pub(super) use self::open::open;

/// A write that takes longer than this is worth a warning.
const SLOW: Duration = Duration::from_secs(1);

/// The file, and the thread that writes to it.
#[derive(Debug)]
pub(super) struct File {
    inner: Arc<Inner>,
    writer: Option<JoinHandle<()>>,
    /// The first trace that this process makes.
    pub(super) next_trace: u64,
}

#[derive(Debug)]
struct Inner {
    path: PathBuf,
    queue: Queue,
    pulse: Pulse,
    reader: OnceLock<Mutex<Connection>>,
    /// The last row of a transcript that was there when the file was opened: whatever turn wrote it is over.
    boundary: i64,
    /// Nobody else opens the file while this is held.
    _lock: lock::Lock,
}

/// How the last writes went.
#[derive(Debug, Default)]
struct Pulse {
    latency_micros: AtomicU64,
    problem: Mutex<Option<String>>,
}

/// Why work on the tables did not succeed.
enum Fault<E> {
    /// SQLite says no.
    Sqlite(rusqlite::Error),
    /// What is stored is not what we store.
    Damaged(String),
    /// We say no.
    Refused(E),
}

impl<E> From<rusqlite::Error> for Fault<E> {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

impl File {
    /// Does something in one transaction, after everything that was asked for before. It is on disk when this returns.
    async fn write<T, E, W>(&self, work: W) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
        W: FnOnce(&Transaction<'_>) -> Result<T, Fault<E>> + Send + 'static,
    {
        let (answer, answered) = oneshot::channel();
        let work = move |writer: &mut Writer| {
            // Who asked may be gone; what they asked for is done all the same.
            let _ = answer.send(writer.transact(work));
        };
        if !self.inner.queue.ask(Box::new(work)).await {
            return Err(StoreError::Closed.into());
        }
        answered.await.unwrap_or_else(|_| Err(StoreError::Closed.into()))
    }

    /// Reads something that is one state of the file.
    async fn read<T, W>(&self, work: W) -> Result<T, StoreError>
    where
        T: Send + 'static,
        W: FnOnce(&Transaction<'_>) -> Result<T, Fault<StoreError>> + Send + 'static,
    {
        let inner = Arc::clone(&self.inner);
        let done = tokio::task::spawn_blocking(move || {
            let reader = inner.reader()?;
            let mut reader = reader.lock().unwrap_or_else(PoisonError::into_inner);
            let begun = reader.transaction();
            begun
                .map_err(Fault::from)
                .and_then(|transaction| work(&transaction))
                .map_err(|fault| inner.explain(fault))
        });
        done.await.unwrap_or(Err(StoreError::Closed))
    }

    /// Takes a change of a trace, to be written soon; `false` if too much waits already.
    pub(super) fn record(&self, op: TraceOp, bytes: usize) -> bool {
        self.inner.queue.record(op, bytes)
    }

    /// Writes everything that is known about traces, and the end of one.
    pub(super) async fn finish_trace(&self, last: Vec<TraceOp>) {
        let (answer, answered) = oneshot::channel();
        let work = move |writer: &mut Writer| {
            let mut ops = writer.inner.queue.take_ops();
            ops.extend(last);
            writer.keep(&ops);
            let _ = answer.send(());
        };
        if self.inner.queue.ask(Box::new(work)).await {
            // If the writer is gone, the file says so in its health, and the next opening closes the trace.
            let _ = answered.await;
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.inner.path
    }

    /// How the storage is, as far as the last write shows. Costs nothing.
    pub(super) fn health(&self) -> Health {
        let latency = Duration::from_micros(self.inner.pulse.latency_micros.load(Ordering::Relaxed));
        let problem = self.inner.pulse.problem.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let (level, message) = match problem {
            Some(problem) => (Level::Error, Some(problem)),
            None if latency > SLOW => (Level::Warn, Some("the last write was slow".to_owned())),
            None => (Level::Ok, None),
        };
        Health { level, message, latency: Some(latency) }
    }
}

impl Drop for File {
    fn drop(&mut self) {
        self.inner.queue.close();
        if let Some(writer) = self.writer.take() {
            // A writer that panicked has said so already.
            let _ = writer.join();
        }
    }
}

impl Inner {
    fn reader(&self) -> Result<&Mutex<Connection>, StoreError> {
        if let Some(reader) = self.reader.get() {
            return Ok(reader);
        }
        let opened = open::reader(&self.path).map_err(|error| failed(&self.path, error))?;
        // Two may open one at the same time; one of them is kept.
        Ok(self.reader.get_or_init(|| Mutex::new(opened)))
    }

    fn explain<E: From<StoreError>>(&self, fault: Fault<E>) -> E {
        match fault {
            Fault::Sqlite(error) => failed(&self.path, error).into(),
            Fault::Damaged(problem) => StoreError::Corrupt { path: self.path.clone(), problem }.into(),
            Fault::Refused(error) => error,
        }
    }
}

/// The thread that writes.
struct Writer {
    inner: Arc<Inner>,
    connection: Connection,
}

impl Writer {
    fn run(mut self) {
        loop {
            match self.inner.queue.next() {
                Next::Work(work) => {
                    // What a run has done so far goes with it, so that a crash does not leave a transcript without its trace.
                    let ops = self.inner.queue.take_ops();
                    self.keep(&ops);
                    work(&mut self);
                }
                Next::Ops(ops) => self.keep(&ops),
                Next::End => return,
            }
        }
    }

    fn transact<T, E: From<StoreError>>(
        &mut self,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, Fault<E>>,
    ) -> Result<T, E> {
        let began = Instant::now();
        let done = attempt(&mut self.connection, work);
        let took = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.inner.pulse.latency_micros.store(took, Ordering::Relaxed);
        let problem = match &done {
            Ok(_) | Err(Fault::Refused(_)) => None,
            Err(Fault::Sqlite(error)) => Some(error.to_string()),
            Err(Fault::Damaged(problem)) => Some(problem.clone()),
        };
        *self.inner.pulse.problem.lock().unwrap_or_else(PoisonError::into_inner) = problem;
        done.map_err(|fault| self.inner.explain(fault))
    }

    /// Writes changes of traces. A run does not wait for them, so a failure is only told in the health.
    fn keep(&mut self, ops: &[TraceOp]) {
        if !ops.is_empty() {
            let _: Result<(), StoreError> = self.transact(|transaction| Ok(trace::keep(transaction, ops)?));
        }
    }
}

fn attempt<T, E>(
    connection: &mut Connection,
    work: impl FnOnce(&Transaction<'_>) -> Result<T, Fault<E>>,
) -> Result<T, Fault<E>> {
    // One that is not committed is rolled back.
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let done = work(&transaction)?;
    transaction.commit()?;
    Ok(done)
}

fn failed(path: &Path, source: rusqlite::Error) -> StoreError {
    let path = path.to_owned();
    match source.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => StoreError::DiskFull { path },
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
            StoreError::Corrupt { path, problem: source.to_string() }
        }
        Some(_) | None => StoreError::Sqlite { path, source },
    }
}
