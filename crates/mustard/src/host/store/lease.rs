//! Who runs a run: a lock on a file, which the kernel takes back from whoever dies, so that no clock and no guess is needed.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use super::{HoldError, RunId, StoreError};

/// The hold of this process on a run.
#[derive(Debug)]
pub struct Lease {
    run: RunId,
    /// The lock lives as long as the descriptor.
    _file: File,
}

impl Lease {
    /// The run that is held.
    pub fn run(&self) -> &RunId {
        &self.run
    }

    /// Takes the lock at `path`, whose directory exists.
    pub(super) fn at(path: &Path, run: &RunId) -> Result<Self, HoldError> {
        let failed = |what, source| StoreError::Io { what, path: path.to_owned(), source };
        loop {
            let opened = OpenOptions::new().create(true).append(true).mode(0o600).open(path);
            let file = opened.map_err(|error| failed("open the lock", error))?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Err(HoldError::Held { run: run.clone() }),
                Err(TryLockError::Error(error)) => return Err(failed("lock", error).into()),
            }
            if is_still_at(&file, path).map_err(|error| failed("look at the lock", error))? {
                return Ok(Self { run: run.clone(), _file: file });
            }
            // Its last holder removed it between our two steps: what we locked is a file without a name.
        }
    }
}

fn is_still_at(file: &File, path: &Path) -> io::Result<bool> {
    let ours = file.metadata()?;
    match std::fs::metadata(path) {
        Ok(named) => Ok((named.dev(), named.ino()) == (ours.dev(), ours.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}
