//! `Number`, `Boolean` and the global functions about numbers: primitives go straight through.

use super::string::{flat, integer, primitives};
use super::{Args, Row, slow};
use crate::code::ErrorKind;
use crate::exec::Window;
use crate::exec::state::{Exit, Res, State};
use crate::heap::Class;
use crate::text::bigint;
use crate::text::number::convert::{to_int32, to_integer_or_infinity};
use crate::text::number::print::{self, Radix};
use crate::text::number::{digits, read};
use crate::value::Value;

pub(super) const ROWS: &[Row] = &[
    ("new Number", new_number),
    ("new Boolean", new_boolean),
    ("Number.isFinite", |_, w, a| Ok(Value::bool(a.get(w, 0).as_number().is_some_and(f64::is_finite)))),
    ("Number.isNaN", |_, w, a| Ok(Value::bool(a.get(w, 0).as_number().is_some_and(f64::is_nan)))),
    ("Number.isInteger", |_, w, a| Ok(Value::bool(is_integer(a.get(w, 0))))),
    ("Number.isSafeInteger", |_, w, a| {
        let v = a.get(w, 0);
        Ok(Value::bool(is_integer(v) && v.as_number().is_some_and(|x| x.abs() <= 9_007_199_254_740_991.0)))
    }),
    ("Number.prototype.toString", to_string),
    ("Number.prototype.toFixed", to_fixed),
    ("Number.prototype.toExponential", to_exponential),
    ("Number.prototype.toPrecision", to_precision),
    ("Number.prototype.valueOf", |st, _, a| Ok(Value::number(this_number(st, a)?))),
    ("NumberToString", |st, w, a| to_string(st, w, super::string::receiver_first(w, a))),
    ("NumberToFixed", |st, w, a| to_fixed(st, w, super::string::receiver_first(w, a))),
    ("NumberToExponential", |st, w, a| to_exponential(st, w, super::string::receiver_first(w, a))),
    ("NumberToPrecision", |st, w, a| to_precision(st, w, super::string::receiver_first(w, a))),
    ("BigIntToNumber", bigint_to_number),
    ("Boolean.prototype.toString", |st, _, a| {
        let truth = this_boolean(st, a)?;
        Ok(Value::string(st.heap.intern_str(if truth { "true" } else { "false" })?))
    }),
    ("Boolean.prototype.valueOf", |st, _, a| Ok(Value::bool(this_boolean(st, a)?))),
    ("global.parseInt", parse_int),
    ("global.parseFloat", parse_float),
    ("global.isNaN", |st, w, a| Ok(Value::bool(primitive_number(st, w, a)?.is_nan()))),
    ("global.isFinite", |st, w, a| Ok(Value::bool(primitive_number(st, w, a)?.is_finite()))),
    ("ParseInt", parse_int),
    ("ParseFloat", parse_float),
];

fn is_integer(v: Value) -> bool {
    v.is_int() || v.as_number().is_some_and(|x| x.is_finite() && x.trunc() == x)
}

/// ToNumber of the first argument.
fn primitive_number(st: &mut State, w: &Window, a: Args) -> Result<f64, Exit> {
    primitives(w, a, 1)?;
    st.primitive_to_number(a.get(w, 0))
}

/// `Number(primitive)`; objects and `new` are cases for the JavaScript version.
fn new_number(st: &mut State, w: &mut Window, a: Args) -> Res {
    let v = a.get(w, 0);
    if !a.calling.new_target.is_undefined() || v.is_object() {
        return slow();
    }
    if a.argc == 0 {
        return Ok(Value::ZERO);
    }
    if v.is_bigint() {
        return bigint_to_number(st, w, a);
    }
    Ok(Value::number(st.primitive_to_number(v)?))
}

fn bigint_to_number(st: &mut State, w: &mut Window, a: Args) -> Res {
    let Some(id) = a.get(w, 0).as_bigint() else { return slow() };
    Ok(Value::number(bigint::double::to_f64(st.heap.bigint(id))))
}

/// `Boolean(v)`; `new` is a case for the JavaScript version.
fn new_boolean(st: &mut State, w: &mut Window, a: Args) -> Res {
    if a.calling.new_target.is_undefined() { Ok(Value::bool(st.heap.truthy(a.get(w, 0)))) } else { slow() }
}

/// The primitive inside an object of a class.
fn inside(st: &State, v: Value, class: Class) -> Option<Value> {
    let object = v.as_object().filter(|&o| st.heap.class(o) == class)?;
    st.heap.cell_of(object).map(|cell| st.heap.cell(cell))
}

/// The receiver as a number. Anything else is an error, which the JavaScript version throws.
fn this_number(st: &State, a: Args) -> Result<f64, Exit> {
    let number = a.this.as_number().or_else(|| inside(st, a.this, Class::Number)?.as_number());
    number.ok_or(Exit::Slow)
}

fn this_boolean(st: &State, a: Args) -> Result<bool, Exit> {
    let truth = a.this.as_bool().or_else(|| inside(st, a.this, Class::Boolean)?.as_bool());
    truth.ok_or(Exit::Slow)
}

/// What printing a number takes at most, in the interpreter's units.
const PRINTING: u64 = 40;

fn printed(st: &mut State, text: Result<String, digits::DigitsError>) -> Res {
    match text {
        Ok(text) => Ok(Value::string(st.heap.new_string(&text)?)),
        Err(error) => Err(st.throw(ErrorKind::Range, &error.to_string())),
    }
}

fn to_string(st: &mut State, w: &mut Window, a: Args) -> Res {
    let x = this_number(st, a)?;
    let radix = a.get(w, 0);
    if radix.is_undefined() || radix.as_int() == Some(10) {
        return Ok(Value::string(st.primitive_to_string(Value::number(x))?));
    }
    primitives(w, a, 1)?;
    let radix = radix_of(st, radix)?;
    st.burn(PRINTING)?;
    printed(st, Ok(print::radix(x, radix)))
}

/// A radix argument that is there.
pub(super) fn radix_of(st: &mut State, v: Value) -> Result<Radix, Exit> {
    let radix = integer(st, v)?;
    let valid = (2.0..=36.0).contains(&radix).then(|| Radix::new(radix as u32)).flatten();
    valid.ok_or_else(|| st.throw(ErrorKind::Range, "toString() radix argument must be between 2 and 36"))
}

fn to_fixed(st: &mut State, w: &mut Window, a: Args) -> Res {
    let x = this_number(st, a)?;
    primitives(w, a, 1)?;
    let places = integer(st, a.get(w, 0))?;
    st.burn(PRINTING)?;
    printed(st, digits::to_fixed(x, places))
}

fn to_exponential(st: &mut State, w: &mut Window, a: Args) -> Res {
    let x = this_number(st, a)?;
    primitives(w, a, 1)?;
    let places = match a.get(w, 0) {
        v if v.is_undefined() => None,
        v => Some(integer(st, v)?),
    };
    st.burn(PRINTING)?;
    printed(st, digits::to_exponential(x, places))
}

fn to_precision(st: &mut State, w: &mut Window, a: Args) -> Res {
    let x = this_number(st, a)?;
    primitives(w, a, 1)?;
    if a.get(w, 0).is_undefined() {
        return Ok(Value::string(st.primitive_to_string(Value::number(x))?));
    }
    let precision = integer(st, a.get(w, 0))?;
    st.burn(PRINTING)?;
    printed(st, digits::to_precision(x, precision))
}

fn parse_int(st: &mut State, w: &mut Window, a: Args) -> Res {
    primitives(w, a, 2)?;
    let (v, radix) = (a.get(w, 0), a.get(w, 1));
    if v.is_int() && (radix.is_undefined() || radix.as_int() == Some(10)) {
        return Ok(v);
    }
    let text = flat(st, v)?;
    let radix = to_int32(st.primitive_to_number(radix)?);
    st.burn(read::cost(st.heap.string_length(text) as usize))?;
    Ok(Value::number(read::parse_int(st.heap.str(text), radix)))
}

fn parse_float(st: &mut State, w: &mut Window, a: Args) -> Res {
    primitives(w, a, 1)?;
    let v = a.get(w, 0);
    // Every number but minus zero, whose text has no sign, reads back as itself.
    if let Some(x) = v.as_number() {
        return Ok(Value::number(if x == 0.0 { to_integer_or_infinity(x).abs() } else { x }));
    }
    let text = flat(st, v)?;
    st.burn(read::cost(st.heap.string_length(text) as usize))?;
    Ok(Value::number(read::parse_float(st.heap.str(text))))
}
