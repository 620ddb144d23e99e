//! JSON as text that is looked at, not built: one pass proves that a message is well-formed and finds its members.
//!
//! Headers are small and values may be large, so nothing becomes a tree on the way: a [`Raw`] is the text of one value, which
//! is known to be valid. Depth costs nothing here; what may be nested how deeply is decided by who reads a value.

use std::borrow::Cow;

/// The text of one valid JSON value, without white space around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Raw<'a>(&'a str);

/// Text that is not JSON, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} at byte {at}")]
pub struct Malformed {
    what: &'static str,
    at: usize,
}

/// A string with half a surrogate pair in it: JSON can spell it, text cannot hold it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a string holds half of a surrogate pair")]
pub struct HalfPair;

/// The members of an object in their order.
pub(crate) type Members<'a> = Vec<(Cow<'a, str>, Raw<'a>)>;

impl<'a> Raw<'a> {
    /// The whole of `text` as one value.
    pub(crate) fn document(text: &'a str) -> Result<Raw<'a>, Malformed> {
        let mut cursor = Cursor::new(text);
        let raw = cursor.value()?;
        cursor.space();
        if cursor.at < text.len() { Err(cursor.flaw("something follows the value")) } else { Ok(raw) }
    }

    /// The whole of `text` as an object, in one pass; `Ok(None)` if it is another kind of value.
    pub(crate) fn document_members(text: &'a str) -> Result<Option<Members<'a>>, Malformed> {
        let mut cursor = Cursor::new(text);
        cursor.space();
        if cursor.peek() != Some(b'{') {
            return Raw::document(text).map(|_| None);
        }
        let members = cursor.members()?;
        cursor.space();
        if cursor.at < text.len() {
            Err(cursor.flaw("something follows the value"))
        } else {
            Ok(Some(members))
        }
    }

    /// The text itself.
    pub(crate) fn text(self) -> &'a str {
        self.0
    }

    /// The members if it is an object.
    pub(crate) fn members(self) -> Option<Members<'a>> {
        if self.0.starts_with('{') { Cursor::new(self.0).members().ok() } else { None }
    }

    /// The elements if it is an array.
    pub(crate) fn elements(self) -> Option<Vec<Raw<'a>>> {
        if self.0.starts_with('[') { Cursor::new(self.0).elements().ok() } else { None }
    }

    /// The text of a string; `None` if it is no string.
    pub(crate) fn string(self) -> Option<Result<Cow<'a, str>, HalfPair>> {
        let inside = self.0.strip_prefix('"')?.strip_suffix('"')?;
        Some(unescape(inside))
    }

    /// A whole number from 0 to 2^64−1, spelled as one.
    pub(crate) fn whole(self) -> Option<u64> {
        self.0.bytes().all(|b| b.is_ascii_digit()).then(|| self.0.parse().ok()).flatten()
    }

    /// Any number that a double can come near; not one beyond its range.
    pub(crate) fn number(self) -> Option<f64> {
        number(self.0)
    }

    /// `true` or `false`.
    pub(crate) fn boolean(self) -> Option<bool> {
        match self.0 {
            "true" => Some(true),
            "false" => Some(false),
            _ => None,
        }
    }

    /// Whether it is `null`.
    pub(crate) fn is_null(self) -> bool {
        self.0 == "null"
    }

    /// What kind of value it is, for messages.
    pub(crate) fn kind(self) -> &'static str {
        match self.0.as_bytes().first() {
            Some(b'{') => "an object",
            Some(b'[') => "an array",
            Some(b'"') => "a string",
            Some(b't' | b'f') => "a boolean",
            Some(b'n') => "null",
            _ => "a number",
        }
    }
}

fn number(text: &str) -> Option<f64> {
    let first = text.as_bytes().first()?;
    if !(*first == b'-' || first.is_ascii_digit()) {
        return None;
    }
    text.parse().ok().filter(|n: &f64| n.is_finite())
}

/// A place in JSON text.
pub(crate) struct Cursor<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(text: &'a str) -> Cursor<'a> {
        Cursor { text, at: 0 }
    }

    pub(crate) fn flaw(&self, what: &'static str) -> Malformed {
        Malformed { what, at: self.at }
    }

    #[inline]
    pub(crate) fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    #[inline]
    pub(crate) fn space(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.peek() {
            self.at += 1;
        }
    }

    /// Steps over `byte` and the space before it, if it is there.
    #[inline]
    pub(crate) fn take(&mut self, byte: u8) -> bool {
        self.space();
        let there = self.peek() == Some(byte);
        self.at += usize::from(there);
        there
    }

    /// The string here, its escapes undone.
    pub(crate) fn string(&mut self) -> Result<Result<Cow<'a, str>, HalfPair>, Malformed> {
        self.space();
        let from = self.at;
        if self.peek() != Some(b'"') {
            return Err(self.flaw("a string is expected"));
        }
        self.skip_string()?;
        Ok(unescape(&self.text[from + 1..self.at - 1]))
    }

    /// The number here.
    pub(crate) fn number(&mut self) -> Result<f64, Malformed> {
        self.space();
        let from = self.at;
        self.skip_number()?;
        number(&self.text[from..self.at]).ok_or(Malformed { what: "a number is out of range", at: from })
    }

    /// The value here, whatever it is.
    pub(crate) fn value(&mut self) -> Result<Raw<'a>, Malformed> {
        self.space();
        let from = self.at;
        self.skip()?;
        Ok(Raw(&self.text[from..self.at]))
    }

    fn members(&mut self) -> Result<Members<'a>, Malformed> {
        // Most headers have fewer.
        let mut members = Vec::with_capacity(10);
        self.take(b'{');
        if self.take(b'}') {
            return Ok(members);
        }
        loop {
            self.space();
            let at = self.at;
            let key = self.string()?.map_err(|_| Malformed { what: "a key is not valid text", at })?;
            if !self.take(b':') {
                return Err(self.flaw("`:` is expected"));
            }
            members.push((key, self.value()?));
            if self.take(b'}') {
                return Ok(members);
            }
            if !self.take(b',') {
                return Err(self.flaw("`,` or `}` is expected"));
            }
        }
    }

    fn elements(&mut self) -> Result<Vec<Raw<'a>>, Malformed> {
        let mut elements = Vec::new();
        self.take(b'[');
        if self.take(b']') {
            return Ok(elements);
        }
        loop {
            elements.push(self.value()?);
            if self.take(b']') {
                return Ok(elements);
            }
            if !self.take(b',') {
                return Err(self.flaw("`,` or `]` is expected"));
            }
        }
    }

    /// Steps over one value without recursion: its depth is the sender's choice.
    fn skip(&mut self) -> Result<(), Malformed> {
        let mut nest = Nest { low: 0, depth: 0, full: Vec::new() };
        'value: loop {
            self.space();
            match self.peek() {
                Some(b'"') => self.skip_string()?,
                Some(b'{') => {
                    self.at += 1;
                    if !self.take(b'}') {
                        nest.push(Inside::Object);
                        self.skip_key()?;
                        continue 'value;
                    }
                }
                Some(b'[') => {
                    self.at += 1;
                    if !self.take(b']') {
                        nest.push(Inside::Array);
                        continue 'value;
                    }
                }
                Some(b't') => self.skip_word("true")?,
                Some(b'f') => self.skip_word("false")?,
                Some(b'n') => self.skip_word("null")?,
                Some(b'-' | b'0'..=b'9') => self.skip_number()?,
                Some(_) => return Err(self.flaw("a value is expected")),
                None => return Err(self.flaw("the text ends inside a value")),
            }
            loop {
                match nest.top() {
                    None => return Ok(()),
                    Some(Inside::Object) if self.take(b',') => {
                        self.skip_key()?;
                        continue 'value;
                    }
                    Some(Inside::Array) if self.take(b',') => continue 'value,
                    Some(Inside::Object) if self.take(b'}') => nest.pop(),
                    Some(Inside::Array) if self.take(b']') => nest.pop(),
                    Some(_) => return Err(self.flaw("`,` or the end of a list is expected")),
                }
            }
        }
    }

    fn skip_key(&mut self) -> Result<(), Malformed> {
        self.space();
        if self.peek() != Some(b'"') {
            return Err(self.flaw("a key is expected"));
        }
        self.skip_string()?;
        if self.take(b':') { Ok(()) } else { Err(self.flaw("`:` is expected")) }
    }

    fn skip_string(&mut self) -> Result<(), Malformed> {
        self.at += 1;
        let bytes = self.text.as_bytes();
        loop {
            self.at += plain_bytes(&bytes[self.at..]);
            match bytes.get(self.at) {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(b'\\') => match bytes.get(self.at + 1) {
                    Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => self.at += 2,
                    Some(b'u') => {
                        let digits = bytes.get(self.at + 2..self.at + 6);
                        if !digits.is_some_and(|d| d.iter().all(u8::is_ascii_hexdigit)) {
                            return Err(self.flaw("an escape has no four hex digits"));
                        }
                        self.at += 6;
                    }
                    _ => return Err(self.flaw("an escape is not known")),
                },
                Some(0..0x20) => return Err(self.flaw("a control character is not escaped")),
                Some(_) => self.at += 1,
                None => return Err(self.flaw("the text ends inside a string")),
            }
        }
    }

    fn skip_word(&mut self, word: &'static str) -> Result<(), Malformed> {
        if self.text[self.at..].starts_with(word) {
            self.at += word.len();
            Ok(())
        } else {
            Err(self.flaw("a value is expected"))
        }
    }

    fn skip_number(&mut self) -> Result<(), Malformed> {
        self.at += usize::from(self.peek() == Some(b'-'));
        let zero = self.peek() == Some(b'0');
        let whole = self.skip_digits();
        if whole == 0 || (zero && whole > 1) {
            return Err(self.flaw("a number is not written properly"));
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            if self.skip_digits() == 0 {
                return Err(self.flaw("a number is not written properly"));
            }
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            self.at += usize::from(matches!(self.peek(), Some(b'+' | b'-')));
            if self.skip_digits() == 0 {
                return Err(self.flaw("a number is not written properly"));
            }
        }
        Ok(())
    }

    fn skip_digits(&mut self) -> usize {
        let from = self.at;
        while let Some(b'0'..=b'9') = self.peek() {
            self.at += 1;
        }
        self.at - from
    }
}

/// What a value is nested in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Inside {
    Array,
    Object,
}

/// A stack of one bit a level; the innermost 64 levels are in `low`.
struct Nest {
    low: u64,
    depth: u32,
    full: Vec<u64>,
}

impl Nest {
    fn push(&mut self, inside: Inside) {
        if self.depth == u64::BITS {
            self.full.push(self.low);
            self.depth = 0;
        }
        self.low = self.low << 1 | u64::from(inside == Inside::Object);
        self.depth += 1;
    }

    fn pop(&mut self) {
        self.low >>= 1;
        self.depth -= 1;
        if self.depth == 0
            && let Some(low) = self.full.pop()
        {
            self.low = low;
            self.depth = u64::BITS;
        }
    }

    fn top(&self) -> Option<Inside> {
        match (self.depth, self.low & 1) {
            (0, _) => None,
            (_, 0) => Some(Inside::Array),
            (_, _) => Some(Inside::Object),
        }
    }
}

/// Undoes the escapes of a string whose syntax was checked.
fn unescape(inside: &str) -> Result<Cow<'_, str>, HalfPair> {
    let Some(first) = memchr::memchr(b'\\', inside.as_bytes()) else { return Ok(Cow::Borrowed(inside)) };
    let mut out = String::with_capacity(inside.len());
    out.push_str(&inside[..first]);
    let mut rest = &inside[first..];
    while let Some(escape) = rest.strip_prefix('\\') {
        let (c, after) = match escape.as_bytes().first() {
            Some(b'b') => ('\u{8}', 1),
            Some(b'f') => ('\u{c}', 1),
            Some(b'n') => ('\n', 1),
            Some(b'r') => ('\r', 1),
            Some(b't') => ('\t', 1),
            Some(b'u') => surrogates(escape)?,
            Some(&plain) => (char::from(plain), 1),
            None => return Err(HalfPair),
        };
        out.push(c);
        rest = escape.get(after..).unwrap_or_default();
        let plain = memchr::memchr(b'\\', rest.as_bytes()).unwrap_or(rest.len());
        out.push_str(&rest[..plain]);
        rest = &rest[plain..];
    }
    Ok(Cow::Owned(out))
}

/// `uXXXX` or `uXXXX\uXXXX` as a character, and how long it is.
fn surrogates(escape: &str) -> Result<(char, usize), HalfPair> {
    let unit = |from: usize| escape.get(from..from + 4).and_then(|hex| u32::from_str_radix(hex, 16).ok());
    let first = unit(1).ok_or(HalfPair)?;
    if let Some(c) = char::from_u32(first) {
        return Ok((c, 5));
    }
    let second = unit(7).filter(|_| escape.get(5..7) == Some("\\u")).ok_or(HalfPair)?;
    match (first, second) {
        (0xD800..0xDC00, 0xDC00..0xE000) => {
            let c = 0x1_0000 + ((first - 0xD800) << 10) + (second - 0xDC00);
            char::from_u32(c).map(|c| (c, 11)).ok_or(HalfPair)
        }
        _ => Err(HalfPair),
    }
}

/// How many bytes at the front, in steps of eight, are neither quotes, backslashes nor control characters. Ids and texts
/// are mostly such bytes, and every message is full of them.
pub(super) fn plain_bytes(bytes: &[u8]) -> usize {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    const HIGH: u64 = ONES << 7;
    // Has its high bits somewhere if some byte is less than `n`, which is at most 128.
    let below = |word: u64, n: u64| word.wrapping_sub(ONES * n) & !word & HIGH;
    let (words, _) = bytes.as_chunks::<8>();
    let special = |word: &[u8; 8]| {
        let word = u64::from_ne_bytes(*word);
        let equal = |byte: u8| below(word ^ (ONES * u64::from(byte)), 1);
        below(word, 0x20) | equal(b'"') | equal(b'\\') != 0
    };
    8 * words.iter().position(special).unwrap_or(words.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_well_known_parser_takes_is_taken_and_what_it_refuses_is_refused() {
        let deep = format!("{}1{}", "[".repeat(100), "]".repeat(100));
        for text in [
            "1",
            "-0",
            "0.5",
            "1e5",
            "1E-5",
            "1.25e+3",
            "01",
            "-",
            "1.",
            ".5",
            "1e",
            "+1",
            "--1",
            "0x1",
            "\"\"",
            "\"a\\u0041\"",
            "\"\\x\"",
            "\"\\u12\"",
            "\"\n\"",
            "\"",
            "{}",
            "{",
            "{\"a\"}",
            "{\"a\":}",
            "{\"a\":1,}",
            "{\"a\":1}",
            "{a:1}",
            "[]",
            "[1,]",
            "[,1]",
            "[1 2]",
            "[1, 2]",
            "[1",
            "]",
            "true",
            "tru",
            "nul",
            "null ",
            " null",
            "null x",
            "",
            " ",
            "{\"a\":[{\"b\":[]}]}",
            "{\"a\":[}]",
            "[{]}",
            "{\"a\":1 \"b\":2}",
            "\u{feff}1",
            &deep,
        ] {
            let known = serde_json::from_str::<serde_json::Value>(text).is_ok();
            assert_eq!(Raw::document(text).is_ok(), known, "{text}");
        }
    }

    #[test]
    fn depth_is_no_reason_to_refuse_text() {
        for depth in [63, 64, 65, 128, 129, 100_000] {
            let text = "[{\"a\":".repeat(depth) + "1" + &"}]".repeat(depth);
            assert!(Raw::document(&text).is_ok(), "{depth}");
            assert!(Raw::document(&text[..text.len() - 1]).is_err(), "{depth}");
            assert!(Raw::document(&text.replacen("}]", "]}", 1)).is_err(), "{depth}");
        }
    }

    #[test]
    fn a_whole_number_is_one_that_is_spelled_so() {
        let whole = |text| Raw::document(text).unwrap().whole();
        assert_eq!(whole("18446744073709551615"), Some(u64::MAX));
        for not in ["18446744073709551616", "-1", "1.0", "1e3", "\"1\"", "null"] {
            assert_eq!(whole(not), None, "{not}");
        }
    }
}
