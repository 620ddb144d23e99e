//! Text to number: `StringToNumber`, `parseInt`, `parseFloat` and the values of numeric literals.

use super::super::{Str, unicode};
use super::print::Radix;

/// The work of reading a number from `len` code units. Digits past the 800th or so no longer count but are seen.
pub fn cost(len: usize) -> u64 {
    1 + len as u64
}

/// `StringToNumber`: the whole text, white space around it allowed; NaN when it is no number.
///
/// ```
/// use outrigger_vm::text::{Str, number::read};
/// assert_eq!(read::string_to_number(Str::Latin1(b" 0x1F \n")), 31.0);
/// assert!(read::string_to_number(Str::Latin1(b"1_000")).is_nan());
/// ```
pub fn string_to_number(text: Str<'_>) -> f64 {
    let text = unicode::trim(text);
    if text.is_empty() {
        return 0.0;
    }
    if text.get(0) == Some(u16::from(b'0')) && text.len() > 2 {
        let radix = match text.get(1).and_then(ascii) {
            Some(b'x' | b'X') => Radix::new(16),
            Some(b'o' | b'O') => Radix::new(8),
            Some(b'b' | b'B') => Radix::new(2),
            _ => None,
        };
        if let Some(radix) = radix {
            let digits = text.slice(2, text.len());
            return if digits_len(digits, radix) == digits.len() { integer(digits, radix) } else { f64::NAN };
        }
    }
    match decimal_prefix(text) {
        Some((value, len)) if len == text.len() => value,
        Some(_) | None => f64::NAN,
    }
}

/// `parseFloat` of a string: the longest decimal prefix.
pub fn parse_float(text: Str<'_>) -> f64 {
    decimal_prefix(unicode::trim_start(text)).map_or(f64::NAN, |(value, _)| value)
}

/// `parseInt` of a string; `radix` is the result of `ToInt32`.
pub fn parse_int(text: Str<'_>, radix: i32) -> f64 {
    let text = unicode::trim_start(text);
    let (negative, text) = match text.get(0).and_then(ascii) {
        Some(b'-') => (true, text.slice(1, text.len())),
        Some(b'+') => (false, text.slice(1, text.len())),
        Some(_) | None => (false, text),
    };
    let has_prefix =
        text.get(0) == Some(u16::from(b'0')) && matches!(text.get(1).and_then(ascii), Some(b'x' | b'X'));
    let (radix, text) = match radix {
        0 | 16 if has_prefix => (Radix::new(16), text.slice(2, text.len())),
        0 => (Some(Radix::TEN), text),
        _ => (u32::try_from(radix).ok().and_then(Radix::new), text),
    };
    let Some(radix) = radix else { return f64::NAN };
    let len = digits_len(text, radix);
    if len == 0 {
        return f64::NAN;
    }
    let value = integer(text.slice(0, len), radix);
    if negative { -value } else { value }
}

/// The value of a numeric literal that the lexer has accepted, without a BigInt suffix; separators may be in it.
///
/// ```
/// assert_eq!(outrigger_vm::text::number::read::literal("0b1010_0001"), 161.0);
/// ```
pub fn literal(source: &str) -> f64 {
    if source.as_bytes().contains(&b'_') {
        let plain: Vec<u8> = source.bytes().filter(|&byte| byte != b'_').collect();
        return string_to_number(Str::Latin1(&plain));
    }
    string_to_number(Str::Latin1(source.as_bytes()))
}

/// The longest prefix that is a StrDecimalLiteral: its value and its length.
fn decimal_prefix(text: Str<'_>) -> Option<(f64, usize)> {
    let at = |index: usize| text.get(index).and_then(ascii).unwrap_or(0);
    let mut end = usize::from(matches!(at(0), b'+' | b'-'));
    let negative = at(0) == b'-';
    let infinity = b"Infinity";
    if at(end) == b'I' && (0..infinity.len()).all(|index| at(end + index) == infinity[index]) {
        let value = if negative { f64::NEG_INFINITY } else { f64::INFINITY };
        return Some((value, end + infinity.len()));
    }
    let digits = |from: usize| (from..).take_while(|&index| at(index).is_ascii_digit()).count();
    let whole = digits(end);
    end += whole;
    let mut fraction = 0;
    if at(end) == b'.' {
        fraction = digits(end + 1);
        if whole + fraction > 0 {
            end += 1 + fraction;
        }
    }
    if whole + fraction == 0 {
        return None;
    }
    if matches!(at(end), b'e' | b'E') {
        let sign = usize::from(matches!(at(end + 1), b'+' | b'-'));
        let exponent = digits(end + 1 + sign);
        if exponent > 0 {
            end += 1 + sign + exponent;
        }
    }
    Some((decimal(text.slice(0, end)), end))
}

/// Hands an already checked decimal to Rust, whose reader is exact for any length.
fn decimal(text: Str<'_>) -> f64 {
    let mut small = [0u8; 64];
    let mut large = Vec::new();
    let bytes: &[u8] = match text {
        Str::Latin1(bytes) => bytes,
        Str::Wide(units) => {
            let room: &mut [u8] = match small.get_mut(..units.len()) {
                Some(room) => room,
                None => {
                    large.resize(units.len(), 0);
                    &mut large
                }
            };
            for (byte, &unit) in room.iter_mut().zip(units) {
                // The caller has seen only ASCII.
                *byte = unit as u8;
            }
            room
        }
    };
    std::str::from_utf8(bytes).ok().and_then(|text| text.parse().ok()).unwrap_or(f64::NAN)
}

fn ascii(unit: u16) -> Option<u8> {
    u8::try_from(unit).ok().filter(u8::is_ascii)
}

pub(crate) fn digit(unit: u16, radix: Radix) -> Option<u32> {
    char::from(ascii(unit)?).to_digit(radix.get())
}

/// How many units at the start of `text` are digits of `radix`.
fn digits_len(text: Str<'_>, radix: Radix) -> usize {
    text.units().take_while(|&unit| digit(unit, radix).is_some()).count()
}

/// The value of digits that have been checked, correctly rounded where the standard demands it.
fn integer(digits: Str<'_>, radix: Radix) -> f64 {
    let base = radix.get();
    if base == 10 {
        return decimal(digits);
    }
    if base.is_power_of_two() {
        return power_of_two(digits, radix);
    }
    // As V8: parts that fit 32 bits, so that short numbers are exact and long ones are close.
    let (mut value, mut part, mut multiplier) = (0.0f64, 0u32, 1u32);
    for unit in digits.units() {
        if multiplier * base > u32::MAX / 36 {
            value = value * f64::from(multiplier) + f64::from(part);
            (part, multiplier) = (0, 1);
        }
        part = part * base + digit(unit, radix).unwrap_or(0);
        multiplier *= base;
    }
    value * f64::from(multiplier) + f64::from(part)
}

/// Exact bits, rounded once: half to even.
fn power_of_two(digits: Str<'_>, radix: Radix) -> f64 {
    let width = radix.get().trailing_zeros();
    let (mut mantissa, mut dropped, mut sticky) = (0u64, 0u32, 0u64);
    for unit in digits.units() {
        let digit = u64::from(digit(unit, radix).unwrap_or(0));
        if mantissa >> (64 - width) == 0 {
            mantissa = (mantissa << width) | digit;
        } else {
            // The exponent saturates far above what a double can hold.
            dropped = dropped.saturating_add(width);
            sticky |= digit;
        }
    }
    // At least 59 bits are kept, so the sticky bit is below the rounding bit.
    let value = (mantissa | u64::from(sticky != 0)) as f64;
    value * 2f64.powi(dropped.min(2000) as i32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(text: &str) -> f64 {
        let units: Vec<u16> = text.encode_utf16().collect();
        let wide = string_to_number(Str::Wide(&units));
        if text.is_ascii() {
            let narrow = string_to_number(Str::Latin1(text.as_bytes()));
            assert_eq!(narrow.to_bits(), wide.to_bits(), "both widths of {text:?}");
        }
        wide
    }

    #[test]
    fn a_number_is_read_whole_or_not_at_all() {
        let cases = [
            ("", 0.0),
            ("\u{feff}\u{2028} 12 \u{a0}", 12.0),
            (".5", 0.5),
            ("5.", 5.0),
            ("-Infinity", f64::NEG_INFINITY),
            ("1e1000", f64::INFINITY),
            ("0B11", 3.0),
            ("0o17", 15.0),
            ("1E-7", 1e-7),
            ("0x20000000000001", 9007199254740992.0),
            ("0x20000000000003", 9007199254740996.0),
            ("0x200000000000010000000000000000001", 6.805647338418771e38),
        ];
        for (text, expected) in cases {
            assert_eq!(number(text), expected, "{text:?}");
        }
        assert!(number("-0").is_sign_negative());
        for text in [
            ".",
            "-",
            "e5",
            "1e",
            "0x",
            "-0x1",
            "1n",
            "infinity",
            "1 2",
            "\u{180e}1",
            "0b2",
            "inf",
            "nan",
            "1_0",
            "+-1",
        ] {
            assert!(number(text).is_nan(), "{text:?}");
        }
    }

    #[test]
    fn a_long_hexadecimal_number_overflows_to_infinity() {
        let at_limit = format!("0x{}", "f".repeat(255));
        assert!(number(&at_limit).is_finite());
        assert_eq!(number(&format!("0x{}", "f".repeat(257))), f64::INFINITY);
        assert_eq!(number(&format!("0x1{}", "0".repeat(100_000))), f64::INFINITY);
    }
}
