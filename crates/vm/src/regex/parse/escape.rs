//! What a backslash means, outside and inside classes.

use super::{Parser, Result, Term, digits, join, spaces, word_chars};
use crate::regex::ast::{Node, Wanted};
use crate::regex::flags::Flags;
use crate::regex::set::{ClassSet, CodeSet};

/// Where an escape stands; classes have rules of their own.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Atom,
    Class,
    ClassOfSets,
}

/// What an escape for a set of characters stands for.
pub(super) struct Escaped {
    pub(super) set: ClassSet,
    /// By the grammar, not by the contents: an early error asks.
    pub(super) may_hold_strings: bool,
}

impl Parser<'_> {
    /// An escape where a term may stand; the cursor is on the backslash.
    pub(super) fn atom_escape(&mut self) -> Result<Term> {
        let at = self.pos;
        let before = self.ast.groups;
        self.pos += 1;
        let case = self.case();
        let node = match self.peek() {
            None => return Err(self.error_at("\\ at end of pattern", at)),
            Some(b'b') => {
                self.pos += 1;
                return Ok(Term::Assertion(self.ast.add(Node::Word { wanted: Wanted::Match, case })));
            }
            Some(b'B') => {
                self.pos += 1;
                return Ok(Term::Assertion(self.ast.add(Node::Word { wanted: Wanted::NoMatch, case })));
            }
            Some(b'1'..=b'9') => match self.back_reference()? {
                Some(group) => self.ast.add(Node::BackRef { group, case }),
                None => {
                    let point = self.character_escape(Place::Atom)?;
                    self.char_node(point)?
                }
            },
            Some(b'k') if self.named => {
                self.pos += 1;
                if !self.eat(b'<') {
                    return Err(self.error_at("invalid named reference", at));
                }
                let name = self.group_name()?;
                let name = self.reference(name, at)?;
                self.ast.add(Node::NamedRef { name, case })
            }
            Some(_) => match self.set_escape()? {
                Some(escaped) => self.class_set_node(escaped.set)?,
                None => {
                    let point = self.character_escape(Place::Atom)?;
                    self.char_node(point)?
                }
            },
        };
        Ok(Term::Atom(node, before))
    }

    /// `\d \D \s \S \w \W`, and `\p{…} \P{…}` under `u` and `v`; the cursor is after the backslash.
    pub(super) fn set_escape(&mut self) -> Result<Option<Escaped>> {
        let set = match self.peek() {
            Some(b'd') => digits(),
            Some(b'D') => digits().complement(),
            Some(b's') => spaces(),
            Some(b'S') => spaces().complement(),
            Some(b'w') => self.word_set(),
            Some(b'W') => self.word_set().complement(),
            Some(b'p' | b'P') if self.unicode => return self.property_escape().map(Some),
            Some(_) | None => return Ok(None),
        };
        self.pos += 1;
        Ok(Some(Escaped { set: ClassSet::of_chars(set), may_hold_strings: false }))
    }

    /// The characters of words: ignoring case under `u` and `v`, two more letters are among them.
    pub(super) fn word_set(&self) -> CodeSet {
        let basic = word_chars();
        if self.unicode && self.mods.has(Flags::IGNORE_CASE) {
            basic.close_over_case(self.case_map())
        } else {
            basic
        }
    }

    /// An escape for one character; the cursor is after the backslash.
    pub(super) fn character_escape(&mut self, place: Place) -> Result<u32> {
        let at = self.pos;
        let Some(byte) = self.peek() else { return Err(self.error("\\ at end of pattern")) };
        self.pos += 1;
        let point = match byte {
            b'f' => 0x0c,
            b'n' => 0x0a,
            b'r' => 0x0d,
            b't' => 0x09,
            b'v' => 0x0b,
            b'c' => match self.peek() {
                Some(letter) if letter.is_ascii_alphabetic() => {
                    self.pos += 1;
                    u32::from(letter % 32)
                }
                Some(other)
                    if !self.unicode
                        && place == Place::Class
                        && (other.is_ascii_digit() || other == b'_') =>
                {
                    self.pos += 1;
                    u32::from(other % 32)
                }
                Some(_) | None if self.unicode => return Err(self.error_at("invalid unicode escape", at)),
                Some(_) | None => {
                    // Not an escape at all: the backslash is itself and the `c` comes next.
                    self.pos = at;
                    u32::from(b'\\')
                }
            },
            b'0'..=b'9' if self.unicode => {
                if byte != b'0' || matches!(self.peek(), Some(b'0'..=b'9')) {
                    return Err(self.error_at("invalid decimal escape", at));
                }
                0
            }
            b'0'..=b'7' => self.octal(byte),
            b'x' => match self.hex(2) {
                Some(value) => value,
                None if self.unicode => return Err(self.error_at("invalid escape", at)),
                None => u32::from(b'x'),
            },
            b'u' => match self.unicode_escape() {
                Some(value) => value,
                None if self.unicode => return Err(self.error_at("invalid unicode escape", at)),
                None => u32::from(b'u'),
            },
            b'k' if self.named => return Err(self.error_at("invalid escape", at)),
            _ if self.unicode => {
                let allowed = b"^$\\.*+?()[]{}|/".contains(&byte)
                    || (place == Place::Class && byte == b'-')
                    || (place == Place::ClassOfSets && b"&-!#%,:;<=>@`~".contains(&byte));
                if !allowed {
                    return Err(self.error_at("invalid escape", at));
                }
                u32::from(byte)
            }
            _ => {
                self.pos = at;
                return self.next_unit().ok_or_else(|| self.error_at("\\ at end of pattern", at));
            }
        };
        Ok(point)
    }

    /// After the `u`: `XXXX`, a joined pair of them, or `{X…}`, the last two only under `u` and `v`.
    pub(super) fn unicode_escape(&mut self) -> Option<u32> {
        if self.unicode { self.code_point_escape() } else { self.hex(4) }
    }

    /// The same with all forms allowed, as in group names. Nothing is consumed if it is none of them.
    pub(super) fn code_point_escape(&mut self) -> Option<u32> {
        let at = self.pos;
        if self.eat(b'{') {
            let mut value = None;
            while let Some(digit) = self.peek().and_then(|byte| char::from(byte).to_digit(16)) {
                value = Some(value.unwrap_or(0u32).saturating_mul(16).saturating_add(digit));
                self.pos += 1;
            }
            let value = value.filter(|&value| value <= 0x10_ffff);
            if value.is_none() || !self.eat(b'}') {
                self.pos = at;
                return None;
            }
            return value;
        }
        let first = self.hex(4)?;
        let after = self.pos;
        if (0xd800..=0xdbff).contains(&first)
            && self.eat(b'\\')
            && self.eat(b'u')
            && let Some(second @ 0xdc00..=0xdfff) = self.hex(4)
        {
            return Some(join(first, second));
        }
        self.pos = after;
        Some(first)
    }

    fn hex(&mut self, digits: usize) -> Option<u32> {
        let mut value = 0;
        for offset in 0..digits {
            value = value * 16 + self.peek_at(offset).and_then(|byte| char::from(byte).to_digit(16))?;
        }
        self.pos += digits;
        Some(value)
    }

    /// Up to three octal digits, as long as they stay below 256; the first is already read.
    fn octal(&mut self, first: u8) -> u32 {
        let mut value = u32::from(first - b'0');
        for _ in 0..2 {
            match self.peek() {
                Some(digit @ b'0'..=b'7') if value * 8 + u32::from(digit - b'0') <= 0o377 => {
                    value = value * 8 + u32::from(digit - b'0');
                    self.pos += 1;
                }
                Some(_) | None => break,
            }
        }
        value
    }

    /// A group number; without `u` and `v` only if there is such a group.
    fn back_reference(&mut self) -> Result<Option<u32>> {
        let at = self.pos;
        let number = self.decimal().unwrap_or(u64::MAX);
        match u32::try_from(number) {
            Ok(group) if group <= self.groups_in_pattern => Ok(Some(group)),
            Ok(_) | Err(_) if self.unicode => Err(self.error_at("invalid escape", at)),
            Ok(_) | Err(_) => {
                self.pos = at;
                Ok(None)
            }
        }
    }
}
