//! A file that is moved aside before it would grow beyond its bound: `path`, `path.1`, … `path.<max_files - 1>`.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Appends to a set of files that together never exceed `max_files × max_bytes`, not even for a moment.
#[derive(Debug)]
pub(super) struct Rotating {
    path: PathBuf,
    max_bytes: u64,
    max_files: u32,
}

impl Rotating {
    pub(super) fn new(path: PathBuf, max_bytes: u64, max_files: u32) -> Self {
        Self { path, max_bytes, max_files }
    }

    /// Appends whole lines. A line never spans two files; one that is larger than a file is refused.
    ///
    /// The file is opened anew each time, so that a thousand quiet children hold no descriptors.
    pub(super) fn append(&self, lines: &[u8]) -> io::Result<()> {
        let (mut file, mut size) = self.open()?;
        let mut unwritten = 0..0;
        for line in lines.split_inclusive(|byte| *byte == b'\n') {
            let length = line.len() as u64;
            if length > self.max_bytes {
                return Err(io::Error::other("a line is larger than a whole log file"));
            }
            if size + length > self.max_bytes {
                file.write_all(&lines[unwritten.clone()])?;
                unwritten.start = unwritten.end;
                self.rotate()?;
                (file, size) = self.open()?;
            }
            size += length;
            unwritten.end += line.len();
        }
        file.write_all(&lines[unwritten])
    }

    fn open(&self) -> io::Result<(File, u64)> {
        let file = OpenOptions::new().append(true).create(true).mode(0o600).open(&self.path)?;
        let size = file.metadata()?.len();
        if size > self.max_bytes {
            // It was written under a larger bound. Keeping it would break ours.
            file.set_len(0)?;
            return Ok((file, 0));
        }
        Ok((file, size))
    }

    /// Makes room: the oldest file goes first, so that the bound holds at every moment.
    fn rotate(&self) -> io::Result<()> {
        let oldest = self.max_files - 1;
        remove(&self.numbered(oldest))?;
        for number in (0..oldest).rev() {
            match fs::rename(self.numbered(number), self.numbered(number + 1)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                Ok(()) | Err(_) => {}
            }
        }
        Ok(())
    }

    fn numbered(&self, number: u32) -> PathBuf {
        if number == 0 {
            return self.path.clone();
        }
        let mut name = self.path.clone().into_os_string();
        name.push(format!(".{number}"));
        name.into()
    }
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contents(directory: &Path) -> Vec<(String, String)> {
        let mut files: Vec<_> = fs::read_dir(directory)
            .unwrap()
            .map(|entry| {
                let entry = entry.unwrap();
                let name = entry.file_name().into_string().unwrap();
                (name, fs::read_to_string(entry.path()).unwrap())
            })
            .collect();
        files.sort();
        files
    }

    fn owned(files: &[(&str, &str)]) -> Vec<(String, String)> {
        files.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
    }

    #[test]
    fn a_file_is_full_at_its_bound_and_rotated_one_byte_past_it() {
        let directory = tempfile::tempdir().unwrap();
        let log = Rotating::new(directory.path().join("log"), 6, 3);
        log.append(b"ab\ncd\n").unwrap();
        assert_eq!(contents(directory.path()), owned(&[("log", "ab\ncd\n")]));
        log.append(b"e\n").unwrap();
        assert_eq!(contents(directory.path()), owned(&[("log", "e\n"), ("log.1", "ab\ncd\n")]));
    }

    #[test]
    fn the_oldest_file_goes_and_one_batch_may_rotate_several_times() {
        let directory = tempfile::tempdir().unwrap();
        let log = Rotating::new(directory.path().join("log"), 4, 2);
        log.append(b"a\nb\nc\nd\ne\n").unwrap();
        assert_eq!(contents(directory.path()), owned(&[("log", "e\n"), ("log.1", "c\nd\n")]));
        let single = Rotating::new(directory.path().join("one"), 4, 1);
        single.append(b"a\nb\nc\n").unwrap();
        assert!(contents(directory.path()).contains(&("one".into(), "c\n".into())));
        assert!(!directory.path().join("one.1").exists());
    }

    #[test]
    fn a_line_that_fits_no_file_is_refused_and_a_file_that_is_too_large_is_emptied() {
        let directory = tempfile::tempdir().unwrap();
        let log = Rotating::new(directory.path().join("log"), 4, 2);
        log.append(b"abc\n").unwrap();
        assert!(log.append(b"abcd\n").is_err());
        fs::write(directory.path().join("log"), "much too large").unwrap();
        log.append(b"x\n").unwrap();
        assert_eq!(contents(directory.path()), owned(&[("log", "x\n")]));
    }
}
