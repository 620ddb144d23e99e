//! The registry of running trees: what a crashed host left is found and removed by the next one that starts.

use std::path::PathBuf;

use anyhow::Context;
use outrigger_supervise::leftovers::{Leftovers, Swept};

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
