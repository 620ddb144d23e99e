//! Where runs keep what they leave: receipts, and copies while they are worked in.

use std::path::{Path, PathBuf};

use anyhow::Context;

use crate::config::Config;

/// The folder of receipts: as said, as configured, or the user's own.
pub(crate) fn receipts(named: Option<&Path>, config: &Config) -> anyhow::Result<PathBuf> {
    match named.or(config.receipts_dir.as_deref()) {
        Some(path) => std::path::absolute(path).context("--receipts"),
        None => Ok(data()?.join("receipts")),
    }
}

/// The folder of conversations, a file each.
pub(crate) fn chats() -> anyhow::Result<PathBuf> {
    Ok(data()?.join("chats"))
}

/// The folder of copies. Not among temporary files: work that did not end well stays there.
pub(crate) fn stages() -> anyhow::Result<PathBuf> {
    Ok(data()?.join("stages"))
}

/// The user's folder for what we keep.
fn data() -> anyhow::Result<PathBuf> {
    let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let data = absolute("XDG_DATA_HOME").or_else(|| Some(absolute("HOME")?.join(".local/share")));
    Ok(data.context("there is no place to keep things: set HOME or XDG_DATA_HOME")?.join("outrigger"))
}
