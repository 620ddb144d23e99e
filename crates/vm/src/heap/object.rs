//! Object records: 48 bytes of plain data with four slots inside, and a slab for those who need more.

use super::arena::Record;
use super::{AllocError, Class, Flags, Heap, ObjId, Payload, ShapeId};
use crate::value::Value;

/// Slots inside the record.
pub(crate) const INLINE_SLOTS: usize = 4;
pub(super) const NO_OVERFLOW: u8 = u8::MAX;

/// A slot number: where, in an object of a given shape, a property's value is.
pub type Slot = u32;

#[derive(Clone, Copy, Debug)]
pub(crate) struct ObjectRecord {
    pub(crate) shape: ShapeId,
    pub(crate) class: Class,
    pub(crate) flags: Flags,
    pub(super) overflow_class: u8,
    pub(crate) payload: u32,
    pub(super) overflow: u32,
    pub(crate) slots: [Value; INLINE_SLOTS],
}

const _: () = assert!(size_of::<ObjectRecord>() == 48);

impl ObjectRecord {
    pub(super) fn new(shape: ShapeId, class: Class, flags: Flags, payload: u32) -> ObjectRecord {
        ObjectRecord {
            shape,
            class,
            flags,
            overflow_class: NO_OVERFLOW,
            payload,
            overflow: 0,
            slots: [Value::UNDEFINED; INLINE_SLOTS],
        }
    }

    /// The overflow span, if there is one.
    pub(crate) fn span(&self) -> Option<Span> {
        (self.overflow_class != NO_OVERFLOW)
            .then_some(Span { start: self.overflow, class: self.overflow_class })
    }

    pub(super) fn capacity(&self) -> usize {
        INLINE_SLOTS + self.span().map_or(0, Span::capacity)
    }
}

impl Record for ObjectRecord {
    fn vacant() -> Self {
        ObjectRecord::new(ShapeId::from_raw(0), Class::Vacant, Flags::NONE, 0)
    }
    fn is_vacant(&self) -> bool {
        self.class == Class::Vacant
    }
    #[inline]
    fn vacate(&mut self) {
        self.class = Class::Vacant;
    }
    #[inline]
    fn bytes(&self) -> usize {
        size_of::<ObjectRecord>() + self.span().map_or(0, |span| span.capacity() * size_of::<Value>())
    }
}

impl Heap {
    /// A plain object of this shape, its slots undefined.
    #[inline]
    pub fn new_object(&mut self, shape: ShapeId) -> Result<ObjId, AllocError> {
        self.new_object_of(shape, Class::Object, Flags::NONE, 0)
    }

    /// An object of any class. `payload` is the raw id of a record of the class's [`Payload`] kind.
    #[inline]
    pub fn new_object_of(
        &mut self,
        shape: ShapeId,
        class: Class,
        flags: Flags,
        payload: u32,
    ) -> Result<ObjId, AllocError> {
        let slots = self.shapes[shape].count as usize;
        if slots <= INLINE_SLOTS {
            self.account.charge(size_of::<ObjectRecord>())?;
            return Ok(self.objects.insert(ObjectRecord::new(shape, class, flags, payload)));
        }
        self.new_large_object(shape, class, flags, payload, slots)
    }

    #[inline(never)]
    fn new_large_object(
        &mut self,
        shape: ShapeId,
        class: Class,
        flags: Flags,
        payload: u32,
        slots: usize,
    ) -> Result<ObjId, AllocError> {
        let size = Span::class_for(slots - INLINE_SLOTS);
        self.account.charge(size_of::<ObjectRecord>() + (size_of::<Value>() << size))?;
        let span = self.slab.allocate(size);
        let mut record = ObjectRecord::new(shape, class, flags, payload);
        record.overflow = span.start;
        record.overflow_class = span.class;
        Ok(self.objects.insert(record))
    }

    /// The shape of an object: the thing an inline cache compares.
    #[inline]
    pub fn shape(&self, obj: ObjId) -> ShapeId {
        self.objects[obj].shape
    }

    /// The class of an object.
    #[inline]
    pub fn class(&self, obj: ObjId) -> Class {
        self.objects[obj].class
    }

    /// The flags of an object.
    #[inline]
    pub fn flags(&self, obj: ObjId) -> Flags {
        self.objects[obj].flags
    }

    /// Adds flags to an object.
    pub fn add_flags(&mut self, obj: ObjId, flags: Flags) {
        let record = &mut self.objects[obj];
        record.flags = record.flags.and(flags);
    }

    /// Can it be called?
    #[inline]
    pub fn is_callable(&self, value: Value) -> bool {
        value.as_object().is_some_and(|obj| self.objects[obj].flags.has(Flags::CALLABLE))
    }

    /// Can it be called with `new`?
    #[inline]
    pub fn is_constructor(&self, value: Value) -> bool {
        value.as_object().is_some_and(|obj| self.objects[obj].flags.has(Flags::CONSTRUCTOR))
    }

    /// The object's payload, if its class keeps it in this kind of place.
    #[inline]
    pub fn payload(&self, obj: ObjId, kind: Payload) -> Option<u32> {
        let record = &self.objects[obj];
        (record.class.payload() == kind).then_some(record.payload)
    }

    /// The object as a value, with the tag its class asks for.
    #[inline]
    pub fn object_value(&self, obj: ObjId) -> Value {
        if self.objects[obj].class == Class::Array { Value::array(obj) } else { Value::object(obj) }
    }

    /// Reads a slot.
    #[inline]
    pub fn slot(&self, obj: ObjId, slot: Slot) -> Value {
        let record = &self.objects[obj];
        match record.slots.get(slot as usize) {
            Some(value) => *value,
            None => self.slab.values[record.overflow as usize + slot as usize - INLINE_SLOTS],
        }
    }

    /// Writes a slot. The property must be writable data: an inline cache has checked that when it was filled.
    #[inline]
    pub fn set_slot(&mut self, obj: ObjId, slot: Slot, value: Value) {
        let record = &mut self.objects[obj];
        match record.slots.get_mut(slot as usize) {
            Some(place) => *place = value,
            None => self.slab.values[record.overflow as usize + slot as usize - INLINE_SLOTS] = value,
        }
    }

    /// If the object has exactly this shape: the value of the slot. The whole fast path of a property read.
    #[inline]
    pub fn slot_if_shape(&self, obj: ObjId, shape: ShapeId, slot: Slot) -> Option<Value> {
        let record = &self.objects[obj];
        if record.shape != shape {
            return None;
        }
        match record.slots.get(slot as usize) {
            Some(value) => Some(*value),
            None => self.slab.values.get(record.overflow as usize + slot as usize - INLINE_SLOTS).copied(),
        }
    }

    /// If the object has exactly this shape: writes the slot and says so.
    #[inline]
    #[must_use]
    pub fn set_slot_if_shape(&mut self, obj: ObjId, shape: ShapeId, slot: Slot, value: Value) -> bool {
        let record = &mut self.objects[obj];
        if record.shape != shape {
            return false;
        }
        match record.slots.get_mut(slot as usize) {
            Some(place) => *place = value,
            None => {
                let Some(place) =
                    self.slab.values.get_mut(record.overflow as usize + slot as usize - INLINE_SLOTS)
                else {
                    return false;
                };
                *place = value;
            }
        }
        true
    }

    /// If the object has the shape `from`: adds the property in `slot` by moving it to the shape `to`, a transition
    /// that [`Heap::transition`] answered earlier. `false` means nothing happened (another shape, or a slot that needs
    /// new storage).
    #[inline]
    #[must_use]
    pub fn add_slot_if_shape(
        &mut self,
        obj: ObjId,
        from: ShapeId,
        to: ShapeId,
        slot: Slot,
        value: Value,
    ) -> bool {
        let record = &mut self.objects[obj];
        if record.shape != from || record.flags.has(Flags::PROTOTYPE) {
            return false;
        }
        if let Some(place) = record.slots.get_mut(slot as usize) {
            *place = value;
        } else if (slot as usize) < record.capacity() {
            self.slab.values[record.overflow as usize + slot as usize - INLINE_SLOTS] = value;
        } else {
            return false;
        }
        record.shape = to;
        true
    }

    /// Makes room for `slots` slots, charging first.
    pub(crate) fn reserve_slots(&mut self, obj: ObjId, slots: usize) -> Result<(), AllocError> {
        let record = self.objects[obj];
        if slots <= record.capacity() {
            return Ok(());
        }
        let size = Span::class_for(slots - INLINE_SLOTS);
        self.account.grow(size_of::<Value>() << size)?;
        let span = self.slab.allocate(size);
        if let Some(old) = record.span() {
            let from = old.start as usize;
            self.slab.values.copy_within(from..from + old.capacity(), span.start as usize);
            self.slab.release(old);
            self.account.shrink(old.capacity() * size_of::<Value>());
        }
        let record = &mut self.objects[obj];
        record.overflow = span.start;
        record.overflow_class = span.class;
        Ok(())
    }

    /// Every value in an object's slots, the unused ones included (they are undefined).
    pub(crate) fn each_slot(&self, record: &ObjectRecord, mut f: impl FnMut(Value)) {
        record.slots.iter().for_each(|&v| f(v));
        if let Some(span) = record.span() {
            self.slab.slice(span).iter().for_each(|&v| f(v));
        }
    }
}

/// A run of values in the slab: `1 << class` of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) start: u32,
    pub(crate) class: u8,
}

impl Span {
    pub(crate) fn capacity(self) -> usize {
        1 << self.class
    }

    /// The smallest class that holds this many values.
    pub(crate) fn class_for(values: usize) -> u8 {
        values.next_power_of_two().trailing_zeros() as u8
    }
}

/// Runs of values in power-of-two sizes, each size with its own free list.
#[derive(Clone, Debug)]
pub(crate) struct Slab {
    pub(crate) values: Vec<Value>,
    pub(super) free: [Vec<u32>; 32],
    /// How many of the values came with the image.
    pub(super) line: usize,
}

impl Slab {
    pub(crate) fn new() -> Slab {
        Slab { values: Vec::new(), free: [const { Vec::new() }; 32], line: 0 }
    }

    /// A span of undefined values. The caller has charged for it, so the limits keep `start` in range.
    pub(crate) fn allocate(&mut self, class: u8) -> Span {
        if let Some(start) = self.free[usize::from(class & 31)].pop() {
            return Span { start, class };
        }
        let start = self.values.len();
        self.values.resize(start + (1 << class), Value::UNDEFINED);
        Span { start: start as u32, class }
    }

    /// Returns a span and wipes it, so that a later reader of stale slots finds nothing to follow.
    pub(crate) fn release(&mut self, span: Span) {
        let start = span.start as usize;
        self.values[start..start + span.capacity()].fill(Value::UNDEFINED);
        self.free[usize::from(span.class & 31)].push(span.start);
    }

    /// Takes the values of a span from the image again.
    pub(super) fn respan(&mut self, span: Span, image: &Slab) {
        let values = image.slice(span);
        self.values[span.start as usize..][..values.len()].copy_from_slice(values);
    }

    /// The memory that all spans take, free ones included.
    pub(crate) fn footprint(&self) -> usize {
        self.values.len() * size_of::<Value>()
    }

    pub(crate) fn slice(&self, span: Span) -> &[Value] {
        &self.values[span.start as usize..span.start as usize + span.capacity()]
    }
}
