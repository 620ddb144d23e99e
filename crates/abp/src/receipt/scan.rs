//! A receipt's file from end to end, however large: its members one after another, its events one at a time.

use std::io::{self, Read};

/// The most bytes that one event, or everything beside the events, may have in a file.
pub const MAX_PIECE: usize = 256 << 20;

/// Why a file is not a receipt that can be gone through.
#[derive(Debug, thiserror::Error)]
pub enum ScanError {
    /// It cannot be read.
    #[error("it cannot be read: {0}")]
    Io(#[from] io::Error),
    /// It is not JSON.
    #[error("it is not JSON at byte {at}: {why}")]
    NotJson {
        /// Where.
        at: u64,
        /// Why.
        why: &'static str,
    },
    /// A part of it is too large.
    #[error("a part of it has more than {MAX_PIECE} bytes")]
    TooLarge,
}

/// Goes through JSON text byte by byte with one buffer.
pub(super) struct Scanner<R> {
    reader: R,
    buffer: Vec<u8>,
    at: usize,
    filled: usize,
    /// Of the beginning of the buffer.
    offset: u64,
}

impl<R: Read> Scanner<R> {
    /// Begins at a reader's place, which is at `offset` of the file.
    pub(super) fn new(reader: R, offset: u64) -> Self {
        Self { reader, buffer: vec![0; 128 * 1024], at: 0, filled: 0, offset }
    }

    /// The offset of the next byte.
    pub(super) fn offset(&self) -> u64 {
        self.offset + self.at as u64
    }

    pub(super) fn fail<T>(&self, why: &'static str) -> Result<T, ScanError> {
        Err(ScanError::NotJson { at: self.offset(), why })
    }

    /// The next byte; none at the end.
    fn byte(&mut self) -> Result<Option<u8>, ScanError> {
        if self.at == self.filled {
            self.offset += self.filled as u64;
            self.at = 0;
            self.filled = loop {
                match self.reader.read(&mut self.buffer) {
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    read => break read?,
                }
            };
        }
        Ok(self.buffer[..self.filled].get(self.at).copied())
    }

    /// The next byte that is not white space.
    pub(super) fn peek(&mut self) -> Result<Option<u8>, ScanError> {
        loop {
            match self.byte()? {
                Some(b' ' | b'\t' | b'\n' | b'\r') => self.at += 1,
                other => return Ok(other),
            }
        }
    }

    /// Goes past a byte that must be there.
    pub(super) fn expect(&mut self, byte: u8, why: &'static str) -> Result<(), ScanError> {
        if self.peek()? != Some(byte) {
            return self.fail(why);
        }
        self.at += 1;
        Ok(())
    }

    /// Whether another element or member follows; past the end of the container if not.
    pub(super) fn goes_on(&mut self, close: u8, first: &mut bool) -> Result<bool, ScanError> {
        let next = self.peek()?;
        if next == Some(close) {
            self.at += 1;
            return Ok(false);
        }
        if !std::mem::replace(first, false) {
            self.expect(b',', "a comma or the end is missing")?;
        }
        Ok(true)
    }

    /// Copies the text of the next value. Its brackets and quotes are balanced; whether it is JSON is for others to see.
    pub(super) fn value(&mut self, into: &mut Vec<u8>) -> Result<(), ScanError> {
        into.clear();
        self.walk(|bytes| {
            if into.len() + bytes.len() > MAX_PIECE {
                return Err(ScanError::TooLarge);
            }
            into.extend_from_slice(bytes);
            Ok(())
        })
    }

    /// Goes past the next value.
    pub(super) fn skip(&mut self) -> Result<(), ScanError> {
        self.walk(|_| Ok(()))
    }

    fn walk(&mut self, mut part: impl FnMut(&[u8]) -> Result<(), ScanError>) -> Result<(), ScanError> {
        let mut state = match self.peek()? {
            None => return self.fail("it ends too early"),
            Some(b',' | b':' | b']' | b'}') => return self.fail("a value is missing"),
            Some(_) => State::Outside,
        };
        let mut depth = 0u64;
        let mut begun = false;
        loop {
            let Some(_) = self.byte()? else {
                return if depth == 0 && begun && matches!(state, State::Outside) {
                    Ok(())
                } else {
                    self.fail("it ends too early")
                };
            };
            let mut end = self.at;
            let mut done = false;
            for byte in &self.buffer[self.at..self.filled] {
                match (state, byte) {
                    (State::Escape, _) => state = State::Inside,
                    (State::Inside, b'\\') => state = State::Escape,
                    (State::Inside, b'"') => {
                        state = State::Outside;
                        done = depth == 0;
                    }
                    (State::Inside, _) => {}
                    (State::Outside, b'"') if depth == 0 && begun => {
                        part(&self.buffer[self.at..end])?;
                        self.at = end;
                        return Ok(());
                    }
                    (State::Outside, b'"') => state = State::Inside,
                    (State::Outside, b'[' | b'{') => depth += 1,
                    (State::Outside, b']' | b'}' | b',' | b' ' | b'\t' | b'\n' | b'\r') if depth == 0 => {
                        // A scalar ends before what follows it.
                        part(&self.buffer[self.at..end])?;
                        self.at = end;
                        return Ok(());
                    }
                    (State::Outside, b']' | b'}') => {
                        depth -= 1;
                        done = depth == 0;
                    }
                    (State::Outside, _) => {}
                }
                begun = true;
                end += 1;
                if done {
                    break;
                }
            }
            part(&self.buffer[self.at..end])?;
            self.at = end;
            if done {
                return Ok(());
            }
        }
    }
}

#[derive(Clone, Copy)]
enum State {
    Outside,
    Inside,
    Escape,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(text: &str) -> Result<Vec<String>, ScanError> {
        let mut scanner = Scanner::new(text.as_bytes(), 0);
        // A buffer of a few bytes cuts everything everywhere.
        scanner.buffer = vec![0; 3];
        scanner.expect(b'[', "no array")?;
        let (mut first, mut value, mut found) = (true, Vec::new(), Vec::new());
        while scanner.goes_on(b']', &mut first)? {
            scanner.value(&mut value)?;
            found.push(String::from_utf8(value.clone()).unwrap());
        }
        Ok(found)
    }

    #[test]
    fn values_come_out_as_they_are_in_the_file() {
        let text = r#" [ 1 ,true,"a]\"\\", {"b":[1,{"c":"}"}]} ,[],"",-1.5e3,null]"#;
        let expected = ["1", "true", r#""a]\"\\""#, r#"{"b":[1,{"c":"}"}]}"#, "[]", "\"\"", "-1.5e3", "null"];
        assert_eq!(values(text).unwrap(), expected);
    }

    #[test]
    fn what_is_cut_or_bent_is_refused() {
        for text in ["", "[", "[1", "[1,", "[\"a", "[{\"a\":1", "[1 2]", "[,1]", "{", "[\"a\"\"b\"]"] {
            assert!(values(text).is_err(), "{text}: {:?}", values(text));
        }
    }
}
