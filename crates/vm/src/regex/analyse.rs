//! What the compiler wants to know about each node: what it can begin with and how short it can be.

use super::ast::{Ast, Direction, Lines, Node, Wanted};
use super::program::First;
use super::set::CodeSet;

/// Facts about one node, read forward.
#[derive(Clone, Copy, Debug)]
pub(super) struct Facts {
    /// What the next unit can be; complete only if not `transparent`.
    pub(super) first: First,
    /// May it succeed and leave the next unit to whatever follows?
    pub(super) transparent: bool,
    /// The fewest units it reads; zero means that a round of a loop can be empty.
    pub(super) min_len: u32,
    /// Does it never read anything?
    pub(super) empty: bool,
}

/// Facts about every node, by node number. Children come before parents, so one pass is enough.
pub(super) fn analyse(ast: &Ast) -> Vec<Facts> {
    let mut all: Vec<Facts> = Vec::with_capacity(ast.nodes.len());
    for &node in &ast.nodes {
        let facts = match node {
            // Like `$`, a lookahead that must match decides about the next unit although it reads nothing.
            Node::Look { body, direction: Direction::Forward, wanted: Wanted::Match } => {
                let body = all[body.0 as usize];
                if body.transparent {
                    CLEAR
                } else {
                    Facts { first: body.first, transparent: false, ..CLEAR }
                }
            }
            Node::Empty | Node::Look { .. } | Node::Start(_) | Node::Word { .. } => CLEAR,
            Node::Char(point) => {
                Facts { first: first_of(&CodeSet::one(point)), transparent: false, min_len: 1, empty: false }
            }
            Node::Set(id) => {
                Facts { first: first_of(ast.set(id)), transparent: false, min_len: 1, empty: false }
            }
            Node::Concat(kids) => {
                let mut facts = CLEAR;
                for kid in ast.kids(kids) {
                    let kid = all[kid.0 as usize];
                    if facts.transparent {
                        facts.first = facts.first.union(&kid.first);
                        facts.transparent = kid.transparent;
                    }
                    facts.min_len = facts.min_len.saturating_add(kid.min_len);
                    facts.empty &= kid.empty;
                }
                facts
            }
            Node::Alt(kids) => {
                let mut facts =
                    Facts { first: First::NOTHING, transparent: false, min_len: u32::MAX, empty: true };
                for kid in ast.kids(kids) {
                    let kid = all[kid.0 as usize];
                    facts.first = facts.first.union(&kid.first);
                    facts.transparent |= kid.transparent;
                    facts.min_len = facts.min_len.min(kid.min_len);
                    facts.empty &= kid.empty;
                }
                facts
            }
            Node::Capture { body, .. } => all[body.0 as usize],
            Node::Repeat { body, min, max, .. } => {
                let body = all[body.0 as usize];
                Facts {
                    first: if max == 0 { First::NOTHING } else { body.first },
                    transparent: body.transparent || min == 0,
                    min_len: body.min_len.saturating_mul(min),
                    empty: body.empty || max == 0,
                }
            }
            Node::BackRef { .. } | Node::NamedRef { .. } => {
                Facts { first: First::ANYTHING, transparent: false, min_len: 0, empty: false }
            }
            // There must be no next unit.
            Node::End(Lines::One) => {
                Facts { first: First { end: true, ..First::NOTHING }, transparent: false, ..CLEAR }
            }
            Node::End(Lines::Many) => {
                let mut first = First { end: true, ..First::NOTHING };
                for newline in [0x0a, 0x0d, 0x2028, 0x2029] {
                    first.insert(newline);
                }
                Facts { first, transparent: false, ..CLEAR }
            }
        };
        all.push(facts);
    }
    all
}

/// Reads nothing and promises nothing.
const CLEAR: Facts = Facts { first: First::NOTHING, transparent: true, min_len: 0, empty: true };

/// What a member of the set begins with: above the first plane, the first unit of its pair.
pub(super) fn first_of(set: &CodeSet) -> First {
    let mut first = First::NOTHING;
    for &(low, high) in set.ranges() {
        insert_range(&mut first, low, high.min(0xffff));
        if high > 0xffff {
            let lead = |point: u32| 0xd800 + ((point - 0x1_0000) >> 10);
            insert_range(&mut first, lead(low.max(0x1_0000)), lead(high));
        }
    }
    first
}

fn insert_range(first: &mut First, low: u32, high: u32) {
    for unit in low..=high.min(255) {
        first.insert(unit);
    }
    let low = low.max(256);
    if low <= high && high - low >= 63 {
        first.high = u64::MAX;
    } else {
        for unit in low..=high {
            first.insert(unit);
        }
    }
}
