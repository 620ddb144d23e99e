//! `\p{…}` and `\P{…}`: property names and values, exactly as the standard spells them.

use super::escape::Escaped;
use super::{Parser, Result};
use crate::regex::set::{ClassSet, CodeSet};
use crate::regex::tables;

/// What reading one string of a property costs, in ranges.
const STRING_COST: usize = 16;

impl Parser<'_> {
    /// The cursor is on the `p` or `P`.
    pub(super) fn property_escape(&mut self) -> Result<Escaped> {
        let at = self.pos;
        let negated = self.peek() == Some(b'P');
        self.pos += 1;
        let expression =
            self.property_expression().ok_or_else(|| self.error_at("invalid property name", at))?;
        let key = match expression.split_once('=') {
            Some(("General_Category" | "gc", value)) => format!("gc={value}"),
            Some(("Script" | "sc", value)) => format!("sc={value}"),
            Some(("Script_Extensions" | "scx", value)) => format!("scx={value}"),
            Some(_) => return Err(self.error_at("invalid property name", at)),
            None => expression.clone(),
        };
        // A value of General_Category may stand alone.
        let found = tables::set(&key).or_else(|| tables::set(&format!("gc={key}")));
        if let Some(set) = found {
            self.spend(set.ranges().len())?;
            let set = self.complement_if(negated, set)?;
            return Ok(Escaped { set: ClassSet::of_chars(set), may_hold_strings: false });
        }
        match tables::strings(&expression) {
            Some(strings) if self.sets && !negated => {
                self.spend(strings.len() * STRING_COST)?;
                let set = self.settle(ClassSet::of_strings(strings))?;
                Ok(Escaped { set, may_hold_strings: true })
            }
            Some(_) | None => Err(self.error_at("invalid property name", at)),
        }
    }

    /// Under `v`, case is settled before the complement; under `u`, after it.
    fn complement_if(&mut self, negated: bool, set: CodeSet) -> Result<CodeSet> {
        let set = if self.sets { self.closed(set)? } else { set };
        Ok(if negated { set.complement() } else { set })
    }

    /// Reads `{name}` or `{name=value}`; names are letters, digits and `_`.
    fn property_expression(&mut self) -> Option<String> {
        if !self.eat(b'{') {
            return None;
        }
        let mut text = String::new();
        loop {
            match self.peek()? {
                b'}' => break,
                b'=' if !text.contains('=') => text.push('='),
                byte if byte.is_ascii_alphanumeric() || byte == b'_' => text.push(char::from(byte)),
                _ => return None,
            }
            self.pos += 1;
        }
        self.pos += 1;
        Some(text)
    }
}
