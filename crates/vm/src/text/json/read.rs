//! The JSON reader: one event at a time, no recursion, each code unit looked at once.

use super::super::Text;
use super::error::{JsonError, JsonProblem};
use super::open::{Container, OpenContainers};
use super::string::{Spelling, StringToken, Unit, decode, is_special};

/// What the reader met.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Event {
    /// `{`
    ObjectStart,
    /// A property name; its value follows.
    Key(StringToken),
    /// `}`
    ObjectEnd,
    /// `[`
    ArrayStart,
    /// `]`
    ArrayEnd,
    /// A string.
    String(StringToken),
    /// A number that is no [`Event::Integer`].
    Number(f64),
    /// A number without fraction and exponent whose magnitude fits, and not -0.
    Integer(i32),
    /// `true`
    True,
    /// `false`
    False,
    /// `null`
    Null,
    /// The text is over. Further calls answer the same.
    End,
}

/// Reads a JSON text event by event.
///
/// ```
/// use outrigger_vm::text::json::{Event, Reader};
/// let mut reader = Reader::new(b"[1, true]".as_slice(), 100);
/// let mut events = Vec::new();
/// while events.last() != Some(&Event::End) {
///     events.push(reader.next_event().unwrap());
/// }
/// assert_eq!(events, [Event::ArrayStart, Event::Integer(1), Event::True, Event::ArrayEnd, Event::End]);
/// ```
#[derive(Debug)]
pub struct Reader<'a, U> {
    source: &'a [U],
    at: usize,
    open: OpenContainers,
    next: Expect,
    max_depth: usize,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Expect {
    Value,
    ValueOrBracket,
    KeyOrBrace,
    CommaOrClose,
    End,
}

impl<'a, U: Unit> Reader<'a, U> {
    /// A reader at the start of `source` that refuses more than `max_depth` open containers.
    pub fn new(source: &'a [U], max_depth: usize) -> Reader<'a, U> {
        Reader { source, at: 0, open: OpenContainers::new(), next: Expect::Value, max_depth }
    }

    /// How many code units have been read; what has been charged so far.
    pub fn position(&self) -> usize {
        self.at
    }

    /// The next event. After an error the reader must not be used again.
    pub fn next_event(&mut self) -> Result<Event, JsonError> {
        self.skip_space();
        match self.next {
            Expect::Value => self.value(),
            Expect::ValueOrBracket if self.peek() == Some(b']') => Ok(self.close(Event::ArrayEnd)),
            Expect::ValueOrBracket => self.value(),
            Expect::KeyOrBrace => match self.peek() {
                Some(b'}') => Ok(self.close(Event::ObjectEnd)),
                Some(b'"') => self.key(JsonProblem::ExpectedColon),
                Some(_) | None => self.fail(JsonProblem::ExpectedPropertyNameOrBrace),
            },
            Expect::CommaOrClose => self.after_value(),
            Expect::End => match self.at < self.source.len() {
                true => self.fail(JsonProblem::TrailingText),
                false => Ok(Event::End),
            },
        }
    }

    /// The string that a token stands for, when it has escapes; a plain one is a slice of the source.
    pub fn decode(&self, token: StringToken) -> Text {
        decode(self.source.get(token.start..token.end).unwrap_or_default())
    }

    fn after_value(&mut self) -> Result<Event, JsonError> {
        match (self.open.top(), self.peek()) {
            (Container::Array, Some(b',')) => {
                self.at += 1;
                self.skip_space();
                self.value()
            }
            (Container::Array, Some(b']')) => Ok(self.close(Event::ArrayEnd)),
            (Container::Array, _) => self.fail(JsonProblem::ExpectedCommaOrBracket),
            (Container::Object, Some(b',')) => {
                self.at += 1;
                self.skip_space();
                match self.peek() {
                    // V8 expects the colon by name after the first key only.
                    Some(b'"') => self.key(JsonProblem::Unexpected),
                    Some(_) | None => self.fail(JsonProblem::ExpectedPropertyName),
                }
            }
            (Container::Object, Some(b'}')) => Ok(self.close(Event::ObjectEnd)),
            (Container::Object, _) => self.fail(JsonProblem::ExpectedCommaOrBrace),
        }
    }

    fn value(&mut self) -> Result<Event, JsonError> {
        let event = match self.peek() {
            Some(b'{') => return self.open(Container::Object, Event::ObjectStart, Expect::KeyOrBrace),
            Some(b'[') => return self.open(Container::Array, Event::ArrayStart, Expect::ValueOrBracket),
            Some(b'"') => Event::String(self.string()?),
            Some(b'-' | b'0'..=b'9') => self.number()?,
            Some(b't') => self.word(b"true", Event::True)?,
            Some(b'f') => self.word(b"false", Event::False)?,
            Some(b'n') => self.word(b"null", Event::Null)?,
            Some(_) | None => return self.fail(JsonProblem::Unexpected),
        };
        self.value_is_over();
        Ok(event)
    }

    fn value_is_over(&mut self) {
        self.next = if self.open.depth == 0 { Expect::End } else { Expect::CommaOrClose };
    }

    fn open(&mut self, container: Container, event: Event, next: Expect) -> Result<Event, JsonError> {
        if self.open.depth >= self.max_depth {
            return self.fail(JsonProblem::TooDeep);
        }
        self.open.push(container);
        self.at += 1;
        self.next = next;
        Ok(event)
    }

    fn close(&mut self, event: Event) -> Event {
        self.open.pop();
        self.at += 1;
        self.value_is_over();
        event
    }

    fn key(&mut self, without_colon: JsonProblem) -> Result<Event, JsonError> {
        let token = self.string()?;
        self.skip_space();
        if self.peek() != Some(b':') {
            return self.fail(without_colon);
        }
        self.at += 1;
        self.next = Expect::Value;
        Ok(Event::Key(token))
    }

    fn word(&mut self, word: &[u8], event: Event) -> Result<Event, JsonError> {
        for &byte in word {
            if self.peek() != Some(byte) {
                return self.fail(JsonProblem::Unexpected);
            }
            self.at += 1;
        }
        Ok(event)
    }

    fn string(&mut self) -> Result<StringToken, JsonError> {
        self.at += 1;
        let start = self.at;
        let mut spelling = Spelling::Plain;
        loop {
            let rest = self.source.get(self.at..).unwrap_or_default();
            let stop = rest.iter().position(|&unit| is_special(unit.into()));
            self.at += stop.unwrap_or(rest.len());
            match self.peek() {
                Some(b'"') => {
                    let token = StringToken { start, end: self.at, spelling };
                    self.at += 1;
                    return Ok(token);
                }
                Some(b'\\') => {
                    spelling = Spelling::Escaped;
                    self.escape()?;
                }
                Some(_) => return self.fail(JsonProblem::ControlCharacter),
                None => return self.fail(JsonProblem::UnterminatedString),
            }
        }
    }

    fn escape(&mut self) -> Result<(), JsonError> {
        self.at += 1;
        match self.peek() {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => self.at += 1,
            Some(b'u') => {
                self.at += 1;
                for _ in 0..4 {
                    if !self.peek().is_some_and(|byte| byte.is_ascii_hexdigit()) {
                        return self.fail(JsonProblem::BadUnicodeEscape);
                    }
                    self.at += 1;
                }
            }
            Some(_) => return self.fail(JsonProblem::BadEscape),
            // The end of the input or a unit above 255: V8 has no better word for either.
            None => return self.fail(JsonProblem::Unexpected),
        }
        Ok(())
    }

    fn number(&mut self) -> Result<Event, JsonError> {
        let start = self.at;
        let negative = self.peek() == Some(b'-');
        self.at += usize::from(negative);
        let mut value = Small { mantissa: 0, digits: 0 };
        match self.peek() {
            Some(b'0') => {
                self.at += 1;
                if self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
                    return self.fail(JsonProblem::Unexpected);
                }
            }
            Some(b'1'..=b'9') => self.digits(&mut value),
            Some(_) | None => return self.fail(JsonProblem::NoNumberAfterMinus),
        }
        let whole = value.digits;
        let mut is_small = true;
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.some_digits(&mut value, JsonProblem::UnterminatedFraction)?;
        }
        let places = value.digits - whole;
        if matches!(self.peek(), Some(b'e' | b'E')) {
            is_small = false;
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.some_digits(&mut Small { mantissa: 0, digits: 0 }, JsonProblem::MissingExponent)?;
        }
        if is_small && value.digits <= 15 {
            return Ok(value.event(negative, places));
        }
        let text = self.source.get(start..self.at).unwrap_or_default();
        Ok(Event::Number(super::super::number::read::string_to_number(U::text(text))))
    }

    fn digits(&mut self, value: &mut Small) {
        let rest = self.source.get(self.at..).unwrap_or_default();
        for &unit in rest {
            let digit = unit.into().wrapping_sub(0x30);
            if digit > 9 {
                return;
            }
            value.mantissa = value.mantissa.wrapping_mul(10).wrapping_add(u64::from(digit));
            value.digits += 1;
            self.at += 1;
        }
    }

    fn some_digits(&mut self, value: &mut Small, otherwise: JsonProblem) -> Result<(), JsonError> {
        let start = self.at;
        self.digits(value);
        if self.at == start { self.fail(otherwise) } else { Ok(()) }
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\n' | b'\r' | b'\t')) {
            self.at += 1;
        }
    }

    /// The unit at hand when it is ASCII: nothing in the grammar outside strings is anything else.
    #[inline]
    fn peek(&self) -> Option<u8> {
        let unit: u32 = (*self.source.get(self.at)?).into();
        u8::try_from(unit).ok()
    }

    fn fail<T>(&self, problem: JsonProblem) -> Result<T, JsonError> {
        Err(JsonError { problem, position: self.at })
    }
}

/// Digits that are gathered on the way; they wrap when there are more than nineteen, and then nobody looks at them.
struct Small {
    mantissa: u64,
    digits: usize,
}

impl Small {
    /// The number with its last `places` digits after the point, for at most fifteen digits.
    fn event(&self, negative: bool, places: usize) -> Event {
        const POWERS: [f64; 16] =
            [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15];
        if places == 0
            && let Ok(value) = i32::try_from(self.mantissa)
            && (value != 0 || !negative)
        {
            return Event::Integer(if negative { -value } else { value });
        }
        // Both are exact as doubles, so one division rounds correctly.
        let value = self.mantissa as f64 / POWERS[places.min(15)];
        Event::Number(if negative { -value } else { value })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drain(source: &[u8], max_depth: usize) -> Result<Vec<Event>, JsonError> {
        let mut reader = Reader::new(source, max_depth);
        let mut events = Vec::new();
        loop {
            events.push(reader.next_event()?);
            if events.last() == Some(&Event::End) {
                return Ok(events);
            }
        }
    }

    #[test]
    fn depth_is_refused_one_past_the_limit_and_needs_no_stack() {
        let nested = |depth: usize| ["[".repeat(depth), "]".repeat(depth)].concat();
        assert_eq!(drain(nested(1_000_000).as_bytes(), 1_000_000).map(|events| events.len()), Ok(2_000_001));
        let refused = JsonError { problem: JsonProblem::TooDeep, position: 100 };
        assert!(drain(nested(100).as_bytes(), 100).is_ok());
        assert_eq!(drain(nested(101).as_bytes(), 100), Err(refused));
    }

    #[test]
    fn small_integers_are_integers_and_minus_zero_is_not() {
        let numbers = drain(b"[2147483647,2147483648,-2147483648,0,-0,1.0,123456789012]", 9);
        let expected = vec![
            Event::ArrayStart,
            Event::Integer(i32::MAX),
            Event::Number(2147483648.0),
            Event::Number(-2147483648.0),
            Event::Integer(0),
            Event::Number(-0.0),
            Event::Number(1.0),
            Event::Number(123456789012.0),
            Event::ArrayEnd,
            Event::End,
        ];
        assert_eq!(numbers, Ok(expected));
    }
}
