//! The language's equalities, `typeof` and truthiness: everything about two values that needs no guest code.

use super::{AllocError, Flags, Heap, StrId, atoms};
use crate::value::{Unpacked, Value};
use std::cmp::Ordering;

impl Heap {
    /// `a === b`. May flatten ropes, hence the `Result`.
    #[inline]
    pub fn strict_equals(&mut self, a: Value, b: Value) -> Result<bool, AllocError> {
        if a == b {
            return Ok(!a.is_double() || !a.double_unchecked().is_nan());
        }
        if a.is_number() && b.is_number() {
            return Ok(a.as_number() == b.as_number());
        }
        self.same_content(a, b)
    }

    /// `Object.is(a, b)`.
    pub fn same_value(&mut self, a: Value, b: Value) -> Result<bool, AllocError> {
        if let (Some(x), Some(y)) = (a.as_number(), b.as_number()) {
            return Ok(x.to_bits() == y.to_bits() || (x.is_nan() && y.is_nan()));
        }
        Ok(a == b || self.same_content(a, b)?)
    }

    /// The equality of Map, Set and `includes`: like `===`, but NaN equals itself.
    pub fn same_value_zero(&mut self, a: Value, b: Value) -> Result<bool, AllocError> {
        if let (Some(x), Some(y)) = (a.as_number(), b.as_number()) {
            return Ok(x == y || (x.is_nan() && y.is_nan()));
        }
        Ok(a == b || self.same_content(a, b)?)
    }

    /// The order of two strings by code unit.
    pub fn compare_strings(&mut self, a: StrId, b: StrId) -> Result<Ordering, AllocError> {
        self.flatten(a)?;
        self.flatten(b)?;
        Ok(self.str(a).compare(self.str(b)))
    }

    /// Do two strings say the same?
    pub fn equal_strings(&mut self, a: StrId, b: StrId) -> Result<bool, AllocError> {
        if a == b {
            return Ok(true);
        }
        if self.string_length(a) != self.string_length(b) || (self.is_atom(a) && self.is_atom(b)) {
            return Ok(false);
        }
        self.flatten(a)?;
        self.flatten(b)?;
        Ok(self.str(a) == self.str(b))
    }

    /// ToBoolean.
    #[inline]
    pub fn truthy(&self, value: Value) -> bool {
        if let Some(b) = value.as_bool() {
            return b;
        }
        if let Some(i) = value.as_int() {
            return i != 0;
        }
        match value.unpack() {
            Unpacked::Double(x) => !(x == 0.0 || x.is_nan()),
            Unpacked::String(id) => self.string_length(id) != 0,
            Unpacked::BigInt(id) => self.bigint(id).sign() != num_bigint::Sign::NoSign,
            Unpacked::Symbol(_) | Unpacked::Object(_) => true,
            Unpacked::Undefined
            | Unpacked::Null
            | Unpacked::Hole
            | Unpacked::Internal(_)
            | Unpacked::Bool(_)
            | Unpacked::Int(_) => false,
        }
    }

    /// The atom that `typeof` answers.
    pub fn type_of(&self, value: Value) -> StrId {
        match value.unpack() {
            Unpacked::Undefined | Unpacked::Hole | Unpacked::Internal(_) => atoms::UNDEFINED,
            Unpacked::Null => atoms::OBJECT,
            Unpacked::Bool(_) => atoms::BOOLEAN,
            Unpacked::Int(_) | Unpacked::Double(_) => atoms::NUMBER,
            Unpacked::String(_) => atoms::STRING,
            Unpacked::Symbol(_) => atoms::SYMBOL,
            Unpacked::BigInt(_) => atoms::BIGINT,
            Unpacked::Object(id) if self.flags(id).has(Flags::CALLABLE) => atoms::FUNCTION,
            Unpacked::Object(_) => atoms::OBJECT,
        }
    }

    /// Is the string interned, so that it equals another interned one only if the ids do?
    #[inline]
    pub fn is_atom(&self, id: StrId) -> bool {
        self.strings[id].role != super::string::Role::Plain
    }

    fn same_content(&mut self, a: Value, b: Value) -> Result<bool, AllocError> {
        if let (Some(a), Some(b)) = (a.as_string(), b.as_string()) {
            return self.equal_strings(a, b);
        }
        if let (Some(a), Some(b)) = (a.as_bigint(), b.as_bigint()) {
            return Ok(self.bigint(a) == self.bigint(b));
        }
        Ok(false)
    }
}
