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
        // Mostly nothing is in it. What a command left may be large, so nobody waits for it, and it may outlive the
        // runtime, which forgets what it has not begun. `remove_dir_all` follows no links.
        if std::fs::remove_dir(&self.0).is_err() {
            let path = std::mem::take(&mut self.0);
            drop(std::thread::Builder::new().spawn(move || drop(std::fs::remove_dir_all(path))));
        }
    }
}
