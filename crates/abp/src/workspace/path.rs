//! The names of things in a tree: relative, of real components only, and never text unless they happen to be.

use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use serde::{Serialize, Serializer};

/// Where something is below the root of a workspace. It has no empty, `.` or `..` component and does not begin with `/`, so
/// that only a symlink could make it lead out of the root. The empty path is the root itself.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TreePath(Box<[u8]>);

impl TreePath {
    /// The root of the tree.
    pub(super) fn root() -> Self {
        Self(Box::default())
    }

    /// The path of these bytes, if it is one.
    pub fn new(bytes: impl Into<Vec<u8>>) -> Option<Self> {
        let bytes = bytes.into();
        let fine = bytes.is_empty()
            || bytes
                .split(|byte| *byte == b'/')
                .all(|part| !part.is_empty() && part != b"." && part != b".." && !part.contains(&0));
        fine.then(|| Self(bytes.into()))
    }

    /// Its bytes, with `/` between the components.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The same, for the functions of the standard library.
    pub fn as_path(&self) -> &Path {
        Path::new(OsStr::from_bytes(&self.0))
    }

    /// As text; what is no text is replaced.
    pub fn to_text(&self) -> String {
        String::from_utf8_lossy(&self.0).into_owned()
    }

    pub(super) fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// The entry of this name in the folder that this path is. The name comes from a listing, so it is one component.
    pub(super) fn child(&self, name: &[u8]) -> Self {
        if self.is_root() {
            return Self(name.into());
        }
        Self([&self.0, name].join(&b'/').into())
    }

    /// The folder it is in; the root is in none.
    pub(super) fn parent(&self) -> Option<Self> {
        if self.is_root() {
            return None;
        }
        let end = self.0.iter().rposition(|byte| *byte == b'/').unwrap_or(0);
        Some(Self(self.0[..end].into()))
    }

    /// Its last component.
    pub(super) fn name(&self) -> &OsStr {
        let begin = self.0.iter().rposition(|byte| *byte == b'/').map_or(0, |slash| slash + 1);
        OsStr::from_bytes(&self.0[begin..])
    }

    pub(super) fn components(&self) -> impl Iterator<Item = &OsStr> {
        self.0.split(|byte| *byte == b'/').filter(|part| !part.is_empty()).map(OsStr::from_bytes)
    }

    /// All folders above it, the nearest first, without the root.
    pub(super) fn folders(&self) -> impl Iterator<Item = Self> {
        std::iter::successors(self.parent(), Self::parent).filter(|path| !path.is_root())
    }

    /// How many folders it is below the root.
    fn depth(&self) -> usize {
        self.components().count().saturating_sub(1)
    }

    /// Whether a symlink that is here and says `target` can only lead to places inside the root.
    ///
    /// It may climb first and descend then. One that climbs after it has descended may pass another symlink in between, and
    /// then `..` is not what it looks like; so that is refused, like everything absolute.
    pub(super) fn link_stays_inside(&self, target: &[u8]) -> bool {
        if target.is_empty() || target.starts_with(b"/") {
            return false;
        }
        let mut parts = target.split(|byte| *byte == b'/').filter(|part| !part.is_empty() && *part != b".");
        let climbed = parts.by_ref().take_while(|part| *part == b"..").count();
        // `take_while` has consumed the first component that goes down; it is no `..` by its definition.
        climbed <= self.depth() && parts.all(|part| part != b"..")
    }
}

/// For messages: text as it is, anything else escaped, so that a name cannot play tricks on a terminal.
impl fmt::Display for TreePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for chunk in self.0.utf8_chunks() {
            for character in chunk.valid().chars() {
                if character.is_control() {
                    write!(f, "{}", character.escape_default())?;
                } else {
                    write!(f, "{character}")?;
                }
            }
            for byte in chunk.invalid() {
                write!(f, "\\x{byte:02x}")?;
            }
        }
        Ok(())
    }
}

impl fmt::Debug for TreePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{self}`")
    }
}

impl Serialize for TreePath {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.to_text())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> TreePath {
        TreePath::new(text).unwrap()
    }

    #[test]
    fn a_path_that_could_leave_its_tree_by_itself_is_none() {
        for bad in ["/", "/etc", "a//b", "a/", ".", "..", "a/../b", "./a", "a\0b"] {
            assert_eq!(TreePath::new(bad), None, "{bad}");
        }
        for good in ["", "a", "a/b", "...", "a b/\n", ".git"] {
            assert!(TreePath::new(good).is_some(), "{good}");
        }
    }

    #[test]
    fn a_path_knows_its_folders_and_its_name() {
        assert_eq!(path("a/b/c").folders().collect::<Vec<_>>(), [path("a/b"), path("a")]);
        assert_eq!(path("a").folders().count(), 0);
        assert_eq!((path("a/b").name(), path("a").name()), (OsStr::new("b"), OsStr::new("a")));
        assert_eq!(TreePath::root().child(b"a").child(b"b"), path("a/b"));
    }

    #[test]
    fn a_link_stays_inside_when_it_climbs_first_and_not_too_far() {
        let cases: &[(&str, &str, bool)] = &[
            ("l", "x", true),
            ("l", "a/b", true),
            ("l", "./a", true),
            ("l", ".", true),
            ("l", "..", false),
            ("l", "../x", false),
            ("l", "/etc/passwd", false),
            ("l", "", false),
            ("a/l", "../x", true),
            ("a/l", "..", true),
            ("a/l", "../..", false),
            ("a/l", "../../x", false),
            ("a/b/l", "../../x/y", true),
            // `up` may be a symlink to the root, and then `up/..` is outside.
            ("a/b/l", "up/../x", false),
            ("a/b/l", "./../x", true),
            ("a/b/l", "..//.././x", true),
        ];
        for (place, target, inside) in cases {
            assert_eq!(path(place).link_stays_inside(target.as_bytes()), *inside, "{place} -> {target}");
        }
    }

    #[test]
    fn a_name_is_shown_without_its_tricks() {
        let name = TreePath::new(b"a\x1b[31m\xff\n\xc3\xa4".to_vec()).unwrap();
        assert_eq!(name.to_string(), "a\\u{1b}[31m\\xff\\nä");
    }
}
