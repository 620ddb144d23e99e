//! Replay: a tape becomes the bytes that one side sent, and those are cut at every offset to see that it does not matter.

use std::fmt;

use serde::Deserialize;

use super::base64;
use super::record::Direction;

/// One entry of a tape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Which way it went.
    pub dir: Direction,
    /// When, in microseconds from the start of the tape.
    pub t_us: u64,
    /// Whom the conversation was with, if the tape has several.
    pub with: Option<String>,
    /// What went.
    pub said: Said,
}

/// What an entry holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    /// A line of text, without its newline.
    Line(String),
    /// Bytes as they went.
    Bytes(Vec<u8>),
}

/// Why a tape cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum TapeError {
    /// A line of the tape is not an entry.
    #[error("line {line} of the tape is not an entry: {reason}")]
    NotAnEntry {
        /// Which line, counted from 1.
        line: usize,
        /// Why not.
        reason: String,
    },
}

/// Reads a tape. A tape that was full is read up to where it stopped.
///
/// # Errors
/// When a line of the tape is not an entry.
pub fn read_tape(text: &str) -> Result<Vec<Entry>, TapeError> {
    let mut entries = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let bad = |reason: String| TapeError::NotAnEntry { line: at + 1, reason };
        let read: Read = serde_json::from_str(line).map_err(|error| bad(error.to_string()))?;
        let (Some(dir), Some(t_us)) = (read.dir, read.t_us) else {
            match read.full {
                Some(true) => break,
                Some(false) | None => return Err(bad("`dir` or `t_us` is missing".into())),
            }
        };
        let said = match (read.line, read.bytes) {
            (Some(line), None) => Said::Line(line),
            (None, Some(coded)) => {
                Said::Bytes(base64::decode(&coded).ok_or_else(|| bad("bad base64".into()))?)
            }
            (Some(_), Some(_)) | (None, None) => return Err(bad("needs either `line` or `bytes`".into())),
        };
        entries.push(Entry { dir, t_us, with: read.with, said });
    }
    Ok(entries)
}

/// The bytes that went one way, as they were on the wire.
#[must_use]
pub fn stream(entries: &[Entry], dir: Direction) -> Vec<u8> {
    let mut bytes = Vec::new();
    for entry in entries.iter().filter(|entry| entry.dir == dir) {
        match &entry.said {
            Said::Line(line) => {
                bytes.extend_from_slice(line.as_bytes());
                bytes.push(b'\n');
            }
            Said::Bytes(said) => bytes.extend_from_slice(said),
        }
    }
    bytes
}

/// Two ways to cut the same stream gave two results.
#[derive(Debug, thiserror::Error)]
#[error("cut {cut}, the stream decodes to {got}, but in one piece to {expected}")]
pub struct SplitError {
    cut: String,
    got: String,
    expected: String,
}

/// Feeds `bytes` to `decode` in one piece, byte by byte, and cut in two at every offset; all results must be equal.
///
/// It reads the whole stream once per byte of it, so it is for streams of kilobytes.
///
/// # Errors
/// When one of the results differs; the error says which cut made the difference.
pub fn every_split<T: PartialEq + fmt::Debug>(
    bytes: &[u8],
    mut decode: impl FnMut(&mut dyn Iterator<Item = &[u8]>) -> T,
) -> Result<T, SplitError> {
    let whole = decode(&mut std::iter::once(bytes));
    let differs =
        |cut: String, got: &T| SplitError { cut, got: format!("{got:?}"), expected: format!("{whole:?}") };
    let bytewise = decode(&mut bytes.chunks(1));
    if bytewise != whole {
        return Err(differs("into single bytes".into(), &bytewise));
    }
    for at in 1..bytes.len() {
        let (left, right) = bytes.split_at(at);
        let halves = decode(&mut [left, right].into_iter());
        if halves != whole {
            return Err(differs(format!("at offset {at}"), &halves));
        }
    }
    Ok(whole)
}

#[derive(Deserialize)]
struct Read {
    dir: Option<Direction>,
    t_us: Option<u64>,
    with: Option<String>,
    line: Option<String>,
    bytes: Option<String>,
    full: Option<bool>,
}
