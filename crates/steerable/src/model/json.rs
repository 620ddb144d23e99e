//! JSON looked at without building it: what a provider sends is read once, and mostly thrown away.
//!
//! [`Piece`] walks a text that `serde_json` has already accepted, so it never has to doubt it. [`Scan`] is for the few shapes
//! that make up nearly all of a stream: it reads an unchecked text strictly from left to right and gives up at anything it does
//! not expect; then the slow way decides. That both agree is a property test.

use std::borrow::Cow;

use memchr::{memchr, memchr2};
use serde::de::IgnoredAny;

/// A value inside a checked text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece<'a>(&'a str);

impl<'a> Piece<'a> {
    /// The whole of `text` as one value.
    pub(super) fn read(text: &'a str) -> Result<Self, serde_json::Error> {
        serde_json::from_str::<IgnoredAny>(text)?;
        Ok(Self(text.trim_matches(BLANKS)))
    }

    /// The value as it was written.
    pub(super) fn raw(self) -> &'a str {
        self.0
    }

    /// Whether it is an object.
    pub(super) fn is_object(self) -> bool {
        self.0.starts_with('{')
    }

    /// A member of an object, unless it is null.
    pub(super) fn get(self, key: &str) -> Option<Self> {
        let found = self.members().find(|(name, _)| name == key)?.1;
        (found.0 != "null").then_some(found)
    }

    /// The members of an object in their order; none of anything else.
    pub(super) fn members(self) -> impl Iterator<Item = (Cow<'a, str>, Self)> {
        let mut rest = self.inside('{');
        std::iter::from_fn(move || {
            let key = take(&mut rest)?;
            // A checked object has a value after every key.
            let value = take(&mut rest)?;
            Some((key.string()?, value))
        })
    }

    /// The items of an array in their order; none of anything else.
    pub(super) fn items(self) -> impl Iterator<Item = Self> {
        let mut rest = self.inside('[');
        std::iter::from_fn(move || take(&mut rest))
    }

    /// The text of a string. Half a surrogate pair, which some servers make of an emoji, becomes a replacement character.
    pub(super) fn string(self) -> Option<Cow<'a, str>> {
        let inner = self.0.strip_prefix('"')?.strip_suffix('"')?;
        Some(unescape(inner))
    }

    /// A whole number; one with a fraction is cut.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a float cast saturates, which is what we want"
    )]
    pub(super) fn number(self) -> Option<u64> {
        self.0.parse().ok().or_else(|| self.0.parse::<f64>().ok().map(|number| number as u64))
    }

    fn inside(self, open: char) -> &'a str {
        match self.0.strip_prefix(open) {
            Some(rest) => &rest[..rest.len() - 1],
            None => "",
        }
    }
}

const BLANKS: [char; 4] = [' ', '\t', '\n', '\r'];

/// Takes the next value of a checked container, skipping what separates it from the one before.
fn take<'a>(rest: &mut &'a str) -> Option<Piece<'a>> {
    let text = rest.trim_start_matches([' ', '\t', '\n', '\r', ',', ':']);
    let end = value_end(text.as_bytes())?;
    let (value, after) = text.split_at(end);
    *rest = after;
    Some(Piece(value))
}

/// Where the value ends that a checked text begins with.
fn value_end(bytes: &[u8]) -> Option<usize> {
    let mut depth = 0_usize;
    let mut at = 0;
    loop {
        match bytes.get(at)? {
            b'"' => at = string_end(bytes, at + 1)?,
            b'{' | b'[' => {
                depth += 1;
                at += 1;
            }
            b'}' | b']' => {
                depth = depth.checked_sub(1)?;
                at += 1;
            }
            _ if depth > 0 => at += 1,
            _ => {
                let scalar = &bytes[at..];
                let end = scalar.iter().position(|byte| b" \t\n\r,]}:".contains(byte));
                return Some(at + end.unwrap_or(scalar.len()));
            }
        }
        if depth == 0 {
            return Some(at);
        }
    }
}

/// How deep the containers of a checked text nest.
pub(super) fn depth(text: &str) -> usize {
    let bytes = text.as_bytes();
    let (mut depth, mut deepest, mut at) = (0_usize, 0, 0);
    while let Some(byte) = bytes.get(at) {
        at += 1;
        match byte {
            b'"' => at = string_end(bytes, at).unwrap_or(bytes.len()),
            b'{' | b'[' => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

/// The place after the quote that closes a string whose inside begins at `from`.
fn string_end(bytes: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    loop {
        let found = at + memchr2(b'"', b'\\', bytes.get(at..)?)?;
        if bytes[found] == b'"' {
            return Some(found + 1);
        }
        at = found + 2;
    }
}

/// Reads an unchecked text strictly from left to right. Every method is `None` at something that it does not expect.
pub(super) struct Scan<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Scan<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    /// Walks an object, member by member. `each` must take the value of its key.
    #[inline]
    pub(super) fn object(&mut self, mut each: impl FnMut(&mut Self, &'a str) -> Option<()>) -> Option<()> {
        self.eat(b'{')?;
        if self.eat(b'}').is_some() {
            return Some(());
        }
        loop {
            let key = self.plain_string()?;
            self.eat(b':')?;
            each(self, key)?;
            if self.eat(b',').is_none() {
                return self.eat(b'}');
            }
        }
    }

    /// The one item of an array.
    #[inline]
    pub(super) fn only_item(&mut self, item: impl FnOnce(&mut Self) -> Option<()>) -> Option<()> {
        self.eat(b'[')?;
        item(self)?;
        self.eat(b']')
    }

    /// A string.
    #[inline]
    pub(super) fn string(&mut self) -> Option<Cow<'a, str>> {
        self.eat(b'"')?;
        let bytes = self.text.as_bytes();
        let end = string_end(bytes, self.at)?;
        let inner = &self.text[self.at..end - 1];
        if inner.bytes().any(|byte| byte < 0x20) {
            return None;
        }
        self.at = end;
        // Escapes that do not exist are for the slow way to find.
        if memchr(b'\\', inner.as_bytes()).is_some() && !escapes_exist(inner) {
            return None;
        }
        Some(unescape(inner))
    }

    /// A string without escapes.
    #[inline]
    pub(super) fn plain_string(&mut self) -> Option<&'a str> {
        match self.string()? {
            Cow::Borrowed(text) => Some(text),
            Cow::Owned(_) => None,
        }
    }

    /// `null`.
    #[inline]
    pub(super) fn null(&mut self) -> Option<()> {
        self.word("null")
    }

    /// Exactly this number.
    #[inline]
    pub(super) fn exactly(&mut self, number: &str) -> Option<()> {
        self.word(number)?;
        let next = self.text.as_bytes().get(self.at)?;
        (!matches!(next, b'0'..=b'9' | b'.' | b'e' | b'E')).then_some(())
    }

    /// Any string, number or literal, and empty containers.
    #[inline]
    pub(super) fn skip_simple(&mut self) -> Option<()> {
        self.blanks();
        match self.text.as_bytes().get(self.at)? {
            b'"' => self.string().map(|_| ()),
            b'n' => self.word("null"),
            b't' => self.word("true"),
            b'f' => self.word("false"),
            b'[' => self.eat(b'[').and_then(|()| self.eat(b']')),
            b'{' => self.eat(b'{').and_then(|()| self.eat(b'}')),
            b'0'..=b'9' => self.whole_number(),
            _ => None,
        }
    }

    /// The end of the text.
    #[inline]
    pub(super) fn end(&mut self) -> Option<()> {
        self.blanks();
        (self.at == self.text.len()).then_some(())
    }

    fn whole_number(&mut self) -> Option<()> {
        let rest = &self.text.as_bytes()[self.at..];
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        // More digits could be too large a number, which only the slow way can tell; so can it a leading zero.
        if digits > 18 || (digits > 1 && rest[0] == b'0') {
            return None;
        }
        self.at += digits;
        let next = self.text.as_bytes().get(self.at)?;
        (!matches!(next, b'.' | b'e' | b'E')).then_some(())
    }

    #[inline]
    fn word(&mut self, word: &str) -> Option<()> {
        self.blanks();
        self.text.as_bytes()[self.at..].starts_with(word.as_bytes()).then(|| self.at += word.len())
    }

    #[inline]
    fn eat(&mut self, byte: u8) -> Option<()> {
        self.blanks();
        (self.text.as_bytes().get(self.at) == Some(&byte)).then(|| self.at += 1)
    }

    #[inline]
    fn blanks(&mut self) {
        while matches!(self.text.as_bytes().get(self.at), Some(b' ' | b'\n' | b'\r' | b'\t')) {
            self.at += 1;
        }
    }
}

/// Whether every escape in the inside of a string is one of JSON's.
fn escapes_exist(inner: &str) -> bool {
    let bytes = inner.as_bytes();
    let mut at = 0;
    while let Some(found) = memchr(b'\\', &bytes[at..]) {
        at += found + 1;
        match bytes.get(at) {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => at += 1,
            Some(b'u')
                if bytes.get(at + 1..at + 5).is_some_and(|hex| hex.iter().all(u8::is_ascii_hexdigit)) =>
            {
                at += 5;
            }
            Some(_) | None => return false,
        }
    }
    true
}

/// The text that the inside of a string means.
fn unescape(inner: &str) -> Cow<'_, str> {
    let Some(first) = memchr(b'\\', inner.as_bytes()) else { return Cow::Borrowed(inner) };
    let mut text = String::with_capacity(inner.len());
    text.push_str(&inner[..first]);
    let mut rest = &inner[first..];
    while let Some(found) = memchr(b'\\', rest.as_bytes()) {
        text.push_str(&rest[..found]);
        rest = &rest[found + 1..];
        let mut width = 1;
        text.push(match rest.as_bytes().first() {
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => {
                let (character, taken) = unicode(rest);
                width = taken;
                character
            }
            Some(other) if other.is_ascii() => char::from(*other),
            Some(_) | None => {
                width = 0;
                char::REPLACEMENT_CHARACTER
            }
        });
        rest = rest.get(width..).unwrap_or_default();
    }
    text.push_str(rest);
    Cow::Owned(text)
}

/// The character of `uXXXX`, or of `uXXXX\uXXXX`, and how many bytes it took.
fn unicode(rest: &str) -> (char, usize) {
    let unit = |from: usize| rest.get(from..from + 4).and_then(|hex| u16::from_str_radix(hex, 16).ok());
    let Some(high) = unit(1) else { return (char::REPLACEMENT_CHARACTER, 1) };
    if let Some(low) = rest.get(5..7).filter(|next| *next == "\\u").and_then(|_| unit(7))
        && let Some(Ok(character)) = char::decode_utf16([high, low]).next()
        && character.len_utf16() == 2
    {
        return (character, 11);
    }
    (char::from_u32(u32::from(high)).unwrap_or(char::REPLACEMENT_CHARACTER), 5)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_finds_members_items_and_texts_as_they_were_written() {
        let text = r#" {"a" : [1, {"b":"x\n\"y\""}, [] , 2.50], "n":null, "c":{"d":true} } "#;
        let piece = Piece::read(text).unwrap();
        let items: Vec<&str> = piece.get("a").unwrap().items().map(Piece::raw).collect();
        assert_eq!(items, ["1", r#"{"b":"x\n\"y\""}"#, "[]", "2.50"]);
        let inner = piece.get("a").unwrap().items().nth(1).unwrap();
        assert_eq!(inner.get("b").unwrap().string().unwrap(), "x\n\"y\"");
        assert_eq!(piece.get("n"), None);
        assert_eq!(piece.get("c").unwrap().get("d").unwrap().raw(), "true");
        assert_eq!(piece.get("zzz"), None);
        assert_eq!(Piece::read("[1,2").map_err(|_| ()), Err(()));
    }

    #[test]
    fn surrogates_become_characters_and_halves_become_replacements() {
        let text = |raw: &'static str| Piece::read(raw).unwrap().string().unwrap().into_owned();
        assert_eq!(text(r#""\ud83d\ude00!""#), "😀!");
        assert_eq!(text(r#""\ud83d""#), "\u{fffd}");
        assert_eq!(text(r#""\ude00\ud83d\ude00""#), "\u{fffd}😀");
        assert_eq!(text(r#""\u00e9\/\\""#), "é/\\");
    }

    #[test]
    fn numbers_with_a_fraction_are_cut_and_others_are_none() {
        let number = |raw: &'static str| Piece::read(raw).unwrap().number();
        assert_eq!(number("12"), Some(12));
        assert_eq!(number("12.9"), Some(12));
        assert_eq!(number("-3"), Some(0));
        assert_eq!(number("1e3"), Some(1000));
        assert_eq!(number("\"12\""), None);
    }

    #[test]
    fn deep_nesting_is_walked_without_a_stack() {
        let text = format!("{{\"a\":{}1{},\"b\":2}}", "[".repeat(100_000), "]".repeat(100_000));
        let piece = Piece::read(&text).unwrap();
        assert_eq!(piece.get("b").unwrap().number(), Some(2));
    }
}
