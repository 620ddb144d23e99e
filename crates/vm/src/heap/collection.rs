//! The ordered hash table behind Map and Set.
//!
//! Entries stay in insertion order; a deleted entry leaves a tombstone until the table is rebuilt. Every entry has a
//! sequence number that never changes and never comes back, and an iterator is just (table, next sequence number): it
//! survives deletion, rebuilding, `clear` and a snapshot without the table knowing about it.

use super::arena::{Record, Vacancy};
use super::{AllocError, Class, Flags, Heap, MapId, ObjId, Payload, ShapeId};
use crate::value::{Unpacked, Value};

pub(super) const EMPTY: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub(super) key: Value,
    pub(super) value: Value,
    pub(super) sequence: u64,
    pub(super) hash: u32,
}

#[derive(Clone, Debug)]
pub(crate) struct OrderedTable {
    pub(super) entries: Vec<Entry>,
    pub(super) index: Vec<u32>,
    pub(super) live: usize,
    /// Everything before this position is deleted: taking from the front must not step over it each time.
    pub(super) first: usize,
    pub(super) next_sequence: u64,
    pub(super) vacancy: Vacancy,
}

/// Where an iteration over a Map or Set stands: everything before it has been seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cursor(pub u64);

impl Cursor {
    /// Before the first entry.
    pub const START: Cursor = Cursor(0);
}

impl Record for OrderedTable {
    fn vacant() -> Self {
        OrderedTable { vacancy: Vacancy::Free, ..OrderedTable::new() }
    }
    fn is_vacant(&self) -> bool {
        self.vacancy == Vacancy::Free
    }
    fn bytes(&self) -> usize {
        Self::bytes_for(self.entries.capacity(), self.index.len())
    }
}

impl OrderedTable {
    pub(super) fn new() -> OrderedTable {
        OrderedTable {
            entries: Vec::new(),
            index: Vec::new(),
            live: 0,
            first: 0,
            next_sequence: 0,
            vacancy: Vacancy::Taken,
        }
    }

    fn bytes_for(entries: usize, index: usize) -> usize {
        size_of::<OrderedTable>() + entries * size_of::<Entry>() + index * size_of::<u32>()
    }

    /// Every live value in the table, for the collector.
    pub(crate) fn each_value(&self, mut f: impl FnMut(Value)) {
        for entry in &self.entries {
            f(entry.key);
            f(entry.value);
        }
    }

    /// The capacity a rebuild would choose, if one is due before the next insertion.
    fn next_capacity(&self) -> Option<usize> {
        let full = self.entries.len() == self.entries.capacity();
        let wanted = self.live + 1;
        let tight = wanted.next_power_of_two().max(8);
        full.then(|| if wanted > tight / 4 * 3 { tight * 2 } else { tight })
    }

    fn rebuild(&mut self, capacity: usize) {
        let mut entries = Vec::new();
        entries.reserve_exact(capacity);
        entries.extend(self.entries.iter().filter(|e| !e.key.is_hole()));
        self.entries = entries;
        self.first = 0;
        self.index = vec![EMPTY; capacity * 2];
        for position in 0..self.entries.len() {
            self.link(position);
        }
    }

    pub(super) fn link(&mut self, position: usize) {
        let mask = self.index.len() - 1;
        let mut at = self.entries[position].hash as usize & mask;
        // The index has twice as many places as there can be entries.
        while self.index[at] != EMPTY {
            at = (at + 1) & mask;
        }
        self.index[at] = position as u32;
    }

    /// The entries from a cursor on, without those at the front that are known to be deleted.
    #[inline]
    fn rest(&self, cursor: Cursor) -> &[Entry] {
        self.entries.get(self.position(cursor).max(self.first)..).unwrap_or_default()
    }

    /// The position of the first entry with at least this sequence number.
    fn position(&self, cursor: Cursor) -> usize {
        let Some(first) = self.entries.first() else { return 0 };
        // Without a rebuild in between, positions are sequence numbers less a constant.
        let guess = cursor.0.saturating_sub(first.sequence) as usize;
        match self.entries.get(guess) {
            Some(entry) if entry.sequence == cursor.0 => guess,
            _ => self.entries.partition_point(|e| e.sequence < cursor.0),
        }
    }
}

impl Heap {
    /// A new, empty Map or Set object.
    pub fn new_map(&mut self, shape: ShapeId, class: Class) -> Result<ObjId, AllocError> {
        debug_assert_eq!(class.payload(), Payload::Map);
        self.account.charge(size_of::<OrderedTable>())?;
        let id = self.maps.insert(OrderedTable::new());
        self.new_object_of(shape, class, Flags::NONE, id.raw())
    }

    /// The table of a Map or Set object.
    #[inline]
    pub fn map_of(&self, obj: ObjId) -> Option<MapId> {
        self.payload(obj, Payload::Map).map(MapId::from_raw)
    }

    /// How many entries a table has.
    pub fn map_size(&self, id: MapId) -> u32 {
        self.maps[id].live as u32
    }

    /// The value of a key. May flatten the key's text, hence the `Result`.
    pub fn map_get(&mut self, id: MapId, key: Value) -> Result<Option<Value>, AllocError> {
        let key = canonical(key);
        let hash = self.hash_value(key)?;
        Ok(self.map_find(id, key, hash).map(|position| self.maps[id].entries[position].value))
    }

    /// Is the key there?
    pub fn map_has(&mut self, id: MapId, key: Value) -> Result<bool, AllocError> {
        Ok(self.map_get(id, key)?.is_some())
    }

    /// Adds an entry, or changes the value of one that is there.
    pub fn map_set(&mut self, id: MapId, key: Value, value: Value) -> Result<(), AllocError> {
        let key = canonical(key);
        let hash = self.hash_value(key)?;
        if let Some(position) = self.map_find(id, key, hash) {
            self.maps[id].entries[position].value = value;
            return Ok(());
        }
        if let Some(capacity) = self.maps[id].next_capacity() {
            let before = self.maps[id].bytes();
            let after = OrderedTable::bytes_for(capacity, capacity * 2);
            self.account.grow(after.saturating_sub(before))?;
            self.maps[id].rebuild(capacity);
            self.account.shrink(before.saturating_sub(after));
        }
        let table = &mut self.maps[id];
        let position = table.entries.len();
        table.entries.push(Entry { key, value, sequence: table.next_sequence, hash });
        table.next_sequence += 1;
        table.live += 1;
        table.link(position);
        Ok(())
    }

    /// Removes an entry and says whether it was there.
    pub fn map_delete(&mut self, id: MapId, key: Value) -> Result<bool, AllocError> {
        let key = canonical(key);
        let hash = self.hash_value(key)?;
        let Some(position) = self.map_find(id, key, hash) else { return Ok(false) };
        let table = &mut self.maps[id];
        let entry = &mut table.entries[position];
        entry.key = Value::HOLE;
        entry.value = Value::UNDEFINED;
        table.live -= 1;
        while table.entries.get(table.first).is_some_and(|entry| entry.key.is_hole()) {
            table.first += 1;
        }
        if table.live == 0 {
            self.map_clear(id);
        } else if table.live * 4 < table.entries.len() {
            // Iterating over a queue must not step over all that was ever in it, so rebuild on the way down too.
            let before = table.bytes();
            table.rebuild((table.live * 2).next_power_of_two().max(8));
            let after = self.maps[id].bytes();
            self.account.shrink(before.saturating_sub(after));
        }
        Ok(true)
    }

    /// Removes all entries. Iterators in progress see what is added later.
    pub fn map_clear(&mut self, id: MapId) {
        let table = &mut self.maps[id];
        let before = table.bytes();
        let next_sequence = table.next_sequence;
        *table = OrderedTable { next_sequence, ..OrderedTable::new() };
        let after = table.bytes();
        self.account.shrink(before - after);
    }

    /// The next entry at or after a cursor, and the cursor to continue from.
    pub fn map_next(&self, id: MapId, cursor: Cursor) -> Option<(Value, Value, Cursor)> {
        let table = &self.maps[id];
        let entry = table.rest(cursor).iter().find(|e| !e.key.is_hole())?;
        Some((entry.key, entry.value, Cursor(entry.sequence + 1)))
    }

    /// How many deleted entries [`Heap::map_next`] steps over: the work that it takes.
    pub fn map_gap(&self, id: MapId, cursor: Cursor) -> usize {
        self.maps[id].rest(cursor).iter().take_while(|e| e.key.is_hole()).count()
    }

    /// A hash under which SameValueZero-equal values agree.
    pub(crate) fn hash_value(&mut self, value: Value) -> Result<u32, AllocError> {
        match value.unpack() {
            Unpacked::String(id) => {
                self.flatten(id)?;
                Ok(self.string_hash(id))
            }
            Unpacked::BigInt(id) => {
                let h = self.seed.bytes(&self.bigint(id).to_signed_bytes_le());
                Ok((h ^ h >> 32) as u32)
            }
            // Numbers are normalised and NaN is canonical, so their bits decide; so do ids.
            _ => Ok(self.seed.word(value.bits())),
        }
    }

    fn map_find(&self, id: MapId, key: Value, hash: u32) -> Option<usize> {
        let table = &self.maps[id];
        let mask = table.index.len().checked_sub(1)?;
        let mut at = hash as usize & mask;
        loop {
            let position = table.index[at];
            if position == EMPTY {
                return None;
            }
            let entry = &table.entries[position as usize];
            if entry.hash == hash && !entry.key.is_hole() && self.same_flat(entry.key, key) {
                return Some(position as usize);
            }
            at = (at + 1) & mask;
        }
    }

    /// SameValueZero of canonical values whose texts are flat.
    fn same_flat(&self, a: Value, b: Value) -> bool {
        if a == b {
            return true;
        }
        match (a.unpack(), b.unpack()) {
            (Unpacked::String(a), Unpacked::String(b)) => self.str(a) == self.str(b),
            (Unpacked::BigInt(a), Unpacked::BigInt(b)) => self.bigint(a) == self.bigint(b),
            _ => false,
        }
    }
}

/// -0 and 0 are one key; a NaN is every NaN; a number that is an int is stored as one.
pub(super) fn canonical(key: Value) -> Value {
    match key.unpack() {
        Unpacked::Double(-0.0) => Value::ZERO,
        Unpacked::Double(x) if x.is_nan() => Value::NAN,
        Unpacked::Double(x) => Value::number(x),
        _ => key,
    }
}
