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
    /// How many records came with the image. They are never freed, and those that are written to are listed, so that
    /// neither a collection nor a snapshot has to look at the others.
    pub(super) line: usize,
    /// What they amounted to when the heap was forked.
    floor: Survivors,
    touched: Vec<Touched>,
    /// One bit for each record of the image: is it listed? Empty while none is.
    listed: Vec<u64>,
    id: PhantomData<I>,
}

/// A record of the image that was written to.
#[derive(Clone, Copy, Debug)]
struct Touched {
    index: u32,
    /// What it was charged at before.
    bytes: usize,
}

impl<I: Id, T: Record> Arena<I, T> {
    pub(crate) const fn new() -> Self {
        Arena {
            items: Vec::new(),
            free: Vec::new(),
            line: 0,
            floor: Survivors { records: 0, bytes: 0 },
            touched: Vec::new(),
            listed: Vec::new(),
            id: PhantomData,
        }
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
    pub(super) fn free_vacant(&mut self) {
        let added = self.items.iter().enumerate().skip(self.line).rev();
        self.free = added.filter(|(_, record)| record.is_vacant()).map(|(i, _)| i as u32).collect();
    }

    /// Everything so far belongs to the image, its free entries too.
    pub(super) fn freeze(&mut self) {
        self.free = Vec::new();
        self.line = self.items.len();
        self.touched = Vec::new();
        self.listed = Vec::new();
        self.floor = self.iter().map(|(_, record)| Survivors::one(record)).sum();
    }

    /// Takes the image's records that were written to from the image again.
    pub(super) fn restore(&mut self, image: &Self)
    where
        T: Clone,
    {
        for touched in self.touched.drain(..) {
            let index = touched.index as usize;
            self.items[index].clone_from(&image.items[index]);
        }
        self.listed.clear();
        self.free.clone_from(&image.free);
    }

    /// The records of the image that may differ from what they were, lowest first.
    pub(super) fn touched(&self) -> Vec<u32> {
        let mut touched: Vec<u32> = self.touched.iter().map(|touched| touched.index).collect();
        touched.sort_unstable();
        touched
    }

    /// The same in the order in which they were written to, without asking the allocator.
    pub(super) fn each_touched(&self) -> impl Iterator<Item = (I, &T)> {
        self.touched.iter().map(|touched| (I::from_index(touched.index), &self.items[touched.index as usize]))
    }

    /// Was any record of the image written to?
    pub(super) fn is_touched(&self) -> bool {
        !self.touched.is_empty()
    }

    /// Was this record of the image written to?
    pub(super) fn was_touched(&self, index: u32) -> bool {
        self.listed.get(index as usize / 64).is_some_and(|word| word >> (index % 64) & 1 == 1)
    }

    /// The records after the image's last, free entries included.
    pub(super) fn own(&self) -> &[T] {
        self.items.get(self.line..).unwrap_or_default()
    }

    /// The live records that are not known to be as they were in the image.
    pub(super) fn unknown(&self) -> impl Iterator<Item = (I, &T)> {
        let own = self.own().iter().enumerate().filter(|(_, record)| !record.is_vacant());
        self.each_touched().chain(own.map(|(i, record)| (I::from_index((self.line + i) as u32), record)))
    }

    /// What the live records amount to, without counting those of the image again.
    pub(super) fn total(&self) -> Survivors {
        let live = self.own().iter().filter(|record| !record.is_vacant());
        let mut total = self.floor_now();
        total += live.map(Survivors::one).sum();
        total
    }

    /// What the records of the image amount to now.
    fn floor_now(&self) -> Survivors {
        let mut floor = self.floor;
        for touched in &self.touched {
            floor.bytes =
                (floor.bytes + self.items[touched.index as usize].bytes()).saturating_sub(touched.bytes);
        }
        floor
    }

    /// Remembers that a record of the image is about to be written to.
    #[cold]
    #[inline(never)]
    fn touch(&mut self, index: usize) {
        if self.listed.is_empty() {
            self.listed.resize(self.line.div_ceil(64), 0);
        }
        let bit = 1 << (index % 64);
        if let Some(word) = self.listed.get_mut(index / 64)
            && *word & bit == 0
        {
            *word |= bit;
            self.touched.push(Touched { index: index as u32, bytes: self.items[index].bytes() });
        }
    }

    /// The caller is about to write to what the record owns elsewhere.
    #[inline]
    pub(crate) fn will_write(&mut self, id: I) {
        if id.index() < self.line {
            self.touch(id.index());
        }
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

    /// Frees what is not marked, shows each doomed record to `dying`, and reports what survived. The records of the image
    /// stay as they are; the first mark is that of the first record after them.
    pub(crate) fn sweep(&mut self, marks: &Marks, mut dying: impl FnMut(&T)) -> Survivors {
        self.free.clear();
        let mut survivors = self.floor_now();
        let line = self.line.min(self.items.len());
        // The free entries after the last live one are given back instead of listed.
        let mut end = line;
        // From the top down, so that the free list hands out low ids first and the arena stays dense.
        for (word, chunk) in self.items[line..].chunks_mut(64).enumerate().rev() {
            let bits = marks.word(word);
            if bits == u64::MAX {
                end = end.max(line + word * 64 + chunk.len());
                survivors += chunk.iter().map(Survivors::one).sum();
                continue;
            }
            for (bit, record) in chunk.iter_mut().enumerate().rev() {
                let index = line + word * 64 + bit;
                if bits >> bit & 1 == 1 {
                    end = end.max(index + 1);
                    survivors += Survivors::one(record);
                    continue;
                }
                if !record.is_vacant() {
                    dying(record);
                    record.vacate();
                }
                if end > line {
                    self.free.push(index as u32);
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

impl<I: Id, T: Record> IndexMut<I> for Arena<I, T> {
    #[inline]
    fn index_mut(&mut self, id: I) -> &mut T {
        self.will_write(id);
        &mut self.items[id.index()]
    }
}

/// What a sweep left alive.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub(crate) struct Survivors {
    pub(crate) records: usize,
    pub(crate) bytes: usize,
}

impl Survivors {
    pub(crate) fn one<T: Record>(record: &T) -> Survivors {
        Survivors { records: 1, bytes: record.bytes() }
    }
}

impl std::ops::AddAssign for Survivors {
    fn add_assign(&mut self, other: Survivors) {
        self.records += other.records;
        self.bytes += other.bytes;
    }
}

impl std::iter::Sum for Survivors {
    fn sum<I: Iterator<Item = Survivors>>(all: I) -> Survivors {
        let mut sum = Survivors::default();
        all.for_each(|one| sum += one);
        sum
    }
}

/// One mark bit for each arena entry after those of the image, which count as marked.
#[derive(Clone, Default, Debug)]
pub(crate) struct Marks {
    words: Vec<u64>,
    base: usize,
}

impl Marks {
    pub(super) fn forget(&mut self, room: usize) {
        self.words.clear();
        self.words.shrink_to(room / size_of::<u64>());
        self.base = 0;
    }

    pub(crate) fn reset(&mut self, base: usize, span: usize) {
        self.words.clear();
        self.words.resize(span.saturating_sub(base).div_ceil(64), 0);
        self.base = base;
    }

    #[inline]
    pub(crate) fn get(&self, index: usize) -> bool {
        match index.checked_sub(self.base) {
            None => true,
            Some(own) => self.word(own / 64) >> (own % 64) & 1 == 1,
        }
    }

    /// Sixty-four marks at once.
    #[inline]
    fn word(&self, word: usize) -> u64 {
        self.words.get(word).copied().unwrap_or(0)
    }

    /// Sets the bit and says whether it was clear before.
    #[inline]
    pub(crate) fn set(&mut self, index: usize) -> bool {
        // Ids of the image wrap around to where no bitmap reaches. Neither can an id beyond the bitmap come from this heap;
        // ignoring it is safer than a panic in the collector.
        let own = index.wrapping_sub(self.base);
        let Some(word) = self.words.get_mut(own / 64) else { return false };
        let bit = 1u64 << (own % 64);
        let fresh = *word & bit == 0;
        *word |= bit;
        fresh
    }
}
