//! `Object`: the cases that no getter or proxy has a say in.

use super::internal::{describe, list_enumerable};
use super::{Args, Row, slow};
use crate::exec::Window;
use crate::exec::state::{Res, State};
use crate::heap::{Class, Found, Key, ObjId, Own, symbols};
use crate::value::Value;

pub(super) const ROWS: &[Row] = &[
    ("Object.keys", |st, w, a| enumerable(st, w, a, 0)),
    ("Object.values", |st, w, a| enumerable(st, w, a, 1)),
    ("Object.entries", |st, w, a| enumerable(st, w, a, 2)),
    ("Object.is", |st, w, a| Ok(Value::bool(st.heap.same_value(a.get(w, 0), a.get(w, 1))?))),
    ("Object.hasOwn", |st, w, a| has_own(st, a.get(w, 0), a.get(w, 1))),
    ("Object.prototype.hasOwnProperty", |st, w, a| has_own(st, a.this, a.get(w, 0))),
    ("Object.getPrototypeOf", get_prototype_of),
    ("Object.getOwnPropertyDescriptor", get_own_property_descriptor),
    ("Object.prototype.toString", to_string),
    ("Object.prototype.valueOf", |_, _, a| if a.this.is_object() { Ok(a.this) } else { slow() }),
];

/// The object, unless it is a proxy or no object.
fn plain(st: &State, v: Value) -> Option<ObjId> {
    v.as_object().filter(|&obj| st.heap.class(obj) != Class::Proxy)
}

fn enumerable(st: &mut State, w: &mut Window, args: Args, kind: i32) -> Res {
    let Some(obj) = plain(st, args.get(w, 0)) else { return slow() };
    match list_enumerable(st, obj, kind)? {
        Some(list) => Ok(list),
        None => slow(),
    }
}

fn has_own(st: &mut State, o: Value, key: Value) -> Res {
    let Some(obj) = plain(st, o).filter(|_| !key.is_object()) else { return slow() };
    let key = st.property_key(key)?;
    Ok(Value::bool(st.own(obj, key)? != Own::Absent))
}

fn get_prototype_of(st: &mut State, w: &mut Window, args: Args) -> Res {
    let Some(obj) = plain(st, args.get(w, 0)) else { return slow() };
    Ok(st.heap.prototype(obj).map_or(Value::NULL, |p| st.heap.object_value(p)))
}

fn get_own_property_descriptor(st: &mut State, w: &mut Window, args: Args) -> Res {
    let key = args.get(w, 1);
    let Some(obj) = plain(st, args.get(w, 0)).filter(|_| !key.is_object()) else { return slow() };
    let key = st.property_key(key)?;
    let own = st.own(obj, key)?;
    let prototype = st.realm.object_prototype;
    describe(st, own, Some(prototype))
}

fn to_string(st: &mut State, _w: &mut Window, args: Args) -> Res {
    let Some(obj) = plain(st, args.this) else { return slow() };
    let tag = match st.look_up(obj, Key::symbol(symbols::TO_STRING_TAG))? {
        Found::Absent => None,
        Found::Data(v) => v.as_string(),
        Found::Getter(_) | Found::Exotic(_) => return slow(),
    };
    let text = match tag {
        Some(tag) => format!("[object {}]", st.string_text(tag)),
        None => format!("[object {}]", st.builtin_tag(args.this)),
    };
    Ok(Value::string(st.heap.new_string(&text)?))
}
