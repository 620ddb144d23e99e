//! Tree to instructions, with a stack of tasks instead of recursion.
//!
//! The compiler looks for three things that make backtracking cheap: loops over one set (no choice is stored
//! per round), alternatives that the next unit tells apart (no choice at all), and literal runs.

mod repeat;

use crate::regex::analyse::{Facts, analyse, first_of};
use crate::regex::ast::{Ast, Case, Direction, Kids, Lines, Node, NodeId, SetId, Wanted};
use crate::regex::flags::Flags;
use crate::regex::parse::{SyntaxError, word_chars};
use crate::regex::program::{First, Op, Program, RefWay, Search, Set, Step};
use crate::regex::set::CodeSet;
use crate::regex::tables::CaseMap;
use repeat::Repeat;
use rustc_hash::FxHashMap;

/// The most instructions that a pattern may compile to.
pub const MAX_INSTRUCTIONS: usize = 1 << 20;

/// Compiles a tree.
pub(super) fn compile(ast: &Ast, flags: Flags) -> Result<Program, SyntaxError> {
    let facts = analyse(ast);
    let root = facts[ast.root.0 as usize];
    let mut compiler = Compiler {
        ast,
        facts,
        unicode: flags.reads_code_points(),
        labels: Vec::new(),
        tasks: Vec::new(),
        first_ids: FxHashMap::default(),
        words: [None; 2],
        program: Program {
            code: Vec::new(),
            sets: Vec::new(),
            ranges: Vec::new(),
            literals: Vec::new(),
            loops: Vec::new(),
            counters: Vec::new(),
            firsts: Vec::new(),
            search: Search::Everywhere,
            first: First::ANYTHING,
            first_bytes: None,
            min_len: root.min_len,
            slots: ast.groups * 2,
            groups: ast.groups,
            names: names_in_order(ast),
            flags,
        },
    };
    for set in &ast.sets {
        compiler.add_set(set);
    }
    compiler.push(Task::Node(ast.root, Direction::Forward, None));
    compiler.run()?;
    compiler.program.code.push(Op::Match);
    compiler.resolve();
    compiler.choose_search(root);
    Ok(compiler.program)
}

struct Compiler<'a> {
    ast: &'a Ast,
    facts: Vec<Facts>,
    unicode: bool,
    /// Label to instruction number.
    labels: Vec<u32>,
    tasks: Vec<Task>,
    first_ids: FxHashMap<First, u16>,
    /// The sets of word characters, plain and ignoring case, once asked for.
    words: [Option<u32>; 2],
    program: Program,
}

/// What can come after a node; `None` if anything can.
type Follow = Option<First>;

/// Work still to be done, last in first out. Targets of instructions are labels until [`Compiler::resolve`].
#[derive(Clone, Copy)]
enum Task {
    Node(NodeId, Direction, Follow),
    Emit(Op),
    Bind(Label),
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Label(u32);

impl Compiler<'_> {
    fn run(&mut self) -> Result<(), SyntaxError> {
        while let Some(task) = self.tasks.pop() {
            match task {
                Task::Emit(op) => self.program.code.push(op),
                Task::Bind(label) => self.labels[label.0 as usize] = self.program.code.len() as u32,
                Task::Node(id, direction, follow) => self.node(id, direction, follow),
            }
            if self.program.code.len() > MAX_INSTRUCTIONS {
                return Err(SyntaxError { message: "regular expression too large", position: 0 });
            }
        }
        Ok(())
    }

    fn push(&mut self, task: Task) {
        self.tasks.push(task);
    }

    /// Schedules tasks to run in the order given.
    fn schedule(&mut self, tasks: &[Task]) {
        self.tasks.extend(tasks.iter().rev());
    }

    fn label(&mut self) -> Label {
        self.labels.push(0);
        Label(self.labels.len() as u32 - 1)
    }

    fn slots(&mut self, count: u32) -> u32 {
        let slot = self.program.slots;
        self.program.slots += count;
        slot
    }

    fn facts_of(&self, id: NodeId) -> Facts {
        self.facts[id.0 as usize]
    }

    fn node(&mut self, id: NodeId, direction: Direction, follow: Follow) {
        match self.ast.node(id) {
            Node::Empty => {}
            Node::Char(point) => self.char(point, direction),
            Node::Set(set) => self.set(set, direction),
            Node::Concat(kids) => self.concat(kids, direction, follow),
            Node::Alt(kids) => self.alternatives(kids, direction, follow),
            Node::Capture { body, group } => {
                let (before, after) = match direction {
                    Direction::Forward => (group * 2, group * 2 + 1),
                    Direction::Backward => (group * 2 + 1, group * 2),
                };
                self.program.code.push(Op::Save(before));
                self.schedule(&[Task::Node(body, direction, follow), Task::Emit(Op::Save(after))]);
            }
            Node::Look { body, direction, wanted } => self.look(body, direction, wanted),
            Node::Repeat { body, min, max, greed, groups } => {
                let repeat = Repeat { body, min, max, greed, groups };
                self.repeat(repeat, direction, follow);
            }
            Node::BackRef { group, case } => self.back_reference(group, case, direction),
            Node::NamedRef { name, case } => {
                // At most one group of a name takes part in a match, and the others match nothing.
                let groups = &self.ast.names[name as usize].groups;
                for &group in groups {
                    self.back_reference(group, case, direction);
                }
            }
            Node::Start(Lines::One) => self.program.code.push(Op::TextStart),
            Node::Start(Lines::Many) => self.program.code.push(Op::LineStart),
            Node::End(Lines::One) => self.program.code.push(Op::TextEnd),
            Node::End(Lines::Many) => self.program.code.push(Op::LineEnd),
            Node::Word { wanted, case } => {
                let set = self.word_set(case);
                self.program.code.push(match wanted {
                    Wanted::Match => Op::Word(set),
                    Wanted::NoMatch => Op::NotWord(set),
                });
            }
        }
    }

    fn char(&mut self, point: u32, direction: Direction) {
        let mut units = [0; 2];
        match (self.units_of(point, &mut units), direction) {
            (Some(units), Direction::Forward) => {
                for &unit in units {
                    self.program.code.push(Op::Unit(unit));
                }
            }
            (Some(units), Direction::Backward) => {
                for &unit in units.iter().rev() {
                    self.program.code.push(Op::UnitBack(unit));
                }
            }
            (None, _) => {
                let set = self.add_set(&CodeSet::one(point));
                self.program.code.push(match direction {
                    Direction::Forward => Op::SetPoint(set),
                    Direction::Backward => Op::SetPointBack(set),
                });
            }
        }
    }

    /// A character as units that can be compared one by one. Half a pair cannot: it must not match inside one.
    fn units_of<'u>(&self, point: u32, units: &'u mut [u16; 2]) -> Option<&'u [u16]> {
        if !self.unicode {
            units[0] = u16::try_from(point).ok()?;
            return Some(&units[..1]);
        }
        char::from_u32(point).map(|c| &*c.encode_utf16(units))
    }

    fn set(&mut self, id: SetId, direction: Direction) {
        let op = match (self.step_of(id), direction) {
            (Step::Unit, Direction::Forward) => Op::Set(id.0),
            (Step::Unit, Direction::Backward) => Op::SetBack(id.0),
            (Step::Point, Direction::Forward) => Op::SetPoint(id.0),
            (Step::Point, Direction::Backward) => Op::SetPointBack(id.0),
        };
        self.program.code.push(op);
    }

    /// Sets that hold no surrogate and nothing above it can be tested unit by unit, even in code-point mode.
    fn step_of(&self, id: SetId) -> Step {
        let reaches = self
            .ast
            .set(id)
            .ranges()
            .iter()
            .any(|&(low, high)| high > 0xffff || (low <= 0xdfff && high >= 0xd800));
        if self.unicode && reaches { Step::Point } else { Step::Unit }
    }

    fn concat(&mut self, kids: Kids, direction: Direction, mut follow: Follow) {
        let kids = self.ast.kids(kids);
        if direction == Direction::Backward {
            // The task stack reverses, which is what reading backwards wants.
            self.tasks.extend(kids.iter().map(|&kid| Task::Node(kid, direction, None)));
            return;
        }
        // From the last to the first, because each needs to know what can follow it.
        let mut end = kids.len();
        while end > 0 {
            let mut start = end;
            while start > 0 && self.is_plain_char(kids[start - 1]) {
                start -= 1;
            }
            if end - start >= 2 {
                let at = self.program.literals.len() as u32;
                for &kid in &kids[start..end] {
                    if let Node::Char(point) = self.ast.node(kid) {
                        let mut units = [0; 2];
                        if let Some(units) = self.units_of(point, &mut units) {
                            self.program.literals.extend_from_slice(units);
                        }
                    }
                }
                let len = self.program.literals.len() as u32 - at;
                // From the back again: the first piece of a long run ends on top of the task stack.
                let mut pieces: Vec<Task> = Vec::new();
                let mut done = 0;
                while done < len {
                    let piece = (len - done).min(u32::from(u16::MAX));
                    pieces.push(Task::Emit(Op::Literal { len: piece as u16, at: at + done }));
                    done += piece;
                }
                self.schedule(&pieces);
                follow = Some(self.facts_of(kids[start]).first);
                end = start;
                continue;
            }
            end -= 1;
            let kid = kids[end];
            self.push(Task::Node(kid, direction, follow));
            follow = followed(self.facts_of(kid), follow);
        }
    }

    fn is_plain_char(&self, id: NodeId) -> bool {
        match self.ast.node(id) {
            Node::Char(point) => self.units_of(point, &mut [0; 2]).is_some(),
            _ => false,
        }
    }

    fn alternatives(&mut self, kids: Kids, direction: Direction, follow: Follow) {
        let kids = self.ast.kids(kids);
        let end = self.label();
        // What any of the alternatives after this one can begin with.
        let mut later: Vec<Follow> = vec![None; kids.len()];
        let mut so_far = Some(First::NOTHING);
        for (at, &kid) in kids.iter().enumerate().rev() {
            later[at] = so_far;
            let own = followed(self.facts_of(kid), follow);
            so_far = so_far.zip(own).map(|(a, b)| a.union(&b));
        }
        let mut tasks = Vec::with_capacity(kids.len() * 5);
        for (at, &kid) in kids.iter().enumerate() {
            if at + 1 == kids.len() {
                tasks.push(Task::Node(kid, direction, follow));
                break;
            }
            let next = self.label();
            let own = followed(self.facts_of(kid), follow).filter(|_| direction == Direction::Forward);
            let guard = own.and_then(|own| self.guard(&own, next));
            tasks.extend(guard.map(Task::Emit));
            let told_apart = match (own, later[at]) {
                (Some(own), Some(later)) => guard.is_some() && own.is_disjoint(&later),
                (Some(_) | None, _) => false,
            };
            if !told_apart {
                tasks.push(Task::Emit(Op::Split(next.0)));
            }
            tasks.push(Task::Node(kid, direction, follow));
            tasks.push(Task::Emit(Op::Jump(end.0)));
            tasks.push(Task::Bind(next));
        }
        tasks.push(Task::Bind(end));
        self.schedule(&tasks);
    }

    fn look(&mut self, body: NodeId, direction: Direction, wanted: Wanted) {
        let slot = self.slots(2);
        self.program.code.push(Op::LookEnter(slot));
        match wanted {
            Wanted::Match => {
                self.schedule(&[Task::Node(body, direction, None), Task::Emit(Op::LookHolds(slot))]);
            }
            Wanted::NoMatch => {
                let end = self.label();
                self.program.code.push(Op::Split(end.0));
                self.schedule(&[
                    Task::Node(body, direction, None),
                    Task::Emit(Op::LookFails(slot)),
                    Task::Bind(end),
                ]);
            }
        }
    }

    fn back_reference(&mut self, group: u32, case: Case, direction: Direction) {
        let way = match (case, direction) {
            (Case::Exact, Direction::Forward) => RefWay::Forward,
            (Case::Exact, Direction::Backward) => RefWay::Backward,
            (Case::Ignore, Direction::Forward) if self.unicode => RefWay::ForwardFolded,
            (Case::Ignore, Direction::Backward) if self.unicode => RefWay::BackwardFolded,
            (Case::Ignore, Direction::Forward) => RefWay::ForwardUpper,
            (Case::Ignore, Direction::Backward) => RefWay::BackwardUpper,
        };
        self.program.code.push(Op::BackRef { way, group });
    }

    fn guard(&mut self, first: &First, target: Label) -> Option<Op> {
        let first = self.first_id(first)?;
        Some(Op::Guard { first, target: target.0 })
    }

    /// `None` if it would tell nothing, or if there are too many to number.
    fn first_id(&mut self, first: &First) -> Option<u16> {
        if *first == First::ANYTHING {
            return None;
        }
        if let Some(&id) = self.first_ids.get(first) {
            return Some(id);
        }
        let id = u16::try_from(self.program.firsts.len()).ok()?;
        self.first_ids.insert(*first, id);
        self.program.firsts.push(*first);
        Some(id)
    }

    fn word_set(&mut self, case: Case) -> u32 {
        let wide = self.unicode && case == Case::Ignore;
        if let Some(set) = self.words[usize::from(wide)] {
            return set;
        }
        let mut set = word_chars();
        if wide {
            set = set.close_over_case(CaseMap::folding());
        }
        let id = self.add_set(&set);
        self.words[usize::from(wide)] = Some(id);
        id
    }

    fn add_set(&mut self, set: &CodeSet) -> u32 {
        let at = self.program.ranges.len();
        let low = first_of(set).low;
        let above = set.ranges().iter().filter(|range| range.1 > 255);
        self.program.ranges.extend(above.map(|&(first, last)| (first.max(256), last)));
        let len = self.program.ranges.len() - at;
        self.program.sets.push(Set { low, at: at as u32, len: len as u32 });
        self.program.sets.len() as u32 - 1
    }

    /// Replaces labels by instruction numbers.
    fn resolve(&mut self) {
        let labels = &self.labels;
        for op in &mut self.program.code {
            match op {
                Op::Jump(target) | Op::Split(target) | Op::SplitFar(target) | Op::Guard { target, .. } => {
                    *target = labels[*target as usize];
                }
                _ => {}
            }
        }
        for counter in &mut self.program.counters {
            counter.exit = labels[counter.exit as usize];
        }
    }

    fn choose_search(&mut self, root: Facts) {
        let program = &mut self.program;
        // Captures that open at the start do not move the text.
        let opening = program.code.iter().find(|op| !matches!(op, Op::Save(_)));
        program.search = match opening {
            Some(Op::TextStart) => Search::Anchored,
            Some(&Op::Literal { len, at }) => Search::Literal { at, len: u32::from(len) },
            _ if root.transparent || root.first == First::ANYTHING => Search::Everywhere,
            _ => Search::First,
        };
        if !root.transparent {
            program.first = root.first;
        }
        let members: Vec<u8> = (0..=255u8).filter(|&byte| program.first.has(u32::from(byte))).collect();
        program.first_bytes = match *members.as_slice() {
            [a] => Some(([a, a, a], 1)),
            [a, b] => Some(([a, b, b], 2)),
            [a, b, c] => Some(([a, b, c], 3)),
            _ => None,
        };
    }
}

/// What a node can begin with, given what follows it.
fn followed(facts: Facts, follow: Follow) -> Follow {
    if facts.transparent { follow.map(|follow| facts.first.union(&follow)) } else { Some(facts.first) }
}

/// By the place of the group: a reference may have mentioned a name before its group came.
fn names_in_order(ast: &Ast) -> Vec<(String, Vec<u32>)> {
    let mut names: Vec<_> = ast.names.iter().map(|name| (name.text.clone(), name.groups.clone())).collect();
    names.sort_by_key(|(_, groups)| groups.first().copied());
    names
}
