//! Strings of JSON: where their plain parts end, what their escapes mean, and how they are written.

/// The first byte from `at` on that ends the plain part of a string: a quote, a backslash, a control character, or the end.
#[inline]
pub(super) fn plain_end(bytes: &[u8], mut at: usize) -> usize {
    const ONES: u64 = u64::MAX / 255;
    const HIGHS: u64 = ONES << 7;
    let zero = |word: u64| word.wrapping_sub(ONES) & !word;
    while let Some(chunk) = bytes.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
        let word = u64::from_le_bytes(*chunk);
        let quote = zero(word ^ (ONES * b'"' as u64));
        let backslash = zero(word ^ (ONES * b'\\' as u64));
        let control = word.wrapping_sub(ONES * 0x20) & !word;
        // A borrow can only reach bytes after the first that is found, so the first is right.
        let found = (quote | backslash | control) & HIGHS;
        if found != 0 {
            return at + (found.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    while bytes.get(at).is_some_and(|byte| !matches!(byte, b'"' | b'\\' | 0..0x20)) {
        at += 1;
    }
    at
}

/// The number of hexadecimal digits; none if there is another character.
pub(super) fn hex(digits: &[u8]) -> Option<u32> {
    digits.iter().try_fold(0, |unit, digit| Some(unit << 4 | char::from(*digit).to_digit(16)?))
}

/// The characters of a string's inside that was checked before.
#[cold]
#[inline(never)]
pub(super) fn unescape(inner: &str) -> String {
    let mut out = String::with_capacity(inner.len());
    let mut rest = inner;
    while let Some(at) = memchr::memchr(b'\\', rest.as_bytes()) {
        out.push_str(&rest[..at]);
        let unit = |from: usize| rest.as_bytes().get(from + 2..from + 6).and_then(hex).unwrap_or(0xFFFD);
        let (character, length) = match rest.as_bytes().get(at + 1) {
            Some(b'b') => ('\u{8}', 2),
            Some(b'f') => ('\u{C}', 2),
            Some(b'n') => ('\n', 2),
            Some(b'r') => ('\r', 2),
            Some(b't') => ('\t', 2),
            Some(b'u') => match unit(at) {
                high @ 0xD800..=0xDBFF => {
                    let code =
                        0x10000 + ((high - 0xD800) << 10) + (unit(at + 6).wrapping_sub(0xDC00) & 0x3FF);
                    (char::from_u32(code).unwrap_or('\u{FFFD}'), 12)
                }
                unit => (char::from_u32(unit).unwrap_or('\u{FFFD}'), 6),
            },
            Some(other) => (char::from(*other), 2),
            None => break,
        };
        out.push(character);
        rest = rest.get(at + length..).unwrap_or_default();
    }
    out.push_str(rest);
    out
}

/// Writes `text` as a JSON string, with the fewest escapes: quote, backslash and control characters.
pub(crate) fn write_string(out: &mut Vec<u8>, text: &str) {
    let bytes = text.as_bytes();
    out.push(b'"');
    let mut start = 0;
    loop {
        let end = plain_end(bytes, start);
        out.extend_from_slice(&bytes[start..end]);
        let Some(byte) = bytes.get(end) else { break };
        match byte {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\t' => out.extend_from_slice(b"\\t"),
            b'\r' => out.extend_from_slice(b"\\r"),
            0x8 => out.extend_from_slice(b"\\b"),
            0xC => out.extend_from_slice(b"\\f"),
            control => {
                const HEX: &[u8; 16] = b"0123456789abcdef";
                let (high, low) = (usize::from(control >> 4), usize::from(control & 15));
                out.extend_from_slice(&[b'\\', b'u', b'0', b'0', HEX[high], HEX[low]]);
            }
        }
        start = end + 1;
    }
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_in_a_word_of_eight_bytes_is_looked_at() {
        for length in 0..40 {
            for at in 0..length {
                for odd in ['"', '\\', '\u{1f}', '\n', '\u{0}'] {
                    let mut text: Vec<char> = vec!['\u{20}'; length];
                    text[at] = odd;
                    let text: String = text.into_iter().collect();
                    assert_eq!(plain_end(text.as_bytes(), 0), at, "{text:?}");
                    let mut out = Vec::new();
                    write_string(&mut out, &text);
                    assert_eq!(String::from_utf8(out).unwrap(), serde_json::to_string(&text).unwrap());
                }
            }
            let plain = "é".repeat(length);
            assert_eq!(plain_end(plain.as_bytes(), 0), plain.len());
        }
    }
}
