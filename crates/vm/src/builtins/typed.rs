//! Buffers and views: what `typed_buffer.js`, `typed_array.js` and `typed_methods.js` do to bytes, and the plain cases of the
//! data view's methods. Arguments have been checked and converted by then; a native checks again only what keeps it safe.

use super::array::packed;
use super::{Args, Row, slow};
use crate::code::ErrorKind;
use crate::exec::Window;
use crate::exec::state::{Exit, Res, State};
use crate::heap::{BufferId, Class, Element, Heap, MAX_BUFFER, ObjId, View};
use crate::value::Value;

pub(super) const ROWS: &[Row] = &[
    ("NewBuffer", new_buffer),
    ("BufferLength", |st, w, a| buffer(st, w, a, 0).map(|id| uint(st.heap.buffer(id).len()))),
    ("BufferMax", |st, w, a| {
        buffer(st, w, a, 0).map(|id| st.heap.buffer_max(id).map_or(Value::UNDEFINED, Value::uint))
    }),
    ("IsDetached", |st, w, a| buffer(st, w, a, 0).map(|id| Value::bool(st.heap.is_detached(id)))),
    ("ResizeBuffer", resize_buffer),
    ("DetachBuffer", |st, w, a| {
        let id = buffer(st, w, a, 0)?;
        st.heap.detach_buffer(id);
        Ok(Value::UNDEFINED)
    }),
    ("CopyBytes", copy_bytes),
    ("NewTyped", new_typed),
    ("NewDataView", new_data_view),
    ("ViewLength", |st, w, a| {
        let length = a.get(w, 0).as_object().and_then(|o| st.heap.view_length(o));
        Ok(length.map_or(Value::int(-1), Value::uint))
    }),
    ("ViewBuffer", |st, w, a| view(st, w, a, 0).map(|(_, v)| Value::object(v.buffer))),
    ("ViewOffset", |st, w, a| view(st, w, a, 0).map(|(_, v)| Value::uint(v.offset))),
    ("ViewElement", |st, w, a| view(st, w, a, 0).map(|(_, v)| Value::int(i32::from(v.element)))),
    ("ViewTracks", |st, w, a| view(st, w, a, 0).map(|(_, v)| Value::bool(v.length.is_none()))),
    ("ElementSize", |_, w, a| element(a.get(w, 0)).map(|e| uint(e.size()))),
    ("ViewGet", view_get),
    ("ViewSet", view_set),
    ("CopyElements", copy_elements),
    ("CopyForward", copy_forward),
    ("MoveElements", move_elements),
    ("FillElements", fill_elements),
    ("ReverseElements", reverse_elements),
    ("SortElements", sort_elements),
    ("PlainElements", plain_elements),
    ("DataViewRead", data_view_read),
    ("DataViewWrite", data_view_write),
    ("get TypedArray.prototype.length", |st, _, a| match typed(st, a.this) {
        Some(o) => Ok(Value::uint(st.heap.view_length(o).unwrap_or(0))),
        None => slow(),
    }),
    ("DataView.prototype.getInt8", |st, w, a| get(st, w, a, Element::Int8)),
    ("DataView.prototype.getUint8", |st, w, a| get(st, w, a, Element::Uint8)),
    ("DataView.prototype.getInt16", |st, w, a| get(st, w, a, Element::Int16)),
    ("DataView.prototype.getUint16", |st, w, a| get(st, w, a, Element::Uint16)),
    ("DataView.prototype.getInt32", |st, w, a| get(st, w, a, Element::Int32)),
    ("DataView.prototype.getUint32", |st, w, a| get(st, w, a, Element::Uint32)),
    ("DataView.prototype.getFloat32", |st, w, a| get(st, w, a, Element::Float32)),
    ("DataView.prototype.getFloat64", |st, w, a| get(st, w, a, Element::Float64)),
    ("DataView.prototype.setInt8", |st, w, a| set(st, w, a, Element::Int8)),
    ("DataView.prototype.setUint8", |st, w, a| set(st, w, a, Element::Uint8)),
    ("DataView.prototype.setInt16", |st, w, a| set(st, w, a, Element::Int16)),
    ("DataView.prototype.setUint16", |st, w, a| set(st, w, a, Element::Uint16)),
    ("DataView.prototype.setInt32", |st, w, a| set(st, w, a, Element::Int32)),
    ("DataView.prototype.setUint32", |st, w, a| set(st, w, a, Element::Uint32)),
    ("DataView.prototype.setFloat32", |st, w, a| set(st, w, a, Element::Float32)),
    ("DataView.prototype.setFloat64", |st, w, a| set(st, w, a, Element::Float64)),
];

/// A length or position. Everything that lives in memory fits; more is as good as the most.
fn size(v: Value) -> usize {
    v.as_number().map_or(0, |x| x as usize)
}

fn uint(n: usize) -> Value {
    Value::number(n as f64)
}

fn element(v: Value) -> Result<Element, Exit> {
    v.as_int().and_then(|n| Element::ALL.get(n as usize)).copied().ok_or(Exit::Slow)
}

fn buffer(st: &State, w: &Window, args: Args, n: u32) -> Result<BufferId, Exit> {
    args.get(w, n).as_object().and_then(|o| st.heap.buffer_of(o)).ok_or(Exit::Slow)
}

fn view(st: &State, w: &Window, args: Args, n: u32) -> Result<(ObjId, View), Exit> {
    let object = args.get(w, n).as_object().ok_or(Exit::Slow)?;
    st.heap.view_of(object).map(|v| (object, v)).ok_or(Exit::Slow)
}

fn typed(st: &State, v: Value) -> Option<ObjId> {
    v.as_object().filter(|&o| st.heap.class(o) == Class::TypedArray)
}

/// `%NewBuffer(prototype, length, max)`.
fn new_buffer(st: &mut State, w: &mut Window, args: Args) -> Res {
    let (length, max) = (size(args.get(w, 1)), args.get(w, 2));
    let most = if max.is_undefined() { length } else { size(max) };
    if length > MAX_BUFFER || most > MAX_BUFFER {
        return Err(st.throw(ErrorKind::Range, "Array buffer allocation failed"));
    }
    st.burn(length as u64 / 64)?;
    let shape = st.heap.root_shape(args.get(w, 0).as_object())?;
    let max = if max.is_undefined() { None } else { Some(most as u32) };
    Ok(Value::object(st.heap.new_buffer(shape, Class::ArrayBuffer, length, max)?))
}

fn resize_buffer(st: &mut State, w: &mut Window, args: Args) -> Res {
    let id = buffer(st, w, args, 0)?;
    let length = size(args.get(w, 1));
    st.burn(length.saturating_sub(st.heap.buffer(id).len()) as u64 / 64)?;
    st.heap.resize_buffer(id, length)?;
    Ok(Value::UNDEFINED)
}

/// `%CopyBytes(to, at, from, start, count)` between two buffers.
fn copy_bytes(st: &mut State, w: &mut Window, args: Args) -> Res {
    let (to, from) = (buffer(st, w, args, 0)?, buffer(st, w, args, 2)?);
    let (at, start, count) = (size(args.get(w, 1)), size(args.get(w, 3)), size(args.get(w, 4)));
    st.burn(count as u64 / 64)?;
    st.heap.copy_bytes(to, at, from, start, count);
    Ok(Value::UNDEFINED)
}

/// `%NewTyped(prototype, buffer, element, offset, length)`; without a length it follows its buffer.
fn new_typed(st: &mut State, w: &mut Window, args: Args) -> Res {
    let kind = element(args.get(w, 2))?;
    new_view(st, w, args, Class::TypedArray, kind, 3)
}

/// `%NewDataView(prototype, buffer, offset, length)`.
fn new_data_view(st: &mut State, w: &mut Window, args: Args) -> Res {
    new_view(st, w, args, Class::DataView, Element::Uint8, 2)
}

fn new_view(st: &mut State, w: &Window, args: Args, class: Class, kind: Element, rest: u32) -> Res {
    let buffer = args.get(w, 1).as_object().ok_or(Exit::Slow)?;
    let length = args.get(w, rest + 1);
    let length = if length.is_undefined() { None } else { Some(size(length) as u32) };
    let shape = st.heap.root_shape(args.get(w, 0).as_object())?;
    let view = View { buffer, element: kind as u8, offset: size(args.get(w, rest)) as u32, length };
    Ok(Value::object(st.heap.new_view(shape, class, view)?))
}

/// `%ViewGet(view, index)`: undefined if there is no such element now.
fn view_get(st: &mut State, w: &mut Window, args: Args) -> Res {
    let object = args.get(w, 0).as_object().ok_or(Exit::Slow)?;
    let index = args.get(w, 1).as_int().map_or(u32::MAX, |i| i as u32);
    Ok(st.heap.view_get(object, index)?.unwrap_or(Value::UNDEFINED))
}

/// `%ViewSet(view, index, value)`: the value is converted already.
fn view_set(st: &mut State, w: &mut Window, args: Args) -> Res {
    let object = args.get(w, 0).as_object().ok_or(Exit::Slow)?;
    let index = args.get(w, 1).as_int().map_or(u32::MAX, |i| i as u32);
    st.heap.view_set(object, index, args.get(w, 2));
    Ok(Value::UNDEFINED)
}

/// `%CopyElements(to, at, from, start, count)`: with conversion; both may be in the same buffer.
fn copy_elements(st: &mut State, w: &mut Window, args: Args) -> Res {
    let (to, from) =
        (args.get(w, 0).as_object().ok_or(Exit::Slow)?, args.get(w, 2).as_object().ok_or(Exit::Slow)?);
    let (at, start, count) = (size(args.get(w, 1)), size(args.get(w, 3)), size(args.get(w, 4)));
    let (Some(target), Some(source)) = (st.heap.view_bytes(to), st.heap.view_bytes(from)) else {
        return Ok(Value::UNDEFINED);
    };
    let (kind, other) = (target.0.kind(), source.0.kind());
    let room = (target.3 >> kind.shift()).saturating_sub(at);
    let count = count.min(room).min((source.3 >> other.shift()).saturating_sub(start));
    st.burn(count as u64 / 8)?;
    let (at, start) = (target.2 + (at << kind.shift()), source.2 + (start << other.shift()));
    if kind == other {
        st.heap.copy_bytes(target.1, at, source.1, start, count << kind.shift());
        return Ok(Value::UNDEFINED);
    }
    // A view of the same bytes under another type: what is read must be what was there before.
    let bytes = count << other.shift();
    st.heap.charge_outside(bytes)?;
    let copy = st.heap.buffer(source.1).get(start..start + bytes).unwrap_or_default().to_vec();
    for (i, chunk) in copy.chunks_exact(other.size()).enumerate() {
        let mut raw = [0; 8];
        raw[..chunk.len()].copy_from_slice(chunk);
        // Only bigints allocate, and those are copied by their bytes.
        let raw = if kind.is_big() {
            raw
        } else {
            let v = st.heap.decode_element(other, raw)?;
            st.heap.encode_element(kind, v)
        };
        st.heap.write_raw(target.1, at + (i << kind.shift()), kind, raw);
    }
    st.heap.release_outside(bytes);
    Ok(Value::UNDEFINED)
}

/// `%CopyForward(to, from, start, count)`: byte by byte from the front, so that an overlap repeats as it should in `slice`.
fn copy_forward(st: &mut State, w: &mut Window, args: Args) -> Res {
    let (to, from) =
        (args.get(w, 0).as_object().ok_or(Exit::Slow)?, args.get(w, 1).as_object().ok_or(Exit::Slow)?);
    let (start, count) = (size(args.get(w, 2)), size(args.get(w, 3)));
    let (Some(target), Some(source)) = (st.heap.view_bytes(to), st.heap.view_bytes(from)) else {
        return Ok(Value::UNDEFINED);
    };
    let shift = source.0.kind().shift();
    let bytes = (count << shift).min(target.3).min(source.3.saturating_sub(start << shift));
    let (at, start) = (target.2, source.2 + (start << shift));
    st.burn(bytes as u64 / 16)?;
    if target.1 != source.1 || at <= start {
        st.heap.copy_bytes(target.1, at, source.1, start, bytes);
    } else {
        let memory = st.heap.buffer_mut(target.1);
        for i in 0..bytes {
            if let Some(&b) = memory.get(start + i)
                && let Some(place) = memory.get_mut(at + i)
            {
                *place = b;
            }
        }
    }
    Ok(Value::UNDEFINED)
}

/// `%MoveElements(view, to, from, count)` inside one view.
fn move_elements(st: &mut State, w: &mut Window, args: Args) -> Res {
    let (object, _) = view(st, w, args, 0)?;
    let (to, from, count) = (size(args.get(w, 1)), size(args.get(w, 2)), size(args.get(w, 3)));
    if let Some((view, id, offset, _)) = st.heap.view_bytes(object) {
        let shift = view.kind().shift();
        st.burn((count << shift) as u64 / 64)?;
        st.heap.copy_bytes(id, offset + (to << shift), id, offset + (from << shift), count << shift);
    }
    Ok(Value::UNDEFINED)
}

/// `%FillElements(view, start, end, value)`.
fn fill_elements(st: &mut State, w: &mut Window, args: Args) -> Res {
    let (start, end) = (size(args.get(w, 1)), size(args.get(w, 2)));
    st.burn(end.saturating_sub(start) as u64 / 8)?;
    let value = args.get(w, 3);
    let (object, view) = view(st, w, args, 0)?;
    let (kind, raw) = (view.kind(), st.heap.encode_element(view.kind(), value));
    if let Some(memory) = memory(&mut st.heap, object) {
        for chunk in memory.chunks_exact_mut(kind.size()).take(end).skip(start) {
            chunk.copy_from_slice(&raw[..kind.size()]);
        }
    }
    Ok(Value::UNDEFINED)
}

/// The bytes that a view covers now.
fn memory(heap: &mut Heap, object: ObjId) -> Option<&mut [u8]> {
    let (_, id, offset, bytes) = heap.view_bytes(object)?;
    heap.buffer_mut(id).get_mut(offset..offset + bytes)
}

fn reverse_elements(st: &mut State, w: &mut Window, args: Args) -> Res {
    let (object, view) = view(st, w, args, 0)?;
    let n = st.heap.view_length(object).unwrap_or(0);
    st.burn(u64::from(n) / 8)?;
    let size = view.kind().size();
    if let Some(memory) = memory(&mut st.heap, object) {
        // Reversing all bytes and then those of each element again reverses the elements.
        memory.reverse();
        memory.chunks_exact_mut(size).for_each(<[u8]>::reverse);
    }
    Ok(Value::UNDEFINED)
}

/// `%SortElements(view)`: by number, -0 before 0, NaN last.
fn sort_elements(st: &mut State, w: &mut Window, args: Args) -> Res {
    let (object, view) = view(st, w, args, 0)?;
    let n = st.heap.view_length(object).unwrap_or(0) as usize;
    st.burn(n as u64 * u64::from(usize::BITS - n.leading_zeros()) / 4)?;
    let kind = view.kind();
    st.heap.charge_outside(n * size_of::<u64>())?;
    if let Some(memory) = memory(&mut st.heap, object) {
        let mut keys: Vec<u64> = memory.chunks_exact(kind.size()).map(|chunk| ordered(kind, chunk)).collect();
        keys.sort_unstable();
        for (chunk, key) in memory.chunks_exact_mut(kind.size()).zip(keys) {
            chunk.copy_from_slice(&unordered(kind, key)[..kind.size()]);
        }
    }
    st.heap.release_outside(n * size_of::<u64>());
    Ok(Value::UNDEFINED)
}

/// An element's bytes as a number that sorts as the element does.
fn ordered(kind: Element, bytes: &[u8]) -> u64 {
    let mut raw = [0; 8];
    for (to, from) in raw.iter_mut().zip(bytes) {
        *to = *from;
    }
    let bits = u64::from_le_bytes(raw);
    match kind {
        Element::Uint8 | Element::Uint8Clamped | Element::Uint16 | Element::Uint32 | Element::BigUint64 => {
            bits
        }
        Element::Int8 => bits ^ 1 << 7,
        Element::Int16 => bits ^ 1 << 15,
        Element::Int32 => bits ^ 1 << 31,
        Element::BigInt64 => bits ^ 1 << 63,
        Element::Float32 if f32::from_bits(bits as u32).is_nan() => u64::from(u32::MAX),
        Element::Float32 => u64::from(if bits >> 31 == 1 { !(bits as u32) } else { bits as u32 | 1 << 31 }),
        Element::Float64 if f64::from_bits(bits).is_nan() => u64::MAX,
        Element::Float64 => {
            if bits >> 63 == 1 {
                !bits
            } else {
                bits | 1 << 63
            }
        }
    }
}

/// The way back.
fn unordered(kind: Element, key: u64) -> [u8; 8] {
    let bits = match kind {
        Element::Uint8 | Element::Uint8Clamped | Element::Uint16 | Element::Uint32 | Element::BigUint64 => {
            key
        }
        Element::Int8 => key ^ 1 << 7,
        Element::Int16 => key ^ 1 << 15,
        Element::Int32 => key ^ 1 << 31,
        Element::BigInt64 => key ^ 1 << 63,
        Element::Float32 if key == u64::from(u32::MAX) => u64::from(f32::NAN.to_bits()),
        Element::Float32 => u64::from(if key >> 31 == 1 { key as u32 & !(1 << 31) } else { !(key as u32) }),
        Element::Float64 if key == u64::MAX => f64::NAN.to_bits(),
        Element::Float64 => {
            if key >> 63 == 1 {
                key & !(1 << 63)
            } else {
                !key
            }
        }
    };
    bits.to_le_bytes()
}

/// `%PlainElements(x)`: a copy of an array that iterates as arrays do; undefined for anything else.
fn plain_elements(st: &mut State, w: &mut Window, args: Args) -> Res {
    let source = args.get(w, 0);
    if !crate::exec::iterates_plainly(st, source) {
        return Ok(Value::UNDEFINED);
    }
    let Some((array, values)) = packed(st, source) else { return Ok(Value::UNDEFINED) };
    let n = values.len();
    st.burn(n as u64 / 4)?;
    Ok(Value::array(st.heap.new_array_from(st.realm.array_shape, array, 0, n)?))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Endian {
    Little,
    Big,
}

/// The bytes in the other order, if that is asked for.
fn turned(mut raw: [u8; 8], kind: Element, endian: Endian) -> [u8; 8] {
    if endian == Endian::Big {
        raw[..kind.size()].reverse();
    }
    raw
}

fn endian(st: &State, v: Value) -> Endian {
    if st.heap.truthy(v) { Endian::Little } else { Endian::Big }
}

/// `%DataViewRead(view, at, element, little)`.
fn data_view_read(st: &mut State, w: &mut Window, args: Args) -> Res {
    let (object, _) = view(st, w, args, 0)?;
    let (at, kind, order) = (size(args.get(w, 1)), element(args.get(w, 2))?, endian(st, args.get(w, 3)));
    let Some((_, id, offset, _)) = st.heap.view_bytes(object) else { return slow() };
    let raw = turned(st.heap.raw_element(id, offset + at, kind), kind, order);
    Ok(st.heap.decode_element(kind, raw)?)
}

/// `%DataViewWrite(view, at, element, little, value)`.
fn data_view_write(st: &mut State, w: &mut Window, args: Args) -> Res {
    let (object, _) = view(st, w, args, 0)?;
    let (at, kind, order) = (size(args.get(w, 1)), element(args.get(w, 2))?, endian(st, args.get(w, 3)));
    let Some((_, id, offset, _)) = st.heap.view_bytes(object) else { return slow() };
    let raw = turned(st.heap.encode_element(kind, args.get(w, 4)), kind, order);
    st.heap.write_raw(id, offset + at, kind, raw);
    Ok(Value::UNDEFINED)
}

/// Where a data view's element is, if the position is a small number inside its bounds.
fn position(st: &State, w: &Window, args: Args, kind: Element) -> Result<(BufferId, usize), Exit> {
    let object = args.this.as_object().filter(|&o| st.heap.class(o) == Class::DataView).ok_or(Exit::Slow)?;
    let at = args.get(w, 0).as_int().and_then(|i| usize::try_from(i).ok()).ok_or(Exit::Slow)?;
    let (_, id, offset, bytes) = st.heap.view_bytes(object).ok_or(Exit::Slow)?;
    if at + kind.size() > bytes { Err(Exit::Slow) } else { Ok((id, offset + at)) }
}

fn get(st: &mut State, w: &mut Window, args: Args, kind: Element) -> Res {
    let (id, at) = position(st, w, args, kind)?;
    let raw = turned(st.heap.raw_element(id, at, kind), kind, endian(st, args.get(w, 1)));
    Ok(st.heap.decode_element(kind, raw)?)
}

fn set(st: &mut State, w: &mut Window, args: Args, kind: Element) -> Res {
    let (id, at) = position(st, w, args, kind)?;
    let value = args.get(w, 1);
    if !value.is_number() {
        return slow();
    }
    let raw = turned(st.heap.encode_element(kind, value), kind, endian(st, args.get(w, 2)));
    st.heap.write_raw(id, at, kind, raw);
    Ok(Value::UNDEFINED)
}
