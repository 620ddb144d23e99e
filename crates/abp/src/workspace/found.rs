//! The repository that a root is in, as far as we look at it: its top, its last commit, its index. Nothing of it is run,
//! and its configuration is not even read.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use super::changes::ObjectId;
use super::path::TreePath;

/// A repository that is somebody else's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FoundRepository {
    /// The top of its tree.
    pub(super) top: PathBuf,
    /// Where the root that we care about is below the top.
    pub(super) prefix: TreePath,
    /// The folder of this tree: `HEAD` and `index` are here.
    folder: PathBuf,
    /// The folder that all trees of the repository share: objects and branches are here.
    common: PathBuf,
}

/// The longest reference, pointer or list of packed references that is read.
const MAX_SMALL: u64 = 64 * 1024;
const MAX_PACKED_REFS: u64 = 64 << 20;

/// How many references may name one another.
const MAX_SYMREFS: usize = 5;

impl FoundRepository {
    /// The repository that `root`, an absolute path without symlinks, is in.
    pub(super) fn around(root: &Path) -> Option<Self> {
        root.ancestors().find_map(|top| {
            let (folder, common) = folders(top)?;
            let prefix = root.strip_prefix(top).ok()?.as_os_str().to_owned().into_vec();
            Some(Self { top: top.to_owned(), prefix: TreePath::new(prefix)?, folder, common })
        })
    }

    /// Its objects.
    pub(super) fn objects(&self) -> PathBuf {
        self.common.join("objects")
    }

    /// The rules of the repository that are in no file of the tree.
    pub(super) fn exclude(&self) -> PathBuf {
        self.common.join("info/exclude")
    }

    /// The commit that is checked out; none before the first one.
    pub(super) fn head(&self) -> Option<ObjectId> {
        let mut reference = small(&self.folder.join("HEAD"))?;
        for _ in 0..MAX_SYMREFS {
            let Some(name) = reference.strip_prefix("ref:") else {
                return ObjectId::new(reference.trim());
            };
            let name = name.trim().to_owned();
            // A name that could lead elsewhere is none.
            TreePath::new(name.as_str()).filter(|_| name.starts_with("refs/"))?;
            let loose = [&self.folder, &self.common].into_iter().find_map(|place| small(&place.join(&name)));
            match loose {
                Some(next) => reference = next,
                None => return self.packed(&name),
            }
        }
        None
    }

    /// Copies its index, if it has one that is an ordinary file of at most `limit` bytes.
    pub(super) fn copy_index(&self, to: &Path, limit: u64) -> io::Result<Copied> {
        let from = match open_file(&self.folder.join("index")) {
            Ok(from) => from,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Copied::NotThere),
            Err(error) => return Err(error),
        };
        if from.metadata()?.len() > limit {
            return Ok(Copied::TooLarge);
        }
        io::copy(&mut from.take(limit), &mut File::create(to)?)?;
        Ok(Copied::Yes)
    }

    fn packed(&self, name: &str) -> Option<ObjectId> {
        let text = text(&self.common.join("packed-refs"), MAX_PACKED_REFS)?;
        text.lines().find_map(|line| {
            let (id, found) = line.split_once(' ')?;
            (found == name).then(|| ObjectId::new(id))?
        })
    }
}

/// What became of a file that was to be copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Copied {
    Yes,
    NotThere,
    TooLarge,
}

/// The folder of the repository whose tree begins at `top`, and the one that it shares with others.
fn folders(top: &Path) -> Option<(PathBuf, PathBuf)> {
    let dot_git = top.join(".git");
    let kind = fs::symlink_metadata(&dot_git).ok()?.file_type();
    if kind.is_dir() {
        return is_repository(&dot_git).then(|| (dot_git.clone(), dot_git));
    }
    if !kind.is_file() {
        return None;
    }
    let pointer = small(&dot_git)?;
    let target = pointer.strip_prefix("gitdir:")?.trim();
    let folder = fs::canonicalize(top.join(target)).ok()?;
    if !points_back(&folder, &dot_git) && !is_module(&folder, top) {
        return None;
    }
    let common = match small(&folder.join("commondir")) {
        Some(common) => fs::canonicalize(folder.join(common.trim())).ok()?,
        None => folder.clone(),
    };
    (folder.join("HEAD").is_file() && is_repository(&common)).then_some((folder, common))
}

fn is_repository(folder: &Path) -> bool {
    folder.join("HEAD").is_file() && folder.join("objects").is_dir()
}

/// Whether a folder says itself that it belongs to this `.git`: a linked tree does. A `.git` that a run wrote could point
/// anywhere, and nobody wants the contents of another repository in a receipt.
fn points_back(folder: &Path, dot_git: &Path) -> bool {
    let back = small(&folder.join("gitdir"));
    back.is_some_and(|back| fs::canonicalize(back.trim()).is_ok_and(|back| back == dot_git))
}

/// Whether a folder is where a repository above `top` has the repositories of its submodules.
fn is_module(folder: &Path, top: &Path) -> bool {
    top.ancestors().skip(1).any(|above| folder.starts_with(above.join(".git/modules")))
}

fn small(path: &Path) -> Option<String> {
    text(path, MAX_SMALL)
}

fn text(path: &Path, limit: u64) -> Option<String> {
    let file = open_file(path).ok()?;
    let mut text = Vec::new();
    file.take(limit).read_to_end(&mut text).ok()?;
    String::from_utf8(text).ok()
}

/// Opens an ordinary file: a pipe in its place is no reason to wait, and a symlink leads away.
pub(super) fn open_file(path: &Path) -> io::Result<File> {
    use rustix::fs::{Mode, OFlags};
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file =
        File::from(rustix::fs::open(OsStr::from_bytes(path.as_os_str().as_bytes()), flags, Mode::empty())?);
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::ErrorKind::InvalidInput.into()),
    }
}
