//! A compiled pattern: eight-byte instructions and the flat tables they index. Plain data, ready to be stored.

use super::flags::Flags;

/// One instruction. Targets are instruction numbers; the other numbers index a table of [`Program`].
///
/// `Back` instructions read towards the start of the text, as lookbehinds do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Op {
    /// One unit.
    Unit(u16),
    UnitBack(u16),
    /// A run of units in [`Program::literals`].
    Literal {
        len: u16,
        at: u32,
    },
    /// One unit of a set.
    Set(u32),
    SetBack(u32),
    /// One code point of a set.
    SetPoint(u32),
    SetPointBack(u32),
    /// Writes the position to a slot.
    Save(u32),
    /// Forgets the captures of `len` groups.
    Reset {
        len: u16,
        first: u32,
    },
    Jump(u32),
    /// Goes on; if that fails, tries the target.
    Split(u32),
    /// Goes to the target; if that fails, goes on.
    SplitFar(u32),
    /// Goes on only if the next unit is among [`Program::firsts`]; otherwise jumps.
    Guard {
        first: u16,
        target: u32,
    },
    /// Loops over one set, in [`Program::loops`]: as many as possible, giving back one at a time.
    Greedy(u32),
    /// As many as possible, giving nothing back.
    Possessive(u32),
    /// As few as possible, taking one more at a time.
    Lazy(u32),
    /// Sets a counter slot to zero.
    Zero(u32),
    /// Decides whether a counted loop goes on, in [`Program::counters`].
    Count(u32),
    CountUp(u32),
    /// Fails if the optional round that just ended was empty.
    CheckCount(u32),
    /// Fails if nothing was read since the position in the slot.
    CheckProgress(u32),
    /// Remembers position and open choices in two slots.
    LookEnter(u32),
    /// The lookaround holds: back to that position, its choices are gone.
    LookHolds(u32),
    /// The body of a negative lookaround matched: its choices are gone and it fails.
    LookFails(u32),
    /// What a group matched, again.
    BackRef {
        way: RefWay,
        group: u32,
    },
    TextStart,
    LineStart,
    TextEnd,
    LineEnd,
    /// A word boundary, with the set of word characters.
    Word(u32),
    NotWord(u32),
    Match,
}

/// How a back reference reads and compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RefWay {
    Forward,
    Backward,
    ForwardUpper,
    BackwardUpper,
    ForwardFolded,
    BackwardFolded,
}

/// A set of code points: a bit for each of the first 256, ranges for the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Set {
    pub(super) low: [u64; 4],
    /// Where its ranges are in [`Program::ranges`].
    pub(super) at: u32,
    pub(super) len: u32,
}

/// What the next unit of the text can be if something is to match here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct First {
    pub(super) low: [u64; 4],
    /// A bit for the low six bits of each unit above 255: says "maybe" or "no".
    pub(super) high: u64,
    /// The end of the text.
    pub(super) end: bool,
}

impl First {
    pub(super) const NOTHING: Self = Self { low: [0; 4], high: 0, end: false };
    pub(super) const ANYTHING: Self = Self { low: [u64::MAX; 4], high: u64::MAX, end: true };

    pub(super) fn has(&self, unit: u32) -> bool {
        match self.low.get((unit >> 6) as usize) {
            Some(word) => word >> (unit & 63) & 1 == 1,
            None => self.high >> (unit & 63) & 1 == 1,
        }
    }

    pub(super) fn insert(&mut self, unit: u32) {
        match self.low.get_mut((unit >> 6) as usize) {
            Some(word) => *word |= 1 << (unit & 63),
            None => self.high |= 1 << (unit & 63),
        }
    }

    pub(super) fn union(&self, other: &Self) -> Self {
        Self {
            low: std::array::from_fn(|at| self.low[at] | other.low[at]),
            high: self.high | other.high,
            end: self.end || other.end,
        }
    }

    pub(super) fn is_disjoint(&self, other: &Self) -> bool {
        let shared = (0..4).any(|at| self.low[at] & other.low[at] != 0);
        !(shared || self.high & other.high != 0 || (self.end && other.end))
    }
}

/// A loop over one set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Loop {
    pub(super) set: u32,
    pub(super) min: u32,
    pub(super) max: u32,
    pub(super) step: Step,
    /// What must come after the loop, as an index of [`Program::firsts`]; [`NO_FOLLOW`] if anything may.
    pub(super) follow: u32,
}

/// No index: anything may follow.
pub(super) const NO_FOLLOW: u32 = u32::MAX;

/// What one round of a loop reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Unit,
    Point,
}

/// A loop over anything, counted: the slot holds the rounds begun, the slot after it where the last one began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Counter {
    pub(super) slot: u32,
    pub(super) min: u32,
    pub(super) max: u32,
    pub(super) exit: u32,
    pub(super) lazy: bool,
}

/// How to find the next place worth trying.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Search {
    /// Only at the start of the text.
    Anchored,
    /// At a place where these units stand (in [`Program::literals`]).
    Literal { at: u32, len: u32 },
    /// Where the next unit is in [`Program::first`].
    First,
    /// Anywhere.
    Everywhere,
}

/// A compiled pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    pub(super) code: Vec<Op>,
    pub(super) sets: Vec<Set>,
    pub(super) ranges: Vec<(u32, u32)>,
    pub(super) literals: Vec<u16>,
    pub(super) loops: Vec<Loop>,
    pub(super) counters: Vec<Counter>,
    pub(super) firsts: Vec<First>,
    pub(super) search: Search,
    pub(super) first: First,
    /// Up to three bytes that are the whole of `first`, for the fastest scan.
    pub(super) first_bytes: Option<([u8; 3], u8)>,
    /// A match has at least so many units.
    pub(super) min_len: u32,
    /// Captures, then counters and marks.
    pub(super) slots: u32,
    pub(super) groups: u32,
    pub(super) names: Vec<(String, Vec<u32>)>,
    pub(super) flags: Flags,
}

impl Program {
    /// The flags it was compiled with.
    #[must_use]
    pub fn flags(&self) -> Flags {
        self.flags
    }

    /// How many captures a match has, the whole match included.
    #[must_use]
    pub fn group_count(&self) -> usize {
        self.groups as usize
    }

    /// The group names in the order of the pattern, each with the groups that carry it.
    pub fn names(&self) -> impl Iterator<Item = (&str, &[u32])> {
        self.names.iter().map(|(name, groups)| (name.as_str(), groups.as_slice()))
    }

    /// Roughly the memory it holds, for accounting.
    #[must_use]
    pub fn size_in_bytes(&self) -> usize {
        size_of::<Self>()
            + size_of_val(self.code.as_slice())
            + size_of_val(self.sets.as_slice())
            + size_of_val(self.ranges.as_slice())
            + size_of_val(self.literals.as_slice())
            + size_of_val(self.loops.as_slice())
            + size_of_val(self.counters.as_slice())
            + size_of_val(self.firsts.as_slice())
            + self.names.iter().map(|(name, groups)| name.len() + 4 * groups.len()).sum::<usize>()
    }
}

const _: () = assert!(size_of::<Op>() == 8);
