//! The heap as bytes: everything in which it differs from the image it was forked from.
//!
//! Ids are kept. Each arena is written as patches (records of the image that changed) and additions (records after the
//! image's last, free entries included). What can be computed is not written: hashes, the edges between shapes, the root
//! shapes, the symbol registry, positions in the slab. The writer expects a heap that was just collected, so that only
//! what is reachable is written and free entries are where the reader will put them.

use super::arena::{Arena, Id, Record};
use super::array::{Elements, LengthState};
use super::buffer::{Buffer, Detached, ViewRecord};
use super::codec::{write_column, write_value, write_values};
use super::collection::OrderedTable;
use super::function::{Accessor, BigRecord, Cell, Closure, Fields};
use super::object::ObjectRecord;
use super::rows::write_header;
use super::shape::{Extensible, ShapeRecord, Step};
use super::string::{INLINE, Repr, Role, StringRecord};
use super::table::PropertyTable;
use super::weak::WeakTable;
use super::{Heap, Key, KeyKind, Payload, Slot, SymbolKind};
use crate::snapshot::bytes::Writer;
use crate::value::Value;
use rustc_hash::FxHashMap;

/// How many entries each arena has: where the ids of a fork's own records begin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Spans {
    pub(crate) strings: u32,
    pub(crate) symbols: u32,
    pub(crate) bigints: u32,
    pub(crate) objects: u32,
    pub(crate) cells: u32,
    pub(crate) shapes: u32,
    pub(crate) tables: u32,
    pub(crate) accessors: u32,
    pub(crate) elements: u32,
    pub(crate) fields: u32,
    pub(crate) closures: u32,
    pub(crate) maps: u32,
    pub(crate) weaks: u32,
    pub(crate) buffers: u32,
    pub(crate) views: u32,
}

impl Spans {
    /// Nothing at all.
    #[cfg(test)]
    pub(crate) const ZERO: Spans = Spans {
        strings: 0,
        symbols: 0,
        bigints: 0,
        objects: 0,
        cells: 0,
        shapes: 0,
        tables: 0,
        accessors: 0,
        elements: 0,
        fields: 0,
        closures: 0,
        maps: 0,
        weaks: 0,
        buffers: 0,
        views: 0,
    };

    /// Where the ids of this kind of payload begin.
    pub(crate) fn of(&self, payload: Payload) -> u32 {
        match payload {
            Payload::None => 0,
            Payload::Elements => self.elements,
            Payload::Cell => self.cells,
            Payload::Slots => self.fields,
            Payload::Closure => self.closures,
            Payload::Map => self.maps,
            Payload::Weak => self.weaks,
            Payload::Buffer => self.buffers,
            Payload::View => self.views,
        }
    }
}

impl Heap {
    /// How many entries each arena has.
    pub(crate) fn spans(&self) -> Spans {
        macro_rules! spans {
            ($($arena:ident)*) => { Spans { $($arena: self.$arena.span() as u32),* } };
        }
        spans!(strings symbols bigints objects cells shapes tables accessors elements fields closures maps weaks buffers
            views)
    }

    /// Appends everything in which this heap differs from the image that it was forked from. The heap has just been
    /// collected.
    pub(crate) fn save(&self, image: &Heap, w: &mut Writer) {
        let base = &image.spans();
        let spans = self.spans();
        macro_rules! additions {
            ($($arena:ident)*) => {$(w.count(spans.$arena.saturating_sub(base.$arena) as usize);)*};
        }
        additions!(strings symbols bigints objects cells shapes tables accessors elements fields closures maps weaks
            buffers views);
        w.uint(u64::from(self.epoch));
        w.count(self.account.outside());
        w.byte(self.interner.table.len().trailing_zeros() as u8);
        let prefixes = self.prefixes(base);

        // About what they will take, so that what is written is seldom moved; what was too much is given back.
        let strings = spans.strings.saturating_sub(base.strings) as usize;
        let objects = spans.objects.saturating_sub(base.objects) as usize;
        w.reserve(strings * 8 + objects * 4);
        self.strings.slices_from(base.strings).iter().for_each(|strings| write_strings(w, base, strings));
        added(w, &self.symbols, base.symbols, |w, _, s| {
            w.byte(match s.kind {
                None => 0,
                Some(SymbolKind::Unique) => 1,
                Some(SymbolKind::Registered) => 2,
                Some(SymbolKind::WellKnown) => 3,
                Some(SymbolKind::Private) => 4,
            });
            if s.kind.is_some() {
                w.flag(s.description.is_some());
                if let Some(d) = s.description {
                    w.id(d.raw(), base.strings);
                }
            }
        });
        added(w, &self.bigints, base.bigints, |w, _, BigRecord(n)| match n {
            None => w.byte(0),
            Some(n) => {
                w.byte(1);
                w.text(&n.to_signed_bytes_le());
            }
        });
        added(w, &self.views, base.views, |w, _, ViewRecord(view)| match view {
            None => w.byte(0),
            Some(view) => {
                w.byte(1);
                w.id(view.buffer.raw(), base.objects);
                w.byte(view.element);
                w.uint(u64::from(view.offset));
                w.option(view.length);
            }
        });
        self.shapes.from(base.shapes).for_each(|(_, s)| write_shape(w, base, s));
        for (id, t) in self.tables.from(base.tables) {
            let prefix = prefixes.get(&(id as u32)).copied();
            let prefix = prefix.filter(|&(of, n)| {
                let theirs = self.tables.get(of as usize).and_then(|of| of.entries.get(..n));
                theirs.is_some() && theirs == t.entries.get(..n)
            });
            write_table(w, base, t, prefix);
        }
        let same_object = |a: &ObjectRecord, b: &ObjectRecord| {
            a.shape == b.shape
                && (a.class, a.flags, a.payload) == (b.class, b.flags, b.payload)
                && a.overflow_class == b.overflow_class
                && a.slots == b.slots
                && match (a.span(), b.span()) {
                    (Some(x), Some(y)) => self.slab.slice(x) == image.slab.slice(y),
                    _ => true,
                }
        };
        patched(w, &self.objects, &image.objects, same_object, |w, id, o| {
            if let Some(old) = image.objects.items.get(id as usize) {
                self.write_patch(w, base, o, image, old);
            }
        });
        self.write_rows(w, base, self.objects.items.get(base.objects as usize..).unwrap_or_default());
        let same_closure = |a: &Closure, b: &Closure| {
            (a.code, a.home, a.capture_class, a.capture_count)
                == (b.code, b.home, b.capture_class, b.capture_count)
                && match (a.span(), b.span()) {
                    (Some(x), Some(y)) => self.slab.slice(x) == image.slab.slice(y),
                    _ => true,
                }
        };
        changed(w, &self.closures, &image.closures, same_closure, |w, _, c| {
            if c.is_vacant() {
                return w.byte(0);
            }
            w.byte(1);
            w.uint(u64::from(c.code));
            write_value(w, base, c.home);
            let captures = c.span().map(|span| self.slab.slice(span)).unwrap_or_default();
            write_values(w, base, &captures[..usize::from(c.capture_count).min(captures.len())]);
        });
        changed(
            w,
            &self.cells,
            &image.cells,
            |a, b| a.0 == b.0,
            |w, _, Cell(v)| {
                w.flag(*v != Value::VACANT);
                if *v != Value::VACANT {
                    write_value(w, base, *v);
                }
            },
        );
        let same_pair = |a: &Accessor, b: &Accessor| (a.get, a.set) == (b.get, b.set);
        changed(w, &self.accessors, &image.accessors, same_pair, |w, _, pair| {
            w.flag(!pair.is_vacant());
            if !pair.is_vacant() {
                write_value(w, base, pair.get);
                write_value(w, base, pair.set);
            }
        });
        let same_elements = |a: &Elements, b: &Elements| {
            (a.length, a.state, a.values.room()) == (b.length, b.state, b.values.room())
                && a.values[..] == b.values[..]
        };
        changed(w, &self.elements, &image.elements, same_elements, |w, _, e| {
            w.byte(match e.state {
                LengthState::Vacant => 0,
                LengthState::Writable => 1,
                LengthState::ReadOnly => 2,
            });
            if e.state != LengthState::Vacant {
                let (before, behind) = e.values.room();
                w.count(e.values.len());
                w.count(before);
                w.count(behind);
                w.count((e.length as usize).saturating_sub(e.values.len()));
                write_column(w, base, &e.values);
            }
        });
        let same_fields =
            |a: &Fields, b: &Fields| a.class == b.class && self.values_of(a) == image.values_of(b);
        changed(w, &self.fields, &image.fields, same_fields, |w, _, f| {
            w.flag(!f.is_vacant());
            if !f.is_vacant() {
                w.byte(f.span().map_or(0, |span| span.class + 1));
                write_values(w, base, self.values_of(f));
            }
        });
        changed(w, &self.maps, &image.maps, same_map, |w, _, m| write_map(w, base, m));
        let same_weak = |a: &WeakTable, b: &WeakTable| a.vacancy == b.vacancy && a.entries == b.entries;
        changed(w, &self.weaks, &image.weaks, same_weak, |w, _, t| write_weak(w, base, t));
        let same_buffer = |a: &Buffer, b: &Buffer| {
            (a.vacancy, a.detached, a.max, &a.bytes) == (b.vacancy, b.detached, b.max, &b.bytes)
                && a.bytes.capacity() == b.bytes.capacity()
        };
        changed(w, &self.buffers, &image.buffers, same_buffer, |w, _, b| {
            if b.is_vacant() {
                return w.byte(0);
            }
            w.byte(if b.detached == Detached::Yes { 2 } else { 1 });
            w.option(b.max);
            w.text(&b.bytes);
            w.count(b.bytes.capacity() - b.bytes.len());
        });
    }

    fn values_of(&self, f: &Fields) -> &[Value] {
        &self.slab.values[f.start as usize..][..f.len as usize]
    }

    /// For tables of our own that began as a copy of one of the image's: which, and how much of it.
    fn prefixes(&self, base: &Spans) -> FxHashMap<u32, (u32, usize)> {
        let mut prefixes = FxHashMap::default();
        for (_, shape) in self.shapes.own() {
            if let (Some(table), Some(parent)) = (shape.table, shape.parent)
                && parent.raw() < base.shapes
                && let Some(of) = self.shapes[parent].table
                && of.raw() < base.tables
            {
                prefixes.insert(table.raw(), (of.raw(), self.shapes[parent].count as usize));
            }
        }
        prefixes
    }

    /// What has changed in an object of the image.
    fn write_patch(&self, w: &mut Writer, base: &Spans, o: &ObjectRecord, image: &Heap, old: &ObjectRecord) {
        write_header(w, base, o);
        let value = |heap: &Heap, o: &ObjectRecord, slot: usize| {
            if slot < o.capacity() { heap.slot_of(o, slot as Slot) } else { Value::UNDEFINED }
        };
        let moved: Vec<usize> =
            (0..o.capacity()).filter(|&s| value(self, o, s) != value(image, old, s)).collect();
        w.count(moved.len());
        let mut at = 0;
        for slot in moved {
            w.count(slot - at);
            at = slot;
            write_value(w, base, value(self, o, slot));
        }
    }
}

/// Writes the records after the image's last.
fn added<I: Id, T: Record>(
    w: &mut Writer,
    arena: &Arena<I, T>,
    from: u32,
    mut write: impl FnMut(&mut Writer, u32, &T),
) {
    for (i, record) in arena.items.iter().enumerate().skip(from as usize) {
        write(w, i as u32, record);
    }
}

/// Writes the image's records that changed, then those after its last. Only what was written to can have changed.
fn changed<I: Id, T: Record>(
    w: &mut Writer,
    arena: &Arena<I, T>,
    image: &Arena<I, T>,
    same: impl Fn(&T, &T) -> bool,
    mut write: impl FnMut(&mut Writer, u32, &T),
) {
    patched(w, arena, image, same, &mut write);
    added(w, arena, image.items.len() as u32, write);
}

/// Writes the image's records that changed.
fn patched<I: Id, T: Record>(
    w: &mut Writer,
    arena: &Arena<I, T>,
    image: &Arena<I, T>,
    same: impl Fn(&T, &T) -> bool,
    mut write: impl FnMut(&mut Writer, u32, &T),
) {
    let mut moved = arena.touched();
    moved.retain(|&i| image.items.get(i as usize).is_none_or(|old| !same(&arena.items[i as usize], old)));
    w.count(moved.len());
    let mut at = 0;
    for i in moved {
        w.count((i - at) as usize);
        at = i;
        write(w, i, &arena.items[i as usize]);
    }
}

/// The first byte of a short text, with its length.
pub(super) const SHORT: u8 = 0x20;
/// The first byte of a short name, with its length.
pub(super) const SHORT_NAME: u8 = 0x40;

/// Writes strings, free entries included. Most are short.
fn write_strings(w: &mut Writer, base: &Spans, strings: &[StringRecord]) {
    let mut rest = strings;
    while !rest.is_empty() {
        let short = rest.iter().take_while(|s| matches!(s.repr, Repr::Vacant | Repr::Inline(..)));
        let (short, others) = rest.split_at(short.count());
        w.shorts(short, |s, place: &mut [u8; 1 + INLINE]| {
            let Repr::Inline(len, bytes) = &s.repr else {
                place[0] = 0;
                return 1;
            };
            place[0] = len + if s.role == Role::Plain { SHORT } else { SHORT_NAME };
            place[1..].copy_from_slice(bytes);
            1 + usize::from(*len)
        });
        rest = others;
        if let Some((other, others)) = rest.split_first() {
            write_string(w, base, other);
            rest = others;
        }
    }
}

fn write_string(w: &mut Writer, base: &Spans, s: &StringRecord) {
    let role = if s.role == Role::Plain { 0 } else { 8 };
    let mut narrow = |bytes: &[u8]| {
        w.byte(1 | role);
        w.text(bytes);
    };
    match &s.repr {
        Repr::Vacant => w.byte(0),
        Repr::Inline(len, bytes) => {
            w.byte(len + if s.role == Role::Plain { SHORT } else { SHORT_NAME });
            w.short(bytes, usize::from(*len));
        }
        Repr::Latin1(bytes) => narrow(bytes),
        Repr::Wide(units) => {
            w.byte(2 | role);
            w.count(units.len());
            units.iter().for_each(|&u| w.uint(u64::from(u)));
        }
        Repr::Builder(bytes) => {
            w.byte(3);
            w.text(bytes);
            w.count(bytes.capacity() - bytes.len());
        }
        Repr::WideBuilder(units) => {
            w.byte(4);
            w.count(units.len());
            units.iter().for_each(|&u| w.uint(u64::from(u)));
            w.count(units.capacity() - units.len());
        }
        Repr::Rope { left, right, .. } => {
            w.byte(5);
            w.id(left.raw(), base.strings);
            w.id(right.raw(), base.strings);
        }
        Repr::Slice { base: of, start, len } => {
            w.byte(6 | role);
            w.id(of.raw(), base.strings);
            w.uint(u64::from(*start));
            w.uint(u64::from(*len));
        }
    }
}

pub(super) fn write_key(w: &mut Writer, base: &Spans, key: Key) {
    if key == Key::DELETED {
        return w.byte(3);
    }
    match key.kind() {
        KeyKind::Index(i) => w.uint(u64::from(i) << 2),
        KeyKind::Atom(id) => {
            w.byte(1);
            w.id(id.raw(), base.strings);
        }
        KeyKind::Symbol(id) => {
            w.byte(2);
            w.id(id.raw(), base.symbols);
        }
    }
}

fn write_shape(w: &mut Writer, base: &Spans, s: &ShapeRecord) {
    let Some(table) = s.table else { return w.byte(0) };
    let closed = if s.extensible == Extensible::No { 8 } else { 0 };
    let prototype = if s.prototype.is_some() { 16 } else { 0 };
    w.byte(
        closed
            | prototype
            | match s.step {
                Step::Root => 1,
                Step::Add(..) => 2,
                Step::Reconfigure(..) => 3,
                Step::Prototype(_) => 4,
                Step::PreventExtensions => 5,
                Step::Dictionary => 6,
            },
    );
    w.id(table.raw(), base.tables);
    w.uint(u64::from(s.count));
    if let Some(p) = s.prototype {
        w.id(p.raw(), base.objects);
    }
    if let Some(parent) = s.parent {
        w.id(parent.raw(), base.shapes);
    }
    if let Step::Add(key, attrs) | Step::Reconfigure(key, attrs) = s.step {
        write_key(w, base, key);
        w.byte(attrs.0);
    }
}

fn write_table(w: &mut Writer, base: &Spans, t: &PropertyTable, prefix: Option<(u32, usize)>) {
    if t.is_vacant() {
        return w.byte(0);
    }
    w.byte(1);
    write_room(w, t.entries.capacity() - t.entries.len(), t.index.len());
    let (of, taken) = prefix.unwrap_or((0, 0));
    w.count(taken);
    if taken > 0 {
        w.uint(u64::from(of));
    }
    let rest = &t.entries[taken..];
    w.count(rest.len());
    for entry in rest {
        write_key(w, base, entry.key);
        w.byte(entry.attrs.0);
    }
}

/// The spare capacity of a table, and the size of its index: a power of two, or nothing.
fn write_room(w: &mut Writer, spare: usize, index: usize) {
    w.count(spare);
    w.byte(if index == 0 { 0 } else { 1 + index.trailing_zeros() as u8 });
}

fn same_map(a: &OrderedTable, b: &OrderedTable) -> bool {
    a.vacancy == b.vacancy
        && a.next_sequence == b.next_sequence
        && a.entries.capacity() == b.entries.capacity()
        && a.index.len() == b.index.len()
        && a.entries.len() == b.entries.len()
        && a.entries
            .iter()
            .zip(&b.entries)
            .all(|(x, y)| (x.key, x.value, x.sequence) == (y.key, y.value, y.sequence))
}

fn write_map(w: &mut Writer, base: &Spans, m: &OrderedTable) {
    w.flag(!m.is_vacant());
    if m.is_vacant() {
        return;
    }
    write_room(w, m.entries.capacity() - m.entries.len(), m.index.len());
    w.count(m.entries.len());
    let mut at = 0;
    for entry in &m.entries {
        w.uint(entry.sequence - at);
        at = entry.sequence;
        write_value(w, base, entry.key);
        write_value(w, base, entry.value);
    }
    w.uint(m.next_sequence - at);
}

fn write_weak(w: &mut Writer, base: &Spans, t: &WeakTable) {
    w.flag(!t.is_vacant());
    if t.is_vacant() {
        return;
    }
    // The order of a hash table is nobody's business.
    let mut entries: Vec<(Value, Value)> = t.entries.values().copied().collect();
    entries.sort_unstable_by_key(|(key, _)| key.bits());
    w.count(entries.len());
    for (key, value) in entries {
        write_value(w, base, key);
        write_value(w, base, value);
    }
}
