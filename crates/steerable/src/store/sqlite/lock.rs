//! One process has the file at a time. The lock is a file of its own, so that a look into the database with another program
//! does not count, and the kernel lets go of it however its owner ends.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::store::error::OpenError;

/// A lock is tried this long: an owner that was killed a moment ago, or a child that it was just starting, may still hold it.
const PATIENCE: Duration = Duration::from_millis(250);
const BETWEEN_TRIES: Duration = Duration::from_millis(10);

/// The lock, held as long as this is.
#[derive(Debug)]
pub(super) struct Lock(File);

impl Lock {
    /// Takes the lock of a database, `FILE.lock`, and writes into it who has it.
    pub(super) fn take(database: &Path) -> Result<Self, OpenError> {
        let mut name = database.as_os_str().to_owned();
        name.push(".lock");
        let path = PathBuf::from(name);
        let opened =
            OpenOptions::new().create(true).read(true).write(true).truncate(false).mode(0o600).open(&path);
        let mut file =
            opened.map_err(|source| OpenError::Io { what: "make the lock", path: path.clone(), source })?;
        match patiently(&file) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => {
                let mut owner = String::new();
                // Who has it is a courtesy; that somebody has it is known already.
                let _ = file.read_to_string(&mut owner);
                return Err(OpenError::Locked { path: database.to_owned(), by: owner.trim().parse().ok() });
            }
            Err(error) => return Err(OpenError::Io { what: "lock", path, source: error.into() }),
        }
        // On a full disk the lock holds all the same, it only does not say whose it is.
        let _ = file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id()));
        Ok(Self(file))
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing would do, were it not for children between their fork and their exec, which have the file open, too.
        let _ = flock(&self.0, FlockOperation::Unlock);
    }
}

fn patiently(file: &File) -> Result<(), Errno> {
    let began = Instant::now();
    loop {
        match flock(file, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK | Errno::INTR) if began.elapsed() < PATIENCE => {
                std::thread::sleep(BETWEEN_TRIES)
            }
            done => return done,
        }
    }
}
