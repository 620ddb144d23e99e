//! Sorting by a comparator that is guest code: timsort, one question at a time.
//!
//! A comparator may suspend, so a sort is a record of numbers beside the list it sorts, and [`Heap::sort_step`] goes on from
//! one comparison to the next. It asks the same questions in the same order as the engine that most scripts are tried in.
//! Whatever the record says, a step stays inside its lists: a snapshot may have been tampered with.

use super::{AllocError, Class, ElementsId, Flags, Heap, ObjId, ShapeId, SlotsId};
use crate::value::Value;

/// What a sort wants next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SortStep {
    /// The answer to [`Heap::sort_question`].
    Compare,
    /// Nothing: the list is sorted.
    Done,
}

// The fields of the record: two lists, three values, numbers, and then the runs that wait (where each begins, how long it is).
pub(super) const LIST: usize = 0;
pub(super) const TEMP: usize = 1;
pub(super) const KEY: usize = 2;
pub(super) const FIRST: usize = 3;
pub(super) const SECOND: usize = 4;
pub(super) const PHASE: usize = 5;
/// Where to go on after a gallop.
pub(super) const THEN: usize = 6;
pub(super) const LOW: usize = 7;
pub(super) const LEFT: usize = 8;
pub(super) const SHORTEST: usize = 9;
pub(super) const GALLOP: usize = 10;
pub(super) const K: usize = 11;
pub(super) const END: usize = 12;
pub(super) const LO: usize = 13;
pub(super) const HI: usize = 14;
pub(super) const DESCENDING: usize = 15;
pub(super) const RUNS: usize = 16;
pub(super) const FORCED: usize = 17;
pub(super) const A: usize = 18;
pub(super) const N: usize = 19;
pub(super) const B: usize = 20;
pub(super) const M: usize = 21;
pub(super) const TO: usize = 22;
pub(super) const I: usize = 23;
pub(super) const J: usize = 24;
pub(super) const WINS_A: usize = 25;
pub(super) const WINS_B: usize = 26;
/// The gallop: in which list, from where, how many, beginning where, to which side of equals, in which direction.
pub(super) const G_TEMP: usize = 27;
pub(super) const G_BASE: usize = 28;
pub(super) const G_N: usize = 29;
pub(super) const G_HINT: usize = 30;
pub(super) const G_RIGHT: usize = 31;
pub(super) const G_UP: usize = 32;
/// See [`Heap::sort_asks_again`].
pub(super) const AGAIN: usize = 33;
pub(super) const RUN: usize = 34;

/// So many wins in a row are worth galloping.
pub(super) const MIN_GALLOP: i64 = 7;

macro_rules! phases {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum Phase { $($(#[$doc])* $name),* }
        impl Phase {
            const ALL: &'static [Phase] = &[$(Phase::$name),*];
        }
    };
}

phases! {
    Begin,
    /// Waits for the answer that says whether a run descends.
    CountFirst,
    CountMore,
    /// Waits for an answer.
    Count,
    RunEnd,
    InsertNext,
    InsertMore,
    /// Waits for an answer.
    Insert,
    PushRun,
    Collapse,
    Force,
    Merged,
    /// After the gallops that trim both runs.
    TrimmedA,
    TrimmedB,
    LowRound,
    /// Waits for an answer.
    Low,
    LowGallop,
    LowA,
    LowB,
    HighRound,
    /// Waits for an answer.
    High,
    HighGallop,
    HighA,
    HighB,
    /// Waits for an answer.
    GallopFirst,
    GallopMore,
    /// Waits for an answer.
    Gallop,
    GallopEnd,
    /// Waits for an answer.
    GallopBinary,
    Done,
}

impl Heap {
    /// A sort of a dense array without holes, which only the sort may change from now on. `temp` is another of the same
    /// length, its content does not matter.
    pub fn new_sort(&mut self, shape: ShapeId, list: ObjId, temp: ObjId) -> Result<ObjId, AllocError> {
        let n = self.array_length(list);
        let Ok(length) = i32::try_from(n) else { return Err(AllocError::TooLong) };
        let mut shortest = length;
        let mut odd = 0;
        while shortest >= 64 {
            odd |= shortest & 1;
            shortest >>= 1;
        }
        // Waiting runs grow like Fibonacci numbers, so there are fewer than one and a half times the bits of the length.
        let runs = (u32::BITS - n.leading_zeros()) as usize * 3 / 2 + 4;
        let mut fields = vec![Value::ZERO; RUN + 2 * runs];
        fields[LIST] = Value::array(list);
        fields[TEMP] = Value::array(temp);
        fields[LEFT] = Value::int(length);
        fields[SHORTEST] = Value::int(shortest + odd);
        fields[GALLOP] = Value::int(MIN_GALLOP as i32);
        self.new_object_with_slots(shape, Class::Branded, Flags::NONE, &fields)
    }

    /// Goes on to the next comparison. `less` answers the last one; the first time it does not matter. `None`: the record is
    /// not one of a sort. Also answers how much work was done beside the comparison.
    pub fn sort_step(&mut self, record: SlotsId, less: bool) -> Option<(SortStep, u64)> {
        self.fields.will_write(record);
        let place = self.fields[record];
        let fields = &mut self.slab.values[place.start as usize..][..place.len as usize];
        if fields.len() < RUN {
            return None;
        }
        let (list, temp) = (fields[LIST].as_array()?, fields[TEMP].as_array()?);
        let list = ElementsId::from_raw(self.objects[list].payload);
        let temp_id = ElementsId::from_raw(self.objects[temp].payload);
        // Taken out for the time of the step: two lists of one arena.
        let mut temp = std::mem::take(&mut self.elements[temp_id].values);
        let mut machine = Machine { fields, list: &mut self.elements[list].values, temp: &mut temp, work: 0 };
        let step = machine.step(less);
        let work = machine.work;
        self.elements[temp_id].values = temp;
        Some((step, work))
    }

    /// How the first compares with the second is what the sort waits for.
    #[inline]
    pub fn sort_question(&self, record: SlotsId) -> (Value, Value) {
        match self.slots(record).get(FIRST..=SECOND) {
            Some(&[first, second]) => (first, second),
            _ => (Value::UNDEFINED, Value::UNDEFINED),
        }
    }

    /// Whether no question has been asked yet.
    #[inline]
    pub fn sort_begins(&self, record: SlotsId) -> bool {
        self.slots(record).get(PHASE) == Some(&Value::ZERO)
    }

    /// Whether the question has to be asked again: an allocation got in the way the first time.
    #[inline]
    pub fn sort_asks_again(&mut self, record: SlotsId) -> bool {
        let place = self.slots_mut(record).get_mut(AGAIN);
        place.is_some_and(|again| std::mem::replace(again, Value::ZERO) != Value::ZERO)
    }

    /// The question could not be asked.
    pub fn ask_sort_again(&mut self, record: SlotsId) {
        if let Some(again) = self.slots_mut(record).get_mut(AGAIN) {
            *again = Value::int(1);
        }
    }
}

pub(super) struct Machine<'a> {
    pub(super) fields: &'a mut [Value],
    list: &'a mut [Value],
    temp: &'a mut [Value],
    work: u64,
}

impl Machine<'_> {
    fn step(&mut self, less: bool) -> SortStep {
        // A record that was tampered with could go in circles; an honest one needs far fewer steps.
        for _ in 0..10_000 {
            let phase = usize::try_from(self.get(PHASE)).ok().and_then(|p| Phase::ALL.get(p));
            let Some(asked) = self.advance(phase.copied().unwrap_or(Phase::Done), less) else { continue };
            return asked;
        }
        SortStep::Done
    }

    /// One phase: answers when a comparison is needed or the sort is done.
    fn advance(&mut self, phase: Phase, less: bool) -> Option<SortStep> {
        match phase {
            Phase::Low => self.low(less),
            Phase::High => self.high(less),
            Phase::Begin => {
                let (low, left) = (self.get(LOW), self.get(LEFT));
                if left <= 0 {
                    return self.go(Phase::Force);
                }
                self.set(K, low + 1);
                self.set(DESCENDING, 0);
                if left == 1 {
                    return self.go(Phase::RunEnd);
                }
                self.ask(Phase::CountFirst, self.at(low + 1), self.at(low))
            }
            Phase::CountFirst => {
                self.set(DESCENDING, i64::from(less));
                self.set(K, self.get(LOW) + 2);
                self.go(Phase::CountMore)
            }
            Phase::CountMore => {
                let k = self.get(K);
                if k < self.get(LOW) + self.get(LEFT) {
                    return self.ask(Phase::Count, self.at(k), self.at(k - 1));
                }
                self.go(Phase::RunEnd)
            }
            Phase::Count => {
                if i64::from(less) != self.get(DESCENDING) {
                    return self.go(Phase::RunEnd);
                }
                self.add(K, 1);
                self.go(Phase::CountMore)
            }
            Phase::RunEnd => {
                let (low, k) = (self.get(LOW), self.get(K));
                if self.get(DESCENDING) == 1
                    && let Some(run) = range(self.list, low, k - low)
                {
                    run.reverse();
                    self.work += (k - low).max(0) as u64;
                }
                let forced = low + self.get(SHORTEST).min(self.get(LEFT));
                self.set(END, forced.max(k));
                self.go(if k < forced { Phase::InsertNext } else { Phase::PushRun })
            }
            Phase::InsertNext => {
                let start = self.get(K);
                if start >= self.get(END) {
                    return self.go(Phase::PushRun);
                }
                self.set(LO, self.get(LOW));
                self.set(HI, start);
                self.go(Phase::InsertMore)
            }
            Phase::InsertMore => {
                let (lo, hi, start) = (self.get(LO), self.get(HI), self.get(K));
                if lo < hi {
                    return self.ask(Phase::Insert, self.at(start), self.at((lo + hi) >> 1));
                }
                if let Some(run) = range(self.list, lo, start - lo + 1).filter(|run| !run.is_empty()) {
                    run.rotate_right(1);
                    self.work += (start - lo).max(0) as u64 / 4;
                }
                self.add(K, 1);
                self.go(Phase::InsertNext)
            }
            Phase::Insert => {
                let middle = (self.get(LO) + self.get(HI)) >> 1;
                if less {
                    self.set(HI, middle)
                } else {
                    self.set(LO, middle + 1)
                }
                self.go(Phase::InsertMore)
            }
            Phase::PushRun => {
                let (low, run, runs) = (self.get(LOW), self.get(END) - self.get(LOW), self.get(RUNS));
                self.set_run(runs, low, run);
                self.set(RUNS, runs + 1);
                self.set(LOW, low + run);
                self.add(LEFT, -run);
                self.go(Phase::Collapse)
            }
            Phase::Collapse => {
                let runs = self.get(RUNS);
                if runs < 2 {
                    return self.go(Phase::Begin);
                }
                let mut at = runs - 2;
                if !self.balanced(at + 1) || !self.balanced(at) {
                    if self.length(at - 1) < self.length(at + 1) {
                        at -= 1;
                    }
                } else if self.length(at) > self.length(at + 1) {
                    return self.go(Phase::Begin);
                }
                self.merge_at(at)
            }
            Phase::Force => {
                self.set(FORCED, 1);
                let runs = self.get(RUNS);
                if runs < 2 {
                    return self.go(Phase::Done);
                }
                let mut at = runs - 2;
                if at > 0 && self.length(at - 1) < self.length(at + 1) {
                    at -= 1;
                }
                self.merge_at(at)
            }
            Phase::Merged => self.go(if self.get(FORCED) == 1 { Phase::Force } else { Phase::Collapse }),
            Phase::TrimmedA => {
                let skip = self.get(HI);
                self.add(A, skip);
                self.add(N, -skip);
                let (a, n, b, m) = (self.get(A), self.get(N), self.get(B), self.get(M));
                if n <= 0 {
                    return self.go(Phase::Merged);
                }
                self.gallop(Phase::TrimmedB, Side::Left, self.at(a + n - 1), In::List, [b, m, m - 1])
            }
            Phase::TrimmedB => {
                self.set(M, self.get(HI));
                self.merge()
            }
            Phase::LowRound => {
                self.set(WINS_A, 0);
                self.set(WINS_B, 0);
                self.ask(Phase::Low, self.at(self.get(J)), self.temp_at(self.get(I)))
            }
            Phase::LowGallop => {
                self.set(GALLOP, (self.get(GALLOP) - 1).max(1));
                let (i, n) = (self.get(I), self.get(N));
                self.gallop(Phase::LowA, Side::Right, self.at(self.get(J)), In::Temp, [i, n, 0])
            }
            Phase::LowA => self.low_a(),
            Phase::LowB => self.low_b(),
            Phase::HighRound => {
                self.set(WINS_A, 0);
                self.set(WINS_B, 0);
                self.ask(Phase::High, self.temp_at(self.get(J)), self.at(self.get(I)))
            }
            Phase::HighGallop => {
                self.set(GALLOP, (self.get(GALLOP) - 1).max(1));
                let (a, n, key) = (self.get(A), self.get(N), self.temp_at(self.get(J)));
                self.gallop(Phase::HighA, Side::Right, key, In::List, [a, n, n - 1])
            }
            Phase::HighA => self.high_a(),
            Phase::HighB => self.high_b(),
            Phase::GallopFirst => {
                // Which way to look from the hint.
                let up = if self.get(G_RIGHT) == 1 { !less } else { less };
                self.set(G_UP, i64::from(up));
                self.set(LO, 0);
                self.set(HI, 1);
                self.go(Phase::GallopMore)
            }
            Phase::GallopMore => {
                let (offset, hint) = (self.get(HI), self.get(G_HINT));
                let up = self.get(G_UP) == 1;
                let most = if up { self.get(G_N) - hint } else { hint + 1 };
                if offset < most {
                    let place = if up { hint + offset } else { hint - offset };
                    return self.ask_gallop(Phase::Gallop, place);
                }
                self.set(HI, most);
                self.go(Phase::GallopEnd)
            }
            Phase::Gallop => {
                let (up, right) = (self.get(G_UP) == 1, self.get(G_RIGHT) == 1);
                let stop = if up == right { less } else { !less };
                if stop {
                    return self.go(Phase::GallopEnd);
                }
                let offset = self.get(HI);
                self.set(LO, offset);
                self.set(HI, offset.saturating_mul(2).saturating_add(1));
                self.go(Phase::GallopMore)
            }
            Phase::GallopEnd => {
                let (last, offset, hint) = (self.get(LO), self.get(HI), self.get(G_HINT));
                let (last, offset) = if self.get(G_UP) == 1 {
                    (last + hint, offset + hint)
                } else {
                    (hint - offset, hint - last)
                };
                self.set(LO, last + 1);
                self.set(HI, offset);
                self.search()
            }
            Phase::GallopBinary => {
                let (last, offset) = (self.get(LO), self.get(HI));
                let middle = last + ((offset - last) >> 1);
                if (self.get(G_RIGHT) == 1) == less {
                    self.set(HI, middle)
                } else {
                    self.set(LO, middle + 1)
                }
                self.search()
            }
            Phase::Done => Some(SortStep::Done),
        }
    }

    fn search(&mut self) -> Option<SortStep> {
        let (last, offset) = (self.get(LO), self.get(HI));
        if last < offset {
            return self.ask_gallop(Phase::GallopBinary, last + ((offset - last) >> 1));
        }
        self.set(PHASE, self.get(THEN));
        None
    }

    pub(super) fn ask_gallop(&mut self, phase: Phase, place: i64) -> Option<SortStep> {
        let at = self.get(G_BASE) + place;
        let element = if self.get(G_TEMP) == 1 { self.temp_at(at) } else { self.at(at) };
        let key = self.fields[KEY];
        if self.get(G_RIGHT) == 1 { self.ask(phase, key, element) } else { self.ask(phase, element, key) }
    }

    #[inline]
    pub(super) fn ask(&mut self, phase: Phase, first: Value, second: Value) -> Option<SortStep> {
        self.set(PHASE, phase as i64);
        self.fields[FIRST] = first;
        self.fields[SECOND] = second;
        Some(SortStep::Compare)
    }

    #[inline]
    pub(super) fn go(&mut self, phase: Phase) -> Option<SortStep> {
        self.set(PHASE, phase as i64);
        None
    }

    /// Whether a run is shorter than those before it together, as it should be.
    fn balanced(&self, n: i64) -> bool {
        n < 2 || self.length(n - 2) > self.length(n - 1).saturating_add(self.length(n))
    }

    fn length(&self, n: i64) -> i64 {
        self.run(n).1
    }

    pub(super) fn run(&self, n: i64) -> (i64, i64) {
        let at = RUN + 2 * n.max(0) as usize;
        let field = |at: usize| self.fields.get(at).map_or(0, |v| i64::from(v.int_unchecked()));
        (field(at), field(at + 1))
    }

    pub(super) fn set_run(&mut self, n: i64, start: i64, length: i64) {
        let at = RUN + 2 * n.max(0) as usize;
        if let Some([a, b]) = self.fields.get_mut(at..at + 2) {
            *a = Value::int(start as i32);
            *b = Value::int(length as i32);
        }
    }

    /// A number of the record. Sums of such numbers cannot overflow, whatever a snapshot says.
    #[inline]
    pub(super) fn get(&self, field: usize) -> i64 {
        i64::from(self.fields[field].int_unchecked())
    }

    #[inline]
    pub(super) fn set(&mut self, field: usize, v: i64) {
        self.fields[field] = Value::int(v as i32);
    }

    #[inline]
    pub(super) fn add(&mut self, field: usize, v: i64) -> i64 {
        let sum = self.get(field) + v;
        self.set(field, sum);
        sum
    }

    #[inline]
    pub(super) fn at(&self, i: i64) -> Value {
        usize::try_from(i).ok().and_then(|i| self.list.get(i)).copied().unwrap_or(Value::UNDEFINED)
    }

    #[inline]
    pub(super) fn temp_at(&self, i: i64) -> Value {
        usize::try_from(i).ok().and_then(|i| self.temp.get(i)).copied().unwrap_or(Value::UNDEFINED)
    }

    #[inline]
    pub(super) fn put(&mut self, i: i64, v: Value) {
        if let Some(place) = usize::try_from(i).ok().and_then(|i| self.list.get_mut(i)) {
            *place = v;
        }
    }

    pub(super) fn copy_out(&mut self, start: i64, count: i64) {
        self.work += count.max(0) as u64 / 16;
        if let (Some(from), Some(to)) = (range(self.list, start, count), range(self.temp, 0, count)) {
            to.copy_from_slice(from);
        }
    }

    pub(super) fn copy_in(&mut self, from: i64, to: i64, count: i64) {
        self.work += count.max(0) as u64 / 16;
        if let (Some(from), Some(to)) = (range(self.temp, from, count), range(self.list, to, count)) {
            to.copy_from_slice(from);
        }
    }

    /// Moves elements inside the list.
    pub(super) fn slide(&mut self, from: i64, to: i64, count: i64) {
        self.work += count.max(0) as u64 / 16;
        if range(self.list, from, count).is_some() && range(self.list, to, count).is_some() {
            self.list.copy_within(from as usize..(from + count) as usize, to as usize);
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Left,
    Right,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum In {
    List,
    Temp,
}

fn range(values: &mut [Value], start: i64, count: i64) -> Option<&mut [Value]> {
    let (start, count) = (usize::try_from(start).ok()?, usize::try_from(count).ok()?);
    values.get_mut(start..start + count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::heap::{Limits, Pace};

    /// A list of numbers in no particular order, and a sort of it.
    fn sort_of(heap: &mut Heap, n: i32) -> Result<(ObjId, SlotsId), AllocError> {
        let shape = heap.root_shape(None)?;
        let values: Vec<Value> = (0..n).map(|i| Value::int(i * 7919 % 1009)).collect();
        let list = heap.new_array(shape, &values)?;
        let temp = heap.new_array(shape, &values)?;
        let sort = heap.new_sort(shape, list, temp)?;
        let record = heap.slots_of(sort).expect("a sort is a record");
        Ok((list, record))
    }

    fn less(heap: &Heap, record: SlotsId) -> bool {
        let (a, b) = heap.sort_question(record);
        a.as_int() < b.as_int()
    }

    #[test]
    fn a_list_of_any_length_is_sorted_with_few_questions() -> Result<(), AllocError> {
        let mut heap = Heap::new(Limits { bytes: 1 << 24, records: 1 << 16 }, Pace::Adaptive, 1);
        for n in [0, 1, 2, 63, 64, 65, 1000, 5000] {
            let (list, record) = sort_of(&mut heap, n)?;
            let (mut answer, mut asked) = (false, 0);
            while let Some((SortStep::Compare, _)) = heap.sort_step(record, answer) {
                answer = less(&heap, record);
                asked += 1;
            }
            let sorted = heap.packed(list).expect("nothing is lost");
            assert!(sorted.is_sorted_by_key(|v| v.as_int()), "{n}");
            assert_eq!(sorted.len(), n as usize);
            assert!(asked <= n * n.max(1).ilog2() as i32 + n, "{asked} questions for {n}");
        }
        Ok(())
    }

    #[test]
    fn a_record_that_was_tampered_with_stays_inside_its_lists() -> Result<(), AllocError> {
        let mut heap = Heap::new(Limits { bytes: 1 << 24, records: 1 << 18 }, Pace::Adaptive, 1);
        let mut seed = 42u64;
        let mut random = || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) as i32
        };
        for round in 0..3000 {
            if round % 100 == 0 {
                heap = Heap::new(Limits { bytes: 1 << 24, records: 1 << 18 }, Pace::Adaptive, 1);
            }
            let (_, record) = sort_of(&mut heap, round % 100)?;
            for step in 0..200 {
                if step % 5 == round % 5 {
                    let fields = heap.slots_mut(record);
                    let at = PHASE + random() as usize % (fields.len() - PHASE);
                    let small = random() % 130 - 10;
                    fields[at] = match random() % 4 {
                        0 => Value::int(i32::MIN),
                        1 => Value::int(i32::MAX),
                        2 => Value::int(random()),
                        _ => Value::int(small),
                    };
                }
                let answer = random() % 2 == 0;
                if heap.sort_step(record, answer).is_none_or(|(step, _)| step == SortStep::Done) {
                    break;
                }
            }
        }
        Ok(())
    }
}
