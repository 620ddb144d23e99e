//! The mustard sidecar: any bytes are answered or end the conversation, the same however they are cut.

use std::io::Read;
use std::time::Duration;

use outrigger_mustard::protocol::feature::Framing;
use outrigger_mustard::sidecar::{Budgets, Surroundings, World, serve};

use crate::{Choices, cut};

/// A world that is the same for every conversation.
struct Still;

impl World for Still {
    fn now_ms(&mut self) -> f64 {
        1_700_000_000_000.0
    }

    fn elapsed(&mut self) -> Duration {
        Duration::ZERO
    }

    fn entropy(&mut self) -> u64 {
        7
    }
}

/// A stream that comes in pieces.
struct Pieces<'a> {
    pieces: std::vec::IntoIter<&'a [u8]>,
    rest: &'a [u8],
}

impl Read for Pieces<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        while self.rest.is_empty() {
            match self.pieces.next() {
                Some(piece) => self.rest = piece,
                None => return Ok(0),
            }
        }
        let count = self.rest.len().min(buffer.len());
        let (now, later) = self.rest.split_at(count);
        buffer[..count].copy_from_slice(now);
        self.rest = later;
        Ok(count)
    }
}

/// Holds a conversation in one piece and in many, and looks at what was said.
pub fn mustard(input: &[u8]) {
    let mut choices = Choices::new(input);
    let framing = choices.pick(&[Framing::Binary, Framing::Lines]);
    let seed = choices.byte();
    let stream = choices.rest;
    // A host may allow a script to run for a very long time; a fuzzer may not.
    let asks_for_more = |name: &[u8]| stream.windows(name.len()).any(|window| window == name);
    if asks_for_more(b"instruction") || asks_for_more(b"heap_limit") {
        return;
    }
    let whole = converse(vec![stream], framing);
    assert_eq!(converse(cut(stream, seed), framing), whole, "cut in pieces");
    match framing {
        Framing::Binary => assert_frames(&whole.0),
        Framing::Lines => {
            for line in whole.0.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
                assert_response(line);
            }
        }
    }
}

/// What was said, and why it ended.
fn converse(pieces: Vec<&[u8]>, framing: Framing) -> (Vec<u8>, Option<String>) {
    let input = Pieces { pieces: pieces.into_iter(), rest: &[] };
    let surroundings = Surroundings { landlock: String::new(), seccomp: String::new() };
    let mut said = Vec::new();
    let end = serve(input, &mut said, framing, Still, Budgets::USUAL, surroundings);
    (said, end.err().map(|fatal| fatal.to_string()))
}

fn assert_frames(mut said: &[u8]) {
    while let Some((lengths, rest)) = said.split_at_checked(8) {
        let length =
            |at: usize| u32::from_le_bytes([lengths[at], lengths[at + 1], lengths[at + 2], lengths[at + 3]]);
        let (header, rest) = rest.split_at(length(0) as usize);
        assert_response(header);
        said = &rest[length(4) as usize..];
    }
    assert!(said.is_empty(), "half a frame was written");
}

fn assert_response(header: &[u8]) {
    let response: serde_json::Value = serde_json::from_slice(header).expect("a response is JSON");
    assert_eq!(response["protocol_version"], 2);
    assert!(response["id"].is_u64());
    let ok = response["ok"].as_bool().expect("ok is a boolean");
    assert_eq!(ok, response.get("result").is_some());
    assert_eq!(!ok, response.get("error").is_some());
    let error = response["error"].as_str().unwrap_or_default();
    assert!(!error.contains("internal error"), "the engine failed: {error}");
}
