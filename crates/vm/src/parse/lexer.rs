//! Source text to tokens. The parser says where a `/` starts a regular expression and a `}` goes on with a template.

use super::parser::{Parsed, Parser};
use super::token::{T, Token, word, word_kind};

impl Parser<'_> {
    /// Makes the next token current.
    pub(super) fn advance(&mut self) -> Parsed<()> {
        self.prev_end = self.tok.end;
        self.tok = self.scan()?;
        Ok(())
    }

    /// The token after the current one, without moving.
    pub(super) fn peek(&mut self) -> Parsed<Token> {
        let pos = self.pos;
        let next = self.scan();
        self.pos = pos;
        next
    }

    pub(super) fn byte(&self, at: usize) -> u8 {
        self.src.get(at).copied().unwrap_or(0)
    }

    fn scan(&mut self) -> Parsed<Token> {
        let newline_before = self.skip_blank()?;
        let start = self.pos;
        let mut token = Token {
            kind: T::End,
            start: start as u32,
            end: start as u32,
            newline_before,
            escaped: false,
            atom: word::EMPTY,
            number: 0.0,
        };
        let Some(&first) = self.src.get(start) else { return Ok(token) };
        match CLASS[usize::from(first)] {
            Class::Name => self.scan_name(&mut token)?,
            Class::Digit => self.scan_number(&mut token)?,
            Class::Quote => self.scan_string(&mut token, first)?,
            Class::Punctuation => {
                if first == b'.' && self.byte(start + 1).is_ascii_digit() {
                    self.scan_number(&mut token)?;
                } else if first == b'`' {
                    token.kind = T::Template;
                    self.pos += 1;
                } else {
                    let (kind, len) = self.punctuator(first);
                    token.kind = kind;
                    self.pos += len;
                }
            }
            Class::Hash => {
                self.pos += 1;
                if !self.at_name_start() {
                    return self.fail_at(start, start + 1, "unexpected `#`");
                }
                self.scan_name(&mut token)?;
                token.kind = T::PrivateName;
            }
            Class::Other => {
                if self.at_name_start() {
                    self.scan_name(&mut token)?;
                } else {
                    let found = self.text[start..].chars().next().unwrap_or('\u{fffd}');
                    let message = format!("unexpected character {found:?}");
                    return self.fail_at(start, start + found.len_utf8(), &message);
                }
            }
        }
        token.end = self.pos as u32;
        Ok(token)
    }

    /// Skips blanks and comments; says whether a line ended among them.
    fn skip_blank(&mut self) -> Parsed<bool> {
        let mut newline = false;
        loop {
            match self.byte(self.pos) {
                b' ' | b'\t' | 0x0b | 0x0c => self.pos += 1,
                b'\n' | b'\r' => {
                    newline = true;
                    self.pos += 1;
                }
                b'/' => match self.byte(self.pos + 1) {
                    b'/' => self.skip_line(),
                    b'*' => newline |= self.skip_block_comment()?,
                    _ => return Ok(newline),
                },
                b'#' if self.pos == 0 && self.byte(1) == b'!' => self.skip_line(),
                0xc2..=0xef => {
                    let c = self.text[self.pos..].chars().next().unwrap_or('a');
                    match c {
                        '\u{2028}' | '\u{2029}' => newline = true,
                        '\u{feff}'
                        | '\u{a0}'
                        | '\u{1680}'
                        | '\u{2000}'..='\u{200a}'
                        | '\u{202f}'
                        | '\u{205f}'
                        | '\u{3000}' => {}
                        _ => return Ok(newline),
                    }
                    self.pos += c.len_utf8();
                }
                _ => return Ok(newline),
            }
        }
    }

    fn skip_line(&mut self) {
        while let Some(&byte) = self.src.get(self.pos) {
            if byte == b'\n' || byte == b'\r' || self.at_wide_line_end(self.pos) {
                return;
            }
            self.pos += 1;
        }
    }

    /// Skips `/* … */`; says whether a line ended inside.
    fn skip_block_comment(&mut self) -> Parsed<bool> {
        let start = self.pos;
        self.pos += 2;
        let mut newline = false;
        loop {
            match self.src.get(self.pos) {
                None => return self.fail_at(start, start + 2, "this comment is not closed with `*/`"),
                Some(b'*') if self.byte(self.pos + 1) == b'/' => {
                    self.pos += 2;
                    return Ok(newline);
                }
                Some(b'\n' | b'\r') => newline = true,
                Some(0xe2) => newline |= self.at_wide_line_end(self.pos),
                Some(_) => {}
            }
            self.pos += 1;
        }
    }

    /// Whether U+2028 or U+2029 is at this byte.
    pub(super) fn at_wide_line_end(&self, at: usize) -> bool {
        self.byte(at) == 0xe2 && self.byte(at + 1) == 0x80 && matches!(self.byte(at + 2), 0xa8 | 0xa9)
    }

    fn at_name_start(&self) -> bool {
        let first = self.byte(self.pos);
        if first < 0x80 {
            return first == b'\\' || first == b'$' || first == b'_' || first.is_ascii_alphabetic();
        }
        self.text[self.pos..].chars().next().is_some_and(is_id_start)
    }

    /// A name or word from here; a private name's token starts one byte before.
    fn scan_name(&mut self, token: &mut Token) -> Parsed<()> {
        let start = token.start as usize;
        while CONTINUES[usize::from(self.byte(self.pos))] {
            self.pos += 1;
        }
        let stop = self.byte(self.pos);
        if stop != b'\\' && stop < 0x80 {
            token.atom = self.program.texts.latin1(&self.src[start..self.pos]);
        } else {
            self.scan_wide_name(token, start)?;
        }
        // A reserved word with an escape in it is no keyword, and no name either: the parser asks `word_kind` again.
        token.kind = if token.escaped { T::Ident } else { word_kind(token.atom) };
        Ok(())
    }

    #[cold]
    fn scan_wide_name(&mut self, token: &mut Token, start: usize) -> Parsed<()> {
        let mut name = String::from(&self.text[start..self.pos]);
        let mut at_start = self.pos == start || (self.byte(start) == b'#' && self.pos == start + 1);
        loop {
            let from = self.pos;
            let c = if self.byte(from) == b'\\' {
                token.escaped = true;
                if self.byte(from + 1) != b'u' {
                    return self.fail_at(from, from + 1, "expected `\\u` in a name");
                }
                self.pos += 2;
                let code = self.unicode_escape(from)?;
                match char::from_u32(code) {
                    Some(c) if if at_start { is_id_start(c) } else { is_id_continue(c) } => c,
                    _ => return self.fail_at(from, self.pos, "this escape is not a letter of a name"),
                }
            } else {
                match self.text[from..].chars().next() {
                    Some(c) if if at_start { is_id_start(c) } else { is_id_continue(c) } => {
                        self.pos += c.len_utf8();
                        c
                    }
                    _ => break,
                }
            };
            name.push(c);
            at_start = false;
        }
        token.atom = self.program.texts.intern(&name);
        Ok(())
    }

    #[rustfmt::skip]
    fn punctuator(&self, first: u8) -> (T, usize) {
        let [b, c, d] = [1, 2, 3].map(|i| self.byte(self.pos + i));
        match first {
            b'{' => (T::BraceOpen, 1), b'}' => (T::BraceClose, 1),
            b'(' => (T::ParenOpen, 1), b')' => (T::ParenClose, 1),
            b'[' => (T::BracketOpen, 1), b']' => (T::BracketClose, 1),
            b';' => (T::Semicolon, 1), b',' => (T::Comma, 1), b':' => (T::Colon, 1), b'~' => (T::Tilde, 1),
            b'.' => if b == b'.' && c == b'.' { (T::Ellipsis, 3) } else { (T::Dot, 1) },
            b'?' => match (b, c) {
                (b'?', b'=') => (T::NullishAssign, 3),
                (b'?', _) => (T::Nullish, 2),
                (b'.', digit) if !digit.is_ascii_digit() => (T::QuestionDot, 2),
                _ => (T::Question, 1),
            },
            b'=' => match (b, c) {
                (b'=', b'=') => (T::StrictEqual, 3),
                (b'=', _) => (T::Equal, 2),
                (b'>', _) => (T::Arrow, 2),
                _ => (T::Assign, 1),
            },
            b'!' => match (b, c) {
                (b'=', b'=') => (T::StrictNotEqual, 3),
                (b'=', _) => (T::NotEqual, 2),
                _ => (T::Not, 1),
            },
            b'<' => match (b, c) {
                (b'<', b'=') => (T::ShiftLeftAssign, 3),
                (b'<', _) => (T::ShiftLeft, 2),
                (b'=', _) => (T::LessEqual, 2),
                _ => (T::Less, 1),
            },
            b'>' => match (b, c, d) {
                (b'>', b'>', b'=') => (T::ShiftRightUnsignedAssign, 4),
                (b'>', b'>', _) => (T::ShiftRightUnsigned, 3),
                (b'>', b'=', _) => (T::ShiftRightAssign, 3),
                (b'>', _, _) => (T::ShiftRight, 2),
                (b'=', _, _) => (T::GreaterEqual, 2),
                _ => (T::Greater, 1),
            },
            b'+' => match b { b'+' => (T::PlusPlus, 2), b'=' => (T::PlusAssign, 2), _ => (T::Plus, 1) },
            b'-' => match b { b'-' => (T::MinusMinus, 2), b'=' => (T::MinusAssign, 2), _ => (T::Minus, 1) },
            b'*' => match (b, c) {
                (b'*', b'=') => (T::StarStarAssign, 3),
                (b'*', _) => (T::StarStar, 2),
                (b'=', _) => (T::StarAssign, 2),
                _ => (T::Star, 1),
            },
            b'/' => if b == b'=' { (T::SlashAssign, 2) } else { (T::Slash, 1) },
            b'%' => if b == b'=' { (T::PercentAssign, 2) } else { (T::Percent, 1) },
            b'&' => match (b, c) {
                (b'&', b'=') => (T::AndAndAssign, 3),
                (b'&', _) => (T::AndAnd, 2),
                (b'=', _) => (T::AndAssign, 2),
                _ => (T::And, 1),
            },
            b'|' => match (b, c) {
                (b'|', b'=') => (T::OrOrAssign, 3),
                (b'|', _) => (T::OrOr, 2),
                (b'=', _) => (T::OrAssign, 2),
                _ => (T::Or, 1),
            },
            // Only `^` is left of the class.
            _ => if b == b'=' { (T::CaretAssign, 2) } else { (T::Caret, 1) },
        }
    }
}

/// How a token begins.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Name,
    Digit,
    Quote,
    Punctuation,
    Hash,
    Other,
}

static CLASS: [Class; 256] = {
    let mut table = [Class::Other; 256];
    let mut i = 0;
    while i < 256 {
        table[i] = match i as u8 {
            b'a'..=b'z' | b'A'..=b'Z' | b'$' | b'_' => Class::Name,
            b'0'..=b'9' => Class::Digit,
            b'"' | b'\'' => Class::Quote,
            b'{' | b'}' | b'(' | b')' | b'[' | b']' | b';' | b',' | b':' | b'~' | b'.' | b'?' | b'='
            | b'!' | b'<' | b'>' | b'+' | b'-' | b'*' | b'/' | b'%' | b'&' | b'|' | b'^' | b'`' => {
                Class::Punctuation
            }
            b'#' => Class::Hash,
            _ => Class::Other,
        };
        i += 1;
    }
    table
};

static CONTINUES: [bool; 256] = {
    let mut table = [false; 256];
    let mut i = 0;
    while i < 256 {
        table[i] = matches!(i as u8, b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'$' | b'_');
        i += 1;
    }
    table
};

pub(super) fn is_id_start(c: char) -> bool {
    match c {
        '$' | '_' => true,
        _ if c.is_ascii() => c.is_ascii_alphabetic(),
        '\u{0e33}' | '\u{0eb3}' | '\u{ff9e}' | '\u{ff9f}' => true,
        _ => unicode_ident::is_xid_start(c) || is_id_but_not_xid(c),
    }
}

pub(super) fn is_id_continue(c: char) -> bool {
    match c {
        '$' | '_' | '\u{200c}' | '\u{200d}' => true,
        _ if c.is_ascii() => c.is_ascii_alphanumeric(),
        _ => unicode_ident::is_xid_continue(c) || is_id_but_not_xid(c),
    }
}

/// The language uses ID_Start and ID_Continue; the tables at hand are closed under normalisation and lack these.
fn is_id_but_not_xid(c: char) -> bool {
    matches!(
        c,
        '\u{37a}' | '\u{309b}' | '\u{309c}' | '\u{fc5e}'
            ..='\u{fc63}'
                | '\u{fdfa}'
                | '\u{fdfb}'
                | '\u{fe70}'
                | '\u{fe72}'
                | '\u{fe74}'
                | '\u{fe76}'
                | '\u{fe78}'
                | '\u{fe7a}'
                | '\u{fe7c}'
                | '\u{fe7e}'
    )
}
