//! Where a socket lives: a fresh directory that only we can enter, with a lock that says whether its host still lives.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};

/// The places where a host may put the directory of a socket, in the order they are tried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunDirs {
    /// The runtime directory of the user, if there is one.
    pub runtime: Option<PathBuf>,
    /// The state of the host; its folder `run` is used.
    pub state: PathBuf,
    /// The directory for temporary files.
    pub temporary: PathBuf,
}

impl RunDirs {
    /// What the environment says, with the state of the host in `state`.
    #[must_use]
    pub fn from_env(state: &Path) -> Self {
        let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
        Self { runtime, state: state.to_owned(), temporary: PathBuf::from("/tmp") }
    }

    fn places(&self) -> impl Iterator<Item = PathBuf> {
        let runtime = self.runtime.clone().filter(|path| path.is_absolute());
        runtime.into_iter().chain([self.state.join("run"), self.temporary.clone()])
    }
}

/// The longest path of a socket that every system takes.
pub(super) const MAX_PATH_BYTES: usize = 100;

const SOCKET: &str = "s";
const LOCK: &str = "lock";
const PREFIX: &str = "sep-";
/// How often another name is tried in one place before the next place is.
const ATTEMPTS: usize = 3;
/// A directory without a lock may be one that is just being made; after this long it is not.
const YOUNG: Duration = Duration::from_secs(60);

/// A directory for one socket. It is removed when this is dropped.
#[derive(Debug)]
pub(super) struct RunDir {
    path: PathBuf,
    /// As long as this is open, nobody takes the directory for a stale one.
    _lock: File,
}

/// Why a place was not used.
#[derive(Debug, PartialEq, Eq)]
pub struct Unusable {
    /// The place.
    pub place: PathBuf,
    /// Why.
    pub why: String,
}

impl RunDir {
    /// Makes a directory in the first place that has one to offer. `name` gives eight fresh random digits at a time.
    pub(super) fn create(
        dirs: &RunDirs,
        mut name: impl FnMut() -> io::Result<String>,
    ) -> Result<Self, Vec<Unusable>> {
        let mut tried = Vec::new();
        for place in dirs.places() {
            match Self::create_in(&place, &mut name) {
                Ok(dir) => return Ok(dir),
                Err(error) => tried.push(Unusable { place, why: error.to_string() }),
            }
        }
        Err(tried)
    }

    fn create_in(place: &Path, name: &mut impl FnMut() -> io::Result<String>) -> io::Result<Self> {
        for _ in 0..ATTEMPTS {
            let path = place.join(format!("{PREFIX}{}", name()?));
            let length = path.as_os_str().len() + 1 + SOCKET.len();
            if length > MAX_PATH_BYTES {
                return Err(io::Error::other(format!(
                    "a socket there would have a path of {length} bytes, and {MAX_PATH_BYTES} are possible"
                )));
            }
            if path.to_str().is_none() {
                return Err(io::Error::other("its path is not text"));
            }
            make_place(place)?;
            match Self::create_at(&path) {
                Ok(dir) => return Ok(dir),
                // Somebody has that name, or took our fresh directory for a stale one.
                Err(error)
                    if matches!(error.kind(), io::ErrorKind::AlreadyExists | io::ErrorKind::WouldBlock) => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::Error::other("every name that was tried is taken"))
    }

    fn create_at(path: &Path) -> io::Result<Self> {
        DirBuilder::new().mode(0o700).create(path)?;
        let made = Self::furnish(path);
        if made.is_err() {
            // It is ours and holds nothing but what we put there.
            remove(path);
        }
        made
    }

    fn furnish(path: &Path) -> io::Result<Self> {
        check(path)?;
        let lock = path.join(LOCK);
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&lock)?;
        flock(&file, FlockOperation::NonBlockingLockExclusive)?;
        let (held, seen) = (file.metadata()?, fs::symlink_metadata(&lock));
        // Between the making and the locking somebody may have swept it away.
        if !seen.is_ok_and(|seen| (seen.dev(), seen.ino()) == (held.dev(), held.ino())) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        Ok(Self { path: path.to_owned(), _lock: file })
    }

    pub(super) fn socket(&self) -> PathBuf {
        self.path.join(SOCKET)
    }

    #[cfg(test)]
    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for RunDir {
    fn drop(&mut self) {
        remove(&self.path);
    }
}

/// Removes directories that a host left behind when it was killed; returns how many. Those of a host that lives stay.
pub fn sweep(dirs: &RunDirs) -> usize {
    let stale = |place: PathBuf| {
        let entries = fs::read_dir(place).into_iter().flatten().flatten();
        entries
            .filter(|entry| is_ours_by_name(&entry.file_name()))
            .filter(|entry| sweep_one(&entry.path()))
            .count()
    };
    dirs.places().map(stale).sum()
}

fn sweep_one(path: &Path) -> bool {
    if check(path).is_err() {
        return false;
    }
    let lock = OpenOptions::new()
        .write(true)
        .custom_flags(rustix::fs::OFlags::NOFOLLOW.bits().cast_signed())
        .open(path.join(LOCK));
    let is_stale = match &lock {
        Ok(file) => flock(file, FlockOperation::NonBlockingLockExclusive).is_ok(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let age = fs::symlink_metadata(path).and_then(|meta| meta.modified()).map(|then| then.elapsed());
            matches!(age, Ok(Ok(age)) if age > YOUNG)
        }
        Err(_) => false,
    };
    // The lock is still held here, so that nobody moves in meanwhile.
    is_stale && remove(path)
}

/// Removes what we put there and nothing else; a directory with something else in it stays.
fn remove(path: &Path) -> bool {
    // What is not there need not be removed, and what cannot be removed keeps the directory, which the result says.
    let _ = fs::remove_file(path.join(SOCKET));
    let _ = fs::remove_file(path.join(LOCK));
    fs::remove_dir(path).is_ok()
}

fn is_ours_by_name(name: &OsStr) -> bool {
    let digits = name.to_str().and_then(|name| name.strip_prefix(PREFIX));
    digits.is_some_and(|digits| digits.len() == 8 && digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// The place itself must not let others put their own directory in the place of ours.
fn make_place(place: &Path) -> io::Result<()> {
    match DirBuilder::new().recursive(true).mode(0o700).create(place) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(error),
    }
    let meta = fs::metadata(place)?;
    let mode = meta.permissions().mode();
    let shared = mode & 0o022 != 0 && mode & 0o1000 == 0;
    let strange = meta.uid() != own_uid() && meta.uid() != 0;
    match (meta.is_dir(), shared, strange) {
        (false, _, _) => Err(io::Error::other("it is not a directory")),
        (true, true, _) => Err(io::Error::other("others may write to it")),
        (true, false, true) => Err(io::Error::other("it belongs to somebody else")),
        (true, false, false) => Ok(()),
    }
}

/// The directory is a real one, ours, and closed to everybody else.
fn check(path: &Path) -> io::Result<()> {
    let meta = fs::symlink_metadata(path)?;
    if !meta.is_dir() {
        return Err(io::Error::other("what was made there is not a directory"));
    }
    if meta.uid() != own_uid() {
        return Err(io::Error::other("what was made there belongs to somebody else"));
    }
    match meta.permissions().mode() & 0o777 {
        0o700 => Ok(()),
        mode => Err(io::Error::other(format!("what was made there has the mode {mode:o}"))),
    }
}

fn own_uid() -> u32 {
    rustix::process::geteuid().as_raw()
}

#[cfg(test)]
#[path = "run_dir_tests.rs"]
mod tests;
