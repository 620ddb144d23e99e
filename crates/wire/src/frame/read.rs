//! Reads frames from a tokio stream or from a blocking one; both drive the same pump over the same decoder.

use std::io::{self, Read};

use tokio::io::{AsyncRead, AsyncReadExt};

use super::decode::{Found, Frame, FrameDecoder, FrameError, FrameLimit};

/// How much is asked of the stream at once: what a pipe holds on Linux.
const CHUNK: usize = 64 * 1024;

/// Why the next frame could not be read.
#[derive(Debug, thiserror::Error)]
pub enum FrameReadError {
    /// The stream itself failed.
    #[error("failed to read from the stream: {0}")]
    Io(#[from] io::Error),
    /// The stream is not a sequence of whole frames within the limit.
    #[error(transparent)]
    Frame(#[from] FrameError),
}

/// Frames from a tokio stream.
#[derive(Debug)]
pub struct FrameReader<R> {
    input: R,
    pump: Pump,
}

impl<R: AsyncRead + Unpin> FrameReader<R> {
    /// Reads frames within `limit` from `input`.
    pub fn new(input: R, limit: FrameLimit) -> Self {
        Self { input, pump: Pump::new(limit) }
    }

    /// The next frame, or `None` when the stream ended between frames.
    ///
    /// Cancel safe: a dropped future loses nothing.
    ///
    /// # Errors
    /// When the stream fails, ends inside a frame, or announces a frame beyond the limit.
    pub async fn next(&mut self) -> Result<Option<Frame<'_>>, FrameReadError> {
        loop {
            match self.pump.advance()? {
                Advance::Found(place) => return Ok(Some(self.pump.lend(place))),
                Advance::Ended => return Ok(None),
                Advance::NeedsBytes => {
                    let got = self.input.read(&mut self.pump.chunk).await?;
                    self.pump.filled(got);
                }
            }
        }
    }
}

/// Frames from a blocking stream.
#[derive(Debug)]
pub struct BlockingFrameReader<R> {
    input: R,
    pump: Pump,
}

impl<R: Read> BlockingFrameReader<R> {
    /// Reads frames within `limit` from `input`.
    pub fn new(input: R, limit: FrameLimit) -> Self {
        Self { input, pump: Pump::new(limit) }
    }

    /// The next frame, or `None` when the stream ended between frames.
    ///
    /// # Errors
    /// When the stream fails, ends inside a frame, or announces a frame beyond the limit.
    #[expect(clippy::should_implement_trait, reason = "an iterator cannot lend out of its own buffer")]
    pub fn next(&mut self) -> Result<Option<Frame<'_>>, FrameReadError> {
        loop {
            match self.pump.advance()? {
                Advance::Found(place) => return Ok(Some(self.pump.lend(place))),
                Advance::Ended => return Ok(None),
                Advance::NeedsBytes => match self.input.read(&mut self.pump.chunk) {
                    Ok(got) => self.pump.filled(got),
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(error.into()),
                },
            }
        }
    }
}

/// The chunk buffer between a stream and the decoder: everything about reading that does not wait.
#[derive(Debug)]
struct Pump {
    decoder: FrameDecoder,
    chunk: Box<[u8]>,
    /// `chunk[start..end]` was read and not yet decoded.
    start: usize,
    end: usize,
    at_end: bool,
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
    fn new(limit: FrameLimit) -> Self {
        let chunk = vec![0; CHUNK].into_boxed_slice();
        Self { decoder: FrameDecoder::new(limit), chunk, start: 0, end: 0, at_end: false }
    }

    fn advance(&mut self) -> Result<Advance, FrameError> {
        while self.start < self.end {
            let from = self.start;
            let step = self.decoder.step(&self.chunk[from..self.end])?;
            self.start += step.consumed;
            if let Some(found) = step.found {
                return Ok(Advance::Found(Place { found, from }));
            }
        }
        if !self.at_end {
            return Ok(Advance::NeedsBytes);
        }
        self.decoder.finish()?;
        Ok(Advance::Ended)
    }

    fn lend(&self, Place { found, from }: Place) -> Frame<'_> {
        self.decoder.lend(found, &self.chunk[from..self.end])
    }

    fn filled(&mut self, got: usize) {
        (self.start, self.end) = (0, got);
        self.at_end = got == 0;
    }
}
