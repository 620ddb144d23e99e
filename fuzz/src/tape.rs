//! Tapes: reading never panics, and what is recorded is read back.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use outrigger_wire::tape::{Direction, Said, Tape, TapeSize, read_tape, stream};

use crate::Choices;

#[derive(Clone, Default)]
struct Reel(Arc<Mutex<Vec<u8>>>);

impl Write for Reel {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Reads the input as a tape; then records it on one, line by line, and reads that.
pub fn tape(input: &[u8]) {
    let mut choices = Choices::new(input);
    let size = u64::from(choices.byte()) * 16;
    if let Ok(text) = std::str::from_utf8(choices.rest) {
        let _ = read_tape(text);
    }

    let reel = Reel::default();
    let tape = Tape::new(reel.clone(), TapeSize(size));
    let lines: Vec<&[u8]> = choices.rest.split(|byte| *byte == b'\n').collect();
    for line in &lines {
        tape.line(Direction::In, line);
    }
    let summary = tape.summary();
    assert_eq!(summary.entries + summary.missed, lines.len() as u64);
    let text = reel.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
    assert!(text.len() as u64 <= size.max(14));
    let text = String::from_utf8_lossy(&text);
    let entries = read_tape(&text).unwrap_or_default();
    assert_eq!(entries.len() as u64, summary.entries);
    for (entry, line) in entries.iter().zip(&lines) {
        match &entry.said {
            Said::Line(said) => assert_eq!(said.as_bytes(), *line),
            Said::Bytes(said) => assert_eq!(said.strip_suffix(b"\n"), Some(*line)),
        }
    }
    let mut expect = lines[..entries.len()].join(&b'\n');
    if !entries.is_empty() {
        expect.push(b'\n');
    }
    assert_eq!(stream(&entries, Direction::In), expect);
}
