//! Objects in a snapshot: neighbours of one shape are written as a table, a header once and then slot by slot.
//!
//! Scripts that hold much hold many of the same kind. Written by columns (`codec`), what such objects have in common is
//! said once, and the reader makes them without asking each what it is.

use super::arena::Record;
use super::class::{Class, Flags};
use super::codec::{COLUMN, read_column, read_value, write_column, write_value};
use super::object::{INLINE_SLOTS, NO_OVERFLOW, ObjectRecord};
use super::save::Spans;
use super::{Heap, Payload, ShapeId, Slot};
use crate::snapshot::bytes::{Flaw, Read, Reader, Writer, require};
use crate::value::Value;

/// The largest class of a span: beyond it a single object would be larger than any heap.
pub(super) const MOST_CLASS: u8 = 27;

/// What an object says about itself besides its values.
pub(super) struct Header {
    pub(super) record: ObjectRecord,
    /// The class of its overflow span, or [`NO_OVERFLOW`].
    pub(super) class: u8,
}

impl Header {
    pub(super) fn capacity(&self) -> usize {
        INLINE_SLOTS + if self.class == NO_OVERFLOW { 0 } else { 1 << self.class }
    }
}

pub(super) fn write_header(w: &mut Writer, base: &Spans, o: &ObjectRecord) {
    w.byte(o.class as u8);
    w.byte(o.flags.0);
    w.id(o.shape.raw(), base.shapes);
    if o.class.payload() != Payload::None {
        w.id(o.payload, base.of(o.class.payload()));
    }
    w.byte(o.span().map_or(0, |span| span.class + 1));
}

pub(super) fn read_header(r: &mut Reader<'_>, base: &Spans) -> Read<Header> {
    let class = Class::ALL.get(usize::from(r.byte()?)).copied().filter(|&c| c != Class::Vacant);
    let class = class.ok_or(Flaw::Invalid("there is no such class"))?;
    let flags = Flags(r.byte()?);
    let shape = ShapeId::from_raw(r.id(base.shapes)?);
    let payload = match class.payload() {
        Payload::None => 0,
        kind => r.id(base.of(kind))?,
    };
    let span = r.byte()?.wrapping_sub(1);
    require(span <= MOST_CLASS || span == NO_OVERFLOW, "an object is too large")?;
    Ok(Header { record: ObjectRecord::new(shape, class, flags, payload), class: span })
}

impl Heap {
    /// Appends objects, free entries included.
    pub(super) fn write_rows(&self, w: &mut Writer, base: &Spans, objects: &[ObjectRecord]) {
        let mut rest = objects;
        let mut column = Vec::new();
        while let Some(first) = rest.first() {
            if first.is_vacant() {
                w.byte(Class::Vacant as u8);
                rest = &rest[1..];
                continue;
            }
            let (rows, after) = rest.split_at(alike(rest));
            rest = after;
            write_header(w, base, first);
            w.count(rows.len());
            if let [_, second, ..] = rows
                && first.class.payload() != Payload::None
            {
                w.int(i64::from(second.payload) - i64::from(first.payload));
            }
            let mut used = 0;
            for row in rows {
                used = self.used_slots(row, used);
                if used == row.capacity() {
                    break;
                }
            }
            w.count(used);
            if rows.len() < COLUMN {
                for row in rows {
                    (0..used).for_each(|slot| write_value(w, base, self.slot_of(row, slot as Slot)));
                }
                continue;
            }
            for slot in 0..used as Slot {
                column.clear();
                column.extend(rows.iter().map(|row| self.slot_of(row, slot)));
                write_column(w, base, &column);
            }
        }
    }

    /// Reads so many objects, free entries included, and adds them.
    pub(super) fn read_rows(&mut self, r: &mut Reader<'_>, base: &Spans, added: usize) -> Read<()> {
        r.spend(added.saturating_mul(size_of::<ObjectRecord>()))?;
        self.objects.items.reserve_exact(added);
        let end = self.objects.items.len() + added;
        while self.objects.items.len() < end {
            if r.peek() == Some(Class::Vacant as u8) {
                r.byte()?;
                self.objects.items.push(ObjectRecord::vacant());
                continue;
            }
            let header = read_header(r, base)?;
            let start = self.objects.items.len();
            let rows = usize::try_from(r.uint()?).ok().filter(|&rows| rows > 0 && rows <= end - start);
            let rows = rows.ok_or(Flaw::Invalid("there are too many objects"))?;
            self.read_payloads(r, &header, rows)?;
            let used = usize::try_from(r.uint()?).ok().filter(|&used| used <= header.capacity());
            let used = used.ok_or(Flaw::Invalid("an object has too many slots"))?;
            if rows < COLUMN {
                for row in start..start + rows {
                    for slot in 0..used {
                        let v = read_value(r, base)?;
                        self.put(row, slot, v);
                    }
                }
                continue;
            }
            let inside = &mut self.objects.items[start..start + rows];
            for slot in 0..used.min(INLINE_SLOTS) {
                read_column(r, base, rows, |row, v| inside[row].slots[slot] = v)?;
            }
            for slot in INLINE_SLOTS..used {
                read_column(r, base, rows, |row, v| self.put(start + row, slot, v))?;
            }
        }
        self.objects.free_vacant();
        Ok(())
    }

    /// Adds the objects of a table, with payloads in equal steps and spans for what does not fit inside.
    fn read_payloads(&mut self, r: &mut Reader<'_>, header: &Header, rows: usize) -> Read<()> {
        let Header { mut record, class } = *header;
        let with_payload = record.class.payload() != Payload::None;
        let step = if with_payload && rows > 1 { r.int()? } else { 0 };
        let way =
            step.checked_mul(rows as i64 - 1).and_then(|way| way.checked_add(i64::from(record.payload)));
        let inside = way.is_some_and(|last| u32::try_from(last).is_ok());
        require(inside, "the content of an object is out of range")?;
        if class != NO_OVERFLOW {
            r.spend((size_of::<Value>() << class).saturating_mul(rows))?;
        }
        for _ in 0..rows {
            if class != NO_OVERFLOW {
                let span = self.slab.allocate(class);
                record.overflow = span.start;
                record.overflow_class = span.class;
            }
            self.objects.items.push(record);
            // The last is in range, so all are.
            record.payload = record.payload.wrapping_add_signed(step as i32);
        }
        Ok(())
    }

    /// Writes a slot of an object that is being read; the caller has compared with its capacity.
    pub(super) fn put(&mut self, object: usize, slot: usize, v: Value) {
        let record = &mut self.objects.items[object];
        match record.slots.get_mut(slot) {
            Some(place) => *place = v,
            None => self.slab.values[record.overflow as usize + slot - INLINE_SLOTS] = v,
        }
    }

    /// How many slots there are up to the last that holds something, or `least` if that is more.
    fn used_slots(&self, o: &ObjectRecord, least: usize) -> usize {
        let last = (least..o.capacity()).rev().find(|&s| !self.slot_of(o, s as Slot).is_undefined());
        last.map_or(least, |last| last + 1)
    }

    /// A slot of a record; the caller has compared with its capacity.
    pub(super) fn slot_of(&self, o: &ObjectRecord, slot: Slot) -> Value {
        match o.slots.get(slot as usize) {
            Some(&v) => v,
            None => self.slab.values[o.overflow as usize + slot as usize - INLINE_SLOTS],
        }
    }
}

/// How many objects from the first on differ in nothing but values, and have payloads in equal steps.
fn alike(objects: &[ObjectRecord]) -> usize {
    let [first, second, ..] = objects else { return objects.len() };
    let step = i64::from(second.payload) - i64::from(first.payload);
    // The reader steps by an i32.
    if i32::try_from(step).is_err() {
        return 1;
    }
    let mut wanted = i64::from(first.payload);
    let rows = objects.iter().take_while(|o| {
        let fits = o.shape == first.shape
            && (o.class, o.flags, o.overflow_class) == (first.class, first.flags, first.overflow_class)
            && i64::from(o.payload) == wanted;
        wanted += step;
        fits
    });
    rows.count()
}
