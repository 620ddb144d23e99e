//! What a run did to its staged tree: walked, recorded, compared.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use std::sync::Arc;

use super::baseline;
use super::beneath::Root;
use super::changes::{
    ChangeKind, Changes, CutText, FileChange, LeftOut, Lines, ObjectId, Patch, Record, Why,
};
use super::git::{self, Git, GitError, Repository, Subcommand};
use super::ignore::Asker;
use super::path::TreePath;
use super::prepare::{MAX_INDEX, Staged};
use super::scan::{Entry, Listing, Scan, ScanError, ScanLimits, Tree, What};
use super::stage::FolderIdentity;

/// What a run did cannot be said.
#[derive(Debug, thiserror::Error)]
pub enum FinishError {
    /// The run removed the folder it was given, or put something else in its place.
    #[error("the staged folder `{}` was replaced during the run, so nothing can be said about it", tree.display())]
    Replaced {
        /// The folder.
        tree: PathBuf,
    },
    /// Looking at the tree.
    #[error("the staged tree: {0}")]
    Scan(#[from] ScanError),
    /// Comparing it.
    #[error(transparent)]
    Git(#[from] GitError),
    /// The patch.
    #[error("the patch `{}` cannot be written: {error}", path.display())]
    Patch {
        /// The file.
        path: PathBuf,
        /// Why not.
        #[source]
        error: io::Error,
    },
    /// The patch.
    #[error("the patch has more than {limit} bytes; the staged tree is what there is")]
    PatchTooLarge {
        /// How many it may have.
        limit: u64,
    },
}

/// How git compares: nothing of anybody's configuration, whole names, moved files recognised.
const COMPARE: [&str; 10] = [
    "--literal-pathspecs",
    "diff",
    "--ignore-submodules=all",
    "--no-ext-diff",
    "--no-textconv",
    "--no-color",
    "--find-renames",
    "--full-index",
    "--src-prefix=a/",
    "--dst-prefix=b/",
];

/// The longest list of changed files.
const MAX_RAW: u64 = 256 << 20;

pub(super) async fn finish(staged: &Staged) -> Result<Changes, FinishError> {
    let tree = staged.stage.tree();
    let replaced = || FinishError::Replaced { tree: tree.clone() };
    if FolderIdentity::of(&tree).ok() != Some(staged.tree) {
        return Err(replaced());
    }
    let repository = Repository { folder: staged.stage.repository(), tree: tree.clone() };
    let root = Arc::new(Root::open(&tree).map_err(|_| replaced())?);
    let mut asker = Asker::start(&staged.git, staged.stage.repository(), &staged.rules).await?;
    let scan = Scan {
        root,
        rules: &staged.rules,
        asker: &mut asker,
        tracked: &staged.baseline.files,
        tree: Tree::Stage,
        limits: ScanLimits { entries: staged.limits.entries, bytes: staged.limits.bytes },
    };
    let Listing { entries, left_out: mut unrecorded, ignored, .. } = scan.run(&tree).await?;
    asker.end().await?;

    let files = entries.iter().filter(|entry| !matches!(entry.what, What::Folder { .. }));
    let mut files: Vec<&Entry> = files.collect();
    files.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    record(staged, &repository, &files).await?;
    unrecorded.extend(not_recorded(&staged.git, &repository, &files).await?);
    let after = baseline::write_tree(&staged.git, &repository).await?;
    let before = staged.baseline.commit.clone();

    let files = compare(&staged.git, &repository, &[before.as_str(), after.as_str()]).await?;
    let status = status(&staged.git, &repository, staged.limits.text_bytes).await?;
    let (patch, diff) = match files.is_empty() {
        true => (None, CutText::new(Vec::new(), 0)),
        false => {
            let patch = write_patch(staged, &repository, &before, &after).await?;
            let unreadable = |error| FinishError::Patch { path: patch.path.clone(), error };
            let diff = patch.head(staged.limits.text_bytes).map_err(unreadable)?;
            (Some(patch), diff)
        }
    };
    Ok(Changes {
        files,
        patch,
        status: Some(status),
        diff: Some(diff),
        ignored_new: ignored,
        unrecorded,
        note: None,
        record: Some(Record { git: staged.git.clone(), stage: staged.stage.clone(), before, after }),
    })
}

/// Brings the index up to date with the tree. What was touched is taken out first, so that git looks at its content
/// whatever its times say.
async fn record(staged: &Staged, repository: &Repository, files: &[&Entry]) -> Result<(), GitError> {
    let untouched: HashSet<&TreePath> =
        files.iter().filter(|entry| staged.baseline.is_untouched(entry)).map(|entry| &entry.path).collect();
    let known = index_names(&staged.git, repository).await?;
    let known: HashSet<&TreePath> = known.iter().collect();
    let mut stale: Vec<&TreePath> = known.iter().copied().filter(|path| !untouched.contains(path)).collect();
    stale.sort_unstable();
    if !stale.is_empty() {
        baseline::remove(&staged.git, repository, &stale).await?;
    }
    let is_current = |path: &TreePath| untouched.contains(path) && known.contains(path);
    let fresh: Vec<&TreePath> =
        files.iter().map(|entry| &entry.path).filter(|path| !is_current(path)).collect();
    if !fresh.is_empty() {
        baseline::add(&staged.git, repository, &fresh).await?;
    }
    Ok(())
}

/// What git did not take although it is there: it has names that it keeps for itself.
async fn not_recorded(
    git: &Git,
    repository: &Repository,
    files: &[&Entry],
) -> Result<Vec<LeftOut>, GitError> {
    let recorded: HashSet<TreePath> = index_names(git, repository).await?.into_iter().collect();
    let missing = files.iter().filter(|entry| !recorded.contains(&entry.path));
    Ok(missing.map(|entry| LeftOut { path: entry.path.clone(), why: Why::Reserved }).collect())
}

async fn index_names(git: &Git, repository: &Repository) -> Result<Vec<TreePath>, GitError> {
    let list = git.output(repository, Subcommand::new(&["ls-files", "-z", "--cached"]), MAX_INDEX).await?;
    Ok(git::entries(&list).filter_map(TreePath::new).collect())
}

async fn status(git: &Git, repository: &Repository, limit: u64) -> Result<CutText, GitError> {
    let args =
        ["status", "--porcelain=v1", "--untracked-files=no", "--ignore-submodules=all", "--find-renames"];
    cut_output(git, repository, Subcommand::new(&args), limit).await
}

/// The beginning of what a command says.
pub(super) async fn cut_output(
    git: &Git,
    repository: &Repository,
    command: Subcommand<'_>,
    limit: u64,
) -> Result<CutText, GitError> {
    let (mut kept, mut total) = (Vec::new(), 0);
    git.run(repository, command, |chunk| {
        let room = usize::try_from(limit - kept.len() as u64).unwrap_or(usize::MAX);
        kept.extend_from_slice(&chunk[..chunk.len().min(room)]);
        total += chunk.len() as u64;
        Ok(())
    })
    .await?;
    Ok(CutText::new(kept, total))
}

async fn write_patch(
    staged: &Staged,
    repository: &Repository,
    before: &ObjectId,
    after: &ObjectId,
) -> Result<Patch, FinishError> {
    let path = staged.stage.patch();
    let limit = staged.limits.patch_bytes;
    let unwritable = |error| FinishError::Patch { path: path.clone(), error };
    let mut file = BufWriter::new(File::create(&path).map_err(unwritable)?);
    let mut bytes: u64 = 0;
    // Binary contents are in the patch as text, so that compressing them pays.
    let args = [&["-c", "core.compression=6"], &COMPARE[..], &["--binary", before.as_str(), after.as_str()]]
        .concat();
    let mut failure = None;
    let run = staged.git.run(repository, Subcommand::new(&args), |chunk| {
        bytes += chunk.len() as u64;
        let result = match bytes > limit {
            true => Err(FinishError::PatchTooLarge { limit }),
            false => file.write_all(chunk).map_err(unwritable),
        };
        result.map_err(|error| {
            failure = Some(error);
            GitError::TooMuch { command: "diff".into(), limit }
        })
    });
    let finished = run.await;
    if let Some(failure) = failure {
        return Err(failure);
    }
    finished?;
    file.into_inner().map_err(|error| unwritable(error.into_error()))?;
    Ok(Patch { path, bytes })
}

/// The arguments for a difference that people read: no binary contents.
pub(super) fn text_diff<'a>(states: &[&'a str], within: &[&'a str]) -> Vec<&'a str> {
    [&COMPARE[..], states, within].concat()
}

/// The changed files between two states.
pub(super) async fn compare(
    git: &Git,
    repository: &Repository,
    states: &[&str],
) -> Result<Vec<FileChange>, GitError> {
    let args = [&COMPARE[..], &["--raw", "--numstat", "-z", "--no-abbrev"], states].concat();
    let said = git.output(repository, Subcommand::new(&args), MAX_RAW).await?;
    let unreadable = |what| GitError::Answer { command: "diff".into(), what };
    let mut changes = read_changes(&said).map_err(unreadable)?;
    changes.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(changes)
}

/// One line of `--raw -z`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Raw {
    pub(super) old: Side,
    pub(super) new: Side,
    pub(super) status: u8,
    /// Where it was, if it moved.
    pub(super) from: Option<TreePath>,
    pub(super) path: TreePath,
}

/// One side of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Side {
    pub(super) mode: u32,
    pub(super) object: ObjectId,
}

/// Reads as many lines of `--raw -z` as there are, and gives the fields behind them.
pub(super) fn read_raw(said: &[u8]) -> Result<(Vec<Raw>, Vec<&[u8]>), &'static str> {
    let mut fields = said.split(|byte| *byte == 0).peekable();
    let mut raws = Vec::new();
    while let Some(line) = fields.next_if(|field| field.starts_with(b":")) {
        let line = std::str::from_utf8(&line[1..]).map_err(|_| "a line of the list is no text")?;
        let parts: Vec<&str> = line.split(' ').collect();
        let [old_mode, new_mode, old, new, status] = parts[..] else {
            return Err("a line of the list does not have five parts");
        };
        let side = |mode, object| {
            let mode = u32::from_str_radix(mode, 8).ok()?;
            Some(Side { mode, object: ObjectId::new(object)? })
        };
        let (Some(old), Some(new)) = (side(old_mode, old), side(new_mode, new)) else {
            return Err("a mode or an object of the list is none");
        };
        let status = *status.as_bytes().first().ok_or("a line of the list has no status")?;
        let mut path = || fields.next().filter(|path| !path.is_empty()).and_then(TreePath::new);
        let first = path().ok_or("a path of the list is none")?;
        let (from, path) = match status {
            b'R' | b'C' => (Some(first), path().ok_or("a path of the list is none")?),
            _ => (None, first),
        };
        raws.push(Raw { old, new, status, from, path });
    }
    Ok((raws, fields.collect()))
}

/// Reads `--raw --numstat -z`: all of the one, then all of the other, in the same order.
fn read_changes(said: &[u8]) -> Result<Vec<FileChange>, &'static str> {
    let (raws, rest) = read_raw(said)?;
    let mut rest = rest.into_iter();
    let mut changes = Vec::with_capacity(raws.len());
    for raw in raws {
        let counts = rest.next().ok_or("the counts end too early")?;
        let mut parts = counts.splitn(3, |byte| *byte == b'\t');
        let (added, deleted) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        if parts.next().is_some_and(<[u8]>::is_empty) {
            // Of a file that moved both names follow.
            let _names = (rest.next(), rest.next());
        }
        let number = |digits: &[u8]| std::str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok());
        let lines = match (added, deleted) {
            (b"-", b"-") => Lines::Binary,
            (added, deleted) => match (number(added), number(deleted)) {
                (Some(added), Some(deleted)) => Lines::Text { added, deleted },
                _ => return Err("a count is no number"),
            },
        };
        let kind = match (raw.status, raw.from) {
            (b'A', _) => ChangeKind::Added,
            (b'D', _) => ChangeKind::Deleted,
            (b'R' | b'C', Some(from)) => ChangeKind::Renamed { from },
            (b'T', _) => ChangeKind::Type,
            (b'M', _) if raw.old.object == raw.new.object => ChangeKind::Mode,
            (b'M', _) => ChangeKind::Modified,
            _ => return Err("a status is unknown"),
        };
        changes.push(FileChange { path: raw.path, kind, lines });
    }
    Ok(changes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_of_git_is_read_with_names_of_any_bytes() {
        let (a, b, none) = ("a".repeat(40), "b".repeat(40), "0".repeat(40));
        let said = [
            format!(":100644 100755 {a} {a} M\0run\0"),
            format!(":000000 100644 {none} {b} A\0:odd\tname\n\0"),
            format!(":100644 100644 {a} {b} R090\0old\0new\0"),
            format!(":100644 000000 {a} {none} D\0gone\0"),
            "0\t0\trun\0-\t-\t:odd\tname\n\0".to_owned(),
            "3\t1\t\0old\0new\0".to_owned(),
            "0\t7\tgone\0".to_owned(),
        ];
        let said = said.concat();
        let path = |text: &str| TreePath::new(text).unwrap();
        let text = |added, deleted| Lines::Text { added, deleted };
        assert_eq!(
            read_changes(said.as_bytes()).unwrap(),
            [
                FileChange { path: path("run"), kind: ChangeKind::Mode, lines: text(0, 0) },
                FileChange { path: path(":odd\tname\n"), kind: ChangeKind::Added, lines: Lines::Binary },
                FileChange {
                    path: path("new"),
                    kind: ChangeKind::Renamed { from: path("old") },
                    lines: text(3, 1)
                },
                FileChange { path: path("gone"), kind: ChangeKind::Deleted, lines: text(0, 7) },
            ]
        );
        assert_eq!(read_changes(b"").unwrap(), []);
        assert!(read_changes(b":1 2\0x\0").is_err());
    }
}
