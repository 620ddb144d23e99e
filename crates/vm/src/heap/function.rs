//! The records behind functions and other classes with internal state: closures, cells, accessors, field records.

use super::arena::Record;
use super::object::{ObjectRecord, Span};
use super::{AllocError, BigId, CellId, Class, ClosureId, Flags, Heap, ObjId, Payload, ShapeId, SlotsId};
use crate::value::Value;
use num_bigint::BigInt;

/// A captured variable, a boxed primitive, a date.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cell(pub(crate) Value);

/// A getter and a setter, each a function or undefined.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Accessor {
    pub(crate) get: Value,
    pub(crate) set: Value,
}

/// Internal fields of a class that needs no arena of its own.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fields {
    pub(super) start: u32,
    pub(super) len: u32,
    pub(super) class: u8,
}

impl Fields {
    pub(crate) fn span(&self) -> Option<Span> {
        (self.class < FREE).then_some(Span { start: self.start, class: self.class })
    }

    pub(super) fn capacity(&self) -> usize {
        self.span().map_or(0, Span::capacity)
    }
}

/// What makes an object a closure.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Closure {
    pub(crate) code: u32,
    pub(super) captures: u32,
    pub(super) capture_class: u8,
    pub(super) capture_count: u16,
    /// The object that `super` starts from, or undefined.
    pub(crate) home: Value,
}

pub(super) const NO_SPAN: u8 = u8::MAX;
const FREE: u8 = u8::MAX - 1;

impl Closure {
    pub(crate) fn span(&self) -> Option<Span> {
        (self.capture_class < FREE).then_some(Span { start: self.captures, class: self.capture_class })
    }
}

#[derive(Clone, Debug)]
pub(crate) struct BigRecord(pub(crate) Option<BigInt>);

impl Record for Cell {
    fn vacant() -> Self {
        Cell(Value::VACANT)
    }
    fn is_vacant(&self) -> bool {
        self.0 == Value::VACANT
    }
    fn bytes(&self) -> usize {
        size_of::<Cell>()
    }
}

impl Record for Accessor {
    fn vacant() -> Self {
        Accessor { get: Value::VACANT, set: Value::VACANT }
    }
    fn is_vacant(&self) -> bool {
        self.get == Value::VACANT
    }
    fn bytes(&self) -> usize {
        size_of::<Accessor>()
    }
}

impl Record for Fields {
    fn vacant() -> Self {
        Fields { start: 0, len: 0, class: FREE }
    }
    fn is_vacant(&self) -> bool {
        self.class == FREE
    }
    fn bytes(&self) -> usize {
        size_of::<Fields>() + self.capacity() * size_of::<Value>()
    }
}

impl Record for Closure {
    fn vacant() -> Self {
        Closure { code: 0, captures: 0, capture_class: FREE, capture_count: 0, home: Value::UNDEFINED }
    }
    fn is_vacant(&self) -> bool {
        self.capture_class == FREE
    }
    fn bytes(&self) -> usize {
        size_of::<Closure>() + self.span().map_or(0, |span| span.capacity() * size_of::<Value>())
    }
}

impl Record for BigRecord {
    fn vacant() -> Self {
        BigRecord(None)
    }
    fn is_vacant(&self) -> bool {
        self.0.is_none()
    }
    fn bytes(&self) -> usize {
        size_of::<BigRecord>() + self.0.as_ref().map_or(0, digits_bytes)
    }
}

fn digits_bytes(value: &BigInt) -> usize {
    (value.bits() as usize).div_ceil(64) * 8
}

impl Heap {
    /// A new captured variable.
    #[inline]
    pub fn new_cell(&mut self, value: Value) -> Result<CellId, AllocError> {
        self.account.charge(size_of::<Cell>())?;
        Ok(self.cells.insert(Cell(value)))
    }

    /// Reads a captured variable (the hole: not initialised yet).
    #[inline]
    pub fn cell(&self, id: CellId) -> Value {
        self.cells[id].0
    }

    /// Writes a captured variable.
    #[inline]
    pub fn set_cell(&mut self, id: CellId, value: Value) {
        self.cells[id].0 = value;
    }

    /// A new function object: `code` names its code, `captures` are cell references or constants, `home` is where
    /// `super` starts (or undefined).
    pub fn new_closure(
        &mut self,
        shape: ShapeId,
        flags: Flags,
        code: u32,
        captures: &[Value],
        home: Value,
    ) -> Result<ObjId, AllocError> {
        let capture_count = u16::try_from(captures.len()).map_err(|_| AllocError::TooLong)?;
        let span = if captures.is_empty() {
            self.account.charge(size_of::<Closure>())?;
            None
        } else {
            let class = Span::class_for(captures.len());
            self.account.charge(size_of::<Closure>() + (size_of::<Value>() << class))?;
            let span = self.slab.allocate(class);
            let start = span.start as usize;
            self.slab.values[start..start + captures.len()].copy_from_slice(captures);
            Some(span)
        };
        let id = self.closures.insert(Closure {
            code,
            captures: span.map_or(0, |s| s.start),
            capture_class: span.map_or(NO_SPAN, |s| s.class),
            capture_count,
            home,
        });
        self.new_object_of(shape, Class::Function, flags.and(Flags::CALLABLE), id.raw())
    }

    /// The closure record of a function object.
    #[inline]
    pub fn closure_of(&self, function: ObjId) -> Option<ClosureId> {
        self.payload(function, Payload::Closure).map(ClosureId::from_raw)
    }

    /// Which code a closure runs.
    #[inline]
    pub fn closure_code(&self, id: ClosureId) -> u32 {
        self.closures[id].code
    }

    /// Capture number `n`: a cell reference or a constant.
    #[inline]
    pub fn capture(&self, id: ClosureId, n: u32) -> Value {
        let closure = &self.closures[id];
        self.slab.values.get(closure.captures as usize + n as usize).copied().unwrap_or(Value::UNDEFINED)
    }

    /// Replaces capture number `n` (a function that captures itself, a class binding).
    pub fn set_capture(&mut self, id: ClosureId, n: u32, value: Value) {
        self.closures.will_write(id);
        let closure = &self.closures[id];
        if n < u32::from(closure.capture_count) {
            self.slab.values[closure.captures as usize + n as usize] = value;
        }
    }

    /// How many captures a closure has.
    pub fn capture_count(&self, id: ClosureId) -> u32 {
        u32::from(self.closures[id].capture_count)
    }

    /// The code and the number of captures of every closure that is not as it was in the image, for checking.
    pub(crate) fn closure_codes(&self) -> impl Iterator<Item = (u32, u32)> {
        self.closures.unknown().map(|(_, closure)| (closure.code, u32::from(closure.capture_count)))
    }

    /// The internal fields of every generator that is not as it was in the image, for checking.
    pub(crate) fn suspended(&self) -> impl Iterator<Item = &[Value]> {
        let touched = self.objects.each_touched().map(|(_, object)| object);
        let others = touched.chain(self.image_objects_with_new_payloads().map(|(_, object)| object));
        let wanted =
            |object: &&ObjectRecord| matches!(object.class, Class::Generator | Class::AsyncGenerator);
        let own = self.objects.own().iter().filter(wanted);
        own.chain(others.filter(wanted)).map(|object| self.slots(SlotsId::from_raw(object.payload)))
    }

    /// The names of all functions of the host. They are made for a machine, so its image has none.
    pub(crate) fn host_functions(&self) -> impl Iterator<Item = Value> {
        let own = self.objects.items.get(self.base.objects as usize..).unwrap_or_default();
        let functions = own.iter().filter(|object| object.class == Class::HostFunction);
        let fields = functions.map(|object| self.slots(SlotsId::from_raw(object.payload)));
        fields.map(|fields| fields.first().copied().unwrap_or(Value::UNDEFINED))
    }

    /// Where `super` starts for this closure, or undefined.
    #[inline]
    pub fn home_object(&self, id: ClosureId) -> Value {
        self.closures[id].home
    }

    /// Sets where `super` starts.
    pub fn set_home_object(&mut self, id: ClosureId, home: Value) {
        self.closures[id].home = home;
    }

    /// A new record of internal fields.
    pub fn new_slots(&mut self, values: &[Value]) -> Result<SlotsId, AllocError> {
        let len = u32::try_from(values.len()).map_err(|_| AllocError::TooLong)?;
        let class = if values.is_empty() { NO_SPAN } else { Span::class_for(values.len()) };
        let mut record = Fields { start: 0, len, class };
        self.account.charge(record.bytes())?;
        if class != NO_SPAN {
            record.start = self.slab.allocate(class).start;
            self.slab.values[record.start as usize..][..values.len()].copy_from_slice(values);
        }
        Ok(self.fields.insert(record))
    }

    /// Makes room for `len` internal fields, charging first.
    fn reserve_fields(&mut self, id: SlotsId, len: usize) -> Result<(), AllocError> {
        let old = self.fields[id];
        if len <= old.capacity() {
            return Ok(());
        }
        u32::try_from(len).map_err(|_| AllocError::TooLong)?;
        let class = Span::class_for(len);
        self.account.grow(size_of::<Value>() << class)?;
        let start = self.slab.allocate(class).start;
        if let Some(span) = old.span() {
            let from = span.start as usize;
            self.slab.values.copy_within(from..from + old.len as usize, start as usize);
            self.slab.release(span);
            self.account.shrink(span.capacity() * size_of::<Value>());
        }
        self.fields[id] = Fields { start, len: old.len, class };
        Ok(())
    }

    /// An object of a class with internal fields.
    pub fn new_object_with_slots(
        &mut self,
        shape: ShapeId,
        class: Class,
        flags: Flags,
        values: &[Value],
    ) -> Result<ObjId, AllocError> {
        debug_assert_eq!(class.payload(), Payload::Slots);
        let id = self.new_slots(values)?;
        self.new_object_of(shape, class, flags, id.raw())
    }

    /// An object of a class around one value: a boxed primitive, a date, a weak reference.
    pub fn new_object_with_cell(
        &mut self,
        shape: ShapeId,
        class: Class,
        value: Value,
    ) -> Result<ObjId, AllocError> {
        debug_assert_eq!(class.payload(), Payload::Cell);
        let id = self.new_cell(value)?;
        self.new_object_of(shape, class, Flags::NONE, id.raw())
    }

    /// The internal fields of an object, if its class has them.
    #[inline]
    pub fn slots_of(&self, obj: ObjId) -> Option<SlotsId> {
        self.payload(obj, Payload::Slots).map(SlotsId::from_raw)
    }

    /// The value inside an object, if its class has one.
    #[inline]
    pub fn cell_of(&self, obj: ObjId) -> Option<CellId> {
        self.payload(obj, Payload::Cell).map(CellId::from_raw)
    }

    /// The internal fields, for reading.
    #[inline]
    pub fn slots(&self, id: SlotsId) -> &[Value] {
        let fields = self.fields[id];
        &self.slab.values[fields.start as usize..][..fields.len as usize]
    }

    /// The internal fields, for writing in place.
    #[inline]
    pub fn slots_mut(&mut self, id: SlotsId) -> &mut [Value] {
        self.fields.will_write(id);
        let fields = self.fields[id];
        &mut self.slab.values[fields.start as usize..][..fields.len as usize]
    }

    /// Replaces all internal fields, charging first for what is new.
    pub fn replace_slots(&mut self, id: SlotsId, values: &[Value]) -> Result<(), AllocError> {
        self.reserve_fields(id, values.len())?;
        self.fields[id].len = values.len() as u32;
        self.slots_mut(id).copy_from_slice(values);
        Ok(())
    }

    /// Appends an internal field (promise reactions, queues), in constant amortised time.
    pub fn push_slot(&mut self, id: SlotsId, value: Value) -> Result<(), AllocError> {
        self.push_slots(id, &[value])
    }

    /// Appends several internal fields at once, or none.
    pub fn push_slots(&mut self, id: SlotsId, more: &[Value]) -> Result<(), AllocError> {
        let len = self.fields[id].len as usize;
        self.reserve_fields(id, len + more.len())?;
        let fields = &mut self.fields[id];
        fields.len += more.len() as u32;
        let start = fields.start as usize + len;
        self.slab.values[start..start + more.len()].copy_from_slice(more);
        Ok(())
    }

    /// A new bigint.
    pub fn new_bigint(&mut self, value: BigInt) -> Result<BigId, AllocError> {
        // The digits exist already; the caller has charged work for computing them, this charges for keeping them.
        self.account.charge(size_of::<BigRecord>() + digits_bytes(&value))?;
        Ok(self.bigints.insert(BigRecord(Some(value))))
    }

    /// The number in a bigint.
    pub fn bigint(&self, id: BigId) -> &BigInt {
        static ZERO: BigInt = BigInt::ZERO;
        self.bigints[id].0.as_ref().unwrap_or(&ZERO)
    }
}
