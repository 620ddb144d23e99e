//! The streams of one process: which there are, whom each notification belongs to, and what becomes of all when it is gone.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use outrigger_wire::peer::BoxFuture;
use serde_json::value::RawValue;
use tokio::sync::watch;

use super::chunk::Chunk;
use super::end::{Done, Lost, StreamEnd, StreamFailure};
use super::queue::{Full, Queue, WhenFull};
use super::stream::StreamId;
use super::terms::StreamLimits;

/// The streams of one process.
#[derive(Debug)]
pub(super) struct Hub {
    limits: StreamLimits,
    streams: Mutex<Streams>,
    /// Whether we are the ones who do not read, because a stream is full.
    held: watch::Sender<bool>,
    /// Notifications of streams that nobody asked for, or that are over.
    stray: AtomicU64,
}

#[derive(Debug)]
struct Streams {
    open: HashMap<String, Arc<Queue>>,
    when_full: WhenFull,
    lost: Option<Lost>,
}

/// Why a stream was not opened.
#[derive(Debug)]
pub(super) enum NotOpened {
    /// There is one of that id.
    Taken,
    /// The process is gone.
    Lost(Lost),
}

impl Hub {
    pub(super) fn new(limits: StreamLimits) -> Self {
        let streams = Streams { open: HashMap::new(), when_full: WhenFull::Wait, lost: None };
        Self {
            limits,
            streams: Mutex::new(streams),
            held: watch::Sender::new(false),
            stray: AtomicU64::new(0),
        }
    }

    /// Makes a place for a stream, before anybody is asked for it, so that nothing of it can be missed.
    pub(super) fn open(&self, id: &StreamId) -> Result<Arc<Queue>, NotOpened> {
        let mut streams = self.streams();
        if let Some(lost) = &streams.lost {
            return Err(NotOpened::Lost(lost.clone()));
        }
        if streams.open.contains_key(id.as_str()) {
            return Err(NotOpened::Taken);
        }
        let queue = Arc::new(Queue::new(self.limits));
        queue.when_full(streams.when_full);
        streams.open.insert(id.as_str().to_owned(), Arc::clone(&queue));
        Ok(queue)
    }

    /// Takes the place of a stream back that did not come about.
    pub(super) fn forget(&self, id: &StreamId) {
        self.streams().open.remove(id.as_str());
    }

    /// Gives a notification to its stream. The future, if there is one, waits until the stream has room.
    pub(super) fn route(self: &Arc<Self>, method: &str, params: &RawValue) -> Option<BoxFuture<()>> {
        match method {
            "stream.chunk" => {
                let Some((id, chunk)) = Chunk::read(params) else { return self.stray() };
                let Some(queue) = self.streams().open.get(&*id).map(Arc::clone) else { return self.stray() };
                if chunk.is_empty() {
                    return None;
                }
                let bytes = params.get().len();
                let Err(Full(chunk)) = queue.try_push(chunk, bytes) else { return None };
                let hub = Arc::clone(self);
                Some(Box::pin(async move {
                    let _held = Held::new(&hub.held);
                    queue.push(*chunk, bytes).await;
                }))
            }
            "stream.done" => self.end(Done::read(params).map(|(id, done)| (id, StreamEnd::Done(done)))),
            "stream.error" => {
                self.end(StreamFailure::read(params).map(|(id, failure)| (id, StreamEnd::Failed(failure))))
            }
            _ => self.stray(),
        }
    }

    /// Nobody waits for room in this stream any more, because it is being cancelled.
    pub(super) fn hurry(&self, id: &StreamId) {
        if let Some(queue) = self.streams().open.get(id.as_str()) {
            queue.when_full(WhenFull::Drop);
        }
    }

    /// Nobody waits for room in any stream any more, because the sidecar leaves or is gone.
    pub(super) fn hurry_all(&self) {
        let mut streams = self.streams();
        streams.when_full = WhenFull::Drop;
        for queue in streams.open.values() {
            queue.when_full(WhenFull::Drop);
        }
    }

    /// Ends every stream that has no end yet; none can be opened afterwards.
    pub(super) fn lose(&self, lost: &Lost) {
        let mut streams = self.streams();
        streams.lost.get_or_insert_with(|| lost.clone());
        for (_, queue) in streams.open.drain() {
            queue.finish(StreamEnd::Lost(lost.clone()));
        }
    }

    /// Follows whether we are the ones who do not read.
    pub(super) fn held(&self) -> watch::Receiver<bool> {
        self.held.subscribe()
    }

    pub(super) fn strays(&self) -> u64 {
        self.stray.load(Ordering::Relaxed)
    }

    fn end(&self, read: Option<(std::borrow::Cow<'_, str>, StreamEnd)>) -> Option<BoxFuture<()>> {
        let Some((id, end)) = read else { return self.stray() };
        // The original ends a failed turn twice; the second end finds nobody.
        let Some(queue) = self.streams().open.remove(&*id) else { return self.stray() };
        queue.finish(end);
        None
    }

    fn stray(&self) -> Option<BoxFuture<()>> {
        self.stray.fetch_add(1, Ordering::Relaxed);
        None
    }

    fn streams(&self) -> MutexGuard<'_, Streams> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// While it lives, we are the ones who do not read.
struct Held<'a>(&'a watch::Sender<bool>);

impl<'a> Held<'a> {
    fn new(held: &'a watch::Sender<bool>) -> Self {
        held.send_replace(true);
        Self(held)
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.0.send_replace(false);
    }
}
