//! The files that an agent may read and write through us: those below the folders of its session.
//!
//! The agent runs as the user and could open any file itself. The bound is for the mistakes of a model, not against an agent
//! that means harm.

use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};

/// The longest file that is read, and the longest text that is written.
const LONGEST: u64 = 16 << 20;

/// The folders of a session.
#[derive(Clone, Debug)]
pub(super) struct Folders {
    roots: Vec<PathBuf>,
}

/// Why a file is not read or written.
#[derive(Debug, thiserror::Error)]
pub(super) enum FileError {
    #[error("{path} is no absolute path")]
    Relative { path: String },
    #[error("{path} is outside of the folders of this session")]
    Outside { path: String },
    #[error("{path} is longer than {LONGEST} bytes")]
    TooLong { path: String },
    #[error("{path}: {error}")]
    Io { path: String, error: io::Error },
}

impl FileError {
    /// Whether there is no such file.
    pub(super) fn is_not_found(&self) -> bool {
        matches!(self, Self::Io { error, .. } if error.kind() == io::ErrorKind::NotFound)
    }
}

/// Which lines of a file are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lines {
    /// The first one, counted from 1.
    pub(super) from: u64,
    /// How many; all if absent.
    pub(super) most: Option<u64>,
}

impl Folders {
    /// Folders that do not exist are left out.
    pub(super) fn new<'a>(folders: impl IntoIterator<Item = &'a Path>) -> Self {
        Self { roots: folders.into_iter().filter_map(|folder| folder.canonicalize().ok()).collect() }
    }

    /// The text of a file, or some lines of it.
    pub(super) fn read(&self, path: &str, lines: Lines) -> Result<String, FileError> {
        let io = |error| FileError::Io { path: path.to_owned(), error };
        let real = absolute(path)?.canonicalize().map_err(io)?;
        self.check(path, &real)?;
        if !real.metadata().map_err(io)?.is_file() {
            return Err(io(io::Error::new(io::ErrorKind::InvalidInput, "it is no file")));
        }
        let mut text = String::new();
        let file = std::fs::File::open(&real).map_err(io)?;
        file.take(LONGEST + 1).read_to_string(&mut text).map_err(io)?;
        if text.len() as u64 > LONGEST {
            return Err(FileError::TooLong { path: path.to_owned() });
        }
        Ok(lines.of(text))
    }

    /// Replaces the text of a file, or makes one.
    pub(super) fn write(&self, path: &str, text: &str) -> Result<(), FileError> {
        let io = |error| FileError::Io { path: path.to_owned(), error };
        if text.len() as u64 > LONGEST {
            return Err(FileError::TooLong { path: path.to_owned() });
        }
        let real = self.place_of(path)?;
        if let Some(folder) = real.parent() {
            std::fs::create_dir_all(folder).map_err(io)?;
        }
        std::fs::write(&real, text).map_err(io)
    }

    /// Where a file is that may not exist yet: the part of its path that exists, without links, and the rest.
    fn place_of(&self, path: &str) -> Result<PathBuf, FileError> {
        let wanted = absolute(path)?;
        let outside = || FileError::Outside { path: path.to_owned() };
        let mut rest = Vec::new();
        let mut exists = wanted;
        let real = loop {
            match exists.canonicalize() {
                Ok(real) => break real,
                // A link that leads nowhere would be followed by whoever writes to it.
                Err(_) if exists.symlink_metadata().is_ok() => return Err(outside()),
                Err(_) => {
                    let Some(Component::Normal(name)) = exists.components().next_back() else {
                        return Err(outside());
                    };
                    rest.push(name.to_owned());
                    exists = exists.parent().ok_or_else(outside)?;
                }
            }
        };
        self.check(path, &real)?;
        Ok(rest.into_iter().rev().fold(real, |place, name| place.join(name)))
    }

    fn check(&self, path: &str, real: &Path) -> Result<(), FileError> {
        if self.roots.iter().any(|root| real.starts_with(root)) {
            Ok(())
        } else {
            Err(FileError::Outside { path: path.to_owned() })
        }
    }
}

fn absolute(path: &str) -> Result<&Path, FileError> {
    let path = Path::new(path);
    if path.is_absolute() { Ok(path) } else { Err(FileError::Relative { path: path.display().to_string() }) }
}

impl Lines {
    /// Everything.
    pub(super) const ALL: Self = Self { from: 1, most: None };

    fn of(self, text: String) -> String {
        if self == Self::ALL {
            return text;
        }
        let skip = usize::try_from(self.from.saturating_sub(1)).unwrap_or(usize::MAX);
        let most = self.most.map_or(usize::MAX, |most| usize::try_from(most).unwrap_or(usize::MAX));
        text.split_inclusive('\n').skip(skip).take(most).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Place {
        _folder: tempfile::TempDir,
        root: PathBuf,
        outside: PathBuf,
        folders: Folders,
    }

    fn place() -> Place {
        let folder = tempfile::tempdir().unwrap();
        let (root, outside) = (folder.path().join("root"), folder.path().join("outside"));
        std::fs::create_dir_all(&root).unwrap();
        std::fs::create_dir_all(&outside).unwrap();
        std::fs::write(root.join("a.txt"), "one\ntwo\nthree\n").unwrap();
        std::fs::write(outside.join("secret.txt"), "secret").unwrap();
        let folders = Folders::new([root.as_path(), Path::new("/does/not/exist")]);
        Place { _folder: folder, root, outside, folders }
    }

    fn text(path: &Path) -> &str {
        path.to_str().unwrap()
    }

    #[test]
    fn a_file_is_read_whole_or_by_its_lines() {
        let Place { root, folders, _folder, .. } = place();
        let path = root.join("a.txt");
        let read = |from, most| folders.read(text(&path), Lines { from, most }).unwrap();
        assert_eq!(read(1, None), "one\ntwo\nthree\n");
        assert_eq!(read(2, Some(1)), "two\n");
        assert_eq!(read(0, Some(1)), "one\n");
        assert_eq!(read(9, None), "");
        assert!(folders.read(text(&root.join("none")), Lines::ALL).unwrap_err().is_not_found());
        assert!(!folders.read(text(&root), Lines::ALL).unwrap_err().is_not_found());
    }

    #[test]
    fn a_file_is_written_also_into_folders_that_are_not_there_yet() {
        let Place { root, folders, _folder, .. } = place();
        let path = root.join("new/deep/b.txt");
        folders.write(text(&path), "b").unwrap();
        folders.write(text(&path), "c").unwrap();
        assert_eq!(std::fs::read_to_string(path).unwrap(), "c");
    }

    #[test]
    fn nothing_outside_is_read_or_written_by_any_way_in() {
        let Place { root, outside, folders, _folder } = place();
        std::os::unix::fs::symlink(&outside, root.join("link")).unwrap();
        std::os::unix::fs::symlink(outside.join("not-yet.txt"), root.join("dangling")).unwrap();
        let reads = [
            outside.join("secret.txt"),
            root.join("../outside/secret.txt"),
            root.join("link/secret.txt"),
            PathBuf::from("/etc/passwd"),
        ];
        for path in reads {
            let error = folders.read(text(&path), Lines::ALL).unwrap_err();
            assert!(matches!(error, FileError::Outside { .. }), "{error}");
        }
        let writes = [
            outside.join("new.txt"),
            root.join("../outside/new.txt"),
            root.join("no/../../outside/new.txt"),
            root.join("link/new.txt"),
            root.join("link/deep/new.txt"),
            root.join("dangling"),
        ];
        for path in writes {
            let error = folders.write(text(&path), "x").unwrap_err();
            assert!(matches!(error, FileError::Outside { .. }), "{}: {error}", path.display());
        }
        assert!(matches!(folders.read("a.txt", Lines::ALL).unwrap_err(), FileError::Relative { .. }));
        assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 1);
    }

    #[test]
    fn a_file_of_16_mib_is_read_and_one_byte_more_is_not() {
        let Place { root, folders, _folder, .. } = place();
        let path = root.join("big");
        let longest = usize::try_from(LONGEST).unwrap();
        std::fs::write(&path, vec![b'x'; longest]).unwrap();
        assert_eq!(folders.read(text(&path), Lines::ALL).unwrap().len(), longest);
        std::fs::write(&path, vec![b'x'; longest + 1]).unwrap();
        assert!(matches!(folders.read(text(&path), Lines::ALL).unwrap_err(), FileError::TooLong { .. }));
        assert!(matches!(
            folders.write(text(&path), &"x".repeat(longest + 1)).unwrap_err(),
            FileError::TooLong { .. }
        ));
    }
}
