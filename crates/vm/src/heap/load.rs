//! The way back from bytes: a fork of the image, the patches, the additions, and what is computed from them.
//!
//! Reading checks what a record says about itself; `check` then looks at how records refer to each other. Nothing is
//! allocated before it is paid for, and nothing is run in between.

use super::arena::{Arena, Id, Record, Vacancy};
use super::array::{Elements, LengthState};
use super::atom::{SymbolRecord, insert};
use super::buffer::{Buffer, Detached, MAX_BUFFER};
use super::codec::{read_column, read_value, read_values};
use super::collection::{self, OrderedTable};
use super::elements::Values;
use super::function::{Accessor, BigRecord, Cell, Closure, Fields, NO_SPAN};
use super::object::{NO_OVERFLOW, Span};
use super::read::{
    UNKNOWN, Unfinished, read_map, read_shape, read_strings, read_symbol, read_table, read_view, read_weak,
    room,
};
use super::rows::{Header, MOST_CLASS, read_header};
use super::save::Spans;
use super::shape::Step;
use super::string::{MAX_LENGTH, Repr, Role, Wide};
use super::{ClosureId, Heap, Key, Limits, ObjId, Pace, ShapeId, StrId, SymId, SymbolKind};
use crate::snapshot::bytes::{Flaw, Read, Reader, require};
use crate::value::Value;
use num_bigint::BigInt;

impl Heap {
    /// The heap that [`Heap::save`] wrote, as a fork of the same image.
    pub(crate) fn load(image: &Heap, r: &mut Reader<'_>, limits: Limits, pace: Pace) -> Read<Heap> {
        let base = &image.spans();
        let mut heap = image.fork_image(limits, pace);
        // What is wrong with the bytes may be found when half of a change is made.
        heap.condemn();
        let mut added = [0usize; 15];
        for n in &mut added {
            *n = usize::try_from(r.uint()?).map_err(|_| Flaw::TooLarge)?;
        }
        let [
            strings,
            symbols,
            bigints,
            objects,
            cells,
            shapes,
            tables,
            accessors,
            elements,
            fields,
            closures,
            maps,
            weaks,
            buffers,
            views,
        ] = added;
        let total = added.iter().fold(0usize, |sum, n| sum.saturating_add(*n));
        // Free entries are among them, so a heap within its limits may have more; those in use are counted below.
        if total > Limits::MOST_RECORDS {
            return Err(Flaw::TooLarge);
        }
        heap.epoch = r.u32()?;
        heap.index_free_epoch = None;
        let outside = usize::try_from(r.uint()?).map_err(|_| Flaw::TooLarge)?;
        let interner = r.byte()?;

        let unfinished = read_strings(r, base, heap.strings.own_arena(), strings, base.strings)?;
        append(r, &mut heap.symbols, symbols, |r, _| read_symbol(r, base))?;
        append(r, &mut heap.bigints, bigints, |r, _| {
            if !r.flag()? {
                return Ok(BigRecord(None));
            }
            let bytes = r.text()?;
            r.spend(bytes.len())?;
            let n = BigInt::from_signed_bytes_le(bytes);
            require(n.to_signed_bytes_le() == bytes, "a bigint is not canonical")?;
            Ok(BigRecord(Some(n)))
        })?;
        append(r, &mut heap.views, views, |r, _| read_view(r, base))?;
        append(r, heap.shapes.own_arena(), shapes, |r, _| read_shape(r, base))?;
        let (seed, known) = (heap.seed, &image.tables);
        append(r, heap.tables.own_arena(), tables, |r, _| read_table(r, base, known, seed))?;
        heap.read_objects(r, base, objects)?;
        heap.read_closures(r, base, closures)?;
        replace(r, &mut heap.cells, cells, |r, _, _| {
            if r.flag()? { Ok(Cell(read_value(r, base)?)) } else { Ok(Cell::vacant()) }
        })?;
        replace(r, &mut heap.accessors, accessors, |r, _, _| {
            if !r.flag()? {
                return Ok(Accessor::vacant());
            }
            Ok(Accessor { get: read_value(r, base)?, set: read_value(r, base)? })
        })?;
        replace(r, &mut heap.elements, elements, |r, _, _| {
            let state = match r.byte()? {
                0 => return Ok(Elements::vacant()),
                1 => LengthState::Writable,
                2 => LengthState::ReadOnly,
                _ => return Err(Flaw::Invalid("there is no such array")),
            };
            let len = r.paid_count(size_of::<Value>())?;
            let (before, behind) = (room(r, size_of::<Value>())?, room(r, size_of::<Value>())?);
            let length = r.uint()?.checked_add(len as u64);
            let length = length.and_then(|n| u32::try_from(n).ok());
            let length = length.ok_or(Flaw::Invalid("an array is too long"))?;
            let mut values = Values::with_room(before, len, behind);
            read_column(r, base, len, |_, v| values.push(v))?;
            Ok(Elements { values, length, state })
        })?;
        let slab = &mut heap.slab;
        replace(r, &mut heap.fields, fields, |r, _, old| {
            if !r.flag()? {
                return Ok(Fields::vacant());
            }
            let class = r.byte()?.wrapping_sub(1);
            require(class <= MOST_CLASS || class == NO_SPAN, "internal fields are too many")?;
            let values = read_values(r, base)?;
            let mut record = Fields { start: 0, len: values.len() as u32, class };
            require(values.len() <= record.capacity(), "internal fields are too many")?;
            if let Some(span) = old.and_then(Fields::span) {
                slab.release(span);
            }
            if class != NO_SPAN {
                r.spend(size_of::<Value>() << class)?;
                record.start = slab.allocate(class).start;
                slab.values[record.start as usize..][..values.len()].copy_from_slice(&values);
            }
            Ok(record)
        })?;
        replace(r, &mut heap.maps, maps, |r, _, _| read_map(r, base))?;
        replace(r, &mut heap.weaks, weaks, |r, _, _| read_weak(r, base))?;
        replace(r, &mut heap.buffers, buffers, |r, _, _| {
            let detached = match r.byte()? {
                0 => return Ok(Buffer::vacant()),
                1 => Detached::No,
                2 => Detached::Yes,
                _ => return Err(Flaw::Invalid("there is no such buffer")),
            };
            let max = r.option()?;
            let content = r.text()?;
            r.spend(content.len())?;
            let mut bytes = content.to_vec();
            bytes.reserve_exact(room(r, 1)?);
            require(bytes.capacity() <= MAX_BUFFER, "a buffer is too long")?;
            require(detached == Detached::No || bytes.capacity() == 0, "a detached buffer has bytes")?;
            Ok(Buffer { bytes, max, detached, vacancy: Vacancy::Taken })
        })?;
        heap.settle_strings(&unfinished)?;
        heap.settle_interner(r, interner, base, &unfinished.names)?;
        heap.settle_shapes(base)?;
        heap.settle_maps()?;
        heap.check()?;
        let registered = heap.registry.len() * super::atom::REGISTRY_ENTRY;
        require(outside >= registered, "the registry was not paid for")?;
        heap.account.set_outside(outside);
        let usage = heap.audit();
        heap.account.restart(usage);
        if usage.0 > heap.account.most_bytes() || usage.1 > heap.account.most_records() {
            return Err(Flaw::TooLarge);
        }
        heap.redeem();
        Ok(heap)
    }

    fn read_objects(&mut self, r: &mut Reader<'_>, base: &Spans, added: usize) -> Read<()> {
        let patches = r.count(0)?;
        let mut at = 0;
        for _ in 0..patches {
            at = advance(at, r.uint()?, self.objects.items.len())?;
            self.objects.will_write(ObjId::from_raw(at as u32));
            let old = self.objects.items[at];
            let mut new = read_header(r, base)?;
            require(new.record.class == old.class, "an object of the engine's own changed its class")?;
            require(new.record.payload == old.payload, "an object of the engine's own changed its content")?;
            let shared = self.shapes.get(new.record.shape.raw() as usize);
            let theirs =
                shared.is_some_and(|s| s.step == Step::Dictionary) && new.record.shape.raw() < base.shapes;
            require(!theirs || new.record.shape == old.shape, "a dictionary is shared")?;
            new.record.slots = old.slots;
            let before: Vec<Value> = old.span().map(|s| self.slab.slice(s).to_vec()).unwrap_or_default();
            if old.overflow_class == new.class {
                new.record.overflow = old.overflow;
                new.record.overflow_class = old.overflow_class;
            } else {
                if let Some(span) = old.span() {
                    self.slab.release(span);
                }
                self.give_span(r, &mut new)?;
                if let Some(span) = new.record.span() {
                    let start = span.start as usize;
                    let kept = before.len().min(span.capacity());
                    self.slab.values[start..start + kept].copy_from_slice(&before[..kept]);
                }
            }
            self.objects[ObjId::from_raw(at as u32)] = new.record;
            let mut slot = 0;
            for _ in 0..r.count(0)? {
                slot = advance(slot, r.uint()?, new.record.capacity())?;
                let v = read_value(r, base)?;
                self.put(at, slot, v);
            }
        }
        self.read_rows(r, base, added)
    }

    fn give_span(&mut self, r: &mut Reader<'_>, new: &mut Header) -> Read<()> {
        if new.class != NO_OVERFLOW {
            r.spend(size_of::<Value>() << new.class)?;
            let span = self.slab.allocate(new.class);
            new.record.overflow = span.start;
            new.record.overflow_class = span.class;
        }
        Ok(())
    }

    fn read_closures(&mut self, r: &mut Reader<'_>, base: &Spans, added: usize) -> Read<()> {
        let patches = r.count(0)?;
        let mut at = 0;
        for _ in 0..patches {
            at = advance(at, r.uint()?, self.closures.items.len())?;
            let old = self.closures.items[at];
            require(r.flag()?, "a closure of the engine's own is gone")?;
            let (code, home, captures) = (r.u32()?, read_value(r, base)?, read_values(r, base)?);
            let same = code == old.code && captures.len() == usize::from(old.capture_count);
            require(same, "a closure of the engine's own has other code")?;
            let id = ClosureId::from_raw(at as u32);
            self.closures.will_write(id);
            if let Some(span) = old.span() {
                let start = span.start as usize;
                self.slab.values[start..start + captures.len()].copy_from_slice(&captures);
            }
            self.closures[id].home = home;
        }
        r.spend(added.saturating_mul(size_of::<Closure>()))?;
        for _ in 0..added {
            if !r.flag()? {
                self.closures.items.push(Closure::vacant());
                continue;
            }
            let (code, home, captures) = (r.u32()?, read_value(r, base)?, read_values(r, base)?);
            let capture_count =
                u16::try_from(captures.len()).map_err(|_| Flaw::Invalid("too many captures"))?;
            let span = if captures.is_empty() {
                None
            } else {
                let class = Span::class_for(captures.len());
                r.spend(size_of::<Value>() << class)?;
                let span = self.slab.allocate(class);
                let start = span.start as usize;
                self.slab.values[start..start + captures.len()].copy_from_slice(&captures);
                Some(span)
            };
            self.closures.items.push(Closure {
                code,
                captures: span.map_or(0, |s| s.start),
                capture_class: span.map_or(NO_SPAN, |s| s.class),
                capture_count,
                home,
            });
        }
        self.closures.free_vacant();
        Ok(())
    }

    /// Lengths of ropes and slices, and whether their parts are there.
    fn settle_strings(&mut self, unfinished: &Unfinished) -> Read<()> {
        let live =
            |heap: &Heap, id: StrId| heap.strings.get(id.raw() as usize).is_some_and(|s| !s.is_vacant());
        for &slice in &unfinished.slices {
            if let Repr::Slice { base: of, start, len } = self.strings[slice].repr {
                require(live(self, of), "a slice of a string that is not there")?;
                let text = match &self.strings[of].repr {
                    Repr::Latin1(bytes) => bytes.len(),
                    Repr::Wide(units) => units.len(),
                    Repr::Builder(bytes) => bytes.len(),
                    Repr::WideBuilder(units) => units.len(),
                    Repr::Inline(..) | Repr::Rope { .. } | Repr::Slice { .. } | Repr::Vacant => 0,
                };
                let end = u64::from(start) + u64::from(len);
                require(len > 0 && end <= text as u64, "a slice is longer than its string")?;
            }
        }
        // Parts before wholes, with a stack of our own: a rope may be as deep as it likes, but never part of itself.
        let mut open = Vec::new();
        for &rope in &unfinished.ropes {
            open.push((rope, false));
            while let Some((whole, entered)) = open.pop() {
                let Repr::Rope { left, right, len, .. } = self.strings[whole].repr else { continue };
                if len == DONE {
                    require(entered, "a rope is part of itself")?;
                } else if len != UNKNOWN {
                    continue;
                }
                if entered {
                    let (a, b) = (self.string_length(left), self.string_length(right));
                    let sum = (a as usize).checked_add(b as usize).filter(|&sum| sum <= MAX_LENGTH);
                    let sum = sum.ok_or(Flaw::Invalid("a rope is too long"))?;
                    require(a > 0 && b > 0, "a rope has an empty part")?;
                    let wide = if self.is_wide(left) || self.is_wide(right) { Wide::Yes } else { Wide::No };
                    self.strings[whole].repr = Repr::Rope { left, right, len: sum as u32, wide };
                    continue;
                }
                require(live(self, left) && live(self, right), "a rope of a string that is not there")?;
                self.strings[whole].repr = Repr::Rope { left, right, len: DONE, wide: Wide::No };
                open.push((whole, true));
                for part in [left, right] {
                    match self.strings[part].repr {
                        Repr::Rope { len: DONE, .. } => {
                            return Err(Flaw::Invalid("a rope is part of itself"));
                        }
                        Repr::Rope { len: UNKNOWN, .. } => open.push((part, false)),
                        Repr::Builder(_) | Repr::WideBuilder(_) => {
                            return Err(Flaw::Invalid("a rope of an unfinished text"));
                        }
                        _ => {}
                    }
                }
            }
        }
        Ok(())
    }

    /// The interner and the registry of symbols.
    fn settle_interner(&mut self, r: &mut Reader<'_>, size: u8, base: &Spans, names: &[StrId]) -> Read<()> {
        require((10..=30).contains(&size), "the interner has an odd size")?;
        let size = 1usize << size;
        let from = base.strings as usize;
        if size != self.interner.table.len() {
            require(size > self.interner.table.len(), "the interner has an odd size")?;
            r.spend(size * 4)?;
            self.rebuild_interner_of(size, from);
        }
        for &id in names {
            require(self.is_flat(id), "a name is not flat")?;
            let hash = self.string_hash(id);
            require(self.find_atom(hash, self.str(id)).is_none(), "a name is there twice")?;
            require(self.interner.used * 2 < size, "the interner has an odd size")?;
            if self.str(id).array_index().is_some_and(|index| index > Key::MAX_INDEX) {
                self.strings[id].role = Role::BigIndex;
            }
            insert(&mut self.interner.table, hash, id.raw());
            self.interner.used += 1;
        }
        for i in base.symbols as usize..self.symbols.items.len() {
            let SymbolRecord { description, kind } = self.symbols.items[i];
            let there = description
                .is_none_or(|d| self.strings.get(d.raw() as usize).is_some_and(|s| !s.is_vacant()));
            require(there, "a symbol's description is not there")?;
            if kind == Some(SymbolKind::Registered) {
                let key = description.filter(|&d| self.strings[d].role != Role::Plain);
                let key = key.ok_or(Flaw::Invalid("a registered symbol has no key"))?;
                let old = self.registry.insert(key, SymId::from_raw(i as u32));
                require(old.is_none(), "a symbol is registered twice")?;
            }
        }
        Ok(())
    }

    /// Edges and roots of the shapes that were added.
    fn settle_shapes(&mut self, base: &Spans) -> Read<()> {
        for i in base.shapes as usize..self.shapes.span() {
            let id = ShapeId::from_raw(i as u32);
            let shape = &self.shapes[id];
            let step = shape.step;
            if shape.is_vacant() {
                continue;
            }
            match (shape.parent, step) {
                (None, Step::Root) => {
                    let old = self.roots.insert(shape.prototype, id);
                    require(old.is_none(), "two shapes are the root of one prototype")?;
                }
                (None, Step::Dictionary) => {}
                (Some(parent), _) => {
                    let there = self.shapes.get(parent.raw() as usize);
                    let there = there.is_some_and(|p| !p.is_vacant() && p.step != Step::Dictionary);
                    require(there, "a shape's parent is not there")?;
                    require(self.edge(parent, step).is_none(), "two shapes differ in nothing")?;
                    self.add_edge(parent, step, id);
                }
                (None, _) => return Err(Flaw::Invalid("a shape has no parent")),
            }
        }
        Ok(())
    }

    /// The indices of Maps and Sets, now that texts can be read.
    fn settle_maps(&mut self) -> Read<()> {
        for i in 0..self.maps.items.len() {
            let mut table = std::mem::replace(&mut self.maps.items[i], OrderedTable::vacant());
            for entry in &mut table.entries {
                if let Some(id) = entry.key.as_string() {
                    let flat = self.strings.get(id.raw() as usize).is_some_and(|s| !s.is_vacant())
                        && self.is_flat(id);
                    require(flat, "a key of a Map is not flat")?;
                }
                if let Some(id) = entry.key.as_bigint() {
                    require((id.raw() as usize) < self.bigints.items.len(), "a bigint is not there")?;
                }
                // The key is flat, so hashing it allocates nothing.
                entry.hash = self.hash_value(entry.key).map_err(|_| Flaw::TooLarge)?;
            }
            table.index.fill(collection::EMPTY);
            for position in 0..table.entries.len() {
                if !table.entries[position].key.is_hole() {
                    table.link(position);
                }
            }
            self.maps.items[i] = table;
        }
        Ok(())
    }
}

/// A rope whose length is being computed.
const DONE: u32 = u32::MAX - 1;

/// The next position of a list of positions that only go forward.
fn advance(at: usize, by: u64, len: usize) -> Read<usize> {
    let next = usize::try_from(by).ok().and_then(|by| at.checked_add(by));
    next.filter(|&next| next < len).ok_or(Flaw::Invalid("a change of what is not there"))
}

/// Reads the records after the image's last.
fn append<I: Id, T: Record>(
    r: &mut Reader<'_>,
    arena: &mut Arena<I, T>,
    added: usize,
    mut read: impl FnMut(&mut Reader<'_>, Option<&T>) -> Read<T>,
) -> Read<()> {
    r.spend(added.saturating_mul(size_of::<T>()))?;
    arena.items.reserve_exact(added);
    for _ in 0..added {
        let record = read(r, None)?;
        arena.items.push(record);
    }
    arena.free_vacant();
    Ok(())
}

/// Reads the image's records that changed, then those after its last.
fn replace<I: Id, T: Record>(
    r: &mut Reader<'_>,
    arena: &mut Arena<I, T>,
    added: usize,
    mut read: impl FnMut(&mut Reader<'_>, usize, Option<&T>) -> Read<T>,
) -> Read<()> {
    let mut at = 0;
    for _ in 0..r.count(0)? {
        at = advance(at, r.uint()?, arena.items.len())?;
        arena.will_write(I::from_index(at as u32));
        let record = read(r, at, arena.items.get(at))?;
        require(!record.is_vacant(), "something of the engine's own is gone")?;
        arena[I::from_index(at as u32)] = record;
    }
    append(r, arena, added, |r, old| read(r, usize::MAX, old))
}
