//! Writes frames: one that the peer would refuse is refused here, before a byte of it is written.

use std::io::{self, Write};

use tokio::io::{AsyncWrite, AsyncWriteExt};

use super::decode::{Frame, FrameLimit};

/// Why a frame cannot be encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameEncodeError {
    /// It is larger than the limit.
    #[error("frame exceeds maximum size of {limit} bytes (header {header_len}, blob {blob_len})")]
    TooLarge {
        /// The limit.
        limit: u64,
        /// The length of the header.
        header_len: usize,
        /// The length of the blob.
        blob_len: usize,
    },
    /// One part does not fit in a 32-bit length, whatever the limit says.
    #[error("frame part of {length} bytes does not fit in a 32-bit length")]
    Unrepresentable {
        /// The length of the part.
        length: usize,
    },
}

/// Appends the encoding of `frame` to `out`.
///
/// # Errors
/// When the frame cannot be encoded; then `out` is unchanged.
pub fn encode_frame(frame: Frame<'_>, limit: FrameLimit, out: &mut Vec<u8>) -> Result<(), FrameEncodeError> {
    let Frame { header, blob } = frame;
    let fits = |length| u32::try_from(length).map_err(|_| FrameEncodeError::Unrepresentable { length });
    let (header_len, blob_len) = (fits(header.len())?, fits(blob.len())?);
    if u64::from(header_len) + u64::from(blob_len) > limit.0 {
        let (header_len, blob_len) = (header.len(), blob.len());
        return Err(FrameEncodeError::TooLarge { limit: limit.0, header_len, blob_len });
    }
    out.reserve(super::decode::PREFIX + header.len() + blob.len());
    out.extend_from_slice(&header_len.to_le_bytes());
    out.extend_from_slice(&blob_len.to_le_bytes());
    out.extend_from_slice(header);
    out.extend_from_slice(blob);
    Ok(())
}

/// Why a frame was not written.
#[derive(Debug, thiserror::Error)]
pub enum FrameWriteError {
    /// The stream itself failed.
    #[error("failed to write to the stream: {0}")]
    Io(#[from] io::Error),
    /// The frame cannot be encoded; nothing was written.
    #[error(transparent)]
    Encode(#[from] FrameEncodeError),
}

/// Writes frames to a tokio stream, each in one write, flushed.
///
/// A future that is dropped in the middle of a write leaves half a frame behind; whoever cancels must close the stream.
#[derive(Debug)]
pub struct FrameWriter<W> {
    output: W,
    limit: FrameLimit,
    encoded: Vec<u8>,
}

impl<W: AsyncWrite + Unpin> FrameWriter<W> {
    /// Writes frames within `limit` to `output`.
    pub fn new(output: W, limit: FrameLimit) -> Self {
        Self { output, limit, encoded: Vec::new() }
    }

    /// Writes one frame and flushes it.
    ///
    /// # Errors
    /// When the frame cannot be encoded (then nothing was written) or the stream fails.
    pub async fn write(&mut self, frame: Frame<'_>) -> Result<(), FrameWriteError> {
        encode_frame(frame, self.limit, renew(&mut self.encoded))?;
        self.output.write_all(&self.encoded).await?;
        self.output.flush().await?;
        Ok(())
    }

    /// Gives the stream back.
    pub fn into_inner(self) -> W {
        self.output
    }
}

/// Writes frames to a blocking stream, each in one write, flushed.
#[derive(Debug)]
pub struct BlockingFrameWriter<W> {
    output: W,
    limit: FrameLimit,
    encoded: Vec<u8>,
}

impl<W: Write> BlockingFrameWriter<W> {
    /// Writes frames within `limit` to `output`.
    pub fn new(output: W, limit: FrameLimit) -> Self {
        Self { output, limit, encoded: Vec::new() }
    }

    /// Writes one frame and flushes it.
    ///
    /// # Errors
    /// When the frame cannot be encoded (then nothing was written) or the stream fails.
    pub fn write(&mut self, frame: Frame<'_>) -> Result<(), FrameWriteError> {
        encode_frame(frame, self.limit, renew(&mut self.encoded))?;
        self.output.write_all(&self.encoded)?;
        self.output.flush()?;
        Ok(())
    }

    /// Gives the stream back.
    pub fn into_inner(self) -> W {
        self.output
    }
}

/// Empties the buffer and gives back what one large frame made it grow to.
fn renew(buffer: &mut Vec<u8>) -> &mut Vec<u8> {
    const KEEP_CAPACITY: usize = 64 * 1024;
    buffer.clear();
    buffer.shrink_to(KEEP_CAPACITY);
    buffer
}
