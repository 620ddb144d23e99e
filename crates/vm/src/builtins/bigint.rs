//! `BigInt`: its conversions, and the two functions that cut it to a number of bits.

use super::number::radix_of;
use super::string::primitives;
use super::{Args, Row, slow};
use crate::code::ErrorKind;
use crate::exec::Window;
use crate::exec::state::{Exit, Res, State};
use crate::heap::{BigId, Class};
use crate::text::bigint;
use crate::text::bigint::arithmetic;
use crate::text::number::print::Radix;
use crate::value::{Unpacked, Value};

pub(super) const ROWS: &[Row] = &[
    ("new BigInt", new_bigint),
    ("BigInt.asIntN", as_int_n),
    ("BigInt.asUintN", as_uint_n),
    ("BigIntAsIntN", as_int_n),
    ("BigIntAsUintN", as_uint_n),
    ("BigInt.prototype.toString", to_string),
    ("BigIntToString", |st, w, a| to_string(st, w, super::string::receiver_first(w, a))),
    ("BigInt.prototype.valueOf", |st, _, a| Ok(Value::bigint(this_bigint(st, a)?))),
    ("PrimitiveToBigInt", |st, w, a| to_bigint(st, a.get(w, 0))),
    ("NumberToBigInt", |st, w, a| number_to_bigint(st, a.get(w, 0))),
];

/// `BigInt(primitive)`; objects and `new` are cases for the JavaScript version.
fn new_bigint(st: &mut State, w: &mut Window, a: Args) -> Res {
    let v = a.get(w, 0);
    if !a.calling.new_target.is_undefined() || v.is_object() {
        return slow();
    }
    if v.is_number() { number_to_bigint(st, v) } else { to_bigint(st, v) }
}

fn number_to_bigint(st: &mut State, v: Value) -> Res {
    let Some(x) = v.as_number() else { return slow() };
    match bigint::double::from_f64(x) {
        Some(n) => Ok(Value::bigint(st.heap.new_bigint(n)?)),
        None => {
            let text = st.describe(v);
            let message =
                format!("The number {text} cannot be converted to a BigInt because it is not an integer");
            Err(st.throw(ErrorKind::Range, &message))
        }
    }
}

/// ToBigInt of a primitive.
fn to_bigint(st: &mut State, v: Value) -> Res {
    match v.unpack() {
        Unpacked::BigInt(_) => Ok(v),
        Unpacked::Bool(b) => Ok(Value::bigint(st.heap.new_bigint(i32::from(b).into())?)),
        Unpacked::String(s) => {
            st.heap.flatten(s)?;
            st.burn(bigint::read_cost(st.heap.string_length(s) as usize))?;
            match bigint::read(st.heap.str(s)) {
                Some(n) => Ok(Value::bigint(st.heap.new_bigint(n)?)),
                None => {
                    let text: String = st.string_text(s).chars().take(100).collect();
                    Err(st.throw(ErrorKind::Syntax, &format!("Cannot convert {text} to a BigInt")))
                }
            }
        }
        Unpacked::Undefined
        | Unpacked::Null
        | Unpacked::Int(_)
        | Unpacked::Double(_)
        | Unpacked::Symbol(_)
        | Unpacked::Object(_)
        | Unpacked::Hole
        | Unpacked::Internal(_) => {
            let text = st.describe(v);
            Err(st.type_error(&format!("Cannot convert {text} to a BigInt")))
        }
    }
}

/// The arguments of `asIntN` and `asUintN`: a small count of bits and a BigInt.
fn cut(w: &Window, a: Args) -> Result<(u64, BigId), Exit> {
    let bits = a.get(w, 0).as_number().filter(|x| (0.0..=9_007_199_254_740_991.0).contains(x));
    let bits = bits.filter(|x| x.trunc() == *x).ok_or(Exit::Slow)?;
    Ok((bits as u64, a.get(w, 1).as_bigint().ok_or(Exit::Slow)?))
}

fn as_int_n(st: &mut State, w: &mut Window, a: Args) -> Res {
    let (bits, value) = cut(w, a)?;
    st.burn(1 + 2 * bigint::limbs(st.heap.bigint(value)))?;
    let result = arithmetic::as_int_n(bits, st.heap.bigint(value));
    Ok(Value::bigint(st.heap.new_bigint(result)?))
}

fn as_uint_n(st: &mut State, w: &mut Window, a: Args) -> Res {
    let (bits, value) = cut(w, a)?;
    st.burn(arithmetic::as_uint_n_cost(bits, st.heap.bigint(value)))?;
    match arithmetic::as_uint_n(bits, st.heap.bigint(value)) {
        Ok(result) => Ok(Value::bigint(st.heap.new_bigint(result)?)),
        Err(error) => Err(st.throw(ErrorKind::Range, &error.to_string())),
    }
}

/// The receiver as a BigInt. Anything else is an error, which the JavaScript version throws.
fn this_bigint(st: &State, a: Args) -> Result<BigId, Exit> {
    if let Some(id) = a.this.as_bigint() {
        return Ok(id);
    }
    let object = a.this.as_object().filter(|&o| st.heap.class(o) == Class::BigInt);
    let inside = object.and_then(|o| st.heap.cell_of(o)).map(|cell| st.heap.cell(cell));
    inside.and_then(Value::as_bigint).ok_or(Exit::Slow)
}

fn to_string(st: &mut State, w: &mut Window, a: Args) -> Res {
    let n = this_bigint(st, a)?;
    primitives(w, a, 1)?;
    let radix = match a.get(w, 0) {
        v if v.is_undefined() => Radix::TEN,
        v => radix_of(st, v)?,
    };
    st.burn(bigint::print_cost(st.heap.bigint(n)))?;
    let text = bigint::print(st.heap.bigint(n), radix);
    Ok(Value::string(st.heap.new_latin1(text.as_bytes())?))
}
