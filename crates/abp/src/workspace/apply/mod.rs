//! Bringing a change back to the source: everything or nothing.
//!
//! 1. *Look.* Every file that the change touches must be in the source as it was when it was copied, and nothing may be
//!    where a new file goes. Whatever is different is named, and nothing is done.
//! 2. *Write* the new contents into a folder of our own in the source, `.outrigger-apply-<name>`, with a journal of what
//!    is going to happen.
//! 3. *Move.* New contents are exchanged with the old ones file by file, new files are moved into place, and what is to go
//!    is moved into our folder; removals come last, unless something new needs the place. Each move is atomic. A file that
//!    turns out to have been changed since it was looked at is put back, with all the others.
//! 4. *Forget*: our folder is removed with the old contents in it.
//!
//! If a move fails, all of them are undone. If we are killed while moving, the folder stays: `journal` lists every file
//! with its number, `o<number>` is the old content of a file that was moved, `n<number>` the new content of one that was
//! not. The next attempt refuses and names the folder. That is safe against a kill; nothing is flushed for a power cut.

mod blobs;
mod check;
mod moves;

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;

use self::blobs::Blobs;
use super::beneath::Root;
use super::changes::{Changes, ObjectId, Record};
use super::git::{GitError, Repository, Subcommand};
use super::path::TreePath;
use super::result;

/// How the folder in the source begins that has what is being moved.
pub(super) const FOLDER: &str = ".outrigger-apply-";

/// A change that was brought back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Applied {
    /// Every path that is different now.
    pub paths: Vec<TreePath>,
}

/// A change was not brought back.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// There is nothing to bring back.
    #[error("the run worked in the source itself")]
    InPlace,
    /// The source is not what the change was made for. Nothing was done.
    #[error("the source is different from what was copied, so nothing was applied:{}", list(files))]
    Conflict {
        /// Every file that is different.
        files: Vec<Conflict>,
    },
    /// The change has symlinks that lead out of the tree. Nothing was done.
    #[error("the change makes symlinks that lead out of the tree, so nothing was applied: {}", names(links))]
    Escapes {
        /// Where they would be.
        links: Vec<TreePath>,
    },
    /// An earlier attempt did not come to its end.
    #[error("an earlier attempt was interrupted; `{}` has a journal of it, and the old contents", folder.display())]
    Interrupted {
        /// Its folder.
        folder: PathBuf,
    },
    /// The source.
    #[error("applying to `{path}` failed, and nothing was changed: {error}")]
    Io {
        /// Where.
        path: TreePath,
        /// Why.
        #[source]
        error: io::Error,
    },
    /// It failed, and so did putting things back.
    #[error("applying failed ({error}), and so did undoing it; `{}` has a journal of it, and the old contents", folder.display())]
    Stuck {
        /// Its folder.
        folder: PathBuf,
        /// Why it failed.
        #[source]
        error: io::Error,
    },
    /// Our own repository.
    #[error(transparent)]
    Git(#[from] GitError),
}

/// A file of the source that is in the way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Conflict {
    /// Which.
    pub path: TreePath,
    /// How it is different.
    pub difference: Difference,
}

/// How a file of the source is different from what was copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Difference {
    /// It is not there any more, or behind a symlink.
    Missing,
    /// It has other contents.
    Changed,
    /// It is executable and was not, or the other way round.
    Mode,
    /// It is something else: a folder, a symlink, a pipe.
    OtherKind,
    /// Something is where a new file is to go.
    Exists,
    /// Something other than a folder is above where a new file is to go.
    Blocked,
}

impl Difference {
    /// The end of the sentence "`path` …".
    pub fn as_text(self) -> &'static str {
        match self {
            Self::Missing => "is not there any more",
            Self::Changed => "has changed",
            Self::Mode => "has another mode",
            Self::OtherKind => "is something else now",
            Self::Exists => "is there already",
            Self::Blocked => "cannot be made, because something that is no folder is in its way",
        }
    }
}

fn list(files: &[Conflict]) -> String {
    const SHOWN: usize = 20;
    let mut text: String = files
        .iter()
        .take(SHOWN)
        .map(|conflict| format!("\n  `{}` {}", conflict.path, conflict.difference.as_text()))
        .collect();
    if files.len() > SHOWN {
        text.push_str(&format!("\n  and {} more", files.len() - SHOWN));
    }
    text
}

fn names(links: &[TreePath]) -> String {
    links.iter().map(|link| format!("`{link}`")).collect::<Vec<_>>().join(", ")
}

/// What is to happen to one path.
#[derive(Debug)]
struct Step {
    path: TreePath,
    old: Option<Content>,
    new: Option<Content>,
}

/// What is at a path, before or after.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Content {
    kind: ContentKind,
    object: ObjectId,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ContentKind {
    Plain,
    Executable,
    Symlink,
}

/// The longest list of changes.
const MAX_RAW: u64 = 256 << 20;

impl Changes {
    /// Brings the change back to the source, if that is still what was copied.
    pub async fn apply(&self, source: &Path) -> Result<Applied, ApplyError> {
        let record = self.record.as_ref().ok_or(ApplyError::InPlace)?;
        let at_root = |error| ApplyError::Io { path: TreePath::root(), error };
        let repository = Repository { folder: record.stage.repository(), tree: record.stage.tree() };
        let steps = steps(record, &repository).await?;
        if steps.is_empty() {
            return Ok(Applied { paths: Vec::new() });
        }
        let root = Root::open(source).map_err(at_root)?;
        let name = format!("{FOLDER}{}", stage_name(record));
        let folder = TreePath::new(name.as_str()).unwrap_or_else(TreePath::root);
        if root.stat(&folder).map_err(at_root)?.is_some() {
            return Err(ApplyError::Interrupted { folder: source.join(folder.as_path()) });
        }

        let mut blobs = Blobs::open(&record.git, &repository).await?;
        let links = escaping(&steps, &mut blobs).await?;
        if !links.is_empty() {
            return Err(ApplyError::Escapes { links });
        }
        let checked = check::check(&root, &steps, &mut blobs).await?;
        let shown = source.join(folder.as_path());
        let prepared = moves::write(root, folder, shown, steps, checked, &mut blobs).await?;
        blobs.close().await?;
        let paths = prepared.paths();
        let work = tokio::task::spawn_blocking(move || prepared.perform());
        // It does not panic, and nobody cancels it.
        work.await.map_err(|error| at_root(io::Error::other(error)))??;
        Ok(Applied { paths })
    }
}

fn stage_name(record: &Record) -> String {
    record.stage.folder().file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

async fn steps(record: &Record, repository: &Repository) -> Result<Vec<Step>, GitError> {
    let unreadable = |what| GitError::Answer { command: "diff-tree".into(), what };
    let (before, after) = (record.before.as_str(), record.after.as_str());
    let args = ["diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", before, after];
    let said = record.git.output(repository, Subcommand::new(&args), MAX_RAW).await?;
    let (raws, _) = result::read_raw(&said).map_err(unreadable)?;
    let content = |side: result::Side| {
        let kind = match side.mode {
            0o100_644 => ContentKind::Plain,
            0o100_755 => ContentKind::Executable,
            0o120_000 => ContentKind::Symlink,
            0 if side.object.is_nothing() => return Ok(None),
            _ => return Err(unreadable("an entry is neither a file nor a symlink")),
        };
        Ok(Some(Content { kind, object: side.object }))
    };
    raws.into_iter()
        .map(|raw| Ok(Step { path: raw.path, old: content(raw.old)?, new: content(raw.new)? }))
        .collect()
}

/// The new symlinks that would lead out of the tree.
async fn escaping(steps: &[Step], blobs: &mut Blobs) -> Result<Vec<TreePath>, GitError> {
    let mut links = Vec::new();
    for step in steps {
        if let Some(Content { kind: ContentKind::Symlink, object }) = &step.new
            && !step.path.link_stays_inside(&blobs.short(object).await?)
        {
            links.push(step.path.clone());
        }
    }
    Ok(links)
}

/// The paths at which there is nothing afterwards.
fn removed(steps: &[Step]) -> HashSet<&TreePath> {
    steps.iter().filter(|step| step.new.is_none()).map(|step| &step.path).collect()
}
