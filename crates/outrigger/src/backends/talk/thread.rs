//! Threads: what belongs together has one transcript, in a file of its own, and one turn at a time.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use outrigger_policy::Digest;
use tokio::sync::OwnedMutexGuard;

use crate::runs::RunId;

/// The longest name that is kept as it is.
const PLAIN: usize = 64;

/// The turns of threads, one at a time each: a transcript belongs to one process.
#[derive(Debug, Default)]
pub(super) struct Threads {
    turns: Mutex<HashMap<String, Arc<tokio::sync::Mutex<()>>>>,
}

/// The turn of somebody in a thread, until it is dropped.
#[derive(Debug)]
pub(super) struct TurnGuard {
    _guard: OwnedMutexGuard<()>,
}

impl Threads {
    /// Waits until nobody else is talking.
    pub(super) async fn turn(&self, transcript: &str) -> TurnGuard {
        let turn = {
            let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
            // What nobody waits for or holds is only in the map.
            turns.retain(|_, turn| Arc::strong_count(turn) > 1);
            Arc::clone(turns.entry(transcript.to_owned()).or_default())
        };
        TurnGuard { _guard: turn.lock_owned().await }
    }
}

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

    #[tokio::test]
    async fn a_thread_has_one_turn_at_a_time_and_others_do_not_wait_for_it() {
        let threads = Arc::new(Threads::default());
        let first = threads.turn("a").await;
        let _other = threads.turn("b").await;
        let waiting = Arc::clone(&threads);
        let mut second = tokio::spawn(async move { waiting.turn("a").await });
        tokio::task::yield_now().await;
        assert!(!second.is_finished());
        drop(first);
        drop((&mut second).await.unwrap());
        drop(threads.turn("c").await);
        assert!(threads.turns.lock().unwrap().len() <= 2);
    }
}
