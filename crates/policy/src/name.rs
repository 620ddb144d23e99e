//! The names of what can be allowed, and of who asks for it.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The longest name of a capability, in bytes.
pub const MAX_CAPABILITY_BYTES: usize = 128;

/// The longest name of a subject that is kept; see [`Subject::new`].
pub const MAX_SUBJECT_BYTES: usize = 256;

/// The name of one thing that can be allowed: `messages.read`, `fetch_data`, `mcp__files__read`.
///
/// ASCII letters, digits and `_ $ . : / @ -`, beginning with a letter, a digit, `_` or `$`. No character of a
/// name means anything to a glob, so a name is never mistaken for a pattern.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Capability(String);

/// Why a string is not the name of a capability.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CapabilityError {
    /// Nothing is named by the empty string.
    #[error("the name of a capability is empty")]
    Empty,
    /// Longer than [`MAX_CAPABILITY_BYTES`].
    #[error("the name of a capability has {length} bytes; the limit is {MAX_CAPABILITY_BYTES}")]
    TooLong {
        /// Its length in bytes.
        length: usize,
    },
    /// A character that no name may have, or not as its first.
    #[error("{found:?} at byte {at} may not be in the name of a capability")]
    Forbidden {
        /// The character.
        found: char,
        /// Where it is.
        at: usize,
    },
}

impl Capability {
    /// Takes `name` when it is well formed.
    pub fn new(name: impl Into<String>) -> Result<Capability, CapabilityError> {
        let name = name.into();
        if name.is_empty() {
            return Err(CapabilityError::Empty);
        }
        if name.len() > MAX_CAPABILITY_BYTES {
            return Err(CapabilityError::TooLong { length: name.len() });
        }
        let allowed = |at: usize, c: char| {
            c.is_ascii_alphanumeric()
                || matches!(c, '_' | '$')
                || (at > 0 && matches!(c, '.' | ':' | '/' | '@' | '-'))
        };
        match name.char_indices().find(|(at, c)| !allowed(*at, *c)) {
            Some((at, found)) => Err(CapabilityError::Forbidden { found, at }),
            None => Ok(Capability(name)),
        }
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Capability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for Capability {
    type Error = CapabilityError;

    fn try_from(name: String) -> Result<Capability, CapabilityError> {
        Capability::new(name)
    }
}

impl From<Capability> for String {
    fn from(capability: Capability) -> String {
        capability.0
    }
}

/// Who asks: an extension, a run, a backend. Only ever shown and recorded, never interpreted.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Subject(String);

impl Subject {
    /// A subject always has a name that can be shown: control characters become `?`, and what is longer than
    /// [`MAX_SUBJECT_BYTES`] is cut. An identity that decides something must be checked before it comes here.
    #[must_use]
    pub fn new(name: &str) -> Subject {
        Subject(presentable(name, MAX_SUBJECT_BYTES))
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// `text` as it may appear in one line of a log or on a terminal, and no longer than `limit` bytes.
pub(crate) fn presentable(text: &str, limit: usize) -> String {
    // The marks that reorder text could make a path read like another one.
    let hidden = |c: char| {
        c.is_control()
            || matches!(c, '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
    };
    let clean = |c: char| if hidden(c) { '?' } else { c };
    let end = text.floor_char_boundary(limit);
    let mut shown: String = text[..end].chars().map(clean).collect();
    if end < text.len() {
        shown.truncate(shown.floor_char_boundary(limit.saturating_sub('…'.len_utf8())));
        shown.push('…');
    }
    shown
}
