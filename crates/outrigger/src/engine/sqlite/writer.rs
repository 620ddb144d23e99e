//! The one thread that writes, and how everything that waits for it shares a transaction.

use std::thread::JoinHandle;

use rusqlite::Connection;
use tokio::sync::{broadcast, mpsc, oneshot};

use super::fault::{self, Fault};
use crate::engine::{Changed, EngineError};

/// How many calls may wait; the next caller waits with its own.
const WAITING: usize = 1024;

/// The most calls of one transaction.
const CALLS: usize = 512;

/// From how many bytes on a transaction takes nothing more.
const BYTES: usize = 16 << 20;

/// How many pages are given back to the file system after something was forgotten; the rest goes the next time.
const FREED_PAGES: u32 = 4096;

/// The thread, and the way to it.
pub(super) struct Writer {
    calls: Option<mpsc::Sender<Box<dyn Call>>>,
    thread: Option<JoinHandle<()>>,
}

/// What the calls of one transaction have in common.
pub(super) struct Batch<'a> {
    pub(super) connection: &'a Connection,
    pub(super) tokens: &'a mut Tokens,
    /// What is told to the watchers once it is true.
    pub(super) changed: Vec<Changed>,
    /// Whether there may be room to give back.
    pub(super) freed: Freed,
}

/// Whether something was deleted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Freed {
    Nothing,
    Some,
}

/// Whether something has to be there after the machine has died.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Durability {
    /// No: leases end when the file is opened, so a claim and its extension need not outlive anything.
    Passing,
    Lasting,
}

/// Numbers for claims, none of which was ever given before. The upper half counts how often the file was opened.
pub(super) struct Tokens {
    next: i64,
}

impl Tokens {
    pub(super) fn of_opening(opening: i64) -> Self {
        Self { next: (opening & 0x7fff_ffff) << 32 }
    }

    pub(super) fn next(&mut self) -> i64 {
        self.next += 1;
        self.next
    }
}

impl Writer {
    pub(super) fn start(
        (connection, tokens): (Connection, Tokens),
        changes: broadcast::Sender<Changed>,
    ) -> Result<Self, EngineError> {
        let (calls, mut waiting) = mpsc::channel::<Box<dyn Call>>(WAITING);
        let write = move || {
            let mut desk = Desk { connection, tokens, changes, synced: Durability::Lasting };
            while let Some(first) = waiting.blocking_recv() {
                desk.perform(gather(first, &mut waiting));
            }
            close(desk.connection);
        };
        let thread = std::thread::Builder::new().name("store".to_owned()).spawn(write).map_err(|error| {
            EngineError::Failed { what: "cannot start its thread".to_owned(), why: error.to_string() }
        })?;
        Ok(Self { calls: Some(calls), thread: Some(thread) })
    }

    /// Has something done by the thread, and waits until it is on disk. `bytes` is about how much is written.
    pub(super) async fn call<T: Send + 'static>(
        &self,
        bytes: usize,
        perform: impl FnOnce(&mut Batch<'_>) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, EngineError> {
        self.send(bytes, Durability::Lasting, perform).await
    }

    /// The same for what ends when the file is opened the next time: nobody waits for the disk.
    pub(super) async fn call_in_passing<T: Send + 'static>(
        &self,
        perform: impl FnOnce(&mut Batch<'_>) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, EngineError> {
        self.send(0, Durability::Passing, perform).await
    }

    async fn send<T: Send + 'static>(
        &self,
        bytes: usize,
        durability: Durability,
        perform: impl FnOnce(&mut Batch<'_>) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, EngineError> {
        let (answer, answered) = oneshot::channel();
        let call = Todo { bytes, durability, perform: Some(perform), outcome: None, answer };
        let calls = self.calls.as_ref().ok_or(EngineError::Closed)?;
        calls.send(Box::new(call)).await.map_err(|_| EngineError::Closed)?;
        answered.await.map_err(|_| EngineError::Closed)?
    }
}

impl Drop for Writer {
    /// Waits for the thread, so that who opens the file next finds everything in it. That takes as long as one commit and
    /// moving the journal into the file.
    fn drop(&mut self) {
        self.calls = None;
        if let Some(thread) = self.thread.take() {
            // A panic of the thread was reported when it happened, and there is nobody here to report it to.
            let _ = thread.join();
        }
    }
}

/// Something to be done, then something to be said.
trait Call: Send {
    fn bytes(&self) -> usize;
    fn durability(&self) -> Durability;
    fn perform(&mut self, batch: &mut Batch<'_>) -> Result<(), Fault>;
    fn answer(self: Box<Self>, committed: Result<(), EngineError>);
}

struct Todo<T, F> {
    bytes: usize,
    durability: Durability,
    perform: Option<F>,
    outcome: Option<T>,
    answer: oneshot::Sender<Result<T, EngineError>>,
}

impl<T, F> Call for Todo<T, F>
where
    T: Send,
    F: FnOnce(&mut Batch<'_>) -> Result<T, Fault> + Send,
{
    fn bytes(&self) -> usize {
        self.bytes
    }

    fn durability(&self) -> Durability {
        self.durability
    }

    fn perform(&mut self, batch: &mut Batch<'_>) -> Result<(), Fault> {
        if let Some(perform) = self.perform.take() {
            self.outcome = Some(perform(batch)?);
        }
        Ok(())
    }

    fn answer(self: Box<Self>, committed: Result<(), EngineError>) {
        let Self { outcome, answer, .. } = *self;
        // Whoever does not wait any more does not want to know.
        let _ = answer.send(committed.and_then(|()| outcome.ok_or(EngineError::Closed)));
    }
}

/// Everything that waits now, up to what a transaction should hold.
fn gather(first: Box<dyn Call>, waiting: &mut mpsc::Receiver<Box<dyn Call>>) -> Vec<Box<dyn Call>> {
    let mut bytes = first.bytes();
    let mut batch = vec![first];
    while batch.len() < CALLS && bytes < BYTES {
        let Ok(call) = waiting.try_recv() else { break };
        bytes += call.bytes();
        batch.push(call);
    }
    batch
}

/// What the thread works with.
struct Desk {
    connection: Connection,
    tokens: Tokens,
    changes: broadcast::Sender<Changed>,
    /// What a commit waits for as SQLite is set now.
    synced: Durability,
}

impl Desk {
    /// Does a batch in one transaction and answers each of its calls.
    fn perform(&mut self, mut calls: Vec<Box<dyn Call>>) {
        let needed = calls.iter().map(|call| call.durability()).max().unwrap_or(Durability::Lasting);
        let synced = self.sync(needed);
        let Self { connection, tokens, changes, .. } = self;
        let mut batch = Batch { connection, tokens, changed: Vec::new(), freed: Freed::Nothing };
        let outcomes = match synced.and_then(|()| transaction(&mut calls, &mut batch)) {
            Ok(outcomes) => outcomes,
            Err(fault) => {
                let error = fault::failed("could not write", &fault);
                // It may be over already: SQLite ends a transaction by itself when the disk is full.
                let _ = connection.execute_batch("ROLLBACK");
                return calls.into_iter().for_each(|call| call.answer(Err(error.clone())));
            }
        };
        let Batch { changed, freed, .. } = batch;
        for change in changed {
            // Without watchers there is nobody to tell.
            let _ = changes.send(change);
        }
        for (call, outcome) in calls.into_iter().zip(outcomes) {
            call.answer(outcome.map_err(|fault| fault::failed("could not write", &fault)));
        }
        if freed == Freed::Some {
            // The room is reused anyway; that it goes back to the file system may fail.
            let _ = give_back(connection);
        }
    }

    /// Has the next commit wait for the disk, or not. A later commit that does wait makes those before it durable too.
    fn sync(&mut self, needed: Durability) -> Result<(), Fault> {
        if needed == self.synced {
            return Ok(());
        }
        let setting = match needed {
            Durability::Passing => "NORMAL",
            Durability::Lasting => "FULL",
        };
        self.connection.pragma_update(None, "synchronous", setting)?;
        self.synced = needed;
        Ok(())
    }
}

/// Does every call inside its own savepoint and commits. An error here is one of all of them: nothing happened.
fn transaction(calls: &mut [Box<dyn Call>], batch: &mut Batch<'_>) -> Result<Vec<Result<(), Fault>>, Fault> {
    batch.connection.execute_batch("BEGIN IMMEDIATE")?;
    let mut outcomes = Vec::with_capacity(calls.len());
    for call in calls {
        let told = batch.changed.len();
        batch.connection.execute_batch("SAVEPOINT call")?;
        let outcome = call.perform(batch);
        if let Err(fault) = outcome {
            if batch.connection.is_autocommit() {
                return Err(fault);
            }
            batch.connection.execute_batch("ROLLBACK TO call; RELEASE call")?;
            batch.changed.truncate(told);
            outcomes.push(Err(fault));
        } else {
            batch.connection.execute_batch("RELEASE call")?;
            outcomes.push(Ok(()));
        }
    }
    batch.connection.execute_batch("COMMIT")?;
    Ok(outcomes)
}

/// Lets the file shrink by the pages that are free.
fn give_back(connection: &Connection) -> Result<(), Fault> {
    let mut statement = connection.prepare_cached(&format!("PRAGMA incremental_vacuum({FREED_PAGES})"))?;
    let mut pages = statement.query([])?;
    // It frees one page with every row that is asked for.
    while pages.next()?.is_some() {}
    Ok(())
}

/// Leaves one tidy file. If that fails, the journal has everything and the next opening reads it.
fn close(connection: Connection) {
    let _ = connection.execute_batch("PRAGMA optimize; PRAGMA wal_checkpoint(TRUNCATE)");
    drop(connection);
}
