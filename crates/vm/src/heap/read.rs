//! Single records of a snapshot: what each says about itself, checked as it is read.
//!
//! How records refer to each other is looked at later, by `check`, when all of them are there.

use super::arena::{Arena, Record, Vacancy};
use super::atom::SymbolRecord;
use super::buffer::{View, ViewRecord};
use super::codec::read_value;
use super::collection::{self, Entry, OrderedTable};
use super::hash::Seed;
use super::save::{SHORT, SHORT_NAME, Spans};
use super::shape::{Edges, Extensible, ShapeRecord, Step};
use super::shared::Shared;
use super::string::{INLINE, MAX_LENGTH, Repr, Role, StringRecord, Wide, plain};
use super::table::{Attrs, Property, PropertyTable};
use super::weak::{ENTRY, WeakTable};
use super::{Key, ObjId, ShapeId, StrId, SymId, SymbolKind, TableId};
use crate::snapshot::bytes::{Flaw, Read, Reader, require};
use rustc_hash::FxHashMap;

/// A rope whose length is not computed yet.
pub(super) const UNKNOWN: u32 = u32::MAX;

/// Spare capacity, paid for.
pub(super) fn room(r: &mut Reader<'_>, size: usize) -> Read<usize> {
    let spare = usize::try_from(r.uint()?).map_err(|_| Flaw::TooLarge)?;
    r.spend(spare.checked_mul(size).ok_or(Flaw::TooLarge)?)?;
    Ok(spare)
}

/// What cannot be finished before all strings are there.
#[derive(Debug, Default)]
pub(super) struct Unfinished {
    pub(super) ropes: Vec<StrId>,
    pub(super) slices: Vec<StrId>,
    pub(super) names: Vec<StrId>,
}

/// Reads so many strings, free entries included, and adds them. They are numbered from `first` on.
pub(super) fn read_strings(
    r: &mut Reader<'_>,
    base: &Spans,
    strings: &mut Arena<StrId, StringRecord>,
    added: usize,
    first: u32,
) -> Read<Unfinished> {
    r.spend(added.saturating_mul(size_of::<StringRecord>()))?;
    // Each takes a byte at least.
    require(added <= r.ahead().len(), "it ends too early")?;
    strings.items.reserve_exact(added);
    let start = strings.items.len();
    strings.items.resize_with(start + added, StringRecord::vacant);
    let mut unfinished = Unfinished::default();
    let mut free = Vec::new();
    // Every text goes straight to its place: records that are put together elsewhere, in small parts, take long to be moved as
    // a whole.
    for (at, record) in strings.items.iter_mut().enumerate().skip(start) {
        let tag = r.byte()?;
        if tag == 0 {
            free.push(at as u32);
        } else if tag >= SHORT {
            read_short(r, tag, record)?;
        } else {
            *record = read_string(r, base, tag)?;
        }
        if tag >= SHORT_NAME || (tag < SHORT && tag > 3) {
            unfinished.note(StrId::from_raw(first + (at - start) as u32), record);
        }
    }
    free.reverse();
    strings.free = free;
    Ok(unfinished)
}

impl Unfinished {
    fn note(&mut self, id: StrId, record: &StringRecord) {
        match record.repr {
            Repr::Rope { .. } => self.ropes.push(id),
            Repr::Slice { .. } => self.slices.push(id),
            Repr::Vacant
            | Repr::Inline(..)
            | Repr::Latin1(_)
            | Repr::Wide(_)
            | Repr::Builder(_)
            | Repr::WideBuilder(_) => {}
        }
        if record.role != Role::Plain {
            self.names.push(id);
        }
    }
}

/// Reads a text that fits inside its record. Behind it there are zeros.
#[inline]
fn read_short(r: &mut Reader<'_>, tag: u8, record: &mut StringRecord) -> Read<()> {
    let (len, role) =
        if tag < SHORT_NAME { (tag - SHORT, Role::Plain) } else { (tag - SHORT_NAME, Role::Atom) };
    let text = r.ahead();
    let taken = r.take(usize::from(len))?;
    require(taken.len() <= INLINE, "there is no such string")?;
    record.role = role;
    record.repr = Repr::Inline(len, [0; INLINE]);
    let Repr::Inline(_, to) = &mut record.repr else { return Ok(()) };
    match text.first_chunk::<INLINE>() {
        // Three words, the last two of which overlap, of which so many bytes count.
        Some(ahead) => {
            for at in [0, 8, INLINE - 8] {
                let words = ahead[at..].first_chunk::<8>().zip(to[at..].first_chunk_mut::<8>());
                if let Some((from, to)) = words {
                    let counts = first_bytes(taken.len().saturating_sub(at));
                    *to = (u64::from_le_bytes(*from) & counts).to_le_bytes();
                }
            }
        }
        None => to[..taken.len()].copy_from_slice(taken),
    }
    Ok(())
}

/// A word whose first so many bytes, in the order of memory, are all ones.
#[inline]
fn first_bytes(n: usize) -> u64 {
    if n < 8 { (1 << (8 * n)) - 1 } else { u64::MAX }
}

#[inline(never)]
fn read_string(r: &mut Reader<'_>, base: &Spans, tag: u8) -> Read<StringRecord> {
    let repr = match tag & 7 {
        0 => Repr::Vacant,
        1 => {
            let bytes = r.text()?;
            r.spend(bytes.len())?;
            Repr::of_latin1(bytes)
        }
        2 => {
            let units = read_units(r)?;
            require(units.iter().any(|&u| u > 255), "a narrow text is spelled as a wide one")?;
            Repr::Wide(units.into_boxed_slice())
        }
        3 => {
            let text = r.text()?;
            r.spend(text.len())?;
            let mut bytes = text.to_vec();
            bytes.reserve_exact(room(r, 1)?);
            Repr::Builder(Box::new(bytes))
        }
        4 => {
            let mut units = read_units(r)?;
            units.reserve_exact(room(r, 2)?);
            Repr::WideBuilder(Box::new(units))
        }
        5 => Repr::Rope {
            left: StrId::from_raw(r.id(base.strings)?),
            right: StrId::from_raw(r.id(base.strings)?),
            len: UNKNOWN,
            wide: Wide::No,
        },
        6 => Repr::Slice { base: StrId::from_raw(r.id(base.strings)?), start: r.u32()?, len: r.u32()? },
        _ => return Err(Flaw::Invalid("there is no such string")),
    };
    require(tag < 16 && (tag < 8 || matches!(tag & 7, 1 | 2 | 6)), "there is no such string")?;
    let too_long = match &repr {
        Repr::Latin1(bytes) => bytes.len() > MAX_LENGTH,
        Repr::Wide(units) => units.len() > MAX_LENGTH,
        Repr::Builder(bytes) => bytes.len() > MAX_LENGTH,
        Repr::WideBuilder(units) => units.len() > MAX_LENGTH,
        Repr::Slice { len, .. } => *len as usize > MAX_LENGTH,
        Repr::Inline(..) | Repr::Rope { .. } | Repr::Vacant => false,
    };
    require(!too_long, "a string is too long")?;
    let mut record = plain(repr);
    if tag >= 8 {
        record.role = Role::Atom;
    }
    Ok(record)
}

fn read_units(r: &mut Reader<'_>) -> Read<Vec<u16>> {
    let mut units = Vec::with_capacity(r.count(2)?);
    for _ in 0..units.capacity() {
        units.push(r.u16()?);
    }
    Ok(units)
}

pub(super) fn read_symbol(r: &mut Reader<'_>, base: &Spans) -> Read<SymbolRecord> {
    let kind = match r.byte()? {
        0 => return Ok(SymbolRecord::vacant()),
        1 => SymbolKind::Unique,
        2 => SymbolKind::Registered,
        4 => SymbolKind::Private,
        // The well-known ones are the image's.
        _ => return Err(Flaw::Invalid("there is no such symbol")),
    };
    let description = if r.flag()? { Some(StrId::from_raw(r.id(base.strings)?)) } else { None };
    Ok(SymbolRecord { description, kind: Some(kind) })
}

pub(super) fn read_view(r: &mut Reader<'_>, base: &Spans) -> Read<ViewRecord> {
    if !r.flag()? {
        return Ok(ViewRecord(None));
    }
    let buffer = ObjId::from_raw(r.id(base.objects)?);
    Ok(ViewRecord(Some(View { buffer, element: r.byte()?, offset: r.u32()?, length: r.option()? })))
}

pub(super) fn read_key(r: &mut Reader<'_>, base: &Spans) -> Read<Key> {
    let n = r.uint()?;
    match n & 3 {
        0 => {
            let index = u32::try_from(n >> 2).ok().and_then(Key::index);
            index.ok_or(Flaw::Invalid("a key is out of range"))
        }
        1 if n == 1 => Ok(Key::atom(StrId::from_raw(small(r.id(base.strings)?)?))),
        2 if n == 2 => Ok(Key::symbol(SymId::from_raw(small(r.id(base.symbols)?)?))),
        3 if n == 3 => Ok(Key::DELETED),
        _ => Err(Flaw::Invalid("there is no such key")),
    }
}

/// Ids in keys have thirty bits.
fn small(id: u32) -> Read<u32> {
    require(id < (1 << 30) - 1, "an id is out of range")?;
    Ok(id)
}

pub(super) fn read_shape(r: &mut Reader<'_>, base: &Spans) -> Read<ShapeRecord> {
    let tag = r.byte()?;
    if tag == 0 {
        return Ok(ShapeRecord::vacant());
    }
    require(tag < 32, "there is no such shape")?;
    let table = Some(TableId::from_raw(r.id(base.tables)?));
    let count = r.u32()?;
    let prototype = if tag & 16 != 0 { Some(ObjId::from_raw(r.id(base.objects)?)) } else { None };
    let parent = match tag & 7 {
        2..=5 => Some(ShapeId::from_raw(r.id(base.shapes)?)),
        1 | 6 => None,
        _ => return Err(Flaw::Invalid("there is no such shape")),
    };
    let mut property = || -> Read<(Key, Attrs)> {
        let key = read_key(r, base)?;
        let attrs = r.byte()?;
        require(attrs < 16 && key != Key::DELETED, "a property has unknown attributes")?;
        Ok((key, Attrs(attrs)))
    };
    let step = match tag & 7 {
        1 => Step::Root,
        2 => {
            let (key, attrs) = property()?;
            Step::Add(key, attrs)
        }
        3 => {
            let (key, attrs) = property()?;
            Step::Reconfigure(key, attrs)
        }
        4 => Step::Prototype(prototype),
        5 => Step::PreventExtensions,
        _ => Step::Dictionary,
    };
    let extensible = if tag & 8 != 0 { Extensible::No } else { Extensible::Yes };
    Ok(ShapeRecord { prototype, parent, table, count, step, extensible, edges: Edges::None })
}

/// A table of properties; it may begin with a part of one of the image's.
pub(super) fn read_table(
    r: &mut Reader<'_>,
    base: &Spans,
    known: &Shared<TableId, PropertyTable>,
    seed: Seed,
) -> Read<PropertyTable> {
    let mut table = PropertyTable::new();
    match r.byte()? {
        0 => return Ok(PropertyTable::vacant()),
        1 => {}
        _ => return Err(Flaw::Invalid("there is no such table")),
    }
    let spare = room(r, size_of::<Property>())?;
    let index = read_index(r)?;
    let taken = usize::try_from(r.uint()?).map_err(|_| Flaw::TooLarge)?;
    let mut entries = Vec::new();
    if taken > 0 {
        let of = known.get(r.u32()? as usize);
        let copied = of.and_then(|of| of.entries.get(..taken));
        let copied = copied.ok_or(Flaw::Invalid("a table copies what is not there"))?;
        r.spend(std::mem::size_of_val(copied))?;
        entries.reserve_exact(taken);
        entries.extend_from_slice(copied);
    }
    let more = r.count(size_of::<Property>())?;
    entries.reserve_exact(more);
    for _ in 0..more {
        let key = read_key(r, base)?;
        let attrs = r.byte()?;
        require(attrs < 16, "a property has unknown attributes")?;
        entries.push(Property { key, attrs: Attrs(attrs) });
    }
    entries.reserve_exact(spare);
    table.deleted = entries.iter().filter(|e| e.key == Key::DELETED).count() as u32;
    table.restore(entries, index, seed)?;
    Ok(table)
}

/// The size of an index: a power of two, or nothing. Paid for.
pub(super) fn read_index(r: &mut Reader<'_>) -> Read<usize> {
    match r.byte()? {
        0 => Ok(0),
        log @ 1..=31 => {
            let size = 1usize << (log - 1);
            r.spend(size * 4)?;
            Ok(size)
        }
        _ => Err(Flaw::TooLarge),
    }
}

pub(super) fn read_map(r: &mut Reader<'_>, base: &Spans) -> Read<OrderedTable> {
    if !r.flag()? {
        return Ok(OrderedTable::vacant());
    }
    let spare = room(r, size_of::<Entry>())?;
    let index = read_index(r)?;
    let mut entries = Vec::with_capacity(r.count(size_of::<Entry>())?);
    let mut sequence = 0u64;
    for i in 0..entries.capacity() {
        let step = r.uint()?;
        require(i == 0 || step > 0, "entries of a Map are out of order")?;
        sequence = sequence.checked_add(step).ok_or(Flaw::Invalid("a Map is too old"))?;
        let key = read_value(r, base)?;
        require(collection::canonical(key) == key, "a key of a Map is not canonical")?;
        entries.push(Entry { key, value: read_value(r, base)?, sequence, hash: 0 });
    }
    let ahead = r.uint()?;
    require(ahead > 0 || entries.is_empty(), "a Map is too young")?;
    let next = sequence.checked_add(ahead).filter(|&n| n < u64::MAX / 2);
    let next_sequence = next.ok_or(Flaw::Invalid("a Map is too old"))?;
    entries.reserve_exact(spare);
    require(
        index > entries.capacity() || (index == 0 && entries.capacity() == 0),
        "a Map's index is too small",
    )?;
    let live = entries.iter().filter(|e| !e.key.is_hole()).count();
    let first = entries.iter().position(|e| !e.key.is_hole()).unwrap_or(entries.len());
    Ok(OrderedTable {
        entries,
        index: vec![collection::EMPTY; index],
        live,
        first,
        next_sequence,
        vacancy: Vacancy::Taken,
    })
}

pub(super) fn read_weak(r: &mut Reader<'_>, base: &Spans) -> Read<WeakTable> {
    if !r.flag()? {
        return Ok(WeakTable::vacant());
    }
    let count = r.count(ENTRY)?;
    let mut entries = FxHashMap::default();
    for _ in 0..count {
        let (key, value) = (read_value(r, base)?, read_value(r, base)?);
        require(key.is_object() || key.is_symbol(), "a weak key is neither an object nor a symbol")?;
        require(entries.insert(key.bits(), (key, value)).is_none(), "a weak key is there twice")?;
    }
    Ok(WeakTable { entries, vacancy: Vacancy::Taken })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strings(bytes: &[u8], added: usize) -> Read<Vec<StringRecord>> {
        let mut arena = Arena::new();
        let r = &mut Reader::new(bytes, 1 << 20);
        read_strings(r, &Spans::ZERO, &mut arena, added, 0)?;
        Ok(arena.items)
    }

    #[test]
    fn a_short_text_is_the_same_however_much_follows_it() {
        let text: Vec<u8> = (1..=INLINE as u8).collect();
        for len in 0..=INLINE {
            for behind in 0..=INLINE + 8 {
                let mut bytes = vec![SHORT + len as u8];
                bytes.extend_from_slice(&text[..len]);
                bytes.extend(std::iter::repeat_n(0xFF, behind));
                let read = strings(&bytes, 1).expect("it is a string");
                let Repr::Inline(found, to) = read[0].repr else { panic!("{:?}", read[0]) };
                assert_eq!((usize::from(found), &to[..len]), (len, &text[..len]));
                assert!(to[len..].iter().all(|&b| b == 0), "{to:?}");
            }
        }
    }

    #[test]
    fn a_short_text_is_neither_longer_than_its_place_nor_than_what_is_left() {
        for first in [SHORT, SHORT_NAME] {
            let mut bytes = vec![first + INLINE as u8];
            bytes.resize(64, 1);
            assert!(strings(&bytes, 1).is_ok());
            assert!(strings(&bytes[..INLINE], 1).is_err());
            bytes[0] += 1;
            assert!(strings(&bytes, 1).is_err());
        }
        assert!(strings(&[0, 0, SHORT], 3).is_ok());
        assert!(strings(&[0, 0, SHORT], 4).is_err());
    }

    #[test]
    fn free_entries_are_listed_as_a_sweep_leaves_them() {
        let mut arena: Arena<StrId, StringRecord> = Arena::new();
        let r = &mut Reader::new(&[0, SHORT + 1, 7, 0, SHORT, 0], 1 << 10);
        read_strings(r, &Spans::ZERO, &mut arena, 5, 0).expect("they are strings");
        let listed = arena.free.clone();
        arena.free_vacant();
        assert_eq!((&listed, &listed[..]), (&arena.free, &[4, 2, 0][..]));
    }
}
