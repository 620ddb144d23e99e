//! What a line is allowed to be, said with small enums, because every dialect answers these questions differently.

/// How a stream of bytes becomes lines: the limit, and one answer per awkward case.
///
/// There is no default: a caller takes a ready-made policy from [`crate::line::dialect`] or spells out all eight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinePolicy {
    /// How long a line may be, and what is counted.
    pub limit: LineLimit,
    /// What becomes of a line that is longer.
    pub overlong: Overlong,
    /// What becomes of a line that is not UTF-8.
    pub utf8: Fault,
    /// What becomes of a line that contains a NUL byte.
    pub nul: Fault,
    /// What becomes of a byte order mark at the very start of the stream.
    pub bom: Bom,
    /// Whether the carriage return of a CRLF ending belongs to the line.
    pub carriage_return: CarriageReturn,
    /// What becomes of a line that holds only ASCII white space.
    pub blank: Blank,
    /// Whether the stream may end without a newline.
    pub last_line: LastLine,
}

/// The length limit of a line. A carriage return before the newline counts as a byte of the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineLimit {
    pub(super) before_newline: usize,
    pub(super) at_end: usize,
}

impl LineLimit {
    /// At most `bytes` bytes before the newline, or before the end of the stream.
    #[must_use]
    pub const fn before_newline(bytes: usize) -> Self {
        Self { before_newline: bytes, at_end: bytes }
    }

    /// At most `bytes` bytes *including* the newline, so an unterminated last line may have one byte more of content.
    ///
    /// A limit of zero bytes cannot hold a newline and is read as one.
    #[must_use]
    pub const fn with_newline(bytes: usize) -> Self {
        let bytes = if bytes == 0 { 1 } else { bytes };
        Self { before_newline: bytes - 1, at_end: bytes }
    }

    /// The most bytes that a newline-terminated line may have, the newline not counted.
    #[must_use]
    pub const fn payload(self) -> usize {
        self.before_newline
    }
}

/// What becomes of a line that is longer than the limit. Memory stays within the limit in every case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overlong {
    /// The stream ends here with [`super::LineError::TooLong`], as soon as the first byte too many is seen.
    Fatal,
    /// The line is thrown away up to its newline and reported once as [`super::Item::TooLong`].
    Skip(Patience),
    /// The first bytes are delivered as a line that knows it was cut, the rest is counted and thrown away.
    Cut,
}

/// How many bytes of one over-long line are thrown away before the stream is given up as hostile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patience {
    /// However long it takes: throwing away costs time but no memory.
    Endless,
    /// A line with more bytes than this ends the stream with [`super::LineError::Overrun`].
    Bytes(u64),
}

/// What becomes of a line whose content is defective.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It is not looked for; the line is delivered as it came.
    Pass,
    /// The line is reported as [`super::Item::Defective`] and the stream goes on.
    Report,
    /// The stream ends with [`super::LineError::Defect`].
    Fatal,
}

/// What becomes of a byte order mark at the start of the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bom {
    /// It is content like any other.
    Pass,
    /// It is removed.
    Strip,
    /// The first line is reported as [`super::Item::Defective`].
    Report,
    /// The stream ends with [`super::LineError::Defect`].
    Fatal,
}

/// Whether the carriage return of a CRLF ending belongs to the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CarriageReturn {
    /// One carriage return before the newline (or before the end of the stream) is removed.
    Strip,
    /// It is content.
    Keep,
}

/// What becomes of a line that holds only ASCII white space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blank {
    /// It is not delivered.
    Skip,
    /// It is a line like any other.
    Keep,
}

/// Whether a stream may end inside a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LastLine {
    /// What is there is a line, marked [`super::Ending::StreamEnd`].
    Accept,
    /// It is [`super::LineError::Truncated`].
    Refuse,
}
