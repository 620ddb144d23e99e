//! An arena in two parts: records that came with the image, shared by all machines and never changed, and the heap's own.
//!
//! For kinds of records that are many in the image, dear to copy, and never changed there: strings, shapes and their
//! tables. Objects and cells are copied instead, because every access to them would pay for asking which part it is in.

use super::arena::{Arena, Id, Marks, Record, Survivors};
use std::ops::{Index, IndexMut};
use std::sync::Arc;

#[derive(Debug)]
pub(crate) struct Shared<I, T> {
    base: Arc<Vec<T>>,
    base_total: Survivors,
    own: Arena<I, T>,
    /// Takes what is written to a record of the image, which no code does: there is no way to say so to the compiler.
    lost: T,
}

impl<I: Id, T: Record + Clone> Shared<I, T> {
    pub(crate) fn new() -> Self {
        Shared {
            base: Arc::new(Vec::new()),
            base_total: Survivors::default(),
            own: Arena::new(),
            lost: T::vacant(),
        }
    }

    /// Everything so far becomes the shared part of the forks to come.
    pub(crate) fn freeze(&mut self) {
        let mut all = std::mem::take(&mut self.base).as_ref().clone();
        all.append(&mut self.own.items);
        all.shrink_to_fit();
        self.base = Arc::new(all);
        self.own = Arena::new();
        self.count_base();
    }

    /// The arena of an image that was read: all of it is the shared part. `all` is as long as [`Shared::freeze`] left it.
    pub(crate) fn of_image(all: Vec<T>) -> Self {
        let mut shared = Shared { base: Arc::new(all), ..Shared::new() };
        shared.count_base();
        shared
    }

    fn count_base(&mut self) {
        self.base_total = self.base.iter().filter(|record| !record.is_vacant()).map(Survivors::one).sum();
    }

    /// A heap's arena that begins with the shared part and nothing else.
    pub(crate) fn fork(&self) -> Self {
        let (base, base_total) = (Arc::clone(&self.base), self.base_total);
        Shared { base, base_total, own: self.own.clone(), lost: T::vacant() }
    }

    /// The shared part alone.
    pub(crate) fn hollow(&self) -> Self {
        let (base, base_total) = (Arc::clone(&self.base), self.base_total);
        Shared { base, base_total, own: Arena::new(), lost: T::vacant() }
    }

    /// Do both begin with the same shared part?
    pub(crate) fn same_base(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.base, &other.base)
    }

    #[inline]
    pub(crate) fn insert(&mut self, record: T) -> I {
        let index = self.own.insert(record).index() + self.base.len();
        I::from_index(index as u32)
    }

    /// The record with this number, if there is an entry.
    pub(crate) fn get(&self, index: usize) -> Option<&T> {
        match index.checked_sub(self.base.len()) {
            None => self.base.get(index),
            Some(own) => self.own.items.get(own),
        }
    }

    /// Every record, free entries included, with its number.
    pub(crate) fn all(&self) -> impl Iterator<Item = (usize, &T)> {
        self.base.iter().enumerate().chain(self.own())
    }

    /// The heap's own records, free entries included, with their numbers.
    pub(crate) fn own(&self) -> impl Iterator<Item = (usize, &T)> {
        self.own.items.iter().enumerate().map(|(i, record)| (i + self.base.len(), record))
    }

    /// The records from a number on, free entries included, with their numbers.
    pub(crate) fn from(&self, first: u32) -> impl Iterator<Item = (usize, &T)> {
        let first = first as usize;
        let base = self.base.get(first..).unwrap_or_default();
        let own = self.own.items.get(first.saturating_sub(self.base.len())..).unwrap_or_default();
        base.iter().chain(own).enumerate().map(move |(i, record)| (first + i, record))
    }

    /// The same as slices.
    pub(crate) fn slices_from(&self, first: u32) -> [&[T]; 2] {
        let first = first as usize;
        let own = self.own.items.get(first.saturating_sub(self.base.len())..);
        [self.base.get(first..).unwrap_or_default(), own.unwrap_or_default()]
    }

    pub(crate) fn own_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.own.items.iter_mut()
    }

    /// The heap's own part, for reading a snapshot into.
    pub(crate) fn own_arena(&mut self) -> &mut Arena<I, T> {
        &mut self.own
    }

    pub(crate) fn span(&self) -> usize {
        self.base.len() + self.own.span()
    }

    pub(crate) fn footprint(&self) -> usize {
        self.span() * size_of::<T>()
    }

    /// Every live record with its id, in id order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (I, &T)> {
        let base = self.base.iter().enumerate();
        base.chain(self.own())
            .filter(|(_, record)| !record.is_vacant())
            .map(|(i, record)| (I::from_index(i as u32), record))
    }

    /// Frees what is not marked. See [`Arena::sweep`].
    pub(crate) fn sweep(&mut self, marks: &Marks, dying: impl FnMut(&T)) -> Survivors {
        let mut survivors = self.own.sweep(marks, dying);
        survivors += self.base_total;
        survivors
    }

    pub(crate) fn total(&self) -> Survivors {
        let mut total = self.base_total;
        total += self.own.total();
        total
    }
}

impl<I: Id, T> Index<I> for Shared<I, T> {
    type Output = T;
    #[inline]
    fn index(&self, id: I) -> &T {
        match id.index().checked_sub(self.base.len()) {
            Some(own) => &self.own.items[own],
            None => &self.base[id.index()],
        }
    }
}

impl<I: Id, T: Record> IndexMut<I> for Shared<I, T> {
    #[inline]
    fn index_mut(&mut self, id: I) -> &mut T {
        match id.index().checked_sub(self.base.len()) {
            Some(own) => &mut self.own.items[own],
            None => {
                debug_assert!(false, "a record of the image was about to be changed");
                &mut self.lost
            }
        }
    }
}

impl Shared<super::ShapeId, super::shape::ShapeRecord> {
    /// [`Shared::freeze`] for shapes: edges that were beside them become part of them.
    pub(crate) fn freeze_with(&mut self, edges: rustc_hash::FxHashMap<super::ShapeId, super::shape::Edges>) {
        let mut all = std::mem::take(&mut self.base).as_ref().clone();
        for (from, beside) in edges {
            if let Some(shape) = all.get_mut(from.raw() as usize) {
                beside.each(|step, to| shape.edges.insert(step, to));
            }
        }
        self.base = Arc::new(all);
        self.freeze();
    }
}
