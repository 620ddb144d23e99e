//! WeakMap, WeakSet and what `weak.js` asks: tables that hold their keys weakly.

use super::{Args, Row, slow};
use crate::exec::Window;
use crate::exec::state::{Res, State};
use crate::heap::{Class, SymbolKind, WeakId};
use crate::value::Value;

pub(super) const ROWS: &[Row] = &[
    ("WeakMapNew", |st, w, a| make(st, w, a, Class::WeakMap)),
    ("WeakSetNew", |st, w, a| make(st, w, a, Class::WeakSet)),
    ("CanBeHeldWeakly", |st, w, a| Ok(Value::bool(can_be_held(st, a.get(w, 0))))),
    ("WeakMap.prototype.get", |st, w, a| match table(st, a.this, Class::WeakMap) {
        Some(id) => Ok(st.heap.weak_get(id, a.get(w, 0)).unwrap_or(Value::UNDEFINED)),
        None => slow(),
    }),
    ("WeakMap.prototype.set", |st, w, a| set(st, a, Class::WeakMap, a.get(w, 0), a.get(w, 1))),
    ("WeakMap.prototype.has", |st, w, a| has(st, w, a, Class::WeakMap)),
    ("WeakMap.prototype.delete", |st, w, a| delete(st, w, a, Class::WeakMap)),
    ("WeakSet.prototype.add", |st, w, a| set(st, a, Class::WeakSet, a.get(w, 0), Value::UNDEFINED)),
    ("WeakSet.prototype.has", |st, w, a| has(st, w, a, Class::WeakSet)),
    ("WeakSet.prototype.delete", |st, w, a| delete(st, w, a, Class::WeakSet)),
    ("WeakAdd", |st, w, a| match a.get(w, 0).as_object().and_then(|o| st.heap.weak_of(o)) {
        Some(id) => {
            st.heap.weak_set(id, a.get(w, 1), Value::UNDEFINED).map(|()| Value::UNDEFINED).map_err(Into::into)
        }
        None => slow(),
    }),
    ("WeakDelete", |st, w, a| match a.get(w, 0).as_object().and_then(|o| st.heap.weak_of(o)) {
        Some(id) => Ok(Value::bool(st.heap.weak_delete(id, a.get(w, 1)))),
        None => slow(),
    }),
];

fn make(st: &mut State, w: &mut Window, a: Args, class: Class) -> Res {
    let shape = st.heap.root_shape(a.get(w, 0).as_object())?;
    Ok(Value::object(st.heap.new_weak(shape, class)?))
}

fn table(st: &State, v: Value, class: Class) -> Option<WeakId> {
    let object = v.as_object()?;
    if st.heap.class(object) == class { st.heap.weak_of(object) } else { None }
}

/// CanBeHeldWeakly: objects, and symbols that nobody can make again.
fn can_be_held(st: &State, v: Value) -> bool {
    v.is_object() || v.as_symbol().is_some_and(|s| st.heap.symbol_kind(s) != SymbolKind::Registered)
}

fn set(st: &mut State, a: Args, class: Class, key: Value, value: Value) -> Res {
    match table(st, a.this, class) {
        Some(id) if can_be_held(st, key) => {
            st.heap.weak_set(id, key, value)?;
            Ok(a.this)
        }
        _ => slow(),
    }
}

fn has(st: &State, w: &Window, a: Args, class: Class) -> Res {
    match table(st, a.this, class) {
        Some(id) => Ok(Value::bool(st.heap.weak_get(id, a.get(w, 0)).is_some())),
        None => slow(),
    }
}

fn delete(st: &mut State, w: &Window, a: Args, class: Class) -> Res {
    match table(st, a.this, class) {
        Some(id) => Ok(Value::bool(st.heap.weak_delete(id, a.get(w, 0)))),
        None => slow(),
    }
}
