//! Literals: strings, numbers, templates and regular expressions.

use super::lexer::{is_id_continue, is_id_start};
use super::parser::{Parsed, Parser};
use super::token::{T, Token};
use crate::ast::{Atom, TemplateChunk};

/// How a template chunk ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChunkEnd {
    /// With `${`: an expression follows.
    Substitution,
    /// With the closing backtick.
    Template,
}

/// An escape that is not one.
struct BadEscape {
    start: usize,
    message: &'static str,
}

impl Parser<'_> {
    pub(super) fn scan_string(&mut self, token: &mut Token, quote: u8) -> Parsed<()> {
        let start = self.pos;
        token.kind = T::String;
        self.pos += 1;
        let body = self.pos;
        // Most strings are plain ASCII without escapes and are interned from the source itself.
        while let Some(&byte) = self.src.get(self.pos) {
            if byte == quote {
                token.atom = self.program.texts.latin1(&self.src[body..self.pos]);
                self.pos += 1;
                return Ok(());
            }
            if byte == b'\\' || byte >= 0x80 || byte == b'\n' || byte == b'\r' {
                break;
            }
            self.pos += 1;
        }
        let mut units = std::mem::take(&mut self.units);
        units.clear();
        units.extend(self.src[body..self.pos].iter().map(|&byte| u16::from(byte)));
        loop {
            match self.src.get(self.pos) {
                None | Some(b'\n' | b'\r') => {
                    return self.fail_at(start, self.pos, "this string is not closed on its line");
                }
                Some(&byte) if byte == quote => break,
                Some(b'\\') => {
                    token.escaped = true;
                    if let Err(bad) = self.escape(&mut units) {
                        return self.fail_at(bad.start, self.pos.max(bad.start + 1), bad.message);
                    }
                }
                Some(_) => self.push_char(&mut units),
            }
        }
        self.pos += 1;
        token.atom = self.program.texts.utf16(&units);
        self.units = units;
        Ok(())
    }

    fn push_char(&mut self, units: &mut Vec<u16>) {
        let c = self.text[self.pos..].chars().next().unwrap_or('\0');
        self.pos += c.len_utf8();
        units.extend_from_slice(c.encode_utf16(&mut [0; 2]));
    }

    /// An escape, from its backslash.
    fn escape(&mut self, units: &mut Vec<u16>) -> Result<(), BadEscape> {
        let start = self.pos;
        self.pos += 2;
        let simple = match self.byte(start + 1) {
            b'n' => b'\n',
            b't' => b'\t',
            b'r' => b'\r',
            b'b' => 0x08,
            b'v' => 0x0b,
            b'f' => 0x0c,
            b'0' if !self.byte(start + 2).is_ascii_digit() => 0,
            b'0'..=b'9' => {
                return Err(BadEscape { start, message: "octal escapes do not exist in strict code" });
            }
            b'x' => {
                let digits =
                    [self.byte(self.pos), self.byte(self.pos + 1)].map(|b| char::from(b).to_digit(16));
                let [Some(high), Some(low)] = digits else {
                    return Err(BadEscape { start, message: "expected two hexadecimal digits after `\\x`" });
                };
                self.pos += 2;
                units.push((high * 16 + low) as u16);
                return Ok(());
            }
            b'u' => {
                let message = "expected four hexadecimal digits, or `{…}` up to 10FFFF, after `\\u`";
                let code = self.unicode_digits().ok_or(BadEscape { start, message })?;
                push_code_point(units, code);
                return Ok(());
            }
            b'\r' => {
                if self.byte(self.pos) == b'\n' {
                    self.pos += 1;
                }
                return Ok(());
            }
            b'\n' => return Ok(()),
            _ => {
                self.pos = start + 1;
                if self.at_wide_line_end(self.pos) {
                    self.pos += 3;
                } else if self.pos < self.src.len() {
                    self.push_char(units);
                }
                return Ok(());
            }
        };
        units.push(u16::from(simple));
        Ok(())
    }

    /// A code point after `\u`, in a name.
    pub(super) fn unicode_escape(&mut self, start: usize) -> Parsed<u32> {
        match self.unicode_digits() {
            Some(code) => Ok(code),
            None => self.fail_at(start, self.pos, "expected four hexadecimal digits, or `{…}`, after `\\u`"),
        }
    }

    /// What follows `\u`: four digits or `{…}`.
    fn unicode_digits(&mut self) -> Option<u32> {
        if self.byte(self.pos) != b'{' {
            let mut code = 0;
            for i in 0..4 {
                code = code * 16 + char::from(self.byte(self.pos + i)).to_digit(16)?;
            }
            self.pos += 4;
            return Some(code);
        }
        let mut at = self.pos + 1;
        let mut code = 0;
        while self.byte(at) != b'}' || at == self.pos + 1 {
            code = code * 16 + char::from(self.byte(at)).to_digit(16)?;
            if code > 0x0010_ffff {
                return None;
            }
            at += 1;
        }
        self.pos = at + 1;
        Some(code)
    }

    /// A template chunk, from just after the opening backtick or closing brace.
    pub(super) fn scan_chunk(&mut self, start: usize) -> Parsed<(TemplateChunk, ChunkEnd)> {
        let mut cooked = std::mem::take(&mut self.units);
        cooked.clear();
        let mut raw: Vec<u16> = Vec::new();
        let mut bad = None;
        let end = loop {
            let from = self.pos;
            match self.src.get(from) {
                None => return self.fail_at(start, start + 1, "this template is not closed with a backtick"),
                Some(b'`') => {
                    self.pos += 1;
                    break ChunkEnd::Template;
                }
                Some(b'$') if self.byte(from + 1) == b'{' => {
                    self.pos += 2;
                    break ChunkEnd::Substitution;
                }
                Some(b'\\') => {
                    if let Err(problem) = self.escape(&mut cooked) {
                        // The rest of the malformed escape is ordinary text; do not swallow the chunk's end with it.
                        self.pos = problem.start + 1;
                        if self.pos < self.src.len() {
                            self.push_char(&mut cooked);
                        }
                        bad.get_or_insert(problem);
                    }
                    push_raw(&mut raw, &self.text[from..self.pos]);
                }
                Some(b'\r') => {
                    self.pos += if self.byte(from + 1) == b'\n' { 2 } else { 1 };
                    cooked.push(u16::from(b'\n'));
                    raw.push(u16::from(b'\n'));
                }
                Some(_) => {
                    self.push_char(&mut cooked);
                    raw.extend(self.text[from..self.pos].encode_utf16());
                }
            }
        };
        if let Some(bad) = &bad
            && self.bad_template_escape.is_none()
        {
            self.bad_template_escape = Some((bad.start as u32, bad.message));
        }
        let raw = self.program.texts.utf16(&raw);
        let cooked_atom = if bad.is_some() { None } else { Some(self.program.texts.utf16(&cooked)) };
        self.units = cooked;
        Ok((TemplateChunk { cooked: cooked_atom, raw }, end))
    }

    /// A regular expression from its slash, which is the current token. Answers pattern and flags.
    pub(super) fn scan_regex(&mut self) -> Parsed<(Atom, Atom)> {
        let start = self.tok.start as usize;
        let mut at = start + 1;
        let mut in_class = false;
        loop {
            match self.src.get(at) {
                None | Some(b'\n' | b'\r') => {
                    return self.fail_at(start, at, "this regular expression is not closed with `/`");
                }
                Some(0xe2) if self.at_wide_line_end(at) => {
                    return self.fail_at(start, at, "this regular expression is not closed with `/`");
                }
                // What is escaped is looked at next time round unless it could be taken for a delimiter.
                Some(b'\\') if matches!(self.byte(at + 1), b'/' | b'\\' | b'[' | b']') => at += 1,
                Some(b'[') => in_class = true,
                Some(b']') => in_class = false,
                Some(b'/') if !in_class => break,
                Some(_) => {}
            }
            at += 1;
        }
        let pattern = self.program.texts.intern(&self.text[start + 1..at]);
        self.pos = at + 1;
        let flags_at = self.pos;
        while let Some(c) = self.text[self.pos..].chars().next()
            && is_id_continue(c)
        {
            self.pos += c.len_utf8();
        }
        let flags = &self.text[flags_at..self.pos];
        if self.byte(self.pos) == b'\\' {
            return self.fail_at(self.pos, self.pos + 1, "regular expression flags cannot be escaped");
        }
        for (i, flag) in flags.char_indices() {
            if !"dgimsuvy".contains(flag) {
                return self.fail_at(
                    flags_at,
                    self.pos,
                    &format!("`{flag}` is not a regular expression flag"),
                );
            }
            if flags[..i].contains(flag) {
                return self.fail_at(flags_at, self.pos, &format!("the flag `{flag}` is given twice"));
            }
        }
        if flags.contains('u') && flags.contains('v') {
            return self.fail_at(flags_at, self.pos, "the flags `u` and `v` exclude each other");
        }
        let flags = self.program.texts.intern(flags);
        self.tok.end = self.pos as u32;
        Ok((pattern, flags))
    }

    pub(super) fn scan_number(&mut self, token: &mut Token) -> Parsed<()> {
        let start = self.pos;
        token.kind = T::Number;
        let radix = match (self.byte(start), self.byte(start + 1) | 0x20) {
            (b'0', b'x') => 16,
            (b'0', b'o') => 8,
            (b'0', b'b') => 2,
            _ => 10,
        };
        if radix == 10 {
            self.scan_decimal(token, start)?;
        } else {
            self.pos += 2;
            self.digits(radix)?;
            if self.pos == start + 2 {
                return self.fail_at(start, self.pos, &format!("expected digits of base {radix}"));
            }
            let text: String = self.text[start..self.pos].chars().filter(|&c| c != '_').collect();
            if self.byte(self.pos) == b'n' {
                self.pos += 1;
                token.kind = T::BigInt;
                token.atom = self.program.texts.latin1(text.to_ascii_lowercase().as_bytes());
            } else {
                token.number = binary_value(&text.as_bytes()[2..], radix);
            }
        }
        let next = self.text[self.pos..].chars().next();
        if next.is_some_and(|c| c.is_ascii_digit() || c == '\\' || is_id_start(c)) {
            return self.fail_at(start, self.pos + 1, "a number must not run into a name or another number");
        }
        Ok(())
    }

    fn scan_decimal(&mut self, token: &mut Token, start: usize) -> Parsed<()> {
        self.digits(10)?;
        let int_len = self.pos - start;
        if int_len > 1 && self.byte(start) == b'0' {
            return self.fail_at(
                start,
                self.pos,
                "numbers with a leading zero do not exist in strict code; octal is `0o…`",
            );
        }
        match self.byte(self.pos) {
            b'n' if int_len > 0 => {
                let text: Vec<u8> =
                    self.src[start..self.pos].iter().copied().filter(|&b| b != b'_').collect();
                self.pos += 1;
                token.kind = T::BigInt;
                token.atom = self.program.texts.latin1(&text);
                return Ok(());
            }
            b'.' | b'e' | b'E' => {}
            _ if int_len <= 15 && !self.src[start..self.pos].contains(&b'_') => {
                let value = self.src[start..self.pos].iter().fold(0u64, |v, b| v * 10 + u64::from(b - b'0'));
                token.number = value as f64;
                return Ok(());
            }
            _ => {}
        }
        if self.byte(self.pos) == b'.' {
            self.pos += 1;
            if self.byte(self.pos) == b'_' {
                return self.fail_at(self.pos, self.pos + 1, "a separator must stand between digits");
            }
            self.digits(10)?;
        }
        if self.byte(self.pos) | 0x20 == b'e' {
            self.pos += 1;
            if matches!(self.byte(self.pos), b'+' | b'-') {
                self.pos += 1;
            }
            let from = self.pos;
            self.digits(10)?;
            if self.pos == from {
                return self.fail_at(start, self.pos, "expected digits after the exponent");
            }
        }
        let slice = &self.text[start..self.pos];
        let parsed = if slice.contains('_') { slice.replace('_', "").parse() } else { slice.parse() };
        // What was scanned is digits with at most one point and one exponent: always a float to Rust as well.
        token.number = parsed.unwrap_or(f64::NAN);
        Ok(())
    }

    /// Digits of the radix with separators between them.
    fn digits(&mut self, radix: u32) -> Parsed<()> {
        let start = self.pos;
        loop {
            let byte = self.byte(self.pos);
            if byte == b'_' {
                let before = self.pos > start && self.byte(self.pos - 1) != b'_';
                if !before || !char::from(self.byte(self.pos + 1)).is_digit(radix) {
                    return self.fail_at(self.pos, self.pos + 1, "a separator must stand between digits");
                }
            } else if !char::from(byte).is_digit(radix) {
                return Ok(());
            }
            self.pos += 1;
        }
    }
}

fn push_code_point(units: &mut Vec<u16>, code: u32) {
    match char::from_u32(code) {
        Some(c) => units.extend_from_slice(c.encode_utf16(&mut [0; 2])),
        // A surrogate: fits one unit.
        None => units.push(code as u16),
    }
}

/// Template text as written, with line ends normalised.
fn push_raw(raw: &mut Vec<u16>, text: &str) {
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if c == '\r' {
            chars.next_if_eq(&'\n');
            raw.push(u16::from(b'\n'));
        } else {
            raw.extend_from_slice(c.encode_utf16(&mut [0; 2]));
        }
    }
}

/// The value of digits in base 2, 8 or 16, correctly rounded: sixty-four bits and a sticky one decide.
fn binary_value(digits: &[u8], radix: u32) -> f64 {
    let bits = radix.trailing_zeros();
    let mut mantissa = 0u64;
    let mut exponent = 0i32;
    let mut sticky = false;
    for &digit in digits {
        let value = u64::from(char::from(digit).to_digit(radix).unwrap_or(0));
        for i in (0..bits).rev() {
            let bit = (value >> i) & 1;
            if mantissa >> 63 == 0 {
                mantissa = mantissa << 1 | bit;
            } else {
                exponent = exponent.saturating_add(1);
                sticky |= bit == 1;
            }
        }
    }
    let rounded = (mantissa | u64::from(sticky)) as f64;
    if exponent > 1024 { f64::INFINITY } else { rounded * 2f64.powi(exponent) }
}
