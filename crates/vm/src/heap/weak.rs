//! WeakMap and WeakSet: ephemeron tables. An entry lives exactly as long as its key is reachable from elsewhere, even when
//! its value refers to the key.

use super::arena::{Record, Vacancy};
use super::{AllocError, Class, Flags, Heap, ObjId, Payload, ShapeId, WeakId};
use crate::value::Value;
use rustc_hash::FxHashMap;

/// What an entry is charged: key, value and the map's own overhead, rounded up.
pub(super) const ENTRY: usize = 40;

/// Keyed by the bits of an object or symbol, which are its identity. Nothing ever lists the entries in map order.
#[derive(Clone, Debug)]
pub(crate) struct WeakTable {
    pub(crate) entries: FxHashMap<u64, (Value, Value)>,
    pub(super) vacancy: Vacancy,
}

impl Record for WeakTable {
    fn vacant() -> Self {
        WeakTable { entries: FxHashMap::default(), vacancy: Vacancy::Free }
    }
    fn is_vacant(&self) -> bool {
        self.vacancy == Vacancy::Free
    }
    fn bytes(&self) -> usize {
        size_of::<WeakTable>() + self.entries.len() * ENTRY
    }
}

impl Heap {
    /// A new, empty WeakMap or WeakSet object.
    pub fn new_weak(&mut self, shape: ShapeId, class: Class) -> Result<ObjId, AllocError> {
        debug_assert_eq!(class.payload(), Payload::Weak);
        self.account.charge(size_of::<WeakTable>())?;
        let id = self.weaks.insert(WeakTable { entries: FxHashMap::default(), vacancy: Vacancy::Taken });
        self.new_object_of(shape, class, Flags::NONE, id.raw())
    }

    /// The table of a WeakMap or WeakSet object.
    pub fn weak_of(&self, obj: ObjId) -> Option<WeakId> {
        self.payload(obj, Payload::Weak).map(WeakId::from_raw)
    }

    /// The value of a key.
    pub fn weak_get(&self, id: WeakId, key: Value) -> Option<Value> {
        self.weaks[id].entries.get(&key.bits()).map(|&(_, value)| value)
    }

    /// Adds or changes an entry. The caller has checked that the key can be held weakly.
    pub fn weak_set(&mut self, id: WeakId, key: Value, value: Value) -> Result<(), AllocError> {
        if !self.weaks[id].entries.contains_key(&key.bits()) {
            self.account.grow(ENTRY)?;
        }
        self.weaks[id].entries.insert(key.bits(), (key, value));
        Ok(())
    }

    /// Removes an entry and says whether it was there.
    pub fn weak_delete(&mut self, id: WeakId, key: Value) -> bool {
        let removed = self.weaks[id].entries.remove(&key.bits()).is_some();
        if removed {
            self.account.shrink(ENTRY);
        }
        removed
    }
}
