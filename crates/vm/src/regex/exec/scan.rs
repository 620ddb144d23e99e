//! Instructions that pass over many units at once: loops over one set, back references, word boundaries.

use super::ExecError;
use super::machine::{Machine, UNSET};
use crate::regex::program::{Loop, NO_FOLLOW, RefWay, Step};
use crate::regex::tables::CaseMap;
use crate::regex::text::Unit;

/// What an instruction that scans leaves behind.
pub(super) enum Landing {
    At(usize),
    Fail,
}

impl<T: Unit> Machine<'_, T> {
    /// From `most` down to `least`: the first position where what follows may stand.
    pub(super) fn give_back(
        &mut self,
        pc: usize,
        repeat: &Loop,
        least: usize,
        most: usize,
    ) -> Result<Landing, ExecError> {
        let mut at = most;
        if repeat.follow != NO_FOLLOW {
            let follow = &self.program.firsts[repeat.follow as usize];
            while !self.may_come(follow, at) {
                if at <= least {
                    return Ok(Landing::Fail);
                }
                at -= self.width_before(repeat, at);
            }
            self.fuel.charge((most - at) as u64 / 16)?;
        }
        if at > least {
            self.choose(pc as u32, at, least as u32)?;
        }
        Ok(Landing::At(at))
    }

    /// From `at` up: the first position where what follows may stand.
    pub(super) fn take_more(
        &mut self,
        pc: usize,
        repeat: &Loop,
        at: usize,
        rest: u32,
    ) -> Result<Landing, ExecError> {
        let (mut at, mut rest) = (at, rest);
        let from = at;
        if repeat.follow != NO_FOLLOW {
            let follow = &self.program.firsts[repeat.follow as usize];
            while !self.may_come(follow, at) {
                match self.one_round(repeat, at) {
                    Some(next) if rest > 0 => (at, rest) = (next, rest - 1),
                    Some(_) | None => {
                        self.fuel.charge((at - from) as u64 / 16)?;
                        return Ok(Landing::Fail);
                    }
                }
            }
            self.fuel.charge((at - from) as u64 / 16)?;
        }
        if rest > 0 {
            self.choose(pc as u32, at, rest)?;
        }
        Ok(Landing::At(at))
    }

    /// As many rounds as possible: the position after the fewest allowed and after the most.
    #[inline]
    pub(super) fn scan(&mut self, repeat: &Loop, pos: usize) -> Result<Option<(usize, usize)>, ExecError> {
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

    pub(super) fn one_round(&self, repeat: &Loop, pos: usize) -> Option<usize> {
        let (point, width) = match repeat.step {
            Step::Unit => (self.text.get(pos)?.unit(), 1),
            Step::Point => T::point_at(self.text, pos),
        };
        (width > 0 && self.in_set(repeat.set, point)).then(|| pos + width)
    }

    pub(super) fn width_before(&self, repeat: &Loop, pos: usize) -> usize {
        match repeat.step {
            Step::Unit => 1,
            Step::Point => T::point_before(self.text, pos).1,
        }
    }

    pub(super) fn back_reference(
        &mut self,
        way: RefWay,
        group: u32,
        pos: usize,
    ) -> Result<Landing, ExecError> {
        let (start, end) = (self.read(group * 2), self.read(group * 2 + 1));
        if start == UNSET || end == UNSET {
            return Ok(Landing::At(pos));
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
        let Some(found) = found else { return Ok(Landing::Fail) };
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
        Ok(if same && !splits { Landing::At(landing) } else { Landing::Fail })
    }

    pub(super) fn is_word_boundary(&self, set: u32, pos: usize) -> bool {
        let is_word = |unit: Option<&T>| unit.is_some_and(|unit| self.in_set(set, unit.unit()));
        is_word(pos.checked_sub(1).and_then(|at| self.text.get(at))) != is_word(self.text.get(pos))
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
