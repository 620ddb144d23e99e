//! Responses into a stream, each in one write if the stream takes it.

use std::io::{self, IoSlice, Write};

use super::Fatal;
use crate::protocol::feature::Framing;
use crate::protocol::response::{Failure, Response};

/// A buffer that grew beyond this for one large response is given back.
const KEPT: usize = 1 << 20;

/// A stream of responses.
pub(super) struct Output<W> {
    sink: W,
    buffer: Vec<u8>,
    framing: Framing,
}

impl<W: Write> Output<W> {
    pub(super) fn new(sink: W, framing: Framing) -> Output<W> {
        Output { sink, buffer: Vec::new(), framing }
    }

    /// Writes a response with its blob, and flushes.
    pub(super) fn send(&mut self, response: &Response, blob: &[u8]) -> Result<(), Fatal> {
        self.buffer.clear();
        self.buffer.shrink_to(KEPT);
        match self.framing {
            Framing::Lines => {
                response.encode_line(blob, &mut self.buffer);
                self.sink.write_all(&self.buffer).map_err(Fatal::Write)?;
            }
            Framing::Binary => {
                response.encode(blob.len(), &mut self.buffer);
                let longest = u32::MAX as usize;
                if self.buffer.len() > longest || blob.len() > longest {
                    // A frame cannot even say so.
                    self.buffer = Vec::new();
                    let error = "Limit: the response is larger than a frame can be".to_owned();
                    let failure = Failure { error, detail: None };
                    let short = Response { id: response.id, outcome: Err(failure), profile: None };
                    short.encode(0, &mut self.buffer);
                    self.sink.write_all(&self.buffer).map_err(Fatal::Write)?;
                } else {
                    write_both(&mut self.sink, &self.buffer, blob).map_err(Fatal::Write)?;
                }
            }
        }
        self.sink.flush().map_err(Fatal::Write)
    }
}

/// Header and blob without copying them together.
fn write_both(sink: &mut impl Write, header: &[u8], blob: &[u8]) -> io::Result<()> {
    let mut parts = [IoSlice::new(header), IoSlice::new(blob)];
    let mut left = &mut parts[..];
    // Empty parts at the front would look like a stream that takes nothing.
    IoSlice::advance_slices(&mut left, 0);
    while !left.is_empty() {
        match sink.write_vectored(left) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(n) => IoSlice::advance_slices(&mut left, n),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
