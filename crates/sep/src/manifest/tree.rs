//! What an extension's files are, as one hash: every file, its place, whether it is a program, its size and its content.
//!
//! The walk holds folders by descriptor and never follows a link, so that nothing can be swapped underneath it. A link,
//! a pipe or a device anywhere makes the tree unverifiable; nothing is left out of the hash.

use std::ffi::{CStr, OsStr};
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use outrigger_policy::{Digest, DigestError};
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat};
use serde::{Deserialize, Serialize};
use sha2::Digest as _;

/// How much a tree may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TreeBounds {
    /// Files and folders.
    pub entries: usize,
    /// Bytes of all files.
    pub bytes: u64,
    /// Folders within folders.
    pub depth: usize,
}

/// What an extension may have.
pub const TREE_BOUNDS: TreeBounds = TreeBounds { entries: 20_000, bytes: 1 << 30, depth: 32 };

/// The hash of a tree of files.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TreeDigest(Digest);

/// Why a tree has no hash.
#[derive(Debug, thiserror::Error)]
pub enum TreeError {
    /// There is a symbolic link, whose target is not part of the tree.
    #[error("{} is a symbolic link; an extension is made of plain files and folders", path.display())]
    Link {
        /// Which, from the top of the tree.
        path: PathBuf,
    },
    /// There is a pipe, a socket or a device.
    #[error("{} is neither a file nor a folder", path.display())]
    Special {
        /// Which.
        path: PathBuf,
    },
    /// There is too much of it.
    #[error("the extension has more than {limit} {what}; the first one too many is {}", path.display())]
    TooMuch {
        /// How much there may be.
        limit: u64,
        /// Of what.
        what: &'static str,
        /// Where it became too much.
        path: PathBuf,
    },
    /// It changed while it was read.
    #[error("{} changed while it was read", path.display())]
    Moved {
        /// Which.
        path: PathBuf,
    },
    /// It cannot be read.
    #[error("{} cannot be read: {source}", path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// A tree, file by file.
#[derive(Debug)]
pub(super) struct Tree {
    files: Vec<TreeFile>,
    /// The first file or folder that somebody else could change, and how.
    pub(super) unsafe_entry: Option<(PathBuf, String)>,
}

#[derive(Debug)]
struct TreeFile {
    path: PathBuf,
    program: bool,
    size: u64,
    content: Digest,
}

impl Tree {
    /// Reads the tree below `dir`, and notices what others than `uid` and root could change.
    pub(super) fn read(dir: &Path, uid: u32, bounds: TreeBounds) -> Result<Self, TreeError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let top = rustix::fs::open(dir, flags, Mode::empty())
            .map_err(|errno| TreeError::Io { path: dir.to_owned(), source: errno.into() })?;
        let tree = Self { files: Vec::new(), unsafe_entry: None };
        let mut walk = Walk { tree, uid, bounds, entries: 0, bytes: 0 };
        walk.folder(&top, Path::new(""), 0)?;
        walk.tree.files.sort_by(|one, other| bytes_of(&one.path).cmp(bytes_of(&other.path)));
        Ok(walk.tree)
    }

    /// The hash of all of it.
    pub(super) fn digest(&self) -> TreeDigest {
        self.digest_where(|_| true)
    }

    /// The hash of all but one file at the top.
    pub(super) fn digest_without(&self, name: &str) -> TreeDigest {
        self.digest_where(|path| path != Path::new(name))
    }

    fn digest_where(&self, counts: impl Fn(&Path) -> bool) -> TreeDigest {
        let mut hash = sha2::Sha256::new();
        for file in self.files.iter().filter(|file| counts(&file.path)) {
            hash.update(bytes_of(&file.path));
            let program = u8::from(file.program);
            hash.update(format!("\0{program}\0{}\0{}\n", file.size, file.content));
        }
        TreeDigest(finished(hash))
    }

    /// What the file at `path` contains.
    pub(super) fn content(&self, path: &Path) -> Option<Digest> {
        self.files.iter().find(|file| file.path == path).map(|file| file.content)
    }
}

struct Walk {
    tree: Tree,
    uid: u32,
    bounds: TreeBounds,
    entries: usize,
    bytes: u64,
}

impl Walk {
    fn folder(&mut self, folder: &OwnedFd, place: &Path, depth: usize) -> Result<(), TreeError> {
        let failed =
            |source: rustix::io::Errno| TreeError::Io { path: place.to_owned(), source: source.into() };
        if depth > self.bounds.depth {
            return Err(too_much(self.bounds.depth as u64, "folders within folders", place));
        }
        for entry in Dir::read_from(folder).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name();
            if name == c"." || name == c".." {
                continue;
            }
            self.entries += 1;
            let path = place.join(OsStr::from_bytes(name.to_bytes()));
            if self.entries > self.bounds.entries {
                return Err(too_much(self.bounds.entries as u64, "files and folders", &path));
            }
            self.entry(folder, name, path, depth)?;
        }
        Ok(())
    }

    fn entry(&mut self, folder: &OwnedFd, name: &CStr, path: PathBuf, depth: usize) -> Result<(), TreeError> {
        let failed = |errno: rustix::io::Errno| TreeError::Io { path: path.clone(), source: errno.into() };
        // Looked at before it is opened: opening a device can have effects.
        let before = rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW).map_err(failed)?;
        let kind = FileType::from_raw_mode(before.st_mode);
        let extra = match kind {
            FileType::RegularFile => OFlags::NONBLOCK,
            FileType::Directory => OFlags::DIRECTORY,
            FileType::Symlink => return Err(TreeError::Link { path }),
            FileType::Fifo
            | FileType::Socket
            | FileType::CharacterDevice
            | FileType::BlockDevice
            | FileType::Unknown => return Err(TreeError::Special { path }),
        };
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | extra;
        let opened = rustix::fs::openat(folder, name, flags, Mode::empty()).map_err(failed)?;
        let stat = rustix::fs::fstat(&opened).map_err(failed)?;
        if (stat.st_dev, stat.st_ino) != (before.st_dev, before.st_ino) {
            return Err(TreeError::Moved { path });
        }
        if let (Some(why), None) = (others_can_change(&stat, self.uid), &self.tree.unsafe_entry) {
            self.tree.unsafe_entry = Some((path.clone(), why));
        }
        match kind {
            FileType::Directory => self.folder(&opened, &path, depth + 1),
            _ => self.file(opened, &stat, path),
        }
    }

    fn file(&mut self, opened: OwnedFd, stat: &Stat, path: PathBuf) -> Result<(), TreeError> {
        let left = self.bounds.bytes - self.bytes;
        let (size, content) =
            hash_file(opened, left + 1).map_err(|source| TreeError::Io { path: path.clone(), source })?;
        if size > left {
            return Err(too_much(self.bounds.bytes, "bytes", &path));
        }
        self.bytes += size;
        self.tree.files.push(TreeFile { path, program: stat.st_mode & 0o111 != 0, size, content });
        Ok(())
    }
}

/// Why others than `uid` and root can change a file, if they can.
pub(super) fn others_can_change(stat: &Stat, uid: u32) -> Option<String> {
    if stat.st_uid != uid && stat.st_uid != 0 {
        return Some(format!("belongs to user {}, neither to this one ({uid}) nor to root", stat.st_uid));
    }
    let mode = stat.st_mode & 0o7777;
    (mode & 0o022 != 0).then(|| format!("can be written by others (mode {mode:o})"))
}

/// How many bytes a file has, up to `at_most`, and their hash.
pub(super) fn hash_file(file: impl Into<OwnedFd>, at_most: u64) -> io::Result<(u64, Digest)> {
    let mut file = File::from(file.into()).take(at_most);
    let mut hash = sha2::Sha256::new();
    let mut buffer = vec![0; 64 * 1024];
    let mut size = 0;
    loop {
        match file.read(&mut buffer) {
            Ok(0) => return Ok((size, finished(hash))),
            Ok(read) => {
                hash.update(&buffer[..read]);
                size += read as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

fn too_much(limit: u64, what: &'static str, path: &Path) -> TreeError {
    TreeError::TooMuch { limit, what, path: path.to_owned() }
}

/// The digest that a hash comes to.
fn finished(hash: sha2::Sha256) -> Digest {
    let digits: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    // 32 bytes are 64 lower-case digits.
    digits.parse().expect("a SHA-256 has 64 digits")
}

fn bytes_of(path: &Path) -> &[u8] {
    path.as_os_str().as_bytes()
}

impl TreeDigest {
    /// The hash of the tree of files below `dir`.
    ///
    /// # Errors
    /// When there is something in it that cannot be verified.
    pub fn of(dir: &Path) -> Result<Self, TreeError> {
        Tree::read(dir, 0, TREE_BOUNDS).map(|tree| tree.digest())
    }

    /// Its bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 32] {
        self.0.as_bytes()
    }
}

impl fmt::Display for TreeDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for TreeDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TreeDigest({})", self.0)
    }
}

impl FromStr for TreeDigest {
    type Err = DigestError;

    fn from_str(text: &str) -> Result<Self, DigestError> {
        text.parse().map(Self)
    }
}
