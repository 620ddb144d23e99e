//! `toLowerCase` and `toUpperCase`: full mappings, final sigma in its context, lone surrogates left alone.

use super::super::{Str, Text};
use super::segments::{Segment, segments};

/// A result has at most this many code units for each one of the input; charge for it before.
pub const MAX_GROWTH: usize = 3;

/// The work of changing the case of a text.
pub fn case_cost(text: Str<'_>) -> u64 {
    match text {
        Str::Latin1(bytes) if bytes.is_ascii() => super::super::linear_cost(bytes.len()),
        // Every capital sigma looks at its neighbours.
        Str::Wide(units) if units.contains(&0x3A3) => 1 + 30 * text.len() as u64,
        // Every code point is looked up.
        Str::Latin1(_) | Str::Wide(_) => 1 + 5 * text.len() as u64,
    }
}

/// `String.prototype.toLowerCase`. Ask [`case_cost`] first.
///
/// ```
/// use outrigger_vm::text::{Text, unicode};
/// assert_eq!(unicode::to_lower_case(Text::of("ΟΔΟΣ").as_str()), Text::of("οδος"));
/// ```
pub fn to_lower_case(text: Str<'_>) -> Text {
    match text {
        Str::Latin1(bytes) => Text::Latin1(bytes.iter().map(|&byte| latin1_lower(byte)).collect()),
        // Only capital sigma depends on its neighbours, and Rust's strings know the rule.
        Str::Wide(units) if units.contains(&0x3A3) => by_segment(text, str::to_lowercase),
        Str::Wide(_) => by_point(
            text,
            |byte| byte.to_ascii_lowercase(),
            |char, out| {
                char.to_lowercase().for_each(|char| out.push_code_point(char.into()));
            },
        ),
    }
}

/// `String.prototype.toUpperCase`.
pub fn to_upper_case(text: Str<'_>) -> Text {
    match text {
        Str::Latin1(bytes) if bytes.is_ascii() => Text::Latin1(bytes.to_ascii_uppercase()),
        Str::Latin1(_) | Str::Wide(_) => by_point(
            text,
            |byte| byte.to_ascii_uppercase(),
            |char, out| {
                char.to_uppercase().for_each(|char| out.push_code_point(char.into()));
            },
        ),
    }
}

fn latin1_lower(byte: u8) -> u8 {
    match byte {
        b'A'..=b'Z' | 0xC0..=0xD6 | 0xD8..=0xDE => byte + 0x20,
        _ => byte,
    }
}

fn by_point(text: Str<'_>, ascii: impl Fn(u8) -> u8, map: impl Fn(char, &mut Text)) -> Text {
    let mut out = Text::with_capacity(text.len());
    for point in text.code_points() {
        match char::from_u32(point) {
            Some(char) if char.is_ascii() => out.push(u16::from(ascii(point as u8))),
            Some(char) => map(char, &mut out),
            None => out.push_code_point(point),
        }
    }
    out
}

fn by_segment(text: Str<'_>, map: impl Fn(&str) -> String) -> Text {
    let mut out = Text::with_capacity(text.len());
    for segment in segments(text) {
        match segment {
            Segment::Text(text) => out.push_str(&map(&text)),
            Segment::LoneSurrogate(unit) => out.push(unit),
        }
    }
    out
}
