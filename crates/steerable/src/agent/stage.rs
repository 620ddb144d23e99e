//! The listener of a turn, shared between a model call that speaks and a driver that has something to add.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::{Mutex, MutexGuard};

use super::output::{Notice, Output};
use crate::model::Gone;

/// The listener. A model call holds it while it flushes, which may be long; what the driver has to say meanwhile waits.
pub(super) struct Stage<'a> {
    out: Mutex<&'a mut dyn Output>,
    /// The soft timeout is to be told as soon as the listener is free.
    soft_due: AtomicBool,
}

impl<'a> Stage<'a> {
    pub(super) fn new(out: &'a mut dyn Output) -> Self {
        Self { out: Mutex::new(out), soft_due: AtomicBool::new(false) }
    }

    /// The listener, when it is free.
    pub(super) async fn get(&self) -> MutexGuard<'_, &'a mut dyn Output> {
        self.out.lock().await
    }

    /// The listener if it is free now. It is whenever a model call is being polled outside of a flush: the driver does
    /// not keep it beyond its own step, in which it polls nothing else.
    pub(super) fn try_get(&self) -> Option<MutexGuard<'_, &'a mut dyn Output>> {
        self.out.try_lock().ok()
    }

    /// Passes on what is buffered, and what had to wait for that.
    pub(super) async fn flush(&self) -> Result<(), Gone> {
        let mut out = self.out.lock().await;
        if self.soft_due.swap(false, Ordering::Relaxed) {
            out.notice(Notice::SoftTimeout);
        }
        out.flush().await
    }

    /// Tells that the turn takes long: now, or when the listener has room again.
    pub(super) async fn soft_timeout(&self) -> Result<(), Gone> {
        self.soft_due.store(true, Ordering::Relaxed);
        let Some(mut out) = self.try_get() else { return Ok(()) };
        if self.soft_due.swap(false, Ordering::Relaxed) {
            out.notice(Notice::SoftTimeout);
        }
        out.flush().await
    }
}
