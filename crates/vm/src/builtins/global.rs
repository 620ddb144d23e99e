//! What the global object has beside constructors, and how errors name the value that they are about.

use super::{Args, Row};
use crate::exec::Window;
use crate::exec::state::{Res, State};
use crate::heap::{Found, Key, ObjId, Own, atoms};
use crate::value::Value;

pub(super) const ROWS: &[Row] = &[
    ("Describe", describe),
    ("ConstructorName", |st, w, a| {
        let name = a.get(w, 0).as_object().map(|o| constructor_name(st, o));
        Ok(Value::string(st.heap.new_string(&name.unwrap_or_default())?))
    }),
    ("GetterOf", getter_of),
];

/// `%GetterOf(object, key)`: the getter of an own property, for the engine to recognise later.
fn getter_of(st: &mut State, w: &mut Window, a: Args) -> Res {
    let key = st.property_key(a.get(w, 1))?;
    match a.get(w, 0).as_object().map(|o| st.heap.get_own(o, key)) {
        Some(Own::Accessor { get, .. }) => Ok(get),
        _ => Err(st.type_error("%GetterOf: there is no getter")),
    }
}

/// `%Describe(v)`: how an error message names a value, without running guest code.
fn describe(st: &mut State, w: &mut Window, a: Args) -> Res {
    let v = a.get(w, 0);
    let text = match v.as_object() {
        None if v.is_symbol() => "Symbol()".to_owned(),
        None => st.describe(v),
        Some(_) if st.heap.is_callable(v) => "function".to_owned(),
        Some(object) => format!("#<{}>", constructor_name(st, object)),
    };
    // A message stays a message, whatever the guest hands in.
    let text: String = text.chars().take(100).collect();
    Ok(Value::string(st.heap.new_string(&text)?))
}

/// The name of an object's constructor as far as it can be told without running guest code.
fn constructor_name(st: &mut State, object: ObjId) -> String {
    let maker = match st.heap.get(object, Key::atom(atoms::CONSTRUCTOR)) {
        Found::Data(maker) => maker.as_object(),
        _ => None,
    };
    let name = match maker.map(|m| st.heap.get(m, Key::atom(atoms::NAME))) {
        Some(Found::Data(name)) => name.as_string(),
        _ => None,
    };
    let name = name.map(|n| st.string_text(n)).filter(|n| !n.is_empty());
    name.unwrap_or_else(|| "Object".to_owned())
}
