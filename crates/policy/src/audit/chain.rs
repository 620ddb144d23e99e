//! The writing end of the trail.

use crate::canonical::{CanonicalError, Spelling, canonical, write_string};
use crate::digest::Digest;
use crate::rate::Millis;
use serde_json::{Map, Value};
use std::fmt::Write as _;

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
    /// The members of a flat record are not in order, or a name is not plain ASCII.
    #[error("the member `{name}` is out of order")]
    Disorder {
        /// Which.
        name: String,
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

/// A member of a flat record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scalar<'a> {
    /// A string.
    Text(&'a str),
    /// A number.
    Count(u64),
    /// A hash, written as a string.
    Hash(Digest),
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

    /// [`Chain::next`] for those who write many: the record is flat, its members come in the order of their names (plain
    /// ASCII), and the line is appended to `out`, which is as it was when this fails. The line is the same, byte for byte.
    pub fn next_flat(
        &self,
        ts: Millis,
        members: &[(&str, Scalar<'_>)],
        out: &mut String,
    ) -> Result<Head, AppendError> {
        let begin = out.len();
        let seq = self.head.seq.saturating_add(1);
        let own = [
            ("prev", Scalar::Hash(self.head.digest)),
            ("seq", Scalar::Count(seq)),
            ("ts", Scalar::Count(ts.0)),
        ];
        let written = write_flat(out, members, &own).and_then(|()| match out.len() - begin {
            length if length > MAX_LINE_BYTES => Err(AppendError::TooLong { length }),
            _ => Ok(Head { seq, digest: Digest::of(&out.as_bytes()[begin..]) }),
        });
        if written.is_err() {
            out.truncate(begin);
        }
        written
    }

    /// Takes note that the line that ends at `head` is written.
    pub fn commit_to(&mut self, head: Head) {
        self.head = head;
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

/// Writes an object of both lists of members, each of which must be in order.
fn write_flat(
    out: &mut String,
    members: &[(&str, Scalar<'_>)],
    own: &[(&'static str, Scalar<'_>)],
) -> Result<(), AppendError> {
    let (mut members, mut own) = (members.iter().peekable(), own.iter().peekable());
    let mut last = "";
    out.push('{');
    loop {
        let (name, scalar) = match (members.peek(), own.peek()) {
            (None, None) => break,
            (Some((given, _)), Some((name, _))) if given == name => {
                return Err(AppendError::Reserved { name });
            }
            (Some((given, scalar)), reserved) if reserved.is_none_or(|(name, _)| given < name) => {
                members.next();
                (*given, *scalar)
            }
            (_, Some((name, scalar))) => {
                own.next();
                (*name, *scalar)
            }
            // The arm before the last takes every member when the chain's own are written.
            (Some((name, _)), None) => return Err(AppendError::Disorder { name: (*name).to_owned() }),
        };
        let plain = name.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\');
        if name <= last || !plain {
            return Err(AppendError::Disorder { name: name.to_owned() });
        }
        out.push_str(if last.is_empty() { "\"" } else { ",\"" });
        out.push_str(name);
        out.push_str("\":");
        write_scalar(out, scalar)?;
        last = name;
    }
    out.push('}');
    Ok(())
}

fn write_scalar(out: &mut String, scalar: Scalar<'_>) -> Result<(), AppendError> {
    /// The integers up to here, and not all beyond, are doubles.
    const EXACT: u64 = 1 << 53;
    match scalar {
        Scalar::Text(text) => write_string(out, text),
        Scalar::Count(count) if count > EXACT => {
            return Err(CanonicalError::InexactInteger { number: count.to_string() }.into());
        }
        // Writing to a string cannot fail.
        Scalar::Count(count) => {
            let _ = write!(out, "{count}");
        }
        Scalar::Hash(digest) => {
            out.push('"');
            digest.spell().iter().for_each(|pair| out.push_str(pair));
            out.push('"');
        }
    }
    Ok(())
}
