//! The list of properties that shapes share: keys with attributes in insertion order, and an index once it is long.

use super::Key;
use super::arena::{Record, Vacancy};
use super::hash::Seed;

/// Up to this many entries a scan beats a hash.
const SCAN: usize = 8;
const EMPTY: u32 = u32::MAX;

/// A property's attributes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Attrs(pub(crate) u8);

impl Attrs {
    /// Nothing allowed.
    pub const NONE: Attrs = Attrs(0);
    /// The value can be changed.
    pub const WRITABLE: Attrs = Attrs(1);
    /// Shows up in enumeration.
    pub const ENUMERABLE: Attrs = Attrs(2);
    /// Can be deleted and redefined.
    pub const CONFIGURABLE: Attrs = Attrs(4);
    /// The slot holds a getter/setter pair.
    pub const ACCESSOR: Attrs = Attrs(8);
    /// What assignment creates: writable, enumerable, configurable.
    pub const ALL: Attrs = Attrs(7);
    /// What built-in methods have: writable and configurable.
    pub const HIDDEN: Attrs = Attrs(5);

    /// Both sets together.
    pub const fn and(self, other: Attrs) -> Attrs {
        Attrs(self.0 | other.0)
    }

    /// This set less the other.
    pub const fn without(self, other: Attrs) -> Attrs {
        Attrs(self.0 & !other.0)
    }

    /// Does it include all of the other?
    #[inline]
    pub const fn has(self, other: Attrs) -> bool {
        self.0 & other.0 == other.0
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Property {
    pub(crate) key: Key,
    pub(crate) attrs: Attrs,
}

/// Properties in insertion order; the position is the slot. Several shapes may share a table, each seeing a prefix.
#[derive(Clone, Debug)]
pub(crate) struct PropertyTable {
    pub(crate) entries: Vec<Property>,
    /// Open addressing over positions; empty while a scan is good enough.
    pub(super) index: Vec<u32>,
    pub(crate) deleted: u32,
    pub(super) vacant: Vacancy,
}

impl Record for PropertyTable {
    fn vacant() -> Self {
        PropertyTable { vacant: Vacancy::Free, ..PropertyTable::new() }
    }
    fn is_vacant(&self) -> bool {
        self.vacant == Vacancy::Free
    }
    fn bytes(&self) -> usize {
        Self::bytes_for(self.entries.capacity(), self.index.len())
    }
}

impl PropertyTable {
    pub(crate) fn new() -> PropertyTable {
        PropertyTable { entries: Vec::new(), index: Vec::new(), deleted: 0, vacant: Vacancy::Taken }
    }

    fn bytes_for(entries: usize, index: usize) -> usize {
        size_of::<PropertyTable>() + entries * size_of::<Property>() + index * size_of::<u32>()
    }

    /// What a table with this many entries and room for one more is charged.
    pub(crate) fn bytes_with_room_for(len: usize) -> usize {
        let capacity = capacity_for(len + 1);
        Self::bytes_for(capacity, index_for(capacity))
    }

    /// A table with these entries and room for one more; the caller has charged [`Self::bytes_with_room_for`].
    pub(crate) fn with_entries(
        entries: impl Iterator<Item = Property>,
        len: usize,
        seed: Seed,
    ) -> PropertyTable {
        let mut table = PropertyTable::new();
        table.set_capacity(capacity_for(len + 1), seed);
        for entry in entries {
            table.push(entry, seed);
        }
        table
    }

    /// The bytes that pushing one more entry would add.
    pub(crate) fn growth(&self) -> usize {
        if self.entries.len() < self.entries.capacity() {
            return 0;
        }
        let capacity = capacity_for(self.entries.len() + 1);
        Self::bytes_for(capacity, index_for(capacity)) - self.bytes()
    }

    /// Adds an entry whose [`Self::growth`] has been charged and answers its position.
    pub(crate) fn push(&mut self, entry: Property, seed: Seed) -> u32 {
        let position = self.entries.len() as u32;
        if self.entries.len() == self.entries.capacity() {
            self.set_capacity(capacity_for(self.entries.len() + 1), seed);
        }
        self.entries.push(entry);
        if !self.index.is_empty() {
            self.insert_index(entry.key, position, seed);
        }
        position
    }

    /// Takes over entries that came from a snapshot, with an index of this size.
    pub(super) fn restore(
        &mut self,
        entries: Vec<Property>,
        index: usize,
        seed: Seed,
    ) -> Result<(), crate::snapshot::bytes::Flaw> {
        let room = entries.capacity();
        crate::snapshot::bytes::require(
            if index == 0 { room <= SCAN } else { index > room },
            "the index of a table does not fit",
        )?;
        self.entries = entries;
        self.index = vec![EMPTY; index];
        if index > 0 {
            for position in 0..self.entries.len() {
                let key = self.entries[position].key;
                if key != Key::DELETED {
                    self.insert_index(key, position as u32, seed);
                }
            }
        }
        Ok(())
    }

    /// The position of a key.
    #[inline]
    pub(crate) fn find(&self, key: Key, seed: Seed) -> Option<u32> {
        if self.index.is_empty() {
            return self.entries.iter().position(|entry| entry.key == key).map(|at| at as u32);
        }
        let mask = self.index.len() - 1;
        let mut at = seed.word(u64::from(key.raw())) as usize & mask;
        loop {
            let position = self.index[at];
            if position == EMPTY {
                return None;
            }
            if self.entries[position as usize].key == key {
                return Some(position);
            }
            at = (at + 1) & mask;
        }
    }

    /// Marks an entry as deleted; its index slot stays as a tombstone.
    pub(crate) fn delete(&mut self, position: u32) {
        self.entries[position as usize].key = Key::DELETED;
        self.deleted += 1;
    }

    fn set_capacity(&mut self, capacity: usize, seed: Seed) {
        self.entries.reserve_exact(capacity - self.entries.len());
        let index = index_for(capacity);
        if index == self.index.len() {
            return;
        }
        self.index = vec![EMPTY; index];
        for position in 0..self.entries.len() {
            let key = self.entries[position].key;
            if key != Key::DELETED {
                self.insert_index(key, position as u32, seed);
            }
        }
    }

    fn insert_index(&mut self, key: Key, position: u32, seed: Seed) {
        let mask = self.index.len() - 1;
        let mut at = seed.word(u64::from(key.raw())) as usize & mask;
        // At most half of the index is in use.
        while self.index[at] != EMPTY {
            at = (at + 1) & mask;
        }
        self.index[at] = position;
    }
}

fn capacity_for(len: usize) -> usize {
    len.next_power_of_two().max(4)
}

fn index_for(capacity: usize) -> usize {
    if capacity <= SCAN { 0 } else { capacity * 2 }
}
