//! Names of things in a store: runs, calls, tickets, moments.

use std::fmt;
use std::str::FromStr;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::host::key::{hex, id_of};

/// A moment, in milliseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct UnixMillis(pub u64);

impl UnixMillis {
    /// What the machine's clock says.
    pub fn now() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
    }
}

impl fmt::Display for UnixMillis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ms after 1970", self.0)
    }
}

/// Which call of a run. The number is the same whoever runs it and however often a step is repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CallId(pub u64);

impl fmt::Display for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// 16 random bytes as 32 lower-case hex digits: safe as a file name.
macro_rules! random_id {
    ($(#[$doc:meta])* $name:ident, $what:literal) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// One that nobody has seen before.
            ///
            /// # Errors
            ///
            /// When the system has no randomness to give.
            pub fn random() -> Result<Self, getrandom::Error> {
                let mut bytes = [0; 16];
                getrandom::fill(&mut bytes)?;
                Ok(Self(hex(&bytes)))
            }

            /// Its 32 hex digits.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl FromStr for $name {
            type Err = NotAnId;

            fn from_str(text: &str) -> Result<Self, NotAnId> {
                let good = text.len() == 32 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
                if good { Ok(Self(text.to_owned())) } else { Err(NotAnId { what: $what }) }
            }
        }

        impl TryFrom<String> for $name {
            type Error = NotAnId;

            fn try_from(text: String) -> Result<Self, NotAnId> {
                text.parse()
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> Self {
                id.0
            }
        }
    };
}

random_id! {
    /// The right to continue a parked run, once. Whoever has it can take the run, so treat it like a password.
    Ticket, "ticket"
}
random_id! {
    /// One logical run, over all its steps, children and hosts.
    RunId, "run id"
}

impl RunId {
    /// The run with this number of a host with this random beginning.
    pub(in crate::host) fn derived(lineage: &Self, number: u64) -> Self {
        let mut id = id_of(format!("{lineage}/{number}").as_bytes());
        id.truncate(32);
        Self(id)
    }
}

/// Text that should have been an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a {what} is 32 lower-case hex digits, and this is not")]
pub struct NotAnId {
    what: &'static str,
}
