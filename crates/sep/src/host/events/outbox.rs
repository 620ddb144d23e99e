//! A queue that is shared by those who offer and the one who delivers. Offering takes a lock for a moment and never waits.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::queue::{Bounds, Delivery, Event, Loss, Queue, Tally};
use super::topic::Topic;

/// The events of one session. Nothing is delivered before it is [opened](Self::open).
#[derive(Debug)]
pub struct Outbox {
    inner: Mutex<Inner>,
    changed: Notify,
    arrived: Notify,
    late: AtomicU64,
}

#[derive(Debug)]
struct Inner {
    queue: Queue,
    gate: Gate,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Gate {
    /// Events wait: the session has not begun, or the extension cannot run.
    Shut,
    Open,
    /// There will be no more: the session is over.
    Closed,
}

impl Outbox {
    /// An empty one.
    #[must_use]
    pub fn new(bounds: Bounds) -> Self {
        let inner = Inner { queue: Queue::new(bounds), gate: Gate::Shut };
        Self {
            inner: Mutex::new(inner),
            changed: Notify::new(),
            arrived: Notify::new(),
            late: AtomicU64::new(0),
        }
    }

    /// Takes an event, see [`Queue::offer`]. Never waits for anybody but those who do as little.
    pub fn offer(&self, event: Event) -> Loss {
        let mut inner = self.inner();
        if inner.gate == Gate::Closed {
            return Loss::default();
        }
        let loss = inner.queue.offer(event);
        let open = inner.gate == Gate::Open;
        drop(inner);
        match open {
            true => self.changed.notify_one(),
            false => self.arrived.notify_one(),
        }
        loss
    }

    /// Lets deliveries begin, or go on after [`Outbox::hold`].
    pub fn open(&self) {
        self.set_gate(Gate::Open);
    }

    /// Stops deliveries; what is offered meanwhile waits.
    pub fn hold(&self) {
        self.set_gate(Gate::Shut);
    }

    /// Lets deliveries go on after a time in which much may have happened: of what waits about a peer, only the newest is
    /// told.
    pub fn resume(&self) {
        self.inner().queue.coalesce();
        self.open();
    }

    /// Ends it. What waits is never delivered, and nothing more is taken.
    pub fn close(&self) {
        self.set_gate(Gate::Closed);
    }

    /// Changes how many may be on their way.
    pub fn set_window(&self, window: usize) {
        self.inner().queue.set_window(window);
        self.changed.notify_one();
    }

    /// Withdraws what waits about these topics, see [`Queue::withdraw`].
    pub fn withdraw(&self, unwanted: impl Fn(Topic) -> bool) {
        self.inner().queue.withdraw(unwanted);
    }

    /// Forgets what waits and is not wanted, see [`Queue::restrict`].
    pub fn restrict(&self, wanted: impl Fn(Topic) -> bool) {
        self.inner().queue.restrict(wanted);
    }

    /// The next event, when the window has room for it. `None` when it is closed.
    pub async fn next(&self) -> Option<Delivery> {
        loop {
            {
                let mut inner = self.inner();
                match inner.gate {
                    Gate::Closed => return None,
                    Gate::Open => {
                        if let Some(delivery) = inner.queue.deliver() {
                            return Some(delivery);
                        }
                    }
                    Gate::Shut => {}
                }
            }
            self.changed.notified().await;
        }
    }

    /// One of those on their way was acknowledged.
    pub fn acknowledge(&self) {
        self.inner().queue.acknowledge();
        self.changed.notify_one();
    }

    /// Waits until an event came while nothing could be delivered: a reason to start an extension that waits for one.
    pub async fn arrived(&self) {
        loop {
            if self.tally().waiting > 0 {
                return;
            }
            self.arrived.notified().await;
        }
    }

    /// Notes an acknowledgement that was late.
    pub(super) fn note_late(&self) {
        self.late.fetch_add(1, Ordering::Relaxed);
    }

    /// How many acknowledgements were late.
    #[must_use]
    pub fn late(&self) -> u64 {
        self.late.load(Ordering::Relaxed)
    }

    /// What became of all events so far.
    #[must_use]
    pub fn tally(&self) -> Tally {
        self.inner().queue.tally()
    }

    fn set_gate(&self, gate: Gate) {
        {
            let mut inner = self.inner();
            if inner.gate != Gate::Closed {
                inner.gate = gate;
            }
        }
        self.changed.notify_one();
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
