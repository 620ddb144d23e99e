//! Threads: what belongs together has one transcript, in a file of its own.

use std::path::{Path, PathBuf};

use outrigger_policy::Digest;

use crate::runs::RunId;

/// The longest name that is kept as it is.
const PLAIN: usize = 64;

/// The name of the transcript: the thread's, or that of a run that belongs to none. It is also the name of a file.
pub(super) fn transcript(thread: Option<&str>, run: &RunId) -> String {
    match thread {
        None => format!("run-{run}"),
        Some(thread) if is_plain(thread) => format!("thread-{thread}"),
        Some(thread) => format!("thread-{}", Digest::of(thread.as_bytes())),
    }
}

fn is_plain(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    // A digest is longer, so that no name can be taken for one.
    !name.is_empty() && name.len() < PLAIN && name.bytes().all(plain)
}

/// Where it is kept.
pub(super) fn file(folder: &Path, transcript: &str) -> PathBuf {
    folder.join(format!("{transcript}.db"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_text_names_a_thread_and_no_two_name_the_same() {
        let run = RunId::parse("r1").unwrap();
        assert_eq!(transcript(None, &run), "run-r1");
        assert_eq!(transcript(Some("support-42"), &run), "thread-support-42");
        let long = "a".repeat(64);
        for odd in ["../../etc/passwd", "a b", "Käse", "", &long] {
            let name = transcript(Some(odd), &run);
            assert_eq!(name, format!("thread-{}", Digest::of(odd.as_bytes())), "{odd}");
            assert_eq!(file(Path::new("/s"), &name).parent(), Some(Path::new("/s")));
        }
        let longest = "a".repeat(63);
        assert_eq!(transcript(Some(&longest), &run), format!("thread-{longest}"));
        let digest = Digest::of(b"a b").to_string();
        assert_ne!(transcript(Some(&digest), &run), transcript(Some("a b"), &run));
    }
}
