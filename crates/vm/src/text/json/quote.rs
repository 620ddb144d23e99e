//! `QuoteJSONString`: quotation marks, escapes, and lone surrogates spelled out.

use super::super::{Str, Text};

/// Appends `text` as a JSON string.
///
/// ```
/// use outrigger_vm::text::{Str, Text, json};
/// let mut out = Text::with_capacity(16);
/// json::quote(Str::Wide(&[0x61, 0x22, 0xD800]), &mut out);
/// assert_eq!(out, Text::of(r#""a\"\ud800""#));
/// ```
pub fn quote(text: Str<'_>, out: &mut Text) {
    out.push(u16::from(b'"'));
    match text {
        Str::Latin1(bytes) => latin1(bytes, out),
        Str::Wide(units) => wide(units, out),
    }
    out.push(u16::from(b'"'));
}

/// Copies runs between the units that need an escape.
fn latin1(bytes: &[u8], out: &mut Text) {
    let mut start = 0;
    for (at, &byte) in bytes.iter().enumerate() {
        if byte < 0x20 || byte == b'"' || byte == b'\\' {
            out.push_text(Str::Latin1(&bytes[start..at]));
            escape(u16::from(byte), out);
            start = at + 1;
        }
    }
    out.push_text(Str::Latin1(&bytes[start..]));
}

fn wide(units: &[u16], out: &mut Text) {
    let mut start = 0;
    for (at, &unit) in units.iter().enumerate() {
        let plain = match unit {
            0..0x20 | 0x22 | 0x5C => false,
            0xD800..0xDC00 => units.get(at + 1).is_some_and(|next| (0xDC00..0xE000).contains(next)),
            0xDC00..0xE000 => at > 0 && (0xD800..0xDC00).contains(&units[at - 1]),
            _ => true,
        };
        if !plain {
            out.push_text(Str::Wide(&units[start..at]));
            escape(unit, out);
            start = at + 1;
        }
    }
    out.push_text(Str::Wide(&units[start..]));
}

fn escape(unit: u16, out: &mut Text) {
    let short = match unit {
        0x08 => "\\b",
        0x09 => "\\t",
        0x0A => "\\n",
        0x0C => "\\f",
        0x0D => "\\r",
        0x22 => "\\\"",
        0x5C => "\\\\",
        _ => {
            out.push_str("\\u");
            for shift in [12, 8, 4, 0] {
                let digit = ((unit >> shift) & 0xF) as u8;
                out.push(u16::from(super::super::number::print::digit_char(digit)));
            }
            return;
        }
    };
    out.push_str(short);
}
