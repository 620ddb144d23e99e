//! Loops: over one set, told apart by the next unit, or counted.

use super::{Compiler, Follow, Label, Task};
use crate::regex::analyse::{Facts, first_of};
use crate::regex::ast::{Direction, Greed, Node, NodeId, UNBOUNDED};
use crate::regex::program::{Counter, First, Loop, NO_FOLLOW, Op, Step};
use crate::regex::set::CodeSet;

/// A quantified node.
#[derive(Clone, Copy)]
pub(super) struct Repeat {
    pub(super) body: NodeId,
    pub(super) min: u32,
    pub(super) max: u32,
    pub(super) greed: Greed,
    pub(super) groups: (u32, u32),
}

struct Choice {
    greed: Greed,
    direction: Direction,
    follow: Follow,
    exit: Label,
}

impl Compiler<'_> {
    pub(super) fn repeat(&mut self, repeat: Repeat, direction: Direction, follow: Follow) {
        let Repeat { body, mut min, max, greed, groups } = repeat;
        let facts = self.facts_of(body);
        if max == 0 {
            return;
        }
        if facts.empty {
            // Every round does the same as the first.
            min = min.min(1);
        }
        if direction == Direction::Forward && self.repeat_one_set(repeat, follow) {
            return;
        }
        if (min, max) == (1, 1) {
            self.push(Task::Node(body, direction, follow));
            return;
        }
        let mut start_round = Vec::new();
        let mut first = groups.0;
        while first < groups.1 {
            let len = (groups.1 - first).min(u32::from(u16::MAX));
            start_round.push(Task::Emit(Op::Reset { len: len as u16, first }));
            first += len;
        }
        // What can follow a round is another round or what follows the loop.
        let after = follow.map(|follow| facts.first.union(&follow));
        let round = Task::Node(body, direction, after);
        let may_be_empty = facts.min_len == 0;
        let tasks = match (min, max) {
            (0, 1 | UNBOUNDED) => {
                let (again, exit) = (self.label(), self.label());
                let mut tasks = vec![Task::Bind(again)];
                self.choose_round(&mut tasks, facts, Choice { greed, direction, follow, exit });
                tasks.extend(start_round);
                let mark = self.program.slots;
                if may_be_empty {
                    self.slots(1);
                    tasks.push(Task::Emit(Op::Save(mark)));
                }
                tasks.push(round);
                if may_be_empty {
                    tasks.push(Task::Emit(Op::CheckProgress(mark)));
                }
                if max != 1 {
                    tasks.push(Task::Emit(Op::Jump(again.0)));
                }
                tasks.push(Task::Bind(exit));
                tasks
            }
            (1, UNBOUNDED) if !may_be_empty => {
                let (again, exit) = (self.label(), self.label());
                let mut tasks = vec![Task::Bind(again)];
                tasks.extend(start_round);
                tasks.push(round);
                self.choose_round(&mut tasks, facts, Choice { greed, direction, follow, exit });
                tasks.push(Task::Emit(Op::Jump(again.0)));
                tasks.push(Task::Bind(exit));
                tasks
            }
            (min, max) => {
                let (again, exit) = (self.label(), self.label());
                let slot = self.slots(2);
                let counter = self.program.counters.len() as u32;
                let lazy = greed == Greed::Lazy;
                self.program.counters.push(Counter { slot, min, max, exit: exit.0, lazy });
                let mut tasks = vec![
                    Task::Emit(Op::Zero(slot)),
                    Task::Bind(again),
                    Task::Emit(Op::Count(counter)),
                    Task::Emit(Op::CountUp(slot)),
                ];
                tasks.extend(start_round);
                if may_be_empty {
                    tasks.push(Task::Emit(Op::Save(slot + 1)));
                }
                tasks.push(round);
                if may_be_empty {
                    tasks.push(Task::Emit(Op::CheckCount(counter)));
                }
                tasks.extend([Task::Emit(Op::Jump(again.0)), Task::Bind(exit)]);
                tasks
            }
        };
        self.schedule(&tasks);
    }

    /// The decision between another round and the exit. It stores no choice if the next unit tells them apart.
    fn choose_round(&mut self, tasks: &mut Vec<Task>, facts: Facts, choice: Choice) {
        let Choice { greed, direction, follow, exit } = choice;
        if greed == Greed::Lazy {
            tasks.push(Task::Emit(Op::SplitFar(exit.0)));
            return;
        }
        let own = (direction == Direction::Forward && !facts.transparent).then_some(facts.first);
        let guard = own.and_then(|own| self.guard(&own, exit));
        tasks.extend(guard.map(Task::Emit));
        let told_apart = match (own, follow) {
            (Some(own), Some(follow)) => guard.is_some() && own.is_disjoint(&follow),
            (Some(_) | None, _) => false,
        };
        if !told_apart {
            tasks.push(Task::Emit(Op::Split(exit.0)));
        }
    }

    /// A loop whose body is one character or one set needs one instruction.
    fn repeat_one_set(&mut self, repeat: Repeat, follow: Follow) -> bool {
        let Repeat { body, min, max, greed, groups: _ } = repeat;
        let (set, step, first) = match self.ast.node(body) {
            Node::Set(id) => (id.0, self.step_of(id), first_of(self.ast.set(id))),
            Node::Char(point) => {
                let alone = CodeSet::one(point);
                let half = (0xd800..=0xdfff).contains(&point) || point > 0xffff;
                let step = if self.unicode && half { Step::Point } else { Step::Unit };
                (self.add_set(&alone), step, first_of(&alone))
            }
            _ => return false,
        };
        let possessive = follow.is_some_and(|follow| {
            // Where the loop could stop earlier, its own set comes next.
            First { end: false, ..first }.is_disjoint(&follow)
        });
        let follow = follow.and_then(|follow| self.first_id(&follow)).map_or(NO_FOLLOW, u32::from);
        let at = self.program.loops.len() as u32;
        self.program.loops.push(Loop { set, min, max, step, follow });
        self.program.code.push(match greed {
            Greed::Greedy if possessive => Op::Possessive(at),
            Greed::Greedy => Op::Greedy(at),
            Greed::Lazy => Op::Lazy(at),
        });
        true
    }
}
