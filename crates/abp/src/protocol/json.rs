//! JSON text taken apart without building anything: pieces of the line are checked once and handed out as they are.
//!
//! The dialects beside this one read with serde. Here an event must cost little more than looking at its bytes, its own text
//! must survive byte for byte, and what was accepted must have a canonical spelling. So the walk over the text is our own;
//! that it accepts exactly what `serde_json` accepts is fuzzed.

use std::borrow::Cow;

use super::text::{hex, plain_end, unescape};

/// How deep the arrays and objects of a line may nest. It is what `serde_json` reads.
pub const MAX_NESTING: usize = 127;

/// Why a text is not JSON that can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JsonFault {
    /// The text ends in the middle of something.
    #[error("it ends too early")]
    Ends,
    /// A character that cannot be there.
    #[error("unexpected character")]
    Unexpected,
    /// Something follows the value.
    #[error("something follows the value")]
    Trailing,
    /// A control character inside a string.
    #[error("a control character in a string")]
    Control,
    /// An escape that does not exist.
    #[error("an escape that does not exist")]
    Escape,
    /// Half of a surrogate pair, which is no character.
    #[error("half of a surrogate pair")]
    Surrogate,
    /// A number beyond what a double can hold.
    #[error("a number out of range")]
    Range,
    /// Nested deeper than [`MAX_NESTING`].
    #[error("nested deeper than {MAX_NESTING}")]
    TooDeep,
}

/// A fault and the byte where it was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{fault} at byte {at}")]
pub struct JsonError {
    /// What is wrong.
    pub fault: JsonFault,
    /// Where.
    pub at: usize,
}

/// What sort of value a piece is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// There is none.
    Absent,
    Null,
    Bool,
    Number,
    String,
    Array,
    Object,
}

impl Kind {
    /// For sentences: "`x` is …".
    pub(crate) fn found(self) -> &'static str {
        match self {
            Self::Absent => "missing",
            Self::Null => "null",
            Self::Bool => "a boolean",
            Self::Number => "a number",
            Self::String => "a string",
            Self::Array => "an array",
            Self::Object => "an object",
        }
    }
}

/// A value inside a text: checked, not decoded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece<'a> {
    pub(crate) kind: Kind,
    /// Whether a string has escapes.
    escaped: bool,
    /// Its text, quotes and brackets included.
    pub(crate) text: &'a str,
}

impl<'a> Piece<'a> {
    pub(crate) const ABSENT: Self = Self { kind: Kind::Absent, escaped: false, text: "" };

    /// The whole of `text` as one value.
    pub(crate) fn read(text: &'a str) -> Result<Self, JsonError> {
        let mut cursor = Cursor::new(text);
        let piece = cursor.value()?;
        cursor.end()?;
        Ok(piece)
    }

    /// Whether there is nothing: the member is missing, or null, which is the same where a member is optional.
    pub(crate) fn is_none(&self) -> bool {
        matches!(self.kind, Kind::Absent | Kind::Null)
    }

    /// The text of a string, borrowed when nothing in it is escaped.
    #[inline]
    pub(crate) fn string(&self) -> Option<Cow<'a, str>> {
        if self.kind != Kind::String {
            return None;
        }
        let inner = &self.text[1..self.text.len() - 1];
        Some(if self.escaped { Cow::Owned(unescape(inner)) } else { Cow::Borrowed(inner) })
    }

    pub(crate) fn boolean(&self) -> Option<bool> {
        (self.kind == Kind::Bool).then_some(self.text == "true")
    }

    /// A whole number without fraction and exponent.
    pub(crate) fn integer<T: std::str::FromStr>(&self) -> Option<T> {
        if self.kind == Kind::Number { self.text.parse().ok() } else { None }
    }

    pub(crate) fn float(&self) -> Option<f64> {
        if self.kind == Kind::Number { self.text.parse().ok() } else { None }
    }
}

/// A place in a text.
#[derive(Clone, Debug)]
pub(crate) struct Cursor<'a> {
    text: &'a str,
    at: usize,
    /// How many containers around this place were entered.
    depth: usize,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self { text, at: 0, depth: 0 }
    }

    /// How many bytes were read.
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    /// The text between an earlier place and this one.
    #[inline]
    pub(crate) fn since(&self, start: usize) -> &'a str {
        &self.text[start..self.at]
    }

    /// The first byte of the next value; white space before it is skipped.
    #[inline]
    pub(crate) fn peek(&mut self) -> Result<u8, JsonError> {
        let bytes = self.text.as_bytes();
        loop {
            match bytes.get(self.at) {
                Some(b' ' | b'\t' | b'\n' | b'\r') => self.at += 1,
                Some(byte) => return Ok(*byte),
                None => return self.fail(JsonFault::Ends),
            }
        }
    }

    /// Enters the object or array that begins here, with `open` as its bracket.
    #[inline]
    pub(crate) fn enter(&mut self, open: u8) -> Result<(), JsonError> {
        if self.peek()? != open {
            return self.fail(JsonFault::Unexpected);
        }
        if self.depth == MAX_NESTING {
            return self.fail(JsonFault::TooDeep);
        }
        self.depth += 1;
        self.at += 1;
        Ok(())
    }

    /// The key of the next member; none at the end of the object, which is then left. `first` says that none was read yet.
    #[inline]
    pub(crate) fn key(&mut self, first: &mut bool) -> Result<Option<Cow<'a, str>>, JsonError> {
        if !self.goes_on(b'}', first)? {
            return Ok(None);
        }
        if self.peek()? != b'"' {
            return self.fail(JsonFault::Unexpected);
        }
        let piece = self.string()?;
        if self.peek()? != b':' {
            return self.fail(JsonFault::Unexpected);
        }
        self.at += 1;
        Ok(piece.string())
    }

    /// Whether another element follows; at the end of the array it is left.
    pub(crate) fn element(&mut self, first: &mut bool) -> Result<bool, JsonError> {
        self.goes_on(b']', first)
    }

    #[inline]
    fn goes_on(&mut self, close: u8, first: &mut bool) -> Result<bool, JsonError> {
        let byte = self.peek()?;
        if byte == close {
            self.at += 1;
            self.depth -= 1;
            return Ok(false);
        }
        if std::mem::replace(first, false) {
            return Ok(true);
        }
        if byte != b',' {
            return self.fail(JsonFault::Unexpected);
        }
        self.at += 1;
        Ok(true)
    }

    /// Checks the value that begins here and goes past it.
    #[inline]
    pub(crate) fn value(&mut self) -> Result<Piece<'a>, JsonError> {
        match self.peek()? {
            b'"' => self.string(),
            b'{' | b'[' => self.container(),
            _ => self.scalar(),
        }
    }

    /// Nothing but white space may follow.
    pub(crate) fn end(&mut self) -> Result<(), JsonError> {
        match self.peek() {
            Err(_) => Ok(()),
            Ok(_) => self.fail(JsonFault::Trailing),
        }
    }

    #[cold]
    fn fail<T>(&self, fault: JsonFault) -> Result<T, JsonError> {
        Err(JsonError { fault, at: self.at })
    }

    #[inline]
    fn piece(&self, kind: Kind, start: usize) -> Piece<'a> {
        Piece { kind, escaped: false, text: self.since(start) }
    }

    /// A string whose opening quote is here.
    #[inline]
    fn string(&mut self) -> Result<Piece<'a>, JsonError> {
        let start = self.at;
        let bytes = self.text.as_bytes();
        self.at = plain_end(bytes, start + 1);
        if bytes.get(self.at) == Some(&b'"') {
            self.at += 1;
            return Ok(self.piece(Kind::String, start));
        }
        self.rest_of_string()?;
        Ok(Piece { escaped: true, ..self.piece(Kind::String, start) })
    }

    #[inline(never)]
    fn rest_of_string(&mut self) -> Result<(), JsonError> {
        let bytes = self.text.as_bytes();
        loop {
            self.at = plain_end(bytes, self.at);
            match bytes.get(self.at) {
                None => return self.fail(JsonFault::Ends),
                Some(b'"') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(b'\\') => self.escape()?,
                Some(_) => return self.fail(JsonFault::Control),
            }
        }
    }

    /// An escape whose backslash is here.
    fn escape(&mut self) -> Result<(), JsonError> {
        match self.text.as_bytes().get(self.at + 1) {
            None => self.fail(JsonFault::Ends),
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => {
                self.at += 2;
                Ok(())
            }
            Some(b'u') => match self.code_unit(self.at)? {
                0xDC00..=0xDFFF => self.fail(JsonFault::Surrogate),
                0xD800..=0xDBFF => {
                    let low = self.text.as_bytes().get(self.at + 6..self.at + 8);
                    if low != Some(b"\\u") || !matches!(self.code_unit(self.at + 6)?, 0xDC00..=0xDFFF) {
                        return self.fail(JsonFault::Surrogate);
                    }
                    self.at += 12;
                    Ok(())
                }
                _ => {
                    self.at += 6;
                    Ok(())
                }
            },
            Some(_) => self.fail(JsonFault::Escape),
        }
    }

    /// The four digits of the `\uXXXX` at `at`.
    fn code_unit(&self, at: usize) -> Result<u32, JsonError> {
        let digits = self.text.as_bytes().get(at + 2..at + 6);
        match digits.and_then(hex) {
            Some(unit) => Ok(unit),
            None => self.fail(JsonFault::Escape),
        }
    }

    fn scalar(&mut self) -> Result<Piece<'a>, JsonError> {
        let start = self.at;
        let rest = &self.text.as_bytes()[start..];
        let (kind, length) = match rest.first() {
            Some(b't') if rest.starts_with(b"true") => (Kind::Bool, 4),
            Some(b'f') if rest.starts_with(b"false") => (Kind::Bool, 5),
            Some(b'n') if rest.starts_with(b"null") => (Kind::Null, 4),
            Some(b'-' | b'0'..=b'9') => (Kind::Number, self.number()?),
            Some(_) => return self.fail(JsonFault::Unexpected),
            None => return self.fail(JsonFault::Ends),
        };
        self.at = start + length;
        Ok(self.piece(kind, start))
    }

    /// The length of the number that begins here.
    fn number(&self) -> Result<usize, JsonError> {
        let bytes = &self.text.as_bytes()[self.at..];
        let fail = |at: usize| {
            let fault = if at < bytes.len() { JsonFault::Unexpected } else { JsonFault::Ends };
            Err(JsonError { fault, at: self.at + at })
        };
        let digits = |from: usize| from + bytes[from..].iter().take_while(|b| b.is_ascii_digit()).count();
        let first = usize::from(bytes[0] == b'-');
        let mut at = match bytes.get(first) {
            Some(b'0') => first + 1,
            Some(b'1'..=b'9') => digits(first + 1),
            Some(_) | None => return fail(first),
        };
        if bytes.get(at).is_some_and(u8::is_ascii_digit) {
            return fail(at);
        }
        let mut may_be_huge = at > 300;
        if bytes.get(at) == Some(&b'.') {
            let end = digits(at + 1);
            if end == at + 1 {
                return fail(end);
            }
            at = end;
        }
        if matches!(bytes.get(at), Some(b'e' | b'E')) {
            may_be_huge = true;
            let sign = usize::from(matches!(bytes.get(at + 1), Some(b'+' | b'-')));
            let end = digits(at + 1 + sign);
            if end == at + 1 + sign {
                return fail(end);
            }
            at = end;
        }
        let text = &self.text[self.at..self.at + at];
        if may_be_huge && !text.parse::<f64>().is_ok_and(f64::is_finite) {
            return self.fail(JsonFault::Range);
        }
        Ok(at)
    }

    /// An object or array, without recursion: which bracket closes a level is a bit.
    fn container(&mut self) -> Result<Piece<'a>, JsonError> {
        let start = self.at;
        let outside = self.depth;
        let mut objects: u128 = 0;
        let mut first = true;
        self.open(&mut objects)?;
        loop {
            let is_object = objects & 1 == 1;
            let more = if is_object { self.key(&mut first)?.is_some() } else { self.element(&mut first)? };
            if more {
                match self.peek()? {
                    b'"' => _ = self.string()?,
                    b'{' | b'[' => {
                        self.open(&mut objects)?;
                        first = true;
                    }
                    _ => _ = self.scalar()?,
                }
            } else {
                objects >>= 1;
                first = false;
                if self.depth == outside {
                    break;
                }
            }
        }
        let kind = if self.text.as_bytes()[start] == b'{' { Kind::Object } else { Kind::Array };
        Ok(self.piece(kind, start))
    }

    fn open(&mut self, objects: &mut u128) -> Result<(), JsonError> {
        let bracket = self.peek()?;
        self.enter(bracket)?;
        // 128 bits are one more than the deepest nesting.
        *objects = *objects << 1 | u128::from(bracket == b'{');
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::text::write_string;
    use super::*;

    fn same_as_serde(text: &str) {
        let ours = Piece::read(text);
        let theirs = serde_json::from_str::<serde_json::Value>(text);
        assert_eq!(ours.is_ok(), theirs.is_ok(), "{text}: {ours:?} {theirs:?}");
        if let (Ok(piece), Ok(serde_json::Value::String(string))) = (ours, theirs) {
            assert_eq!(piece.string().as_deref(), Some(string.as_str()));
            let mut out = Vec::new();
            write_string(&mut out, &string);
            assert_eq!(String::from_utf8(out).unwrap(), serde_json::to_string(&string).unwrap());
        }
    }

    #[test]
    fn what_serde_json_takes_is_taken_and_nothing_else() {
        for text in [
            "",
            " ",
            "null",
            " true ",
            "false",
            "nul",
            "truex",
            "1",
            "-1",
            "-",
            "01",
            "-0",
            "1.",
            "1.5",
            ".5",
            "1e",
            "1e5",
            "1E+5",
            "1e-",
            "1e400",
            "-1e400",
            "1e-400",
            "+1",
            "1 2",
            "\"\"",
            "\"a",
            "\"\\",
            "\"\\x\"",
            "\"\\u00e9\"",
            "\"\\u00g9\"",
            "\"\\ud83d\\ude00\"",
            "\"\\ud83d\"",
            "\"\\ude00\"",
            "\"\\ud83dxxxxxx\"",
            "\"\\ud83d\\u0041\"",
            "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"",
            "\"tab\there\"",
            "\"nul\u{0}\"",
            "\"12345678\u{1f}\"",
            "\"1234567\\n12345678\"",
            "\"é😀\u{7f}\u{2028}\"",
            "[]",
            "[1]",
            "[1,]",
            "[,1]",
            "[1 2]",
            "[",
            "]",
            "[1",
            "{}",
            "{\"a\":1}",
            "{\"a\":1,}",
            "{\"a\"}",
            "{\"a\":}",
            "{a:1}",
            "{\"a\":1 \"b\":2}",
            "{\"a\":1,\"a\":2}",
            "{\"a\":[{\"b\":[]},{}]}",
            "[}",
            "{]",
            "[[]",
            "{\"a\":[}]",
            "[\r\n\t 1 , 2 ]\n",
            "\u{feff}1",
            "NaN",
            "Infinity",
            "'a'",
            "[1]x",
            "\"\\u12\"",
            "\"\\u123",
            "{\"\\u0061\":1}",
            "[\"\\ud800\"]",
        ] {
            same_as_serde(text);
        }
        same_as_serde(&"9".repeat(308));
        same_as_serde(&"9".repeat(310));
        same_as_serde(&format!("{}.5", "9".repeat(310)));
    }

    #[test]
    fn nesting_is_bounded_where_serde_json_bounds_it() {
        for depth in [1, 126, 127, 128, 129, 100_000] {
            same_as_serde(&format!("{}{}", "[".repeat(depth), "]".repeat(depth)));
            same_as_serde(&format!("{}1{}", "{\"a\":".repeat(depth), "}".repeat(depth)));
        }
        let deep = format!("{}{}", "[".repeat(128), "]".repeat(128));
        assert_eq!(Piece::read(&deep).unwrap_err().fault, JsonFault::TooDeep);
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_judged_as_serde_json_judges_it(text in "[\\[\\]{}\",:0-9eE.+\\-a-f\\\\u \\PC]{0,24}") {
            same_as_serde(&text);
        }
    }
}
