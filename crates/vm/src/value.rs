//! One guest value in eight bytes: the unit that registers, properties, arrays and snapshots are made of.
//!
//! The encoding is a NaN box. Every bit pattern below `0xFFF9 << 48` is a double. Above it the top sixteen bits
//! are a tag and the low 32 bits an id or an immediate:
//!
//! | tag | meaning |
//! |---|---|
//! | `FFF9` | undefined, null, booleans, the hole, and engine-internal references |
//! | `FFFA` | string |
//! | `FFFB` | symbol |
//! | `FFFC` | bigint |
//! | `FFFD` | object that is not an array |
//! | `FFFE` | array (adjacent to object, so that "is it an object" is one range check) |
//! | `FFFF` | int32, so that "are both ints" is one `and` and one compare |
//!
//! Numbers are normalised: a double that equals an int32 (and is not -0) is always stored as an int. Code that makes
//! doubles by hand must keep that promise, because equality and hashing rely on it.

use crate::heap::{AccessorId, BigId, CellId, ObjId, ShapeId, SlotsId, StrId, SymId};
use std::fmt;

const SHIFT: u32 = 48;
const SPECIAL: u64 = 0xFFF9 << SHIFT;
const STRING: u64 = 0xFFFA << SHIFT;
const SYMBOL: u64 = 0xFFFB << SHIFT;
const BIGINT: u64 = 0xFFFC << SHIFT;
const OBJECT: u64 = 0xFFFD << SHIFT;
const ARRAY: u64 = 0xFFFE << SHIFT;
const INT: u64 = 0xFFFF << SHIFT;
const CANONICAL_NAN: u64 = 0x7FF8 << SHIFT;

const KIND_SHIFT: u32 = 32;
const KIND_ACCESSOR: u64 = 1;
const KIND_CELL: u64 = 2;
const KIND_SLOTS: u64 = 3;
const KIND_SHAPE: u64 = 4;
const KIND_RAW: u64 = 5;

/// A guest value, or one of the markers that only the engine sees (the hole and internal references).
///
/// `==` compares bits, which is neither `===` nor `Object.is`: use [`crate::heap::Heap::strict_equals`] and its
/// siblings for those.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Value(u64);

/// A value taken apart, for code that is not in a hurry.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Unpacked {
    /// `undefined`.
    Undefined,
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A missing array element, or a binding that is not initialised yet.
    Hole,
    /// A number that is an int32 and not -0.
    Int(i32),
    /// Any other number.
    Double(f64),
    /// A string.
    String(StrId),
    /// A symbol (or a private name).
    Symbol(SymId),
    /// A bigint.
    BigInt(BigId),
    /// An object of any class, arrays included.
    Object(ObjId),
    /// A reference that guests never see.
    Internal(Internal),
}

/// What an engine-internal value points at. Guests never hold one; registers, slots and captures do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Internal {
    /// The getter/setter pair behind an accessor property.
    Accessor(AccessorId),
    /// A captured variable.
    Cell(CellId),
    /// A record of internal fields (saved registers, iteration state, …).
    Slots(SlotsId),
    /// A shape, for cached literals.
    Shape(ShapeId),
    /// A number that is not a guest number: a program counter, a state, a code id. Not traced.
    Raw(u32),
}

impl Value {
    /// `undefined`.
    pub const UNDEFINED: Value = Value(SPECIAL);
    /// `null`.
    pub const NULL: Value = Value(SPECIAL | 1);
    /// `false`.
    pub const FALSE: Value = Value(SPECIAL | 2);
    /// `true`.
    pub const TRUE: Value = Value(SPECIAL | 3);
    /// A missing array element, or a binding in its temporal dead zone.
    pub const HOLE: Value = Value(SPECIAL | 4);
    /// The free entry of an arena; never reachable from anything.
    pub(crate) const VACANT: Value = Value(SPECIAL | 5);
    /// `NaN`.
    pub const NAN: Value = Value(CANONICAL_NAN);
    /// The number 0.
    pub const ZERO: Value = Value(INT);

    /// A boolean.
    #[inline]
    pub const fn bool(b: bool) -> Value {
        Value(SPECIAL | 2 | b as u64)
    }

    /// An int32.
    #[inline]
    pub const fn int(i: i32) -> Value {
        Value(INT | i as u32 as u64)
    }

    /// Any number, normalised to an int where that is exact.
    #[inline]
    pub fn number(x: f64) -> Value {
        let i = x as i32;
        if f64::from(i).to_bits() == x.to_bits() { Value::int(i) } else { Value::double(x) }
    }

    /// A number that the caller knows is not an int32 (or does not mind being slow to compare).
    ///
    /// Breaking the promise makes `===` and property keys wrong, never memory-unsafe. NaNs with a foreign payload are
    /// made canonical, so bits read from a buffer cannot forge a reference.
    #[inline]
    pub fn double(x: f64) -> Value {
        let bits = x.to_bits();
        Value(if bits >= SPECIAL { CANONICAL_NAN } else { bits })
    }

    /// An unsigned 32-bit number.
    #[inline]
    pub fn uint(u: u32) -> Value {
        match i32::try_from(u) {
            Ok(i) => Value::int(i),
            Err(_) => Value(f64::from(u).to_bits()),
        }
    }

    /// A string.
    #[inline]
    pub const fn string(id: StrId) -> Value {
        Value(STRING | id.raw() as u64)
    }

    /// A symbol.
    #[inline]
    pub const fn symbol(id: SymId) -> Value {
        Value(SYMBOL | id.raw() as u64)
    }

    /// A bigint.
    #[inline]
    pub const fn bigint(id: BigId) -> Value {
        Value(BIGINT | id.raw() as u64)
    }

    /// An object whose class is not Array. [`crate::heap::Heap::object_value`] picks the right tag when in doubt.
    #[inline]
    pub const fn object(id: ObjId) -> Value {
        Value(OBJECT | id.raw() as u64)
    }

    /// An object whose class is Array.
    #[inline]
    pub const fn array(id: ObjId) -> Value {
        Value(ARRAY | id.raw() as u64)
    }

    /// An engine-internal reference.
    #[inline]
    pub const fn internal(to: Internal) -> Value {
        let (kind, id) = match to {
            Internal::Accessor(id) => (KIND_ACCESSOR, id.raw()),
            Internal::Cell(id) => (KIND_CELL, id.raw()),
            Internal::Slots(id) => (KIND_SLOTS, id.raw()),
            Internal::Shape(id) => (KIND_SHAPE, id.raw()),
            Internal::Raw(n) => (KIND_RAW, n),
        };
        Value(SPECIAL | kind << KIND_SHIFT | id as u64)
    }

    /// The bits, for the snapshot codec.
    #[inline]
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// The value with these bits. Only for the image, whose bytes the engine itself has made: whoever chooses the bits can
    /// forge a reference.
    #[inline]
    pub(crate) const fn of_image(bits: u64) -> Value {
        Value(bits)
    }

    /// Is it an int32?
    #[inline]
    pub const fn is_int(self) -> bool {
        self.0 >= INT
    }

    /// Are both int32? One `and`, one compare.
    #[inline]
    pub const fn both_int(a: Value, b: Value) -> bool {
        (a.0 & b.0) >= INT
    }

    /// The int32 payload; only meaningful when [`Value::is_int`].
    #[inline]
    pub const fn int_unchecked(self) -> i32 {
        self.0 as u32 as i32
    }

    /// The int32, if it is one.
    #[inline]
    pub const fn as_int(self) -> Option<i32> {
        if self.is_int() { Some(self.0 as u32 as i32) } else { None }
    }

    /// Is it a number that is not stored as an int32?
    #[inline]
    pub const fn is_double(self) -> bool {
        self.0 < SPECIAL
    }

    /// The double's bits as a number; only meaningful when [`Value::is_double`].
    #[inline]
    pub const fn double_unchecked(self) -> f64 {
        f64::from_bits(self.0)
    }

    /// Is it a number?
    #[inline]
    pub const fn is_number(self) -> bool {
        self.0 < SPECIAL || self.0 >= INT
    }

    /// The number, if it is one.
    #[inline]
    pub const fn as_number(self) -> Option<f64> {
        if self.is_int() {
            Some(self.int_unchecked() as f64)
        } else if self.is_double() {
            Some(f64::from_bits(self.0))
        } else {
            None
        }
    }

    /// Is it an object of any class?
    #[inline]
    pub const fn is_object(self) -> bool {
        self.0.wrapping_sub(OBJECT) < (2 << SHIFT)
    }

    /// The object of any class, if it is one.
    #[inline]
    pub const fn as_object(self) -> Option<ObjId> {
        if self.is_object() { Some(ObjId::from_raw(self.0 as u32)) } else { None }
    }

    /// Is it an object whose class is Array?
    #[inline]
    pub const fn is_array(self) -> bool {
        self.0 >> SHIFT == ARRAY >> SHIFT
    }

    /// The array, if it is one.
    #[inline]
    pub const fn as_array(self) -> Option<ObjId> {
        if self.is_array() { Some(ObjId::from_raw(self.0 as u32)) } else { None }
    }

    /// Is it a string?
    #[inline]
    pub const fn is_string(self) -> bool {
        self.0 >> SHIFT == STRING >> SHIFT
    }

    /// The string, if it is one.
    #[inline]
    pub const fn as_string(self) -> Option<StrId> {
        if self.is_string() { Some(StrId::from_raw(self.0 as u32)) } else { None }
    }

    /// Is it a symbol?
    #[inline]
    pub const fn is_symbol(self) -> bool {
        self.0 >> SHIFT == SYMBOL >> SHIFT
    }

    /// The symbol, if it is one.
    #[inline]
    pub const fn as_symbol(self) -> Option<SymId> {
        if self.is_symbol() { Some(SymId::from_raw(self.0 as u32)) } else { None }
    }

    /// Is it a bigint?
    #[inline]
    pub const fn is_bigint(self) -> bool {
        self.0 >> SHIFT == BIGINT >> SHIFT
    }

    /// The bigint, if it is one.
    #[inline]
    pub const fn as_bigint(self) -> Option<BigId> {
        if self.is_bigint() { Some(BigId::from_raw(self.0 as u32)) } else { None }
    }

    /// Is it `undefined`?
    #[inline]
    pub const fn is_undefined(self) -> bool {
        self.0 == Self::UNDEFINED.0
    }

    /// Is it `null`?
    #[inline]
    pub const fn is_null(self) -> bool {
        self.0 == Self::NULL.0
    }

    /// Is it `undefined` or `null`?
    #[inline]
    pub const fn is_nullish(self) -> bool {
        self.0 | 1 == Self::NULL.0
    }

    /// Is it a boolean?
    #[inline]
    pub const fn is_bool(self) -> bool {
        self.0 | 1 == Self::TRUE.0
    }

    /// The boolean, if it is one.
    #[inline]
    pub const fn as_bool(self) -> Option<bool> {
        if self.is_bool() { Some(self.0 & 1 == 1) } else { None }
    }

    /// Is it the hole?
    #[inline]
    pub const fn is_hole(self) -> bool {
        self.0 == Self::HOLE.0
    }

    /// The engine-internal reference, if it is one.
    #[inline]
    pub const fn as_internal(self) -> Option<Internal> {
        if self.0 >> SHIFT != SPECIAL >> SHIFT {
            return None;
        }
        let id = self.0 as u32;
        match (self.0 >> KIND_SHIFT) & 0xFFFF {
            KIND_ACCESSOR => Some(Internal::Accessor(AccessorId::from_raw(id))),
            KIND_CELL => Some(Internal::Cell(CellId::from_raw(id))),
            KIND_SLOTS => Some(Internal::Slots(SlotsId::from_raw(id))),
            KIND_SHAPE => Some(Internal::Shape(ShapeId::from_raw(id))),
            KIND_RAW => Some(Internal::Raw(id)),
            _ => None,
        }
    }

    /// The captured variable this value refers to, if it is such a reference.
    #[inline]
    pub const fn as_cell(self) -> Option<CellId> {
        if self.0 >> KIND_SHIFT == (SPECIAL >> KIND_SHIFT) | KIND_CELL {
            Some(CellId::from_raw(self.0 as u32))
        } else {
            None
        }
    }

    /// Is its low half a number or an id, of which others are the neighbours?
    #[inline]
    pub(crate) const fn has_neighbours(self) -> bool {
        self.is_int() || self.is_reference()
    }

    /// The low half of its bits.
    #[inline]
    pub(crate) const fn low(self) -> u32 {
        self.0 as u32
    }

    /// The same with another low half; only meaningful when it has neighbours, or the same low half.
    #[inline]
    pub(crate) const fn with_low(self, low: u32) -> Value {
        Value(self.0 >> 32 << 32 | low as u64)
    }

    /// Could the collector have to follow it?
    #[inline]
    pub(crate) const fn is_reference(self) -> bool {
        self.0.wrapping_sub(SPECIAL + 0x1_0000_0000) < INT - (SPECIAL + 0x1_0000_0000)
    }

    /// Takes the value apart.
    pub const fn unpack(self) -> Unpacked {
        if self.is_double() {
            return Unpacked::Double(f64::from_bits(self.0));
        }
        let id = self.0 as u32;
        match self.0 & INT {
            STRING => Unpacked::String(StrId::from_raw(id)),
            SYMBOL => Unpacked::Symbol(SymId::from_raw(id)),
            BIGINT => Unpacked::BigInt(BigId::from_raw(id)),
            OBJECT | ARRAY => Unpacked::Object(ObjId::from_raw(id)),
            INT => Unpacked::Int(id as i32),
            _ => match self.as_internal() {
                Some(internal) => Unpacked::Internal(internal),
                None => match id {
                    0 => Unpacked::Undefined,
                    1 => Unpacked::Null,
                    2 => Unpacked::Bool(false),
                    3 => Unpacked::Bool(true),
                    _ => Unpacked::Hole,
                },
            },
        }
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.unpack().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_ints_exactly_when_that_loses_nothing() {
        for (x, int) in [
            (0.0, true),
            (-0.0, false),
            (1.5, false),
            (2147483647.0, true),
            (2147483648.0, false),
            (-2147483648.0, true),
            (-2147483649.0, false),
            (f64::NAN, false),
            (f64::INFINITY, false),
        ] {
            let v = Value::number(x);
            assert_eq!(v.is_int(), int, "{x}");
            assert!(v.is_number());
            assert_eq!(v.as_number().map(f64::to_bits), Some(x.to_bits()), "{x}");
        }
    }

    #[test]
    fn bits_from_a_buffer_cannot_forge_a_reference() {
        let forged = f64::from_bits(Value::object(ObjId::from_raw(7)).bits());
        assert_eq!(Value::number(forged), Value::NAN);
        assert_eq!(Value::double(forged), Value::NAN);
    }

    #[test]
    fn every_kind_of_value_is_told_apart() {
        let all = [
            Value::UNDEFINED,
            Value::NULL,
            Value::FALSE,
            Value::TRUE,
            Value::HOLE,
            Value::int(-1),
            Value::number(0.5),
            Value::string(StrId::from_raw(u32::MAX)),
            Value::symbol(SymId::from_raw(3)),
            Value::bigint(BigId::from_raw(3)),
            Value::object(ObjId::from_raw(3)),
            Value::array(ObjId::from_raw(4)),
            Value::internal(Internal::Cell(CellId::from_raw(9))),
        ];
        for (i, v) in all.iter().enumerate() {
            let answers = [
                v.is_undefined(),
                v.is_null(),
                *v == Value::FALSE,
                *v == Value::TRUE,
                v.is_hole(),
                v.is_int(),
                v.is_double(),
                v.is_string(),
                v.is_symbol(),
                v.is_bigint(),
                v.is_object() && !v.is_array(),
                v.is_array(),
                v.as_cell().is_some(),
            ];
            let expected: Vec<bool> = (0..answers.len()).map(|j| i == j).collect();
            assert_eq!(answers.to_vec(), expected, "{v:?}");
            assert_eq!(v.is_reference(), i >= 7, "{v:?}");
        }
    }
}
