//! A pattern as a tree in an index arena: children come before their parents, so every walk is a loop.

use super::set::CodeSet;
use rustc_hash::FxHashMap;

/// A node of the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NodeId(pub(super) u32);

/// A set of the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SetId(pub(super) u32);

/// A run of [`Ast::kids`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Kids {
    pub(super) first: u32,
    pub(super) len: u32,
}

/// Does `^`, `$` look at line ends inside the text?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lines {
    One,
    Many,
}

/// Are letters that differ in case the same?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Case {
    Exact,
    Ignore,
}

/// Must it match, or must it not?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    Match,
    NoMatch,
}

/// The way in which text is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    Forward,
    Backward,
}

/// Does a quantifier try more first, or less?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Greed {
    Greedy,
    Lazy,
}

/// No upper bound on a quantifier.
pub(super) const UNBOUNDED: u32 = u32::MAX;

/// One construct of a pattern. Case and dot-all are already resolved into sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Node {
    Empty,
    /// A code point, or a unit in patterns without `u` and `v`.
    Char(u32),
    Set(SetId),
    Concat(Kids),
    Alt(Kids),
    Capture {
        body: NodeId,
        group: u32,
    },
    Look {
        body: NodeId,
        direction: Direction,
        wanted: Wanted,
    },
    /// `groups` are the captures inside, as a half-open range: each round starts with them unset.
    Repeat {
        body: NodeId,
        min: u32,
        max: u32,
        greed: Greed,
        groups: (u32, u32),
    },
    BackRef {
        group: u32,
        case: Case,
    },
    /// An index into [`Ast::names`], because the group may come later.
    NamedRef {
        name: u32,
        case: Case,
    },
    Start(Lines),
    End(Lines),
    Word {
        wanted: Wanted,
        case: Case,
    },
}

/// A group name with the groups that carry it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Name {
    pub(super) text: String,
    pub(super) groups: Vec<u32>,
}

/// A parsed pattern.
#[derive(Debug)]
pub(super) struct Ast {
    pub(super) nodes: Vec<Node>,
    pub(super) kids: Vec<NodeId>,
    pub(super) sets: Vec<CodeSet>,
    set_ids: FxHashMap<CodeSet, u32>,
    pub(super) names: Vec<Name>,
    pub(super) root: NodeId,
    /// Captures, counting the whole match as group 0.
    pub(super) groups: u32,
}

impl Ast {
    pub(super) fn new() -> Self {
        Self {
            nodes: Vec::new(),
            kids: Vec::new(),
            sets: Vec::new(),
            set_ids: FxHashMap::default(),
            names: Vec::new(),
            root: NodeId(0),
            groups: 1,
        }
    }

    pub(super) fn add(&mut self, node: Node) -> NodeId {
        self.nodes.push(node);
        NodeId(self.nodes.len() as u32 - 1)
    }

    /// A set, stored once however often a pattern spells it.
    pub(super) fn add_set(&mut self, set: CodeSet) -> SetId {
        if let Some(&id) = self.set_ids.get(&set) {
            return SetId(id);
        }
        let id = self.sets.len() as u32;
        self.set_ids.insert(set.clone(), id);
        self.sets.push(set);
        SetId(id)
    }

    pub(super) fn concat(&mut self, terms: &[NodeId]) -> NodeId {
        match terms {
            [] => self.add(Node::Empty),
            [only] => *only,
            _ => {
                let kids = self.add_kids(terms);
                self.add(Node::Concat(kids))
            }
        }
    }

    pub(super) fn alternatives(&mut self, ways: &[NodeId]) -> NodeId {
        match ways {
            [] => self.add(Node::Empty),
            [only] => *only,
            _ => {
                if let Some(set) = self.one_character_of(ways) {
                    let set = self.add_set(set);
                    return self.add(Node::Set(set));
                }
                let kids = self.add_kids(ways);
                self.add(Node::Alt(kids))
            }
        }
    }

    pub(super) fn node(&self, id: NodeId) -> Node {
        self.nodes[id.0 as usize]
    }

    pub(super) fn kids(&self, kids: Kids) -> &[NodeId] {
        &self.kids[kids.first as usize..(kids.first + kids.len) as usize]
    }

    pub(super) fn set(&self, id: SetId) -> &CodeSet {
        &self.sets[id.0 as usize]
    }

    /// Alternatives that are one character each are one set.
    fn one_character_of(&self, ways: &[NodeId]) -> Option<CodeSet> {
        let mut ranges = Vec::new();
        for &way in ways {
            match self.node(way) {
                Node::Char(point) => ranges.push((point, point)),
                Node::Set(set) if self.set(set).ranges().len() < 8 => {
                    ranges.extend_from_slice(self.set(set).ranges())
                }
                _ => return None,
            }
        }
        Some(CodeSet::from_ranges(ranges))
    }

    fn add_kids(&mut self, ids: &[NodeId]) -> Kids {
        let first = self.kids.len() as u32;
        self.kids.extend_from_slice(ids);
        Kids { first, len: ids.len() as u32 }
    }
}
