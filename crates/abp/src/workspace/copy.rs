//! Copying what a walk has listed: contents by reference where the file system can, without the holes of sparse files, and
//! never through a symlink. A file that changes while it is copied is copied again, and in the end refused.

use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use rustix::fs::{Mode, SeekFrom, Stat, Timespec, Timestamps};
use rustix::io::Errno;

use super::beneath::{self, Kind, Root};
use super::changes::{LeftOut, Why};
use super::path::TreePath;
use super::scan::{Entry, What};

/// A tree could not be copied.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    /// Somebody is writing it right now.
    #[error("`{path}` changed while it was copied; stop what is writing it, or leave it out with --exclude")]
    Changing {
        /// The file.
        path: TreePath,
    },
    /// It failed.
    #[error("copying `{path}` failed: {error}")]
    Io {
        /// What.
        path: TreePath,
        /// Why.
        #[source]
        error: io::Error,
    },
}

/// How often a file that changes is copied again.
const TRIES: u32 = 3;

/// More threads than this wait for one another in the file system.
const MAX_THREADS: usize = 4;

/// Fewer entries than this are copied before a thread has started.
const WORTH_A_THREAD: usize = 500;

/// What is read at once where the kernel cannot copy by itself.
const CHUNK: usize = 128 * 1024;

/// Copies everything that is listed from one tree to the empty folder at `to`, and gives what had to be left out.
pub(super) fn copy(from: &Root, entries: &[Entry], to: &Path) -> Result<Vec<LeftOut>, CopyError> {
    let to = Root::open(to).map_err(failed(&TreePath::root()))?;
    let means = Means { reflink: AtomicBool::new(true) };
    make_folders(&to, entries)?;
    let others: Vec<&Entry> =
        entries.iter().filter(|entry| !matches!(entry.what, What::Folder { .. })).collect();
    let cores = thread::available_parallelism().map_or(1, std::num::NonZero::get).min(MAX_THREADS);
    let threads = cores.min(others.len() / WORTH_A_THREAD + 1);
    let share = others.len().div_ceil(threads).max(1);
    let results = thread::scope(|scope| {
        let workers: Vec<_> = others
            .chunks(share)
            .map(|part| {
                let (to, means) = (&to, &means);
                scope.spawn(move || copy_part(from, part, to, means))
            })
            .collect();
        workers.into_iter().map(thread::ScopedJoinHandle::join).collect::<Vec<_>>()
    });
    let mut left_out = Vec::new();
    for result in results {
        // A thread that panics takes us with it.
        left_out.extend(result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?);
    }
    close_folders(&to, entries)?;
    Ok(left_out)
}

/// What the file systems can do; found out with the first file.
struct Means {
    reflink: AtomicBool,
}

/// Folders come before what is in them; those that only hold selected files are not listed.
fn make_folders(to: &Root, entries: &[Entry]) -> Result<(), CopyError> {
    let mut last = TreePath::root();
    for entry in entries {
        let folder = match &entry.what {
            What::Folder { .. } => entry.path.clone(),
            What::File { .. } | What::Symlink { .. } => match entry.path.parent() {
                Some(parent) if parent != last => parent,
                Some(_) | None => continue,
            },
        };
        make_folder(to, &folder).map_err(failed(&folder))?;
        last = folder;
    }
    Ok(())
}

fn make_folder(to: &Root, path: &TreePath) -> io::Result<()> {
    if path.is_root() {
        return Ok(());
    }
    let made = to
        .folder_of(path)
        .and_then(|folder| Ok(rustix::fs::mkdirat(&folder, path.name(), Mode::from_raw_mode(0o755))?));
    match made {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            if let Some(parent) = path.parent() {
                make_folder(to, &parent)?;
            }
            let folder = to.folder_of(path)?;
            Ok(rustix::fs::mkdirat(&folder, path.name(), Mode::from_raw_mode(0o755))?)
        }
        other => other,
    }
}

/// Folders get their modes when everything is in them. Their owner may always enter and write: it is a copy to work in.
fn close_folders(to: &Root, entries: &[Entry]) -> Result<(), CopyError> {
    for entry in entries {
        if let What::Folder { mode } = entry.what
            && mode != 0o755
        {
            let folder = to.folder(&entry.path).map_err(failed(&entry.path))?;
            let mode = Mode::from_raw_mode(mode | 0o700);
            rustix::fs::fchmod(&folder, mode).map_err(|errno| failed(&entry.path)(errno.into()))?;
        }
    }
    Ok(())
}

/// The folder that is being copied, on both sides.
struct Folder {
    path: TreePath,
    from: OwnedFd,
    to: OwnedFd,
}

fn copy_part(from: &Root, entries: &[&Entry], to: &Root, means: &Means) -> Result<Vec<LeftOut>, CopyError> {
    let mut left_out = Vec::new();
    let mut current: Option<Folder> = None;
    let mut buffer = vec![0; CHUNK];
    for entry in entries {
        let path = &entry.path;
        let folder = match current.take().filter(|folder| path.parent().as_ref() == Some(&folder.path)) {
            Some(folder) => folder,
            None => open_both(from, to, path)?,
        };
        match &entry.what {
            What::Folder { .. } => {}
            What::Symlink { target } => {
                rustix::fs::symlinkat(OsStr::from_bytes(target), &folder.to, path.name())
                    .map_err(|errno| failed(path)(errno.into()))?;
            }
            What::File { mode, bytes } => {
                if let Some(why) = copy_file(&folder, path, *mode, *bytes, means, &mut buffer)? {
                    left_out.push(LeftOut { path: path.clone(), why });
                }
            }
        }
        current = Some(folder);
    }
    Ok(left_out)
}

fn open_both(from: &Root, to: &Root, path: &TreePath) -> Result<Folder, CopyError> {
    let source = from.folder_of(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => CopyError::Changing { path: path.clone() },
        _ => failed(path)(error),
    })?;
    let target = to.folder_of(path).map_err(failed(path))?;
    // A file has a parent; only the root has none.
    let parent = path.parent().unwrap_or_else(TreePath::root);
    Ok(Folder { path: parent, from: source, to: target })
}

/// Copies one file that had `bytes` bytes when it was listed; says why if it has to be left out.
fn copy_file(
    folder: &Folder,
    path: &TreePath,
    mode: u32,
    bytes: u64,
    means: &Means,
    buffer: &mut [u8],
) -> Result<Option<Why>, CopyError> {
    let changing = || CopyError::Changing { path: path.clone() };
    let from = match beneath::open_file(&folder.from, path.name()) {
        Ok(from) => from,
        Err(error) => match Errno::from_io_error(&error) {
            Some(Errno::ACCESS | Errno::PERM) => return Ok(Some(Why::Unreadable)),
            // A symlink is there now, or nothing, or a socket.
            Some(Errno::NOENT | Errno::LOOP | Errno::NXIO) => return Err(changing()),
            Some(_) | None => return Err(failed(path)(error)),
        },
    };
    let io = |errno: Errno| failed(path)(errno.into());
    let to = beneath::make_file(&folder.to, path.name(), 0o600).map_err(failed(path))?;
    for _ in 0..TRIES {
        let before = rustix::fs::fstat(&from).map_err(io)?;
        let size = u64::try_from(before.st_size).unwrap_or(0);
        // What has grown since it was listed is not within the limits that were checked.
        if beneath::kind(&before) != Kind::File || size > bytes {
            return Err(changing());
        }
        copy_contents(&from, &to, &before, means, buffer).map_err(failed(path))?;
        let after = rustix::fs::fstat(&from).map_err(io)?;
        if same_contents(&before, &after) {
            finish(&to, mode, &before).map_err(io)?;
            return Ok(None);
        }
    }
    Err(changing())
}

/// A copy may always be written by its owner, and is never set-user-id. Its time is the original's, so that what was built
/// stays newer than what it was built from.
fn finish(to: &OwnedFd, mode: u32, original: &Stat) -> Result<(), Errno> {
    rustix::fs::fchmod(to, Mode::from_raw_mode(mode | 0o600))?;
    let time = Timespec { tv_sec: original.st_mtime as _, tv_nsec: original.st_mtime_nsec as _ };
    rustix::fs::futimens(to, &Timestamps { last_access: time, last_modification: time })
}

pub(super) fn same_contents(a: &Stat, b: &Stat) -> bool {
    (a.st_size, a.st_mtime, a.st_mtime_nsec, a.st_ctime, a.st_ctime_nsec)
        == (b.st_size, b.st_mtime, b.st_mtime_nsec, b.st_ctime, b.st_ctime_nsec)
}

/// Makes `to` have the contents of `from`.
fn copy_contents(
    from: &OwnedFd,
    to: &OwnedFd,
    stat: &Stat,
    means: &Means,
    buffer: &mut [u8],
) -> io::Result<()> {
    rustix::fs::ftruncate(to, 0)?;
    let size = u64::try_from(stat.st_size).unwrap_or(0);
    if size == 0 {
        return Ok(());
    }
    if means.reflink.load(Ordering::Relaxed) {
        match rustix::fs::ioctl_ficlone(to, from) {
            Ok(()) => return Ok(()),
            // Another file system, or one that shares nothing: no other file will do better.
            Err(_) => means.reflink.store(false, Ordering::Relaxed),
        }
    }
    let is_sparse = u64::try_from(stat.st_blocks).unwrap_or(0).saturating_mul(512) < size;
    if is_sparse {
        rustix::fs::ftruncate(to, size)?;
        return copy_sparse(from, to, size, buffer);
    }
    copy_range(from, to, 0, size, buffer)
}

/// Copies only where there is data.
fn copy_sparse(from: &OwnedFd, to: &OwnedFd, size: u64, buffer: &mut [u8]) -> io::Result<()> {
    let mut at = 0;
    while at < size {
        let data = match rustix::fs::seek(from, SeekFrom::Data(at)) {
            Ok(data) => data,
            // Only holes from here on.
            Err(Errno::NXIO) => return Ok(()),
            Err(errno) => return Err(errno.into()),
        };
        let hole = rustix::fs::seek(from, SeekFrom::Hole(data))?.min(size);
        copy_range(from, to, data, hole, buffer)?;
        at = hole.max(data + 1);
    }
    Ok(())
}

fn copy_range(from: &OwnedFd, to: &OwnedFd, begin: u64, end: u64, buffer: &mut [u8]) -> io::Result<()> {
    let mut at = begin;
    while at < end {
        // The kernel moves large contents without showing them to us; small ones are not worth asking.
        if end - at > buffer.len() as u64 {
            let (mut read, mut write) = (at, at);
            let wanted = usize::try_from(end - at).unwrap_or(usize::MAX);
            if let Ok(moved) =
                rustix::fs::copy_file_range(from, Some(&mut read), to, Some(&mut write), wanted)
                && moved > 0
            {
                at += moved as u64;
                continue;
            }
        }
        let wanted = usize::try_from(end - at).unwrap_or(usize::MAX).min(buffer.len());
        let read = rustix::io::pread(from, &mut buffer[..wanted], at)?;
        if read == 0 {
            // It became shorter; the caller notices that.
            return Ok(());
        }
        let mut rest = &buffer[..read];
        while !rest.is_empty() {
            let written = rustix::io::pwrite(to, rest, at)?;
            at += written as u64;
            rest = &rest[written..];
        }
    }
    Ok(())
}

fn failed(path: &TreePath) -> impl Fn(io::Error) -> CopyError {
    let path = path.clone();
    move |error| CopyError::Io { path: path.clone(), error }
}
