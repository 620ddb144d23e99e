//! The log: remarks on standard error, and in a file if a folder is named. Nobody waits for it, and it never has a secret.
//!
//! A thread writes, from a queue with a bound; what does not fit is counted and told when there is room again. The thread
//! starts with the first remark.

use std::fmt::Display;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How many remarks may wait.
const WAITING: usize = 1024;

/// The longest remark, in characters.
const LONGEST: usize = 4096;

/// A file of this size becomes the older one.
const FILE_BYTES: u64 = 10 << 20;

/// How many secrets are remembered, and how long one must be to be one: a letter would hide every word that has it.
const SECRETS: usize = 64;
const SECRET_LENGTH: usize = 6;

/// How much is logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    /// Everything.
    Debug,
    /// What happens.
    Info,
    /// What goes wrong.
    Error,
}

impl LogLevel {
    /// What a word of `HELMOR_LOG` or of a flag means; every word that is none is [`Self::Info`].
    #[must_use]
    pub fn from_word(word: &str) -> Self {
        match word {
            "debug" | "trace" => Self::Debug,
            "error" => Self::Error,
            _ => Self::Info,
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Error => "error",
        }
    }
}

/// The log. Clones are the same one.
#[derive(Clone)]
pub(super) struct Log(Arc<Shared>);

struct Shared {
    level: LogLevel,
    folder: Option<PathBuf>,
    dropped: AtomicU64,
    secrets: Mutex<Vec<String>>,
    queue: OnceLock<Option<SyncSender<Entry>>>,
}

enum Entry {
    Remark {
        level: LogLevel,
        text: String,
    },
    /// Everything before this has been written when the sender is dropped.
    Flush(SyncSender<()>),
}

impl Log {
    pub(super) fn new(level: LogLevel, folder: Option<PathBuf>) -> Self {
        let (dropped, queue) = (AtomicU64::new(0), OnceLock::new());
        Self(Arc::new(Shared { level, folder, dropped, secrets: Mutex::default(), queue }))
    }

    pub(super) fn debug(&self, message: impl Display) {
        self.say(LogLevel::Debug, message);
    }

    pub(super) fn info(&self, message: impl Display) {
        self.say(LogLevel::Info, message);
    }

    pub(super) fn error(&self, message: impl Display) {
        self.say(LogLevel::Error, message);
    }

    /// From here on this text is not in the log.
    pub(super) fn hide(&self, secret: &str) {
        let mut secrets = self.0.secrets.lock().unwrap_or_else(PoisonError::into_inner);
        if secret.len() >= SECRET_LENGTH && !secrets.iter().any(|known| known == secret) {
            if secrets.len() == SECRETS {
                secrets.remove(0);
            }
            secrets.push(secret.to_owned());
        }
    }

    /// Waits until what was said has been written, but not for long.
    pub(super) fn flush(&self, patience: Duration) {
        let Some(Some(queue)) = self.0.queue.get() else { return };
        let (told, written) = sync_channel(1);
        if queue.try_send(Entry::Flush(told)).is_ok() {
            let _ = written.recv_timeout(patience);
        }
    }

    fn say(&self, level: LogLevel, message: impl Display) {
        if level < self.0.level {
            return;
        }
        let Some(queue) = self.queue() else { return };
        let dropped = self.0.dropped.swap(0, Ordering::Relaxed);
        if dropped > 0 {
            let text = format!("{dropped} remarks were left out");
            if queue.try_send(Entry::Remark { level: LogLevel::Error, text }).is_err() {
                self.0.dropped.fetch_add(dropped, Ordering::Relaxed);
            }
        }
        let mut text: String = message.to_string().chars().take(LONGEST).collect();
        for secret in self.0.secrets.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            if text.contains(secret.as_str()) {
                text = text.replace(secret.as_str(), "[secret]");
            }
        }
        if queue.try_send(Entry::Remark { level, text }).is_err() {
            self.0.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn queue(&self) -> Option<&SyncSender<Entry>> {
        let start = || {
            let (queue, entries) = sync_channel(WAITING);
            let folder = self.0.folder.clone();
            let thread = std::thread::Builder::new().name("log".into()).stack_size(64 * 1024);
            // Without a thread there is no log, which is no reason to do without the rest.
            thread.spawn(move || write(&entries, folder.as_deref())).ok().map(|_| queue)
        };
        self.0.queue.get_or_init(start).as_ref()
    }
}

fn write(entries: &Receiver<Entry>, folder: Option<&Path>) {
    let mut book = folder.map(Book::new);
    for entry in entries {
        match entry {
            Entry::Remark { level, text } => {
                let time = now();
                // A host that closed standard error does not want to know.
                let line = format!("{time} {} {}\n", level.word(), text.escape_debug());
                let _ = std::io::stderr().write_all(line.as_bytes());
                if let Some(book) = &mut book {
                    let line = serde_json::json!({ "time": time, "level": level.word(), "message": text });
                    book.write(&format!("{line}\n"));
                }
            }
            Entry::Flush(told) => drop(told),
        }
    }
}

/// `sidecar.jsonl`, and `sidecar.jsonl.1` before it.
struct Book {
    path: PathBuf,
    file: Option<File>,
    size: u64,
}

impl Book {
    fn new(folder: &Path) -> Self {
        let _ = std::fs::create_dir_all(folder);
        let mut book = Self { path: folder.join("sidecar.jsonl"), file: None, size: 0 };
        book.open();
        book
    }

    fn open(&mut self) {
        self.file = OpenOptions::new().create(true).append(true).open(&self.path).ok();
        let metadata = self.file.as_ref().and_then(|file| file.metadata().ok());
        self.size = metadata.map_or(0, |metadata| metadata.len());
    }

    fn write(&mut self, line: &str) {
        if self.size + line.len() as u64 > FILE_BYTES {
            let _ = std::fs::rename(&self.path, self.path.with_extension("jsonl.1"));
            self.open();
        }
        if let Some(file) = &mut self.file
            && file.write_all(line.as_bytes()).is_ok()
        {
            self.size += line.len() as u64;
        }
    }
}

/// The time as `2026-11-15T15:47:36.123Z`.
fn now() -> String {
    stamp(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO))
}

fn stamp(since: Duration) -> String {
    let seconds = since.as_secs();
    // Howard Hinnant's `civil_from_days`, for days that are not negative.
    let shifted = seconds / 86_400 + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{:03}Z", since.subsec_millis())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_times_also_around_leap_days() {
        let at = |seconds: u64, millis: u64| stamp(Duration::from_millis(seconds * 1000 + millis));
        assert_eq!(at(951_782_400, 7), "2000-02-29T00:00:00.007Z");
        assert_eq!(at(1_709_251_199, 999), "2024-02-29T23:59:59.999Z");
        assert_eq!(at(4_107_542_400, 0), "2100-03-01T00:00:00.000Z");
    }

    #[test]
    fn a_secret_is_not_in_the_log() {
        let folder = tempfile::tempdir().unwrap();
        let log = Log::new(LogLevel::Info, Some(folder.path().to_owned()));
        log.hide("sk-very-secret");
        log.hide("x");
        log.info("the key is sk-very-secret, next to x");
        log.debug("nobody asked");
        log.flush(Duration::from_secs(10));
        let text = std::fs::read_to_string(folder.path().join("sidecar.jsonl")).unwrap();
        assert!(text.contains("the key is [secret], next to x"), "{text}");
        assert_eq!(text.lines().count(), 1, "{text}");
    }

    #[test]
    fn a_file_that_is_full_becomes_the_older_one() {
        let folder = tempfile::tempdir().unwrap();
        let mut book = Book::new(folder.path());
        book.size = FILE_BYTES - 6;
        book.write("six..\n");
        assert!(!folder.path().join("sidecar.jsonl.1").exists(), "it fits exactly");
        book.write("next\n");
        let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
        assert_eq!((read("sidecar.jsonl.1"), read("sidecar.jsonl")), ("six..\n".into(), "next\n".into()));
    }
}
