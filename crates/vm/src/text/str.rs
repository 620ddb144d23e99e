//! Code points of borrowed text, and owned text that is canonical at any time.

use crate::heap::Str;

impl<'a> Str<'a> {
    /// All code points; a surrogate without its partner is a code point of its own.
    pub fn code_points(self) -> CodePoints<'a> {
        CodePoints { text: self, at: 0 }
    }

    /// The code point that starts at `index`, and how many units it takes.
    pub fn code_point(self, index: usize) -> Option<(u32, usize)> {
        let first = u32::from(self.get(index)?);
        if (0xD800..0xDC00).contains(&first)
            && let Some(second) = self.get(index + 1)
            && (0xDC00..0xE000).contains(&second)
        {
            return Some((0x10000 + ((first - 0xD800) << 10) + (u32::from(second) - 0xDC00), 2));
        }
        Some((first, 1))
    }
}

/// Iterator over code points, made by [`Str::code_points`].
#[derive(Clone, Debug)]
pub struct CodePoints<'a> {
    text: Str<'a>,
    at: usize,
}

impl Iterator for CodePoints<'_> {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        let (point, len) = self.text.code_point(self.at)?;
        self.at += len;
        Some(point)
    }
}

/// Owned text that is Latin-1 until the first code unit above 255 arrives, so it is canonical at any time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Text {
    /// Each byte is one code unit.
    Latin1(Vec<u8>),
    /// At least one code unit is above 255.
    Wide(Vec<u16>),
}

impl Text {
    /// Empty, with room for `capacity` Latin-1 units.
    pub fn with_capacity(capacity: usize) -> Text {
        Text::Latin1(Vec::with_capacity(capacity))
    }

    /// The text that a Rust string spells.
    pub fn of(text: &str) -> Text {
        let mut out = Text::with_capacity(text.len());
        out.push_str(text);
        out
    }

    /// Appends one code unit.
    pub fn push(&mut self, unit: u16) {
        match self {
            Text::Latin1(bytes) => match u8::try_from(unit) {
                Ok(byte) => bytes.push(byte),
                Err(_) => self.push_wide(&[unit]),
            },
            Text::Wide(units) => units.push(unit),
        }
    }

    /// Appends units of which at least one is above 255.
    fn push_wide(&mut self, more: &[u16]) {
        match self {
            Text::Latin1(bytes) => {
                let mut wide: Vec<u16> = Vec::with_capacity(bytes.capacity().max(bytes.len() + more.len()));
                wide.extend(bytes.iter().map(|&byte| u16::from(byte)));
                wide.extend_from_slice(more);
                *self = Text::Wide(wide);
            }
            Text::Wide(units) => units.extend_from_slice(more),
        }
    }

    /// Appends one code point, as a surrogate pair when it needs one. Surrogate code points stay alone.
    pub fn push_code_point(&mut self, point: u32) {
        match u16::try_from(point) {
            Ok(unit) => self.push(unit),
            Err(_) => {
                let offset = (point - 0x10000) & 0xF_FFFF;
                self.push(0xD800 + (offset >> 10) as u16);
                self.push(0xDC00 + (offset & 0x3FF) as u16);
            }
        }
    }

    /// Appends a Rust string.
    pub fn push_str(&mut self, text: &str) {
        match self {
            Text::Latin1(bytes) if text.is_ascii() => bytes.extend_from_slice(text.as_bytes()),
            Text::Latin1(_) | Text::Wide(_) => text.encode_utf16().for_each(|unit| self.push(unit)),
        }
    }

    /// Appends borrowed text.
    pub fn push_text(&mut self, text: Str<'_>) {
        match (&mut *self, text) {
            (Text::Latin1(bytes), Str::Latin1(more)) => bytes.extend_from_slice(more),
            (Text::Wide(units), Str::Wide(more)) => units.extend_from_slice(more),
            (Text::Wide(units), Str::Latin1(more)) => units.extend(more.iter().map(|&byte| u16::from(byte))),
            (Text::Latin1(bytes), Str::Wide(more)) if more.iter().all(|&unit| unit < 256) => {
                bytes.extend(more.iter().map(|&unit| unit as u8));
            }
            (Text::Latin1(_), Str::Wide(more)) => self.push_wide(more),
        }
    }

    /// Borrows what there is so far.
    pub fn as_str(&self) -> Str<'_> {
        match self {
            Text::Latin1(bytes) => Str::Latin1(bytes),
            Text::Wide(units) => Str::Wide(units),
        }
    }

    /// How many code units there are so far.
    pub fn len(&self) -> usize {
        self.as_str().len()
    }

    /// Whether nothing was pushed yet.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_stays_latin1_until_a_unit_above_255_arrives() {
        let mut text = Text::of("caf\u{e9}");
        assert!(matches!(text, Text::Latin1(_)));
        text.push_code_point(0x1F600);
        assert_eq!(text.as_str(), Str::Wide(&[0x63, 0x61, 0x66, 0xE9, 0xD83D, 0xDE00]));
    }

    #[test]
    fn a_lone_surrogate_is_a_code_point_of_its_own() {
        let points: Vec<u32> = Str::Wide(&[0xDC00, 0xD83D, 0xDE00, 0xD800]).code_points().collect();
        assert_eq!(points, [0xDC00, 0x1F600, 0xD800]);
    }
}
