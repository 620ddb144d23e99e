//! Strings inside a JSON text: where they are, and what their escapes stand for.

use super::super::{Str, Text};

/// A code unit in either width.
pub trait Unit: Copy + Into<u32> + 'static {
    /// Borrows units of this width as text.
    fn text(units: &[Self]) -> Str<'_>;
}

impl Unit for u8 {
    fn text(units: &[u8]) -> Str<'_> {
        Str::Latin1(units)
    }
}

impl Unit for u16 {
    fn text(units: &[u16]) -> Str<'_> {
        Str::Wide(units)
    }
}

/// Where a string's content is in the source, without its quotation marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StringToken {
    /// The first unit of the content.
    pub start: usize,
    /// The unit after the content: the closing quotation mark.
    pub end: usize,
    /// Whether the content is what it says, or has escapes to decode.
    pub spelling: Spelling,
}

/// Whether a string must be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spelling {
    /// The content is the string.
    Plain,
    /// There is at least one escape.
    Escaped,
}

/// Whether a unit ends a run of plain units in a string.
pub(super) fn is_special(unit: u32) -> bool {
    unit < 0x20 || unit == 0x22 || unit == 0x5C
}

/// Decodes content that [`Reader`] has accepted.
pub(super) fn decode<U: Unit>(content: &[U]) -> Text {
    let mut out = Text::with_capacity(content.len());
    let mut rest = content;
    while let Some(escape) = rest.iter().position(|&unit| unit.into() == 0x5C) {
        out.push_text(U::text(&rest[..escape]));
        let letter = rest.get(escape + 1).map_or(0, |&unit| unit.into());
        let mut len = 2;
        match char::from_u32(letter) {
            Some('b') => out.push(0x08),
            Some('f') => out.push(0x0C),
            Some('n') => out.push(0x0A),
            Some('r') => out.push(0x0D),
            Some('t') => out.push(0x09),
            Some('u') => {
                len = 6;
                let digits = rest.get(escape + 2..escape + 6).unwrap_or_default();
                let value = digits.iter().fold(0, |value, &unit| {
                    let digit = char::from_u32(unit.into()).and_then(|char| char.to_digit(16)).unwrap_or(0);
                    value << 4 | digit as u16
                });
                out.push(value);
            }
            Some(_) | None => out.push(letter as u16),
        }
        rest = rest.get(escape + len..).unwrap_or_default();
    }
    out.push_text(U::text(rest));
    out
}
