//! Lines per second of the splitter, against `memchr` alone (what any splitter must spend) and tokio-util's `LinesCodec`.

use std::hint::black_box;
use std::time::Duration;

use anyhow::{Result, ensure};
use bytes::BytesMut;
use outrigger_wire::line::{Item, Splitter, dialect};
use tokio_util::codec::{Decoder, LinesCodec};

use crate::Filter;
use crate::measure::medians;
use crate::table::{Goal, Nanos, Row};

/// How much is pushed at once: what a pipe holds on Linux, and what our readers ask for.
const CHUNK: usize = 64 * 1024;

/// Half of that, for the hard case: more lines are cut in two and have to be put together.
const SMALL_CHUNK: usize = 32 * 1024;

pub(crate) fn bench(_: &Filter) -> Result<Vec<Row>> {
    let stream = mix(Large { of_a_thousand: 1, bytes: 30_000 });
    // Where the copying of cut lines, which `memchr` alone never does, weighs most.
    let hard = mix(Large { of_a_thousand: 2, bytes: 60_000 });
    let hard_lines = memchr::memchr_iter(b'\n', &hard).count();
    let mut hard_splitter = Splitter::new(dialect::logs(1 << 20));
    let lines = memchr::memchr_iter(b'\n', &stream).count();
    // They live as long as a connection does.
    let mut bytes = Splitter::new(dialect::logs(1 << 20));
    let mut text = Splitter::new(dialect::HELMOR);
    ensure!(count_split(&stream, CHUNK, &mut text)? == lines, "the splitter and memchr disagree");
    ensure!(count_codec(&stream)? == lines, "LinesCodec and memchr disagree");

    let [bytes, text, memchr_alone, memchr_and_utf8, codec, hard_ours, hard_memchr] = medians(
        301,
        [
            &mut || count_split(&stream, CHUNK, &mut bytes).map(keep),
            &mut || count_split(&stream, CHUNK, &mut text).map(keep),
            &mut || count_memchr(&stream, CHUNK).map(keep),
            &mut || count_memchr_and_utf8(&stream).map(keep),
            &mut || count_codec(&stream).map(keep),
            &mut || count_split(&hard, SMALL_CHUNK, &mut hard_splitter).map(keep),
            &mut || count_memchr(&hard, SMALL_CHUNK).map(keep),
        ],
    )?;

    let counted = |lines, name: &str, ours: Duration, baseline, theirs: Duration, goal| Row {
        name: name.into(),
        unit: "line",
        ours: Ok(Nanos::each(ours, lines)),
        baseline,
        theirs: Nanos::each(theirs, lines),
        goal,
    };
    let row = |name: &str, ours, baseline, theirs, goal| counted(lines, name, ours, baseline, theirs, goal);
    Ok(vec![
        row("lines/bytes", bytes, "memchr alone", memchr_alone, Goal::AtMost(1.5)),
        row("lines/text", text, "memchr + from_utf8", memchr_and_utf8, Goal::AtMost(1.5)),
        row("lines/text", text, "tokio-util LinesCodec", codec, Goal::AtMost(1.0)),
        counted(hard_lines, "lines/long-and-cut", hard_ours, "memchr alone", hard_memchr, Goal::Shown),
    ])
}

/// Keeps the optimiser from dropping the work.
fn keep(count: usize) {
    black_box(count);
}

fn count_split(stream: &[u8], chunk: usize, splitter: &mut Splitter) -> Result<usize> {
    let mut count = 0;
    for chunk in stream.chunks(chunk) {
        let mut rest = chunk;
        while !rest.is_empty() {
            let step = splitter.decode(rest)?;
            rest = &rest[step.consumed..];
            if let Some(Item::Line(line)) = step.item {
                black_box(line.bytes());
                count += 1;
            }
        }
    }
    Ok(count)
}

/// The least that can be done: find each newline in chunks of the same size. Lines across chunks are not put together.
fn count_memchr(stream: &[u8], chunk: usize) -> Result<usize> {
    let mut count = 0;
    for chunk in stream.chunks(chunk) {
        let mut rest = chunk;
        while let Some(newline) = memchr::memchr(b'\n', rest) {
            black_box(&rest[..newline]);
            rest = &rest[newline + 1..];
            count += 1;
        }
    }
    Ok(count)
}

fn count_memchr_and_utf8(stream: &[u8]) -> Result<usize> {
    let mut count = 0;
    for chunk in stream.chunks(CHUNK) {
        let mut rest = chunk;
        while let Some(newline) = memchr::memchr(b'\n', rest) {
            black_box(std::str::from_utf8(&rest[..newline])?);
            rest = &rest[newline + 1..];
            count += 1;
        }
    }
    Ok(count)
}

fn count_codec(stream: &[u8]) -> Result<usize> {
    let mut codec = LinesCodec::new_with_max_length(64 << 20);
    let mut buffer = BytesMut::with_capacity(2 * CHUNK);
    let mut count = 0;
    for chunk in stream.chunks(CHUNK) {
        buffer.extend_from_slice(chunk);
        while let Some(line) = codec.decode(&mut buffer)? {
            black_box(line);
            count += 1;
        }
    }
    Ok(count)
}

/// How many lines are large, and how large: from `bytes` to 60 KB more.
#[derive(Clone, Copy)]
struct Large {
    of_a_thousand: u64,
    bytes: u64,
}

/// Two megabytes of what sidecars send: mostly short events, some of a few kilobytes, few large ones. No more, so that a
/// round is over before the scheduler takes the core away.
fn mix(large: Large) -> Vec<u8> {
    let mut stream = Vec::new();
    // A linear congruence, so that every run measures the same bytes.
    let mut state = 1u64;
    while stream.len() < 2 << 20 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let roll = state >> 33;
        let payload = match roll % 1000 {
            0..700 => 20 + roll % 200,
            700..950 => 300 + roll % 1200,
            share if share < 1000 - large.of_a_thousand => 3000 + roll % 6000,
            _ => large.bytes + roll % 60_000,
        };
        stream.extend_from_slice(br#"{"jsonrpc":"2.0","method":"stream.chunk","params":{"delta":""#);
        stream
            .extend(std::iter::repeat_n(b"lorem ipsum dolor sit amet ", payload as usize / 27 + 1).flatten());
        stream.extend_from_slice(b"\"}}\n");
    }
    stream
}
