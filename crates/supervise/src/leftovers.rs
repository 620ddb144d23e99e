//! What a crashed host left behind: written down while it lives, found and removed by the next one.
//!
//! A pid namespace leaves nothing behind. But where trees are held by a subreaper, a host and a keeper that are killed at
//! the same instant leave orphans, and somebody has to know them. So a host keeps a folder of its own in a registry
//! directory, locked while it lives, with one small file for each tree. Whoever finds such a folder unlocked may clear up:
//!
//! * a process is killed because it *is* the one that was written down (number, start time and boot), or because it
//!   carries the tree's tag in its environment; never because of its number alone;
//! * a number that another process has by now is left alone and reported.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::FlockOperation;
use serde::{Deserialize, Serialize};

use crate::launch::{Launched, TreeTag};
use crate::platform;
use crate::tree::Identity;

/// The trees of this host, as the next one will find them.
#[derive(Debug)]
pub struct Leftovers {
    folder: PathBuf,
    /// Held for its lock.
    _lock: File,
}

/// A registry directory could not be used.
#[derive(Debug, thiserror::Error)]
#[error("the registry of running trees: {doing} `{}` failed", path.display())]
pub struct RegistryError {
    doing: &'static str,
    path: PathBuf,
    source: io::Error,
}

impl Leftovers {
    /// Opens this host's own folder in the registry directory, which is made if need be.
    pub fn open(registry: &Path) -> Result<Self, RegistryError> {
        fs::create_dir_all(registry).map_err(failed("making", registry))?;
        let random = TreeTag::random().map_err(|error| RegistryError {
            doing: "naming a folder in",
            path: registry.to_owned(),
            source: io::Error::other(error.to_string()),
        })?;
        // Under another name until it is locked, so that nobody clears it up half made.
        let (folder, unfinished) =
            (registry.join(format!("{HOST}{random}")), registry.join(format!("{UNFINISHED}{random}")));
        fs::create_dir(&unfinished).map_err(failed("making", &unfinished))?;
        let lock_path = unfinished.join(LOCK);
        let lock = File::create(&lock_path).map_err(failed("making", &lock_path))?;
        rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive)
            .map_err(|errno| failed("locking", &lock_path)(errno.into()))?;
        fs::rename(&unfinished, &folder).map_err(failed("making", &folder))?;
        Ok(Self { folder, _lock: lock })
    }

    /// Writes a tree down. Drop the note when the tree has ended.
    pub fn note(&self, launched: &Launched) -> Result<Note, RegistryError> {
        self.note_processes(launched.tag, &[launched.launcher.clone(), launched.identity.clone()])
    }

    /// As [`Leftovers::note`], for processes that are known otherwise.
    pub fn note_processes(&self, tag: TreeTag, processes: &[Identity]) -> Result<Note, RegistryError> {
        let path = self.folder.join(tag.to_string());
        // A crash in the middle leaves a file that cannot be read, but its name is the tag.
        let text = serde_json::to_vec(&processes).map_err(|error| failed("writing", &path)(error.into()))?;
        fs::write(&path, text).map_err(failed("writing", &path))?;
        Ok(Note { path })
    }

    /// Clears up after every host of this registry that is gone. Hosts that live, this one included, are not touched.
    pub fn sweep(registry: &Path) -> Result<Swept, RegistryError> {
        let mut swept = Swept { living_hosts: 0, dead_hosts: 0, killed: Vec::new(), strangers: Vec::new() };
        let listing = match fs::read_dir(registry) {
            Ok(listing) => listing,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(swept),
            Err(error) => return Err(failed("reading", registry)(error)),
        };
        let mut dead = Vec::new();
        for entry in listing {
            let entry = entry.map_err(failed("reading", registry))?;
            if entry.file_name().to_string_lossy().starts_with(UNFINISHED) {
                remove_abandoned(&entry);
                continue;
            }
            if !entry.file_name().to_string_lossy().starts_with(HOST) {
                continue;
            }
            match lock_dead(&entry.path())? {
                Some(lock) => dead.push((entry.path(), lock)),
                None => swept.living_hosts += 1,
            }
        }
        let mut tags = HashSet::new();
        for (folder, _) in &dead {
            swept.dead_hosts += 1;
            for (tag, processes) in trees(folder)? {
                tags.insert(tag);
                for identity in processes {
                    if identity.exists() {
                        if platform::kill_individual(&identity) {
                            swept.killed.push(Killed { tag, identity });
                        }
                    } else if let Ok(now) = Identity::of(identity.pid) {
                        swept.strangers.push(now);
                    }
                }
            }
        }
        if !tags.is_empty() {
            for (tag, identity) in platform::kill_tagged(&tags) {
                if !swept.killed.iter().any(|known| known.identity == identity) {
                    swept.killed.push(Killed { tag, identity });
                }
            }
        }
        for (folder, lock) in dead {
            fs::remove_dir_all(&folder).map_err(failed("removing", &folder))?;
            drop(lock);
        }
        // Killed processes that are tagged as well were hit twice; one that was a stranger before may carry a tag.
        swept.strangers.retain(|stranger| !swept.killed.iter().any(|killed| killed.identity == *stranger));
        Ok(swept)
    }
}

impl Drop for Leftovers {
    /// A host that ends in order leaves an empty folder, and removes it. If notes are left, the next host will look.
    fn drop(&mut self) {
        let empty = fs::read_dir(&self.folder).is_ok_and(|listing| listing.count() <= 1);
        if empty {
            let _ = fs::remove_dir_all(&self.folder);
        }
    }
}

/// One tree in the registry. Dropping it strikes the tree out.
#[derive(Debug)]
pub struct Note {
    path: PathBuf,
}

impl Drop for Note {
    fn drop(&mut self) {
        // If it cannot be removed, the next sweep finds nobody of that tag.
        let _ = fs::remove_file(&self.path);
    }
}

/// What a sweep found and did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Swept {
    /// Hosts that live and were left alone.
    pub living_hosts: u32,
    /// Hosts that are gone and were cleared up after.
    pub dead_hosts: u32,
    /// Processes that were killed.
    pub killed: Vec<Killed>,
    /// Processes that now have a number that was written down, but are somebody else; they were left alone.
    pub strangers: Vec<Identity>,
}

/// A process that had outlived its host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Killed {
    /// The tree it belonged to.
    pub tag: TreeTag,
    /// Who it was.
    pub identity: Identity,
}

/// How the folders of hosts are called.
const HOST: &str = "host-";

/// How a folder is called before it is locked.
const UNFINISHED: &str = ".";

/// A host is in that state for microseconds; one that is for this long died in it.
const ABANDONED_AFTER: Duration = Duration::from_secs(60);

/// Removes the folder of a host that died while it made it. Nothing can be in it yet.
fn remove_abandoned(entry: &fs::DirEntry) {
    let age = entry.metadata().and_then(|facts| facts.modified()).map(|made| made.elapsed());
    if let Ok(Ok(age)) = age
        && age > ABANDONED_AFTER
    {
        // If it cannot be removed now, the next sweep tries again.
        let _ = fs::remove_dir_all(entry.path());
    }
}

/// The file in each of them that is locked while the host lives.
const LOCK: &str = "lock";

/// The lock of a host that is gone, or `None` if it lives (or somebody else is clearing up right now).
fn lock_dead(folder: &Path) -> Result<Option<File>, RegistryError> {
    let path = folder.join(LOCK);
    let lock = match File::open(&path) {
        Ok(lock) => lock,
        // Somebody else has just cleared it up.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed("opening", &path)(error)),
    };
    match rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(lock)),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
        Err(errno) => Err(failed("locking", &path)(errno.into())),
    }
}

fn trees(folder: &Path) -> Result<Vec<(TreeTag, Vec<Identity>)>, RegistryError> {
    let mut trees = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed("reading", folder))? {
        let entry = entry.map_err(failed("reading", folder))?;
        let Some(tag) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        let text = fs::read(entry.path()).unwrap_or_default();
        // Half written: the tag alone has to do.
        trees.push((tag, serde_json::from_slice(&text).unwrap_or_default()));
    }
    Ok(trees)
}

fn failed(doing: &'static str, path: &Path) -> impl Fn(io::Error) -> RegistryError {
    let path = path.to_owned();
    move |source| RegistryError { doing, path: path.clone(), source }
}
