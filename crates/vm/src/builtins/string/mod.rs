//! `String`: what a string and primitive arguments need goes straight through; `string.js` converts everything else first.
//!
//! * here: the table, conversions, single units and searches
//! * `part` parts of a string · `build` new strings made of others

mod build;
mod part;

pub(super) use build::{enough, grown, listed, room};

use super::original::native_number;
use super::{Args, Row};
use crate::code::ErrorKind;
use crate::exec::state::{Exit, Res, State};
use crate::exec::{Proto, Window};
use crate::heap::{Class, Flags, Key, Str, StrId, atoms, symbols};
use crate::text::number::convert::to_integer_or_infinity;
use crate::text::unicode::{self, Form, collate};
use crate::text::{Text, linear_cost, search};
use crate::value::Value;
use std::sync::LazyLock;

macro_rules! rows {
    ($($qualified:literal $intrinsic:literal $f:path,)*) => {
        &[$(($qualified, $f), ($intrinsic, |st, w, a| { let a = receiver_first(w, a); $f(st, w, a) })),*]
    };
}

/// Each method twice: as its fast path, and for `string.js` to call with the receiver as first argument.
pub(super) const METHODS: &[Row] = rows! {
    "String.prototype.at" "StringAt" at,
    "String.prototype.charAt" "StringCharAt" char_at,
    "String.prototype.charCodeAt" "StringCharCodeAt" char_code_at,
    "String.prototype.codePointAt" "StringCodePointAt" code_point_at,
    "String.prototype.concat" "StringConcat" build::concat,
    "String.prototype.endsWith" "StringEndsWith" ends_with,
    "String.prototype.includes" "StringIncludes" includes,
    "String.prototype.indexOf" "StringIndexOf" index_of,
    "String.prototype.isWellFormed" "StringIsWellFormed" is_well_formed,
    "String.prototype.lastIndexOf" "StringLastIndexOf" last_index_of,
    "String.prototype.localeCompare" "StringLocaleCompare" locale_compare,
    "String.prototype.normalize" "StringNormalize" normalize,
    "String.prototype.padEnd" "StringPadEnd" build::pad_end,
    "String.prototype.padStart" "StringPadStart" build::pad_start,
    "String.prototype.repeat" "StringRepeat" build::repeat,
    "String.prototype.replace" "StringReplace" build::replace,
    "String.prototype.replaceAll" "StringReplaceAll" build::replace_all,
    "String.prototype.slice" "StringSlice" part::slice,
    "String.prototype.split" "StringSplit" part::split,
    "String.prototype.startsWith" "StringStartsWith" starts_with,
    "String.prototype.substr" "StringSubstr" part::substr,
    "String.prototype.substring" "StringSubstring" part::substring,
    "String.prototype.toLowerCase" "StringToLowerCase" to_lower_case,
    "String.prototype.toString" "StringValue" value_of,
    "String.prototype.toUpperCase" "StringToUpperCase" to_upper_case,
    "String.prototype.toWellFormed" "StringToWellFormed" to_well_formed,
    "String.prototype.trim" "StringTrim" part::trim,
    "String.prototype.trimEnd" "StringTrimEnd" part::trim_end,
    "String.prototype.trimStart" "StringTrimStart" part::trim_start,
    "String.prototype.valueOf" "StringValueOf" value_of,
    "StringIterator.prototype.next" "StringIteratorNext" iterator_next,
};

/// What is not a method of strings.
pub(super) const FUNCTIONS: &[Row] = &[
    ("new String", new_string),
    ("String.fromCharCode", build::from_char_code),
    ("String.fromCodePoint", build::from_code_point),
    ("StringFromCharCode", build::from_char_code),
    ("StringFromCodePoint", build::from_code_point),
    ("StringExpand", build::expand),
    ("String.prototype[Symbol.iterator]", iterator),
    ("String.prototype.match", super::regexp::string_match),
    ("String.prototype.matchAll", super::regexp::string_match_all),
    ("String.prototype.search", super::regexp::string_search),
    ("SymbolText", symbol_text),
];

/// An intrinsic's arguments as those of a method: the first one is the receiver.
pub(super) fn receiver_first(w: &Window, a: Args) -> Args {
    Args { this: a.get(w, 0), first: a.first.saturating_add(1), argc: a.argc.saturating_sub(1), ..a }
}

/// The receiver, flat. Anything but a string is a case for the JavaScript version.
pub(super) fn receiver(st: &mut State, a: Args) -> Result<StrId, Exit> {
    let s = a.this.as_string().ok_or(Exit::Slow)?;
    st.heap.flatten(s)?;
    Ok(s)
}

/// Leaves a call with objects among its first arguments to the JavaScript version.
pub(super) fn primitives(w: &Window, a: Args, count: u32) -> Result<(), Exit> {
    if (0..count).any(|n| a.get(w, n).is_object()) { Err(Exit::Slow) } else { Ok(()) }
}

/// ToIntegerOrInfinity of a primitive.
pub(super) fn integer(st: &mut State, v: Value) -> Result<f64, Exit> {
    match v.as_int() {
        Some(i) => Ok(f64::from(i)),
        None => Ok(to_integer_or_infinity(st.primitive_to_number(v)?)),
    }
}

/// The same within a text's length.
pub(super) fn position(st: &mut State, v: Value, len: usize) -> Result<usize, Exit> {
    Ok(integer(st, v)?.clamp(0.0, len as f64) as usize)
}

/// ToString of a primitive, flat.
pub(super) fn flat(st: &mut State, v: Value) -> Result<StrId, Exit> {
    let s = st.primitive_to_string(v)?;
    st.heap.flatten(s)?;
    Ok(s)
}

/// A place of one unit; none outside of the text.
fn place(st: &mut State, w: &Window, a: Args) -> Result<(StrId, Option<usize>), Exit> {
    let s = receiver(st, a)?;
    primitives(w, a, 1)?;
    let at = integer(st, a.get(w, 0))?;
    let len = st.heap.string_length(s);
    Ok((s, (at >= 0.0 && at < f64::from(len)).then_some(at as usize)))
}

fn at(st: &mut State, w: &mut Window, a: Args) -> Res {
    let s = receiver(st, a)?;
    primitives(w, a, 1)?;
    let (at, len) = (integer(st, a.get(w, 0))?, f64::from(st.heap.string_length(s)));
    let at = if at < 0.0 { len + at } else { at };
    if !(0.0..len).contains(&at) {
        return Ok(Value::UNDEFINED);
    }
    unit_at(st, s, at as usize)
}

fn unit_at(st: &mut State, s: StrId, at: usize) -> Res {
    match st.heap.str(s).get(at) {
        Some(unit) => Ok(Value::string(st.heap.unit_string(unit)?)),
        None => Ok(Value::string(atoms::EMPTY)),
    }
}

fn char_at(st: &mut State, w: &mut Window, a: Args) -> Res {
    match place(st, w, a)? {
        (s, Some(at)) => unit_at(st, s, at),
        (_, None) => Ok(Value::string(atoms::EMPTY)),
    }
}

fn char_code_at(st: &mut State, w: &mut Window, a: Args) -> Res {
    let (s, at) = place(st, w, a)?;
    let unit = at.and_then(|at| st.heap.str(s).get(at));
    Ok(unit.map_or(Value::NAN, |unit| Value::int(i32::from(unit))))
}

fn code_point_at(st: &mut State, w: &mut Window, a: Args) -> Res {
    let (s, at) = place(st, w, a)?;
    let point = at.and_then(|at| st.heap.str(s).code_point(at));
    Ok(point.map_or(Value::UNDEFINED, |(point, _)| Value::uint(point)))
}

/// The receiver, what is searched in it, and their lengths; pays for one pass.
fn searching(st: &mut State, w: &Window, a: Args) -> Result<(StrId, StrId, usize), Exit> {
    let s = receiver(st, a)?;
    primitives(w, a, 2)?;
    let needle = flat(st, a.get(w, 0))?;
    let len = st.heap.string_length(s) as usize;
    st.burn(linear_cost(len) + u64::from(st.heap.string_length(needle)) / 16)?;
    Ok((s, needle, len))
}

fn index_of(st: &mut State, w: &mut Window, a: Args) -> Res {
    let (s, needle, len) = searching(st, w, a)?;
    let from = position(st, a.get(w, 1), len)?;
    let found = search::find(st.heap.str(s), st.heap.str(needle), from);
    Ok(found.map_or(Value::int(-1), |at| Value::uint(at as u32)))
}

fn last_index_of(st: &mut State, w: &mut Window, a: Args) -> Res {
    let (s, needle, len) = searching(st, w, a)?;
    let from = st.primitive_to_number(a.get(w, 1))?;
    let from = if from.is_nan() { len } else { to_integer_or_infinity(from).clamp(0.0, len as f64) as usize };
    let found = search::find_last(st.heap.str(s), st.heap.str(needle), from);
    Ok(found.map_or(Value::int(-1), |at| Value::uint(at as u32)))
}

fn includes(st: &mut State, w: &mut Window, a: Args) -> Res {
    let (s, needle, len) = searching(st, w, a)?;
    let from = position(st, a.get(w, 1), len)?;
    Ok(Value::bool(search::find(st.heap.str(s), st.heap.str(needle), from).is_some()))
}

fn starts_with(st: &mut State, w: &mut Window, a: Args) -> Res {
    let (s, needle, len) = prefix(st, w, a)?;
    let from = position(st, a.get(w, 1), len)?;
    Ok(Value::bool(search::stands_at(st.heap.str(s), st.heap.str(needle), from)))
}

fn ends_with(st: &mut State, w: &mut Window, a: Args) -> Res {
    let (s, needle, len) = prefix(st, w, a)?;
    let end = match a.get(w, 1) {
        v if v.is_undefined() => len,
        v => position(st, v, len)?,
    };
    let from = end.checked_sub(st.heap.string_length(needle) as usize);
    Ok(Value::bool(from.is_some_and(|from| search::stands_at(st.heap.str(s), st.heap.str(needle), from))))
}

/// As [`searching`], but only as much of the text is looked at as the needle is long.
fn prefix(st: &mut State, w: &Window, a: Args) -> Result<(StrId, StrId, usize), Exit> {
    let s = receiver(st, a)?;
    primitives(w, a, 2)?;
    let needle = flat(st, a.get(w, 0))?;
    st.burn(linear_cost(st.heap.string_length(needle) as usize))?;
    Ok((s, needle, st.heap.string_length(s) as usize))
}

fn is_well_formed(st: &mut State, _w: &mut Window, a: Args) -> Res {
    let s = receiver(st, a)?;
    st.burn(linear_cost(st.heap.string_length(s) as usize))?;
    Ok(Value::bool(unicode::is_well_formed(st.heap.str(s))))
}

fn to_well_formed(st: &mut State, _w: &mut Window, a: Args) -> Res {
    let s = receiver(st, a)?;
    st.burn(linear_cost(st.heap.string_length(s) as usize))?;
    match unicode::to_well_formed(st.heap.str(s)) {
        Some(text) => Ok(Value::string(st.heap.new_str(text.as_str())?)),
        None => Ok(Value::string(s)),
    }
}

fn to_lower_case(st: &mut State, _w: &mut Window, a: Args) -> Res {
    change_case(st, a, unicode::to_lower_case)
}

fn to_upper_case(st: &mut State, _w: &mut Window, a: Args) -> Res {
    change_case(st, a, unicode::to_upper_case)
}

fn change_case(st: &mut State, a: Args, change: fn(Str<'_>) -> Text) -> Res {
    let s = receiver(st, a)?;
    let text = st.heap.str(s);
    st.burn(unicode::case_cost(text))?;
    // Only ASCII stays as long and as narrow as it was.
    let growth = match st.heap.str(s) {
        Str::Latin1(bytes) if bytes.is_ascii() => 1,
        Str::Latin1(_) | Str::Wide(_) => 2 * unicode::MAX_CASE_GROWTH,
    };
    build::room(st, st.heap.string_length(s) as usize * growth)?;
    let changed = change(st.heap.str(s));
    if changed.as_str() == st.heap.str(s) {
        return Ok(Value::string(s));
    }
    Ok(Value::string(st.heap.new_str(changed.as_str())?))
}

fn normalize(st: &mut State, w: &mut Window, a: Args) -> Res {
    let s = receiver(st, a)?;
    primitives(w, a, 1)?;
    let form = match a.get(w, 0) {
        v if v.is_undefined() => Some(Form::Nfc),
        v => {
            let name = flat(st, v)?;
            Form::named(st.heap.str(name))
        }
    };
    let Some(form) = form else {
        return Err(
            st.throw(ErrorKind::Range, "The normalization form should be one of NFC, NFD, NFKC, NFKD.")
        );
    };
    st.burn(unicode::normalize_cost(st.heap.str(s), form))?;
    build::room(st, st.heap.string_length(s) as usize * form.max_growth())?;
    match unicode::normalize(st.heap.str(s), form) {
        Some(text) => Ok(Value::string(st.heap.new_str(text.as_str())?)),
        None => Ok(Value::string(s)),
    }
}

fn locale_compare(st: &mut State, w: &mut Window, a: Args) -> Res {
    let s = receiver(st, a)?;
    primitives(w, a, 3)?;
    if !a.get(w, 1).is_undefined() || !a.get(w, 2).is_undefined() {
        return super::slow();
    }
    let other = flat(st, a.get(w, 0))?;
    compare(st, s, other, collate::Options::ENGLISH)
}

fn compare(st: &mut State, left: StrId, right: StrId, options: collate::Options) -> Res {
    st.burn(collate::cost(st.heap.str(left), st.heap.str(right), options))?;
    let order = collate::compare(st.heap.str(left), st.heap.str(right), options);
    Ok(Value::int(order as i32))
}

/// A string, or the one inside a String object.
fn value_of(st: &mut State, _w: &mut Window, a: Args) -> Res {
    if a.this.is_string() {
        return Ok(a.this);
    }
    let inside = a.this.as_object().filter(|&o| st.heap.class(o) == Class::String);
    inside.and_then(|o| st.heap.cell_of(o)).map(|cell| st.heap.cell(cell)).ok_or(Exit::Slow)
}

/// `String(primitive)`; symbols, objects and `new` are cases for the JavaScript version.
fn new_string(st: &mut State, w: &mut Window, a: Args) -> Res {
    let v = a.get(w, 0);
    if !a.calling.new_target.is_undefined() || v.is_object() || v.is_symbol() {
        return super::slow();
    }
    if a.argc == 0 {
        return Ok(Value::string(atoms::EMPTY));
    }
    Ok(Value::string(st.primitive_to_string(v)?))
}

/// `%SymbolText(symbol)`: `Symbol(description)`.
fn symbol_text(st: &mut State, w: &mut Window, a: Args) -> Res {
    let Some(symbol) = a.get(w, 0).as_symbol() else { return super::slow() };
    let (open, close) = (st.heap.intern_str("Symbol(")?, st.heap.char_string(b')'));
    let description = st.heap.symbol_description(symbol).unwrap_or(atoms::EMPTY);
    let head = st.heap.concat(open, description)?;
    Ok(Value::string(st.heap.concat(head, close)?))
}

/// A string iterator; its fields are the string and the position.
fn iterator(st: &mut State, _w: &mut Window, a: Args) -> Res {
    if !a.this.is_string() {
        return super::slow();
    }
    let shape = st.heap.root_shape(Some(st.realm.proto(Proto::StringIterator)))?;
    let fields = [a.this, Value::ZERO];
    let object = st.heap.new_object_with_slots(shape, Class::StringIterator, Flags::NONE, &fields)?;
    Ok(Value::object(object))
}

/// Whether iterating over a string is the same as walking its code points: nobody has changed how it is done.
pub(crate) fn iterates_plainly(st: &State) -> bool {
    static ORIGINALS: LazyLock<(i32, i32)> = LazyLock::new(|| {
        (native_number("String.prototype[Symbol.iterator]"), native_number("StringIterator.prototype.next"))
    });
    let (iterator, next) = *ORIGINALS;
    st.has_original(st.realm.string_prototype, Key::symbol(symbols::ITERATOR), iterator)
        && st.has_original(st.realm.proto(Proto::StringIterator), Key::atom(atoms::NEXT), next)
}

/// The next code point of a string iterator; its fields are the string and the position.
fn iterator_next(st: &mut State, _w: &mut Window, a: Args) -> Res {
    let record = a.this.as_object().filter(|&o| st.heap.class(o) == Class::StringIterator);
    let Some(record) = record.and_then(|o| st.heap.slots_of(o)) else { return super::slow() };
    let &[text, at, ..] = st.heap.slots(record) else { return super::slow() };
    let (Some(s), Some(at)) = (text.as_string(), at.as_int()) else {
        return st.iter_result(Value::UNDEFINED, true);
    };
    st.heap.flatten(s)?;
    let Some((_, len)) = st.heap.str(s).code_point(at as usize) else {
        let result = st.iter_result(Value::UNDEFINED, true)?;
        st.heap.slots_mut(record)[0] = Value::UNDEFINED;
        return Ok(result);
    };
    let part = st.heap.substring(s, at as u32, at as u32 + len as u32)?;
    let result = st.iter_result(Value::string(part), false)?;
    st.heap.slots_mut(record)[1] = Value::int(at + len as i32);
    Ok(result)
}
