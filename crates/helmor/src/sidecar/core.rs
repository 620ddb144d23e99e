//! What all of a sidecar shares, and how work is handed to drivers so that none of them can delay the rest.

use std::any::Any;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use tokio::runtime::{Builder, Handle, Runtime};
use tokio::task::{JoinError, JoinHandle};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::conversation::Conversation;
use super::defaults::Defaults;
use super::log::Log;
use super::options::{ApiErrors, Warm};
use super::providers::{Missing, Providers};
use super::replay::Replay;
use super::reply::{Problem, Reply};
use super::sessions::Sessions;
use crate::protocol::ProviderName;
use crate::provider::process::Programs;
use crate::provider::{Failure, Provider};

/// How many threads drivers have: so many may block, less one, before others have to wait.
const THREADS: usize = 4;

pub(super) struct Core {
    pub(super) conversation: Arc<Conversation>,
    /// What is played instead of asking anybody.
    pub(super) replay: Option<Replay>,
    pub(super) providers: Providers,
    pub(super) programs: Programs,
    pub(super) sessions: Sessions,
    pub(super) defaults: Mutex<Defaults>,
    pub(super) heartbeat: Duration,
    pub(super) api_errors: ApiErrors,
    pub(super) warm: Warm,
    pub(super) log: Log,
    pub(super) drivers: Drivers,
    /// What has to be over before we may go.
    pub(super) tasks: TaskTracker,
    /// Everything ends.
    pub(super) closing: CancellationToken,
    /// The request to shut down, for whoever ends everything.
    pub(super) shutdown: Mutex<Option<Reply>>,
    pub(super) shut_down: CancellationToken,
    /// Whether somebody looks after what is warm.
    pub(super) warming: Mutex<bool>,
}

impl Core {
    /// The provider of that name.
    pub(super) fn provider(&self, name: &ProviderName) -> Result<Arc<dyn Provider>, Problem> {
        // Its own tasks, if it has any, belong to the drivers.
        let _inside = self.drivers.handle()?.enter();
        match self.providers.get(name, &self.programs) {
            Ok(provider) => Ok(provider),
            Err(Missing::Unknown) => Err(Problem::Params(format!("unknown provider: {name}"))),
            Err(Missing::Failed(failure)) => Err(failure.into()),
        }
    }

    /// Lets a driver do something, for at most so long. It is dropped when time is over or everything ends.
    pub(super) async fn ask<T: Send + 'static>(
        &self,
        what: &str,
        at_most: Duration,
        work: impl Future<Output = Result<T, Failure>> + Send + 'static,
    ) -> Result<T, Problem> {
        let mut work = Aborted(self.drivers.handle()?.spawn(work));
        let asked = tokio::select! {
            asked = timeout(at_most, &mut work.0) => asked,
            () = self.closing.cancelled() => return Err(Problem::closing()),
        };
        match asked {
            Ok(Ok(answer)) => answer.map_err(Problem::Failed),
            Ok(Err(error)) => Err(Problem::Internal(words(error))),
            Err(_) => Err(Problem::timeout(what)),
        }
    }

    pub(super) fn defaults(&self) -> std::sync::MutexGuard<'_, Defaults> {
        self.defaults.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A task that is ended when nobody waits for it any more.
pub(super) struct Aborted<T>(pub(super) JoinHandle<T>);

impl<T> Drop for Aborted<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// What a driver said when it panicked.
pub(super) fn words(error: JoinError) -> String {
    let Ok(panic) = error.try_into_panic() else { return "a driver was dropped".to_owned() };
    format!("a driver panicked: {}", said(&*panic))
}

pub(super) fn said(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "without words".to_owned())
}

/// The threads of the drivers. The conversation has its own, so that a driver that blocks, or never waits, can delay neither the
/// reader nor the writer nor a heartbeat. They are started with the first driver.
#[derive(Default)]
pub(super) struct Drivers(OnceLock<Option<Runtime>>);

impl Drivers {
    pub(super) fn handle(&self) -> Result<Handle, Problem> {
        let start = || {
            Builder::new_multi_thread()
                .worker_threads(THREADS)
                .thread_name("driver")
                .enable_all()
                .build()
                .ok()
        };
        let started = self.0.get_or_init(start).as_ref();
        let runtime = started.ok_or_else(|| Problem::Internal("no threads for drivers".to_owned()))?;
        Ok(runtime.handle().clone())
    }
}

impl Drop for Drivers {
    fn drop(&mut self) {
        if let Some(Some(runtime)) = self.0.take() {
            // A driver that blocks must not keep us.
            runtime.shutdown_background();
        }
    }
}
