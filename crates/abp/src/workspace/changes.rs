//! What a run changed: one line for each file, the patch on disk, and the texts that go into a receipt.

use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;

use serde::Serialize;

use super::git::Git;
use super::path::TreePath;
use super::stage::Stage;

/// What is different in a workspace from how it was prepared.
#[derive(Debug)]
pub struct Changes {
    /// One entry for each file that changed, by path.
    pub files: Vec<FileChange>,
    /// The patch, in git's format, with binary contents; `None` in place, or when nothing changed.
    pub patch: Option<Patch>,
    /// As `git status --porcelain=v1` says it; `None` in place when the root is in no repository.
    pub status: Option<CutText>,
    /// The beginning of the patch, for a receipt; `None` in place when the root is in no repository.
    pub diff: Option<CutText>,
    /// New files that the ignore rules of the baseline name. They are not in the patch.
    pub ignored_new: u64,
    /// What is there and cannot be recorded, with the reason: sockets, devices, names that git has for itself.
    pub unrecorded: Vec<LeftOut>,
    /// Why there is less above than one would expect (a repository that could not be read, say).
    pub note: Option<String>,
    /// Where the contents are; `None` in place.
    pub(super) record: Option<Record>,
}

/// Where both sides of a change can be read, in our own repository.
#[derive(Clone, Debug)]
pub(super) struct Record {
    pub(super) git: Git,
    pub(super) stage: Stage,
    pub(super) before: ObjectId,
    pub(super) after: ObjectId,
}

/// The patch of a run, on disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Patch {
    /// The file, inside the stage.
    pub path: PathBuf,
    /// Its size.
    pub bytes: u64,
}

/// One file that changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FileChange {
    /// Where it is now; where it was, if it is gone.
    pub path: TreePath,
    /// What happened to it.
    pub kind: ChangeKind,
    /// Whether the lines count: a binary file has none.
    pub lines: Lines,
}

/// What happened to a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ChangeKind {
    /// It is new.
    Added,
    /// Its contents are different; perhaps its mode as well.
    Modified,
    /// It is gone.
    Deleted,
    /// It was somewhere else; perhaps its contents are different as well.
    Renamed {
        /// Where it was.
        from: TreePath,
    },
    /// Only its executable bit is different.
    Mode,
    /// It was a file and is a symlink now, or the other way round.
    Type,
}

/// How many lines of a file changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "content", rename_all = "snake_case")]
pub enum Lines {
    /// It is text.
    Text {
        /// Lines that are new.
        added: u64,
        /// Lines that are gone.
        deleted: u64,
    },
    /// It is not.
    Binary,
}

/// Something that a copy or a patch does not have, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LeftOut {
    /// Where it is.
    pub path: TreePath,
    /// Why.
    pub why: Why,
}

/// Why something was left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// A symlink that leads out of the tree, or could.
    Escapes,
    /// A socket, a pipe or a device.
    Special,
    /// We may not read it.
    Unreadable,
    /// A name that git keeps for itself in every spelling, such as `.GIT`.
    Reserved,
    /// In too many folders, or of a path that is too long.
    TooDeep,
}

impl Why {
    /// The end of the sentence "it was left out because it is …".
    pub fn as_text(self) -> &'static str {
        match self {
            Self::Escapes => "a symlink that leads out of the tree",
            Self::Special => "a socket, a pipe or a device",
            Self::Unreadable => "not readable",
            Self::Reserved => "of a name that git keeps for itself",
            Self::TooDeep => "in too many folders, or its path is too long",
        }
    }
}

/// A text that may have been longer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CutText {
    /// As much as there may be, and then a line that says how much is missing.
    pub text: String,
    /// How many bytes are missing.
    pub cut_bytes: u64,
}

impl CutText {
    /// The first `limit` bytes of what `from` gives, which has `total` bytes. What is no text is replaced.
    pub(super) fn read(from: impl Read, limit: u64, total: u64) -> io::Result<Self> {
        let mut bytes = Vec::new();
        from.take(limit).read_to_end(&mut bytes)?;
        Ok(Self::new(bytes, total))
    }

    /// The text of `bytes`, which were `total` before they were cut.
    pub(super) fn new(bytes: Vec<u8>, total: u64) -> Self {
        let cut_bytes = total.saturating_sub(bytes.len() as u64);
        let mut bytes = bytes;
        if cut_bytes > 0 {
            // Not in the middle of a character, nor of a line if there is one.
            let end = memchr::memrchr(b'\n', &bytes).map_or(bytes.len(), |newline| newline + 1);
            bytes.truncate(end);
        }
        let cut_bytes = total.saturating_sub(bytes.len() as u64);
        let mut text = match String::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
        };
        if cut_bytes > 0 {
            text.push_str(&format!("# cut here: {cut_bytes} more bytes\n"));
        }
        Self { text, cut_bytes }
    }
}

impl Patch {
    /// The beginning of it, as text.
    pub fn head(&self, limit: u64) -> io::Result<CutText> {
        CutText::read(File::open(&self.path)?, limit, self.bytes)
    }
}

/// The name of an object in a repository: 40 or 64 hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct ObjectId(String);

impl ObjectId {
    pub(super) fn new(text: &str) -> Option<Self> {
        let fine = matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        fine.then(|| Self(text.to_ascii_lowercase()))
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    /// What git writes where there is nothing.
    pub(super) fn is_nothing(&self) -> bool {
        self.0.bytes().all(|digit| digit == b'0')
    }

    /// Whether it is one of a repository that uses SHA-256.
    pub(super) fn is_sha256(&self) -> bool {
        self.0.len() == 64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_is_too_long_ends_at_a_line_and_says_how_much_is_missing() {
        let text = b"one\ntwo\nthree\n";
        let cut = |limit| CutText::read(&text[..], limit, text.len() as u64).unwrap();
        assert_eq!(cut(14), CutText { text: "one\ntwo\nthree\n".into(), cut_bytes: 0 });
        assert_eq!(cut(13), CutText { text: "one\ntwo\n# cut here: 6 more bytes\n".into(), cut_bytes: 6 });
        assert_eq!(cut(8), CutText { text: "one\ntwo\n# cut here: 6 more bytes\n".into(), cut_bytes: 6 });
        assert_eq!(cut(7).cut_bytes, 10);
    }
}
