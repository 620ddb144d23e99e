//! What every request is given: the daemon, the limits, the counters, and whether the daemon is leaving.

use std::sync::Arc;
use std::time::Instant;

use axum::body::Bytes;
use tokio::sync::{Semaphore, watch};

use super::limits::ServerLimits;
use super::meter::Meter;
use super::openapi;
use super::pace::Pace;
use super::routes::{Entry, routes};
use super::summaries::Summaries;
use crate::daemon::App;

/// The server, as its requests see it.
pub(super) struct Door {
    pub(super) app: Arc<App>,
    pub(super) limits: Arc<ServerLimits>,
    pub(super) pace: Pace,
    pub(super) meter: Arc<Meter>,
    /// Places for event streams.
    pub(super) streams: Arc<Semaphore>,
    pub(super) summaries: Summaries,
    /// Routes for which nothing has to be shown.
    open: Vec<&'static str>,
    /// The document that says what can be asked.
    pub(super) openapi: Bytes,
    leaving: watch::Receiver<bool>,
}

impl Door {
    /// `leaving` becomes true when the daemon begins to leave.
    pub(super) fn new(app: Arc<App>, limits: Arc<ServerLimits>, leaving: watch::Receiver<bool>) -> Self {
        let table = routes();
        let open = table.iter().filter(|route| route.entry == Entry::Open).map(|route| route.path).collect();
        Self {
            app,
            open,
            pace: Pace::new(limits.per_second, limits.burst, Instant::now()),
            meter: Arc::default(),
            streams: Arc::new(Semaphore::new(limits.streams.min(Semaphore::MAX_PERMITS))),
            summaries: Summaries::new(),
            openapi: openapi::document(&table).to_string().into(),
            limits,
            leaving,
        }
    }

    /// Whether a route needs nothing to be shown. The files of the pages are no secret.
    pub(super) fn is_open(&self, route: &str) -> bool {
        self.open.contains(&route) || route.starts_with("/assets/")
    }

    pub(super) fn is_leaving(&self) -> bool {
        *self.leaving.borrow()
    }

    /// Ends when the daemon begins to leave.
    pub(super) fn left(&self) -> impl Future<Output = ()> + Send + 'static {
        let mut leaving = self.leaving.clone();
        async move {
            // If nobody can say any more that it leaves, it has left.
            let _ = leaving.wait_for(|leaving| *leaving).await;
        }
    }
}
