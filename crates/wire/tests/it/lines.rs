//! The line splitter as its users meet it: awkward cases, limits, and independence from how the bytes were cut.

use outrigger_wire::line::{
    Blank, Bom, CarriageReturn, Defect, Ending, Fault, Item, LastLine, LineError, LineLimit, LinePolicy,
    Overlong, Patience, Splitter, dialect,
};
use proptest::prelude::*;

/// An item that owns its bytes, so that runs can be compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    Line { bytes: Vec<u8>, ending: Ending, dropped: u64 },
    TooLong { limit: usize, dropped: u64, head: Vec<u8> },
    Defective { defect: Defect, bytes: Vec<u8> },
    Error(LineError),
}

impl From<Item<'_>> for Seen {
    fn from(item: Item<'_>) -> Self {
        match item {
            Item::Line(line) => {
                Seen::Line { bytes: line.bytes().to_vec(), ending: line.ending(), dropped: line.dropped() }
            }
            Item::TooLong(report) => {
                Seen::TooLong { limit: report.limit, dropped: report.dropped, head: report.head.to_vec() }
            }
            Item::Defective(report) => {
                Seen::Defective { defect: report.defect, bytes: report.bytes.to_vec() }
            }
        }
    }
}

/// Decodes chunks until the end or the first error, checking the memory bound at every step.
pub(crate) fn decode_chunks<'a>(policy: LinePolicy, chunks: impl Iterator<Item = &'a [u8]>) -> Vec<Seen> {
    let mut splitter = Splitter::new(policy);
    let mut seen = Vec::new();
    let bound = policy.limit.payload() + 1;
    for mut chunk in chunks {
        while !chunk.is_empty() {
            let step = match splitter.decode(chunk) {
                Ok(step) => step,
                Err(error) => {
                    seen.push(Seen::Error(error.clone()));
                    assert_eq!(splitter.decode(b"again\n"), Err(error), "a dead splitter stays dead");
                    return seen;
                }
            };
            assert!(step.consumed > 0, "every step makes progress");
            chunk = &chunk[step.consumed..];
            seen.extend(step.item.map(Seen::from));
            assert!(splitter.held() <= bound, "{} held", splitter.held());
            assert!(splitter.capacity() <= bound.max(8), "capacity {}", splitter.capacity());
        }
    }
    loop {
        match splitter.finish() {
            Ok(Some(item)) => seen.push(item.into()),
            Ok(None) => return seen,
            Err(error) => {
                seen.push(Seen::Error(error));
                return seen;
            }
        }
    }
}

fn decode(policy: LinePolicy, input: &[u8]) -> Vec<Seen> {
    decode_chunks(policy, std::iter::once(input))
}

/// A short rendering, so that a table of cases can be read: `a|b$` is two lines, the second ended by the stream's end.
fn render(seen: &[Seen]) -> String {
    let mut out = Vec::new();
    for one in seen {
        out.push(match one {
            Seen::Line { bytes, ending, dropped } => {
                let ending = match ending {
                    Ending::Newline => "",
                    Ending::StreamEnd => "$",
                };
                let cut = if *dropped > 0 { format!("+{dropped}") } else { String::new() };
                format!("{}{cut}{ending}", bytes.escape_ascii())
            }
            Seen::TooLong { dropped, head, .. } => format!("<too long {dropped}: {}>", head.escape_ascii()),
            Seen::Defective { defect, .. } => format!("<{defect}>"),
            Seen::Error(error) => format!("!{error}"),
        });
    }
    out.join("|")
}

/// Eight bytes, everything reported, nothing fatal: the base that the cases below vary.
const SMALL: LinePolicy = LinePolicy {
    limit: LineLimit::before_newline(8),
    overlong: Overlong::Skip(Patience::Endless),
    utf8: Fault::Report,
    nul: Fault::Report,
    bom: Bom::Report,
    carriage_return: CarriageReturn::Strip,
    blank: Blank::Skip,
    last_line: LastLine::Accept,
};

#[track_caller]
fn check(policy: LinePolicy, input: &[u8], expect: &str) {
    assert_eq!(render(&decode(policy, input)), expect, "in one push: {}", input.escape_ascii());
    let bytewise = decode_chunks(policy, input.chunks(1));
    assert_eq!(render(&bytewise), expect, "byte by byte: {}", input.escape_ascii());
    for at in 0..=input.len() {
        let (left, right) = input.split_at(at);
        let halves = decode_chunks(policy, [left, right].into_iter());
        assert_eq!(render(&halves), expect, "split at {at}: {}", input.escape_ascii());
    }
}

#[test]
fn lines_come_out_whole_and_in_order() {
    check(SMALL, b"", "");
    check(SMALL, b"a\n", "a");
    check(SMALL, b"a\nbb\nccc\n", "a|bb|ccc");
    check(SMALL, b" a \n", " a ");
}

#[test]
fn a_crlf_ending_is_one_ending_and_other_carriage_returns_are_content() {
    check(SMALL, b"a\r\nb\r\n", "a|b");
    check(SMALL, b"a\r\r\n", "a\\r");
    check(SMALL, b"a\rb\n", "a\\rb");
    check(SMALL, b"a\r", "a$");
    let keep = LinePolicy { carriage_return: CarriageReturn::Keep, ..SMALL };
    check(keep, b"a\r\nb\n", "a\\r|b");
}

#[test]
fn blank_lines_are_skipped_or_kept() {
    check(SMALL, b"\n\r\n \t \na\n\n", "a");
    check(LinePolicy { blank: Blank::Keep, ..SMALL }, b"\n\r\n \na\n", "|| |a");
}

#[test]
fn a_clean_end_differs_from_an_end_inside_a_line() {
    check(SMALL, b"a\nb", "a|b$");
    let refuse = LinePolicy { last_line: LastLine::Refuse, ..SMALL };
    check(refuse, b"a\n", "a");
    check(refuse, b"a\nbc", "a|!stream ended inside a line, 2 bytes after the last newline: \"bc\"");
    check(refuse, b"a\n  ", "a");
    check(
        LinePolicy { blank: Blank::Keep, ..refuse },
        b"a\n  ",
        "a|!stream ended inside a line, 2 bytes after the last newline: \"  \"",
    );
}

#[test]
fn a_byte_order_mark_counts_only_at_the_start_of_the_stream() {
    let bom = |bom| LinePolicy { bom, ..SMALL };
    let input = b"\xEF\xBB\xBFa\n\xEF\xBB\xBFb\n";
    check(bom(Bom::Pass), input, "\\xef\\xbb\\xbfa|\\xef\\xbb\\xbfb");
    check(bom(Bom::Strip), input, "a|\\xef\\xbb\\xbfb");
    check(bom(Bom::Report), input, "<stream begins with a byte order mark>|\\xef\\xbb\\xbfb");
    check(
        bom(Bom::Fatal),
        input,
        "!stream begins with a byte order mark: \"\u{feff}a\"".replace('\u{feff}', "\\u{feff}").as_str(),
    );
    // A mark alone on the first line leaves a blank line.
    check(bom(Bom::Strip), b"\xEF\xBB\xBF\na\n", "a");
    // Half a mark is not a mark.
    check(bom(Bom::Strip), b"\xEF\xBB\n", "<line is not UTF-8 (first bad byte at offset 0)>");
}

#[test]
fn a_line_that_is_not_utf8_is_reported_or_fatal_or_passed() {
    let utf8 = |utf8| LinePolicy { utf8, ..SMALL };
    check(utf8(Fault::Report), b"ok\xFF\nb\n", "<line is not UTF-8 (first bad byte at offset 2)>|b");
    check(
        utf8(Fault::Fatal),
        b"a\nok\xFF\nb\n",
        "a|!line is not UTF-8 (first bad byte at offset 2): \"ok\u{fffd}\"",
    );
    check(utf8(Fault::Pass), b"ok\xFF\nb\n", "ok\\xff|b");
    // A character that is whole only when the pushes are put together.
    check(utf8(Fault::Fatal), "é\n".as_bytes(), "\\xc3\\xa9");
    // The stream ends inside a character.
    check(utf8(Fault::Report), b"a\xC3", "<line is not UTF-8 (first bad byte at offset 1)>");
}

#[test]
fn a_nul_is_reported_or_fatal_or_passed() {
    let nul = |nul| LinePolicy { nul, ..SMALL };
    check(nul(Fault::Report), b"a\0b\nc\n", "<line contains a NUL byte (at offset 1)>|c");
    check(nul(Fault::Fatal), b"a\0b\nc\n", "!line contains a NUL byte (at offset 1): \"a\\0b\"");
    check(nul(Fault::Pass), b"a\0b\nc\n", "a\\x00b|c");
}

#[test]
fn a_line_at_the_limit_passes_and_one_past_it_does_not() {
    let fatal = LinePolicy { overlong: Overlong::Fatal, ..SMALL };
    check(fatal, b"12345678\n", "12345678");
    check(fatal, b"12345678", "12345678$");
    check(fatal, b"1234567\r\n", "1234567");
    check(fatal, b"a\n123456789\nb\n", "a|!line exceeds maximum size of 8 bytes: \"12345678\"…");
    // The carriage return is a byte of the line.
    check(fatal, b"12345678\r\n", "!line exceeds maximum size of 8 bytes: \"12345678\"…");
    check(fatal, b"123456789", "!line exceeds maximum size of 8 bytes: \"12345678\"…");
}

#[test]
fn a_limit_that_counts_the_newline_lets_an_unterminated_last_line_use_its_byte() {
    let fatal = LinePolicy { limit: LineLimit::with_newline(9), overlong: Overlong::Fatal, ..SMALL };
    check(fatal, b"12345678\n", "12345678");
    check(fatal, b"123456789", "123456789$");
    check(fatal, b"123456789\n", "!line exceeds maximum size of 8 bytes: \"12345678\"…");
    check(fatal, b"1234567890", "!line exceeds maximum size of 8 bytes: \"12345678\"…");
    let skip = LinePolicy { overlong: Overlong::Skip(Patience::Endless), ..fatal };
    check(skip, b"123456789\na\n", "<too long 9: 12345678>|a");
}

#[test]
fn an_overlong_line_is_skipped_and_reported_once_with_what_was_dropped() {
    check(SMALL, b"a\n123456789abcdef\nb\n", "a|<too long 15: 12345678>|b");
    check(SMALL, b"123456789\n", "<too long 9: 12345678>");
    check(SMALL, b"123456789abc", "<too long 12: 12345678>");
    check(SMALL, b"123456789\n123456789\n", "<too long 9: 12345678>|<too long 9: 12345678>");
}

#[test]
fn patience_with_an_overlong_line_ends_one_byte_past_its_limit() {
    let policy = LinePolicy { overlong: Overlong::Skip(Patience::Bytes(12)), ..SMALL };
    check(policy, b"123456789abc\nd\n", "<too long 12: 12345678>|d");
    check(
        policy,
        b"123456789abcd\ne\n",
        "!line exceeds maximum size of 8 bytes and did not end within 12 bytes: \"12345678\"…",
    );
}

#[test]
fn a_cut_line_keeps_its_first_bytes_and_knows_how_many_are_gone() {
    let cut = LinePolicy { overlong: Overlong::Cut, ..SMALL };
    check(cut, b"12345678\n", "12345678");
    check(cut, b"123456789abc\nb\n", "12345678+4|b");
    check(cut, b"123456789abc", "12345678+4$");
    // The cut does not leave half a character behind.
    check(cut, "1234567éx\n".as_bytes(), "1234567+2");
    // But bytes that were wrong before the cut are still wrong.
    check(cut, b"1\xFF3456789\n", "<line is not UTF-8 (first bad byte at offset 1)>");
    check(LinePolicy { bom: Bom::Strip, ..cut }, b"\xEF\xBB\xBF456789abc\nb\n", "45678+4|b");
    check(
        LinePolicy { bom: Bom::Report, ..cut },
        b"\xEF\xBB\xBF456789abc\nb\n",
        "<stream begins with a byte order mark>|b",
    );
}

#[test]
fn a_limit_of_nothing_still_makes_progress() {
    let none = LinePolicy { limit: LineLimit::before_newline(0), ..SMALL };
    check(none, b"\na\n\n", "<too long 1: >");
    check(LinePolicy { limit: LineLimit::with_newline(0), ..none }, b"\na\n", "<too long 1: >");
}

#[test]
fn the_limit_can_be_raised_between_lines() {
    let mut splitter = Splitter::new(SMALL);
    let step = splitter.decode(b"123456789\n").unwrap();
    assert!(matches!(step.item, Some(Item::TooLong(_))));
    splitter.set_limit(LineLimit::before_newline(9));
    let step = splitter.decode(b"123456789\n").unwrap();
    assert!(matches!(step.item, Some(Item::Line(line)) if line.bytes() == b"123456789"));
}

#[test]
fn a_whole_line_is_lent_from_the_input_and_not_copied() {
    let input = b"whole\n";
    let mut splitter = Splitter::new(SMALL);
    let Some(Item::Line(line)) = splitter.decode(input).unwrap().item else { panic!("a line") };
    assert_eq!(line.bytes().as_ptr(), input.as_ptr());
    assert_eq!(splitter.capacity(), 0);
}

#[test]
fn memory_for_one_long_line_is_given_back() {
    let mut splitter = Splitter::new(dialect::MUSTARD);
    for _ in 0..15 {
        splitter.decode(&[b'x'; 65_536]).unwrap();
    }
    assert!(splitter.capacity() >= 15 * 65_536);
    assert!(splitter.decode(b"\n").unwrap().item.is_some());
    splitter.decode(b"short\n").unwrap();
    assert!(splitter.capacity() <= 4 * 65_536);
}

#[test]
fn a_gigabyte_without_a_newline_holds_one_limit_at_most() {
    let mut splitter = Splitter::new(dialect::logs(16_384));
    let chunk = vec![b'x'; 1 << 20];
    for _ in 0..1024 {
        assert!(splitter.decode(&chunk).unwrap().item.is_none());
        assert!(splitter.capacity() <= 16_384);
    }
    let Some(Item::Line(line)) = splitter.decode(b"\n").unwrap().item else { panic!("a cut line") };
    assert_eq!((line.bytes().len(), line.dropped()), (16_384, (1 << 30) - 16_384));
}

#[test]
fn the_mustard_limit_is_the_published_one() {
    let line = |length: usize, end: &str| [vec![b'x'; length], end.as_bytes().to_vec()].concat();
    for (input, passes) in [
        (line(1_048_576, "\n"), true),
        (line(1_048_577, "\n"), false),
        (line(1_048_577, ""), true),
        (line(1_048_578, ""), false),
        (line(1_048_575, "\r\n"), true),
        (line(1_048_576, "\r\n"), false),
    ] {
        for chunks in [vec![&input[..]], input.chunks(4096).collect()] {
            let seen = decode_chunks(dialect::MUSTARD, chunks.into_iter());
            let passed = matches!(&seen[..], [Seen::Line { .. }]);
            let refused = matches!(&seen[..], [Seen::Error(LineError::TooLong { .. })]);
            assert!(passed == passes && refused != passes, "{} bytes in all", input.len());
        }
    }
}

#[test]
fn the_sep_channel_survives_four_limits_and_no_more() {
    let mut four = vec![b'x'; 4 * 64];
    four.extend_from_slice(b"\nok\n");
    assert_eq!(render(&decode(dialect::sep(64), &four)), format!("<too long 256: {}>|ok", "x".repeat(64)));
    four.insert(0, b'x');
    assert!(matches!(&decode(dialect::sep(64), &four)[..], [Seen::Error(LineError::Overrun { .. })]));
}

fn any_policy() -> impl Strategy<Value = LinePolicy> {
    let fault = || prop_oneof![Just(Fault::Pass), Just(Fault::Report), Just(Fault::Fatal)];
    (
        (0usize..12, any::<bool>()),
        prop_oneof![
            Just(Overlong::Fatal),
            Just(Overlong::Skip(Patience::Endless)),
            (0u64..30).prop_map(|n| Overlong::Skip(Patience::Bytes(n))),
            Just(Overlong::Cut)
        ],
        (fault(), fault()),
        prop_oneof![Just(Bom::Pass), Just(Bom::Strip), Just(Bom::Report), Just(Bom::Fatal)],
        prop_oneof![Just(CarriageReturn::Strip), Just(CarriageReturn::Keep)],
        prop_oneof![Just(Blank::Skip), Just(Blank::Keep)],
        prop_oneof![Just(LastLine::Accept), Just(LastLine::Refuse)],
    )
        .prop_map(|((limit, counted), overlong, (utf8, nul), bom, carriage_return, blank, last_line)| {
            let limit =
                if counted { LineLimit::with_newline(limit) } else { LineLimit::before_newline(limit) };
            LinePolicy { limit, overlong, utf8, nul, bom, carriage_return, blank, last_line }
        })
}

/// Bytes from the neighbourhood of trouble.
fn any_stream() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        4 => Just(b"\n".to_vec()),
        1 => Just(b"\r\n".to_vec()),
        1 => Just(b"\xEF\xBB\xBF".to_vec()),
        1 => Just("é€𝄞".as_bytes().to_vec()),
        1 => Just(b" ".to_vec()),
        1 => Just(vec![0]),
        1 => Just(vec![0xFF]),
        4 => proptest::collection::vec(b'a'..=b'z', 0..10),
    ];
    proptest::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn results_do_not_depend_on_how_the_stream_was_cut(
        policy in any_policy(),
        stream in any_stream(),
        sizes in proptest::collection::vec(1usize..7, 1..8),
    ) {
        let whole = decode(policy, &stream);
        let mut rest = &stream[..];
        let mut chunks = Vec::new();
        for size in sizes.iter().cycle() {
            if rest.is_empty() { break }
            let (chunk, after) = rest.split_at((*size).min(rest.len()));
            chunks.push(chunk);
            rest = after;
        }
        prop_assert_eq!(&decode_chunks(policy, chunks.into_iter()), &whole);
        prop_assert_eq!(&decode_chunks(policy, stream.chunks(1)), &whole);
    }

    #[test]
    fn the_splitter_agrees_with_the_obvious_program(limit in 0usize..12, stream in any_stream()) {
        let policy = LinePolicy { nul: Fault::Pass, bom: Bom::Pass, limit: LineLimit::before_newline(limit), ..SMALL };
        prop_assert_eq!(decode(policy, &stream), obvious(limit, &stream));
    }
}

/// The same policy written the naive way: everything in memory, split, then judged.
fn obvious(limit: usize, stream: &[u8]) -> Vec<Seen> {
    let mut raw: Vec<&[u8]> = stream.split(|byte| *byte == b'\n').collect();
    let last = raw.pop().unwrap_or_default();
    let endings = raw.into_iter().map(|line| (line, Ending::Newline));
    let unterminated = (!last.is_empty()).then_some((last, Ending::StreamEnd));
    let mut seen = Vec::new();
    for (line, ending) in endings.chain(unterminated) {
        if line.len() > limit {
            let head = line[..limit].to_vec();
            seen.push(Seen::TooLong { limit, dropped: line.len() as u64, head });
            continue;
        }
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        seen.push(match std::str::from_utf8(line) {
            Ok(_) => Seen::Line { bytes: line.to_vec(), ending, dropped: 0 },
            Err(error) => {
                Seen::Defective { defect: Defect::NotUtf8 { at: error.valid_up_to() }, bytes: line.to_vec() }
            }
        });
    }
    seen
}
