//! What still has to be written to a child. Written while we read, because a child that is waiting for its own output to be
//! taken does not read, and bounded, because a child may never read.

use std::io;

use tokio::io::AsyncWriteExt;
use tokio::net::unix::pipe;

use crate::protocol::Envelope;

/// What may wait beside the message that is on its way. Pings, cancels and answers are small.
const MOST_WAITING: usize = 1 << 20;

/// A buffer that grew for one large work order is given back.
const KEEP_CAPACITY: usize = 64 * 1024;

/// The messages on their way to a child.
#[derive(Debug)]
pub(super) struct Outbox {
    pipe: Option<pipe::Sender>,
    bytes: Vec<u8>,
    sent: usize,
    /// Where the message ends that came when nothing waited.
    first_end: usize,
}

/// Why a message was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NotTaken {
    /// The child closed its standard input, or we did.
    Closed,
    /// The child has not read for so long that too much waits.
    Full,
}

impl Outbox {
    pub(super) fn new(pipe: pipe::Sender) -> Self {
        Self { pipe: Some(pipe), bytes: Vec::new(), sent: 0, first_end: 0 }
    }

    /// Puts a message at the end. The first one may be as large as it is; more must fit.
    pub(super) fn put(&mut self, message: &Envelope<'_>) -> Result<(), NotTaken> {
        if self.pipe.is_none() {
            return Err(NotTaken::Closed);
        }
        let before = self.bytes.len();
        message.write(&mut self.bytes);
        self.bytes.push(b'\n');
        if before == self.sent {
            self.first_end = self.bytes.len();
        }
        if self.bytes.len() - self.first_end.max(self.sent) > MOST_WAITING {
            self.bytes.truncate(before);
            return Err(NotTaken::Full);
        }
        Ok(())
    }

    /// How many bytes wait.
    pub(super) fn waiting(&self) -> usize {
        self.bytes.len() - self.sent
    }

    /// Whether the child can still be told something.
    pub(super) fn is_open(&self) -> bool {
        self.pipe.is_some()
    }

    /// Writes some of what waits. Can be dropped at any time; nothing is lost or sent twice.
    pub(super) async fn advance(&mut self) -> io::Result<()> {
        let Some(pipe) = &mut self.pipe else { return Err(io::ErrorKind::BrokenPipe.into()) };
        let wrote = pipe.write(&self.bytes[self.sent..]).await?;
        self.sent += wrote;
        if self.sent == self.bytes.len() {
            self.bytes.clear();
            self.bytes.shrink_to(KEEP_CAPACITY);
            (self.sent, self.first_end) = (0, 0);
        }
        Ok(())
    }

    /// Closes the child's standard input; what waits is dropped.
    pub(super) fn close(&mut self) {
        self.pipe = None;
        (self.bytes, self.sent, self.first_end) = (Vec::new(), 0, 0);
    }
}
