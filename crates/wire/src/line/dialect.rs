//! The line policies of the five dialects and of log streams, in one table, so that the differences can be compared.

use super::policy::{Blank, Bom, CarriageReturn, Fault, LastLine, LineLimit, LinePolicy, Overlong, Patience};

const MIB: usize = 1024 * 1024;

/// Mustard's JSON lines: every irregularity is fatal, and the limit counts the newline.
///
/// 1 048 576 bytes and a newline pass; so do 1 048 577 bytes that the stream ends without a newline.
pub const MUSTARD: LinePolicy = LinePolicy {
    limit: LineLimit::with_newline(MIB + 1),
    overlong: Overlong::Fatal,
    utf8: Fault::Fatal,
    nul: Fault::Pass,
    bom: Bom::Pass,
    carriage_return: CarriageReturn::Strip,
    blank: Blank::Skip,
    last_line: LastLine::Accept,
};

/// ABP envelopes. The contract has no limit and 50 MB lines work in the wild, so ours is above that and fatal.
pub const ABP: LinePolicy = LinePolicy {
    limit: LineLimit::before_newline(64 * MIB),
    overlong: Overlong::Fatal,
    utf8: Fault::Fatal,
    nul: Fault::Pass,
    bom: Bom::Fatal,
    carriage_return: CarriageReturn::Strip,
    blank: Blank::Skip,
    last_line: LastLine::Accept,
};

/// Steerable's JSON-RPC lines: a bad line is answered with an error and the session goes on.
pub const STEERABLE: LinePolicy = LinePolicy {
    limit: LineLimit::before_newline(16 * MIB),
    overlong: Overlong::Skip(Patience::Endless),
    utf8: Fault::Report,
    nul: Fault::Pass,
    bom: Bom::Report,
    carriage_return: CarriageReturn::Strip,
    blank: Blank::Skip,
    last_line: LastLine::Accept,
};

/// Helmor's JSON lines: each line stands alone, a bad one is reported and skipped. Prompts of 8 MB are normal.
pub const HELMOR: LinePolicy = LinePolicy {
    limit: LineLimit::before_newline(64 * MIB),
    overlong: Overlong::Skip(Patience::Endless),
    utf8: Fault::Report,
    nul: Fault::Pass,
    bom: Bom::Strip,
    carriage_return: CarriageReturn::Strip,
    blank: Blank::Skip,
    last_line: LastLine::Accept,
};

/// SEP's JSON-RPC lines for a peer whose frames may have `max_frame_bytes` before the newline.
///
/// An over-long line is skipped, but one of more than four times the limit is an attack and ends the channel. Blank
/// lines are delivered because they count against the frame rate.
#[must_use]
pub const fn sep(max_frame_bytes: usize) -> LinePolicy {
    LinePolicy {
        limit: LineLimit::before_newline(max_frame_bytes),
        overlong: Overlong::Skip(Patience::Bytes((max_frame_bytes as u64).saturating_mul(4))),
        utf8: Fault::Report,
        nul: Fault::Pass,
        bom: Bom::Report,
        carriage_return: CarriageReturn::Strip,
        blank: Blank::Keep,
        last_line: LastLine::Refuse,
    }
}

/// What a child prints for people: nothing is an error, and a line longer than `max_line_bytes` is cut.
#[must_use]
pub const fn logs(max_line_bytes: usize) -> LinePolicy {
    LinePolicy {
        limit: LineLimit::before_newline(max_line_bytes),
        overlong: Overlong::Cut,
        utf8: Fault::Pass,
        nul: Fault::Pass,
        bom: Bom::Strip,
        carriage_return: CarriageReturn::Strip,
        blank: Blank::Keep,
        last_line: LastLine::Accept,
    }
}
