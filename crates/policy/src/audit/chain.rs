//! The writing end of the trail.

use crate::canonical::{CanonicalError, Spelling, canonical};
use crate::digest::Digest;
use crate::rate::Millis;
use serde_json::{Map, Value};

/// The longest line, in bytes and without its newline. A record holds hashes of what is long.
pub const MAX_LINE_BYTES: usize = 64 * 1024;

/// The members that the chain itself writes.
const RESERVED: [&str; 3] = ["seq", "ts", "prev"];

/// The end of a trail: how many lines it has, and the hash of the last one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// The number of the last line; 0 before the first.
    pub seq: u64,
    /// The hash of the last line; [`Digest::ZERO`] before the first.
    pub digest: Digest,
}

impl Head {
    /// The head of a trail without lines.
    pub const EMPTY: Head = Head { seq: 0, digest: Digest::ZERO };
}

/// A line that is ready to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The line, without its newline.
    pub text: String,
    /// The head of the trail once the line is written.
    pub head: Head,
}

/// Why a record cannot become a line. The chain is as it was.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AppendError {
    /// The record has a member that the chain writes.
    #[error("a record may not have a member `{name}`: the chain writes it")]
    Reserved {
        /// Which.
        name: &'static str,
    },
    /// The record has no canonical spelling.
    #[error("the record has no canonical spelling: {0}")]
    Canonical(#[from] CanonicalError),
    /// Longer than [`MAX_LINE_BYTES`].
    #[error("the record makes a line of {length} bytes; the limit is {MAX_LINE_BYTES}")]
    TooLong {
        /// The length of the line.
        length: usize,
    },
}

/// A trail that can be appended to.
#[derive(Clone, Debug)]
pub struct Chain {
    head: Head,
}

impl Chain {
    /// Goes on after `head`; [`Head::EMPTY`] begins a new trail.
    #[must_use]
    pub fn after(head: Head) -> Chain {
        Chain { head }
    }

    /// Where the trail ends.
    #[must_use]
    pub fn head(&self) -> Head {
        self.head
    }

    /// Makes the next line of `record`. The chain does not move: it does when the line is known to be written
    /// ([`Chain::commit`]), so that a failed write leaves no gap.
    pub fn next(&self, ts: Millis, record: &Map<String, Value>) -> Result<Line, AppendError> {
        if let Some(name) = RESERVED.into_iter().find(|name| record.contains_key(*name)) {
            return Err(AppendError::Reserved { name });
        }
        let seq = self.head.seq.saturating_add(1);
        let mut members = record.clone();
        members.insert("seq".to_owned(), seq.into());
        members.insert("ts".to_owned(), ts.0.into());
        members.insert("prev".to_owned(), self.head.digest.to_string().into());
        let text = canonical(&Value::Object(members), Spelling::Rfc8785)?;
        if text.len() > MAX_LINE_BYTES {
            return Err(AppendError::TooLong { length: text.len() });
        }
        let head = Head { seq, digest: Digest::of(text.as_bytes()) };
        Ok(Line { text, head })
    }

    /// Takes note that `line` is written.
    pub fn commit(&mut self, line: &Line) {
        self.head = line.head;
    }

    /// [`Chain::next`] and [`Chain::commit`] in one, for trails whose writes cannot fail.
    pub fn append(&mut self, ts: Millis, record: &Map<String, Value>) -> Result<Line, AppendError> {
        let line = self.next(ts, record)?;
        self.commit(&line);
        Ok(line)
    }
}
