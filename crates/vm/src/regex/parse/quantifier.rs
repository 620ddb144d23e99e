//! `*`, `+`, `?` and `{n,m}`: what may follow a term, and what only looks like it.

use super::{Open, Parser, Result, Term};
use crate::regex::ast::{Greed, Node, UNBOUNDED};

impl Parser<'_> {
    /// Reads a quantifier if one follows, and adds the term to its alternative.
    pub(super) fn finish_term(&mut self, open: &mut Open, term: Term) -> Result<()> {
        let (node, before) = match term {
            Term::Assertion(node) => {
                open.terms.push(node);
                return Ok(());
            }
            Term::Atom(node, before) => (node, before),
        };
        let bounds = match self.peek() {
            Some(b'*') => Some((0, UNBOUNDED)),
            Some(b'+') => Some((1, UNBOUNDED)),
            Some(b'?') => Some((0, 1)),
            Some(b'{') => {
                let at = self.pos;
                let braces = self.braces()?;
                if braces.is_none() && self.unicode {
                    return Err(self.error_at("incomplete quantifier", at));
                }
                if braces.is_some() {
                    // `braces` has gone past the closing one; step back so that both kinds end alike.
                    self.pos -= 1;
                }
                braces
            }
            Some(_) | None => None,
        };
        let Some((min, max)) = bounds else {
            open.terms.push(node);
            return Ok(());
        };
        self.pos += 1;
        let greed = if self.eat(b'?') { Greed::Lazy } else { Greed::Greedy };
        let groups = (before, self.ast.groups);
        open.terms.push(self.ast.add(Node::Repeat { body: node, min, max, greed, groups }));
        Ok(())
    }

    /// `{n}`, `{n,}` or `{n,m}`; if it is none of them, nothing is consumed.
    pub(super) fn braces(&mut self) -> Result<Option<(u32, u32)>> {
        let at = self.pos;
        self.pos += 1;
        let bounds = self.brace_bounds();
        match bounds {
            Some((min, max)) if min > max => Err(self.error_at("numbers out of order in {} quantifier", at)),
            Some((min, max)) => {
                // No text is long enough to tell the largest count from no bound at all.
                let clamp = |count: u64| u32::try_from(count).unwrap_or(UNBOUNDED);
                Ok(Some((clamp(min), clamp(max))))
            }
            None => {
                self.pos = at;
                Ok(None)
            }
        }
    }

    fn brace_bounds(&mut self) -> Option<(u64, u64)> {
        let min = self.decimal()?;
        let max = if !self.eat(b',') {
            min
        } else if self.peek() == Some(b'}') {
            u64::MAX
        } else {
            self.decimal()?
        };
        self.eat(b'}').then_some((min, max))
    }

    pub(super) fn decimal(&mut self) -> Option<u64> {
        let mut value = None;
        while let Some(digit @ b'0'..=b'9') = self.peek() {
            value = Some(value.unwrap_or(0u64).saturating_mul(10).saturating_add(u64::from(digit - b'0')));
            self.pos += 1;
        }
        value
    }
}
