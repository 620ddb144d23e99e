//! Who an extension is, and which of its sessions this is.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// The id of an extension: lower-case words with at least one separator, 3 to 128 bytes. Safe as the name of a folder.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ExtensionId(Arc<str>);

/// Why a text is not the id of an extension.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}` is not the id of an extension: lower-case letters and digits, joined by `.`, `_` or `-`, 3 to 128 bytes, as in `org.example.notes`"
)]
pub struct BadId {
    /// The text, cut and escaped.
    pub text: String,
}

const MAX_ID_BYTES: usize = 128;

impl ExtensionId {
    /// Checks `text` and makes it an id.
    pub fn new(text: &str) -> Result<Self, BadId> {
        let parts = text.split(['.', '_', '-']);
        let is_word = |part: &str| {
            !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
        };
        let right = (3..=MAX_ID_BYTES).contains(&text.len())
            && parts.clone().count() > 1
            && parts.clone().all(is_word);
        match right {
            true => Ok(Self(text.into())),
            false => Err(BadId { text: text.escape_debug().take(MAX_ID_BYTES).collect() }),
        }
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ExtensionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for ExtensionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ExtensionId({})", self.0)
    }
}

impl Serialize for ExtensionId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for ExtensionId {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::new(&text).map_err(serde::de::Error::custom)
    }
}

/// One process of an extension and its channel: 26 characters that sort by time.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(Arc<str>);

impl SessionId {
    /// An id for a session that begins at `now_ms` (since the epoch), with these random bits.
    #[must_use]
    pub fn new(now_ms: u64, random: [u8; 10]) -> Self {
        const DIGITS: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
        let mut value = u128::from(now_ms & 0xffff_ffff_ffff) << 80;
        for (i, byte) in random.into_iter().enumerate() {
            value |= u128::from(byte) << (72 - 8 * i);
        }
        let digit = |place: u32| char::from(DIGITS[((value >> (5 * place)) & 31) as usize]);
        Self((0..26).rev().map(digit).collect::<String>().into())
    }

    /// An id that was written down earlier.
    #[must_use]
    pub fn from_text(text: &str) -> Self {
        Self(text.into())
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SessionId({})", self.0)
    }
}

impl Serialize for SessionId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for SessionId {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(|text| Self(text.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_has_words_and_at_least_one_separator() {
        for right in ["a.b", "io.example.sample-tool", "a-1", "x_y.z"] {
            assert!(ExtensionId::new(right).is_ok(), "{right}");
        }
        let long = format!("a.{}", "b".repeat(127));
        for wrong in ["", "ab", "abc", "A.b", ".a.b", "a..b", "a.b.", "a/b", "a.é", "../x", &long] {
            assert!(ExtensionId::new(wrong).is_err(), "{wrong}");
        }
        assert!(ExtensionId::new(&long[..128]).is_ok());
    }

    #[test]
    fn sessions_sort_by_time() {
        let early = SessionId::new(1, [255; 10]);
        let late = SessionId::new(2, [0; 10]);
        assert!(early < late);
        assert_eq!(early.as_str().len(), 26);
    }
}
