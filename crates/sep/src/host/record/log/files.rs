//! The files of one log: `current.log`, then `current.1.log` and so on, which together never exceed their bound.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Appends to a set of files that are never more or larger than they may be, not even for a moment. Files are opened anew for each
/// batch, so that quiet extensions hold no descriptors.
#[derive(Debug)]
pub(super) struct Files {
    dir: PathBuf,
    max_bytes: u64,
    max_files: u32,
}

impl Files {
    pub(super) fn open(dir: &Path, max_bytes: u64, max_files: u32) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
        let files = Self { dir: dir.to_owned(), max_bytes, max_files: max_files.max(1) };
        files.fit()?;
        Ok(files)
    }

    /// Appends whole lines; one that is larger than a file is refused, and nothing after it is written.
    pub(super) fn append(&self, lines: &[u8]) -> io::Result<()> {
        let (mut file, mut size) = self.current()?;
        let mut unwritten = 0..0;
        for line in lines.split_inclusive(|byte| *byte == b'\n') {
            let length = line.len() as u64;
            if length > self.max_bytes {
                file.write_all(&lines[unwritten])?;
                return Err(io::Error::other("a line is larger than a whole log file"));
            }
            if size + length > self.max_bytes {
                file.write_all(&lines[unwritten.clone()])?;
                unwritten.start = unwritten.end;
                self.rotate()?;
                (file, size) = self.current()?;
            }
            size += length;
            unwritten.end += line.len();
        }
        file.write_all(&lines[unwritten])
    }

    /// The last `count` lines of all files, oldest first. A half line at the end is none.
    pub(super) fn last_lines(&self, count: usize) -> Vec<String> {
        last_lines(&self.dir, self.max_files, count)
    }

    fn current(&self) -> io::Result<(File, u64)> {
        let file = OpenOptions::new().append(true).create(true).mode(0o600).open(self.numbered(0))?;
        let size = file.metadata()?.len();
        Ok((file, size))
    }

    /// Makes what an earlier host left obey the bounds of this one, and cuts off a half line.
    fn fit(&self) -> io::Result<()> {
        for entry in fs::read_dir(&self.dir)? {
            let path = entry?.path();
            let number = path.file_name().and_then(|name| number(name.to_str()?));
            let Some(number) = number else { continue };
            if number >= self.max_files || fs::metadata(&path)?.len() > self.max_bytes {
                fs::remove_file(&path)?;
            }
        }
        let (file, size) = self.current()?;
        let bytes = fs::read(self.numbered(0))?;
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |newline| newline as u64 + 1);
        if whole < size { file.set_len(whole) } else { Ok(()) }
    }

    /// Makes room: the oldest file goes first.
    fn rotate(&self) -> io::Result<()> {
        let oldest = self.max_files - 1;
        missing_is_fine(fs::remove_file(self.numbered(oldest)))?;
        for number in (0..oldest).rev() {
            missing_is_fine(fs::rename(self.numbered(number), self.numbered(number + 1)))?;
        }
        Ok(())
    }

    fn numbered(&self, number: u32) -> PathBuf {
        numbered(&self.dir, number)
    }
}

/// The last `count` lines of the log in `dir`, oldest first.
pub(super) fn last_lines(dir: &Path, max_files: u32, count: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for number in 0..max_files {
        let Ok(bytes) = fs::read(numbered(dir, number)) else { continue };
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |newline| newline + 1);
        let newest_first = bytes[..whole].split(|byte| *byte == b'\n').rev().filter(|line| !line.is_empty());
        let room = count - lines.len();
        lines.extend(newest_first.take(room).map(|line| String::from_utf8_lossy(line).into_owned()));
        if lines.len() == count {
            break;
        }
    }
    lines.reverse();
    lines
}

fn numbered(dir: &Path, number: u32) -> PathBuf {
    match number {
        0 => dir.join("current.log"),
        number => dir.join(format!("current.{number}.log")),
    }
}

/// The number of a file of the log; none for a file of somebody else.
fn number(name: &str) -> Option<u32> {
    match name {
        "current.log" => Some(0),
        name => name.strip_prefix("current.")?.strip_suffix(".log")?.parse().ok(),
    }
}

fn missing_is_fine(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contents(dir: &Path) -> Vec<(String, String)> {
        let mut files: Vec<_> = fs::read_dir(dir)
            .unwrap()
            .map(|entry| entry.unwrap())
            .map(|entry| {
                (entry.file_name().into_string().unwrap(), fs::read_to_string(entry.path()).unwrap())
            })
            .collect();
        files.sort();
        files
    }

    fn named(files: &[(&str, &str)]) -> Vec<(String, String)> {
        files.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
    }

    #[test]
    fn a_file_is_full_at_its_bound_and_rotated_one_byte_past_it() {
        let dir = tempfile::tempdir().unwrap();
        let files = Files::open(dir.path(), 6, 2).unwrap();
        files.append(b"ab\ncd\n").unwrap();
        assert_eq!(contents(dir.path()), named(&[("current.log", "ab\ncd\n")]));
        files.append(b"e\n").unwrap();
        assert_eq!(contents(dir.path()), named(&[("current.1.log", "ab\ncd\n"), ("current.log", "e\n")]));
        files.append(b"fgh\nijklm\nn\n").unwrap();
        assert_eq!(contents(dir.path()), named(&[("current.1.log", "ijklm\n"), ("current.log", "n\n")]));
        assert_eq!(files.last_lines(1), ["n"]);
        assert_eq!(files.last_lines(9), ["ijklm", "n"]);
        assert!(files.append(b"1234567\n").is_err());
    }

    #[test]
    fn one_file_is_enough_and_is_begun_anew() {
        let dir = tempfile::tempdir().unwrap();
        let files = Files::open(dir.path(), 4, 0).unwrap();
        files.append(b"ab\ncd\n").unwrap();
        assert_eq!(contents(dir.path()), named(&[("current.log", "cd\n")]));
    }

    #[test]
    fn what_an_earlier_host_left_is_made_to_fit() {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in [
            ("current.log", "a\nhalf"),
            ("current.1.log", "toolong\n"),
            ("current.2.log", "c\n"),
            ("mine", "x"),
        ] {
            fs::write(dir.path().join(name), text).unwrap();
        }
        Files::open(dir.path(), 6, 2).unwrap();
        assert_eq!(contents(dir.path()), named(&[("current.log", "a\n"), ("mine", "x")]));
    }
}
