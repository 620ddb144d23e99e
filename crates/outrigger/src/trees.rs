//! The registry of running trees: what a crashed host left is found and removed by the next one that starts.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use anyhow::Context;
use outrigger_supervise::driver::{Settings, Supervisor};
use outrigger_supervise::launch::Launcher;
use outrigger_supervise::leftovers::{Leftovers, Swept};

/// Children that may be started at the same time.
const STARTING: NonZeroUsize = NonZeroUsize::new(4).unwrap();

/// Where hosts of this user write down what they run; `None` when there is no place for state.
pub(crate) fn registry() -> Option<PathBuf> {
    let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = absolute("XDG_STATE_HOME").or_else(|| Some(absolute("HOME")?.join(".local/state")))?;
    Some(state.join("outrigger/trees"))
}

/// Clears up after hosts that crashed, and opens a place for our own trees.
pub(crate) fn open() -> anyhow::Result<(Leftovers, Swept)> {
    let registry = registry().context("there is no place for state: set XDG_STATE_HOME or HOME")?;
    let swept = Leftovers::sweep(&registry)?;
    Ok((Leftovers::open(&registry)?, swept))
}

/// A supervisor that has cleared up after hosts that crashed, where there is a place to write such things down.
pub(crate) fn supervisor() -> Supervisor {
    let settings = Settings { launcher: Launcher::current_exe(), starting_at_once: STARTING };
    match open() {
        Ok((leftovers, _)) => Supervisor::with_leftovers(settings, leftovers),
        Err(_) => Supervisor::new(settings),
    }
}
