//! The log on standard error: one line a remark, at levels that can be changed while it runs.
//!
//! Nobody waits for it. A thread writes, from a queue with a bound; what does not fit, because the host does not read standard
//! error, is counted and told when there is room again. The thread starts with the first remark.

use std::fmt::Display;
use std::io::Write as _;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use crate::protocol::{LogLevel, Timestamp};

/// How many remarks may wait.
const WAITING: usize = 1024;

/// The longest remark, in characters.
const LONGEST: usize = 4096;

/// The log. Clones are the same one.
#[derive(Clone)]
pub(super) struct Log(Arc<Shared>);

struct Shared {
    level: AtomicU8,
    dropped: AtomicU64,
    queue: OnceLock<Option<SyncSender<Entry>>>,
}

enum Entry {
    Line(String),
    /// Everything before this has been written when the sender is dropped.
    Flush(SyncSender<()>),
}

impl Log {
    pub(super) fn new(level: LogLevel) -> Self {
        let level = AtomicU8::new(level as u8);
        Self(Arc::new(Shared { level, dropped: AtomicU64::new(0), queue: OnceLock::new() }))
    }

    pub(super) fn set_level(&self, level: LogLevel) {
        self.0.level.store(level as u8, Ordering::Relaxed);
    }

    pub(super) fn debug(&self, logger: &str, message: impl Display) {
        self.say(LogLevel::Debug, logger, message);
    }

    pub(super) fn info(&self, logger: &str, message: impl Display) {
        self.say(LogLevel::Info, logger, message);
    }

    pub(super) fn warning(&self, logger: &str, message: impl Display) {
        self.say(LogLevel::Warning, logger, message);
    }

    fn say(&self, level: LogLevel, logger: &str, message: impl Display) {
        if (level as u8) < self.0.level.load(Ordering::Relaxed) {
            return;
        }
        let Some(queue) = self.queue() else { return };
        let dropped = self.0.dropped.swap(0, Ordering::Relaxed);
        if dropped > 0 {
            let told = line(LogLevel::Warning, "steerable.log", &format!("{dropped} remarks were left out"));
            if queue.try_send(Entry::Line(told)).is_err() {
                self.0.dropped.fetch_add(dropped, Ordering::Relaxed);
            }
        }
        if queue.try_send(Entry::Line(line(level, logger, &message.to_string()))).is_err() {
            self.0.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Waits until what was said has been written, but not for long.
    pub(super) fn flush(&self, patience: Duration) {
        let Some(Some(queue)) = self.0.queue.get() else { return };
        let (told, written) = sync_channel(1);
        match queue.try_send(Entry::Flush(told)) {
            Ok(()) => drop(written.recv_timeout(patience)),
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => {}
        }
    }

    fn queue(&self) -> Option<&SyncSender<Entry>> {
        let start = || {
            let (queue, entries) = sync_channel(WAITING);
            let thread = std::thread::Builder::new().name("log".into()).stack_size(64 * 1024);
            // Without a thread there is no log, which is no reason to do without the rest.
            thread.spawn(move || write(&entries)).ok().map(|_| queue)
        };
        self.0.queue.get_or_init(start).as_ref()
    }
}

fn write(entries: &Receiver<Entry>) {
    for entry in entries {
        match entry {
            // A host that closed standard error does not want to know.
            Entry::Line(line) => drop(std::io::stderr().write_all(line.as_bytes())),
            Entry::Flush(told) => drop(told),
        }
    }
}

fn line(level: LogLevel, logger: &str, message: &str) -> String {
    let mut line = format!("{} | {} | {logger} | ", Timestamp::now().as_str(), level.word());
    for (at, letter) in message.chars().enumerate() {
        if at == LONGEST {
            line.push('…');
            break;
        }
        line.push(if letter.is_control() { ' ' } else { letter });
    }
    line.push('\n');
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_remark_is_one_line_with_four_fields_however_it_is_written() {
        let line = line(LogLevel::Warning, "steerable.stream", "a\nb\u{1b}[0m");
        let fields: Vec<&str> = line.trim_end_matches('\n').split(" | ").collect();
        assert_eq!(fields[1..], ["WARNING", "steerable.stream", "a b [0m"]);
        assert!(fields[0].ends_with("+00:00"));
        assert_eq!(line.matches('\n').count(), 1);
    }
}
