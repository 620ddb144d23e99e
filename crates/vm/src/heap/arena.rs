//! The typed arena: records of one kind, named by `u32` ids, reused through a free list that only the sweep fills.

use std::marker::PhantomData;
use std::ops::{Index, IndexMut};

/// An arena index wrapped in a newtype.
pub(crate) trait Id: Copy {
    fn from_index(index: u32) -> Self;
    fn index(self) -> usize;
}

/// What an arena needs to know about its records.
pub(crate) trait Record {
    /// The content of a free entry.
    fn vacant() -> Self;
    /// Is this a free entry?
    fn is_vacant(&self) -> bool;
    /// Turns the record into a free entry.
    fn vacate(&mut self)
    where
        Self: Sized,
    {
        *self = Self::vacant();
    }
    /// The bytes charged for this record, everything it owns included.
    fn bytes(&self) -> usize;
}

/// For records that have no natural "nobody home" value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Vacancy {
    Free,
    Taken,
}

/// An arena of so many bytes is never shrunk: it is about to be filled again, and fresh pages are dear.
const KEEP: usize = 8 << 20;

#[derive(Clone, Debug)]
pub(crate) struct Arena<I, T> {
    pub(super) items: Vec<T>,
    pub(super) free: Vec<u32>,
    id: PhantomData<I>,
}

impl<I: Id, T: Record> Arena<I, T> {
    pub(crate) const fn new() -> Self {
        Arena { items: Vec::new(), free: Vec::new(), id: PhantomData }
    }

    /// Stores a record. The caller has charged for it.
    #[inline]
    pub(crate) fn insert(&mut self, record: T) -> I {
        if let Some(index) = self.free.pop() {
            self.items[index as usize] = record;
            I::from_index(index)
        } else {
            // Ids stay far below 2^32: every record is charged at least 8 bytes, and `Limits` caps records at 2^30.
            let index = self.items.len() as u32;
            self.items.push(record);
            I::from_index(index)
        }
    }

    /// Lists the free entries anew, in the order in which a sweep leaves them.
    pub(super) fn free_vacant(&mut self, base: u32) {
        let added = self.items.iter().enumerate().skip(base as usize).rev();
        self.free = added.filter(|(_, record)| record.is_vacant()).map(|(i, _)| i as u32).collect();
    }

    /// Gives up the free entries: in a fork they belong to the image.
    pub(super) fn forget_free(&mut self) {
        self.free = Vec::new();
    }

    /// How many entries there are, free ones included: the size of a mark bitmap.
    pub(crate) fn span(&self) -> usize {
        self.items.len()
    }

    /// The memory that the entries take, free ones included, without what live ones own.
    pub(crate) fn footprint(&self) -> usize {
        self.items.len() * size_of::<T>()
    }

    /// Every live record with its id, in id order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (I, &T)> {
        self.items
            .iter()
            .enumerate()
            .filter(|(_, r)| !r.is_vacant())
            .map(|(i, r)| (I::from_index(i as u32), r))
    }

    /// Frees what is not marked, shows each doomed record to `dying`, and reports what survived. The first `base`
    /// entries stay as they are.
    pub(crate) fn sweep(&mut self, base: u32, marks: &Marks, dying: impl FnMut(&T)) -> Survivors {
        self.sweep_parts(base as usize, 0, marks, dying)
    }

    /// The same for an arena whose first entry is marked in this word.
    pub(super) fn sweep_from(&mut self, word: usize, marks: &Marks, dying: impl FnMut(&T)) -> Survivors {
        self.sweep_parts(0, word, marks, dying)
    }

    fn sweep_parts(
        &mut self,
        base: usize,
        first_word: usize,
        marks: &Marks,
        mut dying: impl FnMut(&T),
    ) -> Survivors {
        self.free.clear();
        let mut survivors = Survivors::default();
        for record in self.items.iter().take(base).filter(|record| !record.is_vacant()) {
            survivors.records += 1;
            survivors.bytes += record.bytes();
        }
        // The free entries after the last live one are given back instead of listed.
        let mut end = base.min(self.items.len());
        // From the top down, so that the free list hands out low ids first and the arena stays dense.
        for (word, chunk) in self.items.chunks_mut(64).enumerate().skip(base / 64).rev() {
            let bits = marks.word(first_word + word);
            for (bit, record) in chunk.iter_mut().enumerate().rev() {
                if word * 64 + bit < base {
                    break;
                }
                if bits >> bit & 1 == 1 {
                    end = end.max(word * 64 + bit + 1);
                    survivors.records += 1;
                    survivors.bytes += record.bytes();
                    continue;
                }
                if !record.is_vacant() {
                    dying(record);
                    record.vacate();
                }
                if end > base {
                    self.free.push((word * 64 + bit) as u32);
                }
            }
        }
        self.items.truncate(end);
        let keep = KEEP / size_of::<T>();
        if self.items.capacity() > keep && self.items.capacity() / 4 > end {
            self.items.shrink_to(keep.max(end * 2));
        }
        survivors
    }
}

impl<I: Id, T> Index<I> for Arena<I, T> {
    type Output = T;
    #[inline]
    fn index(&self, id: I) -> &T {
        &self.items[id.index()]
    }
}

impl<I: Id, T> IndexMut<I> for Arena<I, T> {
    #[inline]
    fn index_mut(&mut self, id: I) -> &mut T {
        &mut self.items[id.index()]
    }
}

/// What a sweep left alive.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub(crate) struct Survivors {
    pub(crate) records: usize,
    pub(crate) bytes: usize,
}

impl std::ops::AddAssign for Survivors {
    fn add_assign(&mut self, other: Survivors) {
        self.records += other.records;
        self.bytes += other.bytes;
    }
}

/// One mark bit per arena entry.
#[derive(Clone, Default, Debug)]
pub(crate) struct Marks(Vec<u64>);

impl Marks {
    pub(crate) fn reset(&mut self, span: usize) {
        self.0.clear();
        self.0.resize(span.div_ceil(64), 0);
    }

    /// Sets the first bits.
    pub(crate) fn fill(&mut self, count: u32) {
        let count = count as usize;
        for word in self.0.iter_mut().take(count / 64) {
            *word = u64::MAX;
        }
        if let Some(word) = self.0.get_mut(count / 64) {
            *word |= (1 << (count % 64)) - 1;
        }
    }

    #[inline]
    pub(crate) fn get(&self, index: usize) -> bool {
        self.0.get(index / 64).is_some_and(|word| word >> (index % 64) & 1 == 1)
    }

    /// Sixty-four marks at once.
    #[inline]
    fn word(&self, word: usize) -> u64 {
        self.0.get(word).copied().unwrap_or(0)
    }

    /// Sets the bit and says whether it was clear before.
    #[inline]
    pub(crate) fn set(&mut self, index: usize) -> bool {
        // An id beyond the bitmap cannot come from this heap; ignoring it is safer than a panic in the collector.
        let Some(word) = self.0.get_mut(index / 64) else { return false };
        let bit = 1u64 << (index % 64);
        let fresh = *word & bit == 0;
        *word |= bit;
        fresh
    }
}
