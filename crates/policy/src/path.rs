//! Paths inside a root, checked by their text alone: no file is touched.
//!
//! A symbolic link can still lead out. Whoever touches files resolves links first and brings the result here.

use std::fmt;

/// The longest path, in bytes (what Linux accepts).
pub const MAX_PATH_BYTES: usize = 4096;

/// A path relative to a root that cannot leave it: no leading `/`, no `.` or `..`, no NUL, no empty parts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InsidePath(String);

/// Why a path was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// A NUL ends a path early for the system and not for us.
    #[error("the path has a NUL at byte {at}")]
    Nul {
        /// Where.
        at: usize,
    },
    /// Longer than [`MAX_PATH_BYTES`].
    #[error("the path has {length} bytes; the limit is {MAX_PATH_BYTES}")]
    TooLong {
        /// Its length in bytes.
        length: usize,
    },
    /// It begins with `/`, `\`, `~` or a drive letter.
    #[error("the path is absolute")]
    Absolute,
    /// It has a `..`, which leads somewhere else when a part before it is a link.
    #[error("the path has a `..`")]
    Parent,
    /// Nothing is named by the empty path.
    #[error("the path is empty")]
    Empty,
}

impl PathError {
    /// Whether the path names a place outside of the root, as opposed to no place at all.
    #[must_use]
    pub fn is_escape(&self) -> bool {
        match self {
            PathError::Absolute | PathError::Parent => true,
            PathError::Nul { .. } | PathError::TooLong { .. } | PathError::Empty => false,
        }
    }
}

impl InsidePath {
    /// Takes a relative path as a tool would name it. `./a//b/` becomes `a/b`; the root itself becomes `.`.
    pub fn parse(path: &str) -> Result<InsidePath, PathError> {
        if path.is_empty() {
            return Err(PathError::Empty);
        }
        if path.len() > MAX_PATH_BYTES {
            return Err(PathError::TooLong { length: path.len() });
        }
        if let Some(at) = path.find('\0') {
            return Err(PathError::Nul { at });
        }
        if is_absolute(path) {
            return Err(PathError::Absolute);
        }
        let mut parts = Vec::new();
        for part in path.split('/') {
            match part {
                "" | "." => {}
                ".." => return Err(PathError::Parent),
                // `a\..\b` is one name here and a way out where `\` separates.
                part if part.split('\\').any(|piece| piece == "..") => return Err(PathError::Parent),
                part => parts.push(part),
            }
        }
        let spelled = if parts.is_empty() { ".".to_owned() } else { parts.join("/") };
        // `./~/x` is inside until the dot is gone.
        if is_absolute(&spelled) {
            return Err(PathError::Absolute);
        }
        Ok(InsidePath(spelled))
    }

    /// The path, with single slashes and without a slash at either end.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for InsidePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn is_absolute(path: &str) -> bool {
    let mut chars = path.chars();
    match (chars.next(), chars.next()) {
        (Some('/' | '\\'), _) => true,
        // A shell, and many tools, read `~` and `~name` as a home.
        (Some('~'), _) => true,
        (Some(letter), Some(':')) => letter.is_ascii_alphabetic(),
        (Some(_), _) | (None, _) => false,
    }
}
