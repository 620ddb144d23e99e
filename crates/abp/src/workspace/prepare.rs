//! Getting a workspace ready for a run, and what becomes of it afterwards.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use outrigger_supervise::driver::Supervisor;

use super::baseline::{self, Baseline};
use super::beneath::Root;
use super::changes::{Changes, LeftOut};
use super::copy::{self, CopyError};
use super::found::{Copied, FoundRepository};
use super::git::{self, Git, GitError, Repository, Subcommand};
use super::ignore::{Asker, MAX_RULES_BYTES, Rules};
use super::in_place::InPlace;
use super::path::TreePath;
use super::result::{self, FinishError};
use super::scan::{Listing, Scan, ScanError, ScanLimits, Selection, SelectionError, Tracked, Tree};
use super::stage::{FolderIdentity, Stage, StageError, StageName};

/// The workspace that a work order wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The folder it is about.
    pub root: PathBuf,
    /// Whether the run works there or in a copy.
    pub mode: Mode,
    /// Globs on paths below the root; if there are any, a file must match one to be copied. `*` crosses `/`.
    pub include: Vec<String>,
    /// Globs of what is not copied; they win. A folder that matches is left out with all that is in it.
    pub exclude: Vec<String>,
}

/// Where a run works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// In the root itself.
    InPlace,
    /// In a copy.
    Staged,
}

/// What the host decides about workspaces.
#[derive(Clone, Debug)]
pub struct Terms {
    /// The folder that has all stages. It is made if need be.
    pub stages: PathBuf,
    /// What this one is called: the id of the run.
    pub name: StageName,
    /// Whether the copy is a repository of its own.
    pub repository: AgentRepository,
    /// How much there may be.
    pub limits: Limits,
}

/// Whether a staged tree looks like a repository to the agent that works in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgentRepository {
    /// It has a `.git` with one commit: many agents want one. What happens in there does not matter to us.
    Make,
    /// It has none.
    None,
}

/// How much a workspace may have, and how long git may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Files, folders and symlinks of a staged tree, before and after the run.
    pub entries: u64,
    /// The bytes of all files together, before and after the run.
    pub bytes: u64,
    /// The patch.
    pub patch_bytes: u64,
    /// The texts for the receipt, each.
    pub text_bytes: u64,
    /// One command of git.
    pub git_within: Duration,
}

impl Limits {
    /// 200,000 entries, 4 GiB, a patch of 1 GiB, texts of 4 MiB, two minutes.
    pub fn usual() -> Self {
        Self {
            entries: 200_000,
            bytes: 4 << 30,
            patch_bytes: 1 << 30,
            text_bytes: 4 << 20,
            git_within: Duration::from_secs(120),
        }
    }
}

/// A workspace could not be prepared. Nothing is left of it, unless the error says so.
#[derive(Debug, thiserror::Error)]
pub enum PrepareError {
    /// The root is not a folder that can be opened.
    #[error("the root `{}` cannot be used: {error}", root.display())]
    Root {
        /// The root.
        root: PathBuf,
        /// Why not.
        #[source]
        error: io::Error,
    },
    /// A glob of the work order.
    #[error(transparent)]
    Selection(#[from] SelectionError),
    /// The private folder.
    #[error(transparent)]
    Stage(#[from] StageError),
    /// Looking at the root.
    #[error(transparent)]
    Scan(#[from] ScanError),
    /// Copying it.
    #[error(transparent)]
    Copy(#[from] CopyError),
    /// Recording it.
    #[error(transparent)]
    Git(#[from] GitError),
}

/// A workspace that a run can work in.
///
/// It ends with [`keep`](Self::keep) or [`discard`](Self::discard). If neither is called, a staged folder stays until a
/// sweep finds it, because there may be work in it.
#[derive(Debug)]
pub struct Prepared {
    source: PathBuf,
    root: PathBuf,
    inner: Inner,
}

#[derive(Debug)]
enum Inner {
    InPlace(Box<InPlace>),
    Staged(Box<Staged>),
}

/// A staged workspace.
#[derive(Debug)]
pub(super) struct Staged {
    pub(super) git: Git,
    pub(super) stage: Stage,
    pub(super) rules: Rules,
    pub(super) baseline: Baseline,
    pub(super) tree: FolderIdentity,
    pub(super) left_out: Vec<LeftOut>,
    pub(super) limits: Limits,
}

/// Gets a workspace ready.
///
/// Must be called inside a tokio runtime, in an executable that is its own launcher.
pub async fn prepare(
    supervisor: &Supervisor,
    request: &Request,
    terms: &Terms,
) -> Result<Prepared, PrepareError> {
    let unusable = |error| PrepareError::Root { root: request.root.clone(), error };
    let source = fs::canonicalize(&request.root).map_err(unusable)?;
    FolderIdentity::of(&source).map_err(unusable)?;
    let git = Git { supervisor: supervisor.clone(), within: terms.limits.git_within };
    match request.mode {
        Mode::InPlace => {
            let in_place = InPlace::prepare(git, &source, terms)?;
            Ok(Prepared { root: source.clone(), source, inner: Inner::InPlace(Box::new(in_place)) })
        }
        Mode::Staged => {
            let selection = Selection::new(&request.include, &request.exclude)?;
            let stage = Stage::make(&terms.stages, &terms.name, &source)?;
            // There is no work in it until it is ready, whether preparing fails or nobody waits for it any more.
            let unfinished = Unfinished(Some(stage.clone()));
            let staged = fill(git, &stage, &source, selection, terms).await?;
            unfinished.became_ready();
            Ok(Prepared { source, root: stage.tree(), inner: Inner::Staged(Box::new(staged)) })
        }
    }
}

/// A stage that is removed if it does not become ready.
struct Unfinished(Option<Stage>);

impl Unfinished {
    fn became_ready(mut self) {
        self.0 = None;
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if let Some(stage) = self.0.take() {
            // If it cannot be removed, a sweep will.
            let _ = stage.remove();
        }
    }
}

impl Prepared {
    /// Where the run works.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The folder that the work order is about, without symlinks.
    pub fn source(&self) -> &Path {
        &self.source
    }

    /// The private folder of a staged workspace.
    pub fn stage(&self) -> Option<&Path> {
        match &self.inner {
            Inner::InPlace(_) => None,
            Inner::Staged(staged) => Some(staged.stage.folder()),
        }
    }

    /// What of the root is not in the copy although nobody asked for that; at most a thousand.
    pub fn left_out(&self) -> &[LeftOut] {
        match &self.inner {
            Inner::InPlace(_) => &[],
            Inner::Staged(staged) => &staged.left_out,
        }
    }

    /// Says what is different now. Nothing of the run may be running any more. May be called again.
    pub async fn finish(&self) -> Result<Changes, FinishError> {
        match &self.inner {
            Inner::InPlace(in_place) => Ok(in_place.finish().await),
            Inner::Staged(staged) => result::finish(staged).await,
        }
    }

    /// Leaves the staged folder where it is, for people to look at, and gives its path.
    pub fn keep(self, why: &str) -> Result<Option<PathBuf>, StageError> {
        match self.inner {
            Inner::InPlace(in_place) => in_place.discard().map(|()| None),
            Inner::Staged(staged) => {
                staged.stage.keep(why)?;
                Ok(Some(staged.stage.folder().to_owned()))
            }
        }
    }

    /// Removes the staged folder.
    pub fn discard(self) -> Result<(), StageError> {
        match self.inner {
            Inner::InPlace(in_place) => in_place.discard(),
            Inner::Staged(staged) => staged.stage.remove(),
        }
    }
}

/// Copies the source into its stage and records what was copied.
async fn fill(
    git: Git,
    stage: &Stage,
    source: &Path,
    selection: Selection,
    terms: &Terms,
) -> Result<Staged, PrepareError> {
    let found = FoundRepository::around(source);
    let repository = Repository { folder: stage.repository(), tree: stage.tree() };
    let head = found.as_ref().and_then(FoundRepository::head);
    repository.make(head.as_ref()).map_err(made("repository"))?;
    let (rules, tracked) = rules_and_tracked(&git, stage, &repository, found.as_ref()).await?;

    let unusable = |error| PrepareError::Root { root: source.to_owned(), error };
    let root = Arc::new(Root::open(source).map_err(unusable)?);
    let without = terms.stages.canonicalize().ok().and_then(|stages| FolderIdentity::of(&stages).ok());
    let mut asker = Asker::start(&git, stage.repository(), &rules).await?;
    let scan = Scan {
        root: Arc::clone(&root),
        rules: &rules,
        asker: &mut asker,
        tracked: &tracked,
        tree: Tree::Source { selection: Arc::new(selection), without },
        limits: ScanLimits { entries: terms.limits.entries, bytes: terms.limits.bytes },
    };
    let Listing { entries, mut left_out, .. } = scan.run(source).await?;
    asker.end().await?;

    let target = stage.tree();
    let work = tokio::task::spawn_blocking(move || {
        let left_out = copy::copy(&root, &entries, &target)?;
        Ok::<_, CopyError>((entries, left_out))
    });
    // It does not panic, and nobody cancels it.
    let (entries, not_copied) = work.await.map_err(|error| unusable(io::Error::other(error)))??;
    let baseline = Baseline::record(&git, &repository, &entries, &not_copied).await?;
    left_out.extend(not_copied);
    if terms.repository == AgentRepository::Make {
        baseline::give_repository(&repository, &baseline).map_err(made("copy"))?;
    }
    let tree = FolderIdentity::of(&stage.tree()).map_err(made("tree"))?;
    Ok(Staged { git, stage: stage.clone(), rules, baseline, tree, left_out, limits: terms.limits })
}

fn made(what: &'static str) -> impl Fn(io::Error) -> PrepareError {
    move |error| GitError::Io { what, error }.into()
}

/// The rules that hold at the root, and the files that are tracked below it.
async fn rules_and_tracked(
    git: &Git,
    stage: &Stage,
    repository: &Repository,
    found: Option<&FoundRepository>,
) -> Result<(Rules, Tracked), PrepareError> {
    let alone = Rules { folder: stage.rules(), prefix: TreePath::root() };
    let Some(found) = found else { return Ok((alone, Tracked::default())) };
    let rules = Rules { folder: stage.rules(), prefix: found.prefix.clone() };
    for above in found.prefix.folders().chain(std::iter::once(TreePath::root())) {
        if let Some(text) = rules_at(&found.top.join(above.as_path()).join(".gitignore")) {
            rules.note_rules_above(&above, &text).map_err(made("rules"))?;
        }
    }
    if let Some(text) = rules_at(&found.exclude()) {
        fs::write(repository.folder.join("info/exclude"), text).map_err(made("rules"))?;
    }
    let tracked = tracked(git, repository, found).await?;
    if !found.prefix.is_root() && tracked.files().next().is_none() && is_ignored(git, stage, found).await? {
        // The root is in a folder that the repository around it does not care for, so its rules are not about it.
        return Ok((alone, Tracked::default()));
    }
    Ok((rules, tracked))
}

fn rules_at(path: &Path) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    let file = super::found::open_file(path).ok()?;
    io::Read::read_to_end(&mut io::Read::take(file, MAX_RULES_BYTES), &mut text).ok()?;
    Some(text)
}

async fn is_ignored(git: &Git, stage: &Stage, found: &FoundRepository) -> Result<bool, PrepareError> {
    let rules = Rules { folder: stage.rules(), prefix: TreePath::root() };
    rules.note_folder(&found.prefix).map_err(made("rules"))?;
    let mut asker = Asker::start(git, stage.repository(), &rules).await?;
    let answer = asker.ask(&[&found.prefix]).await?;
    asker.end().await?;
    Ok(answer == [super::ignore::Named::Yes])
}

/// The largest index that is read, and the largest list of names in it.
pub(super) const MAX_INDEX: u64 = 256 << 20;

async fn tracked(
    git: &Git,
    repository: &Repository,
    found: &FoundRepository,
) -> Result<Tracked, PrepareError> {
    let copied = found.copy_index(&repository.index(), MAX_INDEX).map_err(made("index"))?;
    let list = match copied {
        Copied::Yes => {
            git.output(repository, Subcommand::new(&["ls-files", "-z", "--cached"]), MAX_INDEX).await
        }
        Copied::NotThere | Copied::TooLarge => Ok(Vec::new()),
    };
    // An index in a format that our git does not know costs only the tracked files that are also ignored.
    let list = match list {
        Ok(list) => list,
        Err(GitError::Failed { .. }) => Vec::new(),
        Err(error) => return Err(error.into()),
    };
    let _ = fs::remove_file(repository.index());
    let prefix = found.prefix.as_bytes();
    let below = git::entries(&list).filter_map(|path| match prefix {
        b"" => TreePath::new(path),
        prefix => TreePath::new(path.strip_prefix(prefix)?.strip_prefix(b"/")?),
    });
    Ok(Tracked::new(below))
}
