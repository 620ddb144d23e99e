//! The frame decoder: a state machine that knows at every byte which part of a frame it is in.

use std::fmt;

/// The two lengths before each frame.
pub(super) const PREFIX: usize = 8;

/// A buffer that grew beyond this for one large frame is given back before the next.
const KEEP_CAPACITY: usize = 64 * 1024;

/// The most bytes a frame may have, header and blob together; the eight length bytes are not counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FrameLimit(pub u64);

/// One frame, lent out of the input or of the decoder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// The header, usually JSON; the decoder does not look at it.
    pub header: &'a [u8],
    /// The blob.
    pub blob: &'a [u8],
}

impl Frame<'_> {
    /// Whether the frame says nothing: no blob, and a header of white space or nothing. What that means is the
    /// caller's business.
    #[must_use]
    pub fn is_blank(&self) -> bool {
        self.blob.is_empty() && self.header.iter().all(u8::is_ascii_whitespace)
    }
}

/// What one push gave.
#[derive(Debug, PartialEq, Eq)]
pub struct DecodedFrame<'a> {
    /// How many of the pushed bytes were used. Push the rest again.
    pub consumed: usize,
    /// The frame, if one is complete; `None` means that all bytes were used and more are needed.
    pub frame: Option<Frame<'a>>,
}

/// Why a stream of frames cannot go on. Once given, the same answer is given for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// The lengths announce more than the limit. Nothing of the body was read.
    #[error("frame exceeds maximum size of {limit} bytes (header {header_len}, blob {blob_len})")]
    TooLarge {
        /// The limit.
        limit: u64,
        /// The announced length of the header.
        header_len: u32,
        /// The announced length of the blob.
        blob_len: u32,
    },
    /// The stream ended inside a frame.
    #[error("unexpected EOF while reading {part}")]
    Truncated {
        /// Where it ended.
        part: FramePart,
    },
}

/// A part of a frame, and how much of it had arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FramePart {
    /// The first length; one to three bytes had arrived.
    HeaderLength {
        /// Bytes that had arrived.
        got: usize,
    },
    /// The second length; none to three bytes had arrived.
    BlobLength {
        /// Bytes that had arrived.
        got: usize,
    },
    /// The header.
    Header {
        /// Bytes that had arrived.
        got: usize,
        /// Bytes that were announced.
        want: usize,
    },
    /// The blob.
    Blob {
        /// Bytes that had arrived.
        got: usize,
        /// Bytes that were announced.
        want: usize,
    },
}

impl fmt::Display for FramePart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::HeaderLength { got } => write!(f, "frame length ({got} of 4 bytes)"),
            Self::BlobLength { got } => write!(f, "blob length ({got} of 4 bytes)"),
            Self::Header { got, want } => write!(f, "header ({got} of {want} bytes)"),
            Self::Blob { got, want } => write!(f, "blob ({got} of {want} bytes)"),
        }
    }
}

/// Turns bytes into frames. It does no I/O: push what arrived with [`FrameDecoder::decode`], say
/// [`FrameDecoder::finish`] at the end.
///
/// A frame that lies whole in the pushed bytes is lent out of them; otherwise what has arrived of it is held, and never
/// more than that: a peer that announces a large frame and sends nothing costs nothing.
#[derive(Debug)]
pub struct FrameDecoder {
    limit: FrameLimit,
    held: Vec<u8>,
    state: State,
}

impl FrameDecoder {
    /// A decoder at the start of a stream.
    #[must_use]
    pub fn new(limit: FrameLimit) -> Self {
        Self { limit, held: Vec::new(), state: State::Collecting }
    }

    /// Looks for the next frame in `input`.
    ///
    /// # Errors
    /// When a frame announces more than the limit.
    pub fn decode<'a>(&'a mut self, input: &'a [u8]) -> Result<DecodedFrame<'a>, FrameError> {
        let step = self.step(input)?;
        let frame = step.found.map(|found| self.lend(found, input));
        Ok(DecodedFrame { consumed: step.consumed, frame })
    }

    /// Says that the stream has ended.
    ///
    /// # Errors
    /// When it ended inside a frame.
    pub fn finish(&mut self) -> Result<(), FrameError> {
        match self.state {
            State::Lent => Ok(()),
            State::Dead(error) => Err(error),
            State::Collecting if self.held.is_empty() => Ok(()),
            State::Collecting => Err(self.die(FrameError::Truncated { part: part_reached(&self.held) })),
        }
    }

    /// How many bytes of an unfinished frame are held.
    #[must_use]
    pub fn held(&self) -> usize {
        match self.state {
            State::Collecting => self.held.len(),
            State::Lent | State::Dead(_) => 0,
        }
    }

    /// How much memory the decoder owns.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.held.capacity()
    }

    pub(super) fn step(&mut self, input: &[u8]) -> Result<Step, FrameError> {
        match self.state {
            State::Dead(error) => return Err(error),
            State::Collecting => {}
            State::Lent => {
                self.held.clear();
                self.held.shrink_to(KEEP_CAPACITY);
                self.state = State::Collecting;
            }
        }
        if self.held.is_empty()
            && let Some(lengths) = self.admit(Lengths::read(input))?
            && let Some(total) = lengths.total_within(input.len())
        {
            return Ok(Step { consumed: total, found: Some(Found { lengths, place: Place::Input }) });
        }
        let mut consumed = 0;
        if self.held.len() < PREFIX {
            consumed = (PREFIX - self.held.len()).min(input.len());
            self.held.extend_from_slice(&input[..consumed]);
        }
        let Some(lengths) = self.admit(Lengths::read(&self.held))? else {
            return Ok(Step { consumed, found: None });
        };
        let missing = lengths.total().saturating_sub(self.held.len() as u64);
        let take = usize::try_from(missing).unwrap_or(usize::MAX).min(input.len() - consumed);
        self.hold(&input[consumed..consumed + take], lengths.total());
        let done = take as u64 == missing;
        if done {
            self.state = State::Lent;
        }
        let found = done.then_some(Found { lengths, place: Place::Held });
        Ok(Step { consumed: consumed + take, found })
    }

    pub(super) fn lend<'a>(&'a self, found: Found, input: &'a [u8]) -> Frame<'a> {
        let bytes = match found.place {
            Place::Input => input,
            Place::Held => &self.held,
        };
        // `step` found the whole frame in these bytes, so both ends fit in memory.
        let header_end = PREFIX + found.lengths.header as usize;
        let blob_end = header_end + found.lengths.blob as usize;
        Frame { header: &bytes[PREFIX..header_end], blob: &bytes[header_end..blob_end] }
    }

    /// Judges the two lengths as soon as both have arrived.
    fn admit(&mut self, lengths: Option<Lengths>) -> Result<Option<Lengths>, FrameError> {
        let Some(lengths) = lengths else { return Ok(None) };
        if lengths.body() > self.limit.0 {
            let Lengths { header: header_len, blob: blob_len } = lengths;
            return Err(self.die(FrameError::TooLarge { limit: self.limit.0, header_len, blob_len }));
        }
        Ok(Some(lengths))
    }

    /// Appends, growing by doubling but never past the frame, so that the limit bounds the memory and not just the data.
    fn hold(&mut self, bytes: &[u8], total: u64) {
        let needed = self.held.len() + bytes.len();
        if needed > self.held.capacity() {
            let total = usize::try_from(total).unwrap_or(usize::MAX);
            let target = needed.max((self.held.capacity() * 2).min(total));
            self.held.reserve_exact(target - self.held.len());
        }
        self.held.extend_from_slice(bytes);
    }

    fn die(&mut self, error: FrameError) -> FrameError {
        self.held = Vec::new();
        self.state = State::Dead(error);
        error
    }
}

#[derive(Debug)]
enum State {
    /// `held` is the beginning of a frame, or empty.
    Collecting,
    /// `held` is a frame on loan.
    Lent,
    /// A fatal error was given.
    Dead(FrameError),
}

pub(super) struct Step {
    pub(super) consumed: usize,
    pub(super) found: Option<Found>,
}

/// A frame as lengths, so that finding it and lending it out are separate borrows.
pub(super) struct Found {
    lengths: Lengths,
    place: Place,
}

enum Place {
    Input,
    Held,
}

#[derive(Clone, Copy)]
struct Lengths {
    header: u32,
    blob: u32,
}

impl Lengths {
    fn read(bytes: &[u8]) -> Option<Self> {
        let (header, rest) = bytes.split_first_chunk()?;
        let (blob, _) = rest.split_first_chunk()?;
        Some(Self { header: u32::from_le_bytes(*header), blob: u32::from_le_bytes(*blob) })
    }

    fn body(self) -> u64 {
        u64::from(self.header) + u64::from(self.blob)
    }

    fn total(self) -> u64 {
        PREFIX as u64 + self.body()
    }

    /// The size of the whole frame if that many bytes are there.
    fn total_within(self, available: usize) -> Option<usize> {
        usize::try_from(self.total()).ok().filter(|total| *total <= available)
    }
}

/// Names the part of a frame that the stream ended in; `held` is not empty and not a whole frame.
fn part_reached(held: &[u8]) -> FramePart {
    let Some(lengths) = Lengths::read(held) else {
        return match held.len() {
            got @ 0..4 => FramePart::HeaderLength { got },
            got => FramePart::BlobLength { got: got - 4 },
        };
    };
    let (got, header) = (held.len() - PREFIX, lengths.header as usize);
    if got < header {
        FramePart::Header { got, want: header }
    } else {
        FramePart::Blob { got: got - header, want: lengths.blob as usize }
    }
}
