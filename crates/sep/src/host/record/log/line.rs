//! One line of a log: who said what, when, in which session.

use outrigger_policy::Millis;
use serde::{Deserialize, Serialize};

use super::super::stamp::Stamp;
use crate::protocol::words::words;

words! {
    /// Where a line comes from.
    Stream ("stream") {
        /// Standard output.
        Stdout = "stdout",
        /// Standard error.
        Stderr = "stderr",
        /// `host.log`.
        Ext = "ext",
        /// The host, about the extension.
        Host = "host",
    }
}

words! {
    /// How much a line matters.
    Level ("level") {
        /// For authors.
        Debug = "debug",
        /// Worth knowing.
        Info = "info",
        /// It may go wrong.
        Warn = "warn",
        /// It went wrong.
        Error = "error",
    }
}

/// One line of a log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogLine {
    /// When.
    pub ts: String,
    /// Its number; it goes on over restarts.
    pub seq: u64,
    /// In which session; none between sessions.
    pub session: Option<String>,
    /// Where it comes from.
    pub stream: Stream,
    /// How much it matters.
    pub level: Level,
    /// What was said.
    pub msg: String,
    /// Whether more was said.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
    /// So many lines were not written, because they came too fast.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dropped: Option<u64>,
}

impl LogLine {
    pub(super) fn new(now: Millis, seq: u64, session: Option<&str>, stream: Stream, level: Level) -> Self {
        Self {
            ts: Stamp(now).to_string(),
            seq,
            session: session.map(ToOwned::to_owned),
            stream,
            level,
            msg: String::new(),
            truncated: false,
            dropped: None,
        }
    }

    /// As JSON, with its newline. Control characters are escaped, so a line is a line whatever was said.
    pub(super) fn encode(&self) -> Vec<u8> {
        // Strings and numbers always serialise.
        let mut line = serde_json::to_vec(self).unwrap_or_default();
        line.push(b'\n');
        line
    }
}
