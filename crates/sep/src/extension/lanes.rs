//! The threads that handlers run in. Each begins when it is first needed, and none of them is the one that reads.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use super::api::Trouble;

/// Something to be done.
pub(super) type Work = Box<dyn FnOnce() + Send>;

/// Why something is not done.
#[derive(Debug)]
pub(super) enum NotTaken {
    /// Too much waits already.
    Full,
    /// There is no thread to do it.
    NoThread(std::io::Error),
}

/// One thread that does one thing after the other, in order.
pub(super) struct Lane {
    name: &'static str,
    most: usize,
    queue: Mutex<Option<SyncSender<Work>>>,
}

impl Lane {
    /// A lane in which at most so many things wait.
    pub(super) fn new(name: &'static str, most: usize) -> Self {
        Self { name, most, queue: Mutex::new(None) }
    }

    /// Takes this as the next thing to be done. Never waits.
    pub(super) fn take(&self, work: Work) -> Result<(), NotTaken> {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let sender = match &*queue {
            Some(sender) => sender,
            None => {
                let (sender, receiver) = sync_channel(self.most);
                begin(self.name, move || do_all(&receiver)).map_err(NotTaken::NoThread)?;
                queue.insert(sender)
            }
        };
        sender.try_send(work).map_err(|error| match error {
            TrySendError::Full(_) | TrySendError::Disconnected(_) => NotTaken::Full,
        })
    }
}

/// Threads that each do one thing, so many at the same time.
pub(super) struct Crowd {
    name: &'static str,
    most: usize,
    busy: Arc<Mutex<usize>>,
}

impl Crowd {
    /// At most so many at the same time.
    pub(super) fn new(name: &'static str, most: usize) -> Self {
        Self { name, most, busy: Arc::default() }
    }

    /// Does this now. Never waits.
    pub(super) fn take(&self, work: Work) -> Result<(), NotTaken> {
        let count = |busy: &Mutex<usize>, change: fn(usize) -> usize| {
            let mut busy = busy.lock().unwrap_or_else(PoisonError::into_inner);
            *busy = change(*busy);
            *busy
        };
        if count(&self.busy, |busy| busy + 1) > self.most {
            count(&self.busy, |busy| busy - 1);
            return Err(NotTaken::Full);
        }
        let busy = self.busy.clone();
        let begun = begin(self.name, move || {
            work();
            count(&busy, |busy| busy - 1);
        });
        begun.map_err(|error| {
            count(&self.busy, |busy| busy - 1);
            NotTaken::NoThread(error)
        })
    }
}

/// Begins a thread that nobody waits for.
pub(super) fn begin(name: &str, work: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
    thread::Builder::new().name(name.to_owned()).spawn(work).map(drop)
}

/// Calls a handler of the author. One that panics has failed like any other; what it had to say is on standard error.
pub(super) fn guarded<T>(handler: impl FnOnce() -> Result<T, Trouble>) -> Result<T, Trouble> {
    catch_unwind(AssertUnwindSafe(handler)).unwrap_or_else(|_| Err("the handler panicked".into()))
}

fn do_all(queue: &Receiver<Work>) {
    while let Ok(work) = queue.recv() {
        work();
    }
}
