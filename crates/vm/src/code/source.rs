//! The text of a program, shared by everybody who has it, and where its lines are.
//!
//! A traceback asks for positions whenever the guest makes an error. So a position must not cost a walk through the
//! source: lines are found by a table, columns from the nearest mark.

use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

/// Bytes between two marks.
const STRIDE: usize = 1024;

/// A source text.
#[derive(Clone)]
pub struct SourceText(Arc<Inner>);

struct Inner {
    text: Cow<'static, str>,
    lines: OnceLock<Lines>,
}

/// Made when the first position is asked for.
struct Lines {
    /// Where each line begins.
    starts: Vec<u32>,
    /// UTF-16 code units before each mark.
    units: Vec<u32>,
}

impl SourceText {
    /// The line and column (in UTF-16 units) of a byte, both from 1.
    pub fn position(&self, offset: u32) -> (u32, u32) {
        let lines = self.0.lines.get_or_init(|| Lines::of(&self.0.text));
        let line = lines.starts.partition_point(|&start| start <= offset).max(1);
        let start = lines.starts.get(line - 1).copied().unwrap_or(0);
        let column = self.units_before(lines, offset).saturating_sub(self.units_before(lines, start)) + 1;
        (line as u32, column)
    }

    fn units_before(&self, lines: &Lines, offset: u32) -> u32 {
        let text = self.0.text.as_bytes();
        let offset = (offset as usize).min(text.len());
        let mark = offset / STRIDE;
        let before = lines.units.get(mark).copied().unwrap_or(0);
        before + text.get(mark * STRIDE..offset).map_or(0, units_in)
    }
}

impl Lines {
    fn of(text: &str) -> Lines {
        let breaks = text.bytes().enumerate().filter(|&(_, byte)| byte == b'\n');
        let starts = std::iter::once(0).chain(breaks.map(|(at, _)| at as u32 + 1)).collect();
        let mut units = vec![0];
        for block in text.as_bytes().chunks(STRIDE) {
            units.push(units.last().copied().unwrap_or(0) + units_in(block));
        }
        Lines { starts, units }
    }
}

/// UTF-16 units of the characters that begin here: one each, two for those of four bytes.
fn units_in(bytes: &[u8]) -> u32 {
    bytes.iter().map(|&byte| u32::from(byte & 0xC0 != 0x80) + u32::from(byte >= 0xF0)).sum()
}

impl Deref for SourceText {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0.text
    }
}

impl From<Cow<'static, str>> for SourceText {
    fn from(text: Cow<'static, str>) -> SourceText {
        SourceText(Arc::new(Inner { text, lines: OnceLock::new() }))
    }
}

impl From<&str> for SourceText {
    fn from(text: &str) -> SourceText {
        SourceText::from(Cow::Owned(text.to_owned()))
    }
}

impl From<String> for SourceText {
    fn from(text: String) -> SourceText {
        SourceText::from(Cow::Owned(text))
    }
}

impl fmt::Debug for SourceText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SourceText({} bytes)", self.0.text.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_those_that_counting_gives() {
        let text = "ab\n\n😀é x\n".repeat(300) + &"long 😀 line ".repeat(500);
        let source = SourceText::from(text.as_str());
        for (offset, _) in text.char_indices() {
            let before = &text[..offset];
            let start = before.rfind('\n').map_or(0, |i| i + 1);
            let line = before.matches('\n').count() as u32 + 1;
            let column = before[start..].encode_utf16().count() as u32 + 1;
            assert_eq!(source.position(offset as u32), (line, column), "at {offset}");
        }
        assert_eq!(SourceText::from("").position(5), (1, 1));
    }
}
