//! `[…]` without the `v` flag: characters, ranges and escapes for sets.

use super::escape::Place;
use super::{Parser, Result};
use crate::regex::ast::{Direction, Node, NodeId};
use crate::regex::flags::Flags;
use crate::regex::set::{ClassSet, CodeSet};

/// One member of a class, before it is known whether a range begins with it.
enum Member {
    Char(u32),
    Set(CodeSet),
}

impl Parser<'_> {
    /// A class; the cursor is on the bracket.
    pub(super) fn class(&mut self) -> Result<NodeId> {
        if self.sets {
            let set = self.class_of_sets()?;
            return self.class_set_node(set);
        }
        let at = self.pos;
        self.pos += 1;
        let negated = self.eat(b'^');
        let mut ranges: Vec<(u32, u32)> = Vec::new();
        loop {
            if self.peek().is_none() {
                return Err(self.error_at("unterminated character class", at));
            }
            if self.eat(b']') {
                break;
            }
            let from = self.pos;
            let low = self.class_member()?;
            if self.peek() != Some(b'-') || matches!(self.peek_at(1), Some(b']') | None) {
                self.add_member(&mut ranges, low)?;
                continue;
            }
            self.pos += 1;
            let high = self.class_member()?;
            match (low, high) {
                (Member::Char(low), Member::Char(high)) if low <= high => ranges.push((low, high)),
                (Member::Char(_), Member::Char(_)) => {
                    return Err(self.error_at("range out of order in character class", from));
                }
                _ if self.unicode => return Err(self.error_at("invalid character class", from)),
                (low, high) => {
                    self.add_member(&mut ranges, low)?;
                    ranges.push((u32::from(b'-'), u32::from(b'-')));
                    self.add_member(&mut ranges, high)?;
                }
            }
        }
        self.spend(ranges.len())?;
        let set = self.closed(CodeSet::from_ranges(ranges))?;
        if !negated {
            return self.set_node(set);
        }
        // Case was settled before the complement, as the standard has it: `[^x]` refuses what `x` would match.
        let set = self.ast.add_set(set.complement());
        Ok(self.ast.add(Node::Set(set)))
    }

    fn add_member(&mut self, ranges: &mut Vec<(u32, u32)>, member: Member) -> Result<()> {
        match member {
            Member::Char(point) => ranges.push((point, point)),
            Member::Set(set) => {
                self.spend(set.ranges().len())?;
                ranges.extend_from_slice(set.ranges());
            }
        }
        Ok(())
    }

    fn class_member(&mut self) -> Result<Member> {
        let at = self.pos;
        if !self.eat(b'\\') {
            let point = self.next_point().ok_or_else(|| self.error_at("unterminated character class", at))?;
            return Ok(Member::Char(point));
        }
        if self.eat(b'b') {
            return Ok(Member::Char(0x08));
        }
        Ok(match self.set_escape()? {
            Some(escaped) => Member::Set(escaped.set.chars),
            None => Member::Char(self.character_escape(Place::Class)?),
        })
    }

    /// A class as a node: its strings from long to short, then its characters, then the empty string.
    pub(super) fn class_set_node(&mut self, set: ClassSet) -> Result<NodeId> {
        if set.strings.is_empty() {
            return self.set_node(set.chars);
        }
        let mut strings: Vec<Vec<u32>> = set.strings.into_iter().collect();
        let empty = strings.first().is_some_and(Vec::is_empty);
        strings.retain(|string| !string.is_empty());
        let mut ways = match self.direction {
            // Strings that match at one place are prefixes of each other, so a tree keeps the order.
            Direction::Forward => vec![self.string_tree(&strings)?],
            Direction::Backward => self.string_list(strings)?,
        };
        if !set.chars.is_empty() {
            ways.push(self.set_node(set.chars)?);
        }
        if empty {
            ways.push(self.ast.add(Node::Empty));
        }
        Ok(self.ast.alternatives(&ways))
    }

    pub(super) fn ignores_case(&self) -> bool {
        self.mods.has(Flags::IGNORE_CASE)
    }
}
