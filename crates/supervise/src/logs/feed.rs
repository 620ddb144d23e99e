//! From the bytes of a stream to lines in the tail and in the file.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use outrigger_wire::line::{
    Blank, Bom, CarriageReturn, Fault, Item, LastLine, Line, LineLimit, LinePolicy, Overlong, Splitter,
};

use super::file::FileSink;
use super::tail::{LogLine, Tail};
use crate::spec::{Logs, Spoken};
use crate::state::Incarnation;

/// Which stream of a child.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

impl Stream {
    /// The stable name.
    pub fn code(self) -> &'static str {
        match self {
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
        }
    }
}

/// The last lines of both streams of the current process.
#[derive(Debug)]
pub(crate) struct Tails {
    stdout: Mutex<Tail>,
    stderr: Mutex<Tail>,
    /// The process whose words these are.
    current: AtomicU32,
    max_lines: usize,
    max_bytes: usize,
}

impl Tails {
    pub(crate) fn new(logs: &Logs) -> Self {
        let empty = || Mutex::new(Tail::new(logs.tail_lines, logs.tail_bytes));
        let (max_lines, max_bytes) = (logs.tail_lines, logs.tail_bytes);
        Self { stdout: empty(), stderr: empty(), current: AtomicU32::new(0), max_lines, max_bytes }
    }

    /// Forgets everything, because a new process begins.
    pub(crate) fn begin(&self, incarnation: Incarnation) {
        self.current.store(incarnation.0, Ordering::Relaxed);
        for stream in [Stream::Stdout, Stream::Stderr] {
            *self.lock(stream) = Tail::new(self.max_lines, self.max_bytes);
        }
    }

    /// Keeps a line of standard output, unless the process that wrote it has been replaced.
    pub(crate) fn keep_for(&self, incarnation: Incarnation, line: LogLine) {
        let mut tail = self.lock(Stream::Stdout);
        if self.current.load(Ordering::Relaxed) == incarnation.0 {
            tail.push(line);
        }
    }

    pub(crate) fn lines(&self, stream: Stream) -> Vec<LogLine> {
        self.lock(stream).lines()
    }

    pub(crate) fn lock(&self, stream: Stream) -> MutexGuard<'_, Tail> {
        let tail = match stream {
            Stream::Stdout => &self.stdout,
            Stream::Stderr => &self.stderr,
        };
        tail.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Takes the bytes of one stream of one process.
#[derive(Debug)]
pub(crate) struct LineFeed {
    splitter: Splitter,
    stream: Stream,
    incarnation: Incarnation,
    tails: Arc<Tails>,
    file: Option<Arc<FileSink>>,
}

impl LineFeed {
    /// These bytes, with where they come from.
    pub(crate) fn spoken(&self, bytes: &[u8]) -> Spoken {
        Spoken { incarnation: self.incarnation, stream: self.stream, bytes: bytes.to_vec() }
    }

    pub(crate) fn new(
        stream: Stream,
        incarnation: Incarnation,
        max_line_bytes: usize,
        tails: Arc<Tails>,
        file: Option<Arc<FileSink>>,
    ) -> Self {
        Self { splitter: Splitter::new(log_policy(max_line_bytes)), stream, incarnation, tails, file }
    }

    /// Takes more bytes; `see` is shown every line that they complete.
    pub(crate) fn push(&mut self, mut bytes: &[u8], mut see: impl FnMut(&Line<'_>)) {
        let mut tail = self.tails.lock(self.stream);
        // The policy has an answer for every line, so no error can come; if one did, the rest of the bytes would be lost.
        while let Ok(decoded) = self.splitter.decode(bytes) {
            let Some(item) = decoded.item else { break };
            keep(&item, &mut tail, self.file.as_ref(), self.stream, self.incarnation, &mut see);
            bytes = &bytes[decoded.consumed..];
        }
    }

    /// Says that the stream has ended; the unfinished last line counts as a line.
    pub(crate) fn finish(&mut self, mut see: impl FnMut(&Line<'_>)) {
        let mut tail = self.tails.lock(self.stream);
        while let Ok(Some(item)) = self.splitter.finish() {
            keep(&item, &mut tail, self.file.as_ref(), self.stream, self.incarnation, &mut see);
        }
    }
}

fn keep(
    item: &Item<'_>,
    tail: &mut Tail,
    file: Option<&Arc<FileSink>>,
    stream: Stream,
    incarnation: Incarnation,
    see: &mut impl FnMut(&Line<'_>),
) {
    // The policy reports nothing: long lines are cut and bytes pass as they are.
    let Item::Line(line) = item else { return };
    tail.push(LogLine { text: line.text_lossy().into_owned(), cut_bytes: line.dropped() });
    if let Some(file) = file {
        file.offer(incarnation, stream, line);
    }
    see(line);
}

fn log_policy(max_line_bytes: usize) -> LinePolicy {
    LinePolicy {
        limit: LineLimit::before_newline(max_line_bytes),
        overlong: Overlong::Cut,
        utf8: Fault::Pass,
        nul: Fault::Pass,
        bom: Bom::Pass,
        carriage_return: CarriageReturn::Strip,
        blank: Blank::Keep,
        last_line: LastLine::Accept,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn feed(max_line_bytes: usize) -> (LineFeed, Arc<Tails>) {
        let logs = Logs { tail_lines: 3, tail_bytes: 100, max_line_bytes, file: None };
        let tails = Arc::new(Tails::new(&logs));
        (LineFeed::new(Stream::Stderr, Incarnation(1), max_line_bytes, Arc::clone(&tails), None), tails)
    }

    #[test]
    fn a_line_is_kept_whole_at_the_limit_and_cut_one_past_it() {
        let (mut feed, tails) = feed(4);
        feed.push(b"abcd\nabc", |_| {});
        feed.push(b"de\nlast", |_| {});
        feed.finish(|_| {});
        let lines = [("abcd", 0), ("abcd", 1), ("last", 0)];
        let expected: Vec<_> = lines.map(|(text, cut_bytes)| LogLine { text: text.into(), cut_bytes }).into();
        assert_eq!(tails.lines(Stream::Stderr), expected);
        assert_eq!(tails.lines(Stream::Stdout), []);
    }

    #[test]
    fn bytes_that_are_not_text_are_still_a_line() {
        let (mut feed, tails) = feed(10);
        let mut seen = Vec::new();
        feed.push(b"\xff\0\r\n\n", |line| seen.push(line.bytes().to_vec()));
        assert_eq!(seen, [b"\xff\0".to_vec(), Vec::new()]);
        assert_eq!(tails.lines(Stream::Stderr)[0].text, "\u{fffd}\0");
    }

    #[test]
    fn a_new_process_starts_with_an_empty_tail() {
        let (mut feed, tails) = feed(10);
        feed.push(b"old\n", |_| {});
        tails.begin(Incarnation(2));
        assert_eq!(tails.lines(Stream::Stderr), []);
    }
}
