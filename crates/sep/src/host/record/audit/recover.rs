//! Finding the end of a trail that somebody may have been killed while writing.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use outrigger_policy::audit::{self, Head};

use super::files::{AuditError, Folder};

/// Where a trail goes on, and what has to be noted about its end.
#[derive(Debug)]
pub(super) struct Recovered {
    pub(super) head: Head,
    /// The current file, cut to whole lines.
    pub(super) file: File,
    pub(super) length: u64,
    pub(super) notes: Vec<Note>,
}

/// What was wrong with the end of a trail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Note {
    /// The last line was not whole; it was moved aside.
    Torn,
    /// The trail had reached further: so many records are missing.
    Missing(u64),
}

pub(super) fn recover(folder: &Folder) -> Result<Recovered, AuditError> {
    let path = folder.current();
    let file = folder.open_current().map_err(AuditError::io("open", &path))?;
    let bytes = fs::read(&path).map_err(AuditError::io("read", &path))?;
    let mut notes = Vec::new();
    let (end, last) = last_record(&bytes);
    if end < bytes.len() {
        set_aside(&folder.torn(), &bytes[end..]).map_err(AuditError::io("write", &folder.torn()))?;
        file.set_len(end as u64).map_err(AuditError::io("cut", &path))?;
        notes.push(Note::Torn);
    }
    let head = match last {
        Some(record) => Head { seq: record.seq, digest: record.digest },
        None => last_full(folder)?,
    };
    if let Some(known) = folder.read_head()
        && known.seq > head.seq
    {
        notes.push(Note::Missing(known.seq - head.seq));
    }
    Ok(Recovered { head, file, length: end as u64, notes })
}

/// Where the last line that a chain wrote ends, and what it is. What comes after it was not written whole.
fn last_record(bytes: &[u8]) -> (usize, Option<audit::Record>) {
    let mut end = bytes.len();
    while end > 0 {
        let begin = bytes[..end - 1].iter().rposition(|byte| *byte == b'\n').map_or(0, |newline| newline + 1);
        if let Some(line) = bytes[begin..end].strip_suffix(b"\n")
            && let Ok(record) = audit::read(line)
        {
            return (end, Some(record));
        }
        end = begin;
    }
    (0, None)
}

/// The end of the newest full file, for a host that was killed between closing one file and beginning the next.
fn last_full(folder: &Folder) -> Result<Head, AuditError> {
    let path = folder.current();
    let full = folder.full_files().map_err(AuditError::io("list the files beside", &path))?;
    for path in full.iter().rev() {
        let bytes = fs::read(path).map_err(AuditError::io("read", path))?;
        if let (_, Some(record)) = last_record(&bytes) {
            return Ok(Head { seq: record.seq, digest: record.digest });
        }
    }
    Ok(Head::EMPTY)
}

fn set_aside(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().create(true).write(true).truncate(true).mode(0o600).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}
