//! The matcher: backtracking over an explicit stack, paid for with fuel.
//!
//! Two stacks live in a [`Scratch`] that the caller reuses. *Choices* say where to go on after a failure;
//! the *trail* says which slots to restore then. A lookaround that holds drops its choices and keeps its trail,
//! so captures made inside it are undone with everything else. One unit of fuel is one instruction, or up to
//! sixteen units of text passed over by a scan; a single scan never passes the text's end before it is charged.

use super::program::{Counter, First, Loop, NO_FOLLOW, Op, Program, RefWay, Search, Set, Step};
use super::search::next_start;
use super::tables::CaseMap;
use super::text::{Text, Unit};
use std::ops::Range;

/// Steps that a match may still take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fuel(pub u64);

impl Fuel {
    /// Takes `units` away, or says that there are not so many.
    pub(super) fn charge(&mut self, units: u64) -> Result<(), ExecError> {
        match self.0.checked_sub(units) {
            Some(rest) => {
                self.0 = rest;
                Ok(())
            }
            None => {
                self.0 = 0;
                Err(ExecError::OutOfFuel)
            }
        }
    }
}

/// The bytes that the matcher's stacks may grow to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StackBytes(pub usize);

/// Why a match was given up. The text may or may not match.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExecError {
    /// All fuel is used.
    #[error("the regular expression used all its fuel")]
    OutOfFuel,
    /// The stacks would grow past their limit.
    #[error("the regular expression needs more than its share of stack")]
    StackLimit,
    /// Positions are 32 bits wide.
    #[error("the text is too long for a regular expression")]
    TextTooLong,
}

/// Memory that matches use one after the other.
#[derive(Debug)]
pub struct Scratch {
    choices: Vec<Choice>,
    trail: Vec<(u32, u32)>,
    slots: Vec<u32>,
    max_choices: usize,
    max_trail: usize,
}

impl Scratch {
    /// Half of `limit` is for choices, half for the trail.
    #[must_use]
    pub fn new(limit: StackBytes) -> Self {
        Self {
            choices: Vec::new(),
            trail: Vec::new(),
            slots: Vec::new(),
            max_choices: limit.0 / 2 / size_of::<Choice>(),
            max_trail: limit.0 / 2 / size_of::<(u32, u32)>(),
        }
    }
}

/// Where the groups of a match are, in units.
#[derive(Clone, Copy, Debug)]
pub struct Captures<'a> {
    slots: &'a [u32],
}

impl Captures<'_> {
    /// The range of a group; group 0 is the whole match and always there.
    #[must_use]
    pub fn get(&self, group: usize) -> Option<Range<usize>> {
        match (self.slots.get(group * 2), self.slots.get(group * 2 + 1)) {
            (Some(&start), Some(&end)) if start != UNSET && end != UNSET => {
                Some(start as usize..end as usize)
            }
            _ => None,
        }
    }

    /// How many groups there are, group 0 included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.slots.len() / 2
    }

    /// Never: group 0 is always there.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }
}

/// Finds the first match at or after `start`, or exactly at `start` if the pattern is sticky.
///
/// # Errors
/// If fuel or stack run out before the answer is known.
pub fn exec<'s>(
    program: &Program,
    text: Text<'_>,
    start: usize,
    fuel: &mut Fuel,
    scratch: &'s mut Scratch,
) -> Result<Option<Captures<'s>>, ExecError> {
    let found = match text {
        Text::Latin1(units) => find(program, units, start, fuel, scratch)?,
        Text::Wide(units) => find(program, units, start, fuel, scratch)?,
    };
    let slots = scratch.slots.get(..program.groups as usize * 2).unwrap_or(&[]);
    Ok(found.then_some(Captures { slots }))
}

/// A slot without a value.
const UNSET: u32 = u32::MAX;
/// A choice that is not in the middle of a loop over one set.
const PLAIN: u32 = u32::MAX;

/// Where to go on after a failure.
#[derive(Clone, Copy, Debug)]
struct Choice {
    pc: u32,
    pos: u32,
    trail: u32,
    /// For a greedy loop the position that it must not give back; for a lazy one how many more it may take.
    rest: u32,
}

fn find<T: Unit>(
    program: &Program,
    text: &[T],
    start: usize,
    fuel: &mut Fuel,
    scratch: &mut Scratch,
) -> Result<bool, ExecError> {
    if text.len() >= (u32::MAX / 2) as usize {
        return Err(ExecError::TextTooLong);
    }
    if start > text.len() {
        return Ok(false);
    }
    let mut at = start;
    // A start inside a pair is a start before it: the text is code points.
    if program.flags.reads_code_points() && T::is_inside_pair(text, at) {
        at -= 1;
    }
    let sticky = program.flags.has(super::Flags::STICKY);
    let mut machine = Machine { program, text, fuel, scratch };
    loop {
        if !sticky {
            match next_start(program, text, at, machine.fuel)? {
                Some(next) => at = next,
                None => return Ok(false),
            }
        }
        if text.len() - at < program.min_len as usize {
            return Ok(false);
        }
        if machine.run(at)? {
            return Ok(true);
        }
        if sticky || program.search == Search::Anchored || at >= text.len() {
            return Ok(false);
        }
        at += if program.flags.reads_code_points() { T::point_at(text, at).1 } else { 1 };
    }
}

struct Machine<'m, T> {
    program: &'m Program,
    text: &'m [T],
    fuel: &'m mut Fuel,
    scratch: &'m mut Scratch,
}

/// What an instruction that scans leaves behind.
enum Scan {
    At(usize),
    Fail,
}

impl<T: Unit> Machine<'_, T> {
    /// Matches at exactly `start`.
    fn run(&mut self, start: usize) -> Result<bool, ExecError> {
        self.scratch.choices.clear();
        self.scratch.trail.clear();
        self.scratch.slots.clear();
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
                        Some(_) | None => Scan::Fail,
                    }
                }
                _ => Scan::Fail,
            };
            if let Scan::At(pos) = landed {
                return Ok(Some((pc + 1, pos)));
            }
        }
    }

    /// From `most` down to `least`: the first position where what follows may stand.
    fn give_back(&mut self, pc: usize, repeat: &Loop, least: usize, most: usize) -> Result<Scan, ExecError> {
        let mut at = most;
        if repeat.follow != NO_FOLLOW {
            let follow = &self.program.firsts[repeat.follow as usize];
            while !self.may_come(follow, at) {
                if at <= least {
                    return Ok(Scan::Fail);
                }
                at -= self.width_before(repeat, at);
            }
            self.fuel.charge((most - at) as u64 / 16)?;
        }
        if at > least {
            self.choose(pc as u32, at, least as u32)?;
        }
        Ok(Scan::At(at))
    }

    /// From `at` up: the first position where what follows may stand.
    fn take_more(&mut self, pc: usize, repeat: &Loop, at: usize, rest: u32) -> Result<Scan, ExecError> {
        let (mut at, mut rest) = (at, rest);
        let from = at;
        if repeat.follow != NO_FOLLOW {
            let follow = &self.program.firsts[repeat.follow as usize];
            while !self.may_come(follow, at) {
                match self.one_round(repeat, at) {
                    Some(next) if rest > 0 => (at, rest) = (next, rest - 1),
                    Some(_) | None => {
                        self.fuel.charge((at - from) as u64 / 16)?;
                        return Ok(Scan::Fail);
                    }
                }
            }
            self.fuel.charge((at - from) as u64 / 16)?;
        }
        if rest > 0 {
            self.choose(pc as u32, at, rest)?;
        }
        Ok(Scan::At(at))
    }

    /// As many rounds as possible: the position after the fewest allowed and after the most.
    #[inline]
    fn scan(&mut self, repeat: &Loop, pos: usize) -> Result<Option<(usize, usize)>, ExecError> {
        let set = &self.program.sets[repeat.set as usize];
        if repeat.step == Step::Unit || !T::HAS_PAIRS {
            let text = self.text.get(pos..).unwrap_or(&[]);
            let text = text.get(..repeat.max as usize).unwrap_or(text);
            let rounds = text.iter().position(|unit| !self.holds(set, unit.unit())).unwrap_or(text.len());
            self.fuel.charge(rounds as u64 / 16)?;
            let enough = rounds >= repeat.min as usize;
            return Ok(enough.then(|| (pos + repeat.min as usize, pos + rounds)));
        }
        let (mut at, mut least, mut rounds) = (pos, pos, 0);
        while rounds < repeat.max {
            if rounds == repeat.min {
                least = at;
            }
            let (point, width) = T::point_at(self.text, at);
            if width == 0 || !self.holds(set, point) {
                break;
            }
            at += width;
            rounds += 1;
        }
        self.fuel.charge((at - pos) as u64 / 16)?;
        if rounds == repeat.min {
            least = at;
        }
        Ok((rounds >= repeat.min).then_some((least, at)))
    }

    fn one_round(&self, repeat: &Loop, pos: usize) -> Option<usize> {
        let (point, width) = match repeat.step {
            Step::Unit => (self.text.get(pos)?.unit(), 1),
            Step::Point => T::point_at(self.text, pos),
        };
        (width > 0 && self.in_set(repeat.set, point)).then(|| pos + width)
    }

    fn width_before(&self, repeat: &Loop, pos: usize) -> usize {
        match repeat.step {
            Step::Unit => 1,
            Step::Point => T::point_before(self.text, pos).1,
        }
    }

    fn back_reference(&mut self, way: RefWay, group: u32, pos: usize) -> Result<Scan, ExecError> {
        let (start, end) = (self.read(group * 2), self.read(group * 2 + 1));
        if start == UNSET || end == UNSET {
            return Ok(Scan::At(pos));
        }
        let wanted = self.text.get(start as usize..end as usize).unwrap_or(&[]);
        self.fuel.charge(wanted.len() as u64 / 4)?;
        let (found, landing) = match way {
            RefWay::Forward | RefWay::ForwardUpper | RefWay::ForwardFolded => {
                (self.text.get(pos..pos + wanted.len()), pos + wanted.len())
            }
            RefWay::Backward | RefWay::BackwardUpper | RefWay::BackwardFolded => {
                let from = pos.checked_sub(wanted.len());
                (from.and_then(|from| self.text.get(from..pos)), from.unwrap_or(0))
            }
        };
        let Some(found) = found else { return Ok(Scan::Fail) };
        let same = match way {
            RefWay::Forward | RefWay::Backward => found == wanted,
            RefWay::ForwardUpper | RefWay::BackwardUpper => {
                let upper = |unit: &T| CaseMap::upper().get(unit.unit());
                found.iter().zip(wanted).all(|(a, b)| a == b || upper(a) == upper(b))
            }
            RefWay::ForwardFolded | RefWay::BackwardFolded => same_folded(found, wanted),
        };
        // Under `u` and `v` the copy must not end, or begin, inside a pair.
        let splits = match way {
            RefWay::ForwardUpper | RefWay::BackwardUpper => false,
            RefWay::ForwardFolded | RefWay::BackwardFolded | RefWay::Forward | RefWay::Backward => {
                !wanted.is_empty()
                    && self.program.flags.reads_code_points()
                    && T::is_inside_pair(self.text, landing)
            }
        };
        Ok(if same && !splits { Scan::At(landing) } else { Scan::Fail })
    }

    fn is_word_boundary(&self, set: u32, pos: usize) -> bool {
        let is_word = |unit: Option<&T>| unit.is_some_and(|unit| self.in_set(set, unit.unit()));
        is_word(pos.checked_sub(1).and_then(|at| self.text.get(at))) != is_word(self.text.get(pos))
    }

    #[inline]
    fn may_come(&self, first: &First, pos: usize) -> bool {
        self.text.get(pos).map_or(first.end, |unit| first.has(unit.unit()))
    }

    #[inline]
    fn in_set(&self, set: u32, point: u32) -> bool {
        self.holds(&self.program.sets[set as usize], point)
    }

    #[inline]
    fn holds(&self, set: &Set, point: u32) -> bool {
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

    fn arrive(&self, landed: Scan, pos: &mut usize) -> bool {
        match landed {
            Scan::At(at) => {
                *pos = at;
                true
            }
            Scan::Fail => false,
        }
    }

    fn read(&self, slot: u32) -> u32 {
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
    fn choose(&mut self, pc: u32, pos: usize, rest: u32) -> Result<(), ExecError> {
        if self.scratch.choices.len() >= self.scratch.max_choices {
            return Err(ExecError::StackLimit);
        }
        let trail = self.scratch.trail.len() as u32;
        self.scratch.choices.push(Choice { pc, pos: pos as u32, trail, rest });
        Ok(())
    }
}

fn same_folded<T: Unit>(a: &[T], b: &[T]) -> bool {
    let fold = CaseMap::folding();
    let mut at = 0;
    while at < a.len() {
        let ((one, width), (other, _)) = (T::point_at(a, at), T::point_at(b, at));
        if one != other && fold.get(one) != fold.get(other) {
            return false;
        }
        at += width;
    }
    true
}

pub(super) fn is_newline(unit: u32) -> bool {
    matches!(unit, 0x0a | 0x0d | 0x2028 | 0x2029)
}
