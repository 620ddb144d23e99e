//! `encodeURI`, `decodeURI` and their component forms; `escape` and `unescape` of Annex B.
//!
//! All are linear (ask [`cost`] first); a result of encoding has at most [`MAX_GROWTH`] units for each of the input.

use thiserror::Error;

use super::{Str, Text};

/// Every code unit becomes at most three bytes, each spelled with three units.
pub const MAX_GROWTH: usize = 9;

/// The work of encoding or decoding `len` code units.
pub fn cost(len: usize) -> u64 {
    1 + 2 * len as u64
}

/// The text cannot be encoded or decoded. V8's message is "URI malformed", whatever is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("URI malformed")]
pub struct UriError {
    /// The code unit where the malformed part starts.
    pub position: usize,
}

/// Which characters stand for themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// A whole URI: reserved characters and `#` are kept.
    Uri,
    /// A part of one: they are not.
    Component,
}

/// `encodeURI` and `encodeURIComponent`.
///
/// ```
/// use outrigger_vm::text::{Text, uri::{Scope, encode}};
/// assert_eq!(encode(Text::of("é/?").as_str(), Scope::Component), Ok(Text::of("%C3%A9%2F%3F")));
/// ```
pub fn encode(text: Str<'_>, scope: Scope) -> Result<Text, UriError> {
    let mut out = Text::with_capacity(text.len() + text.len() / 8);
    let mut at = 0;
    while let Some((point, len)) = text.code_point(at) {
        let char = char::from_u32(point).ok_or(UriError { position: at })?;
        if is_unescaped(char) || (scope == Scope::Uri && is_reserved(char)) {
            out.push(point as u16);
        } else {
            for &byte in char.encode_utf8(&mut [0; 4]).as_bytes() {
                percent(byte, &mut out);
            }
        }
        at += len;
    }
    Ok(out)
}

/// `decodeURI` and `decodeURIComponent`.
pub fn decode(text: Str<'_>, scope: Scope) -> Result<Text, UriError> {
    let mut out = Text::with_capacity(text.len());
    let mut at = 0;
    while let Some(unit) = text.get(at) {
        if unit != u16::from(b'%') {
            out.push(unit);
            at += 1;
            continue;
        }
        let malformed = UriError { position: at };
        let first = escaped_byte(text, at).ok_or(malformed)?;
        let len = match first {
            0..0x80 => 1,
            0xC2..=0xDF => 2,
            0xE0..=0xEF => 3,
            0xF0..=0xF4 => 4,
            _ => return Err(malformed),
        };
        let mut bytes = [first, 0, 0, 0];
        for (index, byte) in bytes.iter_mut().enumerate().take(len).skip(1) {
            *byte = escaped_byte(text, at + 3 * index).ok_or(malformed)?;
        }
        let char =
            std::str::from_utf8(&bytes[..len]).ok().and_then(|text| text.chars().next()).ok_or(malformed)?;
        let end = at + 3 * len;
        if scope == Scope::Uri && is_reserved(char) {
            out.push_text(text.slice(at, end));
        } else {
            out.push_code_point(char.into());
        }
        at = end;
    }
    Ok(out)
}

/// `escape` of Annex B.
pub fn escape(text: Str<'_>) -> Text {
    let mut out = Text::with_capacity(text.len() + text.len() / 8);
    for unit in text.units() {
        match u8::try_from(unit) {
            Ok(byte) if byte.is_ascii_alphanumeric() || b"@*_+-./".contains(&byte) => out.push(unit),
            Ok(byte) => percent(byte, &mut out),
            Err(_) => {
                out.push_str("%u");
                hex((unit >> 8) as u8, &mut out);
                hex(unit as u8, &mut out);
            }
        }
    }
    out
}

/// `unescape` of Annex B: what is no escape stays as it is.
pub fn unescape(text: Str<'_>) -> Text {
    let mut out = Text::with_capacity(text.len());
    let mut at = 0;
    while let Some(unit) = text.get(at) {
        let long = || {
            let is_long = unit == u16::from(b'%') && text.get(at + 1) == Some(u16::from(b'u'));
            let high = is_long.then(|| hex_byte(text, at + 2)).flatten()?;
            Some((u16::from(high) << 8 | u16::from(hex_byte(text, at + 4)?), 6))
        };
        let short = || Some((u16::from(escaped_byte(text, at)?), 3));
        let (unit, len) = long().or_else(short).unwrap_or((unit, 1));
        out.push(unit);
        at += len;
    }
    out
}

fn is_unescaped(char: char) -> bool {
    char.is_ascii_alphanumeric() || matches!(char, '-' | '_' | '.' | '!' | '~' | '*' | '\'' | '(' | ')')
}

fn is_reserved(char: char) -> bool {
    matches!(char, ';' | '/' | '?' | ':' | '@' | '&' | '=' | '+' | '$' | ',' | '#')
}

fn percent(byte: u8, out: &mut Text) {
    out.push(u16::from(b'%'));
    hex(byte, out);
}

fn hex(byte: u8, out: &mut Text) {
    for digit in [byte >> 4, byte & 0xF] {
        out.push(u16::from(b"0123456789ABCDEF"[usize::from(digit)]));
    }
}

/// The byte that `%XX` at `at` stands for.
fn escaped_byte(text: Str<'_>, at: usize) -> Option<u8> {
    if text.get(at) != Some(u16::from(b'%')) {
        return None;
    }
    hex_byte(text, at + 1)
}

fn hex_byte(text: Str<'_>, at: usize) -> Option<u8> {
    let digit = |index: usize| char::from_u32(u32::from(text.get(index)?))?.to_digit(16);
    Some((digit(at)? << 4 | digit(at + 1)?) as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn malformed_text_is_refused_where_it_starts() {
        let decode = |text: &str| decode(Text::of(text).as_str(), Scope::Uri);
        for (text, position) in [
            ("ab%", 2),
            ("a%4", 1),
            ("%zz", 0),
            ("xx%C3x", 2),
            ("%ED%A0%80", 0),
            ("%C0%80", 0),
            ("a%F4%90%80%80", 1),
            ("%80", 0),
        ] {
            assert_eq!(decode(text), Err(UriError { position }), "{text}");
        }
        let encode = |units: &[u16]| encode(Str::Wide(units), Scope::Uri);
        assert_eq!(encode(&[0x61, 0xD800]), Err(UriError { position: 1 }));
        assert_eq!(encode(&[0xD800, 0x61]), Err(UriError { position: 0 }));
        assert_eq!(encode(&[0x61, 0x62, 0xDC00]), Err(UriError { position: 2 }));
    }
}
