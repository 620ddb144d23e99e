//! The log file of one child: lines are offered, never waited for. What comes too fast, or while the disk is slow, is
//! dropped, and the file itself says how much.

use std::fmt::Write as _;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use outrigger_wire::line::Line;
use tokio::sync::Notify;

use super::feed::Stream;
use super::rotate::Rotating;
use super::stamp::Stamp;
use crate::spec::LogFile;
use crate::state::Incarnation;

/// What may wait for the disk.
const PENDING_BYTES: usize = 256 * 1024;

/// A file that gets every line of a child, within its bounds.
#[derive(Debug)]
pub(crate) struct FileSink {
    state: Mutex<State>,
    idle: Notify,
    rotating: Rotating,
}

#[derive(Debug)]
struct State {
    pending: Vec<u8>,
    writer: Writer,
    bucket: Bucket,
    dropped: Dropped,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Writer {
    Idle,
    Busy,
}

/// What was not written since the last line that was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Dropped {
    lines: u64,
    bytes: u64,
}

impl FileSink {
    pub(crate) fn new(file: &LogFile) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::new(State {
                pending: Vec::new(),
                writer: Writer::Idle,
                bucket: Bucket::full(file.bytes_per_second, Instant::now()),
                dropped: Dropped { lines: 0, bytes: 0 },
            }),
            idle: Notify::new(),
            rotating: Rotating::new(file.path.clone(), file.max_bytes, file.max_files),
        })
    }

    /// Takes a line if there is room for it, and wakes a writer on the runtime's blocking pool if none is at work.
    pub(crate) fn offer(self: &Arc<Self>, incarnation: Incarnation, stream: Stream, line: &Line<'_>) {
        let entry = entry(incarnation, stream, line);
        let mut state = self.lock();
        state.offer(&entry, Instant::now());
        if state.writer == Writer::Idle && !state.pending.is_empty() {
            state.writer = Writer::Busy;
            let sink = Arc::clone(self);
            tokio::task::spawn_blocking(move || sink.write_all_pending());
        }
    }

    /// Waits until everything that was taken is on its way to the disk.
    pub(crate) async fn settled(&self) {
        loop {
            let idle = self.idle.notified();
            if self.lock().writer == Writer::Idle {
                return;
            }
            idle.await;
        }
    }

    fn write_all_pending(&self) {
        loop {
            let batch = {
                let mut state = self.lock();
                if state.pending.is_empty() {
                    state.writer = Writer::Idle;
                    break;
                }
                mem::take(&mut state.pending)
            };
            // A full disk loses lines like any other congestion: they are counted, and the count is written when it can be.
            if self.rotating.append(&batch).is_err() {
                let lines = batch.iter().filter(|byte| **byte == b'\n').count();
                self.lock().dropped.add(lines as u64, batch.len() as u64);
            }
        }
        self.idle.notify_waiters();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn offer(&mut self, entry: &str, now: Instant) {
        let note = self.dropped.note();
        let wanted = note.len() + entry.len();
        if self.pending.len() + wanted > PENDING_BYTES || !self.bucket.take(wanted as u64, now) {
            self.dropped.add(1, entry.len() as u64);
            return;
        }
        self.pending.extend_from_slice(note.as_bytes());
        self.pending.extend_from_slice(entry.as_bytes());
        self.dropped = Dropped { lines: 0, bytes: 0 };
    }
}

impl Dropped {
    fn add(&mut self, lines: u64, bytes: u64) {
        self.lines += lines;
        self.bytes += bytes;
    }

    fn note(self) -> String {
        match self.lines {
            0 => String::new(),
            lines => format!("{} -- {lines} lines ({} bytes) dropped --\n", Stamp::now(), self.bytes),
        }
    }
}

fn entry(incarnation: Incarnation, stream: Stream, line: &Line<'_>) -> String {
    let stream = match stream {
        Stream::Stdout => "out",
        Stream::Stderr => "err",
    };
    let mut entry = String::new();
    // Writing to a string cannot fail.
    let _ = write!(entry, "{} {incarnation} {stream} ", Stamp::now());
    // A newline cannot be inside a line; everything else is kept as it came, so that the file can be searched for it.
    entry.push_str(&line.text_lossy());
    match line.dropped() {
        0 => entry.push('\n'),
        cut => {
            let _ = writeln!(entry, " … ({cut} more bytes)");
        }
    }
    entry
}

/// So many bytes per second, with one second's worth in reserve.
#[derive(Debug)]
struct Bucket {
    rate: u64,
    level: u64,
    filled: Instant,
}

impl Bucket {
    fn full(rate: u64, now: Instant) -> Self {
        Self { rate, level: rate, filled: now }
    }

    fn take(&mut self, bytes: u64, now: Instant) -> bool {
        let gained =
            now.saturating_duration_since(self.filled).as_micros() * u128::from(self.rate) / 1_000_000;
        if gained > 0 {
            self.level = self.rate.min(self.level.saturating_add(u64::try_from(gained).unwrap_or(u64::MAX)));
            self.filled = now;
        }
        match self.level.checked_sub(bytes) {
            Some(rest) => {
                self.level = rest;
                true
            }
            None => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn state(rate: u64, now: Instant) -> State {
        State {
            pending: Vec::new(),
            writer: Writer::Idle,
            bucket: Bucket::full(rate, now),
            dropped: Dropped { lines: 0, bytes: 0 },
        }
    }

    #[test]
    fn what_is_said_too_fast_is_dropped_and_the_file_says_how_much() {
        let now = Instant::now();
        let mut state = state(100, now);
        let line = "0123456789".repeat(5);
        for _ in 0..4 {
            state.offer(&line, now);
        }
        assert_eq!(String::from_utf8_lossy(&state.pending), line.repeat(2));
        assert_eq!(state.dropped, Dropped { lines: 2, bytes: 100 });

        state.offer("x", now + Duration::from_secs(1));
        let pending = String::from_utf8_lossy(&state.pending).into_owned();
        assert!(pending.ends_with("-- 2 lines (100 bytes) dropped --\nx"), "{pending}");
        assert_eq!(state.dropped, Dropped { lines: 0, bytes: 0 });
    }

    #[test]
    fn what_waits_for_a_slow_disk_is_bounded() {
        let now = Instant::now();
        let mut state = state(u64::MAX / 2, now);
        let line = "x".repeat(PENDING_BYTES / 4);
        for _ in 0..4 {
            state.offer(&line, now);
        }
        assert_eq!((state.pending.len(), state.dropped.lines), (PENDING_BYTES, 0));
        state.offer("y", now);
        assert_eq!((state.pending.len(), state.dropped.lines), (PENDING_BYTES, 1));
    }

    #[test]
    fn a_trickle_that_adds_up_to_less_than_the_rate_is_never_dropped() {
        let start = Instant::now();
        let mut bucket = Bucket::full(10, start);
        for tenth in 0..100 {
            assert!(
                bucket.take(1, start + Duration::from_millis(100 * tenth)),
                "after {tenth} tenths of a second"
            );
        }
    }
}
