//! Sets of code points as sorted ranges, and the class contents of `v` patterns, which may hold strings too.

use super::tables::CaseMap;
use std::collections::BTreeSet;

/// The largest code point.
pub(super) const LAST: u32 = 0x10_ffff;

/// A set of code points: sorted inclusive ranges that neither overlap nor touch.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct CodeSet(Vec<(u32, u32)>);

impl CodeSet {
    pub(super) const fn empty() -> Self {
        Self(Vec::new())
    }

    pub(super) fn one(point: u32) -> Self {
        Self(vec![(point, point)])
    }

    /// Ranges in any order.
    pub(super) fn from_ranges(mut ranges: Vec<(u32, u32)>) -> Self {
        ranges.sort_unstable();
        Self::from_sorted(ranges)
    }

    /// Ranges in order of their start; they may overlap.
    pub(super) fn from_sorted(ranges: Vec<(u32, u32)>) -> Self {
        let mut merged: Vec<(u32, u32)> = Vec::with_capacity(ranges.len());
        for (first, last) in ranges {
            match merged.last_mut() {
                Some(open) if first <= open.1.saturating_add(1) => open.1 = open.1.max(last),
                Some(_) | None => merged.push((first, last)),
            }
        }
        Self(merged)
    }

    pub(super) fn ranges(&self) -> &[(u32, u32)] {
        &self.0
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The only member, if there is exactly one.
    pub(super) fn single(&self) -> Option<u32> {
        match self.0.as_slice() {
            [(first, last)] if first == last => Some(*first),
            _ => None,
        }
    }

    pub(super) fn contains(&self, point: u32) -> bool {
        let at = self.0.partition_point(|range| range.1 < point);
        self.0.get(at).is_some_and(|range| range.0 <= point)
    }

    pub(super) fn union(&self, other: &Self) -> Self {
        let mut all = Vec::with_capacity(self.0.len() + other.0.len());
        all.extend_from_slice(&self.0);
        all.extend_from_slice(&other.0);
        Self::from_ranges(all)
    }

    pub(super) fn complement(&self) -> Self {
        let mut gaps = Vec::with_capacity(self.0.len() + 1);
        let mut next = 0;
        for &(first, last) in &self.0 {
            if first > next {
                gaps.push((next, first - 1));
            }
            next = last + 1;
        }
        if next <= LAST {
            gaps.push((next, LAST));
        }
        Self(gaps)
    }

    pub(super) fn intersect(&self, other: &Self) -> Self {
        let (mut left, mut right) = (self.0.iter().peekable(), other.0.iter().peekable());
        let mut shared = Vec::new();
        while let (Some(&&a), Some(&&b)) = (left.peek(), right.peek()) {
            let (first, last) = (a.0.max(b.0), a.1.min(b.1));
            if first <= last {
                shared.push((first, last));
            }
            if a.1 < b.1 {
                left.next();
            } else {
                right.next();
            }
        }
        Self(shared)
    }

    pub(super) fn subtract(&self, other: &Self) -> Self {
        self.intersect(&other.complement())
    }

    /// The set together with everything that is the same as a member when case is ignored.
    pub(super) fn close_over_case(&self, map: &CaseMap) -> Self {
        let mut more = Vec::new();
        for &(first, last) in &self.0 {
            for &(_, source) in map.targets(first, last) {
                more.push((source, source));
            }
            for &(_, target) in map.sources(first, last) {
                more.push((target, target));
                more.extend(map.targets(target, target).iter().map(|&(_, source)| (source, source)));
            }
        }
        if more.is_empty() {
            return self.clone();
        }
        more.extend_from_slice(&self.0);
        Self::from_ranges(more)
    }
}

/// What a class of a `v` pattern stands for: single characters, and strings of zero or of several characters.
#[derive(Clone, Debug)]
pub(super) struct ClassSet {
    pub(super) chars: CodeSet,
    /// Never a string of exactly one character: those are in `chars`.
    pub(super) strings: BTreeSet<Vec<u32>>,
}

impl ClassSet {
    pub(super) fn of_chars(chars: CodeSet) -> Self {
        Self { chars, strings: BTreeSet::new() }
    }

    pub(super) fn of_strings(strings: impl IntoIterator<Item = Vec<u32>>) -> Self {
        let mut singles = Vec::new();
        let mut longer = BTreeSet::new();
        for string in strings {
            match string.as_slice() {
                [point] => singles.push((*point, *point)),
                _ => {
                    longer.insert(string);
                }
            }
        }
        Self { chars: CodeSet::from_ranges(singles), strings: longer }
    }

    pub(super) fn union(&mut self, other: Self) {
        self.chars = self.chars.union(&other.chars);
        self.strings.extend(other.strings);
    }

    pub(super) fn intersect(&mut self, other: &Self) {
        self.chars = self.chars.intersect(&other.chars);
        self.strings.retain(|string| other.strings.contains(string));
    }

    pub(super) fn subtract(&mut self, other: &Self) {
        self.chars = self.chars.subtract(&other.chars);
        self.strings.retain(|string| !other.strings.contains(string));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn set_operations_agree_with_membership() {
        let a = CodeSet::from_ranges(vec![(5, 9), (1, 3), (4, 4), (20, 30)]);
        let b = CodeSet::from_ranges(vec![(3, 6), (25, 40), (LAST, LAST)]);
        assert_eq!(a.ranges(), [(1, 9), (20, 30)]);
        for point in (0..60).chain([LAST - 1, LAST]) {
            let (in_a, in_b) = (a.contains(point), b.contains(point));
            assert_eq!(a.union(&b).contains(point), in_a || in_b);
            assert_eq!(a.intersect(&b).contains(point), in_a && in_b);
            assert_eq!(a.subtract(&b).contains(point), in_a && !in_b);
            assert_eq!(b.complement().contains(point), !in_b);
        }
    }

    #[test]
    fn ignoring_case_brings_in_every_relative_of_a_letter() {
        let closed = CodeSet::one(u32::from('S')).close_over_case(CaseMap::folding());
        assert_eq!(closed.ranges(), [(0x53, 0x53), (0x73, 0x73), (0x17f, 0x17f)]);
        let closed = CodeSet::one(0x17f).close_over_case(CaseMap::folding());
        assert_eq!(closed.ranges(), [(0x53, 0x53), (0x73, 0x73), (0x17f, 0x17f)]);
        let closed = CodeSet::one(0x17f).close_over_case(CaseMap::upper());
        assert_eq!(closed.ranges(), [(0x17f, 0x17f)]);
    }
}
