//! The numbers of extensions: how often what happened, and where they are now. Counting is a few atomics; only a scrape pays.

mod label;
mod scrape;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::protocol::{ExitKind, ExtensionId, Permission, State};

use label::{CODES, METHODS, TOPICS};

pub use scrape::{Family, Sample};

/// The numbers of all extensions.
#[derive(Debug, Default)]
pub struct MetricsBook {
    extensions: Mutex<BTreeMap<ExtensionId, Arc<Metrics>>>,
}

impl MetricsBook {
    /// No extensions yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The numbers of one extension; they outlive its sessions.
    #[must_use]
    pub fn of(&self, extension: &ExtensionId) -> Arc<Metrics> {
        let mut extensions = self.extensions.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(extensions.entry(extension.clone()).or_insert_with(|| Arc::new(Metrics::new())))
    }

    /// Forgets an extension that was removed.
    pub fn forget(&self, extension: &ExtensionId) {
        self.extensions.lock().unwrap_or_else(PoisonError::into_inner).remove(extension);
    }

    fn list(&self) -> Vec<(ExtensionId, Arc<Metrics>)> {
        let extensions = self.extensions.lock().unwrap_or_else(PoisonError::into_inner);
        extensions.iter().map(|(id, metrics)| (id.clone(), Arc::clone(metrics))).collect()
    }
}

/// What became of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventFate {
    /// The host had one that the extension hears about.
    Offered,
    /// The extension acknowledged it.
    Delivered,
    /// It was thrown away because too many waited.
    Dropped,
    /// A newer one took its place.
    Coalesced,
}

/// What an extension did that it should not have, or what happened to it: counted without further labels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Incident {
    /// A request came too soon after others.
    RateLimited,
    /// A health request was not answered in time.
    HealthMissed,
    /// A frame was too long.
    FrameOversize,
    /// A frame broke the protocol.
    ProtocolViolation,
    /// Somebody failed to attach.
    AttachDenied,
    /// The platform took the process.
    Reclaimed,
}

/// The upper bounds of the buckets of the histogram of request times, in microseconds.
const BOUNDS: [u64; 12] =
    [50, 100, 250, 500, 1_000, 2_500, 10_000, 50_000, 250_000, 1_000_000, 5_000_000, 15_000_000];

/// The numbers of one extension.
#[derive(Debug)]
pub struct Metrics {
    starts: AtomicU64,
    restarts: AtomicU64,
    exits: [AtomicU64; ExitKind::ALL.len()],
    rpc: [AtomicU64; METHODS.len()],
    rpc_failed: [[AtomicU64; CODES.len()]; METHODS.len()],
    denied: [[AtomicU64; Permission::ALL.len()]; METHODS.len()],
    durations: [AtomicU64; BOUNDS.len() + 1],
    duration_sum: AtomicU64,
    events: [[AtomicU64; 4]; TOPICS.len()],
    incidents: [AtomicU64; 6],
    log_dropped: AtomicU64,
    state: AtomicU64,
    inflight: AtomicI64,
    queue_len: AtomicU64,
    queue_bytes: AtomicU64,
    rss: AtomicU64,
    running_since: Mutex<Option<Instant>>,
}

impl Metrics {
    /// All zero.
    #[must_use]
    pub fn new() -> Self {
        Self {
            starts: AtomicU64::new(0),
            restarts: AtomicU64::new(0),
            exits: zeros(),
            rpc: zeros(),
            rpc_failed: std::array::from_fn(|_| zeros()),
            denied: std::array::from_fn(|_| zeros()),
            durations: zeros(),
            duration_sum: AtomicU64::new(0),
            events: std::array::from_fn(|_| zeros()),
            incidents: zeros(),
            log_dropped: AtomicU64::new(0),
            state: AtomicU64::new(u64::MAX),
            inflight: AtomicI64::new(0),
            queue_len: AtomicU64::new(0),
            queue_bytes: AtomicU64::new(0),
            rss: AtomicU64::new(0),
            running_since: Mutex::new(None),
        }
    }

    /// A process was started.
    pub fn started(&self) {
        add(&self.starts, 1);
        *self.running_since.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }

    /// A process was started in place of one that crashed; counted beside [`Metrics::started`].
    pub fn restarted(&self) {
        add(&self.restarts, 1);
    }

    /// A process ended.
    pub fn exited(&self, kind: ExitKind) {
        add(&self.exits[kind as usize], 1);
        *self.running_since.lock().unwrap_or_else(PoisonError::into_inner) = None;
        self.rss.store(0, Ordering::Relaxed);
    }

    /// A call was answered, in either direction; `code` is that of its error.
    pub fn rpc(&self, method: &str, took: Duration, code: Option<i64>) {
        let method = label::method(method);
        add(&self.rpc[method], 1);
        if let Some(code) = code {
            add(&self.rpc_failed[method][label::code(code)], 1);
        }
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let bucket = BOUNDS.iter().position(|bound| micros <= *bound).unwrap_or(BOUNDS.len());
        add(&self.durations[bucket], 1);
        add(&self.duration_sum, micros);
    }

    /// A method was denied for want of a permission.
    pub fn denied(&self, method: &str, permission: Permission) {
        add(&self.denied[label::method(method)][permission as usize], 1);
    }

    /// Something happened to events of a topic.
    pub fn events(&self, fate: EventFate, topic: &str, count: u64) {
        add(&self.events[label::topic(topic)][fate as usize], count);
    }

    /// Something happened.
    pub fn incident(&self, incident: Incident) {
        add(&self.incidents[incident as usize], 1);
    }

    /// Lines of the log were dropped.
    pub fn log_dropped(&self, lines: u64) {
        add(&self.log_dropped, lines);
    }

    /// The extension is in this state now.
    pub fn set_state(&self, state: State) {
        self.state.store(state as u64, Ordering::Relaxed);
    }

    /// A request of the extension is being worked on.
    pub fn entered(&self) {
        self.inflight.fetch_add(1, Ordering::Relaxed);
    }

    /// A request of the extension was answered.
    pub fn left(&self) {
        self.inflight.fetch_sub(1, Ordering::Relaxed);
    }

    /// So many events wait, with so many bytes.
    pub fn set_queue(&self, events: usize, bytes: usize) {
        self.queue_len.store(events as u64, Ordering::Relaxed);
        self.queue_bytes.store(bytes as u64, Ordering::Relaxed);
    }

    /// The tree of processes uses so much memory.
    pub fn set_rss(&self, bytes: u64) {
        self.rss.store(bytes, Ordering::Relaxed);
    }

    /// How many starts were counted.
    #[must_use]
    pub fn starts(&self) -> u64 {
        self.starts.load(Ordering::Relaxed)
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

fn zeros<const N: usize>() -> [AtomicU64; N] {
    std::array::from_fn(|_| AtomicU64::new(0))
}

fn add(counter: &AtomicU64, count: u64) {
    counter.fetch_add(count, Ordering::Relaxed);
}
