//! `Array` on dense arrays whose every element is there: whatever needs a conversion, a hole, a species or guest code is left
//! to `array.js`.

use super::{Args, Row, slow};
use crate::code::ErrorKind;
use crate::exec::Window;
use crate::exec::object::array_push;
use crate::exec::state::{Exit, Res, State};
use crate::heap::{Attrs, Class, Descriptor, Flags, Found, Key, ObjId, Own, atoms, symbols};
use crate::value::Value;

pub(super) const ROWS: &[Row] = &[
    ("new Array", construct),
    ("Array.from", from),
    ("Array.isArray", is_array),
    ("get Array[Symbol.species]", |_, _, a| Ok(a.this)),
    ("Array.prototype.at", at),
    ("Array.prototype.concat", concat),
    ("Array.prototype.fill", fill),
    ("Array.prototype.includes", |st, w, a| search(st, w, a, Search::Includes)),
    ("Array.prototype.indexOf", |st, w, a| search(st, w, a, Search::IndexOf)),
    ("Array.prototype.pop", pop),
    ("Array.prototype.push", push),
    ("Array.prototype.reverse", reverse),
    ("Array.prototype.shift", shift),
    ("Array.prototype.slice", slice),
    ("Array.prototype.splice", splice),
    ("Array.prototype.toReversed", to_reversed),
    ("Array.prototype.unshift", unshift),
    ("Array.prototype.with", with),
    ("Array.prototype.entries", |st, _, a| iterator(st, a, ENTRIES)),
    ("Array.prototype.keys", |st, _, a| iterator(st, a, KEYS)),
    ("Array.prototype.values", |st, _, a| iterator(st, a, VALUES)),
    ("%ArrayIteratorPrototype%.next", next),
    ("ArrayWithPrototype", array_with_prototype),
    ("SetLength", set_length),
    ("Put", put),
    ("PlainList", plain_list),
    ("PutAll", put_all),
    ("IsSimple", |st, w, a| Ok(Value::bool(a.get(w, 0).as_array().is_some_and(|o| is_simple(st, o))))),
    ("Unscopables", unscopables),
    ("ArrayIntrinsics", array_intrinsics),
    ("IterationIntrinsics", iteration_intrinsics),
];

/// What an array iterator answers: the third field of its record.
const VALUES: Value = Value::int(0);
const KEYS: Value = Value::int(1);
const ENTRIES: Value = Value::int(2);

/// The elements of `this` if it is an array of which every element is there.
pub(super) fn packed(st: &State, v: Value) -> Option<(ObjId, &[Value])> {
    let array = v.as_array()?;
    Some((array, st.heap.packed(array)?))
}

/// Whether only `Array.prototype` and `Object.prototype` are behind the array: reading a hole runs no trap.
pub(super) fn is_simple(st: &State, array: ObjId) -> bool {
    let prototype = st.realm.array_prototype;
    st.heap.prototype(array) == Some(prototype)
        && st.heap.prototype(prototype) == Some(st.realm.object_prototype)
}

impl State {
    /// Whether adding an element to the array meets no setter on the way up.
    pub(crate) fn can_add_elements(&mut self, array: ObjId) -> bool {
        is_simple(self, array)
            && self.heap.index_free([self.realm.array_prototype, self.realm.object_prototype])
    }
}

/// Whether ArraySpeciesCreate makes a plain array.
fn plain_species(st: &State, array: ObjId) -> bool {
    let constructor = st.realm.array_constructor;
    let Some(function) = constructor.as_object() else { return false };
    st.heap.get(array, Key::atom(atoms::CONSTRUCTOR)) == Found::Data(constructor)
        && matches!(st.heap.get_own(function, Key::symbol(symbols::SPECIES)),
            Own::Accessor { get, .. } if get == st.realm.array_species)
}

/// A position argument counted from the end if negative, inside `0..=n`. Only integers; the rest is converted in JavaScript.
pub(super) fn place(v: Value, n: usize, missing: usize) -> Result<usize, Exit> {
    if v.is_undefined() {
        return Ok(missing);
    }
    let Some(i) = v.as_int() else { return Err(Exit::Slow) };
    let i = i as isize;
    Ok(if i < 0 { n.saturating_sub(i.unsigned_abs()) } else { (i as usize).min(n) })
}

/// All arguments, unless there are too many for registers.
fn arguments<'w>(args: &Args, w: &'w Window) -> Result<&'w [Value], Exit> {
    let all = args.all(w);
    if all.len() == args.argc as usize { Ok(all) } else { Err(Exit::Slow) }
}

fn new_array(st: &mut State, values: &[Value]) -> Res {
    st.burn(values.len() as u64 / 4)?;
    Ok(Value::array(st.heap.new_array(st.realm.array_shape, values)?))
}

/// A new array with a part of another's elements.
fn copy(st: &mut State, array: ObjId, start: usize, end: usize) -> Res {
    st.burn(end.saturating_sub(start) as u64 / 4)?;
    Ok(Value::array(st.heap.new_array_from(st.realm.array_shape, array, start, end)?))
}

fn construct(st: &mut State, w: &mut Window, args: Args) -> Res {
    let target = args.calling.new_target;
    if !target.is_undefined() && target != st.realm.array_constructor {
        return slow();
    }
    let items = arguments(&args, w)?;
    match items {
        [length] if length.is_number() => {
            let length = length.as_int().and_then(|n| u32::try_from(n).ok()).ok_or(Exit::Slow)?;
            let array = st.heap.new_array(st.realm.array_shape, &[])?;
            st.heap.set_array_length(array, length)?;
            Ok(Value::array(array))
        }
        items => new_array(st, items),
    }
}

/// A copy of an array that iterates as arrays do, made by `Array` itself.
fn from(st: &mut State, w: &mut Window, args: Args) -> Res {
    let source = args.get(w, 0);
    let plain = args.this == st.realm.array_constructor && args.get(w, 1).is_undefined();
    if !plain || !crate::exec::iterates_plainly(st, source) {
        return slow();
    }
    let Some((array, values)) = packed(st, source) else { return slow() };
    let n = values.len();
    copy(st, array, 0, n)
}

fn is_array(st: &mut State, w: &mut Window, args: Args) -> Res {
    match args.get(w, 0).as_object().map(|o| st.heap.class(o)) {
        Some(Class::Proxy) => slow(),
        class => Ok(Value::bool(class == Some(Class::Array))),
    }
}

fn at(st: &mut State, w: &mut Window, args: Args) -> Res {
    let (Some(array), Some(index)) = (args.this.as_array(), args.get(w, 0).as_int()) else { return slow() };
    let length = i64::from(st.heap.array_length(array));
    let index = i64::from(index);
    let index = if index < 0 { index + length } else { index };
    match u32::try_from(index) {
        Ok(i) if index < length => st.heap.array_get(array, i).ok_or(Exit::Slow),
        _ => Ok(Value::UNDEFINED),
    }
}

fn concat(st: &mut State, w: &mut Window, args: Args) -> Res {
    let Some((array, values)) = packed(st, args.this) else { return slow() };
    let mut total = values.len();
    for &item in arguments(&args, w)? {
        total += match item.as_object() {
            None => 1,
            Some(o) if item.is_array() => {
                if !spreads_as_usual(st, o) {
                    return slow();
                }
                st.heap.packed(o).ok_or(Exit::Slow)?.len()
            }
            Some(o) if spreads_as_usual(st, o) && st.heap.class(o) != Class::Proxy => 1,
            Some(_) => return slow(),
        };
    }
    if !spreads_as_usual(st, array) || !plain_species(st, array) {
        return slow();
    }
    st.burn(total as u64 / 4)?;
    let made = st.heap.new_array_with_capacity(st.realm.array_shape, total as u32)?;
    st.heap.append_elements(made, array);
    for n in 0..args.argc {
        let item = args.get(w, n);
        match item.as_array() {
            Some(o) => st.heap.append_elements(made, o),
            None => array_push(st, Value::array(made), item)?,
        }
    }
    Ok(Value::array(made))
}

/// Whether nobody has set `Symbol.isConcatSpreadable` for the object.
fn spreads_as_usual(st: &State, o: ObjId) -> bool {
    st.heap.get(o, Key::symbol(symbols::IS_CONCAT_SPREADABLE)) == Found::Absent
}

fn fill(st: &mut State, w: &mut Window, args: Args) -> Res {
    let Some((array, values)) = packed(st, args.this) else { return fill_declared(st, w, args) };
    let n = values.len();
    let (start, end) = (place(args.get(w, 1), n, 0)?, place(args.get(w, 2), n, n)?);
    st.burn(end.saturating_sub(start) as u64 / 4)?;
    let value = args.get(w, 0);
    if let Some(range) = st.heap.dense_mut(array).and_then(|values| values.get_mut(start..end)) {
        range.fill(value);
    }
    Ok(args.this)
}

/// `new Array(n).fill(v)`: all holes, filled from the beginning.
fn fill_declared(st: &mut State, w: &Window, args: Args) -> Res {
    let Some(array) = args.this.as_array() else { return slow() };
    let all = args.get(w, 1).is_undefined() && args.get(w, 2).is_undefined();
    let length = st.heap.array_length(array);
    if !all || length > MOST_DENSE || !st.can_add_elements(array) {
        return slow();
    }
    st.burn(u64::from(length) / 4)?;
    match st.heap.fill_elements(array, args.get(w, 0))? {
        true => Ok(args.this),
        false => slow(),
    }
}

/// A declared length that is worth taking seriously.
const MOST_DENSE: u32 = 1 << 25;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Search {
    IndexOf,
    Includes,
}

fn search(st: &mut State, w: &mut Window, args: Args, how: Search) -> Res {
    let Some((array, values)) = packed(st, args.this) else { return slow() };
    let wanted = args.get(w, 0);
    let n = values.len();
    let start = place(args.get(w, 1), n, 0)?;
    let found = if wanted.is_string() || wanted.is_number() || wanted.is_bigint() {
        st.burn((n - start) as u64 / 2)?;
        let mut found = None;
        for i in start..n {
            let Some(v) = st.heap.array_get(array, i as u32) else { break };
            let same = match how {
                Search::IndexOf => st.heap.strict_equals(v, wanted)?,
                Search::Includes => st.heap.same_value_zero(v, wanted)?,
            };
            if same {
                found = Some(i);
                break;
            }
        }
        found
    } else {
        // Everything else is equal to itself only.
        let found = values.get(start..).and_then(|v| v.iter().position(|&v| v == wanted)).map(|i| i + start);
        st.burn((found.unwrap_or(n).saturating_sub(start)) as u64 / 8)?;
        found
    };
    Ok(match how {
        Search::IndexOf => found.map_or(Value::int(-1), |i| Value::uint(i as u32)),
        Search::Includes => Value::bool(found.is_some()),
    })
}

fn pop(st: &mut State, _w: &mut Window, args: Args) -> Res {
    let Some(array) = args.this.as_array() else { return slow() };
    match st.heap.array_pop(array) {
        Some(v) => Ok(v),
        None if st.heap.array_length(array) == 0 && !st.heap.is_length_read_only(array) => {
            Ok(Value::UNDEFINED)
        }
        None => slow(),
    }
}

fn push(st: &mut State, w: &mut Window, args: Args) -> Res {
    let Some(array) = args.this.as_array() else { return slow() };
    if !st.can_add_elements(array) {
        return slow();
    }
    if args.argc == 1 {
        return match st.heap.array_push(array, args.get(w, 0))? {
            true => Ok(Value::uint(st.heap.array_length(array))),
            false => slow(),
        };
    }
    let items = arguments(&args, w)?;
    st.burn(items.len() as u64)?;
    let length = st.heap.array_length(array);
    match st.heap.splice_elements(array, length, 0, items)? {
        true => Ok(Value::uint(st.heap.array_length(array))),
        false => slow(),
    }
}

fn reverse(st: &mut State, _w: &mut Window, args: Args) -> Res {
    let Some((array, values)) = packed(st, args.this) else { return slow() };
    let n = values.len() as u64;
    st.burn(n / 4)?;
    if let Some(values) = st.heap.dense_mut(array) {
        values.reverse();
    }
    Ok(args.this)
}

fn shift(st: &mut State, _w: &mut Window, args: Args) -> Res {
    let Some(array) = args.this.as_array() else { return slow() };
    if st.heap.array_length(array) == 0 && !st.heap.is_length_read_only(array) {
        return Ok(Value::UNDEFINED);
    }
    // A hole later on would be moved like an element, and that is right only if nothing shines through it.
    let Some(first) = st.heap.array_get(array, 0) else { return slow() };
    if !st.can_add_elements(array) {
        return slow();
    }
    st.burn(1)?;
    match st.heap.splice_elements(array, 0, 1, &[])? {
        true => Ok(first),
        false => slow(),
    }
}

fn slice(st: &mut State, w: &mut Window, args: Args) -> Res {
    let Some((array, values)) = packed(st, args.this) else { return slow() };
    let n = values.len();
    let (start, end) = (place(args.get(w, 0), n, 0)?, place(args.get(w, 1), n, n)?);
    if !plain_species(st, array) {
        return slow();
    }
    copy(st, array, start, end)
}

fn splice(st: &mut State, w: &mut Window, args: Args) -> Res {
    let Some((array, values)) = packed(st, args.this) else { return slow() };
    let n = values.len();
    let items = arguments(&args, w)?;
    let start = place(args.get(w, 0), n, 0)?;
    let gone = match items {
        [] => 0,
        [_] => n - start,
        [_, count, ..] => {
            let count = if count.is_undefined() { 0 } else { count.as_int().ok_or(Exit::Slow)? };
            (count.max(0) as usize).min(n - start)
        }
    };
    let removed = values.get(start..start + gone).unwrap_or_default().to_vec();
    if !plain_species(st, array) || !st.can_add_elements(array) {
        return slow();
    }
    let added = items.get(2..).unwrap_or_default();
    let moved = n - start - gone + added.len();
    st.burn((gone + moved) as u64 / 16 + added.len() as u64)?;
    let made = st.heap.new_array(st.realm.array_shape, &removed)?;
    // Only the second allocation can fail now, and then nothing has happened that anybody saw.
    match st.heap.splice_elements(array, start as u32, gone as u32, added)? {
        true => Ok(Value::array(made)),
        false => slow(),
    }
}

fn to_reversed(st: &mut State, _w: &mut Window, args: Args) -> Res {
    let Some((array, values)) = packed(st, args.this) else { return slow() };
    let n = values.len();
    let made = copy(st, array, 0, n)?;
    if let Some(values) = made.as_array().and_then(|a| st.heap.dense_mut(a)) {
        values.reverse();
    }
    Ok(made)
}

fn unshift(st: &mut State, w: &mut Window, args: Args) -> Res {
    let Some(array) = args.this.as_array() else { return slow() };
    if !st.can_add_elements(array) {
        return slow();
    }
    let items = arguments(&args, w)?;
    st.burn(items.len() as u64)?;
    match st.heap.splice_elements(array, 0, 0, items)? {
        true => Ok(Value::uint(st.heap.array_length(array))),
        false => slow(),
    }
}

fn with(st: &mut State, w: &mut Window, args: Args) -> Res {
    let Some((array, values)) = packed(st, args.this) else { return slow() };
    let Some(index) = args.get(w, 0).as_int() else { return slow() };
    let n = values.len();
    let index = if index < 0 { n.checked_sub(index.unsigned_abs() as usize) } else { Some(index as usize) };
    let Some(index) = index.filter(|&i| i < n) else { return slow() };
    let made = copy(st, array, 0, n)?;
    if let Some(place) = made.as_array().and_then(|a| st.heap.dense_mut(a)).and_then(|v| v.get_mut(index)) {
        *place = args.get(w, 1);
    }
    Ok(made)
}

fn iterator(st: &mut State, args: Args, kind: Value) -> Res {
    if !args.this.is_object() {
        return slow();
    }
    let shape = st.heap.root_shape(Some(st.realm.array_iterator_prototype))?;
    let fields = [args.this, Value::ZERO, kind];
    let object = st.heap.new_object_with_slots(shape, Class::ArrayIterator, Flags::NONE, &fields)?;
    Ok(Value::object(object))
}

fn next(st: &mut State, _w: &mut Window, args: Args) -> Res {
    let record = args
        .this
        .as_object()
        .filter(|&o| st.heap.class(o) == Class::ArrayIterator)
        .and_then(|o| st.heap.slots_of(o));
    let Some(record) = record else { return slow() };
    let &[subject, position, kind] = st.heap.slots(record) else { return slow() };
    let (Some(array), Some(i)) = (subject.as_array(), position.as_int()) else { return slow() };
    if i as u32 >= st.heap.array_length(array) {
        let result = st.iter_result(Value::UNDEFINED, true)?;
        if let Some(place) = st.heap.slots_mut(record).first_mut() {
            *place = Value::UNDEFINED;
        }
        return Ok(result);
    }
    let result = if kind == KEYS {
        st.iter_result(position, false)?
    } else {
        let Some(v) = st.heap.array_get(array, i as u32) else { return slow() };
        if kind == VALUES {
            st.iter_result(v, false)?
        } else {
            let pair = st.heap.new_array(st.realm.array_shape, &[position, v])?;
            st.iter_result(Value::array(pair), false)?
        }
    };
    if let Some(place) = st.heap.slots_mut(record).get_mut(1) {
        *place = Value::number(f64::from(i) + 1.0);
    }
    Ok(result)
}

/// `%ArrayWithPrototype(prototype)`: a new empty array.
fn array_with_prototype(st: &mut State, w: &mut Window, args: Args) -> Res {
    let shape = st.heap.root_shape(args.get(w, 0).as_object())?;
    Ok(Value::array(st.heap.new_array(shape, &[])?))
}

/// `%SetLength(array, n)` of an array of the prelude's own.
fn set_length(st: &mut State, w: &mut Window, args: Args) -> Res {
    let (Some(array), Some(n)) = (args.get(w, 0).as_array(), args.get(w, 1).as_number()) else {
        return slow();
    };
    st.heap.set_array_length(array, n as u32)?;
    Ok(Value::UNDEFINED)
}

/// `%Put(array, index, value)`: CreateDataProperty on an array that the guest has not seen yet.
fn put(st: &mut State, w: &mut Window, args: Args) -> Res {
    let (Some(array), index, value) = (args.get(w, 0).as_array(), args.get(w, 1), args.get(w, 2)) else {
        return slow();
    };
    if let Some(i) = index.as_int() {
        if i as u32 == st.heap.array_length(array) && st.heap.array_push(array, value)? {
            return Ok(Value::UNDEFINED);
        }
        if st.heap.array_set(array, i as u32, value) {
            return Ok(Value::UNDEFINED);
        }
    }
    let key = st.property_key(index)?;
    st.heap.define_own(array, key, &Descriptor::data(value, Attrs::ALL))?;
    Ok(Value::UNDEFINED)
}

/// `%PlainList(o)`: the elements of a dense array that lacks none, of which none is undefined; otherwise undefined.
fn plain_list(st: &mut State, w: &mut Window, args: Args) -> Res {
    let Some((array, values)) = packed(st, args.get(w, 0)) else { return Ok(Value::UNDEFINED) };
    if values.iter().any(|v| v.is_undefined()) {
        return Ok(Value::UNDEFINED);
    }
    let n = values.len();
    copy(st, array, 0, n)
}

/// `%PutAll(o, list)`: assigns a list's elements to a dense array that has as many; false if it is not so.
fn put_all(st: &mut State, w: &mut Window, args: Args) -> Res {
    let (Some((array, old)), Some((list, _))) = (packed(st, args.get(w, 0)), packed(st, args.get(w, 1)))
    else {
        return Ok(Value::FALSE);
    };
    let n = old.len();
    st.burn(n as u64 / 16)?;
    Ok(Value::bool(st.heap.assign_elements(array, list)))
}

fn unscopables(st: &mut State, w: &mut Window, args: Args) -> Res {
    if let Some(target) = args.get(w, 0).as_object() {
        let desc = Descriptor::data(args.get(w, 1), Attrs::CONFIGURABLE);
        st.heap.define_own(target, Key::symbol(symbols::UNSCOPABLES), &desc)?;
    }
    Ok(Value::UNDEFINED)
}

/// `%ArrayIntrinsics(Array)`: what natives compare with to see whether anybody changed it.
fn array_intrinsics(st: &mut State, w: &mut Window, args: Args) -> Res {
    let function = args.get(w, 0);
    let own = function.as_object().map(|f| st.heap.get_own(f, Key::symbol(symbols::SPECIES)));
    let Some(Own::Accessor { get, .. }) = own else {
        return Err(st.throw(ErrorKind::Type, "Array has no species"));
    };
    st.realm.array_constructor = function;
    st.realm.array_species = get;
    Ok(Value::UNDEFINED)
}

/// `%IterationIntrinsics(values, next)`: the shortcut of `for…of` is right while these are in place.
fn iteration_intrinsics(st: &mut State, w: &mut Window, args: Args) -> Res {
    st.realm.array_values = args.get(w, 0);
    st.realm.array_iterator_next = args.get(w, 1);
    Ok(Value::UNDEFINED)
}
