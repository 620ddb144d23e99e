//! The trail of decisions: every privileged one, allowed or denied, one line each, each line naming the hash of the one before.
//!
//! **When it is on the disk.** A denial and everything that is not a call is handed to the system before [`Audit::write`]
//! returns, so it survives the death of the host. An allowed call may wait in memory for up to half a second: the decision is
//! made and numbered, the line follows. Twice a second at most the file is synced, which is what survives a loss of power; syncing
//! each denial would let an extension that is denied a lot stop the disk for everybody.
//!
//! **When it cannot be written** (disk full, folder gone), [`AuditDown`] says so and the gate allows nothing until it works again.
//! What was denied meanwhile is kept, as far as there is room, and written then; what was not is counted.
//!
//! **How it is bounded.** Words are short, parameters are hashes, the same denial is written twenty times a minute and then counted,
//! files rotate. The chain goes on from file to file.

mod entry;
mod files;
mod recover;
#[cfg(test)]
mod tests;
mod trail;
mod verify;

use std::fmt;
use std::fs::File;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use outrigger_policy::audit::Head;

use super::stamp::{Clock, system_clock};
use entry::Prepared;
use files::Folder;
use trail::Trail;

pub use entry::{AuditKind, Entry, Ruling};
pub use files::{AuditError, AuditLimits};
pub use verify::{Broken, Verified, verify};

/// How long an allowed call may wait for the disk.
const FLUSH_AFTER: Duration = Duration::from_millis(500);

/// The trail cannot be written now, so nothing may be allowed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the audit trail cannot be written: {why}")]
pub struct AuditDown {
    /// What the system says.
    pub why: String,
}

/// The trail of one host. There is one writer: a second one is refused when it is opened.
pub struct Audit {
    shared: Arc<Shared>,
    flusher: Option<JoinHandle<()>>,
    /// Held as long as this writes.
    _lock: File,
}

struct Shared {
    trail: Mutex<Trail>,
    wake: Condvar,
    clock: Clock,
    /// Set once, under the lock of the trail.
    ending: AtomicBool,
}

impl Audit {
    /// Opens the trail in `dir`, and makes it if there is none. What a crash left unfinished is moved aside and noted.
    pub fn open(dir: &Path) -> Result<Self, AuditError> {
        Self::open_with(dir, AuditLimits::USUAL, system_clock())
    }

    /// [`Audit::open`] with other bounds and another clock.
    pub fn open_with(dir: &Path, limits: AuditLimits, clock: Clock) -> Result<Self, AuditError> {
        let folder = Folder::create(dir)?;
        let lock = folder.lock()?;
        let recovered = recover::recover(&folder)?;
        let trail = Trail::new(folder, limits.sane(), recovered, clock());
        let shared = Arc::new(Shared {
            trail: Mutex::new(trail),
            wake: Condvar::new(),
            clock,
            ending: AtomicBool::new(false),
        });
        let flusher = Arc::clone(&shared);
        let flusher = std::thread::Builder::new()
            .name("sep-audit".to_owned())
            .stack_size(128 * 1024)
            .spawn(move || flusher.keep_flushing())
            .map_err(AuditError::io("start the writer of", dir))?;
        Ok(Self { shared, flusher: Some(flusher), _lock: lock })
    }

    /// Writes a decision down. It must not take effect when this fails.
    pub fn write(&self, entry: &Entry<'_>) -> Result<(), AuditDown> {
        let prepared = Prepared::new(entry);
        let now = (self.shared.clock)();
        let mut trail = self.shared.lock();
        let was_idle = trail.is_idle();
        let written = trail.write(now, &prepared);
        let wake = was_idle && !trail.is_idle();
        drop(trail);
        if wake {
            self.shared.wake.notify_one();
        }
        written
    }

    /// Whether decisions can be written.
    pub fn standing(&self) -> Result<(), AuditDown> {
        self.shared.lock().standing()
    }

    /// Writes and syncs everything there is now.
    pub fn flush(&self) -> Result<(), AuditDown> {
        self.shared.pass(&mut self.shared.lock())?;
        self.shared.sync();
        self.shared.lock().standing()
    }

    /// Where the trail ends. Kept somewhere else, it shows whether the end was cut off.
    #[must_use]
    pub fn head(&self) -> Head {
        self.shared.lock().head()
    }
}

impl Drop for Audit {
    fn drop(&mut self) {
        {
            let _trail = self.shared.lock();
            self.shared.ending.store(true, Ordering::Relaxed);
        }
        self.shared.wake.notify_one();
        if let Some(flusher) = self.flusher.take() {
            // It cannot panic in a way that matters here: what it had to write is written below.
            let _ = flusher.join();
        }
        let now = (self.shared.clock)();
        let mut trail = self.shared.lock();
        trail.finish(now);
        // Nobody is left who could be told.
        let _ = trail.flush(now);
        drop(trail);
        self.shared.sync();
    }
}

impl fmt::Debug for Audit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Audit").field("head", &self.head()).finish_non_exhaustive()
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Trail> {
        self.trail.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_ending(&self) -> bool {
        self.ending.load(Ordering::Relaxed)
    }

    /// Sleeps while there is nothing to do, and otherwise flushes and syncs twice a second.
    fn keep_flushing(&self) {
        let mut trail = self.lock();
        while !self.is_ending() {
            match (trail.is_idle(), trail.next_due()) {
                (true, None) => {
                    trail = self.wake.wait(trail).unwrap_or_else(PoisonError::into_inner);
                    continue;
                }
                (true, Some(due)) => {
                    let left = due.0.saturating_sub((self.clock)().steady.0).clamp(50, 60_000);
                    trail = self.wait(trail, Duration::from_millis(left), Until::Woken);
                    if (self.clock)().steady < due {
                        continue;
                    }
                }
                (false, _) => trail = self.wait(trail, FLUSH_AFTER, Until::Over),
            }
            if self.is_ending() {
                return;
            }
            // A failure stays in the trail, where the next decision meets it.
            let _ = self.pass(&mut trail);
            drop(trail);
            self.sync();
            trail = self.lock();
        }
    }

    fn wait<'a>(
        &self,
        mut trail: MutexGuard<'a, Trail>,
        time: Duration,
        until: Until,
    ) -> MutexGuard<'a, Trail> {
        let end = Instant::now() + time;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() || self.is_ending() {
                return trail;
            }
            let (guard, _) = self.wake.wait_timeout(trail, left).unwrap_or_else(PoisonError::into_inner);
            trail = guard;
            if until == Until::Woken {
                return trail;
            }
        }
    }

    fn pass(&self, trail: &mut Trail) -> Result<(), AuditDown> {
        let now = (self.clock)();
        trail.check_file(now);
        trail.revive(now)?;
        trail.write_repeats(now);
        trail.flush(now)
    }

    /// Syncs without holding up those who write.
    fn sync(&self) {
        let Some(unsynced) = self.lock().unsynced() else { return };
        let result = unsynced.sync();
        self.lock().synced((self.clock)(), result);
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Until {
    Woken,
    Over,
}
