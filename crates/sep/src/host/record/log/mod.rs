//! What one extension says: bounded in how fast, how long and how much, and never in the way of whoever listens to it.
//!
//! Lines are taken without waiting for the disk: a writer on the runtime's blocking pool brings them there (outside a runtime the
//! caller does). What comes too fast, or faster than the disk, is counted, and the log itself says how much it was.

mod files;
mod follow;
mod line;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::mem;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use outrigger_policy::{Bucket, Rate};
use outrigger_supervise::logs::Stream as ChildStream;
use outrigger_supervise::spec::Spoken;
use outrigger_wire::line::{Item, Splitter, dialect};
use tokio::sync::watch;

use super::metrics::Metrics;
use super::stamp::{Clock, Now, system_clock};
use crate::protocol::{Limits, SessionId};
use files::Files;
use follow::Ring;

pub use follow::{Follow, Followed};
pub use line::{Level, LogLine, Stream};

/// The longest line, in bytes; the rest is cut.
pub const MAX_LINE_BYTES: usize = 8 * 1024;
/// How many lines are taken: 200 a second, 1000 at once.
const LINES: Rate = Rate { tokens: 200, period_millis: 1000, burst: 1000 };
/// What may wait for the disk.
const PENDING_BYTES: usize = 256 * 1024;

/// Why a log cannot be kept.
#[derive(Debug, thiserror::Error)]
#[error("cannot keep a log in {}: {source}", .dir.display())]
pub struct LogError {
    /// Where.
    pub dir: PathBuf,
    /// Why not.
    pub source: io::Error,
}

/// The log of one extension. Clones are the same log.
#[derive(Clone)]
pub struct ExtensionLog {
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    /// Taken before `state`, by whoever writes.
    files: Mutex<Files>,
    newest: watch::Sender<u64>,
    clock: Clock,
}

struct State {
    seq: u64,
    session: Option<String>,
    bucket: Bucket,
    /// For the host's own lines: an extension that talks too much cannot hide what is said about it.
    host_bucket: Bucket,
    /// Lines that came too fast since the last one that was taken.
    dropped: u64,
    /// Lines that were not written, ever.
    total_dropped: u64,
    metrics: Option<Arc<Metrics>>,
    pending: Pending,
    writer: Writer,
    ring: Ring,
    splitters: HashMap<ChildStream, Splitter>,
}

/// What waits for the disk.
#[derive(Default)]
struct Pending {
    bytes: Vec<u8>,
    /// Lines in it that somebody said.
    said: u64,
    /// Lines that its notes say were dropped.
    noted: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Writer {
    Idle,
    Busy,
}

impl ExtensionLog {
    /// Opens the log in `dir`, within the bounds of the extension.
    pub fn open(dir: &Path, limits: &Limits) -> Result<Self, LogError> {
        Self::open_with(dir, limits, system_clock())
    }

    /// [`ExtensionLog::open`] with another clock.
    pub fn open_with(dir: &Path, limits: &Limits, clock: Clock) -> Result<Self, LogError> {
        let files = Files::open(dir, limits.log_file_bytes, limits.log_files)
            .map_err(|source| LogError { dir: dir.to_owned(), source })?;
        let last = files.last_lines(1).pop();
        let seq =
            last.and_then(|line| serde_json::from_str::<LogLine>(&line).ok()).map_or(0, |line| line.seq);
        let state = State {
            seq,
            session: None,
            bucket: Bucket::new(LINES),
            host_bucket: Bucket::new(LINES),
            dropped: 0,
            total_dropped: 0,
            metrics: None,
            pending: Pending::default(),
            writer: Writer::Idle,
            ring: Ring::default(),
            splitters: HashMap::new(),
        };
        let newest = watch::Sender::new(seq);
        let shared = Shared { state: Mutex::new(state), files: Mutex::new(files), newest, clock };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// The session that lines belong to from now on.
    pub fn begin(&self, session: Option<&SessionId>) {
        self.shared.lock().session = session.map(|session| session.as_str().to_owned());
    }

    /// Takes a line. Only the first line of a text with several is one; give the others one by one.
    pub fn line(&self, stream: Stream, level: Level, text: &str) {
        self.shared.take(stream, level, text, Cut::Whole);
    }

    /// Takes what the process wrote, as it came. It is split into lines here.
    pub fn heard(&self, spoken: &Spoken) {
        self.bytes(spoken.stream, &spoken.bytes);
    }

    /// Takes bytes of one stream of the process.
    pub fn bytes(&self, stream: ChildStream, mut bytes: &[u8]) {
        let mut splitter = self.shared.lock().splitters.remove(&stream).unwrap_or_else(splitter);
        // The policy has an answer for every line, so no error can come.
        while let Ok(decoded) = splitter.decode(bytes) {
            let Some(item) = decoded.item else { break };
            self.shared.item(stream, &item);
            bytes = &bytes[decoded.consumed..];
        }
        self.shared.lock().splitters.insert(stream, splitter);
    }

    /// The process has ended: what it said last is a line, even without a newline.
    pub fn ended(&self) {
        let splitters = mem::take(&mut self.shared.lock().splitters);
        for (stream, mut splitter) in splitters {
            while let Ok(Some(item)) = splitter.finish() {
                self.shared.item(stream, &item);
            }
        }
        let mut state = self.shared.lock();
        state.note_dropped((self.shared.clock)(), &self.shared.newest);
        self.shared.write_soon(state);
    }

    /// Counts lines that are not written from now on in `metrics`, too.
    pub fn count_in(&self, metrics: Arc<Metrics>) {
        self.shared.lock().metrics = Some(metrics);
    }

    /// The last `count` lines, oldest first. Reads files: not for an async task.
    #[must_use]
    pub fn tail(&self, count: usize) -> Vec<LogLine> {
        self.flush();
        let files = self.shared.files.lock().unwrap_or_else(PoisonError::into_inner);
        let lines = files.last_lines(count);
        lines.iter().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    /// Sees every line from now on.
    #[must_use]
    pub fn follow(&self) -> Follow {
        let next = self.shared.lock().seq + 1;
        Follow::new(self.clone(), self.shared.newest.subscribe(), next)
    }

    /// How many lines were not written, ever.
    #[must_use]
    pub fn total_dropped(&self) -> u64 {
        self.shared.lock().total_dropped
    }

    /// Brings everything to the files, also the count of what was dropped. Not for an async task.
    pub fn flush(&self) {
        self.shared.flush();
    }
}

impl Shared {
    fn flush(&self) {
        self.lock().note_dropped((self.clock)(), &self.newest);
        self.write_pending();
    }

    fn item(self: &Arc<Self>, stream: ChildStream, item: &Item<'_>) {
        // The policy reports nothing: long lines are cut and bytes pass as they are.
        let Item::Line(line) = item else { return };
        let cut = if line.dropped() > 0 { Cut::Shortened } else { Cut::Whole };
        let (stream, level) = match stream {
            ChildStream::Stdout => (Stream::Stdout, Level::Info),
            ChildStream::Stderr => (Stream::Stderr, Level::Warn),
        };
        self.take(stream, level, &line.text_lossy(), cut);
    }

    fn take(self: &Arc<Self>, stream: Stream, level: Level, text: &str, cut: Cut) {
        let now = (self.clock)();
        let mut state = self.lock();
        let bucket = match stream {
            Stream::Host => &mut state.host_bucket,
            Stream::Stdout | Stream::Stderr | Stream::Ext => &mut state.bucket,
        };
        if bucket.take(now.steady, 1).is_err() {
            state.drop_lines(1);
            return;
        }
        state.note_dropped(now, &self.newest);
        let end = text.floor_char_boundary(MAX_LINE_BYTES);
        let mut line = LogLine::new(now.wall, state.seq + 1, state.session.as_deref(), stream, level);
        line.msg = text[..end].to_owned();
        line.truncated = end < text.len() || cut == Cut::Shortened;
        state.push(line, &self.newest);
        self.write_soon(state);
    }

    /// Sees to it that somebody writes what waits: a thread that may wait for the disk, or outside a runtime the caller.
    fn write_soon(self: &Arc<Self>, mut state: MutexGuard<'_, State>) {
        if state.writer == Writer::Busy || state.pending.bytes.is_empty() {
            return;
        }
        state.writer = Writer::Busy;
        drop(state);
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => {
                let log = Arc::clone(self);
                runtime.spawn_blocking(move || log.write_pending());
            }
            Err(_) => self.write_pending(),
        }
    }

    /// Writes until nothing waits. The files are locked first, so that batches stay in order whoever writes them.
    fn write_pending(&self) {
        let files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let batch = {
                let mut state = self.lock();
                if state.pending.bytes.is_empty() {
                    state.writer = Writer::Idle;
                    return;
                }
                mem::take(&mut state.pending)
            };
            // A full disk loses lines like any other congestion: counted, and told when it can be.
            if files.append(&batch.bytes).is_err() {
                let mut state = self.lock();
                state.drop_lines(batch.said);
                state.dropped += batch.noted;
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.flush();
    }
}

impl fmt::Debug for ExtensionLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExtensionLog").field("seq", &self.shared.lock().seq).finish_non_exhaustive()
    }
}

/// The last `count` lines of the log in `dir`, oldest first, whether somebody writes it or not. Reads files.
#[must_use]
pub fn tail_of(dir: &Path, limits: &Limits, count: usize) -> Vec<LogLine> {
    let lines = files::last_lines(dir, limits.log_files.max(1), count);
    lines.iter().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Cut {
    Whole,
    Shortened,
}

impl State {
    /// Says how many lines were dropped, if any were.
    fn note_dropped(&mut self, now: Now, newest: &watch::Sender<u64>) {
        let dropped = mem::take(&mut self.dropped);
        if dropped == 0 {
            return;
        }
        let mut line =
            LogLine::new(now.wall, self.seq + 1, self.session.as_deref(), Stream::Host, Level::Warn);
        line.msg = format!("{dropped} lines were not written");
        line.dropped = Some(dropped);
        self.push(line, newest);
    }

    fn push(&mut self, line: LogLine, newest: &watch::Sender<u64>) {
        let encoded = line.encode();
        if self.pending.bytes.len() + encoded.len() > PENDING_BYTES {
            match line.dropped {
                None => self.drop_lines(1),
                Some(noted) => self.dropped += noted,
            }
            return;
        }
        self.pending.bytes.extend_from_slice(&encoded);
        match line.dropped {
            None => self.pending.said += 1,
            Some(noted) => self.pending.noted += noted,
        }
        self.seq = line.seq;
        self.ring.push(Arc::new(line));
        newest.send_replace(self.seq);
    }

    fn drop_lines(&mut self, lines: u64) {
        self.dropped += lines;
        self.total_dropped += lines;
        if let Some(metrics) = &self.metrics {
            metrics.log_dropped(lines);
        }
    }
}

fn splitter() -> Splitter {
    Splitter::new(dialect::logs(MAX_LINE_BYTES))
}
