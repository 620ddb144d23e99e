//! The private folder of one staged workspace: made under a lock, kept or removed, and found again when its host died.
//!
//! ```text
//! <stages>/<name>/        0700
//!     lock                locked while the host that made it lives
//!     stage.json          where it was copied from, and when
//!     kept                there when it is to stay: why
//!     base.git/           our repository: the baseline, and what was found at the end
//!     rules/              the ignore rules of the baseline, where no run can edit them
//!     tree/               what the run sees; nothing else of the stage is its business
//!     changes.patch
//! ```

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rustix::fs::FlockOperation;
use serde::{Deserialize, Serialize};

/// What a stage is called: usually the id of its run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StageName(String);

/// A text that cannot be the name of a stage.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{text:?} cannot name a stage: 1 to {MAX_NAME} letters, digits, `-`, `_` and `.` are allowed, no `.` at the beginning"
)]
pub struct NotAStageName {
    text: String,
}

/// The longest name.
const MAX_NAME: usize = 128;

impl StageName {
    /// The name of this text. It becomes a folder, so only plain characters may be in it.
    pub fn new(text: &str) -> Result<Self, NotAStageName> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        let fine = (1..=MAX_NAME).contains(&text.len()) && !text.starts_with('.') && text.bytes().all(plain);
        match fine {
            true => Ok(Self(text.to_owned())),
            false => Err(NotAStageName { text: text.chars().take(MAX_NAME).collect() }),
        }
    }

    /// Its text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// One stage. Clones are the same stage; its lock is held until the last one is gone.
#[derive(Clone, Debug)]
pub(super) struct Stage {
    folder: PathBuf,
    _lock: Arc<File>,
}

/// A stage could not be made, read or removed.
#[derive(Debug, thiserror::Error)]
#[error("{doing} `{}` failed: {error}", path.display())]
pub struct StageError {
    pub(super) doing: &'static str,
    pub(super) path: PathBuf,
    #[source]
    pub(super) error: io::Error,
}

/// What is written down about a stage, for people and for the host that finds it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StageFacts {
    /// The version of this file.
    pub version: u32,
    /// What was copied.
    pub source: PathBuf,
    /// The process that made it.
    pub pid: u32,
    /// When, in seconds since 1970.
    pub made_at: u64,
}

/// The version of [`StageFacts`] that we write.
const FACTS_VERSION: u32 = 1;

/// How a stage is called before it is locked; no name begins like this.
const UNFINISHED: &str = ".new-";

/// A host is in that state for microseconds; a folder that is for this long was left in it.
const ABANDONED_AFTER: Duration = Duration::from_secs(60);

const LOCK: &str = "lock";
const FACTS: &str = "stage.json";
const KEPT: &str = "kept";

impl Stage {
    /// Makes and locks the folder.
    pub(super) fn make(stages: &Path, name: &StageName, source: &Path) -> Result<Self, StageError> {
        let folder = stages.join(name.as_str());
        fs::create_dir_all(stages).map_err(failed("making", stages))?;
        if fs::symlink_metadata(&folder).is_ok() {
            return Err(failed("making", &folder)(io::ErrorKind::AlreadyExists.into()));
        }
        // Under another name until it is locked, so that nobody clears it up half made.
        let unfinished = stages.join(format!("{UNFINISHED}{}-{}", std::process::id(), name.as_str()));
        private_folder(&unfinished)?;
        let lock_path = unfinished.join(LOCK);
        let lock = File::create(&lock_path).map_err(failed("making", &lock_path))?;
        rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive)
            .map_err(|errno| failed("locking", &lock_path)(errno.into()))?;
        let made_at = SystemTime::UNIX_EPOCH.elapsed().map_or(0, |since| since.as_secs());
        let facts = StageFacts {
            version: FACTS_VERSION,
            source: source.to_owned(),
            pid: std::process::id(),
            made_at,
        };
        let facts_path = unfinished.join(FACTS);
        let text =
            serde_json::to_vec(&facts).map_err(|error| failed("writing", &facts_path)(error.into()))?;
        fs::write(&facts_path, text).map_err(failed("writing", &facts_path))?;
        let stage = Self { folder: folder.clone(), _lock: Arc::new(lock) };
        fs::rename(&unfinished, &folder).map_err(failed("making", &folder))?;
        for inner in [stage.tree(), stage.rules(), stage.repository()] {
            private_folder(&inner)?;
        }
        Ok(stage)
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// What the run sees.
    pub(super) fn tree(&self) -> PathBuf {
        self.folder.join("tree")
    }

    pub(super) fn rules(&self) -> PathBuf {
        self.folder.join("rules")
    }

    pub(super) fn repository(&self) -> PathBuf {
        self.folder.join("base.git")
    }

    pub(super) fn patch(&self) -> PathBuf {
        self.folder.join("changes.patch")
    }

    /// Marks it, so that no sweep removes it.
    pub(super) fn keep(&self, why: &str) -> Result<(), StageError> {
        let mark = self.folder.join(KEPT);
        fs::write(&mark, why).map_err(failed("writing", &mark))
    }

    /// Removes it with everything in it.
    pub(super) fn remove(self) -> Result<(), StageError> {
        remove(&self.folder)
    }
}

/// The folder that has all stages.
#[derive(Clone, Debug)]
pub struct Stages {
    folder: PathBuf,
}

/// A stage as it was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Found {
    /// Its name.
    pub name: String,
    /// Its folder.
    pub folder: PathBuf,
    /// What was written down about it, if that can be read.
    pub facts: Option<StageFacts>,
    /// Whose it is.
    pub state: StageState,
}

/// Whose a stage is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum StageState {
    /// Of a host that lives.
    Live,
    /// Nobody's, and it is to stay.
    Kept {
        /// Why.
        why: String,
    },
    /// Of a host that died.
    Abandoned,
}

/// Which stages of dead hosts a sweep removes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sweep {
    /// None: it only looks.
    Look,
    /// Those that were made at least this long ago. What somebody wanted to keep stays.
    Abandoned {
        /// How long ago.
        for_at_least: Duration,
    },
}

/// What a sweep found and did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Swept {
    /// What is there now, by name.
    pub there: Vec<Found>,
    /// What was removed.
    pub removed: Vec<Found>,
}

impl Stages {
    /// The stages of this folder, which need not exist.
    pub fn of(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }

    /// Looks at every stage, and removes what dead hosts left if it is told to. Stages of hosts that live are not touched.
    pub fn sweep(&self, sweep: Sweep) -> Result<Swept, StageError> {
        let mut swept = Swept { there: Vec::new(), removed: Vec::new() };
        let listing = match fs::read_dir(&self.folder) {
            Ok(listing) => listing,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(swept),
            Err(error) => return Err(failed("reading", &self.folder)(error)),
        };
        for entry in listing {
            let entry = entry.map_err(failed("reading", &self.folder))?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            if !is_folder {
                continue;
            }
            if name.starts_with(UNFINISHED) {
                remove_unfinished(&entry.path());
                continue;
            }
            if StageName::new(&name).is_err() {
                continue;
            }
            // The lock is held until the decision is carried out.
            let Some((found, _lock)) = look(name, entry.path())? else { continue };
            match (&found.state, sweep) {
                (StageState::Abandoned, Sweep::Abandoned { for_at_least })
                    if age(&found.folder).is_some_and(|age| age >= for_at_least) =>
                {
                    remove(&found.folder)?;
                    swept.removed.push(found);
                }
                (StageState::Abandoned | StageState::Kept { .. } | StageState::Live, _) => {
                    swept.there.push(found)
                }
            }
        }
        swept.there.sort_by(|a, b| a.name.cmp(&b.name));
        swept.removed.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(swept)
    }

    /// Removes a stage that no host uses, also one that was kept. Says whether there was one.
    pub fn remove(&self, name: &StageName) -> Result<Removal, StageError> {
        let folder = self.folder.join(name.as_str());
        match look(name.as_str().to_owned(), folder)? {
            None => Ok(Removal::NotThere),
            Some((Found { state: StageState::Live, .. }, _)) => Ok(Removal::InUse),
            Some((found, _lock)) => {
                remove(&found.folder)?;
                Ok(Removal::Done)
            }
        }
    }
}

/// What became of a request to remove a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removal {
    /// It is gone.
    Done,
    /// There is none of that name.
    NotThere,
    /// Its host lives.
    InUse,
}

/// A stage and, if no host holds it, its lock.
fn look(name: String, folder: PathBuf) -> Result<Option<(Found, Option<File>)>, StageError> {
    let path = folder.join(LOCK);
    let lock = match File::open(&path) {
        Ok(lock) => lock,
        // No stage, or somebody else has just removed it.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed("opening", &path)(error)),
    };
    let held = match rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Some(lock),
        Err(rustix::io::Errno::WOULDBLOCK) => None,
        Err(errno) => return Err(failed("locking", &path)(errno.into())),
    };
    let state = match (&held, fs::read_to_string(folder.join(KEPT))) {
        (None, _) => StageState::Live,
        (Some(_), Ok(why)) => StageState::Kept { why },
        (Some(_), Err(_)) => StageState::Abandoned,
    };
    let facts = fs::read(folder.join(FACTS)).ok().and_then(|text| serde_json::from_slice(&text).ok());
    Ok(Some((Found { name, folder, facts, state }, held)))
}

fn remove_unfinished(folder: &Path) {
    if age(folder).is_some_and(|age| age > ABANDONED_AFTER) {
        // If it cannot be removed now, the next sweep tries again.
        let _ = fs::remove_dir_all(folder);
    }
}

/// Since when nothing was made or removed directly in the folder: since it was made, or kept.
fn age(folder: &Path) -> Option<Duration> {
    fs::symlink_metadata(folder).ok()?.modified().ok()?.elapsed().ok()
}

/// Removes a folder whatever modes a run gave to the folders in it.
pub(super) fn remove(folder: &Path) -> Result<(), StageError> {
    match fs::remove_dir_all(folder) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            open_folders(folder);
            fs::remove_dir_all(folder).map_err(failed("removing", folder))
        }
        Err(error) => Err(failed("removing", folder)(error)),
    }
}

/// Gives us every right on the folder and on those below it, as far as they are ours. No symlink is followed.
fn open_folders(folder: &Path) {
    let mut waiting = vec![folder.to_owned()];
    while let Some(folder) = waiting.pop() {
        let is_folder = fs::symlink_metadata(&folder).is_ok_and(|facts| facts.is_dir());
        if !is_folder {
            continue;
        }
        // What cannot be changed here makes the removal fail, with the name of the culprit.
        let _ = fs::set_permissions(&folder, fs::Permissions::from_mode(0o700));
        let inner = fs::read_dir(&folder).into_iter().flatten().flatten();
        waiting.extend(
            inner.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).map(|entry| entry.path()),
        );
    }
}

fn private_folder(path: &Path) -> Result<(), StageError> {
    fs::DirBuilder::new().mode(0o700).create(path).map_err(failed("making", path))
}

/// What a folder is, beyond its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FolderIdentity {
    device: u64,
    inode: u64,
}

impl FolderIdentity {
    /// The identity of the folder at this path, which must not be a symlink to one.
    pub(super) fn of(path: &Path) -> io::Result<Self> {
        let facts = fs::symlink_metadata(path)?;
        match facts.is_dir() {
            true => Ok(Self { device: facts.dev(), inode: facts.ino() }),
            false => Err(io::ErrorKind::NotADirectory.into()),
        }
    }

    /// The identity of what these facts are about.
    pub(super) fn from_stat(stat: &rustix::fs::Stat) -> Self {
        Self { device: stat.st_dev, inode: stat.st_ino }
    }
}

pub(super) fn failed(doing: &'static str, path: &Path) -> impl Fn(io::Error) -> StageError {
    let path = path.to_owned();
    move |error| StageError { doing, path: path.clone(), error }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stage_is_named_by_plain_characters_only() {
        let longest = "a".repeat(MAX_NAME);
        for good in ["r", "0f8e-4", "run_1.retry", &longest] {
            assert_eq!(StageName::new(good).unwrap().as_str(), good);
        }
        let too_long = "a".repeat(MAX_NAME + 1);
        for bad in ["", ".", "..", ".hidden", "a/b", "a b", "ä", "a\n", &too_long] {
            assert!(StageName::new(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_stage_of_a_living_host_is_not_touched_and_what_a_dead_one_left_is_found() {
        let place = tempfile::tempdir().unwrap();
        let stages = Stages::of(place.path().join("stages"));
        let make = |name: &str| {
            Stage::make(&place.path().join("stages"), &StageName::new(name).unwrap(), Path::new("/src"))
                .unwrap()
        };
        let live = make("live");
        let kept = make("kept");
        kept.keep("the run failed").unwrap();
        // A file lock belongs to the opened file, so dropping it is what the end of a host is.
        drop(kept);
        drop(make("abandoned"));

        let now = Sweep::Abandoned { for_at_least: Duration::ZERO };
        let states = |found: &[Found]| {
            found.iter().map(|found| (found.name.clone(), found.state.clone())).collect::<Vec<_>>()
        };
        let kept_state = || ("kept".to_owned(), StageState::Kept { why: "the run failed".into() });
        let live_state = || ("live".to_owned(), StageState::Live);
        let looked = stages.sweep(Sweep::Look).unwrap();
        assert_eq!(
            states(&looked.there),
            [("abandoned".to_owned(), StageState::Abandoned), kept_state(), live_state()]
        );
        assert_eq!(looked.there[0].facts.as_ref().unwrap().source, Path::new("/src"));
        let young = stages.sweep(Sweep::Abandoned { for_at_least: Duration::from_secs(3600) }).unwrap();
        assert_eq!(young.removed, []);
        let swept = stages.sweep(now).unwrap();
        assert_eq!(states(&swept.there), [kept_state(), live_state()]);
        assert_eq!(swept.removed.len(), 1);
        assert!(!place.path().join("stages/abandoned").exists() && live.tree().exists());

        assert_eq!(stages.remove(&StageName::new("live").unwrap()).unwrap(), Removal::InUse);
        assert_eq!(stages.remove(&StageName::new("kept").unwrap()).unwrap(), Removal::Done);
        assert_eq!(stages.remove(&StageName::new("kept").unwrap()).unwrap(), Removal::NotThere);
    }

    #[test]
    fn a_stage_is_private_and_there_is_one_of_each_name() {
        let place = tempfile::tempdir().unwrap();
        let name = StageName::new("r").unwrap();
        let stage = Stage::make(place.path(), &name, Path::new("/src")).unwrap();
        assert_eq!(fs::metadata(stage.folder()).unwrap().mode() & 0o777, 0o700);
        let error = Stage::make(place.path(), &name, Path::new("/src")).unwrap_err();
        assert_eq!(error.error.kind(), io::ErrorKind::AlreadyExists);
    }
}
