//! The files of a trail: what they are called, who may write them, how many there may be.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use outrigger_policy::Digest;
use outrigger_policy::audit::Head;

/// How much of the trail is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuditLimits {
    /// No file is larger; less than [`AuditLimits::LEAST_FILE_BYTES`] is read as that.
    pub file_bytes: u64,
    /// So many files, the current one included; the oldest goes when there would be one more.
    pub files: usize,
}

impl AuditLimits {
    /// Eight files of 8 MiB: some 200,000 decisions.
    pub const USUAL: Self = Self { file_bytes: 8 << 20, files: 8 };
    /// Room for the record that begins a file and a few more.
    pub const LEAST_FILE_BYTES: u64 = 4096;

    pub(super) fn sane(self) -> Self {
        Self { file_bytes: self.file_bytes.max(Self::LEAST_FILE_BYTES), files: self.files.max(1) }
    }
}

/// Why a trail cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum AuditError {
    /// Another host writes it.
    #[error("the audit trail {} is being written by {holder}", .dir.display())]
    Locked {
        /// Where it is.
        dir: PathBuf,
        /// Who has it, as far as it said.
        holder: String,
    },
    /// A file or folder cannot be used.
    #[error("cannot {verb} {}: {source}", .path.display())]
    Io {
        /// What was tried.
        verb: &'static str,
        /// With what.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
}

impl AuditError {
    pub(super) fn io(verb: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { verb, path, source }
    }
}

/// The folder of a trail.
///
/// ```text
/// audit.log         the current file
/// audit.<seq>.log   full ones, named after their last record
/// audit.head        how far the trail certainly reached: its number and hash
/// audit.torn        what a crash left of a last line
/// audit.lock        held by the one host that writes
/// ```
#[derive(Clone, Debug)]
pub(super) struct Folder(PathBuf);

impl Folder {
    pub(super) fn new(dir: &Path) -> Self {
        Self(dir.to_owned())
    }

    pub(super) fn create(dir: &Path) -> Result<Self, AuditError> {
        let made = DirBuilder::new().recursive(true).mode(0o700).create(dir);
        made.map_err(AuditError::io("make the folder", dir))?;
        Ok(Self::new(dir))
    }

    /// Becomes the only writer until the file is dropped.
    pub(super) fn lock(&self) -> Result<File, AuditError> {
        let path = self.0.join("audit.lock");
        let opened = OpenOptions::new().create(true).read(true).append(true).mode(0o600).open(&path);
        let mut file = opened.map_err(AuditError::io("open", &path))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut holder = String::new();
                // Who it is only helps people; that it is locked is what counts.
                let _ = file.take(32).read_to_string(&mut holder);
                let holder = match holder.trim() {
                    "" => "another host".to_owned(),
                    pid => format!("process {pid}"),
                };
                return Err(AuditError::Locked { dir: self.0.clone(), holder });
            }
            Err(TryLockError::Error(source)) => return Err(AuditError::Io { verb: "lock", path, source }),
        }
        let named = file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id()));
        named.map_err(AuditError::io("write", &path))?;
        Ok(file)
    }

    pub(super) fn current(&self) -> PathBuf {
        self.0.join("audit.log")
    }

    pub(super) fn torn(&self) -> PathBuf {
        self.0.join("audit.torn")
    }

    pub(super) fn open_current(&self) -> io::Result<File> {
        OpenOptions::new().create(true).append(true).mode(0o600).open(self.current())
    }

    fn full(&self, last: u64) -> PathBuf {
        self.0.join(format!("audit.{last:020}.log"))
    }

    /// The full files, oldest first.
    pub(super) fn full_files(&self) -> io::Result<Vec<PathBuf>> {
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.0)? {
            let name = entry?.file_name();
            let middle = name.to_str().and_then(|name| name.strip_prefix("audit.")?.strip_suffix(".log"));
            if middle.is_some_and(|middle| middle.len() == 20 && middle.bytes().all(|b| b.is_ascii_digit())) {
                found.push(self.0.join(name));
            }
        }
        found.sort();
        Ok(found)
    }

    /// Puts the current file, whose last record is `last`, among the full ones. Room is made first, so that there are never
    /// more files than there may be, not even for a moment.
    pub(super) fn rotate(&self, last: u64, limits: AuditLimits) -> io::Result<()> {
        let full = self.full_files()?;
        let keep = limits.files.saturating_sub(2);
        for path in full.iter().take(full.len().saturating_sub(keep)) {
            fs::remove_file(path)?;
        }
        if limits.files < 2 {
            return fs::remove_file(self.current());
        }
        fs::rename(self.current(), self.full(last))
    }

    pub(super) fn sync(&self) -> io::Result<()> {
        File::open(&self.0)?.sync_all()
    }

    /// How far the trail certainly reached; none when nobody wrote it down, or only half of it.
    pub(super) fn read_head(&self) -> Option<Head> {
        let text = fs::read_to_string(self.0.join("audit.head")).ok()?;
        let (seq, digest) = text.strip_suffix('\n')?.split_once(' ')?;
        Some(Head { seq: seq.parse().ok()?, digest: digest.parse::<Digest>().ok()? })
    }

    /// Writes down how far the trail reaches. The lines are on the disk already, so this may come late but never early.
    pub(super) fn write_head(&self, head: Head) -> io::Result<()> {
        let (draft, path) = (self.0.join("audit.head.new"), self.0.join("audit.head"));
        let mut file = OpenOptions::new().create(true).write(true).truncate(true).mode(0o600).open(&draft)?;
        file.write_all(format!("{} {}\n", head.seq, head.digest).as_bytes())?;
        fs::rename(draft, path)
    }
}

/// What lines are written to. In tests it can be full.
#[derive(Debug, Default)]
pub(super) struct Disk {
    #[cfg(test)]
    pub(super) room: Option<usize>,
}

impl Disk {
    pub(super) fn write(&mut self, mut file: &File, bytes: &[u8]) -> io::Result<()> {
        #[cfg(test)]
        if let Some(room) = &mut self.room {
            let taken = bytes.len().min(*room);
            *room -= taken;
            file.write_all(&bytes[..taken])?;
            return if taken < bytes.len() { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) };
        }
        file.write_all(bytes)
    }
}
