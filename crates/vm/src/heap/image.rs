//! The heap of the image as bytes, and back: a plain copy of its tables, made when a program is built.
//!
//! Unlike a snapshot this is not a difference to anything and not checked: `exec::install_image` is the only way in, for
//! bytes that a build script got from this very engine. So everything has a fixed width, ids and hashes are written as
//! they are, and reading is little more than copying. What hash tables hold is computed again.

use super::account::Account;
use super::arena::{Arena, Id, Record};
use super::array::{Elements, LengthState};
use super::atom::{Interner, SymbolRecord};
use super::class::{Class, Flags};
use super::collect::Marker;
use super::elements::Values;
use super::function::{Accessor, Cell, Closure, Fields};
use super::hash::Seed;
use super::object::{ObjectRecord, Slab};
use super::shape::{Edges, Extensible, ShapeRecord, Step};
use super::shared::Shared;
use super::string::{Repr, Role, StringRecord};
use super::table::{Attrs, Property, PropertyTable};
use super::{Heap, Key, Limits, ObjId, Pace, ShapeId, StrId, SymbolKind, TableId};
use crate::snapshot::bytes::{Flaw, Read, Reader, Writer, require};
use crate::value::Value;
use rustc_hash::FxHashMap;

/// Appends values, eight bytes each.
pub(crate) fn write_words(w: &mut Writer, values: &[Value]) {
    let bytes: Vec<u8> = values.iter().flat_map(|v| v.bits().to_le_bytes()).collect();
    w.text(&bytes);
}

/// What [`write_words`] wrote.
pub(crate) fn read_words(r: &mut Reader<'_>) -> Read<Vec<Value>> {
    let words = r.text()?.as_chunks().0;
    Ok(words.iter().map(|word| Value::of_image(u64::from_le_bytes(*word))).collect())
}

impl Heap {
    /// Appends the whole of a heap that was made by [`Heap::freeze`]. The flaw names what an image cannot hold.
    pub(crate) fn write_image(&self, w: &mut Writer) -> Read<()> {
        let empty = [self.bigints.span(), self.maps.span(), self.weaks.span(), self.buffers.span()];
        let plain = empty == [0; 4] && self.views.span() == 0 && self.edges.is_empty();
        require(plain && self.registry.is_empty(), "the image holds what it cannot hold")?;
        w.uint(u64::from(self.epoch));
        w.count(self.account.outside());
        cells(w, self.strings.all().map(|(_, record)| [record.hash]));
        for (_, record) in self.strings.all() {
            write_string(w, record)?;
        }
        w.count(self.tables.span());
        for (_, table) in self.tables.all() {
            write_table(w, table);
        }
        cells(w, self.shapes.all().map(|(_, shape)| shape_cell(shape)));
        cells(w, self.symbols.items.iter().map(symbol_cell));
        cells(w, self.objects.items.iter().map(object_cell));
        cells(w, self.closures.items.iter().map(closure_cell));
        cells(w, self.fields.items.iter().map(|f| [f.start, f.len, u32::from(f.class)]));
        w.count(self.elements.span());
        for Elements { values, length, state } in &self.elements.items {
            let (before, behind) = values.room();
            require(before + behind == 0, "an array of the image has spare room")?;
            w.uint(u64::from(*length));
            w.byte(match state {
                LengthState::Vacant => 0,
                LengthState::Writable => 1,
                LengthState::ReadOnly => 2,
            });
            write_words(w, values);
        }
        write_words(w, &self.cells.items.iter().map(|cell| cell.0).collect::<Vec<_>>());
        write_words(w, &self.accessors.items.iter().flat_map(|a| [a.get, a.set]).collect::<Vec<_>>());
        write_words(w, &self.slab.values);
        for free in &self.slab.free {
            cells(w, free.iter().map(|&start| [start]));
        }
        w.count(self.interner.used);
        cells(w, self.interner.table.iter().map(|&id| [id]));
        Ok(())
    }

    /// The heap that [`Heap::write_image`] wrote, ready to be forked.
    pub(crate) fn read_image(r: &mut Reader<'_>, limits: Limits, seed: u64) -> Read<Heap> {
        let seed = Seed::new(seed);
        let epoch = r.u32()?;
        let outside = r.u32()? as usize;
        let mut strings = each(r, |[hash]| Ok(StringRecord { hash, ..StringRecord::vacant() }))?;
        for record in &mut strings {
            (record.repr, record.role) = read_string(r)?;
        }
        let mut tables = Vec::with_capacity(r.u32()? as usize);
        for _ in 0..tables.capacity() {
            tables.push(read_table(r, seed)?);
        }
        let mut shapes = each(r, read_shape)?;
        let roots = link(&mut shapes)?;
        let symbols = each(r, read_symbol)?;
        let objects = each(r, read_object)?;
        let closures = each(r, read_closure)?;
        let fields = each(r, |[start, len, class]| Ok(Fields { start, len, class: class as u8 }))?;
        let mut elements = Vec::with_capacity(r.u32()? as usize);
        for _ in 0..elements.capacity() {
            let length = r.u32()?;
            let state = match r.byte()? {
                0 => LengthState::Vacant,
                1 => LengthState::Writable,
                _ => LengthState::ReadOnly,
            };
            elements.push(Elements { values: Values::from(read_words(r)?), length, state });
        }
        let cells = read_words(r)?.into_iter().map(Cell).collect();
        let pairs = read_words(r)?;
        let pairs = pairs.as_chunks().0.iter().map(|&[get, set]| Accessor { get, set }).collect();
        let mut slab = Slab::new();
        slab.values = read_words(r)?;
        slab.line = slab.values.len();
        for free in &mut slab.free {
            *free = each(r, |[start]| Ok(start))?;
        }
        let used = r.u32()? as usize;
        let interner = Interner { used, table: each(r, |[id]| Ok(id))? };
        let mut heap = Heap {
            account: Account::new(limits, Pace::Adaptive),
            seed,
            strings: Shared::of_image(strings),
            symbols: arena(symbols),
            bigints: Arena::new(),
            objects: arena(objects),
            cells: arena(cells),
            shapes: Shared::of_image(shapes),
            tables: Shared::of_image(tables),
            edges: FxHashMap::default(),
            accessors: arena(pairs),
            elements: arena(elements),
            fields: arena(fields),
            closures: arena(closures),
            maps: Arena::new(),
            weaks: Arena::new(),
            buffers: Arena::new(),
            views: Arena::new(),
            slab,
            interner,
            roots,
            registry: FxHashMap::default(),
            epoch,
            base: super::Spans::default(),
            fate: super::recycle::Fate::Dropped,
            index_free_epoch: None,
            marker: Marker::default(),
            beside: super::Beside::default(),
        };
        heap.base = heap.spans();
        heap.account.set_outside(outside);
        let usage = heap.usage();
        heap.account = heap.account.fork(limits, Pace::Adaptive, usage);
        Ok(heap)
    }
}

fn arena<I: Id, T: Record>(items: Vec<T>) -> Arena<I, T> {
    let mut arena = Arena::new();
    arena.items = items;
    arena.freeze();
    arena
}

/// Appends records of so many numbers each.
fn cells<const N: usize>(w: &mut Writer, records: impl Iterator<Item = [u32; N]>) {
    let bytes: Vec<u8> = records.flatten().flat_map(u32::to_le_bytes).collect();
    w.text(&bytes);
}

/// Reads what [`cells`] wrote.
fn each<const N: usize, T>(r: &mut Reader<'_>, mut read: impl FnMut([u32; N]) -> Read<T>) -> Read<Vec<T>> {
    let numbers = r.text()?.as_chunks::<4>().0;
    let records = numbers.as_chunks::<N>().0;
    let mut all = Vec::with_capacity(records.len());
    for record in records {
        all.push(read(record.map(u32::from_le_bytes))?);
    }
    Ok(all)
}

fn halves(v: Value) -> [u32; 2] {
    [v.bits() as u32, (v.bits() >> 32) as u32]
}

fn whole(low: u32, high: u32) -> Value {
    Value::of_image(u64::from(low) | u64::from(high) << 32)
}

/// An id that may be missing.
fn option(id: Option<u32>) -> u32 {
    id.map_or(0, |id| id + 1)
}

/// Appends what a string says; its hash stands elsewhere.
fn write_string(w: &mut Writer, StringRecord { repr, hash: _, role }: &StringRecord) -> Read<()> {
    let role = match role {
        Role::Plain => 0,
        Role::Atom => 8,
        Role::BigIndex => 16,
    };
    match repr {
        Repr::Vacant => w.byte(role),
        Repr::Inline(len, bytes) => {
            w.byte(1 | role);
            w.text(&bytes[..usize::from(*len)]);
        }
        Repr::Latin1(bytes) => {
            w.byte(2 | role);
            w.text(bytes);
        }
        Repr::Wide(units) => {
            w.byte(3 | role);
            cells(w, units.iter().map(|&unit| [u32::from(unit)]));
        }
        Repr::Slice { base, start, len } => {
            w.byte(4 | role);
            cells(w, std::iter::once([base.raw(), *start, *len]));
        }
        Repr::Builder(_) | Repr::WideBuilder(_) | Repr::Rope { .. } => {
            return Err(Flaw::Invalid("a text of the image is not finished"));
        }
    }
    Ok(())
}

fn read_string(r: &mut Reader<'_>) -> Read<(Repr, Role)> {
    let tag = r.byte()?;
    let repr = match tag & 7 {
        0 => Repr::Vacant,
        1 => Repr::of_latin1(r.text()?),
        2 => Repr::Latin1(r.text()?.into()),
        3 => Repr::Wide(each(r, |[unit]| Ok(unit as u16))?.into()),
        _ => {
            let slice =
                each(r, |[base, start, len]| Ok(Repr::Slice { base: StrId::from_raw(base), start, len }))?;
            slice.into_iter().next().unwrap_or(Repr::Vacant)
        }
    };
    let role = match tag >> 3 {
        0 => Role::Plain,
        1 => Role::Atom,
        _ => Role::BigIndex,
    };
    Ok((repr, role))
}

fn write_table(w: &mut Writer, table: &PropertyTable) {
    w.flag(!table.is_vacant());
    if !table.is_vacant() {
        w.count(table.index.len());
        cells(w, table.entries.iter().map(|e| [e.key.raw(), u32::from(e.attrs.0)]));
    }
}

fn read_table(r: &mut Reader<'_>, seed: Seed) -> Read<PropertyTable> {
    if !r.flag()? {
        return Ok(PropertyTable::vacant());
    }
    let mut table = PropertyTable::new();
    let index = r.u32()? as usize;
    let entries =
        each(r, |[key, attrs]| Ok(Property { key: Key::from_raw(key), attrs: Attrs(attrs as u8) }))?;
    table.deleted = entries.iter().filter(|e| e.key == Key::DELETED).count() as u32;
    table.restore(entries, index, seed)?;
    Ok(table)
}

fn shape_cell(s: &ShapeRecord) -> [u32; 6] {
    let (step, of, attrs) = match s.step {
        Step::Root => (0, 0, 0),
        Step::Add(key, attrs) => (1, key.raw(), attrs.0),
        Step::Reconfigure(key, attrs) => (2, key.raw(), attrs.0),
        Step::Prototype(prototype) => (3, option(prototype.map(ObjId::raw)), 0),
        Step::PreventExtensions => (4, 0, 0),
        Step::Dictionary => (5, 0, 0),
    };
    let extensible = u32::from(s.extensible == Extensible::Yes);
    [
        option(s.prototype.map(ObjId::raw)),
        option(s.parent.map(ShapeId::raw)),
        option(s.table.map(TableId::raw)),
        s.count,
        of,
        step | u32::from(attrs) << 8 | extensible << 16,
    ]
}

fn read_shape([prototype, parent, table, count, of, bits]: [u32; 6]) -> Read<ShapeRecord> {
    let attrs = Attrs((bits >> 8) as u8);
    let step = match bits as u8 {
        0 => Step::Root,
        1 => Step::Add(Key::from_raw(of), attrs),
        2 => Step::Reconfigure(Key::from_raw(of), attrs),
        3 => Step::Prototype(of.checked_sub(1).map(ObjId::from_raw)),
        4 => Step::PreventExtensions,
        _ => Step::Dictionary,
    };
    Ok(ShapeRecord {
        prototype: prototype.checked_sub(1).map(ObjId::from_raw),
        parent: parent.checked_sub(1).map(ShapeId::from_raw),
        table: table.checked_sub(1).map(TableId::from_raw),
        count,
        step,
        extensible: if bits >> 16 == 0 { Extensible::No } else { Extensible::Yes },
        edges: Edges::None,
    })
}

/// Tells the shapes about their children, and answers the roots.
fn link(shapes: &mut [ShapeRecord]) -> Read<FxHashMap<Option<ObjId>, ShapeId>> {
    let mut roots = FxHashMap::default();
    for i in 0..shapes.len() {
        let ShapeRecord { parent, step, prototype, .. } = shapes[i];
        if shapes[i].is_vacant() {
            continue;
        }
        let id = ShapeId::from_raw(i as u32);
        if let Some(parent) = parent {
            let parent = shapes.get_mut(parent.raw() as usize);
            parent.ok_or(Flaw::Invalid("a shape has no parent"))?.edges.insert(step, id);
        } else if step == Step::Root {
            roots.insert(prototype, id);
        }
    }
    Ok(roots)
}

fn symbol_cell(s: &SymbolRecord) -> [u32; 2] {
    let kind = match s.kind {
        None => 0,
        Some(SymbolKind::Unique) => 1,
        Some(SymbolKind::Registered) => 2,
        Some(SymbolKind::WellKnown) => 3,
        Some(SymbolKind::Private) => 4,
    };
    [option(s.description.map(StrId::raw)), kind]
}

fn read_symbol([description, kind]: [u32; 2]) -> Read<SymbolRecord> {
    let kind = match kind {
        0 => None,
        1 => Some(SymbolKind::Unique),
        2 => Some(SymbolKind::Registered),
        3 => Some(SymbolKind::WellKnown),
        _ => Some(SymbolKind::Private),
    };
    Ok(SymbolRecord { description: description.checked_sub(1).map(StrId::from_raw), kind })
}

fn object_cell(o: &ObjectRecord) -> [u32; 12] {
    let [a, b, c, d] = o.slots.map(halves);
    let kind = o.class as u32 | u32::from(o.flags.0) << 8 | u32::from(o.overflow_class) << 16;
    [o.shape.raw(), kind, o.payload, o.overflow, a[0], a[1], b[0], b[1], c[0], c[1], d[0], d[1]]
}

fn read_object(record: [u32; 12]) -> Read<ObjectRecord> {
    let [shape, kind, payload, overflow, a, ah, b, bh, c, ch, d, dh] = record;
    let class = Class::ALL.get((kind & 0xFF) as usize).copied();
    let class = class.ok_or(Flaw::Invalid("there is no such class"))?;
    let mut record = ObjectRecord::new(ShapeId::from_raw(shape), class, Flags((kind >> 8) as u8), payload);
    record.overflow_class = (kind >> 16) as u8;
    record.overflow = overflow;
    record.slots = [whole(a, ah), whole(b, bh), whole(c, ch), whole(d, dh)];
    Ok(record)
}

fn closure_cell(c: &Closure) -> [u32; 5] {
    let [low, high] = halves(c.home);
    [c.code, c.captures, u32::from(c.capture_class) | u32::from(c.capture_count) << 8, low, high]
}

fn read_closure([code, captures, bits, low, high]: [u32; 5]) -> Read<Closure> {
    let (capture_class, capture_count) = (bits as u8, (bits >> 8) as u16);
    Ok(Closure { code, captures, capture_class, capture_count, home: whole(low, high) })
}
