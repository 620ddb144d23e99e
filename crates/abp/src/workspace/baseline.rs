//! What a staged tree was like before the run, in a repository of ours.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io;
use std::path::Path;

use super::beneath::{self, Print, Root};
use super::changes::{LeftOut, ObjectId};
use super::git::{Git, GitError, Repository, Subcommand};
use super::path::TreePath;
use super::scan::{Entry, Tracked, What};

/// The recorded state.
#[derive(Debug)]
pub(super) struct Baseline {
    /// The commit that has it.
    pub(super) commit: ObjectId,
    /// Every file and symlink of it.
    pub(super) files: Tracked,
    /// How to tell that one of them was not touched.
    prints: HashMap<TreePath, Print>,
}

/// Puts new contents into one pack instead of a file each, without looking for anything to save: twenty thousand small
/// files would otherwise be copied a second time, file by file.
pub(super) const IN_A_PACK: [&str; 2] = ["-c", "core.bigFileThreshold=1"];

/// The most that a command says that names one object.
const ONE_LINE: u64 = 4096;

impl Baseline {
    /// Records what was copied.
    pub(super) async fn record(
        git: &Git,
        repository: &Repository,
        entries: &[Entry],
        not_copied: &[LeftOut],
    ) -> Result<Self, GitError> {
        let not_copied: HashSet<&TreePath> = not_copied.iter().map(|left_out| &left_out.path).collect();
        let files = entries.iter().filter(|entry| match entry.what {
            What::Folder { .. } => false,
            What::File { .. } | What::Symlink { .. } => !not_copied.contains(&entry.path),
        });
        let mut files: Vec<&TreePath> = files.map(|entry| &entry.path).collect();
        // Git is much faster when it is told in its own order.
        files.sort_unstable();
        add(git, repository, &files).await?;
        let tree = write_tree(git, repository).await?;
        let args = ["commit-tree", tree.as_str(), "-m", "baseline"];
        let said = git.output(repository, Subcommand::new(&args), ONE_LINE).await?;
        let commit = object(&said, "commit-tree")?;
        fs::write(repository.folder.join("refs/heads/main"), format!("{}\n", commit.as_str()))
            .map_err(|error| GitError::Io { what: "reference", error })?;
        let prints = prints(repository, &files).map_err(|error| GitError::Io { what: "tree", error })?;
        Ok(Self { commit, files: Tracked::new(files.into_iter().cloned()), prints })
    }

    /// Whether a file is certainly as it was recorded.
    pub(super) fn is_untouched(&self, entry: &Entry) -> bool {
        self.prints.get(&entry.path) == Some(&entry.print)
    }
}

fn prints(repository: &Repository, files: &[&TreePath]) -> io::Result<HashMap<TreePath, Print>> {
    let root = Root::open(&repository.tree)?;
    let mut prints = HashMap::with_capacity(files.len());
    let mut current = None;
    for file in files {
        // They are sorted, so most of them are in the folder of the one before.
        let parent = file.parent();
        let folder = match current.take() {
            Some((path, folder)) if path == parent => folder,
            Some(_) | None => root.folder_of(file)?,
        };
        prints.insert((*file).clone(), Print::of(&beneath::stat(&folder, file.name())?));
        current = Some((parent, folder));
    }
    Ok(prints)
}

/// Tells git that these files are as they are in its tree now.
pub(super) async fn add(git: &Git, repository: &Repository, files: &[&TreePath]) -> Result<(), GitError> {
    let [flag, value] = IN_A_PACK;
    let args = [flag, value, "update-index", "-z", "--add", "--replace", "--stdin"];
    tell(git, repository, &args, files).await
}

/// Tells git that these files are gone, without letting it look: a folder on the way may be a symlink now.
pub(super) async fn remove(git: &Git, repository: &Repository, files: &[&TreePath]) -> Result<(), GitError> {
    tell(git, repository, &["update-index", "-z", "--force-remove", "--stdin"], files).await
}

async fn tell(
    git: &Git,
    repository: &Repository,
    args: &[&str],
    files: &[&TreePath],
) -> Result<(), GitError> {
    let mut input = Vec::new();
    for file in files {
        input.extend_from_slice(file.as_bytes());
        input.push(0);
    }
    git.output(repository, Subcommand { args, input: &input }, 0).await.map(drop)
}

/// Makes a tree object of what git was told.
pub(super) async fn write_tree(git: &Git, repository: &Repository) -> Result<ObjectId, GitError> {
    object(&git.output(repository, Subcommand::new(&["write-tree"]), ONE_LINE).await?, "write-tree")
}

fn object(said: &[u8], command: &str) -> Result<ObjectId, GitError> {
    let id = std::str::from_utf8(said).ok().and_then(|text| ObjectId::new(text.trim()));
    id.ok_or_else(|| GitError::Answer {
        command: command.to_owned(),
        what: "it is not the name of an object",
    })
}

/// Makes the staged tree a repository of its own, with the baseline as its one commit. It shares no file with ours, so
/// that nothing that is done to it changes what we know.
pub(super) fn give_repository(ours: &Repository, baseline: &Baseline) -> io::Result<()> {
    let own = Repository { folder: ours.tree.join(".git"), ..ours.clone() };
    fs::create_dir(&own.folder)?;
    own.make(Some(&baseline.commit))?;
    // It is the agent's: git with all its usual conveniences, and no attributes of ours.
    let version = if baseline.commit.is_sha256() { "1" } else { "0" };
    let mut config = format!(
        "[core]\n\trepositoryformatversion = {version}\n\tfilemode = true\n\tbare = false\n\tlogallrefupdates = true\n"
    );
    if baseline.commit.is_sha256() {
        config.push_str("[extensions]\n\tobjectFormat = sha256\n");
    }
    fs::write(own.folder.join("config"), config)?;
    fs::remove_file(own.folder.join("info/attributes"))?;
    fs::write(own.folder.join("refs/heads/main"), format!("{}\n", baseline.commit.as_str()))?;
    copy_folder(&ours.folder.join("objects"), &own.folder.join("objects"))?;
    for file in ["index", "info/exclude"] {
        match fs::copy(ours.folder.join(file), own.folder.join(file)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            other => drop(other?),
        }
    }
    Ok(())
}

/// Copies a folder that only git has written to: folders and files.
fn copy_folder(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        match entry.file_type()?.is_dir() {
            true => copy_folder(&entry.path(), &target)?,
            false => drop(fs::copy(entry.path(), target)?),
        }
    }
    Ok(())
}
