//! What is wrong with a JSON text, in V8's words, which programs in the wild match on.

use thiserror::Error;

use super::super::{Str, Text};

/// A problem and the code unit where it was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("invalid JSON at position {position}: {problem:?}")]
pub struct JsonError {
    /// What is wrong.
    pub problem: JsonProblem,
    /// The index of the code unit, from zero.
    pub position: usize,
}

/// The kinds of problem that V8 tells apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JsonProblem {
    /// The text ended, or something stands where no such thing may.
    Unexpected,
    /// After `{`.
    ExpectedPropertyNameOrBrace,
    /// After a comma in an object.
    ExpectedPropertyName,
    /// After the first property name of an object.
    ExpectedColon,
    /// After a property value.
    ExpectedCommaOrBrace,
    /// After an array element.
    ExpectedCommaOrBracket,
    /// After the whole value.
    TrailingText,
    /// The text ended inside a string.
    UnterminatedString,
    /// A control character inside a string.
    ControlCharacter,
    /// A backslash before something that is no escape.
    BadEscape,
    /// `\u` without four hexadecimal digits.
    BadUnicodeEscape,
    /// A minus sign alone.
    NoNumberAfterMinus,
    /// A point without digits after it.
    UnterminatedFraction,
    /// An exponent without digits.
    MissingExponent,
    /// More open containers than the caller allows. This one is ours: V8 has no such limit.
    TooDeep,
}

impl JsonError {
    /// The message of the SyntaxError, for the text that the reader was given.
    pub fn message(&self, source: Str<'_>) -> Text {
        let told = match self.problem {
            JsonProblem::Unexpected => return self.unexpected(source),
            JsonProblem::ExpectedPropertyNameOrBrace => "Expected property name or '}'",
            JsonProblem::ExpectedPropertyName => "Expected double-quoted property name",
            JsonProblem::ExpectedColon => "Expected ':' after property name",
            JsonProblem::ExpectedCommaOrBrace => "Expected ',' or '}' after property value",
            JsonProblem::ExpectedCommaOrBracket => "Expected ',' or ']' after array element",
            JsonProblem::TrailingText => {
                return Text::of(&format!(
                    "Unexpected non-whitespace character after JSON at position {}",
                    self.position
                ));
            }
            JsonProblem::UnterminatedString => "Unterminated string",
            JsonProblem::ControlCharacter => "Bad control character in string literal",
            JsonProblem::BadEscape => "Bad escaped character",
            JsonProblem::BadUnicodeEscape => "Bad Unicode escape",
            JsonProblem::NoNumberAfterMinus => "No number after minus sign",
            JsonProblem::UnterminatedFraction => "Unterminated fractional number",
            JsonProblem::MissingExponent => "Exponent part is missing a number",
            JsonProblem::TooDeep => "Too many nested arrays and objects",
        };
        self.at_position(told)
    }

    fn at_position(&self, told: &str) -> Text {
        Text::of(&format!("{told} in JSON at position {}", self.position))
    }

    fn unexpected(&self, source: Str<'_>) -> Text {
        /// How much of the text V8 shows on either side.
        const CONTEXT: usize = 10;
        let (position, len) = (self.position, source.len());
        let Some(unit) = source.get(position) else { return Text::of("Unexpected end of JSON input") };
        match u8::try_from(unit) {
            Ok(b'-' | b'0'..=b'9') => return self.at_position("Unexpected number"),
            Ok(b'"') => return self.at_position("Unexpected string"),
            Ok(_) | Err(_) => {}
        }
        let mut out = Text::with_capacity(64);
        let is_value_of_another_kind = ["undefined", "NaN", "Infinity", "[object Object]"]
            .iter()
            .any(|text| source == Str::Latin1(text.as_bytes()));
        if !is_value_of_another_kind {
            out.push_str("Unexpected token '");
            out.push(unit);
            out.push_str("', ");
        }
        let (mut start, mut end) = (0, len);
        if len > 2 * CONTEXT {
            start = position.saturating_sub(CONTEXT);
            if position < len - CONTEXT {
                end = position + CONTEXT;
            }
        }
        out.push_str(if start > 0 || (len > 2 * CONTEXT && position >= CONTEXT) { "...\"" } else { "\"" });
        out.push_text(source.slice(start, end));
        out.push_str(if end < len { "\"... is not valid JSON" } else { "\" is not valid JSON" });
        out
    }
}
