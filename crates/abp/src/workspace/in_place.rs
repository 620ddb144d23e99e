//! Working in the root itself: nothing is copied, and the receipt gets the texts of git if the root is in a repository.
//!
//! The commit, the index and the list of excluded files are taken before the run, into a repository of ours that borrows
//! the objects of the real one. So nothing of the real one is run, and what the run does to its index hides nothing.

use std::fs;
use std::path::{Path, PathBuf};

use super::baseline;
use super::changes::{Changes, ObjectId};
use super::found::{Copied, FoundRepository};
use super::git::{self, Git, GitError, Repository, Subcommand};
use super::path::TreePath;
use super::prepare::{Limits, MAX_INDEX, PrepareError, Terms};
use super::result;
use super::stage::{Stage, StageError};

/// A workspace that is the root itself.
#[derive(Debug)]
pub(super) struct InPlace {
    git: Git,
    limits: Limits,
    look: Look,
}

/// How what changed is found out.
#[derive(Debug)]
enum Look {
    /// Not at all: the root is in no repository.
    NoRepository,
    /// Not at all, for this reason.
    Impossible(String),
    Repository(Box<Borrowed>),
}

#[derive(Debug)]
struct Borrowed {
    stage: Stage,
    repository: Repository,
    /// What the tree is compared with.
    base: ObjectId,
    /// The root below the top of the tree.
    prefix: TreePath,
    top: PathBuf,
}

/// What a repository without a commit is compared with: the tree that has nothing, which every git knows.
const NOTHING: &str = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";

/// The longest list of new files.
const MAX_LIST: u64 = 64 << 20;

impl InPlace {
    pub(super) fn prepare(git: Git, source: &Path, terms: &Terms) -> Result<Self, PrepareError> {
        let look = match FoundRepository::around(source) {
            None => Look::NoRepository,
            Some(found) => {
                let stage = Stage::make(&terms.stages, &terms.name, source)?;
                match borrow(&stage, &found) {
                    Ok(borrowed) => Look::Repository(Box::new(borrowed)),
                    Err(error) => {
                        stage.remove()?;
                        Look::Impossible(format!("the repository around the root cannot be read: {error}"))
                    }
                }
            }
        };
        Ok(Self { git, limits: terms.limits, look })
    }

    /// Says what is different from the last commit. If that cannot be said, the reason is in the note: a run that is over
    /// does not fail for it.
    pub(super) async fn finish(&self) -> Changes {
        let unknown = |note| Changes {
            files: Vec::new(),
            patch: None,
            status: None,
            diff: None,
            ignored_new: 0,
            unrecorded: Vec::new(),
            note,
            record: None,
        };
        match &self.look {
            Look::NoRepository => unknown(None),
            Look::Impossible(why) => unknown(Some(why.clone())),
            Look::Repository(borrowed) => match self.compare(borrowed).await {
                Ok(changes) => changes,
                Err(error) => unknown(Some(format!("what changed cannot be said: {error}"))),
            },
        }
    }

    pub(super) fn discard(self) -> Result<(), StageError> {
        match self.look {
            Look::Repository(borrowed) => borrowed.stage.remove(),
            Look::NoRepository | Look::Impossible(_) => Ok(()),
        }
    }

    async fn compare(&self, borrowed: &Borrowed) -> Result<Changes, GitError> {
        let Borrowed { repository, base, .. } = borrowed;
        let within = borrowed.within()?;
        self.make_index_readable(borrowed).await?;
        let status = [
            &[
                "--literal-pathspecs",
                "status",
                "--porcelain=v1",
                "--untracked-files=all",
                "--ignore-submodules=all",
            ],
            &within[..],
        ]
        .concat();
        let status =
            result::cut_output(&self.git, repository, Subcommand::new(&status), self.limits.text_bytes)
                .await?;

        let new = [&["--literal-pathspecs", "ls-files", "-z", "--others", "--exclude-standard"], &within[..]]
            .concat();
        let new = self.git.output(repository, Subcommand::new(&new), MAX_LIST).await?;
        let new: Vec<TreePath> =
            git::entries(&new).filter_map(|path| self.worth_showing(borrowed, path)).collect();
        let mut new: Vec<&TreePath> = new.iter().collect();
        new.sort_unstable();
        baseline::add(&self.git, repository, &new).await?;

        let files = result::compare(&self.git, repository, &[&[base.as_str()], &within[..]].concat()).await?;
        let diff = result::text_diff(&[base.as_str()], &within);
        let diff =
            result::cut_output(&self.git, repository, Subcommand::new(&diff), self.limits.text_bytes).await?;
        Ok(Changes {
            files,
            patch: None,
            status: Some(status),
            diff: Some(diff),
            ignored_new: 0,
            unrecorded: Vec::new(),
            note: None,
            record: None,
        })
    }

    /// New files that are recorded, so that they are in the difference: all but other repositories, which git names with a
    /// `/` at the end, and what is larger than the text may be.
    fn worth_showing(&self, borrowed: &Borrowed, path: &[u8]) -> Option<TreePath> {
        let path = TreePath::new(path)?;
        let facts = fs::symlink_metadata(borrowed.top.join(path.as_path())).ok()?;
        (facts.len() <= self.limits.text_bytes && !facts.is_dir()).then_some(path)
    }

    /// The index is of another git, perhaps a newer one, or only a part of one. It only saves time, so if it cannot be read
    /// we make our own.
    async fn make_index_readable(&self, borrowed: &Borrowed) -> Result<(), GitError> {
        let Borrowed { repository, base, .. } = borrowed;
        if repository.index().exists() {
            let readable = self
                .git
                .output(repository, Subcommand::new(&["ls-files", "-z", "--cached"]), MAX_INDEX)
                .await;
            match readable {
                Err(GitError::Failed { .. }) => {}
                other => return other.map(drop),
            }
            fs::remove_file(repository.index()).map_err(|error| GitError::Io { what: "index", error })?;
        }
        self.git.output(repository, Subcommand::new(&["read-tree", base.as_str()]), 0).await.map(drop)
    }
}

impl Borrowed {
    /// The arguments that say which part of the tree is meant.
    fn within(&self) -> Result<Vec<&str>, GitError> {
        if self.prefix.is_root() {
            return Ok(vec!["--"]);
        }
        let prefix = std::str::from_utf8(self.prefix.as_bytes());
        let prefix = prefix.map_err(|_| GitError::Io {
            what: "root",
            error: std::io::Error::new(std::io::ErrorKind::InvalidInput, "its path is no text"),
        })?;
        Ok(vec!["--", prefix])
    }
}

fn borrow(stage: &Stage, found: &FoundRepository) -> std::io::Result<Borrowed> {
    let repository = Repository { folder: stage.repository(), tree: found.top.clone() };
    let head = found.head();
    repository.make(head.as_ref())?;
    repository.borrow(&found.objects())?;
    if let Some(head) = &head {
        fs::write(repository.folder.join("HEAD"), format!("{}\n", head.as_str()))?;
    }
    match found.copy_index(&repository.index(), MAX_INDEX)? {
        Copied::Yes | Copied::NotThere | Copied::TooLarge => {}
    }
    if let Ok(exclude) = super::found::open_file(&found.exclude()) {
        let mut rules = fs::File::create(repository.folder.join("info/exclude"))?;
        std::io::copy(&mut std::io::Read::take(exclude, super::ignore::MAX_RULES_BYTES), &mut rules)?;
    }
    let nothing = || ObjectId::new(NOTHING).ok_or_else(|| std::io::Error::other("no name of an object"));
    let base = head.map_or_else(nothing, Ok)?;
    Ok(Borrowed {
        stage: stage.clone(),
        repository,
        base,
        prefix: found.prefix.clone(),
        top: found.top.clone(),
    })
}
