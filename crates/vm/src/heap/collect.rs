//! The collector: exact mark and sweep with an explicit stack.
//!
//! The caller names the roots through a [`Marker`]; everything reachable from them survives. Work is linear in what is
//! live plus what is allocated, weak tables included: an entry whose key is not reached yet waits in an index by key
//! instead of being looked at again and again.

use super::arena::{Id, Marks, Survivors};
use super::string::Repr;
use super::{
    AccessorId, CellId, ClosureId, ElementsId, Heap, Key, KeyKind, MapId, ObjId, OverLimit, Payload, Point,
    ShapeId, SlotsId, StrId, SymId, ViewId, WeakId, atoms, symbols,
};
use crate::value::{Internal, Unpacked, Value};
use rustc_hash::FxHashMap;

/// What a collection did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Collected {
    /// Bytes still charged.
    pub bytes: usize,
    /// Records still alive.
    pub records: usize,
    /// Shapes that died. When this is not zero, every inline cache must be emptied: shape ids may be used again.
    pub shapes_freed: usize,
}

/// Where the caller names its roots.
#[derive(Debug, Default)]
pub struct Marker {
    strings: Marks,
    symbols: Marks,
    bigints: Marks,
    objects: Marks,
    cells: Marks,
    shapes: Marks,
    tables: Marks,
    accessors: Marks,
    elements: Marks,
    fields: Marks,
    closures: Marks,
    maps: Marks,
    weaks: Marks,
    buffers: Marks,
    views: Marks,
    stack: Vec<Work>,
    /// The shape that was marked last.
    last_shape: Option<ShapeId>,
    weak_tables: Vec<WeakId>,
    /// Values that wait for a key, by the key's bits; filled once the strong marking is done.
    waiting: FxHashMap<u64, Vec<Value>>,
}

#[derive(Clone, Copy, Debug)]
enum Work {
    Object(ObjId),
    String(StrId),
    Symbol(SymId),
    Cell(CellId),
    Accessor(AccessorId),
    Fields(SlotsId),
    Shape(ShapeId),
}

impl Marker {
    /// A value is a root.
    #[inline]
    pub fn value(&mut self, value: Value) {
        if value.is_reference() {
            self.reference(value);
        }
    }

    /// Many values are roots.
    pub fn values(&mut self, values: &[Value]) {
        values.iter().for_each(|&v| self.value(v));
    }

    /// An object is a root.
    #[inline]
    pub fn object(&mut self, id: ObjId) {
        if self.objects.set(id.index()) {
            self.stack.push(Work::Object(id));
        }
    }

    /// A string is a root.
    pub fn string(&mut self, id: StrId) {
        if self.strings.set(id.index()) {
            self.stack.push(Work::String(id));
        }
    }

    /// A symbol is a root.
    pub fn symbol(&mut self, id: SymId) {
        if self.symbols.set(id.index()) {
            self.stack.push(Work::Symbol(id));
        }
    }

    /// A property key is a root.
    pub fn key(&mut self, key: Key) {
        match key.kind() {
            KeyKind::Index(_) => {}
            KeyKind::Atom(id) => self.string(id),
            KeyKind::Symbol(id) => self.symbol(id),
        }
    }

    /// A shape is a root.
    pub fn shape(&mut self, id: ShapeId) {
        if self.shapes.set(id.index()) {
            self.stack.push(Work::Shape(id));
        }
    }

    /// A captured variable is a root.
    pub fn cell(&mut self, id: CellId) {
        if self.cells.set(id.index()) {
            self.stack.push(Work::Cell(id));
        }
    }

    /// A record of internal fields is a root.
    pub fn slots(&mut self, id: SlotsId) {
        if self.fields.set(id.index()) {
            self.stack.push(Work::Fields(id));
        }
    }

    fn reference(&mut self, value: Value) {
        match value.unpack() {
            Unpacked::Object(id) => self.object(id),
            Unpacked::String(id) => self.string(id),
            Unpacked::Symbol(id) => self.symbol(id),
            Unpacked::BigInt(id) => {
                self.bigints.set(id.index());
            }
            Unpacked::Internal(Internal::Cell(id)) => self.cell(id),
            Unpacked::Internal(Internal::Slots(id)) => self.slots(id),
            Unpacked::Internal(Internal::Shape(id)) => self.shape(id),
            Unpacked::Internal(Internal::Accessor(id)) => {
                if self.accessors.set(id.index()) {
                    self.stack.push(Work::Accessor(id));
                }
            }
            Unpacked::Internal(Internal::Raw(_))
            | Unpacked::Undefined
            | Unpacked::Null
            | Unpacked::Bool(_)
            | Unpacked::Hole
            | Unpacked::Int(_)
            | Unpacked::Double(_) => {}
        }
    }

    /// Keeps nothing but memory, and of each kind no more than so many bytes.
    pub(super) fn forget(&mut self, room: usize) {
        macro_rules! forget {
            ($($arena:ident)*) => {$(self.$arena.forget(room);)*};
        }
        forget!(strings symbols bigints objects cells shapes tables accessors elements fields closures maps weaks buffers
            views);
        self.stack.clear();
        self.stack.shrink_to(room / size_of::<Work>());
        self.last_shape = None;
        self.weak_tables = Vec::new();
        self.waiting = FxHashMap::default();
    }

    /// Has the key of a weak entry been reached?
    fn is_marked(&self, value: Value) -> bool {
        match value.unpack() {
            Unpacked::Object(id) => self.objects.get(id.index()),
            Unpacked::Symbol(id) => self.symbols.get(id.index()),
            _ => true,
        }
    }
}

impl Heap {
    /// Collects garbage. `point` is where execution stands (see [`Point`]); `roots` names everything in use. Fails when
    /// the instruction at `point` cannot be satisfied within the limits even now.
    pub fn collect(&mut self, point: Point, roots: impl FnOnce(&mut Marker)) -> Result<Collected, OverLimit> {
        let mut marker = std::mem::take(&mut self.marker);
        self.prepare(&mut marker);
        roots(&mut marker);
        self.drain(&mut marker);
        self.settle_weak(&mut marker);
        let (survivors, shapes_freed) = self.sweep(&marker);
        marker.weak_tables.clear();
        marker.waiting = FxHashMap::default();
        // A deep structure may have made the stack large once; that is no reason to keep it.
        marker.stack.shrink_to(1 << 12);
        self.marker = marker;
        let footprint = self.footprint();
        self.account.collected(survivors.bytes, survivors.records, footprint, point)?;
        Ok(Collected { bytes: self.bytes(), records: self.records(), shapes_freed })
    }

    /// Recounts what is charged, record by record: (bytes, records). Equal to [`Heap::bytes`] and [`Heap::records`]
    /// at all times; tests hold it to that.
    pub fn audit(&self) -> (usize, usize) {
        self.account.above_floor(self.usage())
    }

    /// Bytes and records of everything, the image's included.
    pub(crate) fn usage(&self) -> (usize, usize) {
        let mut total = Survivors {
            records: 0,
            bytes: self.interner.bytes() + self.edge_bytes() + self.account.outside(),
        };
        macro_rules! count {
            ($($arena:ident)*) => {$( total += self.$arena.total(); )*};
        }
        count!(strings symbols bigints objects cells shapes tables accessors elements fields closures maps weaks buffers
            views);
        (total.bytes, total.records)
    }

    /// The memory behind the arenas, free entries included. A collection refuses to go on when this is more than four
    /// times the limit: a guest that fills and empties one kind of record after the other could otherwise hold a
    /// multiple of its limit in free entries.
    pub fn footprint(&self) -> usize {
        let mut total = self.slab.footprint();
        macro_rules! count {
            ($($arena:ident)*) => {$( total += self.$arena.footprint(); )*};
        }
        count!(strings symbols bigints objects cells shapes tables accessors elements fields closures maps weaks buffers
            views);
        total
    }

    fn prepare(&self, marker: &mut Marker) {
        macro_rules! reset {
            ($($arena:ident)*) => {$(marker.$arena.reset(self.base.$arena as usize, self.$arena.span());)*};
        }
        reset!(strings symbols bigints objects cells shapes tables accessors elements fields closures maps weaks buffers
            views);
        marker.stack.clear();
        marker.last_shape = None;
        self.mark_touched(marker);
        // The engine's own names, in a heap that has no image yet.
        for index in self.base.strings as usize..257 + atoms::TEXTS.len() {
            marker.strings.set(index);
        }
        for index in self.base.symbols..symbols::TEXTS.len() as u32 {
            marker.symbol(SymId::from_raw(index));
        }
        for &symbol in self.registry.values() {
            marker.symbol(symbol);
        }
    }

    /// What came with the image stays: its ids must keep their meaning for snapshots. It refers to nothing but itself, except
    /// for the records that were written to.
    fn mark_touched(&self, marker: &mut Marker) {
        self.objects.each_touched().for_each(|(id, _)| marker.stack.push(Work::Object(id)));
        self.cells.each_touched().for_each(|(_, cell)| marker.value(cell.0));
        for (_, pair) in self.accessors.each_touched() {
            marker.value(pair.get);
            marker.value(pair.set);
        }
        self.elements.each_touched().for_each(|(_, elements)| marker.values(&elements.values));
        self.fields.each_touched().for_each(|(id, _)| marker.values(self.slots(id)));
        self.closures.each_touched().for_each(|(id, _)| self.trace_closure(marker, id));
        self.maps.each_touched().for_each(|(_, map)| map.each_value(|value| marker.value(value)));
        self.weaks.each_touched().for_each(|(id, _)| marker.weak_tables.push(id));
        self.views.each_touched().filter_map(|(_, view)| view.0).for_each(|view| marker.object(view.buffer));
    }

    fn drain(&self, marker: &mut Marker) {
        while let Some(work) = marker.stack.pop() {
            match work {
                Work::Object(id) => {
                    if !marker.waiting.is_empty() {
                        self.wake(marker, Value::object(id));
                        self.wake(marker, Value::array(id));
                    }
                    self.trace_object(marker, id);
                }
                Work::String(id) => match self.strings[id].repr {
                    Repr::Rope { left, right, .. } => {
                        marker.string(left);
                        marker.string(right);
                    }
                    Repr::Slice { base, .. } => marker.string(base),
                    Repr::Inline(..)
                    | Repr::Latin1(_)
                    | Repr::Wide(_)
                    | Repr::Builder(_)
                    | Repr::WideBuilder(_)
                    | Repr::Vacant => {}
                },
                Work::Symbol(id) => {
                    if !marker.waiting.is_empty() {
                        self.wake(marker, Value::symbol(id));
                    }
                    if let Some(description) = self.symbols[id].description {
                        marker.string(description);
                    }
                }
                Work::Cell(id) => self.mark(marker, self.cells[id].0),
                Work::Accessor(id) => {
                    let pair = self.accessors[id];
                    self.mark(marker, pair.get);
                    self.mark(marker, pair.set);
                }
                Work::Fields(id) => self.mark_all(marker, self.slots(id)),
                Work::Shape(id) => self.trace_shape(marker, id),
            }
        }
    }

    /// [`Marker::value`] that sees at once when there is nothing to follow in a string.
    #[inline(always)]
    fn mark(&self, marker: &mut Marker, value: Value) {
        if !value.is_reference() {
            return;
        }
        let Some(id) = value.as_string() else {
            return match value.as_object() {
                Some(id) => marker.object(id),
                None => marker.value(value),
            };
        };
        if marker.strings.set(id.index())
            && let Repr::Rope { .. } | Repr::Slice { .. } = self.strings[id].repr
        {
            marker.stack.push(Work::String(id));
        }
    }

    fn mark_all(&self, marker: &mut Marker, values: &[Value]) {
        values.iter().for_each(|&v| self.mark(marker, v));
    }

    fn trace_object(&self, marker: &mut Marker, id: ObjId) {
        let record = &self.objects[id];
        // Neighbours often have the same shape.
        if marker.last_shape != Some(record.shape) {
            marker.last_shape = Some(record.shape);
            marker.shape(record.shape);
        }
        self.each_slot(record, |value| self.mark(marker, value));
        let raw = record.payload;
        match record.class.payload() {
            Payload::None => {}
            Payload::Elements => {
                if marker.elements.set(raw as usize) {
                    self.mark_all(marker, &self.elements[ElementsId::from_raw(raw)].values);
                }
            }
            Payload::Cell => marker.cell(CellId::from_raw(raw)),
            Payload::Slots => marker.slots(SlotsId::from_raw(raw)),
            Payload::Closure => {
                if marker.closures.set(raw as usize) {
                    self.trace_closure(marker, ClosureId::from_raw(raw));
                }
            }
            Payload::Map => {
                if marker.maps.set(raw as usize) {
                    self.maps[MapId::from_raw(raw)].each_value(|value| marker.value(value));
                }
            }
            Payload::Weak => {
                if marker.weaks.set(raw as usize) {
                    let id = WeakId::from_raw(raw);
                    marker.weak_tables.push(id);
                }
            }
            Payload::Buffer => {
                marker.buffers.set(raw as usize);
            }
            Payload::View => {
                marker.views.set(raw as usize);
                if let Some(view) = self.views[ViewId::from_raw(raw)].0 {
                    marker.object(view.buffer);
                }
            }
        }
    }

    fn trace_closure(&self, marker: &mut Marker, id: ClosureId) {
        let closure = &self.closures[id];
        marker.value(closure.home);
        if let Some(span) = closure.span() {
            marker.values(self.slab.slice(span));
        }
    }

    fn trace_shape(&self, marker: &mut Marker, id: ShapeId) {
        let record = &self.shapes[id];
        if let Some(prototype) = record.prototype {
            marker.object(prototype);
        }
        if let Some(parent) = record.parent {
            marker.shape(parent);
        }
        if let Some(table) = record.table
            && marker.tables.set(table.index())
        {
            for entry in &self.tables[table].entries {
                if entry.key != Key::DELETED {
                    marker.key(entry.key);
                }
            }
        }
    }

    /// Marks the values of weak entries whose key was reached, until no more are.
    fn settle_weak(&self, marker: &mut Marker) {
        // Tables found while settling are appended and get their turn.
        let mut next = 0;
        while let Some(&id) = marker.weak_tables.get(next) {
            next += 1;
            for &(key, value) in self.weaks[id].entries.values() {
                if marker.is_marked(key) {
                    marker.value(value);
                } else if value.is_reference() {
                    marker.waiting.entry(key.bits()).or_default().push(value);
                }
            }
            self.drain(marker);
        }
    }

    /// A key has been reached: the values that waited for it are reachable too.
    #[inline]
    fn wake(&self, marker: &mut Marker, key: Value) {
        if let Some(values) = marker.waiting.remove(&key.bits()) {
            marker.values(&values);
        }
    }

    fn sweep(&mut self, marker: &Marker) -> (Survivors, usize) {
        self.clear_dead_weak(marker);
        self.prune_edges(|id| marker.shapes.get(id.index()));
        let mut total = Survivors::default();
        let slab = &mut self.slab;
        total += self.objects.sweep(&marker.objects, |record| {
            if let Some(span) = record.span() {
                slab.release(span);
            }
        });
        total += self.closures.sweep(&marker.closures, |record| {
            if let Some(span) = record.span() {
                slab.release(span);
            }
        });
        let mut shapes_freed = 0;
        total += self.shapes.sweep(&marker.shapes, |_| shapes_freed += 1);
        total += self.tables.sweep(&marker.tables, |_| ());
        let mut dead_atoms = 0;
        total += self.strings.sweep(&marker.strings, |record| {
            dead_atoms += usize::from(record.role != super::string::Role::Plain);
        });
        total += self.symbols.sweep(&marker.symbols, |_| ());
        total += self.bigints.sweep(&marker.bigints, |_| ());
        total += self.cells.sweep(&marker.cells, |_| ());
        total += self.accessors.sweep(&marker.accessors, |_| ());
        total += self.elements.sweep(&marker.elements, |_| ());
        let slab = &mut self.slab;
        total += self.fields.sweep(&marker.fields, |record| {
            if let Some(span) = record.span() {
                slab.release(span);
            }
        });
        total += self.maps.sweep(&marker.maps, |_| ());
        total += self.weaks.sweep(&marker.weaks, |_| ());
        total += self.buffers.sweep(&marker.buffers, |_| ());
        total += self.views.sweep(&marker.views, |_| ());
        if dead_atoms > 0 {
            self.sweep_interner(dead_atoms);
        }
        total.bytes += self.interner.bytes() + self.edge_bytes();
        (total, shapes_freed)
    }

    /// Takes dead keys out of weak tables and clears weak references to the dead.
    fn clear_dead_weak(&mut self, marker: &Marker) {
        for &id in &marker.weak_tables {
            self.weaks[id].entries.retain(|_, (key, _)| marker.is_marked(*key));
        }
    }
}
