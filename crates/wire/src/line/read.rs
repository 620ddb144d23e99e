//! Reads lines from a tokio stream or from a blocking one; both drive the same pump over the same splitter.

use std::io::{self, Read};

use tokio::io::{AsyncRead, AsyncReadExt};

use super::item::Item;
use super::policy::{LineLimit, LinePolicy};
use super::split::{Found, LineError, Splitter};
use crate::tape::{Direction, Tape};

/// How much is asked of the stream at once: what a pipe holds on Linux.
const CHUNK: usize = 64 * 1024;

/// Why the next line could not be read.
#[derive(Debug, thiserror::Error)]
pub enum LineReadError {
    /// The stream itself failed.
    #[error("failed to read from the stream: {0}")]
    Io(#[from] io::Error),
    /// The stream does not keep to its policy.
    #[error(transparent)]
    Line(#[from] LineError),
}

/// Lines from a tokio stream.
#[derive(Debug)]
pub struct LineReader<R> {
    input: R,
    pump: Pump,
}

impl<R: AsyncRead + Unpin> LineReader<R> {
    /// Reads `input` as `policy` says.
    pub fn new(input: R, policy: LinePolicy) -> Self {
        Self { input, pump: Pump::new(policy) }
    }

    /// The next item, or `None` at a clean end of the stream.
    ///
    /// Cancel safe: a dropped future loses nothing.
    ///
    /// # Errors
    /// When the stream fails or breaks its policy.
    pub async fn next(&mut self) -> Result<Option<Item<'_>>, LineReadError> {
        loop {
            match self.pump.advance()? {
                Advance::Found(found) => return Ok(Some(self.pump.lend(found)?)),
                Advance::Ended => return Ok(None),
                Advance::NeedsBytes => {
                    let got = self.input.read(self.pump.space()).await?;
                    self.pump.filled(got);
                }
            }
        }
    }

    /// The next item if it has already been read from the stream; `None` when the stream would have to be asked.
    ///
    /// # Errors
    /// When what was read breaks the policy.
    pub fn next_buffered(&mut self) -> Result<Option<Item<'_>>, LineError> {
        match self.pump.advance()? {
            Advance::Found(found) => self.pump.lend(found).map(Some),
            Advance::Ended | Advance::NeedsBytes => Ok(None),
        }
    }

    /// Records what is read as [`Direction::In`].
    #[must_use]
    pub fn taped(mut self, tape: Tape) -> Self {
        self.pump.tape = Some(tape);
        self
    }

    /// Changes the limit from here on, see [`Splitter::set_limit`].
    pub fn set_limit(&mut self, limit: LineLimit) {
        self.pump.splitter.set_limit(limit);
    }
}

/// Lines from a blocking stream.
#[derive(Debug)]
pub struct BlockingLineReader<R> {
    input: R,
    pump: Pump,
}

impl<R: Read> BlockingLineReader<R> {
    /// Reads `input` as `policy` says.
    pub fn new(input: R, policy: LinePolicy) -> Self {
        Self { input, pump: Pump::new(policy) }
    }

    /// The next item, or `None` at a clean end of the stream.
    ///
    /// # Errors
    /// When the stream fails or breaks its policy.
    #[expect(clippy::should_implement_trait, reason = "an iterator cannot lend out of its own buffer")]
    pub fn next(&mut self) -> Result<Option<Item<'_>>, LineReadError> {
        loop {
            match self.pump.advance()? {
                Advance::Found(found) => return Ok(Some(self.pump.lend(found)?)),
                Advance::Ended => return Ok(None),
                Advance::NeedsBytes => match self.input.read(self.pump.space()) {
                    Ok(got) => self.pump.filled(got),
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(error.into()),
                },
            }
        }
    }

    /// Records what is read as [`Direction::In`].
    #[must_use]
    pub fn taped(mut self, tape: Tape) -> Self {
        self.pump.tape = Some(tape);
        self
    }

    /// Changes the limit from here on, see [`Splitter::set_limit`].
    pub fn set_limit(&mut self, limit: LineLimit) {
        self.pump.splitter.set_limit(limit);
    }
}

/// The chunk buffer between a stream and the splitter: everything about reading that does not wait.
#[derive(Debug)]
struct Pump {
    splitter: Splitter,
    chunk: Box<[u8]>,
    /// `chunk[start..end]` was read and not yet split.
    start: usize,
    end: usize,
    at_end: bool,
    tape: Option<Tape>,
}

enum Advance {
    Found(Place),
    NeedsBytes,
    Ended,
}

struct Place {
    found: Found,
    /// Where in the chunk the step that found it began.
    from: usize,
}

impl Pump {
    fn new(policy: LinePolicy) -> Self {
        let chunk = vec![0; CHUNK].into_boxed_slice();
        Self { splitter: Splitter::new(policy), chunk, start: 0, end: 0, at_end: false, tape: None }
    }

    fn advance(&mut self) -> Result<Advance, LineError> {
        while self.start < self.end {
            let from = self.start;
            let step = self.splitter.step(&self.chunk[from..self.end])?;
            self.start += step.consumed;
            if let Some(found) = step.found {
                return Ok(Advance::Found(Place { found, from }));
            }
        }
        if !self.at_end {
            return Ok(Advance::NeedsBytes);
        }
        match self.splitter.step_end()? {
            Some(found) => Ok(Advance::Found(Place { found, from: 0 })),
            None => Ok(Advance::Ended),
        }
    }

    fn lend(&mut self, Place { found, from }: Place) -> Result<Item<'_>, LineError> {
        let item = self.splitter.lend(found, &self.chunk[from..self.end])?;
        if let Some(tape) = &self.tape {
            record(tape, &item);
        }
        Ok(item)
    }

    fn space(&mut self) -> &mut [u8] {
        &mut self.chunk
    }

    fn filled(&mut self, got: usize) {
        (self.start, self.end) = (0, got);
        self.at_end = got == 0;
    }
}

/// A line that was thrown away leaves its beginning on the tape; the tape is bounded, like everything else.
fn record(tape: &Tape, item: &Item<'_>) {
    match item {
        Item::Line(line) => tape.line(Direction::In, line.bytes()),
        Item::TooLong(report) => tape.bytes(Direction::In, report.head),
        Item::Defective(report) => tape.line(Direction::In, report.bytes),
    }
}
