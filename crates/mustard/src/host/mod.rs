//! The end that drives sidecars: scripts, the functions they may call, children that may die, runs that may wait for days.
//!
//! # Theory of operation
//!
//! A [`Script`] is compiled once and run many times. A run goes in steps: a child computes until the script calls something,
//! and gives a snapshot; the host makes the calls ([`Capabilities`]), several at once where the child lists several, and sends
//! the answers. Between two steps everything that matters is here: the snapshot, and the answers that came since. So a
//! child is worth nothing. One that dies, lies or hangs is killed, and the step is repeated from the snapshot in another
//! one; no handler is called again for that.
//!
//! * [`Sidecar`] is one child and its conversation. [`Source`] says where children come from: this very program, any program
//!   that speaks version 2, or a test.
//! * [`Pool`] keeps some of them warm, replaces the worn ones, and never has more than it may.
//! * [`Run`] is a run and its rules. With a [`Store`] it is written down as it goes: a host that is killed is followed by
//!   another that goes on, and an answer that was written down is not asked for again. When nothing is left but calls that
//!   somebody else must answer, the run is parked: a [`Ticket`] that is good once, on any host with the same key.
//!
//! Every resume carries the policy (capabilities, limits) and a token under the host's key: a sidecar never decides what a
//! snapshot may do.
//!
//! # Example
//!
//! ```no_run
//! use std::num::NonZeroUsize;
//! use std::sync::Arc;
//!
//! use outrigger_mustard::host::{
//!     Capabilities, Ending, Host, HostKey, Plain, Pool, PoolRules, ProgramSource, Terms, TopLevelReturn,
//! };
//! use outrigger_supervise::driver::{Settings, Supervisor};
//! use outrigger_supervise::launch::Launcher;
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let settings = Settings { launcher: Launcher::current_exe(), starting_at_once: NonZeroUsize::MIN };
//! let source = Arc::new(ProgramSource::this_program(Supervisor::new(settings)));
//! let host = Host::new(Pool::new(source, Terms::usual(), PoolRules::single()), HostKey::random()?)?;
//!
//! let script = host.compile("add(20, 2) + offset", TopLevelReturn::Refused).await?;
//! let table = Capabilities::none().on("add", |args| async move {
//!     Plain::Number(args.iter().map(|arg| if let Plain::Number(n) = arg { *n } else { f64::NAN }).sum())
//! });
//! let ending = host.run(&script).capabilities(table).input("offset", Plain::Number(20.0)).go().await?;
//! assert!(matches!(ending, Ending::Finished(done) if done.value == Plain::Number(42.0)));
//! # Ok(())
//! # }
//! ```

mod calling;
mod capability;
mod conversation;
mod inspect;
mod journal;
mod journey;
mod key;
mod outcome;
mod pool;
mod run;
mod script;
mod sidecar;
mod source;
mod step;
pub mod store;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

pub use capability::{Call, Capabilities, HostError, Reply};
pub use conversation::{Input, Output};
pub use inspect::InspectError;
pub use journal::Interrupted;
pub use journey::{Fanout, RunRules};
pub use key::HostKey;
pub use outcome::{
    CompileError, Ending, Failed, Finished, Parked, ResumeError, RunError, ScriptError, Statistics,
};
pub use pool::{LendError, Lent, Pool, PoolRules, PoolStatus};
pub use run::{Canceller, Run};
pub use script::Script;
pub use sidecar::{Loss, Lost, Program, Sidecar, SidecarError, Terms, TopLevelReturn};
pub use source::{BoxFuture, Link, Process, ProgramSource, Source, SpawnError};

pub use crate::protocol::limits::Limits;
pub use outrigger_vm::boundary::Plain;

use self::journal::{Journal, blocking};
use self::store::{Dialect, Record, RunId, Store, Ticket};

/// A pool of children and a key: all that it takes to run scripts. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Host {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    pool: Pool,
    key: HostKey,
    /// Where run ids come from: a random beginning and a count.
    lineage: RunId,
    runs: AtomicU64,
}

impl Host {
    /// A host with these children and this key.
    ///
    /// # Errors
    ///
    /// When the system has no randomness to give.
    pub fn new(pool: Pool, key: HostKey) -> Result<Self, getrandom::Error> {
        let inner = Inner { pool, key, lineage: RunId::random()?, runs: AtomicU64::new(0) };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Its children.
    pub fn pool(&self) -> &Pool {
        &self.inner.pool
    }

    /// Its key.
    pub fn key(&self) -> &HostKey {
        &self.inner.key
    }

    /// Makes a script of a source.
    ///
    /// # Errors
    ///
    /// [`CompileError::Script`] says what is wrong with it.
    pub async fn compile(
        &self,
        source: impl Into<String>,
        end: TopLevelReturn,
    ) -> Result<Script, CompileError> {
        let mut sidecar = self.inner.pool.lend().await?;
        Script::compile(&mut sidecar, source.into(), end).await
    }

    /// A run of a script, from its beginning.
    pub fn run(&self, script: &Script) -> Run {
        let number = self.inner.runs.fetch_add(1, Ordering::Relaxed);
        Run::of_script(self.clone(), RunId::derived(&self.inner.lineage, number), script.clone())
    }

    /// Continues a record that the caller has kept by other means. Nothing keeps it from being continued twice.
    ///
    /// # Errors
    ///
    /// When it is for other children.
    pub fn continue_record(&self, record: Record) -> Result<Run, ResumeError> {
        self.check(&record)?;
        Ok(Run::of_record(self.clone(), record, None))
    }

    /// Continues a parked run. The ticket is used, and from here on the run is written down in the same store.
    ///
    /// # Errors
    ///
    /// When the ticket was used, the run is held by somebody, or was continued and not finished.
    pub async fn resume(&self, store: Arc<dyn Store>, ticket: &Ticket) -> Result<Run, ResumeError> {
        let (record, _) = {
            let (store, ticket) = (Arc::clone(&store), ticket.clone());
            blocking(move || store.peek(&ticket)).await?
        };
        self.check(&record)?;
        let journal = Journal::open(store, record.run, Interrupted::CallAgain).await?;
        let record = journal.take(ticket.clone()).await?;
        Ok(Run::of_record(self.clone(), record, Some(journal)))
    }

    /// Takes over a run whose host is gone, from its last snapshot. Calls that were answered are not made again.
    ///
    /// # Errors
    ///
    /// When its host is alive, or there is nothing to recover.
    pub async fn recover(&self, store: Arc<dyn Store>, run: &RunId) -> Result<Run, ResumeError> {
        let journal = Journal::open(store, run.clone(), Interrupted::CallAgain).await?;
        let Some(record) = journal.latest().await? else {
            // Not even the lock that we just took stays.
            journal.forget().await?;
            return Err(ResumeError::NothingToRecover { run: run.clone() });
        };
        self.check(&record)?;
        Ok(Run::of_record(self.clone(), record, Some(journal)))
    }

    /// Runs a parked run again, used or not, as a run of its own: everything that it does is done again.
    ///
    /// # Errors
    ///
    /// When there is no such ticket.
    pub async fn replay(&self, store: Arc<dyn Store>, ticket: &Ticket) -> Result<Run, ResumeError> {
        let ticket = ticket.clone();
        let record = blocking(move || store.replay(&ticket)).await?;
        self.continue_record(record)
    }

    fn check(&self, record: &Record) -> Result<(), ResumeError> {
        let word = |dialect| match dialect {
            Dialect::Version2 => "version 2",
            Dialect::Extended => "version 2 with extensions",
        };
        let have = self.inner.pool.source().dialect();
        if record.dialect == have {
            Ok(())
        } else {
            Err(ResumeError::Dialect { needs: word(record.dialect), have: word(have) })
        }
    }
}
