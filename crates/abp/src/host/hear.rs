//! One line of a child: a message, noise, or something that no option forgives.

use outrigger_wire::line::{
    Blank, Bom, CarriageReturn, Defect, Defective, Ending, Fault, Head, Item, LastLine, LineError, LineLimit,
    LinePolicy, LineReadError, Overlong, TooLong,
};

use crate::protocol::{Envelope, EnvelopeError, read};

/// What a line is.
pub(super) enum Heard<'a> {
    /// A message, and its text.
    Message(Envelope<'a>, &'a str),
    /// No message at all; an option may forgive it.
    Noise { why: String, head: Head },
    /// A message that is not as it must be, or a line that nobody can read.
    Broken { why: String, head: Head },
    /// The child ended in the middle of it.
    Torn { head: Head },
}

/// The dialect's policy, with the limit of the terms, and with defects reported so that they can be shown or forgiven.
pub(super) fn policy(max_line_bytes: usize) -> LinePolicy {
    LinePolicy {
        limit: LineLimit::before_newline(max_line_bytes),
        overlong: Overlong::Fatal,
        utf8: Fault::Report,
        nul: Fault::Pass,
        bom: Bom::Report,
        carriage_return: CarriageReturn::Strip,
        blank: Blank::Skip,
        last_line: LastLine::Accept,
    }
}

/// What an item of the stream is.
#[inline]
pub(super) fn hear(item: Item<'_>) -> Heard<'_> {
    let line = match item {
        Item::Line(line) => line,
        Item::Defective(defective) => return defect(defective),
        Item::TooLong(TooLong { limit, head, .. }) => return too_long(limit, Head::of(head)),
    };
    // The policy checks every line, so that this is no second look.
    let Ok(text) = line.text() else {
        return Heard::Noise { why: "it is not UTF-8".to_owned(), head: Head::of(line.bytes()) };
    };
    match read(text) {
        Ok(message) => Heard::Message(message, text),
        Err(_) if line.ending() == Ending::StreamEnd => Heard::Torn { head: Head::of(text.as_bytes()) },
        Err(error) => wrong(&error, text),
    }
}

/// Why the stream itself cannot go on; `None` when it has simply ended.
pub(super) fn broken_stream(error: LineReadError) -> Option<(String, Head)> {
    match error {
        // The other end is gone; that it ended is what will be said of it.
        LineReadError::Io(_) => None,
        LineReadError::Line(error) => Some(broken_line(error)),
    }
}

/// Why a line cannot be read.
pub(super) fn broken_line(error: LineError) -> (String, Head) {
    match error {
        LineError::TooLong { limit, head } | LineError::Overrun { limit, head, .. } => {
            (format!("sent a line of more than {limit} bytes"), head)
        }
        LineError::Truncated { held, head } => (format!("ended {held} bytes after its last newline"), head),
        LineError::Defect { defect, head } => (format!("sent a bad line ({defect})"), head),
    }
}

#[cold]
fn wrong<'a>(error: &EnvelopeError, text: &str) -> Heard<'a> {
    let (why, head) = (error.to_string(), Head::of(text.as_bytes()));
    if is_noise(error) { Heard::Noise { why, head } } else { Heard::Broken { why, head } }
}

/// Whether a line is no message at all: not JSON, not an object, or one without a `t`, as logs are.
fn is_noise(error: &EnvelopeError) -> bool {
    match error {
        EnvelopeError::NotJson(_) => true,
        EnvelopeError::Missing { path } | EnvelopeError::Wrong { path, .. } => {
            path == "the message" || path == "t"
        }
        EnvelopeError::TooDeep | EnvelopeError::TooMany { .. } => false,
    }
}

#[cold]
fn defect<'a>(Defective { defect, bytes }: Defective<'_>) -> Heard<'a> {
    let (why, head) = (defect.to_string(), Head::of(bytes));
    match defect {
        Defect::NotUtf8 { .. } | Defect::Nul { .. } => Heard::Noise { why, head },
        Defect::Bom => Heard::Broken { why, head },
    }
}

#[cold]
fn too_long<'a>(limit: usize, head: Head) -> Heard<'a> {
    Heard::Broken { why: format!("it has more than {limit} bytes"), head }
}
