//! `MAJOR.MINOR.PATCH`, where the last number never matters for compatibility.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A version of the protocol or of the manifest's format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    /// Changes when something old stops working.
    pub major: u64,
    /// Changes when something new is there.
    pub minor: u64,
    /// Changes nothing that a peer could notice.
    pub patch: u64,
}

/// The first protocol.
pub const V1_0: Version = Version { major: 1, minor: 0, patch: 0 };
/// The protocol with panels that change, subscriptions and logs.
pub const V1_1: Version = Version { major: 1, minor: 1, patch: 0 };

/// Why a text is not a version.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a version: three numbers are needed, as in `1.0.0`")]
pub struct BadVersion(pub String);

impl Version {
    /// Reads three numbers, ASCII digits only.
    pub fn parse(text: &str) -> Result<Self, BadVersion> {
        let bad = || BadVersion(text.escape_debug().take(64).collect());
        let mut numbers = text.split('.').map(|part| {
            let digits = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
            // More digits than a number holds: larger than any version there will be.
            digits.then(|| part.parse().unwrap_or(u64::MAX))
        });
        let mut next = || numbers.next().flatten().ok_or_else(bad);
        let version = Self { major: next()?, minor: next()?, patch: next()? };
        match numbers.next() {
            None => Ok(version),
            Some(_) => Err(bad()),
        }
    }

    /// Whether a peer that speaks `self` can serve one that needs `needed`.
    #[must_use]
    pub fn serves(self, needed: Self) -> bool {
        self.major == needed.major && self.minor >= needed.minor
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

impl Serialize for Version {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Version {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_numbers_and_nothing_else() {
        assert_eq!(Version::parse("1.1.0"), Ok(V1_1));
        for wrong in ["", "1", "1.0", "1.0.0.0", "1.0.", "1.0.x", "1.0.0\n", "１.0.0", "+1.0.0"] {
            assert!(Version::parse(wrong).is_err(), "{wrong:?}");
        }
        assert!(V1_1.serves(V1_0) && !V1_0.serves(V1_1));
    }
}
