//! Writes whole lines: a line that would break its own frame is refused before a byte of it is written.

use std::io::{self, Write};

use memchr::memchr;
use tokio::io::{AsyncWrite, AsyncWriteExt};

use super::item::Head;
use crate::tape::{Direction, Tape};

/// Why a line was not written.
#[derive(Debug, thiserror::Error)]
pub enum LineWriteError {
    /// The stream itself failed.
    #[error("failed to write to the stream: {0}")]
    Io(#[from] io::Error),
    /// The line contains a newline and would arrive as two.
    #[error("line contains a newline at offset {at}: {head}")]
    Newline {
        /// Where.
        at: usize,
        /// Its beginning.
        head: Head,
    },
    /// The line is longer than the peer accepts.
    #[error("line of {length} bytes exceeds maximum size of {limit} bytes: {head}…")]
    TooLong {
        /// The limit, in bytes before the newline.
        limit: usize,
        /// The length of the line.
        length: usize,
        /// Its beginning.
        head: Head,
    },
}

/// Writes lines to a tokio stream.
///
/// Each line leaves in one write with its newline. A future that is dropped in the middle of a write leaves half a line
/// behind; whoever cancels must close the stream.
#[derive(Debug)]
pub struct LineWriter<W> {
    output: W,
    framer: Framer,
}

impl<W: AsyncWrite + Unpin> LineWriter<W> {
    /// Writes to `output` lines of at most `limit` bytes before the newline.
    pub fn new(output: W, limit: usize) -> Self {
        Self { output, framer: Framer::new(limit) }
    }

    /// Writes one line and flushes it.
    ///
    /// # Errors
    /// When the line cannot be framed (then nothing was written) or the stream fails.
    pub async fn write(&mut self, line: &[u8]) -> Result<(), LineWriteError> {
        let framed = self.framer.frame(line)?;
        self.output.write_all(framed).await?;
        self.output.flush().await?;
        Ok(())
    }

    /// Records what is written as [`Direction::Out`].
    #[must_use]
    pub fn taped(mut self, tape: Tape) -> Self {
        self.framer.tape = Some(tape);
        self
    }

    /// Gives the stream back.
    pub fn into_inner(self) -> W {
        self.output
    }
}

/// Writes lines to a blocking stream, each in one write with its newline, flushed.
#[derive(Debug)]
pub struct BlockingLineWriter<W> {
    output: W,
    framer: Framer,
}

impl<W: Write> BlockingLineWriter<W> {
    /// Writes to `output` lines of at most `limit` bytes before the newline.
    pub fn new(output: W, limit: usize) -> Self {
        Self { output, framer: Framer::new(limit) }
    }

    /// Writes one line and flushes it.
    ///
    /// # Errors
    /// When the line cannot be framed (then nothing was written) or the stream fails.
    pub fn write(&mut self, line: &[u8]) -> Result<(), LineWriteError> {
        let framed = self.framer.frame(line)?;
        self.output.write_all(framed)?;
        self.output.flush()?;
        Ok(())
    }

    /// Records what is written as [`Direction::Out`].
    #[must_use]
    pub fn taped(mut self, tape: Tape) -> Self {
        self.framer.tape = Some(tape);
        self
    }

    /// Gives the stream back.
    pub fn into_inner(self) -> W {
        self.output
    }
}

/// A framing buffer that grew beyond this for one long line is given back after it.
const KEEP_CAPACITY: usize = 64 * 1024;

#[derive(Debug)]
struct Framer {
    limit: usize,
    framed: Vec<u8>,
    tape: Option<Tape>,
}

impl Framer {
    fn new(limit: usize) -> Self {
        Self { limit, framed: Vec::new(), tape: None }
    }

    fn frame(&mut self, line: &[u8]) -> Result<&[u8], LineWriteError> {
        check(line, self.limit)?;
        if let Some(tape) = &self.tape {
            tape.line(Direction::Out, line);
        }
        self.framed.clear();
        self.framed.shrink_to(KEEP_CAPACITY.max(line.len() + 1));
        self.framed.reserve(line.len() + 1);
        self.framed.extend_from_slice(line);
        self.framed.push(b'\n');
        Ok(&self.framed)
    }
}

/// Checks that `line` can be a line of at most `limit` bytes.
pub(crate) fn check(line: &[u8], limit: usize) -> Result<(), LineWriteError> {
    if line.len() > limit {
        return Err(LineWriteError::TooLong { limit, length: line.len(), head: Head::of(line) });
    }
    if let Some(at) = memchr(b'\n', line) {
        return Err(LineWriteError::Newline { at, head: Head::of(line) });
    }
    Ok(())
}
