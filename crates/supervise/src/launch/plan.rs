//! What is to be started, and which descriptors it gets.

use std::ffi::OsString;
use std::fmt;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::sandbox::Request;

/// The environment variable that carries the [`TreeTag`] in every process of a tree.
pub const TREE_VARIABLE: &str = "OUTRIGGER_TREE";

/// Everything the launcher must do. It travels to the launcher as JSON, with the bytes of every string kept exactly.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What the child is called in messages.
    pub name: String,
    /// A path (with a `/`; relative ones start at `cwd`) or a bare name, looked up on the `PATH` in `env`.
    pub program: OsString,
    /// The arguments after the program's own name.
    pub args: Vec<OsString>,
    /// The complete environment; nothing is inherited. Only [`TREE_VARIABLE`] is added.
    pub env: Vec<(OsString, OsString)>,
    /// The working directory, absolute.
    pub cwd: PathBuf,
    /// The file mode creation mask; `None` keeps the host's.
    pub umask: Option<Umask>,
    /// The box.
    pub sandbox: Request,
}

/// A file mode creation mask, such as `0o077`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Umask(pub u16);

/// The descriptors of a child.
#[derive(Debug)]
pub struct Channels {
    /// Descriptor 0.
    pub stdin: Wiring,
    /// Descriptor 1.
    pub stdout: Wiring,
    /// Descriptor 2.
    pub stderr: Wiring,
    /// These become descriptors 3, 4, … in the child. At most [`Channels::MAX_EXTRA`].
    pub extra: Vec<OwnedFd>,
}

impl Channels {
    /// How many extra descriptors one child can be given.
    pub const MAX_EXTRA: usize = 64;

    /// Pipes for all three standard streams and nothing else.
    pub fn piped() -> Self {
        Self { stdin: Wiring::Pipe, stdout: Wiring::Pipe, stderr: Wiring::Pipe, extra: Vec::new() }
    }
}

/// Where one of the standard streams leads.
#[derive(Debug)]
pub enum Wiring {
    /// To `/dev/null`.
    Null,
    /// Through a pipe to the host.
    Pipe,
    /// To wherever the host's own stream leads. The child is in a session of its own, so it can write to the host's
    /// terminal but not read from it.
    Inherit,
    /// To this descriptor.
    Fd(OwnedFd),
}

/// A random number that marks all processes of one tree, through their environment.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TreeTag(u128);

impl TreeTag {
    /// A tag nobody else has.
    pub fn random() -> Result<Self, getrandom::Error> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes)?;
        Ok(Self(u128::from_le_bytes(bytes)))
    }
}

impl FromStr for TreeTag {
    type Err = NotATag;

    fn from_str(text: &str) -> Result<Self, NotATag> {
        // `from_str_radix` would also take a sign and leave out zeros.
        let shape = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        if !shape {
            return Err(NotATag);
        }
        u128::from_str_radix(text, 16).map(Self).map_err(|_| NotATag)
    }
}

/// A text that is not a [`TreeTag`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a tree tag is 32 hexadecimal digits")]
pub struct NotATag;

impl fmt::Display for TreeTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for TreeTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TreeTag({self})")
    }
}
