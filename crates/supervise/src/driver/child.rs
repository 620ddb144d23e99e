//! The owner's handle on a child: stop it, watch it, take its sessions. When the last clone is dropped the child is killed.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;

use super::events::{EventLog, Events};
use super::session::Session;
use crate::logs::{LogLine, Stream, Tails};
use crate::report::Report;
use crate::state::{Final, Incarnation, Ladder, Phase};
use crate::tree::Pid;

/// Which child of a supervisor; two children may have the same name, never the same id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(transparent)]
pub struct ChildId(pub u64);

impl fmt::Display for ChildId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A child under supervision. Clones are the same child; dropping the last one kills it with everything it started.
#[derive(Clone, Debug)]
pub struct Child {
    inner: Arc<Inner>,
}

#[derive(Debug)]
pub(super) struct Inner {
    pub(super) id: ChildId,
    pub(super) name: String,
    pub(super) commands: mpsc::Sender<Command>,
    pub(super) status: watch::Receiver<ChildStatus>,
    pub(super) events: Arc<EventLog>,
    pub(super) sessions: Arc<SessionSlot>,
    pub(super) tails: Arc<Tails>,
    /// The driver waits for this to be dropped; nothing is ever sent.
    pub(super) _owner: oneshot::Sender<std::convert::Infallible>,
}

/// What an owner can want.
#[derive(Clone, Copy, Debug)]
pub(super) enum Command {
    Stop(Ladder),
    Kill,
    Restart(Ladder),
}

/// Where a child is right now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChildStatus {
    /// Its phase.
    pub phase: Phase,
    /// Its current process, or the last one; 0 before the first.
    pub incarnation: Incarnation,
    /// The process id, while there is a process.
    pub pid: Option<Pid>,
    /// Since when that process runs.
    pub running_since: Option<Instant>,
    /// Why it is never started again, once that is so.
    pub ended: Option<Final>,
}

impl ChildStatus {
    /// How long the current process has been running.
    pub fn uptime(&self) -> Option<Duration> {
        self.running_since.map(|since| since.elapsed())
    }
}

/// How a child ended for good.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Why it is never started again.
    pub why: Final,
    /// The report on its last process; `None` when it never had one.
    pub report: Option<Arc<Report>>,
}

/// A child that is not held: it may be gone.
#[derive(Clone, Debug)]
pub(crate) struct WeakChild(Weak<Inner>);

impl WeakChild {
    /// One that is gone.
    #[cfg(test)]
    pub(crate) fn gone() -> Self {
        Self(Weak::new())
    }

    pub(crate) fn upgrade(&self) -> Option<Child> {
        self.0.upgrade().map(|inner| Child { inner })
    }
}

impl Child {
    pub(crate) fn downgrade(&self) -> WeakChild {
        WeakChild(Arc::downgrade(&self.inner))
    }

    pub(super) fn new(inner: Inner) -> Self {
        Self { inner: Arc::new(inner) }
    }

    /// Its number.
    pub fn id(&self) -> ChildId {
        self.inner.id
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// Where it is right now.
    pub fn status(&self) -> ChildStatus {
        *self.inner.status.borrow()
    }

    /// Follows [`Child::status`]; intermediate values may be skipped, which [`Child::events`] does not do.
    pub fn watch(&self) -> watch::Receiver<ChildStatus> {
        self.inner.status.clone()
    }

    /// Every transition and every exit report, from the first that is still kept.
    pub fn events(&self) -> Events {
        self.inner.events.listen()
    }

    /// Stops it: ask, SIGTERM, SIGKILL. Returns when everything is reaped. A second stop means now.
    pub async fn stop(&self, ladder: Ladder) -> Outcome {
        self.command(Command::Stop(ladder)).await;
        self.wait().await
    }

    /// Kills it with everything it started. Returns when everything is reaped.
    pub async fn kill(&self) -> Outcome {
        self.command(Command::Kill).await;
        self.wait().await
    }

    /// Replaces its process by a fresh one, which comes as the next session. Without effect on a child that has ended or is
    /// already on its way out.
    pub async fn restart(&self, ladder: Ladder) {
        self.command(Command::Restart(ladder)).await;
    }

    /// Waits until it has ended for good.
    ///
    /// If the runtime is shut down under the driver the tree is killed too, and that counts as requested.
    pub async fn wait(&self) -> Outcome {
        let mut status = self.inner.status.clone();
        let why = match status.wait_for(|status| status.ended.is_some()).await {
            Ok(status) => status.ended,
            Err(_) => None,
        };
        Outcome { why: why.unwrap_or(Final::Requested), report: self.last_report() }
    }

    /// The session of the current process, or of the next one when that has been taken. `None` when no more will come.
    ///
    /// With a gate on stdout it comes when the gate has opened, otherwise as soon as the process runs. A session that nobody
    /// takes is replaced by that of the next process.
    pub async fn next_session(&self) -> Option<Session> {
        self.inner.sessions.take().await
    }

    /// The report on the last process that ended.
    pub fn last_report(&self) -> Option<Arc<Report>> {
        self.inner.events.last_report()
    }

    /// The last lines of the current process on standard error.
    pub fn stderr_tail(&self) -> Vec<LogLine> {
        self.inner.tails.lines(Stream::Stderr)
    }

    /// The last lines of the current process on standard output, if that goes to the log.
    pub fn stdout_tail(&self) -> Vec<LogLine> {
        self.inner.tails.lines(Stream::Stdout)
    }

    async fn command(&self, command: Command) {
        // A driver that is gone has nothing left to stop.
        let _ = self.inner.commands.send(command).await;
    }
}

/// The session that waits to be taken. There is at most one: a newer process replaces it.
#[derive(Debug)]
pub(super) struct SessionSlot {
    slot: Mutex<Slot>,
    bell: watch::Sender<()>,
}

#[derive(Debug)]
enum Slot {
    Empty,
    Waiting(Box<Session>),
    /// No more will come; one may still be waiting.
    Last(Option<Box<Session>>),
}

impl SessionSlot {
    pub(super) fn new() -> Self {
        Self { slot: Mutex::new(Slot::Empty), bell: watch::Sender::new(()) }
    }

    pub(super) fn put(&self, session: Session) {
        self.change(|_| Slot::Waiting(Box::new(session)));
    }

    pub(super) fn close(&self) {
        self.change(|slot| match slot {
            Slot::Empty => Slot::Last(None),
            Slot::Waiting(session) => Slot::Last(Some(session)),
            Slot::Last(session) => Slot::Last(session),
        });
    }

    /// Whether the session of this process was taken by somebody, who may then serve requests.
    pub(super) fn was_taken(&self, incarnation: Incarnation) -> bool {
        match &*self.slot.lock().unwrap_or_else(PoisonError::into_inner) {
            Slot::Waiting(session) | Slot::Last(Some(session)) => session.incarnation != incarnation,
            Slot::Empty | Slot::Last(None) => true,
        }
    }

    async fn take(&self) -> Option<Session> {
        let mut bell = self.bell.subscribe();
        loop {
            bell.borrow_and_update();
            {
                let mut slot = self.slot.lock().unwrap_or_else(PoisonError::into_inner);
                match std::mem::replace(&mut *slot, Slot::Empty) {
                    Slot::Empty => {}
                    Slot::Waiting(session) => return Some(*session),
                    Slot::Last(session) => {
                        *slot = Slot::Last(None);
                        return session.map(|session| *session);
                    }
                }
            }
            // The bell only stops when the slot is gone, and we hold a reference to it.
            bell.changed().await.ok()?;
        }
    }

    fn change(&self, change: impl FnOnce(Slot) -> Slot) {
        let mut slot = self.slot.lock().unwrap_or_else(PoisonError::into_inner);
        *slot = change(std::mem::replace(&mut *slot, Slot::Empty));
        drop(slot);
        self.bell.send_replace(());
    }
}
