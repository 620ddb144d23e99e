//! A few connections that cannot write, for everybody who reads.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::{Connection, OpenFlags};
use tokio::sync::Semaphore;

use super::fault::{self, Fault};
use super::schema;
use crate::engine::EngineError;

/// How many read at once; the others wait.
const READERS: usize = 4;

/// How many of them may read logs, which many want at once and for long: somebody who looks at something else finds one free.
const OF_LOGS: usize = 2;

/// Connections, and who may have one.
pub(super) struct Readers {
    idle: Mutex<Vec<Connection>>,
    free: Arc<Semaphore>,
    of_logs: Semaphore,
}

impl Readers {
    /// The file must be there.
    pub(super) fn open(path: &Path) -> Result<Self, EngineError> {
        let open = |_| {
            let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
            let connection = Connection::open_with_flags(path, flags)?;
            schema::prepare(&connection)?;
            Ok(connection)
        };
        let idle: Result<Vec<_>, Fault> = (0..READERS).map(open).collect();
        let idle = idle.map_err(|fault| fault::of_file("cannot be opened", path, &fault))?;
        let of_logs = Semaphore::new(OF_LOGS);
        Ok(Self { idle: Mutex::new(idle), free: Arc::new(Semaphore::new(READERS)), of_logs })
    }

    /// [`Readers::call`] for what reads logs.
    pub(super) fn call_for_log<T: Send + 'static>(
        self: &Arc<Self>,
        read: impl FnOnce(&Connection) -> Result<T, Fault> + Send + 'static,
    ) -> impl Future<Output = Result<T, EngineError>> + Send + 'static {
        let readers = Arc::clone(self);
        async move {
            let _turn = readers.of_logs.acquire().await.map_err(|_| EngineError::Closed)?;
            readers.call(read).await
        }
    }

    /// Reads on a thread that may block. All of it sees the same moment.
    pub(super) fn call<T: Send + 'static>(
        self: &Arc<Self>,
        read: impl FnOnce(&Connection) -> Result<T, Fault> + Send + 'static,
    ) -> impl Future<Output = Result<T, EngineError>> + Send + 'static {
        let readers = Arc::clone(self);
        async move {
            let permit = Arc::clone(&readers.free).acquire_owned().await.map_err(|_| EngineError::Closed)?;
            let reading = tokio::task::spawn_blocking(move || {
                let outcome = readers.with(|connection| {
                    // Several statements are one look.
                    let transaction = connection.unchecked_transaction()?;
                    let outcome = read(&transaction)?;
                    transaction.commit()?;
                    Ok(outcome)
                });
                drop(permit);
                outcome
            });
            reading.await.map_err(|_| EngineError::Closed)?
        }
    }

    fn with<T>(&self, read: impl FnOnce(&Connection) -> Result<T, Fault>) -> Result<T, EngineError> {
        // What is in there is whole even if somebody panicked: a connection is either in it or not.
        let idle = || self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        // There are as many connections as permits, except after a panic, which takes its connection along.
        let connection = idle().pop().ok_or(EngineError::Closed)?;
        let outcome = read(&connection).map_err(|fault| fault::failed("could not read", &fault));
        idle().push(connection);
        outcome
    }
}
