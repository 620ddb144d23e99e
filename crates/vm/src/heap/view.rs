//! The elements behind typed arrays and data views: bytes of a buffer read and written as numbers.
//!
//! Bytes are little-endian on every machine, so that a run and its snapshots are the same everywhere. Conversions that
//! may run guest code (`valueOf`) have happened before: a value written here is a number or a bigint already.

use super::{AllocError, BufferId, Heap, ObjId, View};
use crate::text::number::convert;
use crate::value::Value;
use num_bigint::BigInt;

/// The element types of typed arrays and data views.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Element {
    /// `Int8Array`
    Int8,
    /// `Uint8Array`
    Uint8,
    /// `Uint8ClampedArray`
    Uint8Clamped,
    /// `Int16Array`
    Int16,
    /// `Uint16Array`
    Uint16,
    /// `Int32Array`
    Int32,
    /// `Uint32Array`
    Uint32,
    /// `BigInt64Array`
    BigInt64,
    /// `BigUint64Array`
    BigUint64,
    /// `Float32Array`
    Float32,
    /// `Float64Array`
    Float64,
}

impl Element {
    /// Every type, in the order of their numbers ([`View::element`]).
    pub const ALL: &'static [Element] = &[
        Element::Int8,
        Element::Uint8,
        Element::Uint8Clamped,
        Element::Int16,
        Element::Uint16,
        Element::Int32,
        Element::Uint32,
        Element::BigInt64,
        Element::BigUint64,
        Element::Float32,
        Element::Float64,
    ];

    /// Bytes per element.
    #[inline]
    pub const fn size(self) -> usize {
        1 << self.shift()
    }

    /// The logarithm of [`Element::size`].
    #[inline]
    pub const fn shift(self) -> u32 {
        match self {
            Element::Int8 | Element::Uint8 | Element::Uint8Clamped => 0,
            Element::Int16 | Element::Uint16 => 1,
            Element::Int32 | Element::Uint32 | Element::Float32 => 2,
            Element::BigInt64 | Element::BigUint64 | Element::Float64 => 3,
        }
    }

    /// Are its elements bigints?
    #[inline]
    pub const fn is_big(self) -> bool {
        matches!(self, Element::BigInt64 | Element::BigUint64)
    }
}

/// An element's bytes, the first `size` of them, in memory order.
pub type Raw = [u8; 8];

impl View {
    /// The element type.
    #[inline]
    pub fn kind(&self) -> Element {
        Element::ALL.get(self.element as usize).copied().unwrap_or(Element::Uint8)
    }
}

impl Heap {
    /// The view of a typed array or data view with the bytes it covers now: where they begin and how many.
    /// `None`: it is detached or out of bounds, or the object is no view.
    #[inline]
    pub fn view_bytes(&self, obj: ObjId) -> Option<(View, BufferId, usize, usize)> {
        let view = self.view_of(obj)?;
        let id = self.buffer_of(view.buffer)?;
        if self.is_detached(id) {
            return None;
        }
        let (offset, shift) = (view.offset as usize, view.kind().shift());
        let rest = self.buffer(id).len().checked_sub(offset)?;
        match view.length {
            Some(length) => {
                let bytes = (length as usize) << shift;
                (bytes <= rest).then_some((view, id, offset, bytes))
            }
            None => Some((view, id, offset, rest >> shift << shift)),
        }
    }

    /// How many elements a typed array has now (a data view: bytes); `None` when it is detached or out of bounds.
    #[inline]
    pub fn view_length(&self, obj: ObjId) -> Option<u32> {
        let (view, _, _, bytes) = self.view_bytes(obj)?;
        Some((bytes >> view.kind().shift()) as u32)
    }

    /// Element `index` of a typed array; `Ok(None)`: there is no such element now. Only bigints allocate.
    #[inline]
    pub fn view_get(&mut self, obj: ObjId, index: u32) -> Result<Option<Value>, AllocError> {
        let Some((view, id, offset, bytes)) = self.view_bytes(obj) else { return Ok(None) };
        let kind = view.kind();
        let at = (index as usize) << kind.shift();
        if at >= bytes {
            return Ok(None);
        }
        self.read_element(id, offset + at, kind).map(Some)
    }

    /// Writes element `index` of a typed array: a number, or a bigint if its elements are bigints. `false`: there is no
    /// such element now, nothing was written.
    #[inline]
    pub fn view_set(&mut self, obj: ObjId, index: u32, value: Value) -> bool {
        let Some((view, id, offset, bytes)) = self.view_bytes(obj) else { return false };
        let kind = view.kind();
        let at = (index as usize) << kind.shift();
        if at >= bytes {
            return false;
        }
        let raw = self.encode_element(kind, value);
        self.write_raw(id, offset + at, kind, raw);
        true
    }

    /// The element at a byte position of a buffer; zero beyond its end.
    #[inline]
    pub fn read_element(&mut self, id: BufferId, at: usize, kind: Element) -> Result<Value, AllocError> {
        let raw = self.raw_element(id, at, kind);
        self.decode_element(kind, raw)
    }

    /// The bytes of an element; zero beyond the buffer's end.
    #[inline]
    pub fn raw_element(&self, id: BufferId, at: usize, kind: Element) -> Raw {
        let mut raw = [0; 8];
        if let Some(bytes) = self.buffer(id).get(at..at + kind.size()) {
            raw[..kind.size()].copy_from_slice(bytes);
        }
        raw
    }

    /// Puts the bytes of an element into a buffer; beyond its end nothing happens.
    #[inline]
    pub fn write_raw(&mut self, id: BufferId, at: usize, kind: Element, raw: Raw) {
        if let Some(bytes) = self.buffer_mut(id).get_mut(at..at + kind.size()) {
            bytes.copy_from_slice(&raw[..kind.size()]);
        }
    }

    /// What the bytes of an element mean.
    #[inline]
    pub fn decode_element(&mut self, kind: Element, raw: Raw) -> Result<Value, AllocError> {
        let [a, b, c, d, ..] = raw;
        Ok(match kind {
            Element::Int8 => Value::int(i32::from(a as i8)),
            Element::Uint8 | Element::Uint8Clamped => Value::int(i32::from(a)),
            Element::Int16 => Value::int(i32::from(i16::from_le_bytes([a, b]))),
            Element::Uint16 => Value::int(i32::from(u16::from_le_bytes([a, b]))),
            Element::Int32 => Value::int(i32::from_le_bytes([a, b, c, d])),
            Element::Uint32 => Value::uint(u32::from_le_bytes([a, b, c, d])),
            Element::Float32 => Value::number(f64::from(f32::from_le_bytes([a, b, c, d]))),
            Element::Float64 => Value::number(f64::from_le_bytes(raw)),
            Element::BigInt64 => Value::bigint(self.new_bigint(BigInt::from(i64::from_le_bytes(raw)))?),
            Element::BigUint64 => Value::bigint(self.new_bigint(BigInt::from(u64::from_le_bytes(raw)))?),
        })
    }

    /// The bytes of an element. A value of the wrong kind counts as zero.
    #[inline]
    pub fn encode_element(&self, kind: Element, value: Value) -> Raw {
        if kind.is_big() {
            return value.as_bigint().map_or([0; 8], |id| low_bits(self.bigint(id)).to_le_bytes());
        }
        let mut raw = [0; 8];
        if let Some(int) = value.as_int() {
            match kind {
                Element::Uint8Clamped => raw[0] = int.clamp(0, 255) as u8,
                Element::Float32 => raw[..4].copy_from_slice(&(f64::from(int) as f32).to_le_bytes()),
                Element::Float64 => raw = f64::from(int).to_le_bytes(),
                Element::Int8
                | Element::Uint8
                | Element::Int16
                | Element::Uint16
                | Element::Int32
                | Element::Uint32
                | Element::BigInt64
                | Element::BigUint64 => raw[..4].copy_from_slice(&int.to_le_bytes()),
            }
            return raw;
        }
        let x = value.as_number().unwrap_or(0.0);
        match kind {
            Element::Uint8Clamped => raw[0] = convert::to_uint8_clamp(x),
            Element::Float32 => raw[..4].copy_from_slice(&(x as f32).to_le_bytes()),
            Element::Float64 => raw = x.to_le_bytes(),
            Element::Int8
            | Element::Uint8
            | Element::Int16
            | Element::Uint16
            | Element::Int32
            | Element::Uint32
            | Element::BigInt64
            | Element::BigUint64 => raw[..4].copy_from_slice(&convert::to_uint32(x).to_le_bytes()),
        }
        raw
    }
}

/// A bigint modulo 2^64.
fn low_bits(value: &BigInt) -> u64 {
    let magnitude = value.iter_u64_digits().next().unwrap_or(0);
    if value.sign() == num_bigint::Sign::Minus { magnitude.wrapping_neg() } else { magnitude }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::heap::{Class, Limits, Pace};

    #[test]
    fn a_view_reads_back_what_its_element_type_can_hold() -> Result<(), AllocError> {
        let mut heap = Heap::new(Limits { bytes: 1 << 20, records: 1 << 12 }, Pace::Adaptive, 1);
        let shape = heap.root_shape(None)?;
        let buffer = heap.new_buffer(shape, Class::ArrayBuffer, 16, None)?;
        let cases = [
            (Element::Int8, 200.0, -56.0),
            (Element::Uint8, -1.0, 255.0),
            (Element::Uint8Clamped, 300.0, 255.0),
            (Element::Uint8Clamped, 2.5, 2.0),
            (Element::Int16, 40_000.0, -25_536.0),
            (Element::Uint16, 65_537.0, 1.0),
            (Element::Int32, 2_147_483_648.0, -2_147_483_648.0),
            (Element::Uint32, -1.0, 4_294_967_295.0),
            (Element::Float32, 1.1, f64::from(1.1f32)),
            (Element::Float64, 1.1, 1.1),
        ];
        for (kind, written, read) in cases {
            let view = View { buffer, element: kind as u8, offset: 8, length: Some(1) };
            let array = heap.new_view(shape, Class::TypedArray, view)?;
            assert!(heap.view_set(array, 0, Value::number(written)), "{kind:?}");
            assert_eq!(heap.view_get(array, 0)?, Some(Value::number(read)), "{kind:?}");
            assert_eq!(heap.view_get(array, 1)?, None, "{kind:?}");
            assert!(!heap.view_set(array, 1, Value::ZERO), "{kind:?}");
        }
        Ok(())
    }

    #[test]
    fn a_view_that_follows_its_buffer_ends_where_the_buffer_ends() -> Result<(), AllocError> {
        let mut heap = Heap::new(Limits { bytes: 1 << 20, records: 1 << 12 }, Pace::Adaptive, 1);
        let shape = heap.root_shape(None)?;
        let buffer = heap.new_buffer(shape, Class::ArrayBuffer, 16, Some(32))?;
        let Some(id) = heap.buffer_of(buffer) else { panic!("a buffer has bytes") };
        let view = |length| View { buffer, element: Element::Int32 as u8, offset: 8, length };
        let following = heap.new_view(shape, Class::TypedArray, view(None))?;
        let fixed = heap.new_view(shape, Class::TypedArray, view(Some(2)))?;
        let mut lengths = Vec::new();
        for length in [16, 15, 11, 8, 7, 32] {
            heap.resize_buffer(id, length)?;
            lengths.push((heap.view_length(following), heap.view_length(fixed)));
        }
        let expected = [
            (Some(2), Some(2)),
            (Some(1), None),
            (Some(0), None),
            (Some(0), None),
            (None, None),
            (Some(6), Some(2)),
        ];
        assert_eq!(lengths, expected);
        heap.detach_buffer(id);
        assert_eq!(heap.view_length(following), None);
        Ok(())
    }
}
