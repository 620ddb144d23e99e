//! How much memory the processes used in the last minutes: a short ring for each, sampled while the daemon lives.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use outrigger_supervise::driver::{ChildId, Supervisor};
use outrigger_supervise::metrics::Metrics;

use crate::daemon::App;

/// How often.
pub(crate) const EVERY: Duration = Duration::from_secs(2);
/// How many are kept of each process: four minutes.
const KEPT: usize = 120;
/// The most processes that samples are kept of.
const MOST_CHILDREN: usize = 512;

/// Samples of all processes. Clones are the same.
#[derive(Clone, Default)]
pub(crate) struct Samples {
    rings: Arc<Mutex<BTreeMap<ChildId, VecDeque<u64>>>>,
    sampled: Arc<AtomicBool>,
}

impl Samples {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Looks at all processes once. Reads the process table; not for an async task.
    pub(crate) fn sample(&self, supervisor: &Supervisor) {
        if let Ok(metrics) = supervisor.metrics().measure() {
            self.note(&metrics);
        }
    }

    /// What one process used, oldest first.
    pub(crate) fn of(&self, child: ChildId) -> Vec<u64> {
        let rings = self.rings.lock().unwrap_or_else(PoisonError::into_inner);
        rings.get(&child).map(|ring| ring.iter().copied().collect()).unwrap_or_default()
    }

    /// Begins to sample, the first time somebody looks, and until the daemon is gone.
    pub(super) fn begin(&self, app: &Arc<App>) {
        if self.sampled.swap(true, Ordering::AcqRel) {
            return;
        }
        let (samples, app) = (self.clone(), Arc::downgrade(app));
        tokio::spawn(async move {
            let mut clock = tokio::time::interval(EVERY);
            loop {
                clock.tick().await;
                let Some(app) = app.upgrade() else { return };
                let samples = samples.clone();
                // Whether it worked is seen by the next look.
                let _ = tokio::task::spawn_blocking(move || samples.sample(&app.supervisor)).await;
            }
        });
    }

    fn note(&self, metrics: &Metrics) {
        let mut rings = self.rings.lock().unwrap_or_else(PoisonError::into_inner);
        rings.retain(|id, _| metrics.children.iter().any(|child| child.id == *id));
        for child in metrics.children.iter().take(MOST_CHILDREN) {
            let ring = rings.entry(child.id).or_default();
            ring.push_back(child.usage.map_or(0, |usage| usage.rss_bytes));
            if ring.len() > KEPT {
                ring.pop_front();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::child;
    use super::*;

    #[test]
    fn the_last_samples_are_kept_and_those_of_gone_processes_go() {
        let samples = Samples::new();
        let metrics = |children| Metrics { starts: 0, restarts: 0, exits: Vec::new(), children };
        for size in 0..=KEPT as u64 {
            samples.note(&metrics(vec![child(1, "a", size), child(2, "b", 7)]));
        }
        assert_eq!(samples.of(ChildId(1)), (1..=KEPT as u64).collect::<Vec<_>>());
        samples.note(&metrics(vec![child(1, "a", 9)]));
        assert_eq!(samples.of(ChildId(2)), Vec::<u64>::new());
    }
}
