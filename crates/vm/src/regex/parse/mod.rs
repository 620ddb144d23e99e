//! Reads a pattern into a tree: the standard's grammar for `u` and `v`, the web's (annex B) otherwise.
//!
//! The parser keeps its open groups and classes on its own stack, so nesting costs memory and not Rust stack.
//! What a pattern may cost is bounded: its length, its nesting and the ranges that its sets expand to.

mod class;
mod class_v;
mod escape;
mod group;
mod name;
mod property;
mod quantifier;
mod strings;

use super::ast::{Ast, Case, Direction, Lines, Node, NodeId, Wanted};
use super::flags::Flags;
use super::set::CodeSet;
use super::tables::CaseMap;
use rustc_hash::FxHashMap;

/// The longest pattern, in units.
pub const MAX_PATTERN: usize = 1 << 24;
/// The most constructs in one pattern.
pub const MAX_NODES: usize = 1 << 18;
/// The deepest nesting of groups and of classes.
pub const MAX_NESTING: usize = 1_000;
/// How many ranges the sets of one pattern may expand to, all together.
const MAX_RANGES: usize = 1 << 21;
/// What bringing in the relatives of a range costs, in ranges.
const CLOSURE_COST: usize = 32;

/// Why a pattern is not one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct SyntaxError {
    /// What is wrong, as a fragment that fits after "invalid regular expression: ".
    pub message: &'static str,
    /// Where, in UTF-16 units from the start of the pattern.
    pub position: usize,
}

/// Parses a whole pattern.
pub(super) fn parse(units: &[u16], flags: Flags) -> Result<Ast, SyntaxError> {
    if units.len() > MAX_PATTERN {
        return Err(SyntaxError { message: "regular expression too large", position: MAX_PATTERN });
    }
    let mut parser = Parser {
        units,
        pos: 0,
        unicode: flags.reads_code_points(),
        sets: flags.has(Flags::UNICODE_SETS),
        mods: flags,
        direction: Direction::Forward,
        ast: Ast::new(),
        named: false,
        groups_in_pattern: 0,
        names: FxHashMap::default(),
        ways: vec![Way { parent: 0, depth: 0, disjunction: 0 }],
        disjunctions: 1,
        carriers: FxHashMap::default(),
        references: Vec::new(),
        closures: FxHashMap::default(),
        expanded: 0,
    };
    parser.survey();
    parser.disjunction()?;
    parser.check_references()?;
    Ok(parser.ast)
}

type Result<T, E = SyntaxError> = std::result::Result<T, E>;

struct Parser<'a> {
    units: &'a [u16],
    pos: usize,
    /// `u` or `v`.
    unicode: bool,
    /// `v`.
    sets: bool,
    /// Only `i`, `m`, `s` are looked at: groups may change those three.
    mods: Flags,
    /// The way in which the innermost lookaround reads.
    direction: Direction,
    ast: Ast,
    /// Does any group have a name? Then `\k` is a reference, even without `u`.
    named: bool,
    /// Captures in the whole pattern, without group 0: tells `\2` from an octal escape.
    groups_in_pattern: u32,
    names: FxHashMap<String, u32>,
    /// Every alternative met, as a tree: two groups may share a name if they can never both take part.
    ways: Vec<Way>,
    disjunctions: u32,
    /// The alternatives in which a name was given, by name.
    carriers: FxHashMap<u32, Vec<u32>>,
    /// Names used by `\\k`, with where.
    references: Vec<(u32, usize)>,
    /// Large sets with what they become when case is ignored.
    closures: FxHashMap<CodeSet, CodeSet>,
    expanded: usize,
}

#[derive(Clone, Copy)]
struct Way {
    parent: u32,
    depth: u32,
    disjunction: u32,
}

/// A group that is not closed yet, and the terms of its alternative so far.
struct Open {
    kind: Group,
    at: usize,
    ways: Vec<NodeId>,
    terms: Vec<NodeId>,
    outer_mods: Flags,
    outer_direction: Direction,
    groups_before: u32,
    way: u32,
    disjunction: u32,
}

#[derive(Clone, Copy)]
enum Group {
    Pattern,
    Plain,
    Capture(u32),
    Look(Direction, Wanted),
}

/// What was read where a term may stand.
enum Term {
    /// May carry a quantifier; the captures before it tell which are inside.
    Atom(NodeId, u32),
    /// May not.
    Assertion(NodeId),
}

impl Parser<'_> {
    fn disjunction(&mut self) -> Result<()> {
        let mut stack = vec![self.open(Group::Pattern, 0, 0, self.mods)?];
        loop {
            let Some(top) = stack.last_mut() else { return Ok(()) };
            let start = self.pos;
            if self.ast.nodes.len() > MAX_NODES {
                return Err(self.error("regular expression too large"));
            }
            match self.peek() {
                None => {
                    if !matches!(top.kind, Group::Pattern) {
                        return Err(SyntaxError { message: "unterminated group", position: top.at });
                    }
                    self.ast.root = self.close(stack.pop());
                    return Ok(());
                }
                Some(b'|') => {
                    self.pos += 1;
                    let terms = std::mem::take(&mut top.terms);
                    let way = self.ast.concat(&terms);
                    top.ways.push(way);
                    top.way = self.new_way(top.way, top.disjunction, SameLevel::Sibling)?;
                }
                Some(b')') => {
                    self.pos += 1;
                    if matches!(top.kind, Group::Pattern) {
                        return Err(self.error_at("unmatched ')'", start));
                    }
                    let (kind, before) = (top.kind, top.groups_before);
                    let body = self.close(stack.pop());
                    let Some(outer) = stack.last_mut() else {
                        return Err(self.error_at("unmatched ')'", start));
                    };
                    let term = match kind {
                        Group::Pattern | Group::Plain => Term::Atom(body, before),
                        Group::Capture(group) => {
                            Term::Atom(self.ast.add(Node::Capture { body, group }), before)
                        }
                        Group::Look(direction, wanted) => {
                            let node = self.ast.add(Node::Look { body, direction, wanted });
                            // Annex B lets lookaheads carry quantifiers.
                            match direction {
                                Direction::Forward if !self.unicode => Term::Atom(node, before),
                                Direction::Forward | Direction::Backward => Term::Assertion(node),
                            }
                        }
                    };
                    self.finish_term(outer, term)?;
                }
                Some(b'(') => {
                    let opened = self.group_opening(top.way)?;
                    if stack.len() > MAX_NESTING {
                        return Err(self.error_at("regular expression too large", start));
                    }
                    stack.push(opened);
                }
                Some(_) => {
                    let term = self.term()?;
                    self.finish_term(top, term)?;
                }
            }
        }
    }

    fn open(&mut self, kind: Group, at: usize, way: u32, outer_mods: Flags) -> Result<Open> {
        let disjunction = self.disjunctions;
        self.disjunctions += 1;
        let way = self.new_way(way, disjunction, SameLevel::Child)?;
        let outer_direction = self.direction;
        if let Group::Look(direction, _) = kind {
            self.direction = direction;
        }
        Ok(Open {
            kind,
            at,
            ways: Vec::new(),
            terms: Vec::new(),
            outer_mods,
            outer_direction,
            groups_before: match kind {
                Group::Capture(group) => group,
                Group::Pattern | Group::Plain | Group::Look(..) => self.ast.groups,
            },
            way,
            disjunction,
        })
    }

    fn close(&mut self, open: Option<Open>) -> NodeId {
        let Some(mut open) = open else { return self.ast.add(Node::Empty) };
        self.mods = open.outer_mods;
        self.direction = open.outer_direction;
        let last = self.ast.concat(&open.terms);
        open.ways.push(last);
        self.ast.alternatives(&open.ways)
    }

    fn new_way(&mut self, from: u32, disjunction: u32, level: SameLevel) -> Result<u32> {
        let beside = self.ways[from as usize];
        let way = match level {
            SameLevel::Sibling => Way { disjunction, ..beside },
            SameLevel::Child => Way { parent: from, depth: beside.depth + 1, disjunction },
        };
        self.ways.push(way);
        Ok(self.ways.len() as u32 - 1)
    }

    fn new_group(&mut self) -> u32 {
        let group = self.ast.groups;
        self.ast.groups += 1;
        group
    }

    fn term(&mut self) -> Result<Term> {
        let at = self.pos;
        let before = self.ast.groups;
        let lines = if self.mods.has(Flags::MULTILINE) { Lines::Many } else { Lines::One };
        let node = match self.peek() {
            Some(b'^') => {
                self.pos += 1;
                return Ok(Term::Assertion(self.ast.add(Node::Start(lines))));
            }
            Some(b'$') => {
                self.pos += 1;
                return Ok(Term::Assertion(self.ast.add(Node::End(lines))));
            }
            Some(b'\\') => return self.atom_escape(),
            Some(b'.') => {
                self.pos += 1;
                let set = if self.mods.has(Flags::DOT_ALL) { CodeSet::empty() } else { newlines() };
                self.set_node(set.complement())?
            }
            Some(b'[') => self.class()?,
            Some(b'*' | b'+' | b'?') => return Err(self.error_at("nothing to repeat", at)),
            Some(b'{') if self.unicode => return Err(self.error_at("nothing to repeat", at)),
            Some(b'{') if self.braces()?.is_some() => return Err(self.error_at("nothing to repeat", at)),
            Some(b'}' | b']') if self.unicode => return Err(self.error_at("lone quantifier brackets", at)),
            Some(_) | None => {
                let point =
                    self.next_point().ok_or_else(|| self.error_at("unexpected end of pattern", at))?;
                self.char_node(point)?
            }
        };
        Ok(Term::Atom(node, before))
    }

    fn char_node(&mut self, point: u32) -> Result<NodeId> {
        if !self.mods.has(Flags::IGNORE_CASE) {
            return Ok(self.ast.add(Node::Char(point)));
        }
        self.set_node(CodeSet::one(point))
    }

    /// A set as it stands in the pattern; relatives by case come in here.
    fn set_node(&mut self, set: CodeSet) -> Result<NodeId> {
        let set = self.closed(set)?;
        Ok(match set.single() {
            Some(point) => self.ast.add(Node::Char(point)),
            None => {
                let set = self.ast.add_set(set);
                self.ast.add(Node::Set(set))
            }
        })
    }

    fn closed(&mut self, set: CodeSet) -> Result<CodeSet> {
        self.spend(set.ranges().len())?;
        if !self.mods.has(Flags::IGNORE_CASE) {
            return Ok(set);
        }
        if let Some(closed) = self.closures.get(&set) {
            return Ok(closed.clone());
        }
        if set.single().is_none() {
            self.spend(set.ranges().len() * CLOSURE_COST)?;
        }
        let closed = set.close_over_case(self.case_map());
        // Small sets are closed faster than they are looked up again.
        if set.ranges().len() > 16 {
            self.closures.insert(set, closed.clone());
            self.closures.insert(closed.clone(), closed.clone());
        }
        Ok(closed)
    }

    fn case_map(&self) -> &'static CaseMap {
        if self.unicode { CaseMap::folding() } else { CaseMap::upper() }
    }

    fn case(&self) -> Case {
        if self.mods.has(Flags::IGNORE_CASE) { Case::Ignore } else { Case::Exact }
    }

    /// Charges for ranges before they pile up.
    fn spend(&mut self, ranges: usize) -> Result<()> {
        self.expanded = self.expanded.saturating_add(ranges);
        if self.expanded > MAX_RANGES {
            return Err(self.error_at("regular expression too large", self.pos));
        }
        Ok(())
    }

    /// The next unit if it is ASCII; 0xff stands for any other, which no rule of the grammar names.
    fn peek(&self) -> Option<u8> {
        self.peek_at(0)
    }

    fn peek_at(&self, offset: usize) -> Option<u8> {
        let unit = *self.units.get(self.pos + offset)?;
        Some(u8::try_from(unit).ok().filter(u8::is_ascii).unwrap_or(0xff))
    }

    fn eat(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.pos += usize::from(found);
        found
    }

    /// One character of the pattern: a code point under `u` and `v`, a unit otherwise.
    fn next_point(&mut self) -> Option<u32> {
        if self.unicode { self.next_code_point() } else { self.next_unit() }
    }

    fn next_unit(&mut self) -> Option<u32> {
        let unit = *self.units.get(self.pos)?;
        self.pos += 1;
        Some(u32::from(unit))
    }

    fn next_code_point(&mut self) -> Option<u32> {
        let first = self.next_unit()?;
        if let (0xd800..=0xdbff, Some(&second @ 0xdc00..=0xdfff)) = (first, self.units.get(self.pos)) {
            self.pos += 1;
            return Some(join(first, u32::from(second)));
        }
        Some(first)
    }

    fn error(&self, message: &'static str) -> SyntaxError {
        self.error_at(message, self.pos)
    }

    fn error_at(&self, message: &'static str, position: usize) -> SyntaxError {
        SyntaxError { message, position }
    }
}

/// Where a new alternative stands in the tree of alternatives.
#[derive(Clone, Copy)]
enum SameLevel {
    Sibling,
    Child,
}

fn join(high: u32, low: u32) -> u32 {
    (((high & 0x3ff) << 10) | (low & 0x3ff)) + 0x1_0000
}

fn newlines() -> CodeSet {
    CodeSet::from_ranges(vec![(0x0a, 0x0a), (0x0d, 0x0d), (0x2028, 0x2029)])
}

fn digits() -> CodeSet {
    CodeSet::from_ranges(vec![(0x30, 0x39)])
}

fn spaces() -> CodeSet {
    CodeSet::from_ranges(vec![
        (0x09, 0x0d),
        (0x20, 0x20),
        (0xa0, 0xa0),
        (0x1680, 0x1680),
        (0x2000, 0x200a),
        (0x2028, 0x2029),
        (0x202f, 0x202f),
        (0x205f, 0x205f),
        (0x3000, 0x3000),
        (0xfeff, 0xfeff),
    ])
}

pub(super) fn word_chars() -> CodeSet {
    CodeSet::from_ranges(vec![(0x30, 0x39), (0x41, 0x5a), (0x5f, 0x5f), (0x61, 0x7a)])
}
