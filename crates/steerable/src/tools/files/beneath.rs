//! Opening below a root and nowhere else. The kernel resolves the path and refuses whatever leaves the root (`..`, links,
//! `/proc/self/root`), so that nothing that changes meanwhile can lead us out.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

use outrigger_policy::path::MAX_PATH_BYTES;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::Trouble;
use crate::tools::Grants;

/// What a path is needed for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::tools) enum Need {
    Read,
    Write,
}

/// A place below a root: where it is, not yet what is there.
#[derive(Debug)]
pub(in crate::tools) struct Spot {
    root: OwnedFd,
    /// The way from the root; `.` for the root itself.
    below: PathBuf,
    /// The whole path.
    pub(in crate::tools) path: PathBuf,
    /// How the path is shown: as it was written.
    pub(in crate::tools) shown: String,
}

/// How often the kernel is asked again when folders move while it resolves a path.
const RACES: usize = 16;

/// Finds the root that a path is in. A relative path starts from the first root, the same for reading and writing.
pub(in crate::tools) fn locate(grants: &Grants, need: Need, path: &str) -> Result<Spot, Trouble> {
    let failed = |why: &str| Err(Trouble::Failed(format!("`{}`: {why}", path.escape_debug())));
    if path.is_empty() {
        return failed("the path is empty");
    }
    if path.len() > MAX_PATH_BYTES {
        return Err(Trouble::Failed(format!("the path is longer than {MAX_PATH_BYTES} bytes")));
    }
    if path.contains('\0') {
        return failed("the path has a NUL in it");
    }
    if path == "~" || path.starts_with("~/") {
        return failed("`~` is not expanded; give the whole path, or one from the first root");
    }
    let (roots, verb, grant) = match need {
        Need::Read => (grants.readable(), "read", "--read-root DIR or readRoots"),
        Need::Write => {
            let roots = grants.write_roots.iter().map(PathBuf::as_path).collect();
            (roots, "written", "--write-root DIR or writeRoots")
        }
    };
    let whole = match (Path::new(path).is_absolute(), grants.base()) {
        (true, _) => PathBuf::from(path),
        (false, Some(base)) => base.join(path),
        (false, None) => {
            return Err(Trouble::Denied(format!("no folder may be {verb}; {grant} would grant one")));
        }
    };
    // The innermost root leaves the least to resolve.
    let innermost = |whole: &Path| {
        let found = roots.iter().filter_map(|root| below(root, whole).map(|below| (*root, below)));
        found.min_by_key(|(_, below)| below.as_os_str().len())
    };
    // A path that is in no root by its text may still lead into one: `/home/me` may be a link to `/data/me`.
    match innermost(&whole).or_else(|| innermost(&without_links(&whole)?)) {
        Some((root, below)) => {
            let opened = open_root(root).map_err(|error| {
                Trouble::Failed(format!("the root `{}` cannot be opened: {error}", root.display()))
            })?;
            Ok(Spot { root: opened, below, path: whole, shown: path.to_owned() })
        }
        None => {
            let roots: Vec<String> = roots.iter().map(|root| root.display().to_string()).collect();
            let roots = if roots.is_empty() { "none".to_owned() } else { roots.join(", ") };
            Err(Trouble::Denied(format!(
                "`{path}` is outside of the folders that may be {verb} ({roots}); {grant} would grant another"
            )))
        }
    }
}

/// A path with the links on its way resolved; its last name need not exist. It only helps to find the root, which then
/// judges the rest.
fn without_links(whole: &Path) -> Option<PathBuf> {
    if let Ok(real) = std::fs::canonicalize(whole) {
        return Some(real);
    }
    Some(std::fs::canonicalize(whole.parent()?).ok()?.join(whole.file_name()?))
}

/// The way from a root to a path in it, by their texts; the root may be written with or without its links.
fn below(root: &Path, whole: &Path) -> Option<PathBuf> {
    let way = match whole.strip_prefix(root) {
        Ok(way) => way.to_owned(),
        Err(_) => whole.strip_prefix(std::fs::canonicalize(root).ok()?).ok()?.to_owned(),
    };
    Some(if way.as_os_str().is_empty() { PathBuf::from(".") } else { way })
}

impl Spot {
    /// Opens what is there for reading. It need not be an ordinary file: [`ordinary`] looks, and nothing has waited.
    pub(in crate::tools) fn open(&self) -> Result<OwnedFd, Trouble> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        resolve(&self.root, &self.below, flags).map_err(|error| self.explain(error))
    }

    /// Opens the folder that is there.
    pub(in crate::tools) fn open_folder(&self) -> Result<OwnedFd, Trouble> {
        resolve(&self.root, &self.below, FOLDER).map_err(|error| self.explain(error))
    }

    /// Opens the folder that the path is in, and gives the last name of the path.
    pub(super) fn open_parent(&self) -> Result<(OwnedFd, &OsStr), Trouble> {
        let Some(Component::Normal(name)) = self.below.components().next_back() else {
            return Err(Trouble::Failed(format!("`{}` does not name a file", self.shown)));
        };
        let parent = match self.below.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            Some(_) | None => Path::new("."),
        };
        match resolve(&self.root, parent, FOLDER) {
            Ok(folder) => Ok((folder, name)),
            Err(Errno::NOENT) => Ok((self.make_folders(parent)?, name)),
            Err(error) => Err(self.explain(error)),
        }
    }

    /// Makes the folders on the way, each in the one before it.
    fn make_folders(&self, way: &Path) -> Result<OwnedFd, Trouble> {
        let mut here = resolve(&self.root, Path::new("."), FOLDER).map_err(|error| self.explain(error))?;
        for part in way.components() {
            let name = match part {
                Component::Normal(name) => name,
                Component::CurDir => continue,
                Component::ParentDir | Component::RootDir | Component::Prefix(_) => {
                    return Err(self.explain(Errno::XDEV));
                }
            };
            here = match resolve(&here, Path::new(name), FOLDER) {
                Err(Errno::NOENT) => {
                    match rustix::fs::mkdirat(&here, name, Mode::from_raw_mode(0o777)) {
                        Ok(()) | Err(Errno::EXIST) => {}
                        Err(error) => return Err(self.explain(error)),
                    }
                    resolve(&here, Path::new(name), FOLDER)
                }
                other => other,
            }
            .map_err(|error| self.explain(error))?;
        }
        Ok(here)
    }

    /// The error of the system in words that help.
    pub(super) fn explain(&self, error: Errno) -> Trouble {
        let shown = &self.shown;
        match error {
            Errno::XDEV => Trouble::Denied(format!(
                "`{shown}` leads out of its root, by `..` or by a link; name the file directly"
            )),
            Errno::NOENT => Trouble::Failed(format!("`{shown}` does not exist")),
            Errno::NOTDIR => Trouble::Failed(format!("`{shown}` is not a folder, or goes through a file")),
            Errno::ISDIR => Trouble::Failed(format!("`{shown}` is a folder")),
            Errno::LOOP => Trouble::Failed(format!("`{shown}` goes through a link that is not followed")),
            Errno::NXIO | Errno::NODEV => {
                Trouble::Failed(format!("`{shown}` is a device, a pipe or a socket, not a file"))
            }
            other => Trouble::Failed(format!("`{shown}`: {}", io::Error::from(other))),
        }
    }

    /// Refuses what is no ordinary file, and files with several names: one of them may be outside of the root.
    pub(super) fn ordinary(&self, stat: &Stat) -> Result<(), Trouble> {
        let shown = &self.shown;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile if stat.st_nlink > 1 => Err(Trouble::Denied(format!(
                "`{shown}` has several names (hard links), and one may be outside of its root"
            ))),
            FileType::RegularFile => Ok(()),
            FileType::Directory => Err(Trouble::Failed(format!("`{shown}` is a folder"))),
            FileType::Symlink => {
                Err(Trouble::Failed(format!("`{shown}` is a link; name the file that it leads to")))
            }
            FileType::Fifo
            | FileType::Socket
            | FileType::CharacterDevice
            | FileType::BlockDevice
            | FileType::Unknown => {
                Err(Trouble::Failed(format!("`{shown}` is a device, a pipe or a socket, not a file")))
            }
        }
    }
}

/// How a folder is opened on the way.
const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// Opens an entry of a folder without following a link.
pub(super) fn open_entry(folder: impl AsFd, name: &OsStr, what: FileType) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let flags = if what == FileType::Directory { flags | OFlags::DIRECTORY } else { flags };
    rustix::fs::openat(folder, name, flags, Mode::empty())
}

/// The facts about an entry itself, also if it is a link; `None` if there is none.
pub(super) fn stat_entry(folder: impl AsFd, name: &OsStr) -> Result<Option<Stat>, Errno> {
    match rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(Some(stat)),
        Err(Errno::NOENT) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Where an open folder really is, if the system says so.
pub(in crate::tools) fn real_path(folder: &OwnedFd) -> Option<PathBuf> {
    let path = std::fs::read_link(format!("/proc/self/fd/{}", folder.as_raw_fd())).ok()?;
    path.is_dir().then_some(path)
}

/// Only here a link may be on the way: whoever grants a root means what it leads to.
fn open_root(root: &Path) -> Result<OwnedFd, io::Error> {
    Ok(rustix::fs::open(root, FOLDER, Mode::empty())?)
}

#[cfg(target_os = "linux")]
fn resolve(root: impl AsFd, way: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    use rustix::fs::{ResolveFlags, openat2};
    let within = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    for _ in 0..RACES {
        match openat2(&root, way, flags, Mode::empty(), within) {
            // Something was renamed on the way, and the kernel cannot tell any more whether `..` stays inside.
            Err(Errno::AGAIN) => {}
            Err(Errno::NOSYS) => return step_by_step(root, way, flags),
            done => return done,
        }
    }
    Err(Errno::XDEV)
}

#[cfg(not(target_os = "linux"))]
fn resolve(root: impl AsFd, way: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    step_by_step(root, way, flags)
}

/// The same without the kernel's help: no links at all, no `..`.
fn step_by_step(root: impl AsFd, way: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    let open = |here: &OwnedFd, name: &OsStr, flags| {
        rustix::fs::openat(here, name, flags | OFlags::NOFOLLOW, Mode::empty())
    };
    let mut here = rustix::fs::openat(root, ".", FOLDER, Mode::empty())?;
    let mut parts = way.components().filter(|part| *part != Component::CurDir).peekable();
    if parts.peek().is_none() {
        return rustix::fs::openat(&here, ".", flags, Mode::empty());
    }
    while let Some(part) = parts.next() {
        let Component::Normal(name) = part else { return Err(Errno::XDEV) };
        if parts.peek().is_none() {
            return open(&here, name, flags);
        }
        here = open(&here, name, FOLDER)?;
    }
    Err(Errno::NOENT)
}

#[cfg(test)]
mod tests;
