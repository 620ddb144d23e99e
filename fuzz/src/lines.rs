//! The line splitter: the same items however the stream is cut, and never more memory than one limit.

use outrigger_wire::line::{
    Blank, Bom, CarriageReturn, Defect, Ending, Fault, Item, LastLine, LineError, LineLimit, LinePolicy,
    Overlong, Patience, Splitter,
};

use crate::{Choices, cut};

/// Splits the input in one piece, in odd pieces and byte by byte, under a policy that the input chooses.
pub fn lines(input: &[u8]) {
    let mut choices = Choices::new(input);
    let policy = policy(&mut choices);
    let seed = choices.byte();
    let stream = choices.rest;
    let whole = split(policy, &[stream]);
    assert_eq!(split(policy, &cut(stream, seed)), whole, "cut in pieces");
    assert_eq!(split(policy, &stream.chunks(1).collect::<Vec<_>>()), whole, "cut in bytes");
    for seen in &whole {
        if let Seen::Line { bytes, ending, dropped } = seen {
            assert!(!bytes.contains(&b'\n'));
            let most = policy.limit.payload() + usize::from(*ending == Ending::StreamEnd);
            assert!(bytes.len() <= most);
            assert!(policy.utf8 == Fault::Pass || std::str::from_utf8(bytes).is_ok());
            assert!(*dropped == 0 || policy.overlong == Overlong::Cut);
        }
    }
}

fn policy(choices: &mut Choices<'_>) -> LinePolicy {
    let size = usize::from(choices.byte() % 40);
    let faults = [Fault::Pass, Fault::Report, Fault::Fatal];
    LinePolicy {
        limit: choices.pick(&[LineLimit::before_newline(size), LineLimit::with_newline(size)]),
        overlong: choices.pick(&[
            Overlong::Fatal,
            Overlong::Cut,
            Overlong::Skip(Patience::Endless),
            Overlong::Skip(Patience::Bytes(4 * size as u64)),
        ]),
        utf8: choices.pick(&faults),
        nul: choices.pick(&faults),
        bom: choices.pick(&[Bom::Pass, Bom::Strip, Bom::Report, Bom::Fatal]),
        carriage_return: choices.pick(&[CarriageReturn::Strip, CarriageReturn::Keep]),
        blank: choices.pick(&[Blank::Skip, Blank::Keep]),
        last_line: choices.pick(&[LastLine::Accept, LastLine::Refuse]),
    }
}

#[derive(Debug, PartialEq)]
enum Seen {
    Line { bytes: Vec<u8>, ending: Ending, dropped: u64 },
    TooLong { dropped: u64, head: Vec<u8> },
    Defective { defect: Defect, bytes: Vec<u8> },
    Error(LineError),
}

impl From<Item<'_>> for Seen {
    fn from(item: Item<'_>) -> Self {
        match item {
            Item::Line(line) => {
                Self::Line { bytes: line.bytes().to_vec(), ending: line.ending(), dropped: line.dropped() }
            }
            Item::TooLong(report) => Self::TooLong { dropped: report.dropped, head: report.head.to_vec() },
            Item::Defective(report) => {
                Self::Defective { defect: report.defect, bytes: report.bytes.to_vec() }
            }
        }
    }
}

fn split(policy: LinePolicy, pieces: &[&[u8]]) -> Vec<Seen> {
    let mut splitter = Splitter::new(policy);
    let mut seen = Vec::new();
    let bound = policy.limit.payload() + 1;
    for piece in pieces {
        let mut rest = *piece;
        while !rest.is_empty() {
            match splitter.decode(rest) {
                Ok(step) => {
                    assert!(step.consumed > 0);
                    rest = &rest[step.consumed..];
                    seen.extend(step.item.map(Seen::from));
                }
                Err(error) => {
                    seen.push(Seen::Error(error));
                    return seen;
                }
            }
            assert!(splitter.held() <= bound && splitter.capacity() <= bound.max(8));
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
