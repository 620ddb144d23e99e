//! Opening things below a root without ever following a symlink: a tree that changes under us cannot lead us out of it.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::Path;

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat};

use super::path::TreePath;

/// The root of a tree, held open.
#[derive(Debug)]
pub(super) struct Root {
    folder: OwnedFd,
}

/// What is where a path leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Folder,
    File,
    Symlink,
    /// A socket, a pipe or a device.
    Special,
}

impl Root {
    /// Opens the folder at `path`. Only here a symlink may be on the way: whoever names the root means what it leads to.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self { folder: rustix::fs::open(path, flags, Mode::empty())? })
    }

    /// Opens a folder of the tree.
    pub(super) fn folder(&self, path: &TreePath) -> io::Result<OwnedFd> {
        let mut here = self.folder.try_clone()?;
        for part in path.components() {
            here = open_folder(&here, part)?;
        }
        Ok(here)
    }

    /// Opens the folder that a path is in. The root is in none.
    pub(super) fn folder_of(&self, path: &TreePath) -> io::Result<OwnedFd> {
        match path.parent() {
            Some(parent) => self.folder(&parent),
            None => Err(io::ErrorKind::InvalidInput.into()),
        }
    }

    /// The facts about something in the tree; `None` if it is not there.
    pub(super) fn stat(&self, path: &TreePath) -> io::Result<Option<Stat>> {
        let found = self.folder_of(path).and_then(|folder| stat(&folder, path.name()));
        match found {
            Ok(stat) => Ok(Some(stat)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            // Something on the way is a file.
            Err(error) if error.raw_os_error() == Some(rustix::io::Errno::NOTDIR.raw_os_error()) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Opens a folder in a folder.
pub(super) fn open_folder(folder: impl AsFd, name: &OsStr) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(folder, name, flags, Mode::empty())?)
}

/// Opens a file in a folder for reading. It need not be an ordinary one: the caller looks, and nothing has waited.
pub(super) fn open_file(folder: impl AsFd, name: &OsStr) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(folder, name, flags, Mode::empty())?)
}

/// Makes a file in a folder. There must be none of that name.
pub(super) fn make_file(folder: impl AsFd, name: &OsStr, mode: u32) -> io::Result<OwnedFd> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(folder, name, flags, Mode::from_raw_mode(mode))?)
}

/// The facts about an entry of a folder itself, also if it is a symlink.
pub(super) fn stat(folder: impl AsFd, name: &OsStr) -> io::Result<Stat> {
    Ok(rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?)
}

/// What a symlink says.
pub(super) fn read_link(folder: impl AsFd, name: &OsStr) -> io::Result<Vec<u8>> {
    Ok(rustix::fs::readlinkat(folder, name, Vec::new())?.into_bytes())
}

/// The names in a folder, sorted by their bytes.
pub(super) fn names(folder: impl AsFd) -> io::Result<Vec<Vec<u8>>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(folder)? {
        let name = entry?.file_name().to_bytes().to_vec();
        if name != b"." && name != b".." {
            names.push(name);
        }
    }
    names.sort_unstable();
    Ok(names)
}

/// What the facts are about.
pub(super) fn kind(stat: &Stat) -> Kind {
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::Directory => Kind::Folder,
        FileType::RegularFile => Kind::File,
        FileType::Symlink => Kind::Symlink,
        FileType::Fifo
        | FileType::Socket
        | FileType::CharacterDevice
        | FileType::BlockDevice
        | FileType::Unknown => Kind::Special,
    }
}

/// Everything that changes when a file does. Git compares whole seconds on many systems, and all but the time of the last
/// change (`ctime`) can be set back by whoever owns the file; so we compare ourselves, to the nanosecond.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Print {
    device: u64,
    inode: u64,
    mode: u32,
    size: i64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Print {
    pub(super) fn of(stat: &Stat) -> Self {
        Self {
            device: stat.st_dev,
            inode: stat.st_ino,
            mode: stat.st_mode,
            size: stat.st_size,
            modified: (stat.st_mtime as _, stat.st_mtime_nsec as _),
            changed: (stat.st_ctime as _, stat.st_ctime_nsec as _),
        }
    }
}

/// Whether its owner may execute it, which is all that git knows of modes.
pub(super) fn is_executable(stat: &Stat) -> bool {
    stat.st_mode & 0o100 != 0
}

/// A path of bytes, for the standard library.
pub(super) fn os(bytes: Vec<u8>) -> std::ffi::OsString {
    std::ffi::OsString::from_vec(bytes)
}
