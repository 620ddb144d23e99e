//! What the splitter hands out: lines, and reports about lines that could not be delivered.

use std::borrow::Cow;
use std::fmt;

/// One thing found in the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item<'a> {
    /// A line.
    Line(Line<'a>),
    /// A line that was longer than the limit and was thrown away ([`super::Overlong::Skip`]).
    TooLong(TooLong<'a>),
    /// A line whose content the policy does not accept, delivered as evidence ([`super::Fault::Report`]).
    Defective(Defective<'a>),
}

/// A line without its ending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line<'a> {
    pub(super) content: Content<'a>,
    pub(super) ending: Ending,
    pub(super) dropped: u64,
}

/// Text that was checked stays text, so that nobody checks it twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Content<'a> {
    Text(&'a str),
    Bytes(&'a [u8]),
}

impl<'a> Line<'a> {
    /// The bytes of the line.
    #[must_use]
    pub fn bytes(&self) -> &'a [u8] {
        match self.content {
            Content::Text(text) => text.as_bytes(),
            Content::Bytes(bytes) => bytes,
        }
    }

    /// The line as text: free when the policy checks UTF-8, checked here when it lets bytes pass.
    ///
    /// # Errors
    /// When the policy is [`super::Fault::Pass`] and the line is not UTF-8.
    pub fn text(&self) -> Result<&'a str, std::str::Utf8Error> {
        match self.content {
            Content::Text(text) => Ok(text),
            Content::Bytes(bytes) => std::str::from_utf8(bytes),
        }
    }

    /// The line as text for people, with U+FFFD where the bytes are not UTF-8.
    #[must_use]
    pub fn text_lossy(&self) -> Cow<'a, str> {
        match self.content {
            Content::Text(text) => Cow::Borrowed(text),
            Content::Bytes(bytes) => String::from_utf8_lossy(bytes),
        }
    }

    /// How the line ended.
    #[must_use]
    pub fn ending(&self) -> Ending {
        self.ending
    }

    /// How many bytes were cut off its end ([`super::Overlong::Cut`]); zero for a whole line.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Whether the line holds only ASCII white space.
    #[must_use]
    pub fn is_blank(&self) -> bool {
        is_blank(self.bytes())
    }
}

/// How a line ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// With a newline.
    Newline,
    /// With the end of the stream, so it may be half of what its author meant to write.
    StreamEnd,
}

/// The report about a line that was thrown away because of its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLong<'a> {
    /// The limit it broke, in bytes before the newline.
    pub limit: usize,
    /// How many bytes were thrown away: the whole line, its newline not counted.
    pub dropped: u64,
    /// The first bytes of the line, enough to recognise it.
    pub head: &'a [u8],
}

/// The report about a line whose content the policy does not accept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Defective<'a> {
    /// What is wrong with it.
    pub defect: Defect,
    /// The line as it came, without its ending.
    pub bytes: &'a [u8],
}

/// What is wrong with the content of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Defect {
    /// It is not UTF-8.
    #[error("line is not UTF-8 (first bad byte at offset {at})")]
    NotUtf8 {
        /// Offset of the first byte that is not UTF-8.
        at: usize,
    },
    /// It contains a NUL byte.
    #[error("line contains a NUL byte (at offset {at})")]
    Nul {
        /// Offset of the first NUL.
        at: usize,
    },
    /// The stream begins with a byte order mark.
    #[error("stream begins with a byte order mark")]
    Bom,
}

/// The first bytes of an offending line, kept so that an error can show what it is about.
#[derive(Clone, PartialEq, Eq)]
pub struct Head(String);

impl Head {
    /// How many bytes of a line are kept for error messages.
    pub const BYTES: usize = 128;

    /// Keeps the beginning of `line`.
    #[must_use]
    pub fn of(line: &[u8]) -> Self {
        let line = &line[..line.len().min(Self::BYTES)];
        // A cut through a character at the end is ours, not the line's: leave the half character out.
        let line = match std::str::from_utf8(line) {
            Err(error) if error.error_len().is_none() => &line[..error.valid_up_to()],
            Err(_) | Ok(_) => line,
        };
        Self(String::from_utf8_lossy(line).into_owned())
    }

    /// The kept text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Head {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

/// Quoted and escaped: the text comes from a peer and must not be able to forge a log line.
impl fmt::Display for Head {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

pub(super) fn is_blank(bytes: &[u8]) -> bool {
    bytes.iter().all(u8::is_ascii_whitespace)
}
