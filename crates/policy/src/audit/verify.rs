//! The checking end of the trail: where it is broken first, and how.

use super::chain::{Head, MAX_LINE_BYTES};
use crate::canonical::{Spelling, canonical};
use crate::digest::Digest;
use serde_json::Value;
use std::iter::Peekable;

/// A trail without a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verified {
    /// Where it ends.
    pub head: Head,
    /// How many lines were read.
    pub lines: usize,
}

/// A trail with a fault, and where it is first.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {fault}")]
pub struct Broken {
    /// The line, from 1. For lines that are missing, where the first of them should be.
    pub line: usize,
    /// What is wrong.
    pub fault: Fault,
}

/// What can be wrong with a trail.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The line is not what was written: it is no record, or its hash is not the one the trail names.
    #[error("the record was altered: {why}")]
    Altered {
        /// What gives it away.
        why: &'static str,
    },
    /// Records are missing before this line.
    #[error("the records {first} to {last} were removed")]
    Removed {
        /// The first that is missing.
        first: u64,
        /// The last that is missing.
        last: u64,
    },
    /// The record belongs elsewhere.
    #[error("record {found} stands where record {expected} belongs")]
    Reordered {
        /// The record that should be here.
        expected: u64,
        /// The record that is here.
        found: u64,
    },
    /// The trail ends before the head that is known.
    #[error("the trail ends with record {last}; the known head is record {head}")]
    Truncated {
        /// The last record that is there.
        last: u64,
        /// The record that is known to exist.
        head: u64,
    },
}

/// Checks a trail that begins after `start` ([`Head::EMPTY`] for a whole one), given as lines without newlines.
///
/// With a `known` head the trail must reach it; lines beyond it are checked too. Without one, a trail that was cut
/// at its end, or of which only the last line was altered, cannot be told from a whole one.
pub fn verify<L: AsRef<[u8]>>(
    lines: impl IntoIterator<Item = L>,
    start: Head,
    known: Option<Head>,
) -> Result<Verified, Broken> {
    let mut lines = lines.into_iter().map(|line| read(line.as_ref())).peekable();
    let mut head = start;
    let mut count = 0;
    while let Some(entry) = lines.next() {
        count += 1;
        let record = entry.map_err(|why| Broken { line: count, fault: Fault::Altered { why } })?;
        let follows = record.prev == head.digest;
        if record.seq != head.seq.saturating_add(1) || !follows {
            return Err(pinpoint(&record, head, count, known, &mut lines));
        }
        head = Head { seq: record.seq, digest: record.digest };
        if known.is_some_and(|known| known.seq == head.seq && known.digest != head.digest) {
            let why = "its hash is not that of the known head";
            return Err(Broken { line: count, fault: Fault::Altered { why } });
        }
    }
    match known {
        Some(known) if known.seq > head.seq => {
            let fault = Fault::Truncated { last: head.seq, head: known.seq };
            Err(Broken { line: count + 1, fault })
        }
        Some(_) | None => Ok(Verified { head, lines: count }),
    }
}

/// What the chain wrote into a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// Its number.
    pub seq: u64,
    /// The hash of the line before it, as it says.
    pub prev: Digest,
    /// Its own hash.
    pub digest: Digest,
}

/// Reads one line by itself, or says why it is none that a chain wrote.
pub fn read(line: &[u8]) -> Result<Record, &'static str> {
    if line.len() > MAX_LINE_BYTES {
        return Err("the line is longer than any record");
    }
    let text = str::from_utf8(line).map_err(|_| "it is not UTF-8")?;
    let value: Value = serde_json::from_str(text).map_err(|_| "it is not JSON")?;
    // Also catches what parsing forgives: white space, other escapes, duplicate members.
    if canonical(&value, Spelling::Rfc8785).ok().as_deref() != Some(text) {
        return Err("it is not in canonical form");
    }
    let seq = value["seq"].as_u64().ok_or("it has no sequence number")?;
    let prev =
        value["prev"].as_str().and_then(|prev| prev.parse().ok()).ok_or("it names no previous hash")?;
    Ok(Record { seq, prev, digest: Digest::of(line) })
}

/// `record`, on line `line`, does not follow `head`. What happened, and to which line?
fn pinpoint(
    record: &Record,
    head: Head,
    line: usize,
    known: Option<Head>,
    rest: &mut Peekable<impl Iterator<Item = Result<Record, &'static str>>>,
) -> Broken {
    let expected = head.seq.saturating_add(1);
    let follows = record.prev == head.digest;
    // Whoever comes after a record vouches for it: the next line, or the head that is known.
    let vouched = match rest.peek() {
        Some(Ok(next)) => Some(next.prev == record.digest),
        Some(Err(_)) | None => {
            known.filter(|known| known.seq == record.seq).map(|known| known.digest == record.digest)
        }
    };
    if follows {
        let why = "its sequence number is wrong";
        return Broken { line, fault: Fault::Altered { why } };
    }
    if record.seq == expected {
        // This line and the one before it disagree. The one before is to blame unless this one is altered itself,
        // or is the first one, which must name what `start` says.
        if vouched == Some(false) || line == 1 {
            let why = "it does not name the hash of the line before it";
            return Broken { line, fault: Fault::Altered { why } };
        }
        let why = "its hash is not the one that the next line names";
        return Broken { line: line - 1, fault: Fault::Altered { why } };
    }
    let comes_later = rest.any(|entry| entry.is_ok_and(|later| later.seq == expected));
    let fault = if record.seq > expected && !comes_later {
        Fault::Removed { first: expected, last: record.seq - 1 }
    } else {
        Fault::Reordered { expected, found: record.seq }
    };
    Broken { line, fault }
}
