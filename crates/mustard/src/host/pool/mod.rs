//! Children that are ready before they are needed, and never more than there may be.
//!
//! Whoever wants a child waits for a seat, in the order of asking; then a warm child is there, or one is started. What comes
//! back is kept if it can be used again, and ended after its last run, when it grew too large, or when a request was
//! abandoned half-way. [`Pool::shutdown`] returns when nothing is running any more.

mod ledger;

use std::collections::HashMap;
use std::num::{NonZeroU32, NonZeroUsize};
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use outrigger_supervise::driver::Child;
use outrigger_supervise::tree::Pid;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use self::ledger::{Facts, Fate, Ledger, Usable};
use super::sidecar::{Sidecar, SidecarError, Terms};
use super::source::{Process, Source};

/// How many children there may be, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolRules {
    /// At most so many at once, lent or waiting.
    pub size: NonZeroUsize,
    /// So many are kept waiting, as far as the size allows.
    pub warm: usize,
    /// A child is replaced after so many runs.
    pub runs_per_child: NonZeroU32,
    /// A child that holds more memory than this after a run is replaced; `None`: never for that.
    pub rss_bytes: Option<u64>,
}

impl PoolRules {
    /// One child, started when it is needed, for 10,000 runs or until it holds 256 MiB.
    pub fn single() -> Self {
        Self {
            size: NonZeroUsize::MIN,
            warm: 0,
            runs_per_child: NonZeroU32::new(10_000).unwrap_or(NonZeroU32::MIN),
            rss_bytes: Some(256 << 20),
        }
    }
}

/// Warm children. Clones are the same pool; when the last one and the last borrowed child are gone, so are all children.
#[derive(Clone, Debug)]
pub struct Pool {
    shared: Arc<Shared>,
}

/// Why no child was lent.
#[derive(Debug, thiserror::Error)]
pub enum LendError {
    /// The pool was shut down.
    #[error("the pool of sidecars was shut down")]
    Closed,
    /// None could be started.
    #[error(transparent)]
    Start(#[from] SidecarError),
}

/// How a pool does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolStatus {
    /// Children that wait.
    pub idle: usize,
    /// Children that are used.
    pub lent: usize,
    /// Children that are being started in advance.
    pub warming: usize,
    /// Children ever started.
    pub started: u64,
}

#[derive(Debug)]
struct Shared {
    source: Arc<dyn Source>,
    terms: Terms,
    seats: Arc<Semaphore>,
    /// How many starts are under way.
    starting: watch::Sender<usize>,
    inside: Mutex<Inside>,
}

#[derive(Debug)]
struct Inside {
    ledger: Ledger,
    idle: Vec<Sidecar>,
    /// Every child that may still be running, so that a shutdown can wait for each of them.
    living: HashMap<u64, Child>,
    started: u64,
}

impl Pool {
    /// A pool; must be made inside a tokio runtime, because it begins to warm up at once.
    pub fn new(source: Arc<dyn Source>, terms: Terms, rules: PoolRules) -> Self {
        let inside =
            Inside { ledger: Ledger::new(rules), idle: Vec::new(), living: HashMap::new(), started: 0 };
        let seats = Arc::new(Semaphore::new(rules.size.get().min(Semaphore::MAX_PERMITS)));
        let (starting, inside) = (watch::Sender::new(0), Mutex::new(inside));
        let pool = Self { shared: Arc::new(Shared { source, terms, seats, starting, inside }) };
        warm_up(&pool.shared);
        pool
    }

    /// A child for as long as the result lives. Waits for a seat if all are taken, first come first served.
    ///
    /// # Errors
    ///
    /// When the pool was shut down, or no child can be started.
    pub async fn lend(&self) -> Result<Lent, LendError> {
        let seat = Arc::clone(&self.shared.seats).acquire_owned().await.map_err(|_| LendError::Closed)?;
        // From here on whatever happens, also being dropped, must give the loan back.
        let mut loan = Loan { shared: Arc::clone(&self.shared), sidecar: None, _seat: seat };
        loan.sidecar = self.shared.take_idle();
        warm_up(&self.shared);
        if loan.sidecar.is_none() {
            loan.sidecar = self.shared.start().await?.keep();
        }
        if self.shared.inside().ledger.is_closed() {
            return Err(LendError::Closed);
        }
        Ok(Lent(loan))
    }

    /// How it does.
    pub fn status(&self) -> PoolStatus {
        let inside = self.shared.inside();
        let (idle, lent, warming) = inside.ledger.counts();
        PoolStatus { idle, lent, warming, started: inside.started }
    }

    /// The processes of its children, as far as they are processes of this host.
    pub fn pids(&self) -> Vec<u32> {
        let inside = self.shared.inside();
        inside.living.values().filter_map(|child| child.status().pid).map(Pid::get).collect()
    }

    /// What its children speak.
    pub(super) fn source(&self) -> &dyn Source {
        &*self.shared.source
    }

    /// Kills every child, also those that are lent, and returns when nothing is running. Nobody gets another one.
    pub async fn shutdown(&self) {
        self.shared.seats.close();
        let (idle, living) = {
            let mut inside = self.shared.inside();
            inside.ledger.close();
            let living: Vec<_> = inside.living.values().cloned().collect();
            (std::mem::take(&mut inside.idle), living)
        };
        drop(idle);
        for child in living {
            child.kill().await;
        }
        // What is being started right now cannot be killed before it is there.
        let mut starting = self.shared.starting.subscribe();
        // The sender is in `shared`, which we hold.
        let _ = starting.wait_for(|count| *count == 0).await;
        loop {
            let late = self.shared.inside().living.iter().next().map(|(id, child)| (*id, child.clone()));
            let Some((id, child)) = late else { break };
            child.kill().await;
            self.shared.inside().living.remove(&id);
        }
    }
}

impl Shared {
    fn inside(&self) -> MutexGuard<'_, Inside> {
        // Nothing in here panics half-way through a change.
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A child that waits and is still alive. The seat counts as lent either way.
    fn take_idle(&self) -> Option<Sidecar> {
        let mut inside = self.inside();
        while let Some(sidecar) = inside.idle.pop() {
            if sidecar.is_idle() {
                inside.ledger.lend();
                return Some(sidecar);
            }
            inside.ledger.idle_died();
            inside.strike(&sidecar);
        }
        inside.ledger.lend();
        None
    }

    /// Starts a child. In a task of its own, so that whoever loses patience does not leave half a child behind.
    async fn start(self: &Arc<Self>) -> Result<Fresh, SidecarError> {
        let shared = Arc::clone(self);
        shared.starting.send_modify(|count| *count += 1);
        let started = tokio::spawn(async move {
            // Also when the runtime drops this task.
            let counted = Counted(Arc::clone(&shared));
            let sidecar = Sidecar::start(&*shared.source, shared.terms).await?;
            shared.register(&sidecar);
            drop(counted);
            Ok(Fresh { shared, sidecar: Some(sidecar) })
        });
        match started.await {
            Ok(fresh) => fresh,
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                // The runtime is being shut down, and this task with it.
                Err(_) => std::future::pending().await,
            },
        }
    }

    fn register(&self, sidecar: &Sidecar) {
        let mut inside = self.inside();
        inside.started += 1;
        if let Process::Supervised { child, .. } = sidecar.process() {
            inside.living.insert(child.id().0, child.clone());
        }
    }

    /// Ends a child in the background; until it is gone it counts as living.
    fn retire(self: &Arc<Self>, sidecar: Sidecar) {
        let Process::Supervised { child, .. } = sidecar.process() else { return };
        let child = child.clone();
        drop(sidecar);
        let shared = Arc::clone(self);
        let gone = async move {
            child.kill().await;
            shared.inside().living.remove(&child.id().0);
        };
        // Without a runtime the drop above has done all that can be done.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(gone);
        }
    }
}

impl Inside {
    /// Forgets a child that has ended.
    fn strike(&mut self, sidecar: &Sidecar) {
        if let Process::Supervised { child, .. } = sidecar.process() {
            self.living.remove(&child.id().0);
        }
    }
}

/// Starts as many children in advance as the ledger wants. One that does not start is not tried again until the next loan,
/// which will say why.
fn warm_up(shared: &Arc<Shared>) {
    let count = shared.inside().ledger.warm_up();
    for _ in 0..count {
        let warming = Warming { shared: Arc::clone(shared), settled: Settled::No };
        tokio::spawn(warming.start());
    }
}

/// A child that is being started in advance; dropped half-way it takes itself off the ledger.
struct Warming {
    shared: Arc<Shared>,
    settled: Settled,
}

#[derive(PartialEq, Eq)]
enum Settled {
    No,
    Yes,
}

impl Warming {
    async fn start(mut self) {
        let Ok(mut fresh) = self.shared.start().await else { return };
        self.settled = Settled::Yes;
        let mut inside = self.shared.inside();
        if inside.ledger.warmed() == Fate::Keep {
            inside.idle.extend(fresh.sidecar.take());
        }
        // One that is not kept is retired by `fresh`, which needs the lock.
        drop(inside);
        drop(fresh);
    }
}

impl Drop for Warming {
    fn drop(&mut self) {
        if self.settled == Settled::No {
            self.shared.inside().ledger.failed_to_warm();
        }
    }
}

/// A child that was just started; retired if nobody takes it.
#[derive(Debug)]
struct Fresh {
    shared: Arc<Shared>,
    sidecar: Option<Sidecar>,
}

impl Fresh {
    fn keep(mut self) -> Option<Sidecar> {
        self.sidecar.take()
    }
}

impl Drop for Fresh {
    fn drop(&mut self) {
        if let Some(sidecar) = self.sidecar.take() {
            self.shared.retire(sidecar);
        }
    }
}

/// One start that is under way.
struct Counted(Arc<Shared>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.starting.send_modify(|count| *count -= 1);
    }
}

/// A child that is lent. Dropped in the middle of a request, the child ends; otherwise it waits for the next run.
#[derive(Debug)]
pub struct Lent(Loan);

#[derive(Debug)]
struct Loan {
    shared: Arc<Shared>,
    /// `None` only before there is one, and after it was given back.
    sidecar: Option<Sidecar>,
    _seat: OwnedSemaphorePermit,
}

impl Deref for Lent {
    type Target = Sidecar;

    fn deref(&self) -> &Sidecar {
        match &self.0.sidecar {
            Some(sidecar) => sidecar,
            None => {
                unreachable!("a loan becomes `Lent` only with a child, which is taken out only by `drop`")
            }
        }
    }
}

impl DerefMut for Lent {
    fn deref_mut(&mut self) -> &mut Sidecar {
        match &mut self.0.sidecar {
            Some(sidecar) => sidecar,
            None => {
                unreachable!("a loan becomes `Lent` only with a child, which is taken out only by `drop`")
            }
        }
    }
}

impl Drop for Loan {
    fn drop(&mut self) {
        let Some(sidecar) = self.sidecar.take() else {
            self.shared.inside().ledger.unlend();
            return;
        };
        let facts = Facts {
            usable: if sidecar.is_idle() { Usable::Yes } else { Usable::No },
            runs: sidecar.runs(),
            rss_bytes: sidecar.pid().map_or(0, rss_of),
        };
        let retired = {
            let mut inside = self.shared.inside();
            match inside.ledger.give_back(facts) {
                Fate::Keep => {
                    inside.idle.push(sidecar);
                    None
                }
                Fate::Retire => Some(sidecar),
            }
        };
        if let Some(sidecar) = retired {
            self.shared.retire(sidecar);
        }
        if tokio::runtime::Handle::try_current().is_ok() {
            warm_up(&self.shared);
        }
    }
}

/// What a process holds of memory; 0 if it is gone.
fn rss_of(pid: u32) -> u64 {
    // The second number of `statm` is in pages, and on every machine that we run on a page has 4,096 bytes or more: where it
    // has more, children are kept a little longer.
    const PAGE: u64 = 4096;
    let text = std::fs::read_to_string(format!("/proc/{pid}/statm")).unwrap_or_default();
    let pages = text.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok());
    pages.unwrap_or(0).saturating_mul(PAGE)
}
