//! What extensions use of the machine's memory, looked at every two seconds, over the whole tree of each.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use outrigger_supervise::tree::{self, Pid};

use super::dossier::Dossier;
use super::process::Generation;
use super::shared::Shared;
use super::steward::Order;
use crate::protocol::ExtensionId;

/// How often is looked.
const EVERY: Duration = Duration::from_secs(2);

/// Who is looked at.
#[derive(Debug, Default)]
pub(super) struct MemoryWatch {
    watched: Mutex<BTreeMap<ExtensionId, Watched>>,
}

#[derive(Clone, Debug)]
struct Watched {
    pid: Pid,
    generation: Generation,
    dossier: Arc<Dossier>,
}

impl MemoryWatch {
    pub(super) fn watch(&self, dossier: &Arc<Dossier>, pid: u32, generation: Generation) {
        let watched = Watched { pid: Pid::new(pid), generation, dossier: Arc::clone(dossier) };
        self.lock().insert(dossier.id.clone(), watched);
    }

    pub(super) fn forget(&self, id: &ExtensionId) {
        self.lock().remove(id);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<ExtensionId, Watched>> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Looks until the fleet is gone.
pub(super) async fn keep_looking(fleet: Weak<Shared>) {
    loop {
        tokio::time::sleep(EVERY).await;
        let Some(shared) = fleet.upgrade() else { return };
        let watched: Vec<Watched> = shared.memory.lock().values().cloned().collect();
        if watched.is_empty() {
            continue;
        }
        let pids: Vec<Pid> = watched.iter().map(|watched| watched.pid).collect();
        // Walks the whole process table.
        let Ok(Ok(usage)) = tokio::task::spawn_blocking(move || tree::usage(&pids)).await else { continue };
        for (Watched { generation, dossier, .. }, usage) in watched.into_iter().zip(usage) {
            let Some(usage) = usage else { continue };
            dossier.metrics.set_rss(usage.rss_bytes);
            dossier.look_at_queue();
            let limit = dossier.admission.limits.memory_bytes;
            if usage.rss_bytes > limit {
                let why = format!(
                    "it uses {} MiB in {} processes, and may use {} MiB",
                    usage.rss_bytes >> 20,
                    usage.processes,
                    limit >> 20
                );
                shared.order(&dossier.id, Order::Heavy(generation, why)).await;
            }
        }
    }
}
