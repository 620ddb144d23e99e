//! Requests out of a stream: frames or lines, never more of them in memory than the limit allows.
//!
//! One buffer is read into and lent out of. It grows with what has arrived and not with what was announced, and what one
//! large request made of it is given back.

use std::io::{self, Read};

use outrigger_wire::frame::FramePart;

use super::Fatal;

/// What is read at once.
const USUAL: usize = 64 * 1024;

/// What the buffer is kept at: what a usual request may have.
const KEPT: usize = 1 << 20;

/// The two lengths before a frame.
const PREFIX: usize = 8;

/// A stream of requests.
pub(super) struct Input<R> {
    source: R,
    buffer: Vec<u8>,
    /// `buffer[start..end]` was read and not yet used.
    start: usize,
    end: usize,
    /// Where what was lent out ends: the next call goes on there.
    used: usize,
}

/// A frame, lent out of the buffer.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Frame<'a> {
    pub(super) header: &'a str,
    pub(super) blob: &'a [u8],
}

impl<R: Read> Input<R> {
    pub(super) fn new(source: R) -> Input<R> {
        Input { source, buffer: Vec::new(), start: 0, end: 0, used: 0 }
    }

    /// The next frame that says something; `None` when the stream ends between frames.
    pub(super) fn frame(&mut self, limit: u64) -> Result<Option<Frame<'_>>, Fatal> {
        loop {
            self.forget();
            if !self.have(PREFIX)? {
                return match self.end - self.start {
                    0 => Ok(None),
                    got @ 1..4 => Err(Fatal::Truncated(FramePart::HeaderLength { got })),
                    got => Err(Fatal::Truncated(FramePart::BlobLength { got: got - 4 })),
                };
            }
            let length = |at: usize| {
                let bytes = &self.buffer[self.start + at..self.start + at + 4];
                bytes.try_into().map_or(0, u32::from_le_bytes)
            };
            let (header_length, blob_length) = (length(0), length(4));
            let total = u64::from(header_length) + u64::from(blob_length);
            if total > limit {
                return Err(Fatal::FrameTooLarge { limit, header: header_length, blob: blob_length });
            }
            // A limit is far below what memory can address.
            let (header_length, blob_length) = (header_length as usize, blob_length as usize);
            if !self.have(PREFIX + header_length + blob_length)? {
                let got = self.end - self.start - PREFIX;
                return Err(Fatal::Truncated(if got < header_length {
                    FramePart::Header { got, want: header_length }
                } else {
                    FramePart::Blob { got: got - header_length, want: blob_length }
                }));
            }
            let from = self.start + PREFIX;
            let middle = from + header_length;
            self.used = middle + blob_length;
            let header = &self.buffer[from..middle];
            if blob_length == 0 && header.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            let header = std::str::from_utf8(&self.buffer[from..middle]).map_err(|_| Fatal::NotUtf8)?;
            return Ok(Some(Frame { header, blob: &self.buffer[middle..self.used] }));
        }
    }

    /// The next line that says something, without its end; `None` when the stream ends.
    pub(super) fn line(&mut self, limit: u64) -> Result<Option<&str>, Fatal> {
        // The newline counts: one byte more than the limit is still a line, if it is a newline or the end of the stream.
        let most = usize::try_from(limit).unwrap_or(usize::MAX).saturating_add(1);
        loop {
            self.forget();
            let mut looked = 0;
            let length = loop {
                let unused = &self.buffer[self.start..self.end];
                if let Some(at) = memchr::memchr(b'\n', &unused[looked..]) {
                    self.used = self.start + looked + at + 1;
                    break looked + at;
                }
                looked = unused.len();
                if looked > most {
                    return Err(Fatal::LineTooLarge { limit });
                }
                if !self.read_some(most + 1)? {
                    if looked == 0 {
                        return Ok(None);
                    }
                    self.used = self.end;
                    break looked;
                }
            };
            if self.used - self.start > most {
                return Err(Fatal::LineTooLarge { limit });
            }
            let line = &self.buffer[self.start..self.start + length];
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if line.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            let end = self.start + line.len();
            return std::str::from_utf8(&self.buffer[self.start..end]).map(Some).map_err(|_| Fatal::NotUtf8);
        }
    }

    /// Goes on behind what was lent out.
    fn forget(&mut self) {
        self.start = self.used;
        if self.start == self.end {
            (self.start, self.end, self.used) = (0, 0, 0);
            if self.buffer.len() > KEPT {
                self.buffer = Vec::new();
            }
        }
    }

    /// Reads until there are `wanted` unused bytes. `Ok(false)`: the stream ended before.
    fn have(&mut self, wanted: usize) -> Result<bool, Fatal> {
        while self.end - self.start < wanted {
            if !self.read_some(wanted)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Reads once, with room for at least one more byte and at most `most` unused ones beyond the usual.
    fn read_some(&mut self, most: usize) -> Result<bool, Fatal> {
        if self.end == self.buffer.len() && self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.used -= self.start;
            self.start = 0;
        }
        if self.end == self.buffer.len() {
            let larger = (self.buffer.len() * 2).max(USUAL).min(most.max(USUAL)).max(self.end + 1);
            self.buffer.reserve_exact(larger - self.end);
            self.buffer.resize(larger, 0);
        }
        loop {
            match self.source.read(&mut self.buffer[self.end..]) {
                Ok(0) => return Ok(false),
                Ok(got) => {
                    self.end += got;
                    return Ok(true);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Fatal::Read(error)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives one byte at a time.
    struct Drip<'a>(&'a [u8]);

    impl Read for Drip<'_> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let one = self.0.len().min(1).min(into.len());
            into[..one].copy_from_slice(&self.0[..one]);
            self.0 = &self.0[one..];
            Ok(one)
        }
    }

    fn frame(header: &[u8], blob: &[u8]) -> Vec<u8> {
        let lengths = [header.len(), blob.len()].map(|n| (n as u32).to_le_bytes());
        [&lengths[0][..], &lengths[1], header, blob].concat()
    }

    /// Headers and blobs, and how the stream ended.
    type Frames = (Vec<(String, Vec<u8>)>, Result<(), String>);

    fn frames(bytes: &[u8], limit: u64) -> Frames {
        let read = |mut input: Input<&mut dyn Read>| {
            let mut all = Vec::new();
            loop {
                match input.frame(limit) {
                    Ok(Some(frame)) => all.push((frame.header.to_owned(), frame.blob.to_owned())),
                    Ok(None) => return (all, Ok(())),
                    Err(fatal) => return (all, Err(fatal.to_string())),
                }
            }
        };
        let whole = read(Input::new(&mut &bytes[..]));
        assert_eq!(read(Input::new(&mut Drip(bytes))), whole, "however the stream is cut");
        whole
    }

    fn lines(bytes: &[u8], limit: u64) -> (Vec<String>, Result<(), String>) {
        let read = |mut input: Input<&mut dyn Read>| {
            let mut all = Vec::new();
            loop {
                match input.line(limit) {
                    Ok(Some(line)) => all.push(line.to_owned()),
                    Ok(None) => return (all, Ok(())),
                    Err(fatal) => return (all, Err(fatal.to_string())),
                }
                assert!(input.buffer.len() <= USUAL.max(limit as usize + 2));
            }
        };
        let whole = read(Input::new(&mut &bytes[..]));
        assert_eq!(read(Input::new(&mut Drip(bytes))), whole, "however the stream is cut");
        whole
    }

    #[test]
    fn a_frame_may_be_as_large_as_the_limit_and_not_one_byte_larger() {
        let at = frame(b"{\"a\":1}", b"123");
        assert_eq!(frames(&at, 10), (vec![("{\"a\":1}".into(), b"123".to_vec())], Ok(())));
        let (none, end) = frames(&frame(b"{\"a\":1}", b"1234"), 10);
        assert!(none.is_empty() && end.unwrap_err().contains("request frame exceeds maximum size"));
        // The lengths are enough, and their sum does not wrap around.
        let (none, end) = frames(&[0xff; 8], u64::from(u32::MAX));
        assert!(none.is_empty() && end.unwrap_err().contains("request frame exceeds maximum size"));
    }

    #[test]
    fn frames_that_say_nothing_are_passed_over() {
        let bytes = [frame(b"", b""), frame(b" \n", b""), frame(b"{}", b""), vec![0; 8]].concat();
        assert_eq!(frames(&bytes, 10).0.len(), 1);
        assert_eq!(frames(&frame(b" ", b"x"), 10).0, [(" ".to_owned(), b"x".to_vec())]);
    }

    #[test]
    fn a_stream_may_end_between_frames_only() {
        let whole = frame(b"hh", b"bbb");
        assert_eq!(frames(&[], 10), (vec![], Ok(())));
        for at in 1..whole.len() {
            let bytes = [&whole[..], &whole[..at]].concat();
            let (found, end) = frames(&bytes, 10);
            assert_eq!(found.len(), 1);
            let part = match at {
                1..4 => "frame length",
                4..8 => "blob length",
                8..10 => "header",
                _ => "blob",
            };
            assert!(end.unwrap_err().contains(&format!("unexpected EOF while reading {part}")), "{at}");
        }
    }

    #[test]
    fn a_line_may_be_as_long_as_the_limit_and_a_newline() {
        assert_eq!(lines(b"12345\n12345\r\n\n \n12", 6).0, ["12345", "12345", "12"]);
        assert_eq!(lines(b"123456\n", 6), (vec!["123456".into()], Ok(())));
        assert!(lines(b"1234567\n", 6).1.unwrap_err().contains("request line exceeds maximum size"));
        assert_eq!(
            lines(b"1234567", 6),
            (vec!["1234567".into()], Ok(())),
            "the newline's place counts as well"
        );
        assert!(lines(b"12345678", 6).1.unwrap_err().contains("request line exceeds maximum size"));
        assert!(lines(b"\xff\n", 6).1.is_err());
    }

    #[test]
    fn what_one_large_request_took_is_given_back() {
        for (size, kept) in [(3_000_000, USUAL), (300_000, KEPT)] {
            let large = frame(b"{}", &vec![1; size]);
            let bytes = [&large[..], &frame(b"{}", b"")].concat();
            let mut input = Input::new(&bytes[..]);
            assert_eq!(input.frame(4 << 20).unwrap().unwrap().blob.len(), size);
            assert!(input.frame(4 << 20).unwrap().is_some());
            assert!(input.frame(4 << 20).unwrap().is_none());
            assert!(input.buffer.len() <= kept, "{} bytes", input.buffer.len());
        }
        // An announcement alone costs nothing.
        let mut input = Input::new(&[0, 0, 0, 64, 0, 0, 0, 64][..]);
        assert!(input.frame(u64::MAX).is_err());
        assert!(input.buffer.len() <= USUAL);
    }
}
