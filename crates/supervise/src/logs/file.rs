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

/// What a line is charged beside its own bytes, for the time stamp.
const ENTRY_OVERHEAD: usize = 48;

/// What a note about dropped lines is charged.
const NOTE_BYTES: usize = 96;

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
        let length = line.bytes().len();
        let mut state = self.lock();
        state.offer(length, Instant::now(), || entry(incarnation, stream, line));
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
    /// Takes a line of `length` bytes if there is room. It is only formatted then: a flood must cost next to nothing.
    fn offer(&mut self, length: usize, now: Instant, entry: impl FnOnce() -> String) {
        let note = if self.dropped.lines > 0 { NOTE_BYTES } else { 0 };
        let wanted = length + ENTRY_OVERHEAD + note;
        if self.pending.len() + wanted > PENDING_BYTES || !self.bucket.take(wanted as u64, now) {
            self.dropped.add(1, length as u64);
            return;
        }
        self.pending.extend_from_slice(self.dropped.note().as_bytes());
        self.pending.extend_from_slice(entry().as_bytes());
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

/// So many bytes per second, with one second's worth in reserve. Once it has run dry it gives nothing until a good part of
/// the reserve is back: a flood leaves whole stretches in the file, not every thirtieth line.
#[derive(Debug)]
struct Bucket {
    rate: u64,
    level: u64,
    /// What must be in it before it gives.
    threshold: u64,
    filled: Instant,
}

impl Bucket {
    fn full(rate: u64, now: Instant) -> Self {
        Self { rate, level: rate, threshold: 0, filled: now }
    }

    fn take(&mut self, bytes: u64, now: Instant) -> bool {
        let gained =
            now.saturating_duration_since(self.filled).as_micros() * u128::from(self.rate) / 1_000_000;
        if gained > 0 {
            self.level = self.rate.min(self.level.saturating_add(u64::try_from(gained).unwrap_or(u64::MAX)));
            self.filled = now;
        }
        match self.level.checked_sub(bytes) {
            Some(rest) if self.level >= self.threshold => {
                self.level = rest;
                self.threshold = 0;
                true
            }
            Some(_) | None => {
                self.threshold = self.rate / 4;
                false
            }
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

    fn offer(state: &mut State, text: &str, now: Instant) {
        state.offer(text.len(), now, || text.to_owned());
    }

    #[test]
    fn what_is_said_too_fast_is_dropped_and_the_file_says_how_much() {
        let now = Instant::now();
        let mut state = state(200, now);
        let line = "x".repeat(100 - ENTRY_OVERHEAD);
        for _ in 0..4 {
            offer(&mut state, &line, now);
        }
        assert_eq!(String::from_utf8_lossy(&state.pending), line.repeat(2));
        assert_eq!(state.dropped, Dropped { lines: 2, bytes: 2 * line.len() as u64 });

        offer(&mut state, "y", now + Duration::from_secs(2));
        let pending = String::from_utf8_lossy(&state.pending).into_owned();
        assert!(pending.ends_with("-- 2 lines (104 bytes) dropped --\ny"), "{pending}");
        assert_eq!(state.dropped, Dropped { lines: 0, bytes: 0 });
    }

    #[test]
    fn what_waits_for_a_slow_disk_is_bounded() {
        let now = Instant::now();
        let limit = PENDING_BYTES - ENTRY_OVERHEAD;
        let dropped = |length: usize| {
            let mut state = state(u64::MAX / 2, now);
            offer(&mut state, &"x".repeat(length), now);
            state.dropped.lines
        };
        assert_eq!((dropped(limit), dropped(limit + 1)), (0, 1));
        let mut state = state(u64::MAX / 2, now);
        for _ in 0..100_000 {
            offer(&mut state, &"x".repeat(100), now);
        }
        assert!(state.pending.len() <= PENDING_BYTES);
        assert_eq!(
            state.dropped.lines as usize + state.pending.len() / 100,
            100_000,
            "every line is written or counted"
        );
    }

    #[test]
    fn after_a_flood_whole_stretches_are_written_not_single_lines() {
        let start = Instant::now();
        let mut bucket = Bucket::full(1000, start);
        let taken: Vec<bool> = (0..2000)
            .map(|millisecond| bucket.take(10, start + Duration::from_millis(millisecond)))
            .collect();
        let stretches = taken.windows(2).filter(|pair| !pair[0] && pair[1]).count();
        let bytes = taken.iter().filter(|taken| **taken).count() * 10;
        assert!((4..=8).contains(&stretches), "{stretches} stretches in two seconds");
        assert!((2500..=3000).contains(&bytes), "the reserve and two seconds' worth, {bytes} bytes");
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
