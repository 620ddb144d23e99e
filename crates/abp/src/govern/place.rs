//! Where a path leads: a text that a child wrote, followed through links, inside the root or out of it.
//!
//! A path is judged twice, because a list may mean either: as it is *named* (`ok/../secret` is `secret`), and as the file
//! system *leads* it (`ok` may be a link to `secret`). Links are followed as far as something exists; what does not exist
//! yet is taken by its text. Between the question and the act somebody can still swap a link, so only the box makes this
//! a barrier; here it is a judgement.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use outrigger_policy::Reason;
use outrigger_policy::path::MAX_PATH_BYTES;

/// The most links that are followed for one path; the kernel follows as many.
pub const MAX_LINKS: usize = 40;

/// The root of a run, and how to find out whether a path is in it.
#[derive(Clone, Debug)]
pub struct Root {
    /// As it was given, absolute.
    given: PathBuf,
    /// With every link followed.
    real: PathBuf,
}

/// A path inside the root, relative to it. Both spellings are the same unless a link is on the way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// As the child named it, without `.` and `..`.
    pub named: String,
    /// Where it leads when links are followed.
    pub real: String,
}

/// The root of a run cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("the root `{}` of the run cannot be used: {source}", path.display())]
pub struct RootError {
    /// The folder as it was given.
    pub path: PathBuf,
    /// What the system said.
    pub source: io::Error,
}

impl Root {
    /// The root at `path`, which must exist.
    pub fn open(path: &Path) -> Result<Root, RootError> {
        let failed = |source| RootError { path: path.to_owned(), source };
        let given = std::path::absolute(path).map_err(failed)?;
        let real = fs::canonicalize(&given).map_err(failed)?;
        if !real.is_dir() {
            return Err(failed(io::ErrorKind::NotADirectory.into()));
        }
        Ok(Root { given: without_dots(&given), real })
    }

    /// The folder with every link followed.
    #[must_use]
    pub fn real(&self) -> &Path {
        &self.real
    }

    /// Where `text` leads, or why that is refused: it leads out, or no file can have this path.
    pub fn locate(&self, text: &str) -> Result<Place, Reason> {
        let text = plain(text)?;
        let asked = Path::new(&text);
        // Both ends in one step each: `join` takes an absolute path as it is.
        let named = without_dots(&self.given.join(asked));
        let real = follow(&self.real, asked)?;
        let real = real.strip_prefix(&self.real).map_err(|_| Reason::PathEscapes)?;
        let real = spell(real)?;
        let inside = named.strip_prefix(&self.given).or_else(|_| named.strip_prefix(&self.real));
        match inside {
            Ok(inside) => Ok(Place { named: spell(inside)?, real }),
            // It came in by a third way, through a link to the root or into it; that way has no name in here.
            Err(_) if asked.is_absolute() => Ok(Place { named: real.clone(), real }),
            Err(_) => Err(Reason::PathEscapes),
        }
    }
}

/// The text as a path of this system, or why it is none that stays inside.
fn plain(text: &str) -> Result<String, Reason> {
    let text = match strip_scheme(text) {
        Some(rest) => from_file_url(rest)?,
        None => text.to_owned(),
    };
    if text.is_empty() || text.len() > MAX_PATH_BYTES || text.contains('\0') {
        return Err(Reason::PathInvalid);
    }
    let mut chars = text.chars();
    match (chars.next(), chars.next()) {
        // A home to a shell and to many tools; a drive or a share where `\` separates.
        (Some('~' | '\\'), _) => return Err(Reason::PathEscapes),
        (Some(letter), Some(':')) if letter.is_ascii_alphabetic() => return Err(Reason::PathEscapes),
        (Some(_), _) | (None, _) => {}
    }
    if text.split('/').any(|part| part.contains('\\') && part.split('\\').any(|piece| piece == "..")) {
        return Err(Reason::PathEscapes);
    }
    Ok(text)
}

fn strip_scheme(text: &str) -> Option<&str> {
    let scheme = text.get(..5)?;
    scheme.eq_ignore_ascii_case("file:").then(|| &text[5..])
}

/// What follows `file:`, as a path. Another machine's files are outside.
fn from_file_url(rest: &str) -> Result<String, Reason> {
    let path = match rest.strip_prefix("//") {
        None => rest,
        Some(after) => {
            let (host, path) = after.split_at(after.find('/').ok_or(Reason::PathInvalid)?);
            if !host.is_empty() && !host.eq_ignore_ascii_case("localhost") {
                return Err(Reason::PathEscapes);
            }
            path
        }
    };
    let path = path.split(['?', '#']).next().unwrap_or(path);
    percent_decoded(path).ok_or(Reason::PathInvalid)
}

fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut nibble = || char::from(rest.next()?).to_digit(16);
        let (high, low) = (nibble()?, nibble()?);
        bytes.push(u8::try_from(high * 16 + low).ok()?);
    }
    String::from_utf8(bytes).ok()
}

/// The path without `.` and `..`, by its text alone.
fn without_dots(path: &Path) -> PathBuf {
    let mut clean = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                clean.pop();
            }
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => clean.push(part),
        }
    }
    clean
}

/// Where the kernel would arrive from `base`, with what does not exist taken by its text.
fn follow(base: &Path, asked: &Path) -> Result<PathBuf, Reason> {
    let mut here = if asked.is_absolute() { PathBuf::from("/") } else { base.to_owned() };
    // What is still to be walked, the next part last.
    let mut ahead: Vec<OsString> = parts(asked);
    let mut links = 0;
    let mut exists = true;
    while let Some(part) = ahead.pop() {
        if part == ".." {
            here.pop();
            // What was made up by its text may be left again, back to what exists.
            exists = true;
            continue;
        }
        here.push(&part);
        if !exists {
            continue;
        }
        match fs::read_link(&here) {
            Ok(target) => {
                links += 1;
                if links > MAX_LINKS {
                    return Err(Reason::PathInvalid);
                }
                here.pop();
                if target.is_absolute() {
                    here = PathBuf::from("/");
                }
                ahead.extend(parts(&target));
            }
            Err(error) => match error.kind() {
                // It exists and is no link.
                io::ErrorKind::InvalidInput => {}
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => exists = false,
                // A name too long, a folder that may not be searched: nobody can tell where it leads.
                _ => return Err(Reason::PathInvalid),
            },
        }
    }
    Ok(here)
}

/// The parts of a path in reverse, without `/` and `.`.
fn parts(path: &Path) -> Vec<OsString> {
    let part = |component: Component<'_>| match component {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some(OsString::from("..")),
        Component::Prefix(_) | Component::RootDir | Component::CurDir => None,
    };
    path.components().rev().filter_map(part).collect()
}

/// A path inside the root as the lists know it.
fn spell(inside: &Path) -> Result<String, Reason> {
    let text = inside.to_str().ok_or(Reason::PathInvalid)?;
    Ok(if text.is_empty() { ".".to_owned() } else { text.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    /// root/{src/main.rs, secret/key, to_secret → secret, out → /, up → .., loop → loop, abs → root/src}
    fn root() -> (tempfile::TempDir, Root) {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("root");
        fs::create_dir_all(root.join("src")).unwrap();
        fs::create_dir_all(root.join("secret")).unwrap();
        fs::write(root.join("src/main.rs"), "").unwrap();
        fs::write(root.join("secret/key"), "").unwrap();
        symlink("secret", root.join("to_secret")).unwrap();
        symlink("/", root.join("out")).unwrap();
        symlink("..", root.join("up")).unwrap();
        symlink("loop", root.join("loop")).unwrap();
        symlink(root.join("src"), root.join("abs")).unwrap();
        symlink("root", folder.path().join("alias")).unwrap();
        let opened = Root::open(&root).unwrap();
        (folder, opened)
    }

    #[test]
    fn a_path_inside_is_found_however_it_is_written() {
        let (folder, root) = root();
        let absolute = |tail: &str| format!("{}/{tail}", folder.path().display());
        let table = [
            ("src/main.rs".to_owned(), "src/main.rs", "src/main.rs"),
            ("./src//main.rs".to_owned(), "src/main.rs", "src/main.rs"),
            ("src/../secret/key".to_owned(), "secret/key", "secret/key"),
            (".".to_owned(), ".", "."),
            ("new/folder/../file".to_owned(), "new/file", "new/file"),
            ("new/../src/main.rs".to_owned(), "src/main.rs", "src/main.rs"),
            ("to_secret/key".to_owned(), "to_secret/key", "secret/key"),
            ("abs/main.rs".to_owned(), "abs/main.rs", "src/main.rs"),
            ("up/root/src".to_owned(), "up/root/src", "src"),
            ("../root/src".to_owned(), "src", "src"),
            ("ünïcode/文件".to_owned(), "ünïcode/文件", "ünïcode/文件"),
            ("%2e%2e/x".to_owned(), "%2e%2e/x", "%2e%2e/x"),
            ("...".to_owned(), "...", "..."),
            ("src/main.rs/below".to_owned(), "src/main.rs/below", "src/main.rs/below"),
            (absolute("root/src/main.rs"), "src/main.rs", "src/main.rs"),
            (absolute("alias/to_secret/key"), "secret/key", "secret/key"),
            (format!("file://{}", absolute("root/src/a%20b")), "src/a b", "src/a b"),
            (format!("FILE://localhost{}", absolute("root/src")), "src", "src"),
        ];
        for (text, named, real) in table {
            let place = Place { named: named.to_owned(), real: real.to_owned() };
            assert_eq!(root.locate(&text), Ok(place), "{text}");
        }
    }

    #[test]
    fn a_path_that_leads_out_is_refused_however_it_is_hidden() {
        let (folder, root) = root();
        let escapes = [
            "..".to_owned(),
            "../x".to_owned(),
            "src/../../x".to_owned(),
            "/".to_owned(),
            "/etc/passwd".to_owned(),
            "//etc/passwd".to_owned(),
            "out/etc/passwd".to_owned(),
            "up/x".to_owned(),
            "up".to_owned(),
            "to_secret/../../x".to_owned(),
            // By its text it stays inside; the link takes it out first.
            "up/../root/src".to_owned(),
            "new/../../x".to_owned(),
            "~/x".to_owned(),
            "~root/x".to_owned(),
            r"C:\Windows\system.ini".to_owned(),
            "c:/x".to_owned(),
            r"\\server\share".to_owned(),
            r"src\..\..\x".to_owned(),
            "file:///etc/passwd".to_owned(),
            "file:/etc/passwd".to_owned(),
            "file://server/share".to_owned(),
            "file:///%65tc/passwd".to_owned(),
            format!("file://{}/root/%2e%2e/x", folder.path().display()),
            // A folder beside the root whose name begins alike.
            format!("{}/root2/x", folder.path().display()),
        ];
        for text in escapes {
            assert_eq!(root.locate(&text), Err(Reason::PathEscapes), "{text}");
        }
    }

    #[test]
    fn what_no_file_can_be_called_is_refused() {
        let (_folder, root) = root();
        let invalid = [
            String::new(),
            "a\0b".to_owned(),
            "loop".to_owned(),
            "loop/x".to_owned(),
            "file:///a%00b".to_owned(),
            "file:///a%zz".to_owned(),
            "file:///a%f".to_owned(),
            "file:///%ff".to_owned(),
            "file://".to_owned(),
            "n".repeat(256),
            "n/".repeat(2049),
        ];
        for text in invalid {
            assert_eq!(root.locate(&text), Err(Reason::PathInvalid), "{}", &text[..text.len().min(40)]);
        }
        let longest = "n/".repeat(2048);
        assert!(root.locate(&longest).is_ok());
    }

    #[test]
    fn a_chain_of_links_is_followed_as_far_as_the_kernel_would() {
        let (folder, root) = root();
        let at = |n: usize| folder.path().join(format!("root/l{n}"));
        symlink("src", at(1)).unwrap();
        for n in 2..=MAX_LINKS + 1 {
            symlink(format!("l{}", n - 1), at(n)).unwrap();
        }
        assert!(fs::metadata(at(MAX_LINKS)).is_ok());
        assert!(root.locate(&format!("l{MAX_LINKS}")).is_ok());
        assert!(fs::metadata(at(MAX_LINKS + 1)).is_err());
        assert_eq!(root.locate(&format!("l{}", MAX_LINKS + 1)), Err(Reason::PathInvalid));
    }

    #[test]
    fn a_root_behind_a_link_knows_its_own_paths_by_both_names() {
        let (folder, _) = root();
        let root = Root::open(&folder.path().join("alias")).unwrap();
        for name in ["alias", "root"] {
            let text = format!("{}/{name}/src/main.rs", folder.path().display());
            let place = Place { named: "src/main.rs".to_owned(), real: "src/main.rs".to_owned() };
            assert_eq!(root.locate(&text), Ok(place), "{name}");
        }
    }

    #[test]
    fn a_root_that_is_missing_or_a_file_is_named_in_the_error() {
        let (folder, _) = root();
        let missing = Root::open(&folder.path().join("nowhere")).unwrap_err().to_string();
        assert!(missing.contains("nowhere"), "{missing}");
        let file = Root::open(&folder.path().join("root/src/main.rs")).unwrap_err().to_string();
        assert!(file.contains("main.rs"), "{file}");
    }

    proptest::proptest! {
        #[test]
        fn where_the_kernel_arrives_is_where_we_say(
            parts in proptest::collection::vec(
                proptest::sample::select(vec![
                    "src", "main.rs", "secret", "key", "to_secret", "out", "up", "loop", "abs", "..", ".", "", "root", "etc",
                    "new",
                ]),
                1..8,
            ),
        ) {
            let (_folder, root) = root();
            let text = parts.join("/");
            if text.is_empty() {
                return Ok(());
            }
            let arrived = fs::canonicalize(root.real().join(&text));
            match (root.locate(&text), arrived) {
                (Ok(place), Ok(arrived)) => {
                    let said = if place.real == "." { root.real().to_owned() } else { root.real().join(&place.real) };
                    proptest::prop_assert_eq!(said, arrived);
                }
                (Err(_), Ok(arrived)) => {
                    // Refused although it exists: it is outside, or it goes out by its text alone.
                    let named = without_dots(&root.real().join(&text));
                    let inside = arrived.starts_with(root.real()) && named.starts_with(root.real());
                    proptest::prop_assert!(!inside, "{text}");
                }
                // Nothing is there yet: what is made there must be inside, whichever folders are made first.
                (Ok(place), Err(_)) => {
                    proptest::prop_assert!(!place.real.starts_with('/') && !place.real.split('/').any(|part| part == ".."));
                }
                (Err(_), Err(_)) => {}
            }
        }
    }
}
