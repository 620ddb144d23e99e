//! The tasks of the dispatcher, so that a daemon that leaves can wait for them.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

/// Tasks that are counted.
#[derive(Debug)]
pub(super) struct Tasks {
    running: Arc<watch::Sender<usize>>,
}

/// A task that is under way; dropping this is its end, however it ends.
struct Running(Arc<watch::Sender<usize>>);

impl Tasks {
    pub(super) fn new() -> Self {
        Self { running: Arc::new(watch::Sender::new(0)) }
    }

    pub(super) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.running.send_modify(|count| *count += 1);
        let running = Running(Arc::clone(&self.running));
        tokio::spawn(async move {
            let _running = running;
            task.await;
        });
    }

    /// Waits until none is under way, but not for longer than this.
    pub(super) async fn finish(&self, patience: Duration) {
        let mut running = self.running.subscribe();
        // Whatever is still under way then is stopped with the runtime.
        let _ = tokio::time::timeout(patience, running.wait_for(|count| *count == 0)).await;
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count = count.saturating_sub(1));
    }
}
