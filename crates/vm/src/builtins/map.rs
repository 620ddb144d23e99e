//! Map and Set: everything that runs no guest code. `map.js` and `set.js` have the loops that call back, and the errors.

use super::{Args, Row, slow};
use crate::exec::state::{Exit, Res, State};
use crate::exec::{Helper, Proto, Window, iterates_plainly};
use crate::heap::{Class, Cursor, Found, Key, MapId, ObjId, atoms};
use crate::value::Value;

pub(super) const ROWS: &[Row] = &[
    ("new Map", |st, w, a| construct(st, w, a, Class::Map)),
    ("new Set", |st, w, a| construct(st, w, a, Class::Set)),
    ("MapNew", |st, w, a| make(st, w, a, Class::Map)),
    ("SetNew", |st, w, a| make(st, w, a, Class::Set)),
    ("Map.prototype.get", |st, w, a| match table(st, a.this, Class::Map) {
        Some(id) => get(st, id, a.get(w, 0)),
        None => slow(),
    }),
    ("Map.prototype.set", |st, w, a| match table(st, a.this, Class::Map) {
        Some(id) => set(st, id, a.get(w, 0), a.get(w, 1)).map(|()| a.this),
        None => slow(),
    }),
    ("Map.prototype.has", |st, w, a| method_has(st, w, a, Class::Map)),
    ("Map.prototype.delete", |st, w, a| method_delete(st, w, a, Class::Map)),
    ("Map.prototype.clear", |st, _, a| method_clear(st, a, Class::Map)),
    ("get Map.prototype.size", |st, _, a| method_size(st, a, Class::Map)),
    ("Set.prototype.add", |st, w, a| match table(st, a.this, Class::Set) {
        Some(id) => set(st, id, a.get(w, 0), Value::UNDEFINED).map(|()| a.this),
        None => slow(),
    }),
    ("Set.prototype.has", |st, w, a| method_has(st, w, a, Class::Set)),
    ("Set.prototype.delete", |st, w, a| method_delete(st, w, a, Class::Set)),
    ("Set.prototype.clear", |st, _, a| method_clear(st, a, Class::Set)),
    ("get Set.prototype.size", |st, _, a| method_size(st, a, Class::Set)),
    ("%MapIteratorPrototype%.next", |st, _, a| next(st, a.this, Class::MapIterator)),
    ("%SetIteratorPrototype%.next", |st, _, a| next(st, a.this, Class::SetIterator)),
    ("MapGet", |st, w, a| match any_table(st, a.get(w, 0)) {
        Some(id) => get(st, id, a.get(w, 1)),
        None => slow(),
    }),
    ("MapSet", |st, w, a| add(st, w, a)),
    ("SetAdd", |st, w, a| add(st, w, a)),
    ("TableHas", |st, w, a| match any_table(st, a.get(w, 0)) {
        Some(id) => has(st, id, a.get(w, 1)),
        None => slow(),
    }),
    ("TableDelete", |st, w, a| match any_table(st, a.get(w, 0)) {
        Some(id) => delete(st, id, a.get(w, 1)),
        None => slow(),
    }),
    ("TableSize", |st, w, a| match any_table(st, a.get(w, 0)) {
        Some(id) => Ok(Value::uint(st.heap.map_size(id))),
        None => slow(),
    }),
    ("TableWalk", |st, w, a| walk(st, a.get(w, 0))),
];

fn table(st: &State, v: Value, class: Class) -> Option<MapId> {
    let object = v.as_object()?;
    if st.heap.class(object) == class { st.heap.map_of(object) } else { None }
}

fn any_table(st: &State, v: Value) -> Option<MapId> {
    v.as_object().and_then(|o| st.heap.map_of(o))
}

/// Hashing a string costs its length, once.
fn key_cost(st: &State, key: Value) -> u64 {
    1 + key.as_string().map_or(0, |s| u64::from(st.heap.string_length(s) / 16))
}

fn get(st: &mut State, id: MapId, key: Value) -> Res {
    st.burn(key_cost(st, key))?;
    Ok(st.heap.map_get(id, key)?.unwrap_or(Value::UNDEFINED))
}

fn set(st: &mut State, id: MapId, key: Value, value: Value) -> Result<(), Exit> {
    st.burn(key_cost(st, key))?;
    Ok(st.heap.map_set(id, key, value)?)
}

fn has(st: &mut State, id: MapId, key: Value) -> Res {
    st.burn(key_cost(st, key))?;
    Ok(Value::bool(st.heap.map_has(id, key)?))
}

fn delete(st: &mut State, id: MapId, key: Value) -> Res {
    st.burn(key_cost(st, key))?;
    Ok(Value::bool(st.heap.map_delete(id, key)?))
}

/// `%MapSet(table, key, value)`, `%SetAdd(table, key)`.
fn add(st: &mut State, w: &mut Window, a: Args) -> Res {
    match any_table(st, a.get(w, 0)) {
        Some(id) => set(st, id, a.get(w, 1), a.get(w, 2)).map(|()| Value::UNDEFINED),
        None => slow(),
    }
}

fn method_has(st: &mut State, w: &Window, a: Args, class: Class) -> Res {
    match table(st, a.this, class) {
        Some(id) => has(st, id, a.get(w, 0)),
        None => slow(),
    }
}

fn method_delete(st: &mut State, w: &Window, a: Args, class: Class) -> Res {
    match table(st, a.this, class) {
        Some(id) => delete(st, id, a.get(w, 0)),
        None => slow(),
    }
}

fn method_clear(st: &mut State, a: Args, class: Class) -> Res {
    let Some(id) = table(st, a.this, class) else { return slow() };
    st.burn(1 + u64::from(st.heap.map_size(id) / 16))?;
    st.heap.map_clear(id);
    Ok(Value::UNDEFINED)
}

fn method_size(st: &State, a: Args, class: Class) -> Res {
    match table(st, a.this, class) {
        Some(id) => Ok(Value::uint(st.heap.map_size(id))),
        None => slow(),
    }
}

fn new_table(st: &mut State, prototype: Option<ObjId>, class: Class) -> Result<ObjId, Exit> {
    let shape = st.heap.root_shape(prototype)?;
    Ok(st.heap.new_map(shape, class)?)
}

/// `%MapNew(prototype)`.
fn make(st: &mut State, w: &mut Window, a: Args, class: Class) -> Res {
    let prototype = a.get(w, 0).as_object();
    new_table(st, prototype, class).map(Value::object)
}

/// `new Map(…)` and `new Set(…)` of nothing or of a plain array, while `set` and `add` are the engine's own.
fn construct(st: &mut State, w: &mut Window, a: Args, class: Class) -> Res {
    let items = a.get(w, 0);
    if a.calling.new_target != a.callee {
        return slow();
    }
    let (proto, name, own) = match class {
        Class::Map => (Proto::Map, atoms::SET, Helper::MapSet),
        _ => (Proto::Set, atoms::ADD, Helper::SetAdd),
    };
    let prototype = st.realm.proto(proto);
    if items.is_nullish() {
        return new_table(st, Some(prototype), class).map(Value::object);
    }
    let unchanged = st.heap.get(prototype, Key::atom(name)) == Found::Data(st.helper(own));
    let Some(array) = items.as_array().filter(|_| unchanged && iterates_plainly(st, items)) else {
        return slow();
    };
    let Some(count) = st.heap.packed(array).map(<[Value]>::len) else { return slow() };
    st.burn(count as u64)?;
    let made = new_table(st, Some(prototype), class)?;
    let Some(id) = st.heap.map_of(made) else { return slow() };
    for i in 0..count as u32 {
        let Some(item) = st.heap.array_get(array, i) else { return slow() };
        let (key, value) = if class == Class::Set {
            (item, Value::UNDEFINED)
        } else {
            let entry =
                item.as_array().and_then(|e| Some((st.heap.array_get(e, 0)?, st.heap.array_get(e, 1)?)));
            // Anything but a pair is for the JavaScript version; what was made so far nobody has seen.
            let Some(entry) = entry else { return slow() };
            entry
        };
        set(st, id, key, value)?;
    }
    Ok(Value::object(made))
}

/// The fields of a Map or Set iterator.
const TABLE: usize = 0;
const POSITION: usize = 1;
const KIND: usize = 2;

/// Where an iterator stands: the table and the cursor; `None` when it is at its end.
fn standing(st: &State, fields: &[Value]) -> Option<(MapId, Cursor)> {
    let id = any_table(st, *fields.get(TABLE)?)?;
    // Positions count insertions, so they stay below 2^53 for as long as any budget lasts.
    let position = fields.get(POSITION)?.as_number()?;
    Some((id, Cursor(position as u64)))
}

/// The entry after that, stepping over deleted ones at their price.
fn following(
    st: &mut State,
    standing: Option<(MapId, Cursor)>,
) -> Result<Option<(Value, Value, Cursor)>, Exit> {
    let Some((id, cursor)) = standing else { return Ok(None) };
    let gap = st.heap.map_gap(id, cursor);
    if gap > 0 {
        st.burn(1 + gap as u64 / 16)?;
    }
    Ok(st.heap.map_next(id, cursor))
}

/// `next` of a Map or Set iterator.
fn next(st: &mut State, this: Value, class: Class) -> Res {
    let Some(object) = this.as_object().filter(|&o| st.heap.class(o) == class) else { return slow() };
    // A result that is not needed is made before the iterator moves: then nothing has happened when there is no room.
    let result = st.iter_result(Value::UNDEFINED, true)?;
    if let (Some(item), Some(result)) = (step(st, object, class)?, result.as_object()) {
        st.heap.set_slot(result, 0, item);
        st.heap.set_slot(result, 1, Value::FALSE);
    }
    Ok(result)
}

/// What a Map or Set iterator comes to next; `None` when it is at its end, for ever.
pub(crate) fn step(st: &mut State, iterator: ObjId, class: Class) -> Result<Option<Value>, Exit> {
    let Some(record) = st.heap.slots_of(iterator) else { return Ok(None) };
    let fields = st.heap.slots(record);
    let kind = fields.get(KIND).and_then(|v| v.as_int()).unwrap_or(0);
    let standing = standing(st, fields);
    let entry = following(st, standing)?;
    let Some((key, value, cursor)) = entry else {
        if let Some(place) = st.heap.slots_mut(record).get_mut(TABLE) {
            *place = Value::UNDEFINED;
        }
        return Ok(None);
    };
    let item = match kind {
        0 => key,
        1 => value,
        _ => {
            let second = if class == Class::SetIterator { key } else { value };
            Value::array(st.heap.new_array(st.realm.array_shape, &[key, second])?)
        }
    };
    if let Some(place) = st.heap.slots_mut(record).get_mut(POSITION) {
        *place = Value::number(cursor.0 as f64);
    }
    Ok(Some(item))
}

/// `%TableWalk(iterator)`: one step of an iterator of the prelude's own; its fields get the entry.
fn walk(st: &mut State, iterator: Value) -> Res {
    let Some(record) = iterator.as_object().and_then(|o| st.heap.slots_of(o)) else { return slow() };
    let standing = standing(st, st.heap.slots(record));
    let entry = following(st, standing)?;
    let fields = st.heap.slots_mut(record);
    match (entry, fields) {
        (Some((key, value, cursor)), [_, position, _, k, v]) => {
            (*position, *k, *v) = (Value::number(cursor.0 as f64), key, value);
            Ok(Value::TRUE)
        }
        (_, fields) => {
            if let Some(place) = fields.get_mut(TABLE) {
                *place = Value::UNDEFINED;
            }
            Ok(Value::FALSE)
        }
    }
}
