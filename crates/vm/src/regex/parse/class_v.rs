//! `[…]` with the `v` flag: nested classes, `\q{…}`, intersection `&&` and subtraction `--`.
//!
//! Every operand is closed over case at once, so that complement, intersection and subtraction mean what the
//! standard says they mean on folded sets.

use super::escape::Place;
use super::{MAX_NESTING, Parser, Result};
use crate::regex::set::{ClassSet, CodeSet};
use crate::regex::tables::CaseMap;

/// A class that is not closed yet.
struct Frame {
    at: usize,
    negated: bool,
    operator: Operator,
    /// An operator has been read and its right side has not.
    waiting: bool,
    so_far: ClassSet,
    /// Characters of a union, merged when it ends.
    ranges: Vec<(u32, u32)>,
    may_hold_strings: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Operator {
    None,
    Union,
    Intersection,
    Subtraction,
}

enum Operand {
    Char(u32),
    Set { set: ClassSet, may_hold_strings: bool },
}

impl Parser<'_> {
    /// A class; the cursor is on the bracket.
    pub(super) fn class_of_sets(&mut self) -> Result<ClassSet> {
        let mut stack = vec![self.open_class()];
        loop {
            let Some(top) = stack.last_mut() else { return Err(self.error("unterminated character class")) };
            let operand = match self.peek() {
                None => return Err(self.error_at("unterminated character class", top.at)),
                Some(b'[') => {
                    if stack.len() > MAX_NESTING {
                        return Err(self.error("regular expression too large"));
                    }
                    stack.push(self.open_class());
                    continue;
                }
                Some(b']') => {
                    if top.waiting {
                        return Err(self.error("invalid set operation in character class"));
                    }
                    self.pos += 1;
                    let Some(done) = stack.pop() else {
                        return Err(self.error("unterminated character class"));
                    };
                    let may_hold_strings = done.may_hold_strings && !done.negated;
                    let set = self.close_class(done)?;
                    if stack.is_empty() {
                        return Ok(set);
                    }
                    Operand::Set { set, may_hold_strings }
                }
                Some(_) => self.operand()?,
            };
            if let Some(top) = stack.last_mut() {
                self.combine(top, operand)?;
            }
        }
    }

    fn open_class(&mut self) -> Frame {
        let at = self.pos;
        self.pos += 1;
        Frame {
            at,
            negated: self.eat(b'^'),
            operator: Operator::None,
            waiting: false,
            so_far: ClassSet::of_chars(CodeSet::empty()),
            ranges: Vec::new(),
            may_hold_strings: false,
        }
    }

    fn close_class(&mut self, mut frame: Frame) -> Result<ClassSet> {
        if !frame.ranges.is_empty() {
            let chars = self.closed(CodeSet::from_ranges(frame.ranges))?;
            self.spend(frame.so_far.chars.ranges().len())?;
            frame.so_far.union(ClassSet::of_chars(chars));
        }
        if frame.negated {
            if frame.may_hold_strings {
                return Err(self.error_at("negated character class may contain strings", frame.at));
            }
            return Ok(ClassSet::of_chars(frame.so_far.chars.complement()));
        }
        Ok(frame.so_far)
    }

    /// Takes an operand in, and the operator or range sign that may follow it.
    fn combine(&mut self, frame: &mut Frame, operand: Operand) -> Result<()> {
        match frame.operator {
            Operator::Intersection => {
                let (set, strings) = self.as_set(operand)?;
                frame.so_far.intersect(&set);
                frame.may_hold_strings &= strings;
                self.expect_operator(frame, b'&')
            }
            Operator::Subtraction => {
                let (set, _) = self.as_set(operand)?;
                frame.so_far.subtract(&set);
                self.expect_operator(frame, b'-')
            }
            Operator::None if self.doubled(b'&') || self.doubled(b'-') => {
                let byte = self.peek().unwrap_or(b'&');
                frame.operator = if byte == b'&' { Operator::Intersection } else { Operator::Subtraction };
                (frame.so_far, frame.may_hold_strings) = self.as_set(operand)?;
                self.expect_operator(frame, byte)
            }
            Operator::None | Operator::Union => {
                frame.operator = Operator::Union;
                self.add_to_union(frame, operand)
            }
        }
    }

    fn add_to_union(&mut self, frame: &mut Frame, operand: Operand) -> Result<()> {
        match operand {
            Operand::Char(low) if self.peek() == Some(b'-') && !self.doubled(b'-') => {
                let at = self.pos;
                self.pos += 1;
                let high = self.class_set_character()?;
                if low > high {
                    return Err(self.error_at("range out of order in character class", at));
                }
                frame.ranges.push((low, high));
            }
            Operand::Char(point) => frame.ranges.push((point, point)),
            Operand::Set { set, may_hold_strings } => {
                let set = self.settle(set)?;
                self.spend(set.chars.ranges().len() + set.strings.len())?;
                frame.ranges.extend_from_slice(set.chars.ranges());
                frame.so_far.strings.extend(set.strings);
                frame.may_hold_strings |= may_hold_strings;
            }
        }
        Ok(())
    }

    /// After an operand of `&&` or `--`: the same operator again, or the end.
    fn expect_operator(&mut self, frame: &mut Frame, byte: u8) -> Result<()> {
        if self.doubled(byte) {
            self.pos += 2;
            frame.waiting = true;
            if byte == b'&' && self.peek() == Some(b'&') {
                return Err(self.error("invalid character in character class"));
            }
            return Ok(());
        }
        frame.waiting = false;
        match self.peek() {
            Some(b']') | None => Ok(()),
            Some(_) => Err(self.error("invalid set operation in character class")),
        }
    }

    /// A nested class is handled by the caller; this is everything else that may stand in a class.
    fn operand(&mut self) -> Result<Operand> {
        if self.peek() != Some(b'\\') {
            return Ok(Operand::Char(self.class_set_character()?));
        }
        let at = self.pos;
        self.pos += 1;
        if self.peek() == Some(b'q') {
            self.pos += 1;
            return self.string_disjunction(at);
        }
        if let Some(escaped) = self.set_escape()? {
            return Ok(Operand::Set { set: escaped.set, may_hold_strings: escaped.may_hold_strings });
        }
        self.pos = at;
        Ok(Operand::Char(self.class_set_character()?))
    }

    /// `\q{abc|d|}`; the cursor is after the `q`.
    fn string_disjunction(&mut self, at: usize) -> Result<Operand> {
        if !self.eat(b'{') {
            return Err(self.error_at("invalid escape", at));
        }
        let mut strings = vec![Vec::new()];
        loop {
            match self.peek() {
                None => return Err(self.error_at("invalid character class", at)),
                Some(b'}') => break,
                Some(b'|') => {
                    self.pos += 1;
                    strings.push(Vec::new());
                }
                Some(_) => {
                    let point = self.class_set_character()?;
                    if let Some(string) = strings.last_mut() {
                        string.push(point);
                    }
                }
            }
        }
        self.pos += 1;
        let may_hold_strings = strings.iter().any(|string| string.len() != 1);
        Ok(Operand::Set { set: ClassSet::of_strings(strings), may_hold_strings })
    }

    fn class_set_character(&mut self) -> Result<u32> {
        let at = self.pos;
        if self.eat(b'\\') {
            if self.eat(b'b') {
                return Ok(0x08);
            }
            return self.character_escape(Place::ClassOfSets);
        }
        let Some(byte) = self.peek() else { return Err(self.error_at("unterminated character class", at)) };
        let reserved = b"&!#$%*+,.:;<=>?@^`~".contains(&byte) && self.peek_at(1) == Some(byte);
        if reserved || b"()[]{}/-\\|".contains(&byte) {
            return Err(self.error_at("invalid character in character class", at));
        }
        self.next_point().ok_or_else(|| self.error_at("unterminated character class", at))
    }

    fn as_set(&mut self, operand: Operand) -> Result<(ClassSet, bool)> {
        let (set, may_hold_strings) = match operand {
            Operand::Char(point) => (ClassSet::of_chars(CodeSet::one(point)), false),
            Operand::Set { set, may_hold_strings } => (set, may_hold_strings),
        };
        self.spend(set.chars.ranges().len() + set.strings.len())?;
        Ok((self.settle(set)?, may_hold_strings))
    }

    /// Settles case: characters bring their relatives, strings are folded.
    pub(super) fn settle(&mut self, set: ClassSet) -> Result<ClassSet> {
        if !self.ignores_case() {
            return Ok(set);
        }
        let fold = CaseMap::folding();
        let folded = set.strings.iter().map(|string| string.iter().map(|&point| fold.get(point)).collect());
        Ok(ClassSet { strings: folded.collect(), chars: self.closed(set.chars)? })
    }

    fn doubled(&self, byte: u8) -> bool {
        self.peek() == Some(byte) && self.peek_at(1) == Some(byte)
    }
}
