//! One process has the file at a time. The lock is a file of its own, so that a look into the database with another program
//! does not count, and the kernel lets go of it however its owner ends.

use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::store::error::OpenError;

/// The lock, held as long as this is.
#[derive(Debug)]
pub(super) struct Lock(
    #[expect(dead_code, reason = "the lock is held as long as its file is open")] std::fs::File,
);

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
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
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
