//! Watching a log while it is written. Who is too slow is told how much was missed, and holds up nobody.

use std::collections::VecDeque;
use std::sync::Arc;

use tokio::sync::watch;

use super::{ExtensionLog, LogLine, Shared};

/// Lines that are kept in memory for those who watch.
const RING_LINES: usize = 256;
/// Bytes of such lines; the newest line is always kept.
const RING_BYTES: usize = 128 * 1024;

/// The newest lines.
#[derive(Debug, Default)]
pub(super) struct Ring {
    lines: VecDeque<Arc<LogLine>>,
    bytes: usize,
}

impl Ring {
    pub(super) fn push(&mut self, line: Arc<LogLine>) {
        self.bytes += line.msg.len();
        self.lines.push_back(line);
        while self.lines.len() > RING_LINES || (self.bytes > RING_BYTES && self.lines.len() > 1) {
            let oldest = self.lines.pop_front();
            self.bytes -= oldest.map_or(0, |oldest| oldest.msg.len());
        }
    }

    /// The first line from `seq` on.
    fn from(&self, seq: u64) -> Option<Arc<LogLine>> {
        let at = self.lines.partition_point(|line| line.seq < seq);
        self.lines.get(at).cloned()
    }
}

/// What a watcher sees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Followed {
    /// The next line.
    Line(Arc<LogLine>),
    /// So many lines came and went before they were asked for. They are in the files, for a while.
    Missed(u64),
}

/// Sees the lines of a log from some line on.
#[derive(Debug)]
pub struct Follow {
    log: ExtensionLog,
    newest: watch::Receiver<u64>,
    next: u64,
}

impl Follow {
    pub(super) fn new(log: ExtensionLog, newest: watch::Receiver<u64>, next: u64) -> Self {
        Self { log, newest, next }
    }

    /// Waits for the next line. Safe to cancel.
    pub async fn next(&mut self) -> Followed {
        loop {
            // Marked as seen before looking, so that a line that comes in between wakes us.
            self.newest.borrow_and_update();
            if let Some(line) = self.log.shared.from(self.next) {
                let missed = line.seq - self.next;
                if missed > 0 {
                    self.next = line.seq;
                    return Followed::Missed(missed);
                }
                self.next += 1;
                return Followed::Line(line);
            }
            // The sender lives in the log, which lives in this.
            if self.newest.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }
}

impl Shared {
    fn from(&self, seq: u64) -> Option<Arc<LogLine>> {
        self.lock().ring.from(seq)
    }
}
