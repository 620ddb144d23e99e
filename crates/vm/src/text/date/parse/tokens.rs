//! The tokens of a date: numbers, words and signs.

use super::super::super::{Str, unicode};

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Token {
    /// The value of at most nine significant digits, and how many digits there were.
    Number(i64, usize),
    Symbol(u8),
    Word(Word, usize),
    Space,
    Unknown,
    End,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Word {
    Month(i64),
    /// The hours that it adds.
    HalfDay(i64),
    /// Hours from UTC.
    Zone(i64),
    /// The `T` between date and time.
    Separator,
    Other,
}

impl Token {
    pub(super) fn is_number_of(self, digits: usize, range: std::ops::RangeInclusive<i64>) -> bool {
        matches!(self, Token::Number(value, len) if len == digits && range.contains(&value))
    }

    pub(super) fn sign(self) -> Option<i64> {
        match self {
            Token::Symbol(b'+') => Some(1),
            Token::Symbol(b'-') => Some(-1),
            _ => None,
        }
    }
}

/// Cuts a text into tokens, each code unit once.
pub(super) struct Scanner<'a> {
    text: Str<'a>,
    at: usize,
}

impl<'a> Scanner<'a> {
    pub(super) fn new(text: Str<'a>) -> Scanner<'a> {
        Scanner { text, at: 0 }
    }

    pub(super) fn scan(&mut self) -> Token {
        let Some(unit) = self.text.get(self.at) else { return Token::End };
        let is_space = unicode::is_white_space(unit) || unicode::is_line_terminator(unit);
        match u8::try_from(unit) {
            Ok(b'0'..=b'9') => return self.scan_number(),
            Ok(byte @ (b':' | b'-' | b'+' | b'.' | b')')) => {
                self.at += 1;
                return Token::Symbol(byte);
            }
            Ok(b'(') => {
                self.skip_parentheses();
                return Token::Unknown;
            }
            Ok(_) | Err(_) => {}
        }
        if unit >= u16::from(b'A') && !is_space {
            return self.scan_word();
        }
        self.at += 1;
        if is_space { Token::Space } else { Token::Unknown }
    }

    fn scan_number(&mut self) -> Token {
        let start = self.at;
        let (mut value, mut significant) = (0, 0);
        while let Some(digit) =
            self.text.get(self.at).map(|unit| unit.wrapping_sub(0x30)).filter(|&digit| digit < 10)
        {
            if (value != 0 || digit != 0) && significant < 9 {
                value = value * 10 + i64::from(digit);
                significant += 1;
            }
            self.at += 1;
        }
        Token::Number(value, self.at - start)
    }

    fn scan_word(&mut self) -> Token {
        let start = self.at;
        let mut prefix = [0u8; 3];
        while let Some(unit) = self.text.get(self.at) {
            if unit < u16::from(b'A') || unicode::is_white_space(unit) || unicode::is_line_terminator(unit) {
                break;
            }
            if let Some(letter) = prefix.get_mut(self.at - start) {
                *letter = u8::try_from(unit).map_or(0xFF, |byte| byte.to_ascii_lowercase());
            }
            self.at += 1;
        }
        let len = self.at - start;
        Token::Word(word(prefix, len), len)
    }

    fn skip_parentheses(&mut self) {
        let mut depth = 0usize;
        while let Some(unit) = self.text.get(self.at) {
            self.at += 1;
            match u8::try_from(unit) {
                Ok(b'(') => depth += 1,
                Ok(b')') => depth = depth.saturating_sub(1),
                Ok(_) | Err(_) => {}
            }
            if depth == 0 {
                return;
            }
        }
    }
}

fn word(prefix: [u8; 3], len: usize) -> Word {
    let months = b"janfebmaraprmayjunjulaugsepoctnovdec";
    if let Some(month) = months.chunks(3).position(|month| month == prefix) {
        return Word::Month(month as i64 + 1);
    }
    if len > 3 {
        return Word::Other;
    }
    match &prefix {
        b"am\0" => Word::HalfDay(0),
        b"pm\0" => Word::HalfDay(12),
        b"ut\0" | b"utc" | b"z\0\0" | b"gmt" => Word::Zone(0),
        b"edt" => Word::Zone(-4),
        b"cdt" | b"est" => Word::Zone(-5),
        b"cst" | b"mdt" => Word::Zone(-6),
        b"mst" | b"pdt" => Word::Zone(-7),
        b"pst" => Word::Zone(-8),
        b"t\0\0" => Word::Separator,
        _ => Word::Other,
    }
}
