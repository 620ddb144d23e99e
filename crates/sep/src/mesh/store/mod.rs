//! The file in which a node keeps messages, contacts and what it has yet to be told: SQLite with a write-ahead log. One thread
//! writes, several requests to a transaction; reads have a thread and a connection of their own and never wait for a write.

mod bell;
mod contacts;
mod news;
mod open;
mod rows;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use outrigger_wire::peer::BoxFuture;
use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};

pub use self::contacts::{ContactError, Entry, MAX_CONTACT_NAME_BYTES};
pub use self::open::{MAX_NODE_NAME_BYTES, OpenError};

pub(super) use self::bell::{Belfry, Bell, Ring};
pub(super) use self::contacts::name_of;
pub(super) use self::news::{News, add as add_news};
pub(super) use self::open::{Who, address_of, check_name};
pub(super) use self::rows::{COLUMNS, Place, Waits, advance, insert, prune, read, set, state};
pub(super) use self::writer::{Idle, More, Occasion, Rounds, Turn};

use self::writer::{Job, Keep, Reply, Writer};
use super::{Address, Contact, ContactQuery, Ear, MeshError, Message, MessageQuery};

/// How many requests may wait for each of the two threads. Who asks beyond that waits, and not its thread.
const REQUESTS: usize = 1024;

/// How much a node keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bounds {
    pub(super) messages: u64,
    pub(super) contacts: u64,
}

/// One node's part of the file.
#[derive(Debug)]
pub(super) struct Store {
    shared: Arc<Shared>,
    work: mpsc::Sender<Job>,
    reads: Option<mpsc::Sender<ReadJob>>,
    bounds: Bounds,
    writer: Option<JoinHandle<()>>,
    reader: Option<JoinHandle<()>>,
}

type ReadJob = Box<dyn FnOnce(&Connection) + Send>;

struct Shared {
    path: PathBuf,
    me: Address,
    bell: Bell,
    belfry: Belfry,
    ear: Mutex<Option<Arc<dyn Ear>>>,
    closing: AtomicBool,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("path", &self.path).field("me", &self.me).finish_non_exhaustive()
    }
}

/// The file cannot be used, and why.
#[derive(Clone, Debug)]
pub(super) struct Trouble(pub(super) String);

impl From<Trouble> for MeshError {
    fn from(trouble: Trouble) -> Self {
        Self::Unavailable { why: trouble.0 }
    }
}

/// Why work on the tables did not succeed.
pub(super) enum Fault<E> {
    /// SQLite says no.
    Sqlite(rusqlite::Error),
    /// We say no.
    Refused(E),
}

impl<E> From<rusqlite::Error> for Fault<E> {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

impl Store {
    /// Opens the file, makes it if there is none, and becomes a node of it.
    pub(super) fn open(
        path: &Path,
        who: &Who,
        bounds: Bounds,
        rounds: impl FnOnce(&Belfry, Address) -> Box<dyn Rounds>,
    ) -> Result<Self, OpenError> {
        let opened = open::open(path, who)?;
        let reading =
            open::reader(path).map_err(|source| OpenError::Sqlite { path: path.to_owned(), source })?;
        let rounds = rounds(&opened.belfry, opened.me);
        let shared = Arc::new(Shared {
            path: path.to_owned(),
            me: opened.me,
            bell: opened.bell,
            belfry: opened.belfry,
            ear: Mutex::new(None),
            closing: AtomicBool::new(false),
        });
        let (work, jobs) = mpsc::channel(REQUESTS);
        let (reads, mut asked) = mpsc::channel::<ReadJob>(REQUESTS);
        let start = |name: &str, body: Box<dyn FnOnce() + Send>| {
            let started = std::thread::Builder::new().name(name.to_owned()).spawn(body);
            started.map_err(|source| OpenError::Io {
                what: "start a thread for",
                path: path.to_owned(),
                source,
            })
        };
        let reader = start(
            "mesh-read",
            Box::new(move || {
                while let Some(job) = asked.blocking_recv() {
                    job(&reading);
                }
            }),
        )?;
        let writer =
            Writer::new(Arc::clone(&shared), opened.connection, jobs, bounds, opened.messages, rounds);
        let writer = start("mesh-write", Box::new(move || writer.run()))?;
        Ok(Self { shared, work, reads: Some(reads), bounds, writer: Some(writer), reader: Some(reader) })
    }

    pub(super) fn me(&self) -> Address {
        self.shared.me
    }

    pub(super) fn path(&self) -> &Path {
        &self.shared.path
    }

    /// Who is told what happens. What nobody was told yet is told at once.
    pub(super) fn listen(&self, ear: Arc<dyn Ear>) {
        let old = self.shared.ear.lock().unwrap_or_else(PoisonError::into_inner).replace(ear);
        // Dropped here and not under the lock: what an ear holds may speak with us when it goes.
        drop(old);
        self.shared.bell.call();
    }

    /// Does something after everything that was asked for before. It is in the file when the future is done.
    pub(super) fn write<T, E>(
        &self,
        work: impl FnOnce(&mut Turn<'_>) -> Result<T, Fault<E>> + Send + 'static,
    ) -> BoxFuture<Result<T, E>>
    where
        T: Send + 'static,
        E: From<Trouble> + Send + 'static,
    {
        let (answer, answered) = oneshot::channel();
        let path = self.shared.path.clone();
        let job: Job = Box::new(move |turn| {
            let done = match turn {
                Ok(turn) => work(turn),
                Err(trouble) => Err(Fault::Refused(trouble.into())),
            };
            let keep = if done.is_ok() { Keep::Yes } else { Keep::No };
            let reply: Reply = Box::new(move |committed| {
                let result = match (done, committed) {
                    (Ok(value), Ok(())) => Ok(value),
                    (Ok(_), Err(trouble)) => Err(trouble.into()),
                    (Err(Fault::Refused(error)), _) => Err(error),
                    (Err(Fault::Sqlite(error)), _) => Err(explain(&path, &error).into()),
                };
                // Who asked may be gone; what they asked for is done all the same.
                let _ = answer.send(result);
            });
            (keep, reply)
        });
        let queue = self.work.clone();
        let shared = Arc::clone(&self.shared);
        Box::pin(async move {
            if queue.send(job).await.is_err() {
                return Err(closed().into());
            }
            shared.bell.call();
            answered.await.unwrap_or_else(|_| Err(closed().into()))
        })
    }

    /// Reads something.
    pub(super) fn read<T: Send + 'static, E: From<Trouble> + Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> BoxFuture<Result<T, E>> {
        let (answer, answered) = oneshot::channel();
        let path = self.shared.path.clone();
        let job: ReadJob = Box::new(move |on| {
            let _ = answer.send(work(on).map_err(|error| explain(&path, &error)));
        });
        let queue = self.reads.clone();
        Box::pin(async move {
            let Some(queue) = queue else { return Err(closed().into()) };
            if queue.send(job).await.is_err() {
                return Err(closed().into());
            }
            // A request that waits must not keep the thread from ending.
            drop(queue);
            answered.await.unwrap_or_else(|_| Err(closed())).map_err(E::from)
        })
    }

    pub(super) fn messages(&self, query: MessageQuery) -> BoxFuture<Result<Vec<Message>, MeshError>> {
        let me = self.me();
        self.read(move |on| rows::list(on, me, &query))
    }

    pub(super) fn contacts(&self, query: ContactQuery) -> BoxFuture<Result<Vec<Contact>, MeshError>> {
        let me = self.me();
        self.read(move |on| contacts::list(on, me, &query))
    }

    pub(super) fn contact_add(&self, entry: Entry) -> BoxFuture<Result<u64, ContactError>> {
        let limit = self.bounds.contacts;
        self.write(move |turn| contacts::add(turn.on, turn.me, &entry, turn.now_ms, limit))
    }

    pub(super) fn contact_update(&self, id: u64, entry: Entry) -> BoxFuture<Result<(), ContactError>> {
        self.write(move |turn| contacts::update(turn.on, turn.me, id, &entry, turn.now_ms))
    }

    pub(super) fn contact_remove(&self, id: u64) -> BoxFuture<Result<(), ContactError>> {
        self.write(move |turn| contacts::remove(turn.on, turn.me, id))
    }

    /// Neither sends to this address nor takes anything from it.
    pub(super) fn block(&self, address: Address) -> BoxFuture<Result<(), MeshError>> {
        self.write(move |turn| {
            let sql = "INSERT INTO blocks (owner, address) VALUES (?1, ?2) ON CONFLICT DO NOTHING";
            turn.on.prepare_cached(sql)?.execute([turn.me, address])?;
            Ok(())
        })
    }

    /// Takes a block back.
    pub(super) fn unblock(&self, address: Address) -> BoxFuture<Result<(), MeshError>> {
        self.write(move |turn| {
            let sql = "DELETE FROM blocks WHERE owner = ?1 AND address = ?2";
            turn.on.prepare_cached(sql)?.execute([turn.me, address])?;
            Ok(())
        })
    }

    /// The addresses that are blocked.
    pub(super) fn blocked(&self) -> BoxFuture<Result<Vec<Address>, MeshError>> {
        let me = self.me();
        self.read(move |on| {
            let mut statement =
                on.prepare_cached("SELECT address FROM blocks WHERE owner = ?1 ORDER BY address")?;
            statement.query_map([me], |row| row.get(0))?.collect()
        })
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        self.reads = None;
        self.shared.closing.store(true, Ordering::Release);
        self.shared.bell.call();
        // The last owner may be an ear, which is dropped on one of these very threads.
        let here = std::thread::current().id();
        for thread in [self.writer.take(), self.reader.take()].into_iter().flatten() {
            if thread.thread().id() != here {
                // One that panicked has said so already.
                let _ = thread.join();
            }
        }
    }
}

/// Whether `owner` has blocked `address`.
pub(super) fn is_blocked(on: &Connection, owner: Address, address: Address) -> rusqlite::Result<bool> {
    on.prepare_cached("SELECT 1 FROM blocks WHERE owner = ?1 AND address = ?2")?.exists([owner, address])
}

fn closed() -> Trouble {
    Trouble("it has been closed".to_owned())
}

fn explain(path: &Path, error: &rusqlite::Error) -> Trouble {
    Trouble(format!("{}: {error}", path.display()))
}
