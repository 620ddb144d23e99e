//! A walk through a tree, level by level: what is there, what the rules leave out, and what nobody can copy.
//!
//! Folders are opened one component at a time and symlinks are never followed. A level is read first and git is asked
//! about all of it at once; what is ignored is not entered, unless something below it is tracked all the same.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use outrigger_policy::glob::{Glob, GlobError, MAX_LIST_BYTES, Reading};
use rustix::fs::{AtFlags, Mode};

use super::beneath::{self, Kind, Print, Root};
use super::changes::{LeftOut, Why};
use super::git::GitError;
use super::ignore::{Asker, MAX_RULES_BYTES, Named, RULES_FILE, Rules};
use super::path::TreePath;
use super::stage::FolderIdentity;

/// One walk.
pub(super) struct Scan<'a> {
    pub(super) root: Arc<Root>,
    pub(super) rules: &'a Rules,
    pub(super) asker: &'a mut Asker,
    pub(super) tracked: &'a Tracked,
    pub(super) tree: Tree,
    pub(super) limits: ScanLimits,
}

/// Which tree it is.
#[derive(Clone, Debug)]
pub(super) enum Tree {
    /// One that is to be copied: its rules are noted, its symlinks judged, and the selection applied.
    Source {
        selection: Arc<Selection>,
        /// A folder that is not entered: where the copies are.
        without: Option<FolderIdentity>,
    },
    /// One of ours, after a run: modes that keep us out are changed.
    Stage,
}

/// How much there may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ScanLimits {
    pub(super) entries: u64,
    pub(super) bytes: u64,
}

/// What a walk found.
#[derive(Debug, Default)]
pub(super) struct Listing {
    /// Folders before what is in them.
    pub(super) entries: Vec<Entry>,
    pub(super) left_out: Vec<LeftOut>,
    /// Files that the rules name.
    pub(super) ignored: u64,
    pub(super) bytes: u64,
}

/// Something that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) path: TreePath,
    pub(super) what: What,
    pub(super) print: Print,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum What {
    Folder { mode: u32 },
    File { mode: u32, bytes: u64 },
    Symlink { target: Vec<u8> },
}

/// A tree cannot be walked through.
#[derive(Debug, thiserror::Error)]
pub enum ScanError {
    /// More than we copy.
    #[error(
        "there are more than {limit} files and folders in `{}`; leave some out with --exclude, or work --in-place", root.display()
    )]
    TooMany {
        /// The tree.
        root: PathBuf,
        /// How many there may be.
        limit: u64,
    },
    /// More than we copy.
    #[error(
        "the files in `{}` have more than {limit} bytes, `{path}` included; leave some out with --exclude, or work --in-place", root.display()
    )]
    TooLarge {
        /// The tree.
        root: PathBuf,
        /// The file that was too much.
        path: TreePath,
        /// How many bytes there may be.
        limit: u64,
    },
    /// A `.gitignore` of an absurd size.
    #[error("`{path}` has more than {MAX_RULES_BYTES} bytes, which are no ignore rules")]
    Rules {
        /// The file.
        path: TreePath,
    },
    /// The walk failed.
    #[error("looking at `{path}` failed: {error}")]
    Io {
        /// Where.
        path: TreePath,
        /// Why.
        #[source]
        error: io::Error,
    },
    /// Git does not tell what is ignored.
    #[error(transparent)]
    Git(#[from] GitError),
}

/// The deepest folder that is entered, and the longest path: beyond that, programs that name files by path fail.
const MAX_DEPTH: usize = 100;
const MAX_PATH: usize = 2048;

/// The most things that are listed as left out; the others are only not there.
const MAX_LEFT_OUT: usize = 1000;

/// What is tracked although the rules may name it.
#[derive(Clone, Debug, Default)]
pub(super) struct Tracked {
    files: HashSet<TreePath>,
    folders: HashSet<TreePath>,
}

impl Tracked {
    pub(super) fn new(files: impl IntoIterator<Item = TreePath>) -> Self {
        let files: HashSet<_> = files.into_iter().collect();
        let folders = files.iter().flat_map(TreePath::folders).collect();
        Self { files, folders }
    }

    pub(super) fn has(&self, path: &TreePath) -> bool {
        self.files.contains(path)
    }

    pub(super) fn files(&self) -> impl Iterator<Item = &TreePath> {
        self.files.iter()
    }
}

/// What of a tree is wanted: two lists of globs. A name that is no text is matched as the text it resembles.
#[derive(Clone, Debug)]
pub(super) struct Selection {
    include: Vec<Glob>,
    exclude: Vec<Glob>,
}

/// A glob that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SelectionError {
    /// One glob.
    #[error("the {list} pattern {pattern:?}: {error}")]
    Glob {
        /// `include` or `exclude`.
        list: &'static str,
        /// The pattern.
        pattern: String,
        /// What is wrong with it.
        error: GlobError,
    },
    /// All of them.
    #[error("the {list} patterns have more than {MAX_LIST_BYTES} bytes")]
    TooLong {
        /// `include` or `exclude`.
        list: &'static str,
    },
}

impl Selection {
    pub(super) fn new(include: &[String], exclude: &[String]) -> Result<Self, SelectionError> {
        Ok(Self { include: globs("include", include)?, exclude: globs("exclude", exclude)? })
    }

    /// An excluded folder is not entered.
    fn excludes(&self, path: &str) -> bool {
        self.exclude.iter().any(|glob| glob.matches(path))
    }

    fn includes(&self, path: &str) -> bool {
        self.include.is_empty() || self.include.iter().any(|glob| glob.matches(path))
    }
}

fn globs(list: &'static str, patterns: &[String]) -> Result<Vec<Glob>, SelectionError> {
    if patterns.iter().map(String::len).sum::<usize>() > MAX_LIST_BYTES {
        return Err(SelectionError::TooLong { list });
    }
    let compile = |pattern: &String| {
        // Who leaves out `target/` means the folder.
        let trimmed = pattern.strip_suffix('/').unwrap_or(pattern);
        let trimmed = trimmed.strip_prefix("./").unwrap_or(trimmed);
        Glob::new(trimmed, Reading::LoosePath).map_err(|error| SelectionError::Glob {
            list,
            pattern: pattern.clone(),
            error,
        })
    };
    patterns.iter().map(compile).collect()
}

/// Something on the level that is being read.
struct Seen {
    path: TreePath,
    what: What,
    print: Print,
}

impl Scan<'_> {
    pub(super) async fn run(mut self, shown_root: &Path) -> Result<Listing, ScanError> {
        let mut listing = Listing::default();
        let mut level = vec![TreePath::root()];
        while !level.is_empty() {
            let (root, rules, tree) = (Arc::clone(&self.root), self.rules.clone(), self.tree.clone());
            let read = tokio::task::spawn_blocking(move || read_level(&root, &rules, &tree, &level));
            // It does not panic, and nobody cancels it.
            let read = read.await.map_err(|error| failed(&TreePath::root())(io::Error::other(error)))??;
            listing.left_out.extend(read.left_out);
            listing.left_out.truncate(MAX_LEFT_OUT);
            let asked: Vec<&TreePath> = read.seen.iter().map(|seen| &seen.path).collect();
            let named = self.asker.ask(&asked).await?;
            level = Vec::new();
            for (seen, named) in read.seen.into_iter().zip(named) {
                if let Some(folder) = self.judge(seen, named, &mut listing, shown_root)? {
                    level.push(folder);
                }
            }
        }
        Ok(listing)
    }

    /// Lists what was seen, and gives the folder that is to be entered.
    fn judge(
        &mut self,
        seen: Seen,
        named: Named,
        listing: &mut Listing,
        shown_root: &Path,
    ) -> Result<Option<TreePath>, ScanError> {
        let Seen { path, what, print } = seen;
        let enter = match (&what, named) {
            (What::Folder { .. }, Named::Yes) if !self.tracked.folders.contains(&path) => {
                listing.ignored += match self.tree {
                    // Nobody asks how much there is in a folder that is not copied.
                    Tree::Source { .. } => 1,
                    Tree::Stage => count_files(&self.root, &path),
                };
                return Ok(None);
            }
            (What::Folder { .. }, _) => Some(path.clone()),
            (What::File { .. } | What::Symlink { .. }, Named::Yes) if !self.tracked.has(&path) => {
                listing.ignored += 1;
                return Ok(None);
            }
            (What::File { .. } | What::Symlink { .. }, _) => None,
        };
        if let Tree::Source { selection, .. } = &self.tree
            && !selection.includes(&path.to_text())
        {
            return Ok(enter);
        }
        if listing.entries.len() as u64 >= self.limits.entries {
            return Err(ScanError::TooMany { root: shown_root.to_owned(), limit: self.limits.entries });
        }
        if let What::File { bytes, .. } = what {
            listing.bytes = listing.bytes.saturating_add(bytes);
            if listing.bytes > self.limits.bytes {
                return Err(ScanError::TooLarge {
                    root: shown_root.to_owned(),
                    path,
                    limit: self.limits.bytes,
                });
            }
        }
        listing.entries.push(Entry { path, what, print });
        Ok(enter)
    }
}

#[derive(Default)]
struct Level {
    seen: Vec<Seen>,
    left_out: Vec<LeftOut>,
}

fn read_level(root: &Root, rules: &Rules, tree: &Tree, folders: &[TreePath]) -> Result<Level, ScanError> {
    let mut level = Level::default();
    for folder in folders {
        read_folder(root, rules, tree, folder, &mut level)?;
    }
    Ok(level)
}

fn read_folder(
    root: &Root,
    rules: &Rules,
    tree: &Tree,
    path: &TreePath,
    level: &mut Level,
) -> Result<(), ScanError> {
    let folder = match root.folder(path) {
        Ok(folder) => folder,
        // It was there a moment ago; a tree in which it never was is as good.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            level.left_out.push(LeftOut { path: path.clone(), why: Why::Unreadable });
            return Ok(());
        }
        Err(error) => return Err(failed(path)(error)),
    };
    if let Tree::Source { .. } = tree {
        note_rules(rules, &folder, path)?;
    }
    for name in beneath::names(&folder).map_err(failed(path))? {
        let here = path.child(&name);
        if is_gits_own(&name) || name.starts_with(super::apply::FOLDER.as_bytes()) {
            if name != b".git" {
                level.left_out.push(LeftOut { path: here, why: Why::Reserved });
            }
            continue;
        }
        if here.as_bytes().len() > MAX_PATH || here.components().count() > MAX_DEPTH {
            level.left_out.push(LeftOut { path: here, why: Why::TooDeep });
            continue;
        }
        let os_name = beneath::os(name);
        let stat = match beneath::stat(&folder, &os_name) {
            Ok(stat) => stat,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(failed(&here)(error)),
        };
        if let Tree::Source { selection, without } = tree {
            let itself = FolderIdentity::from_stat(&stat);
            if selection.excludes(&here.to_text()) || *without == Some(itself) {
                continue;
            }
        }
        let mode = stat.st_mode & 0o777;
        let what = match beneath::kind(&stat) {
            Kind::Folder => {
                open_up(tree, &folder, &os_name, mode, 0o700);
                rules.note_folder(&here).map_err(failed(&here))?;
                What::Folder { mode }
            }
            Kind::File => {
                open_up(tree, &folder, &os_name, mode, 0o600);
                What::File { mode, bytes: u64::try_from(stat.st_size).unwrap_or(0) }
            }
            Kind::Symlink => {
                let target = match beneath::read_link(&folder, &os_name) {
                    Ok(target) => target,
                    Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                    Err(error) => return Err(failed(&here)(error)),
                };
                if let Tree::Source { .. } = tree
                    && !here.link_stays_inside(&target)
                {
                    level.left_out.push(LeftOut { path: here, why: Why::Escapes });
                    continue;
                }
                What::Symlink { target }
            }
            Kind::Special => {
                level.left_out.push(LeftOut { path: here, why: Why::Special });
                continue;
            }
        };
        level.seen.push(Seen { path: here, what, print: Print::of(&stat) });
    }
    Ok(())
}

/// Names that git cannot record, because it takes them for its own whatever their case.
fn is_gits_own(name: &[u8]) -> bool {
    name.eq_ignore_ascii_case(b".git")
}

/// In a tree of ours, makes sure that we may read what a run has closed.
fn open_up(tree: &Tree, folder: &OwnedFd, name: &OsStr, mode: u32, needed: u32) {
    if let Tree::Stage = tree
        && mode & needed != needed
    {
        // If it is not ours, reading fails and says so. A symlink that took its place is followed by nobody but this
        // call, which can at most open up what is ours already.
        let _ = rustix::fs::chmodat(folder, name, Mode::from_raw_mode(mode | needed), AtFlags::empty());
    }
}

/// Notes the rules of a folder, if it has a file of them that git would read.
fn note_rules(rules: &Rules, folder: &OwnedFd, path: &TreePath) -> Result<(), ScanError> {
    let here = path.child(RULES_FILE);
    let Ok(file) = beneath::open_file(folder, here.name()) else { return Ok(()) };
    let file = File::from(file);
    if !file.metadata().map_err(failed(&here))?.is_file() {
        return Ok(());
    }
    let mut text = Vec::new();
    file.take(MAX_RULES_BYTES + 1).read_to_end(&mut text).map_err(failed(&here))?;
    if text.len() as u64 > MAX_RULES_BYTES {
        return Err(ScanError::Rules { path: here });
    }
    rules.note_rules(path, &text).map_err(failed(&here))
}

/// How many files are below a folder that is not entered, up to a point.
fn count_files(root: &Root, folder: &TreePath) -> u64 {
    const ENOUGH: u64 = 100_000;
    let mut count = 0;
    let mut waiting = vec![folder.clone()];
    while let Some(path) = waiting.pop() {
        let Ok(folder) = root.folder(&path) else { continue };
        for name in beneath::names(&folder).unwrap_or_default() {
            let here = path.child(&name);
            match beneath::stat(&folder, here.name()).map(|stat| beneath::kind(&stat)) {
                Ok(Kind::Folder) if here.components().count() <= MAX_DEPTH => waiting.push(here),
                Ok(Kind::Folder | Kind::File | Kind::Symlink | Kind::Special) => count += 1,
                Err(_) => {}
            }
            if count >= ENOUGH {
                return count;
            }
        }
    }
    count
}

fn failed(path: &TreePath) -> impl Fn(io::Error) -> ScanError {
    let path = path.clone();
    move |error| ScanError::Io { path: path.clone(), error }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_selection_reads_stars_across_folders_and_exclusion_wins() {
        let list = |patterns: &[&str]| patterns.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        let selection =
            Selection::new(&list(&["*.rs", "docs/**"]), &list(&["target/", "./a?/*.rs"])).unwrap();
        assert!(selection.includes("src/deep/lib.rs") && selection.includes("docs/a/b.md"));
        assert!(!selection.includes("src/lib.py"));
        assert!(selection.excludes("target") && selection.excludes("ab/c/d.rs"));
        assert!(!selection.excludes("src/target.rs"));
        assert!(Selection::new(&[], &[]).unwrap().includes("anything"));
        let error = Selection::new(&list(&["["]), &[]).unwrap_err();
        assert_eq!(error.to_string(), r#"the include pattern "[": the `[` at byte 0 is never closed"#);
        let many = vec!["x".repeat(1024); MAX_LIST_BYTES / 1024];
        assert!(Selection::new(&many, &[]).is_ok());
        let too_many = [many, vec!["x".into()]].concat();
        assert_eq!(Selection::new(&[], &too_many).unwrap_err(), SelectionError::TooLong { list: "exclude" });
    }

    #[test]
    fn what_is_tracked_is_known_with_the_folders_above_it() {
        let tracked = Tracked::new(TreePath::new("a/b/c"));
        assert!(tracked.has(&TreePath::new("a/b/c").unwrap()));
        assert!(!tracked.has(&TreePath::new("a/b").unwrap()));
        assert!(tracked.folders.contains(&TreePath::new("a").unwrap()));
    }
}
