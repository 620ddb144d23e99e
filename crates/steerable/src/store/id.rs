//! The names of things in a store, and new ones.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// Which transcript. A session's has the session's own id.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RecordId(String);

impl RecordId {
    /// The transcript that has this name.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self(name.into())
    }

    /// A name that nobody has yet: `rec_` and 32 hex digits.
    #[must_use]
    pub fn fresh() -> Self {
        Self(fresh_id("rec_"))
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RecordId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The place of something in its transcript. The first is 1; they grow by one for each message and each compaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Seq(pub u64);

impl fmt::Display for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// `prefix` and 32 hex digits that nobody can guess.
#[must_use]
pub fn fresh_id(prefix: &str) -> String {
    let mut bytes = [0; 16];
    if getrandom::fill(&mut bytes).is_err() {
        // A system without randomness is early in its boot. Ids must still differ, so they are a time and a count.
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let count = COUNT.fetch_add(1, Ordering::Relaxed).wrapping_add(u64::from(std::process::id()) << 32);
        bytes = ((now.as_nanos() << 64) ^ u128::from(count)).to_be_bytes();
    }
    format!("{prefix}{:032x}", u128::from_be_bytes(bytes))
}
