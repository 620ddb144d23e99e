//! A walk through a tree: sorted, bounded, never through a link.

use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;

use rustix::fs::{Dir, FileType};

use super::Wanted;
use super::beneath::{open_entry, stat_entry};

/// How many entries a walk looks at.
pub(super) const MAX_ENTRIES: usize = 200_000;

/// How deep it goes.
const MAX_DEPTH: usize = 64;

/// Folders that are not entered unless the walk starts in one: history, packages, caches.
pub(super) const SKIPPED: [&str; 5] = [".git", ".hg", ".svn", "node_modules", "__pycache__"];

/// A folder with this file in it is a cache, by the convention of those who make caches.
const CACHE_TAG: &str = "CACHEDIR.TAG";

/// How far the walk goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// The folder's own entries.
    Folder,
    /// Everything below.
    Tree,
}

/// What a walk finds.
#[derive(Debug)]
pub(super) struct Entry<'a> {
    /// The folder that it is in.
    pub(super) folder: &'a OwnedFd,
    /// Its name there.
    pub(super) name: &'a OsStr,
    /// The way to it from where the walk began.
    pub(super) way: &'a str,
    /// What it is.
    pub(super) kind: FileType,
}

/// Whether the walk goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    On,
    Enough,
}

/// How a walk ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// Everything was seen.
    Complete,
    /// Whoever looked had enough.
    Enough,
    /// The limits of the walk were reached.
    Limit,
    /// The call is not wanted any more.
    Cancelled,
}

/// Walks from `folder` and shows every entry to `see`. Names that are not UTF-8 are shown with replacement characters.
pub(super) fn walk(
    folder: OwnedFd,
    reach: Reach,
    wanted: &Wanted,
    see: &mut dyn FnMut(&Entry<'_>) -> Step,
) -> Ended {
    let mut walk = Walk { wanted, see, reach, entries: 0, shallow: true };
    match walk.folder(&folder, "", 0) {
        Err(ended) => ended,
        Ok(()) if walk.shallow => Ended::Complete,
        Ok(()) => Ended::Limit,
    }
}

struct Walk<'a> {
    wanted: &'a Wanted,
    see: &'a mut dyn FnMut(&Entry<'_>) -> Step,
    reach: Reach,
    entries: usize,
    /// Whether no folder was too deep to be entered.
    shallow: bool,
}

impl Walk<'_> {
    fn folder(&mut self, folder: &OwnedFd, way: &str, depth: usize) -> Result<(), Ended> {
        // A folder that cannot be read has nothing to show.
        for (name, kind) in entries(folder, MAX_ENTRIES - self.entries).unwrap_or_default() {
            if self.wanted.is_over() {
                return Err(Ended::Cancelled);
            }
            self.entries += 1;
            if self.entries >= MAX_ENTRIES {
                return Err(Ended::Limit);
            }
            let name = OsStr::from_bytes(&name);
            let shown = name.to_string_lossy();
            let whole = if way.is_empty() { shown.clone().into_owned() } else { format!("{way}/{shown}") };
            let entry = Entry { folder, name, way: &whole, kind };
            if (self.see)(&entry) == Step::Enough {
                return Err(Ended::Enough);
            }
            let enters = self.reach == Reach::Tree
                && kind == FileType::Directory
                && !SKIPPED.contains(&shown.as_ref());
            if !enters {
                continue;
            }
            if depth == MAX_DEPTH {
                self.shallow = false;
                continue;
            }
            if let Ok(inner) = open_entry(folder, name, FileType::Directory)
                && !is_cache(&inner)
            {
                self.folder(&inner, &whole, depth + 1)?;
            }
        }
        Ok(())
    }
}

fn is_cache(folder: &OwnedFd) -> bool {
    stat_entry(folder, OsStr::new(CACHE_TAG)).is_ok_and(|found| found.is_some())
}

/// The entries of a folder with what they are, sorted by name; at most `limit` and one more.
fn entries(folder: &OwnedFd, limit: usize) -> Option<Vec<(Vec<u8>, FileType)>> {
    let mut found = Vec::new();
    for entry in Dir::read_from(folder).ok()?.take(limit.saturating_add(3)) {
        let entry = entry.ok()?;
        let name = entry.file_name().to_bytes();
        if name == b"." || name == b".." {
            continue;
        }
        let kind = match entry.file_type() {
            // Some file systems do not say.
            FileType::Unknown => match stat_entry(folder, OsStr::from_bytes(name)) {
                Ok(Some(stat)) => FileType::from_raw_mode(stat.st_mode),
                Ok(None) | Err(_) => continue,
            },
            kind => kind,
        };
        found.push((name.to_vec(), kind));
    }
    found.sort_unstable_by(|left: &(Vec<u8>, FileType), right| left.0.cmp(&right.0));
    Some(found)
}
