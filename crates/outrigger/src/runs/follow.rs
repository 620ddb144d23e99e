//! Reading a log as it grows: one bell a followed run, rung by one task for all.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, watch};

use super::id::RunId;
use super::parts::Part;
use super::service::{Runs, RunsError};
use crate::engine::{Changed, LogId, Seq};

/// The bells of the runs that somebody follows. A run that nobody follows has none, however much it writes.
#[derive(Debug)]
pub(super) struct Bells {
    hung: Mutex<HashMap<LogId, Weak<watch::Sender<Seq>>>>,
}

/// Hears a run.
#[derive(Debug)]
pub(super) struct Bell {
    /// Held so that it is rung for as long as somebody listens.
    _rung: Arc<watch::Sender<Seq>>,
    heard: watch::Receiver<Seq>,
}

impl Bells {
    /// Rings whenever the engine says that a log has changed.
    pub(super) fn over(mut changes: broadcast::Receiver<Changed>) -> Arc<Self> {
        let bells = Arc::new(Self { hung: Mutex::new(HashMap::new()) });
        let ringing = Arc::downgrade(&bells);
        tokio::spawn(async move {
            loop {
                let changed = changes.recv().await;
                let Some(bells) = ringing.upgrade() else { return };
                match changed {
                    Ok(changed) => bells.ring(&changed),
                    // What was missed may have been for anybody.
                    Err(RecvError::Lagged(_)) => bells.ring_all(),
                    Err(RecvError::Closed) => return,
                }
            }
        });
        bells
    }

    pub(super) fn listen(&self, run: &RunId) -> Bell {
        let mut hung = self.hung.lock().unwrap_or_else(PoisonError::into_inner);
        if hung.len() >= 64 && hung.len().is_power_of_two() {
            hung.retain(|_, bell| bell.strong_count() > 0);
        }
        let bell = hung.get(&run.log()).and_then(Weak::upgrade);
        let rung = bell.unwrap_or_else(|| Arc::new(watch::Sender::new(Seq(0))));
        hung.insert(run.log(), Arc::downgrade(&rung));
        let heard = rung.subscribe();
        Bell { _rung: rung, heard }
    }

    fn ring(&self, changed: &Changed) {
        let hung = self.hung.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bell) = hung.get(&changed.log).and_then(Weak::upgrade) {
            bell.send_replace(changed.seq);
        }
    }

    fn ring_all(&self) {
        let hung = self.hung.lock().unwrap_or_else(PoisonError::into_inner);
        for bell in hung.values().filter_map(Weak::upgrade) {
            bell.send_modify(|_| {});
        }
    }
}

/// Reads a log as it grows.
#[derive(Debug)]
pub(crate) struct Follower {
    runs: RunsHandle,
    run: RunId,
    after: Seq,
    bell: Bell,
    /// Whether the last thing that it gave was not the end of the run.
    goes_on: bool,
}

/// [`Runs`] without anything to show.
struct RunsHandle(Runs);

impl std::fmt::Debug for RunsHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Runs")
    }
}

impl Follower {
    pub(super) fn new(runs: Runs, run: RunId, after: Seq, bell: Bell) -> Self {
        Self { runs: RunsHandle(runs), run, after, bell, goes_on: false }
    }

    /// The next records; none when the run is over and everything was read, or when it was forgotten.
    pub(crate) async fn next(&mut self) -> Result<Option<Arc<Part>>, RunsError> {
        if self.has_all_that_was_announced() && self.bell.heard.changed().await.is_err() {
            return Ok(None);
        }
        loop {
            self.bell.heard.mark_unchanged();
            let inner = &self.runs.0.inner;
            let part = inner.parts.read(&inner.engine, &self.run, self.after).await?;
            if let Some(part) = part {
                if let Some(last) = part.records().last() {
                    self.after = last.seq;
                    // Words that look like it cost a look at the store, and nothing else.
                    self.goes_on = !last.record.contains(r#""kind":"finished""#);
                }
                return Ok(Some(part));
            }
            match inner.standing(&self.run).await {
                Ok((seq, state)) if state.phase.is_over() && seq <= self.after => return Ok(None),
                Ok((seq, _)) if seq > self.after => continue,
                Ok(_) => {}
                Err(RunsError::NoSuchRun(_)) => return Ok(None),
                Err(error) => return Err(error),
            }
            if self.bell.heard.changed().await.is_err() {
                return Ok(None);
            }
        }
    }

    /// Whether there is nothing to look for before the bell rings: somebody who keeps up is spared a look for every record.
    fn has_all_that_was_announced(&self) -> bool {
        let heard = &self.bell.heard;
        self.goes_on && *heard.borrow() == self.after && heard.has_changed().is_ok_and(|changed| !changed)
    }
}
