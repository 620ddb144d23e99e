//! One attempt at one place: the instruction loop, its choices and its trail.

use super::scan::Landing;
use super::{ExecError, Fuel, Scratch};
use crate::regex::program::{Counter, First, Loop, Op, Program, Set};
use crate::regex::text::Unit;

/// A slot without a value.
pub(super) const UNSET: u32 = u32::MAX;
/// A choice that is not in the middle of a loop over one set.
const PLAIN: u32 = u32::MAX;

/// Where to go on after a failure.
#[derive(Clone, Copy, Debug)]
pub(super) struct Choice {
    pc: u32,
    pos: u32,
    trail: u32,
    /// For a greedy loop the position that it must not give back; for a lazy one how many more it may take.
    rest: u32,
}

/// A program at work on a text.
pub(super) struct Machine<'m, T> {
    pub(super) program: &'m Program,
    pub(super) text: &'m [T],
    pub(super) fuel: &'m mut Fuel,
    pub(super) scratch: &'m mut Scratch,
}

impl<T: Unit> Machine<'_, T> {
    /// Matches at exactly `start`.
    pub(super) fn run(&mut self, start: usize) -> Result<bool, ExecError> {
        self.scratch.choices.clear();
        self.scratch.trail.clear();
        self.scratch.slots.clear();
        self.fuel.charge(u64::from(self.program.slots) / 64)?;
        self.scratch.slots.resize(self.program.slots as usize, UNSET);
        let code = self.program.code.as_slice();
        let text = self.text;
        let mut pc = 0usize;
        let mut pos = start;
        loop {
            self.fuel.charge(1)?;
            let Some(&op) = code.get(pc) else { return Ok(false) };
            let holds = match op {
                Op::Unit(unit) => match text.get(pos) {
                    Some(found) if found.unit() == u32::from(unit) => {
                        pos += 1;
                        true
                    }
                    Some(_) | None => false,
                },
                Op::UnitBack(unit) => match pos.checked_sub(1).and_then(|at| text.get(at)) {
                    Some(found) if found.unit() == u32::from(unit) => {
                        pos -= 1;
                        true
                    }
                    Some(_) | None => false,
                },
                Op::Literal { len, at } => {
                    let wanted = &self.program.literals[at as usize..at as usize + usize::from(len)];
                    match text.get(pos..pos + wanted.len()) {
                        Some(found) if T::same(found, wanted) => {
                            pos += wanted.len();
                            self.fuel.charge(u64::from(len) / 16)?;
                            true
                        }
                        Some(_) | None => false,
                    }
                }
                Op::Set(set) => match text.get(pos) {
                    Some(found) if self.in_set(set, found.unit()) => {
                        pos += 1;
                        true
                    }
                    Some(_) | None => false,
                },
                Op::SetBack(set) => match pos.checked_sub(1).and_then(|at| text.get(at)) {
                    Some(found) if self.in_set(set, found.unit()) => {
                        pos -= 1;
                        true
                    }
                    Some(_) | None => false,
                },
                Op::SetPoint(set) => {
                    let (point, width) = T::point_at(text, pos);
                    let holds = width > 0 && self.in_set(set, point);
                    pos += if holds { width } else { 0 };
                    holds
                }
                Op::SetPointBack(set) => {
                    let (point, width) = T::point_before(text, pos);
                    let holds = width > 0 && self.in_set(set, point);
                    pos -= if holds { width } else { 0 };
                    holds
                }
                Op::Save(slot) => {
                    self.write(slot, pos as u32)?;
                    true
                }
                Op::Reset { len, first } => {
                    for slot in first * 2..(first + u32::from(len)) * 2 {
                        if self.read(slot) != UNSET {
                            self.write(slot, UNSET)?;
                        }
                    }
                    self.fuel.charge(u64::from(len) / 8)?;
                    true
                }
                Op::Jump(target) => {
                    pc = target as usize;
                    continue;
                }
                Op::Split(target) => {
                    self.choose(target, pos, PLAIN)?;
                    true
                }
                Op::SplitFar(target) => {
                    self.choose(pc as u32 + 1, pos, PLAIN)?;
                    pc = target as usize;
                    continue;
                }
                Op::Guard { first, target } => {
                    if !self.may_come(&self.program.firsts[usize::from(first)], pos) {
                        pc = target as usize;
                        continue;
                    }
                    true
                }
                Op::Possessive(id) => {
                    let scanned = self.scan(&self.program.loops[id as usize], pos)?;
                    self.land(scanned.map(|(_, end)| end), &mut pos)
                }
                Op::Greedy(id) => match self.scan(&self.program.loops[id as usize], pos)? {
                    Some((least, most)) => {
                        let landed = self.give_back(pc, &self.program.loops[id as usize], least, most)?;
                        self.arrive(landed, &mut pos)
                    }
                    None => false,
                },
                Op::Lazy(id) => {
                    let repeat = &self.program.loops[id as usize];
                    let fewest = Loop { max: repeat.min, ..*repeat };
                    match self.scan(&fewest, pos)? {
                        Some((_, least)) => {
                            let rest = repeat.max.saturating_sub(repeat.min).min(PLAIN - 1);
                            let landed = self.take_more(pc, repeat, least, rest)?;
                            self.arrive(landed, &mut pos)
                        }
                        None => false,
                    }
                }
                Op::Zero(slot) => {
                    self.write(slot, 0)?;
                    true
                }
                Op::Count(id) => {
                    let Counter { slot, min, max, exit, lazy } = self.program.counters[id as usize];
                    let rounds = self.read(slot);
                    if rounds >= max {
                        pc = exit as usize;
                        continue;
                    }
                    if rounds >= min && lazy {
                        self.choose(pc as u32 + 1, pos, PLAIN)?;
                        pc = exit as usize;
                        continue;
                    }
                    if rounds >= min {
                        self.choose(exit, pos, PLAIN)?;
                    }
                    true
                }
                Op::CountUp(slot) => {
                    // Saturates below the unset mark; no text lets a loop get there within its fuel.
                    let rounds = self.read(slot).saturating_add(1).min(UNSET - 1);
                    self.write(slot, rounds)?;
                    true
                }
                Op::CheckCount(id) => {
                    let counter = self.program.counters[id as usize];
                    self.read(counter.slot) <= counter.min || self.read(counter.slot + 1) != pos as u32
                }
                Op::CheckProgress(slot) => self.read(slot) != pos as u32,
                Op::LookEnter(slot) => {
                    let open = self.scratch.choices.len() as u32;
                    self.write(slot, open)?;
                    self.write(slot + 1, pos as u32)?;
                    true
                }
                Op::LookHolds(slot) => {
                    self.scratch.choices.truncate(self.read(slot) as usize);
                    pos = self.read(slot + 1) as usize;
                    true
                }
                Op::LookFails(slot) => {
                    self.scratch.choices.truncate(self.read(slot) as usize);
                    false
                }
                Op::BackRef { way, group } => {
                    let landed = self.back_reference(way, group, pos)?;
                    self.arrive(landed, &mut pos)
                }
                Op::TextStart => pos == 0,
                Op::LineStart => pos == 0 || text.get(pos - 1).is_some_and(|unit| is_newline(unit.unit())),
                Op::TextEnd => pos == text.len(),
                Op::LineEnd => text.get(pos).is_none_or(|unit| is_newline(unit.unit())),
                Op::Word(set) => self.is_word_boundary(set, pos),
                Op::NotWord(set) => !self.is_word_boundary(set, pos),
                Op::Match => {
                    self.scratch.slots[0] = start as u32;
                    self.scratch.slots[1] = pos as u32;
                    return Ok(true);
                }
            };
            if holds {
                pc += 1;
                continue;
            }
            match self.fall_back()? {
                Some((next, at)) => (pc, pos) = (next, at),
                None => return Ok(false),
            }
        }
    }

    /// Takes up the latest choice that leads anywhere.
    fn fall_back(&mut self) -> Result<Option<(usize, usize)>, ExecError> {
        loop {
            let Some(choice) = self.scratch.choices.pop() else { return Ok(None) };
            while self.scratch.trail.len() > choice.trail as usize {
                if let Some((slot, value)) = self.scratch.trail.pop() {
                    self.scratch.slots[slot as usize] = value;
                }
            }
            let (pc, pos) = (choice.pc as usize, choice.pos as usize);
            if choice.rest == PLAIN {
                return Ok(Some((pc, pos)));
            }
            self.fuel.charge(1)?;
            let landed = match self.program.code.get(pc) {
                Some(&Op::Greedy(id)) => {
                    let repeat = &self.program.loops[id as usize];
                    let most = pos - self.width_before(repeat, pos);
                    self.give_back(pc, repeat, choice.rest as usize, most)?
                }
                Some(&Op::Lazy(id)) => {
                    let repeat = &self.program.loops[id as usize];
                    match self.one_round(repeat, pos) {
                        Some(next) if choice.rest > 0 => self.take_more(pc, repeat, next, choice.rest - 1)?,
                        Some(_) | None => Landing::Fail,
                    }
                }
                _ => Landing::Fail,
            };
            if let Landing::At(pos) = landed {
                return Ok(Some((pc + 1, pos)));
            }
        }
    }

    #[inline]
    pub(super) fn may_come(&self, first: &First, pos: usize) -> bool {
        self.text.get(pos).map_or(first.end, |unit| first.has(unit.unit()))
    }

    #[inline]
    pub(super) fn in_set(&self, set: u32, point: u32) -> bool {
        self.holds(&self.program.sets[set as usize], point)
    }

    #[inline]
    pub(super) fn holds(&self, set: &Set, point: u32) -> bool {
        if let Some(word) = set.low.get((point >> 6) as usize) {
            return word >> (point & 63) & 1 == 1;
        }
        let ranges = &self.program.ranges[set.at as usize..(set.at + set.len) as usize];
        let at = ranges.partition_point(|range| range.1 < point);
        ranges.get(at).is_some_and(|range| range.0 <= point)
    }

    fn land(&self, landed: Option<usize>, pos: &mut usize) -> bool {
        *pos = landed.unwrap_or(*pos);
        landed.is_some()
    }

    fn arrive(&self, landed: Landing, pos: &mut usize) -> bool {
        match landed {
            Landing::At(at) => {
                *pos = at;
                true
            }
            Landing::Fail => false,
        }
    }

    pub(super) fn read(&self, slot: u32) -> u32 {
        self.scratch.slots[slot as usize]
    }

    #[inline]
    fn write(&mut self, slot: u32, value: u32) -> Result<(), ExecError> {
        let place = &mut self.scratch.slots[slot as usize];
        // Without a choice to fall back to, nobody will ask for the old value.
        if !self.scratch.choices.is_empty() {
            if self.scratch.trail.len() >= self.scratch.max_trail {
                return Err(ExecError::StackLimit);
            }
            self.scratch.trail.push((slot, *place));
        }
        *place = value;
        Ok(())
    }

    #[inline]
    pub(super) fn choose(&mut self, pc: u32, pos: usize, rest: u32) -> Result<(), ExecError> {
        if self.scratch.choices.len() >= self.scratch.max_choices {
            return Err(ExecError::StackLimit);
        }
        let trail = self.scratch.trail.len() as u32;
        self.scratch.choices.push(Choice { pc, pos: pos as u32, trail, rest });
        Ok(())
    }
}

fn is_newline(unit: u32) -> bool {
    matches!(unit, 0x0a | 0x0d | 0x2028 | 0x2029)
}
