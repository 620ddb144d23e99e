//! Reading a manifest from disk without being fooled: no links, no pipes, no more bytes than a manifest has.

use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::finding::{Finding, code};
use super::strict::MAX_MANIFEST_BYTES;

/// The name of every manifest.
pub const FILE_NAME: &str = "sep_manifest.json";

/// A manifest's bytes, and whose they are.
pub(super) struct ManifestFile {
    pub(super) bytes: Vec<u8>,
    pub(super) stat: Stat,
}

/// Reads a file that must be a plain one.
pub(super) fn read_manifest(path: &Path) -> Result<ManifestFile, Finding> {
    let failed = |errno: Errno| Finding::error(code::FILE, "", format!("{} {}", path.display(), why(errno)));
    // Not blocking: a pipe would wait for a writer that never comes.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let before = rustix::fs::lstat(path).map_err(failed)?;
    plain(path, &before)?;
    let file: OwnedFd = rustix::fs::open(path, flags, Mode::empty()).map_err(failed)?;
    let stat = rustix::fs::fstat(&file).map_err(failed)?;
    plain(path, &stat)?;
    let mut bytes = Vec::new();
    // One more than there may be, so that the reader of the bytes sees that they are too many.
    let limit = MAX_MANIFEST_BYTES as u64 + 1;
    File::from(file).take(limit).read_to_end(&mut bytes).map_err(|error| {
        Finding::error(code::FILE, "", format!("{} cannot be read: {error}", path.display()))
    })?;
    Ok(ManifestFile { bytes, stat })
}

fn plain(path: &Path, stat: &Stat) -> Result<(), Finding> {
    let what = match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => return Ok(()),
        FileType::Symlink => "is a symbolic link",
        FileType::Directory => "is a folder",
        FileType::Fifo => "is a pipe",
        FileType::Socket => "is a socket",
        FileType::CharacterDevice | FileType::BlockDevice => "is a device",
        FileType::Unknown => "is not a file",
    };
    Err(Finding::error(code::FILE, "", format!("{} {what}; a plain file is needed", path.display())))
}

fn why(errno: Errno) -> String {
    match errno {
        Errno::NOENT => "does not exist".to_owned(),
        errno => format!("cannot be read: {}", std::io::Error::from(errno)),
    }
}
