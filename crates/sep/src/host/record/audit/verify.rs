//! Checking a trail that is on the disk, by anybody, while a host writes it or after it was killed.

use std::cell::RefCell;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use outrigger_policy::audit::{self, Fault, Head};
use serde::Serialize;

use super::files::Folder;

/// A trail without a fault.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Verified {
    /// The number of its last record; 0 for an empty trail.
    pub last: u64,
    /// The hash of its last record.
    pub head: String,
    /// The number of the first record that is kept; 0 for an empty trail.
    pub first: u64,
    /// How many records were checked.
    pub records: usize,
    /// In how many files.
    pub files: usize,
    /// Bytes after the last whole line: what a crash left, which the next start moves aside.
    pub torn_bytes: usize,
}

/// A trail with a fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Broken {
    /// A line is not what was written.
    #[error("{}, line {line}: {fault}", .file.display())]
    Line {
        /// In which file.
        file: PathBuf,
        /// Which line of it, from 1.
        line: usize,
        /// What is wrong.
        fault: Fault,
    },
    /// The oldest file does not begin as one does.
    #[error("{}, line 1: the records before it were removed, and not by rotation", .file.display())]
    Beheaded {
        /// Which file.
        file: PathBuf,
    },
    /// A file cannot be read.
    #[error("cannot read {}: {why}", .file.display())]
    Unreadable {
        /// Which.
        file: PathBuf,
        /// Why not.
        why: String,
    },
}

/// How often a check begins anew because a host went on to another file under it.
const ATTEMPTS: usize = 3;

/// Checks the trail in `dir`, from the oldest file that is kept to the last whole line.
pub fn verify(dir: &Path) -> Result<Verified, Broken> {
    let folder = Folder::new(dir);
    let listed = |folder: &Folder| folder.full_files().map_err(|error| unreadable(dir, &error));
    let mut attempt = 1;
    loop {
        let before = listed(&folder)?;
        let result = check(&folder, &before);
        if result.is_ok() || attempt == ATTEMPTS || listed(&folder)? == before {
            return result;
        }
        attempt += 1;
    }
}

fn check(folder: &Folder, full: &[PathBuf]) -> Result<Verified, Broken> {
    // Read before the lines: a host that writes on can only make the trail longer than this.
    let known = folder.read_head();
    let mut files = full.to_vec();
    if folder.current().exists() {
        files.push(folder.current());
    }
    let start = begin(&files)?;
    let book = RefCell::new(Book { counts: Vec::new(), torn: 0, failed: None });
    let last = files.len().wrapping_sub(1);
    let lines = files.iter().enumerate().flat_map(|(index, path)| {
        let part = if index == last { Part::Current } else { Part::Full };
        read_lines(path, part, &mut book.borrow_mut())
    });
    let result = audit::verify(lines, start, known);
    let Book { counts, torn, failed } = book.into_inner();
    if let Some(failed) = failed {
        return Err(failed);
    }
    let verified = result.map_err(|broken| {
        let (file, line) = place(&files, &counts, broken.line);
        Broken::Line { file, line, fault: broken.fault }
    })?;
    Ok(Verified {
        last: verified.head.seq,
        head: verified.head.digest.to_string(),
        first: if verified.lines == 0 { 0 } else { start.seq + 1 },
        records: verified.lines,
        files: files.len(),
        torn_bytes: torn,
    })
}

/// The head that the oldest file goes on from. A file that is not the first of all begins with a record of rotation.
fn begin(files: &[PathBuf]) -> Result<Head, Broken> {
    let Some(oldest) = files.first() else { return Ok(Head::EMPTY) };
    let bytes = fs::read(oldest).map_err(|error| unreadable(oldest, &error))?;
    let first = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
    match audit::read(first) {
        Ok(record) if record.seq > 1 => {
            let value: serde_json::Value = serde_json::from_slice(first).unwrap_or_default();
            if value["method"] != "audit.rotate" {
                return Err(Broken::Beheaded { file: oldest.clone() });
            }
            Ok(Head { seq: record.seq - 1, digest: record.prev })
        }
        // Either it is the very first line, or the check will say what is wrong with it.
        Ok(_) | Err(_) => Ok(Head::EMPTY),
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Full,
    Current,
}

struct Book {
    counts: Vec<usize>,
    torn: usize,
    failed: Option<Broken>,
}

fn read_lines(path: &Path, part: Part, book: &mut Book) -> Vec<Vec<u8>> {
    let bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) => {
            book.failed.get_or_insert(unreadable(path, &error));
            return Vec::new();
        }
    };
    let mut lines: Vec<Vec<u8>> = bytes.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
    // After the last newline comes nothing, or what a crash left. In a full file it is a line like any other, and a bad one.
    let rest = lines.pop().unwrap_or_default();
    match part {
        Part::Current => book.torn = rest.len(),
        Part::Full if rest.is_empty() => {}
        Part::Full => lines.push(rest),
    }
    book.counts.push(lines.len());
    lines
}

/// The file and the line in it of a line of the whole trail.
fn place(files: &[PathBuf], counts: &[usize], line: usize) -> (PathBuf, usize) {
    let mut left = line;
    for (file, count) in files.iter().zip(counts) {
        if left <= *count {
            return (file.clone(), left);
        }
        left -= count;
    }
    // One past the end: records are missing there.
    let last = counts.last().copied().unwrap_or(0);
    (files.last().cloned().unwrap_or_default(), last + 1)
}

fn unreadable(path: &Path, error: &io::Error) -> Broken {
    Broken::Unreadable { file: path.to_owned(), why: error.to_string() }
}
