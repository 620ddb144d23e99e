//! A folder of receipts that form a chain: each names the one before it, whoever writes them and how many at once.
//!
//! ```text
//! <run>.json         a receipt
//! <run>.trace.part   the events of a run that is under way, or was when its host was killed
//! head               the newest receipt, and while one is being put in place, that one too
//! lock               held while the head changes
//! ```

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use outrigger_policy::Digest;
use serde::{Deserialize, Serialize};

use super::record::RecordError;
use crate::protocol::RunId;

/// How much the events of one run may take on disk, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpoolLimit(pub u64);

impl SpoolLimit {
    /// 4 GiB.
    pub const USUAL: Self = Self(4 << 30);
}

/// A folder of receipts.
#[derive(Clone, Debug)]
pub struct Folder {
    path: PathBuf,
    limit: SpoolLimit,
}

/// What the file `head` says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Head {
    version: u32,
    /// The newest receipt.
    sha256: Option<Digest>,
    /// The one that was about to be put in place. It is the newest if it is there.
    next: Option<Next>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Next {
    sha256: Digest,
    file: String,
}

impl Folder {
    /// Opens a folder, and makes it if there is none. Only this user can read what is put there.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn open(path: impl Into<PathBuf>, limit: SpoolLimit) -> Result<Self, RecordError> {
        let path = path.into();
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&path)
            .map_err(|source| RecordError::io("make the folder", &path, source))?;
        Ok(Self { path, limit })
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The receipt of a run.
    #[must_use]
    pub fn receipt(&self, run: &RunId) -> PathBuf {
        self.beside(run, "json")
    }

    /// A file of a run beside its receipt.
    #[must_use]
    pub fn beside(&self, run: &RunId, ending: &str) -> PathBuf {
        self.path.join(format!("{}.{ending}", file_stem(run)))
    }

    /// The hash of the newest receipt; none if there is none.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn newest(&self) -> Result<Option<Digest>, RecordError> {
        let _lock = self.lock()?;
        self.head()
    }

    /// The runs whose events were left by a host that was killed, with the names of their files.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub fn left_over(&self) -> Result<Vec<PathBuf>, RecordError> {
        let failed = |source| RecordError::io("read the folder", &self.path, source);
        let mut found = Vec::new();
        for entry in std::fs::read_dir(&self.path).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            let Some(stem) = path.to_str().and_then(|name| name.strip_suffix(".trace.part")) else {
                continue;
            };
            // One that is locked belongs to somebody who is alive.
            if !File::open(&path).is_ok_and(|file| file.try_lock().is_ok()) {
                continue;
            }
            // It was sealed, and the host was killed before it had cleared up. A second receipt would take the place of the first.
            if Path::new(&format!("{stem}.json")).exists() {
                std::fs::remove_file(&path).map_err(|source| RecordError::io("remove", &path, source))?;
                continue;
            }
            found.push(path);
        }
        found.sort();
        Ok(found)
    }

    pub(super) fn limit(&self) -> SpoolLimit {
        self.limit
    }

    pub(super) fn part(&self, run: &RunId) -> PathBuf {
        self.beside(run, "trace.part")
    }

    /// Holds the chain until the guard goes.
    pub(super) fn lock(&self) -> Result<File, RecordError> {
        let path = self.path.join("lock");
        let opened = OpenOptions::new().create(true).append(true).mode(0o600).open(&path);
        let file = opened.map_err(|source| RecordError::io("open the lock", &path, source))?;
        file.lock().map_err(|source| RecordError::io("lock", &path, source))?;
        Ok(file)
    }

    /// The newest receipt. Only while the lock is held.
    pub(super) fn head(&self) -> Result<Option<Digest>, RecordError> {
        let path = self.path.join("head");
        let text = match std::fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(RecordError::io("read", &path, source)),
        };
        let bad = |why: String| RecordError::BadHead { path: path.clone(), why };
        let head: Head = serde_json::from_slice(&text).map_err(|error| bad(error.to_string()))?;
        if head.version != 1 {
            return Err(bad(format!("it is of version {}", head.version)));
        }
        Ok(match head.next {
            Some(next) if self.path.join(&next.file).exists() => Some(next.sha256),
            Some(_) | None => head.sha256,
        })
    }

    /// Puts a finished draft in place as the receipt after `previous`. Only while the lock is held. A crash at any moment
    /// leaves a chain without a fork: the intention is written before the receipt gets its name.
    pub(super) fn publish(
        &self,
        draft: &Path,
        receipt: &Path,
        previous: Option<Digest>,
        sha256: Digest,
    ) -> Result<(), RecordError> {
        let file = receipt.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        self.write_head(&Head { version: 1, sha256: previous, next: Some(Next { sha256, file }) })?;
        std::fs::rename(draft, receipt).map_err(|source| RecordError::io("name", receipt, source))?;
        self.sync()?;
        self.write_head(&Head { version: 1, sha256: Some(sha256), next: None })
    }

    fn write_head(&self, head: &Head) -> Result<(), RecordError> {
        let (draft, path) = (self.path.join("head.draft"), self.path.join("head"));
        let written = (|| -> io::Result<()> {
            let mut file =
                OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&draft)?;
            file.write_all(super::head::text(head).as_bytes())?;
            file.sync_all()?;
            std::fs::rename(&draft, &path)
        })();
        written.map_err(|source| RecordError::io("write", &path, source))?;
        self.sync()
    }

    pub(super) fn sync(&self) -> Result<(), RecordError> {
        let synced = File::open(&self.path).and_then(|folder| folder.sync_all());
        synced.map_err(|source| RecordError::io("write out", &self.path, source))
    }
}

/// The name of a run as the name of a file: a UUID in its one spelling, anything else by its hash, because it comes from
/// outside.
fn file_stem(run: &RunId) -> String {
    let name = run.canonical();
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    if !name.is_empty() && name.len() <= 64 && name.bytes().all(is_plain) {
        name.into_owned()
    } else {
        format!("run-{}", &Digest::of(name.as_bytes()).to_string()[..32])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_run_cannot_leave_the_folder() {
        for (run, expected) in [
            ("1435D8A3B6694B7582D5DF8E55E2C877", "1435d8a3-b669-4b75-82d5-df8e55e2c877"),
            ("run_1", "run_1"),
            ("../x", "run-"),
            ("", "run-"),
            ("a/b", "run-"),
            ("head.draft", "run-"),
        ] {
            let stem = file_stem(&RunId::new(run));
            assert!(stem.starts_with(expected) && !stem.contains(['/', '.']), "{run}: {stem}");
        }
        assert_eq!(file_stem(&RunId::new("a".repeat(64))).len(), 64);
        assert_eq!(file_stem(&RunId::new("a".repeat(65))).len(), 36);
    }

    #[test]
    fn a_crash_while_a_receipt_is_put_in_place_leaves_one_newest_receipt() {
        let temporary = tempfile::tempdir().unwrap();
        let folder = Folder::open(temporary.path(), SpoolLimit::USUAL).unwrap();
        let (old, new) = (Digest::of(b"old"), Digest::of(b"new"));
        let next = Some(Next { sha256: new, file: "n.json".into() });
        folder.write_head(&Head { version: 1, sha256: Some(old), next }).unwrap();
        assert_eq!(folder.newest().unwrap(), Some(old), "it never got its name");
        std::fs::write(temporary.path().join("n.json"), "{}").unwrap();
        assert_eq!(folder.newest().unwrap(), Some(new), "it got its name, and then the machine stopped");
    }
}
