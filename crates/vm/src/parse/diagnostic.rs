//! What a person is told about a source that cannot run.

use crate::ast::Span;

/// One problem and where it is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message} ({line}:{column})")]
pub struct Diagnostic {
    /// Whose rule it breaks.
    pub kind: DiagnosticKind,
    /// What is wrong, in a sentence without position.
    pub message: String,
    /// Which bytes of the source.
    pub span: Span,
    /// Line of the first byte, from 1.
    pub line: u32,
    /// Column of the first byte in UTF-16 code units, from 1.
    pub column: u32,
}

/// Whose rule was broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiagnosticKind {
    /// The language's: a SyntaxError in any engine.
    Parse,
    /// Ours: good JavaScript that this engine refuses to run.
    Validation,
}

impl Diagnostic {
    pub(crate) fn new(kind: DiagnosticKind, message: String, span: Span, source: &str) -> Self {
        let (line, column) = position(source, span.start);
        Self { kind, message, span, line, column }
    }

    /// The message with its source line and a caret below it:
    ///
    /// ```text
    /// 3:9: expected `)`, found `;`
    ///   f(1, 2;
    ///         ^
    /// ```
    #[must_use]
    pub fn render(&self, source: &str) -> String {
        let at = floor_boundary(source, self.span.start as usize);
        let start = source[..at].rfind(is_line_end).map_or(0, |i| i + char_len(source, i));
        let end = source[at..].find(is_line_end).map_or(source.len(), |i| at + i);
        // A minified line of a megabyte helps nobody: show what is around the place.
        let from = source[start..at].char_indices().rev().nth(59).map_or(start, |(i, _)| start + i);
        let to = source[at..end].char_indices().nth(60).map_or(end, |(i, _)| at + i);
        let line: String = source[from..to].chars().map(printable).collect();
        let indent = source[from..at].chars().count();
        let width =
            source[at..floor_boundary(source, self.span.end as usize).clamp(at, to)].chars().count().max(1);
        format!(
            "{}:{}: {}\n  {line}\n  {}{}",
            self.line,
            self.column,
            self.message,
            " ".repeat(indent),
            "^".repeat(width)
        )
    }
}

/// Line and column (both from 1, columns in UTF-16 code units) of a byte.
fn position(source: &str, byte: u32) -> (u32, u32) {
    let before = &source[..floor_boundary(source, byte as usize)];
    let mut line = 1;
    let mut start = 0;
    let mut chars = before.char_indices().peekable();
    while let Some((i, c)) = chars.next() {
        if c == '\r' && matches!(chars.peek(), Some((_, '\n'))) {
            continue;
        }
        if is_line_end(c) {
            line += 1;
            start = i + c.len_utf8();
        }
    }
    let column = before[start..].encode_utf16().count();
    (line, column as u32 + 1)
}

fn is_line_end(c: char) -> bool {
    matches!(c, '\n' | '\r' | '\u{2028}' | '\u{2029}')
}

fn printable(c: char) -> char {
    if c.is_control() { ' ' } else { c }
}

fn char_len(source: &str, at: usize) -> usize {
    source[at..].chars().next().map_or(0, char::len_utf8)
}

fn floor_boundary(source: &str, byte: usize) -> usize {
    let mut at = byte.min(source.len());
    while !source.is_char_boundary(at) {
        at -= 1;
    }
    at
}
