//! Globs that cannot be made slow: a pattern becomes a small automaton, and a text is walked through it once.
//!
//! The work is at most the number of states times the number of characters, and the states are bounded by the
//! pattern's length, which is bounded. There is no backtracking, so there is no hostile pattern.
//!
//! | pattern | [`Reading::Name`] | [`Reading::Path`] | [`Reading::LoosePath`] |
//! |---|---|---|---|
//! | `*` | any characters | any but `/` | any characters |
//! | `?` | one character | one but `/` | one character |
//! | `**/` | as `*` `*` `/` | no, one or more folders | no, one or more folders |
//! | `/**` at the end | as `/` `*` `*` | the folder and all below | the folder and all below |
//! | `[a-z]`, `[!a-z]` | one of, one not of | the same, never `/` | the same |
//! | `{a,b}` | either | either | either |
//! | `\x` | `x` itself | `x` itself | `x` itself |

mod automaton;
mod parse;

use std::fmt;

/// The longest pattern, in bytes. Longer ones are refused when they are compiled.
pub const MAX_PATTERN_BYTES: usize = 1024;

/// The most bytes that all patterns of one list may have together. It bounds what asking the list can cost, however
/// hostile the list and the text are.
pub const MAX_LIST_BYTES: usize = 32 * 1024;

/// How deep `{…{…}…}` may nest.
pub const MAX_BRACE_DEPTH: usize = 4;

/// What the wildcards of a pattern mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// For names of tools, capabilities and hosts: no character is special to a wildcard.
    Name,
    /// For paths: `*` and `?` stop at `/`.
    Path,
    /// For paths in deny lists: `*` and `?` cross `/`. It matches whatever [`Reading::Path`] matches and more, so
    /// two hosts that read `*.log` differently both find their file denied.
    LoosePath,
}

/// A compiled pattern. It always covers the whole text, from its first to its last character.
#[derive(Clone)]
pub struct Glob {
    pattern: String,
    program: automaton::Program,
}

/// Why a pattern was refused. Offsets are bytes from its beginning.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GlobError {
    /// An empty pattern matches nothing anybody would mean.
    #[error("the pattern is empty")]
    Empty,
    /// Longer than [`MAX_PATTERN_BYTES`].
    #[error("the pattern has {length} bytes; the limit is {MAX_PATTERN_BYTES}")]
    TooLong {
        /// Its length in bytes.
        length: usize,
    },
    /// A NUL character can be in no name and no path.
    #[error("the pattern has a NUL at byte {at}")]
    Nul {
        /// Where.
        at: usize,
    },
    /// `[` without `]`.
    #[error("the `[` at byte {at} is never closed")]
    UnclosedClass {
        /// Where the bracket is.
        at: usize,
    },
    /// `[z-a]`.
    #[error("the range at byte {at} runs backwards")]
    BackwardRange {
        /// Where the range begins.
        at: usize,
    },
    /// `{` without `}`.
    #[error("the `{{` at byte {at} is never closed")]
    UnclosedBrace {
        /// Where the brace is.
        at: usize,
    },
    /// Nested deeper than [`MAX_BRACE_DEPTH`].
    #[error("the `{{` at byte {at} is nested deeper than {MAX_BRACE_DEPTH}")]
    TooDeep {
        /// Where the brace is that is one too deep.
        at: usize,
    },
    /// A backslash at the end escapes nothing.
    #[error("the pattern ends with a backslash that escapes nothing")]
    DanglingEscape,
}

impl Glob {
    /// Compiles `pattern`.
    pub fn new(pattern: &str, reading: Reading) -> Result<Glob, GlobError> {
        Ok(Glob { pattern: pattern.to_owned(), program: parse::compile(pattern, reading)? })
    }

    /// A glob that matches exactly `text`, whatever characters it has.
    #[must_use]
    pub fn literal(text: &str) -> Glob {
        Glob { pattern: text.to_owned(), program: automaton::Program::literal(text) }
    }

    /// The same glob, shown as its author wrote it.
    pub(crate) fn written_as(self, pattern: &str) -> Glob {
        Glob { pattern: pattern.to_owned(), ..self }
    }

    /// Whether the pattern covers all of `text`.
    #[must_use]
    pub fn matches(&self, text: &str) -> bool {
        self.program.matches(text)
    }

    /// The pattern as it was written.
    #[must_use]
    pub fn pattern(&self) -> &str {
        &self.pattern
    }
}

impl fmt::Debug for Glob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Glob({:?})", self.pattern)
    }
}
