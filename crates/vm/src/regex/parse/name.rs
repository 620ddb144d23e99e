//! Names of groups: their spelling, and who may share one.

use super::{Parser, Result};
use crate::regex::ast::Name;
use crate::regex::set::CodeSet;
use crate::regex::tables;
use std::sync::OnceLock;

/// How many groups of one pattern may share a name.
const MAX_SHARING: usize = 32;

impl Parser<'_> {
    /// Reads `name>`; the `<` is behind the cursor.
    pub(super) fn group_name(&mut self) -> Result<String> {
        let at = self.pos;
        let mut name = String::new();
        loop {
            if self.peek() == Some(b'>') && !name.is_empty() {
                self.pos += 1;
                return Ok(name);
            }
            let point = match self.next_code_point() {
                Some(0x5c) if self.eat(b'u') => self.code_point_escape(),
                other => other,
            };
            let allowed = |&c: &char| if name.is_empty() { starts_name(c) } else { continues_name(c) };
            match point.and_then(char::from_u32).filter(allowed) {
                Some(c) => name.push(c),
                None => return Err(self.error_at("invalid capture group name", at)),
            }
        }
    }

    /// Gives `group` its name. Two groups may share one only if they can never take part in the same match.
    pub(super) fn name_group(&mut self, name: String, group: u32, way: u32, at: usize) -> Result<()> {
        let id = self.name_id(name);
        let carriers = self.carriers.entry(id).or_default();
        if carriers.len() >= MAX_SHARING {
            return Err(self.error_at("duplicate capture group name", at));
        }
        let earlier = std::mem::take(carriers);
        for &other in &earlier {
            if !self.exclude_each_other(other, way)? {
                return Err(self.error_at("duplicate capture group name", at));
            }
        }
        let carriers = self.carriers.entry(id).or_default();
        *carriers = earlier;
        carriers.push(way);
        self.ast.names[id as usize].groups.push(group);
        Ok(())
    }

    /// A reference to a name, which may be given later in the pattern.
    pub(super) fn reference(&mut self, name: String, at: usize) -> Result<u32> {
        let id = self.name_id(name);
        self.references.push((id, at));
        Ok(id)
    }

    /// Every referenced name must be some group's, and the list of names holds only those.
    pub(super) fn check_references(&mut self) -> Result<()> {
        for &(id, at) in &self.references {
            if self.ast.names[id as usize].groups.is_empty() {
                return Err(self.error_at("invalid named capture referenced", at));
            }
        }
        Ok(())
    }

    fn name_id(&mut self, name: String) -> u32 {
        let names = &mut self.ast.names;
        *self.names.entry(name).or_insert_with_key(|name| {
            names.push(Name { text: name.clone(), groups: Vec::new() });
            names.len() as u32 - 1
        })
    }

    /// Do the two alternatives lie in different branches of one disjunction?
    fn exclude_each_other(&mut self, mut a: u32, mut b: u32) -> Result<bool> {
        loop {
            if a == b {
                return Ok(false);
            }
            let (way_a, way_b) = (self.ways[a as usize], self.ways[b as usize]);
            if way_a.disjunction == way_b.disjunction {
                return Ok(true);
            }
            self.spend(1)?;
            if way_a.depth >= way_b.depth {
                a = way_a.parent;
            } else {
                b = way_b.parent;
            }
        }
    }
}

fn starts_name(c: char) -> bool {
    static STARTS: OnceLock<CodeSet> = OnceLock::new();
    c == '$' || c == '_' || c.is_ascii_alphabetic() || (!c.is_ascii() && has(&STARTS, "ID_Start", c))
}

fn continues_name(c: char) -> bool {
    static CONTINUES: OnceLock<CodeSet> = OnceLock::new();
    starts_name(c)
        || c.is_ascii_digit()
        || c == '\u{200c}'
        || c == '\u{200d}'
        || (!c.is_ascii() && has(&CONTINUES, "ID_Continue", c))
}

fn has(cell: &'static OnceLock<CodeSet>, property: &str, c: char) -> bool {
    cell.get_or_init(|| tables::set(property).unwrap_or_else(CodeSet::empty)).contains(u32::from(c))
}
