//! Names: of runs, and of those who do something to them.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::engine::LogId;

/// The longest name of a run.
const MAX: usize = 64;

/// Which run. Made by us as a UUID, or chosen by whoever submits it, so that submitting twice is submitting once.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub(crate) struct RunId(String);

/// Not the name of a run.
#[derive(Clone, Debug, thiserror::Error)]
#[error("`{0}` is not the id of a run: 1 to {MAX} letters, digits, `-` and `_`")]
pub(crate) struct NotARunId(String);

impl RunId {
    /// A new one.
    pub(crate) fn random() -> Result<Self, getrandom::Error> {
        let mut bytes = [0u8; 16];
        getrandom::fill(&mut bytes)?;
        // The first 48 bits are the time, so that names sort by age (UUID version 7).
        let now = crate::engine::Millis::now().0.to_be_bytes();
        bytes[..6].copy_from_slice(&now[2..]);
        bytes[6] = 0x70 | (bytes[6] & 0x0f);
        bytes[8] = 0x80 | (bytes[8] & 0x3f);
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Self(format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])))
    }

    /// One that somebody wrote.
    pub(crate) fn parse(text: &str) -> Result<Self, NotARunId> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        if !text.is_empty() && text.len() <= MAX && text.bytes().all(plain) {
            Ok(Self(text.to_owned()))
        } else {
            Err(NotARunId(text.chars().take(80).collect()))
        }
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// Where its log is.
    pub(crate) fn log(&self) -> LogId {
        LogId(format!("run/{}", self.0))
    }

    /// The run of a log, if it is the log of a run.
    pub(crate) fn of_log(log: &LogId) -> Option<Self> {
        Self::parse(log.0.strip_prefix("run/")?).ok()
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for RunId {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).map_err(serde::de::Error::custom)
    }
}

/// Who did something: `dashboard`, `api`, `cli`, `deadline`, `daemon`; kept as a word.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Actor(pub(crate) String);

impl Actor {
    pub(crate) fn new(word: &str) -> Self {
        Self(word.to_owned())
    }

    /// Whether somebody decided, not a rule.
    pub(crate) fn is_somebody(&self) -> bool {
        !["deadline", "daemon"].contains(&self.0.as_str())
    }
}
