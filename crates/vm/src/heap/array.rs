//! Array elements: dense while that is sensible, in the property table when it is not; and the `length` rules.
//!
//! A dense array keeps its elements in one vector, holes included; every element has the default attributes. An array
//! becomes *sparse* — its elements move into its property table as index keys — when an element is far beyond the end,
//! gets other attributes, or the array is closed to extension. It does not come back.

use super::arena::Record;
use super::define::Defined;
use super::elements::Values;
use super::property::{NO_SLOT, Own};
use super::table::{Attrs, PropertyTable};
use super::{AllocError, Class, ElementsId, Flags, Heap, Key, ObjId, Payload, ShapeId};
use crate::value::Value;

/// A gap up to this long is filled with holes.
const SMALL_GAP: usize = 1024;
/// Up to this many elements are cut off one by one.
const FEW: u32 = 16;
/// Inside the declared length, gaps are filled up to this index.
const DECLARED: usize = 1 << 22;

#[derive(Clone, Debug)]
pub(crate) struct Elements {
    /// Never longer than `length`. What lies between is holes.
    pub(crate) values: Values,
    pub(crate) length: u32,
    pub(crate) state: LengthState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LengthState {
    Vacant,
    Writable,
    ReadOnly,
}

impl Record for Elements {
    fn vacant() -> Self {
        Elements { values: Values::default(), length: 0, state: LengthState::Vacant }
    }
    fn is_vacant(&self) -> bool {
        self.state == LengthState::Vacant
    }
    fn bytes(&self) -> usize {
        size_of::<Elements>() + self.values.capacity() * size_of::<Value>()
    }
}

impl Heap {
    /// A new array with these elements (holes allowed). `shape` is the root shape of its prototype.
    pub fn new_array(&mut self, shape: ShapeId, values: &[Value]) -> Result<ObjId, AllocError> {
        self.new_with_elements(shape, Class::Array, values)
    }

    /// A new arguments object with these elements; its `length` is an ordinary property that the caller adds.
    pub fn new_arguments(&mut self, shape: ShapeId, values: &[Value]) -> Result<ObjId, AllocError> {
        self.new_with_elements(shape, Class::Arguments, values)
    }

    /// A new empty array with room for `capacity` elements, charged now.
    pub fn new_array_with_capacity(&mut self, shape: ShapeId, capacity: u32) -> Result<ObjId, AllocError> {
        let obj = self.new_array(shape, &[])?;
        let Some(elements) = self.elements_of(obj) else { return Ok(obj) };
        self.reserve_elements(elements, capacity as usize)?;
        Ok(obj)
    }

    /// Element `index` of a dense array or arguments object; `None` for a hole, past the end, or sparse.
    #[inline]
    pub fn dense_get(&self, obj: ObjId, index: u32) -> Option<Value> {
        let record = &self.objects[obj];
        if record.class.payload() != Payload::Elements {
            return None;
        }
        let value = *self.elements[ElementsId::from_raw(record.payload)].values.get(index as usize)?;
        if value.is_hole() { None } else { Some(value) }
    }

    /// Element `index` of an array (the caller has seen the array tag). The fast path of `a[i]`.
    #[inline]
    pub fn array_get(&self, array: ObjId, index: u32) -> Option<Value> {
        let elements = ElementsId::from_raw(self.objects[array].payload);
        let value = *self.elements[elements].values.get(index as usize)?;
        if value.is_hole() { None } else { Some(value) }
    }

    /// Overwrites an existing element of a dense array. `false`: not there, take the slow way. The fast path of
    /// `a[i] = v` (existing dense elements are always writable).
    #[inline]
    #[must_use]
    pub fn array_set(&mut self, array: ObjId, index: u32, value: Value) -> bool {
        let elements = ElementsId::from_raw(self.objects[array].payload);
        match self.elements[elements].values.get_mut(index as usize) {
            Some(place) if !place.is_hole() => {
                *place = value;
                true
            }
            _ => false,
        }
    }

    /// Appends to an array if it is dense, full to its length and writable; `Ok(false)` means take the slow way. An
    /// append never meets a setter unless somebody put an index on a prototype: the caller knows whether that is so.
    #[inline]
    pub fn array_push(&mut self, array: ObjId, value: Value) -> Result<bool, AllocError> {
        let record = &self.objects[array];
        if record.class != Class::Array || record.flags.has(Flags::SPARSE) {
            return Ok(false);
        }
        let id = ElementsId::from_raw(record.payload);
        let elements = &mut self.elements[id];
        if elements.values.len() != elements.length as usize || elements.state != LengthState::Writable {
            return Ok(false);
        }
        if elements.values.is_full() {
            if elements.length > Key::MAX_INDEX {
                return Ok(false);
            }
            let len = elements.values.len();
            self.reserve_elements(id, len + 1)?;
        }
        let elements = &mut self.elements[id];
        elements.values.push(value);
        elements.length += 1;
        Ok(true)
    }

    /// Removes and returns the last element of a dense array; `None`: empty, a hole, sparse or read-only.
    pub fn array_pop(&mut self, array: ObjId) -> Option<Value> {
        let record = &self.objects[array];
        if record.class != Class::Array || record.flags.has(Flags::SPARSE) {
            return None;
        }
        let id = ElementsId::from_raw(record.payload);
        let elements = &mut self.elements[id];
        if elements.values.len() != elements.length as usize || elements.state != LengthState::Writable {
            return None;
        }
        if elements.values.last()?.is_hole() {
            return None;
        }
        let value = elements.values.pop();
        elements.length -= 1;
        self.shrink_elements(id);
        value
    }

    /// The elements of an array whose every element is present and dense, for natives that work on slices.
    pub fn packed(&self, array: ObjId) -> Option<&[Value]> {
        let record = &self.objects[array];
        if record.class != Class::Array || record.flags.has(Flags::SPARSE) {
            return None;
        }
        let elements = &self.elements[ElementsId::from_raw(record.payload)];
        let full = elements.values.len() == elements.length as usize;
        if full && !elements.values.iter().any(|v| v.is_hole()) { Some(&elements.values) } else { None }
    }

    /// The elements of a dense array for writing in place (sort, reverse, fill), holes included.
    pub fn dense_mut(&mut self, array: ObjId) -> Option<&mut [Value]> {
        let record = &self.objects[array];
        if record.class != Class::Array || record.flags.has(Flags::SPARSE) {
            return None;
        }
        Some(&mut self.elements[ElementsId::from_raw(record.payload)].values)
    }

    /// The `length` of an array.
    #[inline]
    pub fn array_length(&self, array: ObjId) -> u32 {
        self.elements[ElementsId::from_raw(self.objects[array].payload)].length
    }

    /// Sets the `length` of an array: elements beyond it go, up to the last one that cannot be deleted.
    pub fn set_array_length(&mut self, array: ObjId, length: u32) -> Result<Defined, AllocError> {
        let id = ElementsId::from_raw(self.objects[array].payload);
        let old = self.elements[id].length;
        if length == old {
            return Ok(Defined::Yes);
        }
        if self.elements[id].state == LengthState::ReadOnly {
            return Ok(Defined::No);
        }
        if length < old && self.flags(array).has(Flags::SPARSE) {
            return self.truncate_sparse(array, id, length);
        }
        let elements = &mut self.elements[id];
        elements.values.truncate(length as usize);
        elements.length = length;
        self.shrink_elements(id);
        Ok(Defined::Yes)
    }

    pub(crate) fn set_length_read_only(&mut self, array: ObjId) {
        let id = ElementsId::from_raw(self.objects[array].payload);
        self.elements[id].state = LengthState::ReadOnly;
    }

    pub(crate) fn length_property(&self, array: ObjId) -> Own {
        let elements = &self.elements[ElementsId::from_raw(self.objects[array].payload)];
        let attrs = if elements.state == LengthState::ReadOnly { Attrs::NONE } else { Attrs::WRITABLE };
        Own::Data { value: Value::uint(elements.length), attrs, slot: NO_SLOT }
    }

    /// Raises the length so that it covers an index. The caller has checked that the length is writable.
    pub(crate) fn cover(&mut self, array: ObjId, index: u32) {
        if self.class(array) == Class::Array {
            let id = ElementsId::from_raw(self.objects[array].payload);
            let length = &mut self.elements[id].length;
            *length = (*length).max(index.saturating_add(1));
        }
    }

    pub(crate) fn is_length_read_only(&self, array: ObjId) -> bool {
        self.elements[ElementsId::from_raw(self.objects[array].payload)].state == LengthState::ReadOnly
    }

    pub(crate) fn elements_of(&self, obj: ObjId) -> Option<ElementsId> {
        let record = &self.objects[obj];
        (record.class.payload() == Payload::Elements).then(|| ElementsId::from_raw(record.payload))
    }

    pub(crate) fn has_dense_elements(&self, obj: ObjId) -> bool {
        let record = &self.objects[obj];
        record.class.payload() == Payload::Elements && !record.flags.has(Flags::SPARSE)
    }

    /// Stores a default-attribute element densely, growing as needed. `false`: too far out; make it sparse.
    pub(crate) fn set_dense(&mut self, obj: ObjId, index: u32, value: Value) -> Result<bool, AllocError> {
        let Some(id) = self.elements_of(obj) else { return Ok(false) };
        let at = index as usize;
        let elements = &self.elements[id];
        let len = elements.values.len();
        if at >= len {
            let near = at - len <= SMALL_GAP.max(len / 2);
            let declared = at < DECLARED && index < elements.length;
            if !near && !declared {
                return Ok(false);
            }
            self.reserve_elements(id, at + 1)?;
            let elements = &mut self.elements[id];
            elements.values.resize(at, Value::HOLE);
            elements.values.push(value);
            elements.length = elements.length.max(index + 1);
        } else {
            self.elements[id].values[at] = value;
        }
        Ok(true)
    }

    pub(crate) fn clear_dense(&mut self, obj: ObjId, index: u32) {
        if let Some(id) = self.elements_of(obj)
            && let Some(place) = self.elements[id].values.get_mut(index as usize)
        {
            *place = Value::HOLE;
        }
    }

    /// Moves dense elements into the property table.
    pub(crate) fn make_sparse(&mut self, obj: ObjId) -> Result<(), AllocError> {
        if !self.has_dense_elements(obj) {
            return Ok(());
        }
        let Some(id) = self.elements_of(obj) else { return Ok(()) };
        self.make_dictionary(obj)?;
        let present = self.elements[id].values.iter().filter(|v| !v.is_hole()).count();
        let shape = self.shape(obj);
        let Some(table) = self.shapes[shape].table else { return Ok(()) };
        let count = self.shapes[shape].count as usize;
        // One charge for the whole table, so that the loop below cannot stop half way.
        let before = self.tables[table].bytes();
        self.reserve_slots(obj, count + present)?;
        self.account.grow(PropertyTable::bytes_with_room_for(count + present).saturating_sub(before))?;
        let entries = std::mem::take(&mut self.tables[table].entries);
        let deleted = self.tables[table].deleted;
        let mut grown = PropertyTable::with_entries(entries.into_iter(), count + present, self.seed);
        grown.deleted = deleted;
        let values = std::mem::take(&mut self.elements[id].values);
        self.account.shrink(values.capacity() * size_of::<Value>());
        let mut slot = count as u32;
        for (index, value) in values.iter().copied().enumerate().filter(|(_, v)| !v.is_hole()) {
            grown.push(
                super::table::Property { key: Key::from_raw(index as u32), attrs: Attrs::ALL },
                self.seed,
            );
            self.set_slot(obj, slot, value);
            slot += 1;
        }
        let charged = PropertyTable::bytes_with_room_for(count + present).max(before);
        self.account.shrink(charged.saturating_sub(grown.bytes()));
        self.tables[table] = grown;
        self.shapes[shape].count = slot;
        self.add_flags(obj, Flags::SPARSE);
        Ok(())
    }

    fn truncate_sparse(&mut self, array: ObjId, id: ElementsId, length: u32) -> Result<Defined, AllocError> {
        let old = self.elements[id].length;
        if old - length <= FEW && old <= Key::MAX_INDEX {
            return self.truncate_few(array, id, length);
        }
        let shape = &self.shapes[self.shape(array)];
        let Some(table) = shape.table else { return Ok(Defined::No) };
        let mut doomed: Vec<(u32, Key, Attrs)> = self.tables[table]
            .entries
            .iter()
            .filter_map(|e| self.array_index(e.key).filter(|&i| i >= length).map(|i| (i, e.key, e.attrs)))
            .collect();
        doomed.sort_unstable_by_key(|&(index, ..)| std::cmp::Reverse(index));
        for (index, key, attrs) in doomed {
            if !attrs.has(Attrs::CONFIGURABLE) {
                self.elements[id].length = index + 1;
                return Ok(Defined::No);
            }
            self.remove_named(array, key)?;
        }
        self.elements[id].length = length;
        Ok(Defined::Yes)
    }

    /// Shortens a sparse array by so little that asking for each index beats looking at every property: popping must
    /// not cost the whole array each time.
    fn truncate_few(&mut self, array: ObjId, id: ElementsId, length: u32) -> Result<Defined, AllocError> {
        while self.elements[id].length > length {
            let key = Key::from_raw(self.elements[id].length - 1);
            if let Some((_, attrs)) = self.lookup(self.shape(array), key) {
                if !attrs.has(Attrs::CONFIGURABLE) {
                    return Ok(Defined::No);
                }
                self.remove_named(array, key)?;
            }
            self.elements[id].length -= 1;
        }
        Ok(Defined::Yes)
    }

    fn new_with_elements(
        &mut self,
        shape: ShapeId,
        class: Class,
        values: &[Value],
    ) -> Result<ObjId, AllocError> {
        let bytes = size_of::<Elements>() + std::mem::size_of_val(values);
        let length = u32::try_from(values.len()).map_err(|_| AllocError::TooLong)?;
        self.account.charge(bytes)?;
        // Should the object's own charge fail, the elements are garbage for the collection that follows.
        let id = self.elements.insert(Elements {
            values: values.to_vec().into(),
            length,
            state: LengthState::Writable,
        });
        self.new_object_of(shape, class, Flags::NONE, id.raw())
    }

    /// Makes room for `len` elements, charging the new capacity before reserving it.
    #[inline(never)]
    pub(crate) fn reserve_elements(&mut self, id: ElementsId, len: usize) -> Result<(), AllocError> {
        let values = &self.elements[id].values;
        let old = values.capacity();
        let Some(new) = values.wanted(len) else { return Ok(()) };
        self.account.grow((new - old) * size_of::<Value>())?;
        self.elements[id].values.reserve(new);
        Ok(())
    }

    /// Gives memory back when most of it is unused.
    pub(crate) fn shrink_elements(&mut self, id: ElementsId) {
        let values = &mut self.elements[id].values;
        let old = values.capacity();
        if old > 16 && values.len() * 4 < old {
            values.shrink_to(values.len() * 2);
            let saved = old.saturating_sub(values.capacity());
            self.account.shrink(saved * size_of::<Value>());
        }
    }
}
