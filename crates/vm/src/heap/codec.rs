//! How values are spelled in a snapshot: one by one, or as columns in which neighbours help each other.
//!
//! A value is a tag and what it takes: small integers are their tag, doubles lose the zeros at their end, ids are written as
//! their distance from something near. A column is a list whose length is known; where it goes on in equal steps (the
//! same value again and again, integers that count up, ids that were given out in order) only the first value and the
//! step are written. So a thousand rows that were made alike take little more than what tells them apart.

use super::{AccessorId, BigId, CellId, ObjId, ShapeId, SlotsId, Spans, StrId, SymId};
use crate::snapshot::bytes::{Flaw, Read, Reader, Writer, require, varint};
use crate::value::{Internal, Unpacked, Value};

/// The first byte of a value.
mod tag {
    pub(super) const UNDEFINED: u8 = 0;
    pub(super) const NULL: u8 = 1;
    pub(super) const FALSE: u8 = 2;
    pub(super) const TRUE: u8 = 3;
    pub(super) const HOLE: u8 = 4;
    pub(super) const INT: u8 = 5;
    pub(super) const STRING: u8 = 7;
    pub(super) const SYMBOL: u8 = 8;
    pub(super) const BIGINT: u8 = 9;
    pub(super) const OBJECT: u8 = 10;
    pub(super) const ARRAY: u8 = 11;
    pub(super) const ACCESSOR: u8 = 12;
    pub(super) const CELL: u8 = 13;
    pub(super) const SLOTS: u8 = 14;
    pub(super) const SHAPE: u8 = 15;
    pub(super) const RAW: u8 = 16;
    /// With the number of leading bytes that are written, one to eight; the others are zero.
    pub(super) const DOUBLE: u8 = 16;
    pub(super) const SHORTEST_DOUBLE: u8 = DOUBLE + 1;
    pub(super) const LONGEST_DOUBLE: u8 = DOUBLE + 8;
    /// From here on the byte is a small integer by itself.
    pub(super) const SMALL: u8 = 32;
    /// The integer that [`SMALL`] stands for.
    pub(super) const LEAST: i32 = -16;
}

/// Fewer values than this are written one by one; as a column they would be no shorter.
pub(super) const COLUMN: usize = 4;

/// From how many values on a step is worth its segment.
const RUN: usize = 4;

/// What ids are written as the distance from: where the fork's own begin, or the last one of the column.
#[derive(Clone, Copy, Debug)]
struct Near<'a> {
    base: &'a Spans,
    string: u32,
    object: u32,
}

impl<'a> Near<'a> {
    fn new(base: &'a Spans) -> Near<'a> {
        Near { base, string: base.strings, object: base.objects }
    }

    fn follow(&mut self, v: Value) {
        if let Some(id) = v.as_string() {
            self.string = id.raw();
        } else if let Some(id) = v.as_object() {
            self.object = id.raw();
        }
    }
}

/// Appends a value.
pub(crate) fn write_value(w: &mut Writer, base: &Spans, v: Value) {
    write_near(w, &Near::new(base), v);
}

/// Appends values with their number in front.
pub(crate) fn write_values(w: &mut Writer, base: &Spans, values: &[Value]) {
    w.count(values.len());
    values.iter().for_each(|&v| write_value(w, base, v));
}

/// Appends values whose number the reader knows.
pub(super) fn write_column(w: &mut Writer, base: &Spans, values: &[Value]) {
    let mut near = Near::new(base);
    if values.len() < COLUMN {
        return values.iter().for_each(|&v| write_value(w, base, v));
    }
    w.reserve(values.len() * 2);
    let (mut from, mut at) = (0, 0);
    while at < values.len() {
        let run = steady(&values[at..]);
        if run >= RUN {
            write_literals(w, &mut near, &values[from..at]);
            w.count(run << 1 | 1);
            let first = values[at];
            write_near(w, &near, first);
            if first.has_neighbours() {
                w.int(i64::from(values[at + 1].low()) - i64::from(first.low()));
            }
            near.follow(values[at + run - 1]);
            at += run;
            from = at;
        } else {
            // The last of a short run may begin a longer one.
            at += run.max(2) - 1;
        }
    }
    write_literals(w, &mut near, &values[from..]);
}

/// Reads a value. Whether what it names is there is checked later.
pub(crate) fn read_value(r: &mut Reader<'_>, base: &Spans) -> Read<Value> {
    read_near(r, &Near::new(base))
}

/// Reads values with their number in front, and pays for them.
pub(crate) fn read_values(r: &mut Reader<'_>, base: &Spans) -> Read<Vec<Value>> {
    let mut values = Vec::with_capacity(r.count(size_of::<Value>())?);
    for _ in 0..values.capacity() {
        values.push(read_value(r, base)?);
    }
    Ok(values)
}

/// Reads so many values and hands out each with its place. The caller has paid for them: there may be more of them than bytes.
pub(super) fn read_column(
    r: &mut Reader<'_>,
    base: &Spans,
    len: usize,
    mut put: impl FnMut(usize, Value),
) -> Read<()> {
    let mut near = Near::new(base);
    if len < COLUMN {
        for at in 0..len {
            put(at, read_value(r, base)?);
        }
        return Ok(());
    }
    let mut at = 0;
    while at < len {
        let head = r.uint()?;
        let run = usize::try_from(head >> 1).ok().filter(|&run| run > 0 && run <= len - at);
        let run = run.ok_or(Flaw::Invalid("a column is longer than it should be"))?;
        let end = at + run;
        if head & 1 == 0 {
            for at in at..end {
                let v = read_near(r, &near)?;
                near.follow(v);
                put(at, v);
            }
        } else {
            let first = read_near(r, &near)?;
            let step = if first.has_neighbours() { r.int()? } else { 0 };
            let low = i64::from(first.low());
            let last = step.checked_mul(run as i64 - 1).and_then(|way| low.checked_add(way));
            let last = last.and_then(|last| u32::try_from(last).ok());
            let last = last.ok_or(Flaw::Invalid("a column leaves its range"))?;
            let mut low = low;
            for at in at..end {
                // Between the first and the last, which are in range.
                put(at, first.with_low(low as u32));
                low = low.wrapping_add(step);
            }
            near.follow(first.with_low(last));
        }
        at = end;
    }
    Ok(())
}

/// How many values from the first on follow each other in equal steps.
fn steady(values: &[Value]) -> usize {
    let [first, second, ..] = values else { return values.len() };
    let step = second.bits().wrapping_sub(first.bits());
    if step != 0 && (!first.has_neighbours() || (first.bits() ^ second.bits()) >> 32 != 0) {
        return 1;
    }
    let mut last = *second;
    let more = values[2..].iter().take_while(|next| {
        let fits = next.bits().wrapping_sub(last.bits()) == step && (next.bits() ^ last.bits()) >> 32 == 0;
        last = **next;
        fits
    });
    2 + more.count()
}

fn write_literals(w: &mut Writer, near: &mut Near<'_>, values: &[Value]) {
    if values.is_empty() {
        return;
    }
    w.count(values.len() << 1);
    w.shorts(values, |&v, place| {
        let (bits, len) = spell(near, v);
        *place = bits.to_le_bytes();
        near.follow(v);
        len
    });
}

#[inline]
fn write_near(w: &mut Writer, near: &Near<'_>, v: Value) {
    let (bits, len) = spell(near, v);
    w.short(&bits.to_le_bytes(), len);
}

/// The bytes of a value, the first one lowest, and how many there are.
#[inline(always)]
fn spell(near: &Near<'_>, v: Value) -> (u128, usize) {
    let base = near.base;
    let one = |tag: u8| (u128::from(tag), 1);
    let number = |tag: u8, n: u64| {
        let (bits, len) = varint(n);
        (u128::from(tag) | u128::from(bits) << 8, 1 + len)
    };
    let int = |tag: u8, n: i64| number(tag, (n << 1 ^ n >> 63) as u64);
    let id = |tag: u8, id: u32, from: u32| int(tag, i64::from(id) - i64::from(from));
    match v.unpack() {
        Unpacked::Undefined => one(tag::UNDEFINED),
        Unpacked::Null => one(tag::NULL),
        Unpacked::Bool(false) => one(tag::FALSE),
        Unpacked::Bool(true) => one(tag::TRUE),
        Unpacked::Hole => one(tag::HOLE),
        Unpacked::Int(i) => {
            match u8::try_from(i64::from(i) - i64::from(tag::LEAST) + i64::from(tag::SMALL)) {
                Ok(small) if i >= tag::LEAST => one(small),
                _ => int(tag::INT, i64::from(i)),
            }
        }
        Unpacked::Double(x) => {
            // The leading bytes, without the zeros behind them.
            let bits = x.to_bits();
            let len = 8 - bits.trailing_zeros().min(63) as usize / 8;
            (u128::from(tag::DOUBLE + len as u8) | u128::from(bits.swap_bytes()) << 8, 1 + len)
        }
        Unpacked::String(s) => id(tag::STRING, s.raw(), near.string),
        Unpacked::Symbol(s) => id(tag::SYMBOL, s.raw(), base.symbols),
        Unpacked::BigInt(b) => id(tag::BIGINT, b.raw(), base.bigints),
        Unpacked::Object(o) if v.is_array() => id(tag::ARRAY, o.raw(), near.object),
        Unpacked::Object(o) => id(tag::OBJECT, o.raw(), near.object),
        Unpacked::Internal(Internal::Accessor(a)) => id(tag::ACCESSOR, a.raw(), base.accessors),
        Unpacked::Internal(Internal::Cell(c)) => id(tag::CELL, c.raw(), base.cells),
        Unpacked::Internal(Internal::Slots(s)) => id(tag::SLOTS, s.raw(), base.fields),
        Unpacked::Internal(Internal::Shape(s)) => id(tag::SHAPE, s.raw(), base.shapes),
        Unpacked::Internal(Internal::Raw(n)) => number(tag::RAW, u64::from(n)),
    }
}

#[inline(always)]
fn read_near(r: &mut Reader<'_>, near: &Near<'_>) -> Read<Value> {
    match r.byte()? {
        small if small >= tag::SMALL => Ok(Value::int(i32::from(small - tag::SMALL) + tag::LEAST)),
        double @ tag::SHORTEST_DOUBLE..=tag::LONGEST_DOUBLE => {
            read_double(r, usize::from(double - tag::DOUBLE))
        }
        tag::INT => Ok(Value::int(r.i32()?)),
        tag => read_other(r, near, tag),
    }
}

fn read_other(r: &mut Reader<'_>, near: &Near<'_>, tag: u8) -> Read<Value> {
    let base = near.base;
    Ok(match tag {
        tag::UNDEFINED => Value::UNDEFINED,
        tag::NULL => Value::NULL,
        tag::FALSE => Value::FALSE,
        tag::TRUE => Value::TRUE,
        tag::HOLE => Value::HOLE,
        tag::STRING => Value::string(StrId::from_raw(r.id(near.string)?)),
        tag::SYMBOL => Value::symbol(SymId::from_raw(r.id(base.symbols)?)),
        tag::BIGINT => Value::bigint(BigId::from_raw(r.id(base.bigints)?)),
        tag::OBJECT => Value::object(ObjId::from_raw(r.id(near.object)?)),
        tag::ARRAY => Value::array(ObjId::from_raw(r.id(near.object)?)),
        tag::ACCESSOR => Value::internal(Internal::Accessor(AccessorId::from_raw(r.id(base.accessors)?))),
        tag::CELL => Value::internal(Internal::Cell(CellId::from_raw(r.id(base.cells)?))),
        tag::SLOTS => Value::internal(Internal::Slots(SlotsId::from_raw(r.id(base.fields)?))),
        tag::SHAPE => Value::internal(Internal::Shape(ShapeId::from_raw(r.id(base.shapes)?))),
        tag::RAW => Value::internal(Internal::Raw(r.u32()?)),
        _ => return Err(Flaw::Invalid("there is no such value")),
    })
}

#[inline]
fn read_double(r: &mut Reader<'_>, len: usize) -> Read<Value> {
    let bits = r.leading(len)?;
    let v = Value::double(f64::from_bits(bits));
    let shortest = len == 1 || bits >> (64 - 8 * len) & 0xFF != 0;
    require(v.bits() == bits && shortest, "a number is not canonical")?;
    Ok(v)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: Spans = Spans { strings: 100, objects: 50, ..Spans::ZERO };

    fn column(values: &[Value]) -> Vec<u8> {
        let mut w = Writer::new();
        write_column(&mut w, &BASE, values);
        let bytes = w.finish();
        let mut back = vec![Value::HOLE; values.len()];
        let mut r = Reader::new(&bytes, 0);
        let read = read_column(&mut r, &BASE, values.len(), |at, v| back[at] = v);
        assert_eq!((read, r.end()), (Ok(()), Ok(())));
        assert_eq!(back, values);
        bytes
    }

    fn string(id: u32) -> Value {
        Value::string(StrId::from_raw(id))
    }

    #[test]
    fn a_column_that_goes_on_in_equal_steps_takes_a_few_bytes() {
        let ints: Vec<Value> = (-2000..3000).map(Value::int).collect();
        assert!(column(&ints).len() <= 16, "two segments: those below zero and the others");
        assert!(column(&(0..5000).map(|i| string(100 + 2 * i)).collect::<Vec<_>>()).len() <= 8);
        assert!(column(&[Value::TRUE; 5000]).len() <= 4);
        assert!(column(&vec![Value::number(0.1); 5000]).len() <= 12);
    }

    #[test]
    fn whatever_is_in_a_column_comes_back() {
        let odd = [
            Value::int(i32::MIN),
            Value::int(i32::MAX),
            Value::number(-0.0),
            Value::NAN,
            Value::number(f64::MIN_POSITIVE),
            Value::number(5e-324),
            Value::number(1e300),
            string(0),
            string(u32::MAX),
            Value::array(ObjId::from_raw(7)),
            Value::object(ObjId::from_raw(8)),
            Value::HOLE,
        ];
        for len in 0..=odd.len() {
            column(&odd[..len]);
        }
        let mut mixed: Vec<Value> = (0..40).map(Value::int).collect();
        mixed.extend(odd);
        mixed.extend([string(500), string(499), string(498), string(497), string(7), string(8)]);
        mixed.extend((0..9).map(|i| Value::number(f64::from(i) * 1.5)));
        column(&mixed);
    }

    #[test]
    fn any_first_byte_is_a_value_or_refused() {
        for first in 0..=u8::MAX {
            let bytes = [first, 2, 2, 2, 2, 2, 2, 2, 2];
            let known = read_value(&mut Reader::new(&bytes, 0), &BASE).is_ok();
            assert_eq!(known, !matches!(first, 6 | 25..=31), "{first}");
        }
    }

    #[test]
    fn a_column_that_lies_about_its_length_or_leaves_its_range_is_refused() {
        let read = |bytes: &[u8]| read_column(&mut Reader::new(bytes, 0), &BASE, 4, |_, _| ());
        assert_eq!(read(&[9, tag::NULL]), Ok(()));
        assert!(read(&[11, tag::NULL]).is_err(), "five of four");
        assert!(read(&[1, tag::NULL]).is_err(), "none");
        // Strings from 100 on in steps of minus thirty-three: the last is 1; in steps of minus thirty-four there is none.
        assert_eq!(read(&[9, tag::STRING, 0, 65]), Ok(()));
        assert!(read(&[9, tag::STRING, 0, 67]).is_err());
        let huge = [9, tag::STRING, 0, 0xFE, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 1];
        assert!(read(&huge).is_err());
    }
}
