//! A folder for the temporary files of one command, which goes with it.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

#[derive(Debug)]
pub(super) struct Scratch(PathBuf);

impl Scratch {
    pub(super) fn make() -> io::Result<Self> {
        let number = getrandom::u64().map_err(io::Error::other)?;
        let path = std::env::temp_dir().join(format!("steerable-{number:016x}"));
        // Fails if somebody was there first, link or folder.
        DirBuilder::new().mode(0o700).create(&path)?;
        Ok(Self(path))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let path = std::mem::take(&mut self.0);
        // `remove_dir_all` follows no links. What a command left may be large, so nobody waits for it.
        let remove = move || drop(std::fs::remove_dir_all(path));
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn_blocking(remove)),
            Err(_) => remove(),
        }
    }
}
