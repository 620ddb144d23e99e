//! Operators on everything but two small integers: the cold side of the dispatch loop.
//!
//! Each function answers a value, throws, or (for operands that are objects) enters a prelude helper.

use super::Window;
use super::frame::FrameFlags;
use super::helper::Helper;
use super::state::{Exit, Res, State};
use crate::code::ErrorKind;
use crate::heap::{Str, StrId};
use crate::text::bigint;
use crate::text::number::{convert, math, print, read};
use crate::value::{Unpacked, Value};
use num_bigint::BigInt;
use std::cmp::Ordering;

/// The numeric operators, numbered as the prelude's helpers know them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub(crate) enum Arith {
    Sub = 0,
    Mul = 1,
    Div = 2,
    Mod = 3,
    Exp = 4,
    BitAnd = 5,
    BitOr = 6,
    BitXor = 7,
    Shl = 8,
    Shr = 9,
    UShr = 10,
}

/// The relational operators, numbered likewise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub(crate) enum Relation {
    Lt = 0,
    Le = 1,
    Gt = 2,
    Ge = 3,
}

/// The unary operators, numbered likewise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub(crate) enum Unary {
    Neg = 0,
    Plus = 1,
    BitNot = 2,
    Inc = 3,
    Dec = 4,
    Numeric = 5,
}

#[inline]
pub(crate) fn int_mul(x: i32, y: i32) -> Option<Value> {
    let r = x.checked_mul(y)?;
    // A zero from a negative operand is -0, which is a double.
    (r != 0 || (x | y) >= 0).then(|| Value::int(r))
}

#[inline]
pub(crate) fn int_mod(x: i32, y: i32) -> Option<Value> {
    if y <= 0 || x < 0 { None } else { Some(Value::int(x % y)) }
}

#[inline(never)]
pub(crate) fn add(st: &mut State, w: &mut Window, d: u8, a: Value, b: Value) -> Res {
    if let (Some(x), Some(y)) = (a.as_number(), b.as_number()) {
        return Ok(Value::number(x + y));
    }
    if let (Some(x), Some(y)) = (a.as_string(), b.as_string()) {
        return concat(st, x, y);
    }
    if a.is_object() || b.is_object() {
        return Err(st.enter_helper(w, Helper::Add, &[a, b], d, FrameFlags::NONE));
    }
    if a.is_string() || b.is_string() {
        let x = st.primitive_to_string(a)?;
        let y = st.primitive_to_string(b)?;
        return concat(st, x, y);
    }
    numeric(st, a, b, |x, y| x + y, bigint::arithmetic::add)
}

fn concat(st: &mut State, a: StrId, b: StrId) -> Res {
    Ok(Value::string(st.heap.concat(a, b)?))
}

/// Applies a numeric operator to primitives.
fn numeric(
    st: &mut State,
    a: Value,
    b: Value,
    on_number: fn(f64, f64) -> f64,
    on_bigint: fn(&BigInt, &BigInt) -> Result<BigInt, bigint::arithmetic::BigIntError>,
) -> Res {
    match (a.as_bigint(), b.as_bigint()) {
        (Some(x), Some(y)) => {
            st.burn(1 + (st.heap.bigint(x).bits() + st.heap.bigint(y).bits()) / 64)?;
            match on_bigint(st.heap.bigint(x), st.heap.bigint(y)) {
                Ok(r) => Ok(Value::bigint(st.heap.new_bigint(r)?)),
                Err(e) => Err(st.throw(ErrorKind::Range, &e.to_string())),
            }
        }
        (None, None) => {
            let x = st.primitive_to_number(a)?;
            let y = st.primitive_to_number(b)?;
            Ok(Value::number(on_number(x, y)))
        }
        _ => Err(st.type_error("Cannot mix BigInt and other types, use explicit conversions")),
    }
}

#[inline(never)]
pub(crate) fn arith(st: &mut State, w: &mut Window, op: Arith, d: u8, a: Value, b: Value) -> Res {
    if a.is_object() || b.is_object() {
        let which = Value::int(op as i32);
        return Err(st.enter_helper(w, Helper::Arith, &[a, b, which], d, FrameFlags::NONE));
    }
    match op {
        Arith::Sub => numeric(st, a, b, |x, y| x - y, bigint::arithmetic::subtract),
        Arith::Mul => {
            if let (Some(x), Some(y)) = (a.as_bigint(), b.as_bigint()) {
                st.burn(bigint::arithmetic::product_cost(st.heap.bigint(x), st.heap.bigint(y)))?;
            }
            numeric(st, a, b, |x, y| x * y, bigint::arithmetic::multiply)
        }
        Arith::Div => numeric(st, a, b, |x, y| x / y, bigint::arithmetic::divide),
        Arith::Mod => numeric(st, a, b, math::remainder, bigint::arithmetic::remainder),
        Arith::Exp => {
            if let (Some(x), Some(y)) = (a.as_bigint(), b.as_bigint()) {
                st.burn(bigint::arithmetic::pow_cost(st.heap.bigint(x), st.heap.bigint(y)))?;
            }
            numeric(st, a, b, math::pow, bigint::arithmetic::pow)
        }
        Arith::BitAnd => numeric(st, a, b, |x, y| f64::from(int32(x) & int32(y)), |x, y| Ok(x & y)),
        Arith::BitOr => numeric(st, a, b, |x, y| f64::from(int32(x) | int32(y)), |x, y| Ok(x | y)),
        Arith::BitXor => numeric(st, a, b, |x, y| f64::from(int32(x) ^ int32(y)), |x, y| Ok(x ^ y)),
        Arith::Shl => {
            numeric(st, a, b, |x, y| f64::from(int32(x) << (uint32(y) & 31)), bigint::arithmetic::shift_left)
        }
        Arith::Shr => {
            numeric(st, a, b, |x, y| f64::from(int32(x) >> (uint32(y) & 31)), bigint::arithmetic::shift_right)
        }
        Arith::UShr => {
            if a.is_bigint() && b.is_bigint() {
                return Err(st.type_error("BigInts have no unsigned right shift, use >> instead"));
            }
            numeric(st, a, b, |x, y| f64::from(uint32(x) >> (uint32(y) & 31)), |x, _| Ok(x.clone()))
        }
    }
}

fn int32(x: f64) -> i32 {
    convert::to_int32(x)
}

fn uint32(x: f64) -> u32 {
    convert::to_uint32(x)
}

#[inline(never)]
pub(crate) fn unary(st: &mut State, w: &mut Window, op: Unary, d: u8, a: Value) -> Res {
    if a.is_object() {
        return Err(st.enter_helper(w, Helper::Unary, &[a, Value::int(op as i32)], d, FrameFlags::NONE));
    }
    if let Some(id) = a.as_bigint() {
        let x = st.heap.bigint(id);
        let r = match op {
            Unary::Plus => return Err(st.type_error("Cannot convert a BigInt value to a number")),
            Unary::Numeric => return Ok(a),
            Unary::Neg => -x,
            Unary::BitNot => !x,
            Unary::Inc => x + 1,
            Unary::Dec => x - 1,
        };
        return Ok(Value::bigint(st.heap.new_bigint(r)?));
    }
    let x = st.primitive_to_number(a)?;
    Ok(match op {
        Unary::Neg => Value::number(-x),
        Unary::Plus | Unary::Numeric => Value::number(x),
        Unary::BitNot => Value::int(!int32(x)),
        Unary::Inc => Value::number(x + 1.0),
        Unary::Dec => Value::number(x - 1.0),
    })
}

/// A comparison's outcome, or that a helper was entered.
#[inline(never)]
pub(crate) fn compare(
    st: &mut State,
    w: &mut Window,
    op: Relation,
    d: u8,
    flags: FrameFlags,
    a: Value,
    b: Value,
) -> Result<bool, Exit> {
    if let (Some(x), Some(y)) = (a.as_number(), b.as_number()) {
        return Ok(relate(op, x.partial_cmp(&y)));
    }
    if let (Some(x), Some(y)) = (a.as_string(), b.as_string()) {
        let order = st.heap.compare_strings(x, y)?;
        return Ok(relate(op, Some(order)));
    }
    if a.is_object() || b.is_object() {
        return Err(st.enter_helper(w, Helper::Compare, &[a, b, Value::int(op as i32)], d, flags));
    }
    let order = st.compare_primitives(a, b)?;
    Ok(relate(op, order))
}

fn relate(op: Relation, order: Option<Ordering>) -> bool {
    match op {
        Relation::Lt => order == Some(Ordering::Less),
        Relation::Le => matches!(order, Some(Ordering::Less | Ordering::Equal)),
        Relation::Gt => order == Some(Ordering::Greater),
        Relation::Ge => matches!(order, Some(Ordering::Greater | Ordering::Equal)),
    }
}

/// `a == b`, or that a helper was entered.
#[inline(never)]
pub(crate) fn loose_equal(
    st: &mut State,
    w: &mut Window,
    d: u8,
    flags: FrameFlags,
    a: Value,
    b: Value,
) -> Result<bool, Exit> {
    let kind = |v: Value| match v.unpack() {
        Unpacked::Undefined | Unpacked::Null | Unpacked::Hole | Unpacked::Internal(_) => 0,
        Unpacked::Bool(_) => 1,
        Unpacked::Int(_) | Unpacked::Double(_) => 2,
        Unpacked::String(_) => 3,
        Unpacked::Symbol(_) => 4,
        Unpacked::BigInt(_) => 5,
        Unpacked::Object(_) => 6,
    };
    let (ka, kb) = (kind(a), kind(b));
    if ka == kb {
        return if ka == 0 { Ok(true) } else { Ok(st.heap.strict_equals(a, b)?) };
    }
    if ka == 0 || kb == 0 {
        return Ok(false);
    }
    if ka == 6 || kb == 6 {
        return Err(st.enter_helper(w, Helper::Equal, &[a, b], d, flags));
    }
    if ka == 4 || kb == 4 {
        return Ok(false);
    }
    Ok(st.compare_primitives(a, b)? == Some(Ordering::Equal))
}

impl State {
    /// An instruction that is executed again after a collection pays for its last attempt only: so what a script costs
    /// does not depend on when garbage is collected.
    #[cold]
    pub(crate) fn repaid(&mut self, exit: Exit, fuel: u64) -> Exit {
        if exit == Exit::Alloc(crate::heap::AllocError::Collect) {
            self.fuel = fuel;
        }
        exit
    }

    /// Charges work that a native does.
    pub(crate) fn burn(&mut self, work: u64) -> Result<(), Exit> {
        match self.fuel.checked_sub(work) {
            Some(left) => {
                self.fuel = left;
                Ok(())
            }
            None => self.burn_reserve(work),
        }
    }

    /// Work beyond the slice is paid for out of the budget: only back edges and calls end a slice.
    #[cold]
    pub(crate) fn burn_reserve(&mut self, work: u64) -> Result<(), Exit> {
        let beyond = work.saturating_sub(self.fuel);
        self.fuel = 0;
        match self.reserve.checked_sub(beyond) {
            Some(left) => {
                self.reserve = left;
                Ok(())
            }
            None => {
                self.reserve = 0;
                Err(Exit::Limit(super::Limit::Instructions))
            }
        }
    }

    /// ToNumber of anything but an object.
    pub(crate) fn primitive_to_number(&mut self, v: Value) -> Result<f64, Exit> {
        Ok(match v.unpack() {
            Unpacked::Int(i) => f64::from(i),
            Unpacked::Double(x) => x,
            Unpacked::Undefined | Unpacked::Hole | Unpacked::Internal(_) | Unpacked::Object(_) => f64::NAN,
            Unpacked::Null | Unpacked::Bool(false) => 0.0,
            Unpacked::Bool(true) => 1.0,
            Unpacked::String(id) => {
                self.heap.flatten(id)?;
                self.burn(u64::from(self.heap.string_length(id)) / 64)?;
                read::string_to_number(text(self.heap.str(id)))
            }
            Unpacked::Symbol(_) => return Err(self.type_error("Cannot convert a Symbol value to a number")),
            Unpacked::BigInt(_) => return Err(self.type_error("Cannot convert a BigInt value to a number")),
        })
    }

    /// ToString of anything but an object.
    pub(crate) fn primitive_to_string(&mut self, v: Value) -> Result<StrId, Exit> {
        let name = match v.unpack() {
            Unpacked::String(id) => return Ok(id),
            Unpacked::Int(i) if (0..10).contains(&i) => return Ok(self.heap.char_string(b'0' + i as u8)),
            Unpacked::Int(i) => {
                let mut buffer = [0; 11];
                return Ok(self.heap.new_latin1(print::integer(i, &mut buffer).as_bytes())?);
            }
            Unpacked::Double(x) => {
                let mut buffer = print::Buffer::new();
                return Ok(self.heap.new_latin1(print::decimal(x, &mut buffer).as_bytes())?);
            }
            Unpacked::BigInt(id) => {
                self.burn(bigint::print_cost(self.heap.bigint(id)))?;
                let digits = self.heap.bigint(id).to_string();
                return Ok(self.heap.new_latin1(digits.as_bytes())?);
            }
            Unpacked::Symbol(_) => return Err(self.type_error("Cannot convert a Symbol value to a string")),
            Unpacked::Null => "null",
            Unpacked::Bool(true) => "true",
            Unpacked::Bool(false) => "false",
            Unpacked::Undefined | Unpacked::Hole | Unpacked::Internal(_) | Unpacked::Object(_) => "undefined",
        };
        Ok(self.heap.intern_str(name)?)
    }

    /// Orders two primitives that are not two strings; nothing if either is NaN.
    fn compare_primitives(&mut self, a: Value, b: Value) -> Result<Option<Ordering>, Exit> {
        match (a.as_bigint(), b.as_bigint()) {
            (Some(x), Some(y)) => Ok(Some(self.heap.bigint(x).cmp(self.heap.bigint(y)))),
            (Some(x), None) => self.compare_bigint(x, b),
            (None, Some(y)) => Ok(self.compare_bigint(y, a)?.map(Ordering::reverse)),
            (None, None) => {
                let x = self.primitive_to_number(a)?;
                let y = self.primitive_to_number(b)?;
                Ok(x.partial_cmp(&y))
            }
        }
    }

    fn compare_bigint(&mut self, x: crate::heap::BigId, other: Value) -> Result<Option<Ordering>, Exit> {
        if let Some(s) = other.as_string() {
            self.heap.flatten(s)?;
            self.burn(bigint::read_cost(self.heap.string_length(s) as usize))?;
            let parsed = bigint::read(text(self.heap.str(s)));
            return Ok(parsed.map(|y| self.heap.bigint(x).cmp(&y)));
        }
        let y = self.primitive_to_number(other)?;
        Ok(bigint::double::compare(self.heap.bigint(x), y))
    }
}

/// The heap's borrowed text in the spelling of the text room.
pub(crate) fn text(s: Str<'_>) -> crate::text::Str<'_> {
    match s {
        Str::Latin1(units) => crate::text::Str::Latin1(units),
        Str::Wide(units) => crate::text::Str::Wide(units),
    }
}
