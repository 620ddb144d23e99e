//! Server-sent events out of bytes: pure, bounded, the same however the bytes are cut.
//!
//! The buffer holds what was pushed and not yet handed out. An event with one `data` line, which is nearly every event,
//! is lent out of the buffer as it came; only more lines, or bytes that are not UTF-8, cost a copy.

use std::ops::Range;

use memchr::{memchr, memchr2};

const BOM: &[u8] = b"\xEF\xBB\xBF";

/// How many bytes one event may have, its field names and comments included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventLimit(pub usize);

impl EventLimit {
    /// 16 MiB.
    pub const STANDARD: Self = Self(16 << 20);
}

/// One event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event<'a> {
    /// The event's name; empty if it has none.
    pub name: &'a str,
    /// Its data lines, joined by line feeds.
    pub data: &'a str,
    /// The last id that the stream mentioned; empty if it mentioned none.
    pub id: &'a str,
}

/// Why no more events come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SseError {
    /// An event is larger than the limit. Nothing more is read.
    #[error("a server-sent event is larger than {0} bytes")]
    TooLong(usize),
}

/// Takes a stream of server-sent events apart.
#[derive(Debug)]
pub struct Parser {
    limit: usize,
    state: State,
    buffer: Vec<u8>,
    /// Where the line begins that is read next.
    at: usize,
    /// Up to where that line was searched for its end.
    scanned: usize,
    /// Bytes of this event that are no longer in the buffer.
    spent: usize,
    /// The first data line, in the buffer.
    first: Option<Range<usize>>,
    /// All data lines, once there are two, or the first one repaired.
    joined: String,
    has_joined: bool,
    name: String,
    /// The name of the event before is still in `name`, because it may have been lent.
    stale_name: bool,
    id: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Nothing was read: a byte order mark may come.
    Start,
    /// The last line ended with CR: an LF belongs to it.
    AfterReturn,
    Lines,
    Broken,
}

impl Parser {
    /// Nothing was read yet.
    #[must_use]
    pub fn new(limit: EventLimit) -> Self {
        Self {
            limit: limit.0,
            state: State::Start,
            buffer: Vec::new(),
            at: 0,
            scanned: 0,
            spent: 0,
            first: None,
            joined: String::new(),
            has_joined: false,
            name: String::new(),
            stale_name: false,
            id: String::new(),
        }
    }

    /// Takes more of the stream. Call [`next`](Self::next) until it has nothing before pushing again.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.state == State::Broken {
            return;
        }
        let keep_from = self.first.as_ref().map_or(self.at, |first| first.start);
        if keep_from == self.buffer.len() {
            self.buffer.clear();
        } else if keep_from > 0 {
            self.buffer.drain(..keep_from);
        }
        self.at -= keep_from;
        self.scanned -= keep_from;
        if let Some(first) = &mut self.first {
            *first = first.start - keep_from..first.end - keep_from;
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// The next event that is complete.
    #[expect(
        clippy::should_implement_trait,
        reason = "an event borrows the parser, which no Iterator can say"
    )]
    pub fn next(&mut self) -> Option<Result<Event<'_>, SseError>> {
        self.forget_name();
        if self.state == State::Start && !self.skip_mark() {
            return None;
        }
        loop {
            if self.state == State::Broken {
                return None;
            }
            if self.state == State::AfterReturn {
                match self.buffer.get(self.at) {
                    None => return None,
                    Some(b'\n') => self.advance(1),
                    Some(_) => {}
                }
                self.state = State::Lines;
            }
            let Some(found) = memchr2(b'\n', b'\r', &self.buffer[self.scanned..]) else {
                self.scanned = self.buffer.len();
                return if self.is_too_long(self.buffer.len()) { self.fail() } else { None };
            };
            let line = self.at..self.scanned + found;
            if self.is_too_long(line.end) {
                return self.fail();
            }
            if self.buffer[line.end] == b'\r' {
                self.state = State::AfterReturn;
            }
            if line.is_empty() {
                self.advance(1);
                self.spent = 0;
                if let Some(data) = self.take_data() {
                    return Some(Ok(self.lend(data)));
                }
                self.name.clear();
                continue;
            }
            self.line(line.clone());
            self.advance(line.len() + 1);
        }
    }

    /// The event that the end of the stream left without its blank line.
    ///
    /// The standard drops it. Model servers that end without the blank line are common, and what was cut in the middle is
    /// no JSON anyway, so we hand it out.
    pub fn finish(&mut self) -> Option<Result<Event<'_>, SseError>> {
        self.forget_name();
        if self.state == State::Broken {
            return None;
        }
        let line = self.at..self.buffer.len();
        if !line.is_empty() {
            if self.is_too_long(line.end) {
                return self.fail();
            }
            self.line(line.clone());
            self.advance(line.len());
        }
        self.state = State::Broken;
        let data = self.take_data()?;
        Some(Ok(self.lend(data)))
    }

    /// How many bytes are held: what was pushed and not yet handed out.
    #[must_use]
    pub fn held(&self) -> usize {
        self.buffer.len() - self.at
            + self.first.as_ref().map_or(0, ExactSizeIterator::len)
            + self.joined.len()
    }

    /// Whether the stream begins with what may be a byte order mark was decided, and a mark skipped.
    fn skip_mark(&mut self) -> bool {
        if self.buffer.starts_with(BOM) {
            self.advance(BOM.len());
        } else if BOM.starts_with(&self.buffer) {
            return false;
        }
        self.state = State::Lines;
        true
    }

    fn advance(&mut self, bytes: usize) {
        self.at += bytes;
        self.spent += bytes;
        self.scanned = self.at;
    }

    /// Whether the event has too many bytes if it goes as far as `end`.
    fn is_too_long(&self, end: usize) -> bool {
        self.spent + (end - self.at) > self.limit
    }

    fn fail(&mut self) -> Option<Result<Event<'_>, SseError>> {
        self.state = State::Broken;
        self.buffer = Vec::new();
        self.joined = String::new();
        self.first = None;
        self.at = 0;
        self.scanned = 0;
        Some(Err(SseError::TooLong(self.limit)))
    }

    fn line(&mut self, line: Range<usize>) {
        let bytes = &self.buffer[line.clone()];
        let (field, value) = match bytes.strip_prefix(b"data:") {
            Some(_) => (&bytes[..4], line.start + 5),
            None => match memchr(b':', bytes) {
                Some(colon) => (&bytes[..colon], line.start + colon + 1),
                None => (bytes, line.end),
            },
        };
        let blank = usize::from(self.buffer.get(value) == Some(&b' ') && value < line.end);
        let value = value + blank..line.end;
        match field {
            b"data" => self.data_line(value),
            b"event" => {
                self.name.clear();
                self.name.push_str(&String::from_utf8_lossy(&self.buffer[value]));
            }
            b"id" if !self.buffer[value.clone()].contains(&0) => {
                self.id.clear();
                self.id.push_str(&String::from_utf8_lossy(&self.buffer[value]));
            }
            // Comments have an empty name; `retry` is for clients that ask again on their own.
            _ => {}
        }
    }

    fn data_line(&mut self, value: Range<usize>) {
        if self.has_joined {
            self.joined.push('\n');
        } else if let Some(first) = self.first.take() {
            self.joined.clear();
            self.joined.push_str(&String::from_utf8_lossy(&self.buffer[first]));
            self.joined.push('\n');
            self.has_joined = true;
        } else {
            self.first = Some(value);
            return;
        }
        self.joined.push_str(&String::from_utf8_lossy(&self.buffer[value]));
    }

    /// Where the data of the event is that just ended: in the buffer, or (`None` inside) joined.
    fn take_data(&mut self) -> Option<Option<Range<usize>>> {
        match self.first.take() {
            Some(first) => Some(Some(first)),
            None if self.has_joined => {
                self.has_joined = false;
                Some(None)
            }
            None => None,
        }
    }

    fn lend(&mut self, data: Option<Range<usize>>) -> Event<'_> {
        self.stale_name = true;
        let Self { buffer, joined, name, id, .. } = self;
        let data = match data.map(|range| &buffer[range]) {
            None => joined,
            Some(bytes) => match std::str::from_utf8(bytes) {
                Ok(text) => text,
                Err(_) => {
                    joined.clear();
                    joined.push_str(&String::from_utf8_lossy(bytes));
                    joined
                }
            },
        };
        Event { name, data, id }
    }

    fn forget_name(&mut self) {
        if std::mem::take(&mut self.stale_name) {
            self.name.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    type Seen = Vec<Result<(String, String, String), SseError>>;

    fn parse(pieces: &[&[u8]], limit: usize) -> Seen {
        let mut parser = Parser::new(EventLimit(limit));
        let mut seen = Vec::new();
        let own = |event: Result<Event<'_>, SseError>| {
            event.map(|event| (event.name.to_owned(), event.data.to_owned(), event.id.to_owned()))
        };
        for piece in pieces {
            parser.push(piece);
            while let Some(event) = parser.next() {
                seen.push(own(event));
            }
        }
        seen.extend(parser.finish().map(own));
        seen
    }

    fn data(stream: &str) -> Vec<String> {
        parse(&[stream.as_bytes()], 1000).into_iter().map(|event| event.unwrap().1).collect()
    }

    #[test]
    fn an_event_is_its_data_lines_joined() {
        assert_eq!(data("data: a\n\n"), ["a"]);
        assert_eq!(data("data:a\n\ndata:  b\n\n"), ["a", " b"]);
        assert_eq!(data("data: a\ndata: b\ndata\ndata:c\n\n"), ["a\nb\n\nc"]);
        assert_eq!(data("data\n\n"), [""]);
        assert_eq!(data("datax: a\n\n data: b\n\n"), [""; 0]);
    }

    #[test]
    fn lines_end_with_lf_cr_or_both() {
        for end in ["\n", "\r", "\r\n"] {
            assert_eq!(data(&"data: a|data: b||data: c||".replace('|', end)), ["a\nb", "c"]);
        }
        assert_eq!(data("data: a\r\n\r\rdata: b\n\r\n"), ["a", "b"]);
    }

    #[test]
    fn comments_blank_events_and_unknown_fields_are_nothing() {
        assert_eq!(data(": hello\n\n:\n\n\n\nretry: 5\nnonsense\n\ndata: a\n: in between\n\n"), ["a"]);
    }

    #[test]
    fn names_belong_to_their_event_and_ids_stay() {
        let seen = parse(&[b"event: one\nid: 7\ndata: a\n\nevent: lost\n\ndata: b\n\nid\ndata: c\n\n"], 1000);
        let event = |name: &str, data: &str, id: &str| Ok((name.to_owned(), data.to_owned(), id.to_owned()));
        assert_eq!(seen, [event("one", "a", "7"), event("", "b", "7"), event("", "c", "")]);
    }

    #[test]
    fn a_byte_order_mark_is_skipped_once_and_only_at_the_beginning() {
        assert_eq!(data("\u{feff}data: a\n\n"), ["a"]);
        assert_eq!(data("\u{feff}\u{feff}data: a\n\n"), [""; 0]);
        assert_eq!(data("data: \u{feff}\n\n"), ["\u{feff}"]);
    }

    #[test]
    fn bytes_that_are_no_utf_8_are_replaced() {
        let seen = parse(&[b"data: a\xffb\n\ndata: c\n\n"], 1000);
        let texts: Vec<String> = seen.into_iter().map(|event| event.unwrap().1).collect();
        assert_eq!(texts, ["a\u{fffd}b", "c"]);
    }

    #[test]
    fn the_end_of_the_stream_ends_the_last_event() {
        assert_eq!(data("data: a\n\ndata: b"), ["a", "b"]);
        assert_eq!(data("data: a\n"), ["a"]);
        assert_eq!(data("event: x\n"), [""; 0]);
    }

    #[test]
    fn an_event_may_be_as_large_as_the_limit_and_not_a_byte_larger() {
        // `data: ` and its line end count.
        let event = |size: usize| format!("data: {}\n\ndata: next\n\n", "x".repeat(size));
        let fits = parse(&[event(93).as_bytes()], 100);
        assert_eq!(fits.len(), 2, "{fits:?}");
        assert_eq!(parse(&[event(94).as_bytes()], 100), [Err(SseError::TooLong(100))]);
        let endless = [b"data: ".as_slice(), &[b'x'; 95]].concat();
        assert_eq!(parse(&[&endless], 100), [Err(SseError::TooLong(100))]);
        let comments = ":\n".repeat(51);
        assert_eq!(parse(&[comments.as_bytes()], 100), [Err(SseError::TooLong(100))]);
    }

    #[test]
    fn nothing_is_held_after_an_event_that_is_too_large() {
        let mut parser = Parser::new(EventLimit(100));
        parser.push(&[b'x'; 1000]);
        assert_eq!(parser.next(), Some(Err(SseError::TooLong(100))));
        parser.push(&[b'x'; 1000]);
        assert_eq!(parser.next(), None);
        assert_eq!(parser.held(), 0);
    }

    const STREAMS: [&str; 5] = [
        "\u{feff}event: a\r\ndata: é日😀\r\n\r\n: c\r\rdata: 1\rdata: 2\n\n",
        "data: {\"x\":\"\u{10348}\"}\n\ndata: [DONE]\n\n",
        "id: 1\nevent: e\n\n\r\ndata:\ndata:\n\nevent: f\ndata: x\n\n",
        "data: tail without end",
        "\r\n\r\ndata: a\r\n\r\n\r\ndata: b\r\n",
    ];

    #[test]
    fn however_a_stream_is_cut_in_two_the_events_are_the_same() {
        for stream in STREAMS {
            let whole = parse(&[stream.as_bytes()], 1000);
            for at in 0..=stream.len() {
                let (one, other) = stream.as_bytes().split_at(at);
                assert_eq!(parse(&[one, other], 1000), whole, "{stream:?} at {at}");
            }
            let bytes: Vec<&[u8]> = stream.as_bytes().chunks(1).collect();
            assert_eq!(parse(&bytes, 1000), whole, "{stream:?} byte by byte");
        }
    }

    proptest! {
        #[test]
        fn however_anything_is_cut_the_events_are_the_same(
            words in proptest::collection::vec(
                proptest::sample::select(&["data:", " ", "\n", "\r", "\r\n", "event: e", "id:", ":", "x", "é", "\u{feff}", "\n\n"][..]), 0..40),
            sizes in proptest::collection::vec(1..7_usize, 1..20),
        ) {
            let stream = words.concat().into_bytes();
            let whole = parse(&[&stream], 60);
            let mut pieces = Vec::new();
            let mut rest = stream.as_slice();
            for size in sizes.iter().cycle() {
                if rest.is_empty() {
                    break;
                }
                let (piece, after) = rest.split_at((*size).min(rest.len()));
                pieces.push(piece);
                rest = after;
            }
            prop_assert_eq!(parse(&pieces, 60), whole);
        }
    }
}
