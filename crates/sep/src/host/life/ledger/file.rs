//! The file of the ledger: one host at a time, replaced as a whole, readable by its owner only.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::{Entry, Ledger, recent};
use crate::protocol::ExtensionId;

const FILE: &str = "state.json";
const FRESH: &str = "state.json.new";
const LOCK: &str = "host.lock";
const VERSION: u32 = 1;
/// A ledger of thousands of extensions is smaller.
const MOST_BYTES: u64 = 8 * 1024 * 1024;
/// The lock is tried this long: a host that was killed a moment ago may still hold it.
const PATIENCE: Duration = Duration::from_millis(250);
const BETWEEN_TRIES: Duration = Duration::from_millis(10);

/// The folder of a host's state, held by this host alone as long as this exists.
#[derive(Debug)]
pub struct StateFile {
    folder: PathBuf,
    lock: File,
}

/// Why the state of a host cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    /// Another host has it.
    #[error("the state in {} belongs to another host{}; stop that one, or use another state folder", folder.display(), holder(*.pid))]
    Held {
        /// The folder.
        folder: PathBuf,
        /// The process that has it, when it says so.
        pid: Option<u32>,
    },
    /// It was written by a later version of this program.
    #[error("{} has version {version} and this program knows version {VERSION}; it is left as it is", path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its version.
        version: u32,
    },
    /// The system refused.
    #[error("cannot {what} {}: {source}", path.display())]
    Io {
        /// What was tried.
        what: &'static str,
        /// With what.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// The file as it is: the version first, for whoever knows no other field.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Page {
    version: u32,
    extensions: BTreeMap<ExtensionId, Entry>,
}

#[derive(Deserialize)]
struct Cover {
    version: u32,
}

impl StateFile {
    /// Takes the folder, which is made when it is not there, and reads the ledger in it. `wall_ms` dates the crashes.
    pub fn open(folder: &Path, wall_ms: u64) -> Result<(Self, Ledger), LedgerError> {
        let failed = |what, path: &Path| {
            let path = path.to_owned();
            move |source| LedgerError::Io { what, path, source }
        };
        make_folder(folder).map_err(failed("make the folder", folder))?;
        let lock = take_lock(folder)?;
        let state = Self { folder: folder.to_owned(), lock };
        let path = state.path();
        let ledger = match read(&path) {
            Ok(None) => Ledger::default(),
            Ok(Some(bytes)) => match parse(&bytes, wall_ms) {
                Parsed::Whole(ledger) => ledger,
                Parsed::Newer(version) => return Err(LedgerError::Newer { path, version }),
                Parsed::Corrupt => state.move_aside(wall_ms)?,
            },
            Err(error) if error.kind() == io::ErrorKind::InvalidData => state.move_aside(wall_ms)?,
            Err(error) => return Err(failed("read", &path)(error)),
        };
        Ok((state, ledger))
    }

    /// Replaces what is on disk. After a crash in the middle the old file is there, whole.
    pub fn save(&self, ledger: &Ledger) -> Result<(), LedgerError> {
        let fresh = self.folder.join(FRESH);
        let failed = |source| LedgerError::Io { what: "write", path: self.path(), source };
        let bytes = serde_json::to_vec_pretty(&Page { version: VERSION, extensions: ledger.entries.clone() })
            .map_err(|error| failed(error.into()))?;
        match std::fs::remove_file(&fresh) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
            Ok(()) | Err(_) => {}
        }
        let mut file =
            OpenOptions::new().write(true).create_new(true).mode(0o600).open(&fresh).map_err(failed)?;
        file.write_all(&bytes).and_then(|()| file.sync_all()).map_err(failed)?;
        std::fs::rename(&fresh, self.path()).map_err(failed)?;
        File::open(&self.folder).and_then(|folder| folder.sync_all()).map_err(failed)
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.folder.join(FILE)
    }

    fn move_aside(&self, wall_ms: u64) -> Result<Ledger, LedgerError> {
        let aside = self.folder.join(format!("{FILE}.unreadable-{wall_ms}"));
        std::fs::rename(self.path(), &aside).map_err(|source| LedgerError::Io {
            what: "move aside",
            path: self.path(),
            source,
        })?;
        Ok(Ledger { moved_aside: Some(aside), ..Ledger::default() })
    }
}

impl Drop for StateFile {
    fn drop(&mut self) {
        // Closing would do, were it not for children between their fork and their exec, which have the file open, too.
        let _ = flock(&self.lock, FlockOperation::Unlock);
    }
}

enum Parsed {
    Whole(Ledger),
    Newer(u32),
    Corrupt,
}

fn parse(bytes: &[u8], wall_ms: u64) -> Parsed {
    match serde_json::from_slice::<Cover>(bytes) {
        Ok(Cover { version }) if version > VERSION => return Parsed::Newer(version),
        Ok(Cover { version: VERSION }) => {}
        Ok(_) | Err(_) => return Parsed::Corrupt,
    }
    let Ok(Page { extensions: mut entries, .. }) = serde_json::from_slice::<Page>(bytes) else {
        return Parsed::Corrupt;
    };
    for entry in entries.values_mut() {
        entry.crashes_ms = recent(std::mem::take(&mut entry.crashes_ms), wall_ms);
    }
    Parsed::Whole(Ledger { entries, moved_aside: None })
}

/// The bytes; `InvalidData` when there is something that cannot be a ledger.
fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    match std::fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
        // A pipe would keep us for ever, and a link leads to a file that is not ours.
        Ok(found) if !found.is_file() || found.len() > MOST_BYTES => {
            return Err(io::ErrorKind::InvalidData.into());
        }
        Ok(_) => {}
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(MOST_BYTES).read_to_end(&mut bytes)?;
    Ok(Some(bytes))
}

fn make_folder(folder: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

fn take_lock(folder: &Path) -> Result<File, LedgerError> {
    let path = folder.join(LOCK);
    let opened =
        OpenOptions::new().create(true).read(true).write(true).truncate(false).mode(0o600).open(&path);
    let mut file =
        opened.map_err(|source| LedgerError::Io { what: "make the lock", path: path.clone(), source })?;
    match patiently(&file) {
        Ok(()) => {}
        Err(Errno::WOULDBLOCK) => {
            let mut owner = String::new();
            // Who has it is a courtesy; that somebody has it is known already.
            let _ = file.read_to_string(&mut owner);
            return Err(LedgerError::Held { folder: folder.to_owned(), pid: owner.trim().parse().ok() });
        }
        Err(error) => return Err(LedgerError::Io { what: "lock", path, source: error.into() }),
    }
    // On a full disk the lock holds all the same, it only does not say whose it is.
    let _ = file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id()));
    Ok(file)
}

fn patiently(file: &File) -> Result<(), Errno> {
    let began = Instant::now();
    loop {
        match flock(file, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK | Errno::INTR) if began.elapsed() < PATIENCE => {
                std::thread::sleep(BETWEEN_TRIES);
            }
            done => return done,
        }
    }
}

fn holder(pid: Option<u32>) -> String {
    pid.map(|pid| format!(" (process {pid})")).unwrap_or_default()
}
