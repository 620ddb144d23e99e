//! Moving array elements in bulk: what `splice`, `shift`, `unshift`, `concat` and `fill` do to dense arrays.
//!
//! Elements have room before their first as well as behind their last, so that taking from the front and putting there
//! costs as little as it does at the end, seen over many calls.

use super::array::{Elements, LengthState};
use super::{AllocError, Class, ElementsId, Flags, Heap, ObjId, ShapeId};
use crate::value::Value;
use std::ops::{Deref, DerefMut};

/// The elements of an array: a slice with room at both ends.
#[derive(Debug, Default)]
pub(crate) struct Values {
    /// What lies before `head` is unused.
    all: Vec<Value>,
    head: usize,
}

impl Values {
    /// Element `i`.
    #[inline]
    pub(crate) fn get(&self, i: usize) -> Option<&Value> {
        self.all.get(self.head + i)
    }

    /// Element `i`, for writing.
    #[inline]
    pub(crate) fn get_mut(&mut self, i: usize) -> Option<&mut Value> {
        self.all.get_mut(self.head + i)
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.all.len() - self.head
    }

    /// Everything that is allocated, unused room included.
    #[inline]
    pub(crate) fn capacity(&self) -> usize {
        self.all.capacity()
    }

    /// Is there no room behind the last element?
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.all.len() == self.all.capacity()
    }

    #[inline]
    pub(crate) fn push(&mut self, value: Value) {
        self.all.push(value);
    }

    pub(crate) fn pop(&mut self) -> Option<Value> {
        if self.all.len() > self.head { self.all.pop() } else { None }
    }

    pub(crate) fn truncate(&mut self, len: usize) {
        self.all.truncate(self.head.saturating_add(len));
    }

    /// Changes the length; there is room.
    pub(crate) fn resize(&mut self, len: usize, value: Value) {
        self.all.resize(self.head + len, value);
    }

    /// How much must be allocated to hold `len` elements behind the head; nothing if there is room.
    pub(crate) fn wanted(&self, len: usize) -> Option<usize> {
        let old = self.all.capacity();
        if self.head + len <= old {
            return None;
        }
        // Unused room in front is used up before more is taken, once it is worth the move.
        if self.head >= len / 2 && len <= old {
            return Some(old);
        }
        Some((self.head + len).max(old + old / 2).max(4))
    }

    /// Makes the whole allocation `capacity` large.
    pub(crate) fn reserve(&mut self, capacity: usize) {
        if capacity <= self.all.capacity() {
            self.close_gap();
        } else {
            self.all.reserve_exact(capacity - self.all.len());
        }
    }

    /// Gives back what lies beyond `len` elements.
    pub(crate) fn shrink_to(&mut self, len: usize) {
        self.close_gap();
        self.all.shrink_to(len);
    }

    /// Moves the elements to the front of the allocation.
    fn close_gap(&mut self) {
        self.all.drain(..self.head);
        self.head = 0;
    }

    /// The room before the first element and behind the last.
    pub(super) fn room(&self) -> (usize, usize) {
        (self.head, self.all.capacity() - self.all.len())
    }

    /// Nothing yet, with room for so many elements and so much around them.
    pub(super) fn with_room(before: usize, len: usize, behind: usize) -> Values {
        let mut all = Vec::new();
        all.reserve_exact(before + len + behind);
        all.resize(before, Value::UNDEFINED);
        Values { all, head: before }
    }

    fn range(&self, start: usize, end: usize) -> &[Value] {
        self.all.get(self.head + start..self.head + end).unwrap_or_default()
    }

    /// Takes `n` elements off the front.
    fn advance(&mut self, n: usize) {
        self.head += n;
        // The move costs less than the calls that made the gap.
        if self.head > 16 && self.head * 2 > self.all.len() {
            self.close_gap();
        }
    }
}

impl Deref for Values {
    type Target = [Value];
    #[inline]
    fn deref(&self) -> &[Value] {
        self.all.get(self.head..).unwrap_or_default()
    }
}

impl DerefMut for Values {
    #[inline]
    fn deref_mut(&mut self) -> &mut [Value] {
        self.all.get_mut(self.head..).unwrap_or_default()
    }
}

impl From<Vec<Value>> for Values {
    fn from(all: Vec<Value>) -> Values {
        Values { all, head: 0 }
    }
}

impl Clone for Values {
    /// Spare room is not copied.
    fn clone(&self) -> Values {
        Values::from(self.to_vec())
    }
}

impl Heap {
    /// Replaces `gone` elements from `start` on. `Ok(false)`: the array is sparse, has holes at its end, cannot change
    /// its length, or would become too long; nothing happened. That no setter is met is for the caller to know.
    pub fn splice_elements(
        &mut self,
        array: ObjId,
        start: u32,
        gone: u32,
        added: &[Value],
    ) -> Result<bool, AllocError> {
        let Some(id) = self.full_elements(array) else { return Ok(false) };
        let length = self.elements[id].length;
        let (start, gone) = (start.min(length), gone.min(length.saturating_sub(start)));
        let Some(new) = (u64::from(length) + added.len() as u64)
            .checked_sub(u64::from(gone))
            .and_then(|n| u32::try_from(n).ok())
        else {
            return Ok(false);
        };
        let (start, gone) = (start as usize, gone as usize);
        if start == 0 && added.len() <= gone {
            let elements = &mut self.elements[id];
            elements.values.advance(gone - added.len());
            elements.values[..added.len()].copy_from_slice(added);
        } else if start == 0 && gone < added.len() {
            self.reserve_front(id, added.len() - gone)?;
            let values = &mut self.elements[id].values;
            values.head -= added.len() - gone;
            values[..added.len()].copy_from_slice(added);
        } else {
            self.reserve_elements(id, new as usize)?;
            let values = &mut self.elements[id].values;
            let old = values.len();
            if added.len() > gone {
                values.resize(new as usize, Value::HOLE);
            }
            values.copy_within(start + gone..old, start + added.len());
            values[start..start + added.len()].copy_from_slice(added);
            values.truncate(new as usize);
        }
        self.elements[id].length = new;
        self.shrink_elements(id);
        Ok(true)
    }

    /// Appends the elements of one dense array to another, which has room for them already.
    pub fn append_elements(&mut self, to: ObjId, from: ObjId) {
        let (Some(to), Some(from)) = (self.full_elements(to), self.elements_of(from)) else { return };
        let mut values = std::mem::take(&mut self.elements[to].values);
        if to != from {
            let more = &self.elements[from].values;
            let room = values.capacity() - values.all.len();
            values.all.extend_from_slice(&more[..more.len().min(room)]);
        }
        let elements = &mut self.elements[to];
        elements.length = values.len() as u32;
        elements.values = values;
    }

    /// Overwrites the elements of one dense array with those of another, if there are as many.
    #[must_use]
    pub fn assign_elements(&mut self, to: ObjId, from: ObjId) -> bool {
        let (Some(to), Some(from)) = (self.full_elements(to), self.full_elements(from)) else { return false };
        if to == from || self.elements[to].length != self.elements[from].length {
            return to == from;
        }
        let source = std::mem::take(&mut self.elements[from].values);
        self.elements[to].values.copy_from_slice(&source);
        self.elements[from].values = source;
        true
    }

    /// A new array with a part of the elements of a dense one.
    pub fn new_array_from(
        &mut self,
        shape: ShapeId,
        array: ObjId,
        start: usize,
        end: usize,
    ) -> Result<ObjId, AllocError> {
        let count = end.saturating_sub(start);
        let made = self.new_array_with_capacity(shape, count as u32)?;
        if let (Some(from), Some(to)) = (self.elements_of(array), self.elements_of(made)) {
            let mut values = std::mem::take(&mut self.elements[to].values);
            values.all.extend_from_slice(self.elements[from].values.range(start, end));
            let elements = &mut self.elements[to];
            elements.length = values.len() as u32;
            elements.values = values;
        }
        Ok(made)
    }

    /// Makes every element of a dense array the same value, up to its length. `Ok(false)`: it cannot be done this way.
    pub fn fill_elements(&mut self, array: ObjId, value: Value) -> Result<bool, AllocError> {
        let record = &self.objects[array];
        if record.class != Class::Array || record.flags.has(Flags::SPARSE) {
            return Ok(false);
        }
        let id = ElementsId::from_raw(record.payload);
        let length = self.elements[id].length as usize;
        self.reserve_elements(id, length)?;
        let values = &mut self.elements[id].values;
        values.fill(value);
        values.resize(length, value);
        Ok(true)
    }

    /// Whether none of these objects, prototypes of arrays, has a property that is an array index.
    pub fn index_free(&mut self, prototypes: [ObjId; 2]) -> bool {
        let elements = |o: &ObjId| match self.elements_of(*o) {
            Some(id) => !self.elements[id].values.is_empty() || self.flags(*o).has(Flags::SPARSE),
            None => false,
        };
        if prototypes.iter().any(elements) {
            return false;
        }
        // Named properties of prototypes change the epoch when they come.
        if self.index_free_epoch == Some(self.epoch) {
            return true;
        }
        let free = !prototypes.iter().any(|&o| {
            let shape = &self.shapes[self.shape(o)];
            let entries = shape.table.map(|t| &self.tables[t].entries[..]).unwrap_or_default();
            entries.iter().take(shape.count as usize).any(|e| self.array_index(e.key).is_some())
        });
        if free {
            self.index_free_epoch = Some(self.epoch);
        }
        free
    }

    /// The elements of a dense array that is full to its length and may change it.
    fn full_elements(&self, array: ObjId) -> Option<ElementsId> {
        let record = &self.objects[array];
        if record.class != Class::Array || record.flags.has(Flags::SPARSE) {
            return None;
        }
        let id = ElementsId::from_raw(record.payload);
        let Elements { values, length, state } = &self.elements[id];
        (values.len() == *length as usize && *state == LengthState::Writable).then_some(id)
    }

    /// Makes room for `count` elements before the first.
    fn reserve_front(&mut self, id: ElementsId, count: usize) -> Result<(), AllocError> {
        let values = &self.elements[id].values;
        if values.head >= count {
            return Ok(());
        }
        let (len, old) = (values.len(), values.capacity());
        let head = count + (len / 2).max(4);
        let capacity = head + len;
        if capacity > old {
            self.account.grow((capacity - old) * size_of::<Value>())?;
        } else {
            self.account.shrink((old - capacity) * size_of::<Value>());
        }
        let mut all = Vec::with_capacity(capacity);
        all.resize(head, Value::UNDEFINED);
        all.extend_from_slice(&self.elements[id].values);
        self.elements[id].values = Values { all, head };
        Ok(())
    }
}
