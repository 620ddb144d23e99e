//! Server-sent events: the same events however the stream is cut, and never more memory than one event may have.

use outrigger_steerable::net::sse::{Event, EventLimit, Parser, SseError};

use crate::{Choices, cut};

/// Reads the input in one piece, in odd pieces and byte by byte, under a limit that the input chooses.
pub fn sse(input: &[u8]) {
    let mut choices = Choices::new(input);
    let limit = usize::from(choices.byte());
    let seed = choices.byte();
    let stream = choices.rest;
    let whole = read(limit, &[stream]);
    assert_eq!(read(limit, &cut(stream, seed)), whole, "cut in pieces");
    assert_eq!(read(limit, &stream.chunks(1).collect::<Vec<_>>()), whole, "cut in bytes");
    for (at, seen) in whole.iter().enumerate() {
        match seen {
            // Bytes that are no UTF-8 become characters of three.
            Ok((_, data, _)) => assert!(data.len() <= 3 * limit),
            Err(SseError::TooLong(_)) => assert_eq!(at, whole.len() - 1, "nothing follows an error"),
        }
    }
}

type Seen = Result<(String, String, String), SseError>;

fn read(limit: usize, pieces: &[&[u8]]) -> Vec<Seen> {
    let own = |event: Result<Event<'_>, SseError>| {
        event.map(|event| (event.name.to_owned(), event.data.to_owned(), event.id.to_owned()))
    };
    let mut parser = Parser::new(EventLimit(limit));
    let mut seen = Vec::new();
    for piece in pieces {
        parser.push(piece);
        while let Some(event) = parser.next() {
            seen.push(own(event));
        }
        assert!(parser.held() <= 4 * limit + 3, "{} bytes are held", parser.held());
    }
    seen.extend(parser.finish().map(own));
    seen
}
