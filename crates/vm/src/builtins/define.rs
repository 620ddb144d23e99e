//! The intrinsics that the prelude defines built-ins with. They run when the engine starts.

use super::{Args, Row, number, shared};
use crate::exec::state::{Res, State};
use crate::exec::{Proto, Window};
use crate::heap::{Attrs, Descriptor, Flags, Key, ObjId, Own, atoms, symbols};
use crate::value::Value;

pub(super) const ROWS: &[Row] = &[
    ("Install", install),
    ("Constructor", constructor),
    ("Class", class),
    ("Const", constant),
    ("Hidden", hidden),
    ("Tag", tag),
    ("ReadOnly", read_only),
    ("Proto", proto),
    ("Share", share),
    ("Shared", shared_value),
    ("Global", global),
];

/// `%Install(target, literal, prefix)`: methods and accessors, not enumerable, with their fast paths.
fn install(st: &mut State, w: &mut Window, args: Args) -> Res {
    let (Some(target), Some(literal)) = (args.get(w, 0).as_object(), args.get(w, 1).as_object()) else {
        return Err(st.type_error("%Install needs two objects"));
    };
    let prefix = text(st, args.get(w, 2));
    let mut keys = Vec::new();
    if !st.heap.own_keys(literal, &mut keys) {
        return Err(st.type_error("%Install needs a plain object"));
    }
    for key in keys {
        let name = qualified(st, &prefix, key);
        let desc = match st.heap.get_own(literal, key) {
            Own::Data { value, .. } => {
                let value = fast_path(st, value, &name)?;
                Descriptor::data(value, Attrs::HIDDEN)
            }
            Own::Accessor { get, set, .. } => Descriptor {
                get: Some(fast_path(st, get, &format!("get {name}"))?),
                set: Some(fast_path(st, set, &format!("set {name}"))?),
                enumerable: Some(false),
                configurable: Some(true),
                ..Descriptor::EMPTY
            },
            Own::Absent | Own::Exotic => continue,
        };
        st.heap.define_own(target, key, &desc)?;
    }
    Ok(Value::UNDEFINED)
}

fn text(st: &mut State, v: Value) -> String {
    v.as_string().map(|s| st.string_text(s)).unwrap_or_default()
}

fn qualified(st: &mut State, prefix: &str, key: Key) -> String {
    match key.as_symbol().and_then(|s| st.heap.symbol_description(s)) {
        Some(description) => format!("{prefix}[{}]", st.string_text(description)),
        None => format!("{prefix}.{}", st.key_text(key)),
    }
}

/// The function itself, or a native in front of it.
fn fast_path(st: &mut State, function: Value, name: &str) -> Res {
    let (Some(closure), Some(number)) = (function.as_object(), number(|row| row == name)) else {
        return Ok(function);
    };
    let wrapped = st.new_fast_path(number, function)?;
    if let Some(f) = wrapped.as_object() {
        for slot in 0..2 {
            let v = st.heap.slot(closure, slot);
            st.heap.set_slot(f, slot, v);
        }
    }
    Ok(wrapped)
}

/// `%Constructor(f, prototype)`.
fn constructor(st: &mut State, w: &mut Window, args: Args) -> Res {
    let function = class(st, w, args)?;
    let Some(f) = function.as_object() else { return Ok(function) };
    let name = st.heap.slot(f, 1);
    let key = st.property_key(name)?;
    let global = st.realm.global;
    st.heap.define_own(global, key, &Descriptor::data(function, Attrs::HIDDEN))?;
    Ok(function)
}

/// `%Class(f, prototype)`: the same without a global. An optional third argument is the parent constructor.
fn class(st: &mut State, w: &mut Window, args: Args) -> Res {
    let function = args.get(w, 0);
    let Some(closure) = function.as_object() else { return Err(st.type_error("%Class needs a function")) };
    st.heap.add_flags(closure, Flags::CONSTRUCTOR.and(Flags::DERIVED));
    let name = st.heap.slot(closure, 1);
    let name = text(st, name);
    let made = fast_path(st, function, &format!("new {name}"))?;
    let Some(f) = made.as_object() else { return Ok(made) };
    st.heap.add_flags(f, Flags::CONSTRUCTOR);
    if let Some(parent) = args.get(w, 2).as_object() {
        st.heap.set_prototype(f, Some(parent))?;
    }
    if let Some(prototype) = args.get(w, 1).as_object() {
        let value = st.heap.object_value(prototype);
        st.heap.define_own(f, Key::atom(atoms::PROTOTYPE), &Descriptor::data(value, Attrs::NONE))?;
        let back = Descriptor::data(made, Attrs::HIDDEN);
        st.heap.define_own(prototype, Key::atom(atoms::CONSTRUCTOR), &back)?;
    }
    Ok(made)
}

fn define(st: &mut State, w: &Window, args: Args, attrs: Attrs) -> Res {
    let Some(target) = args.get(w, 0).as_object() else { return Ok(Value::UNDEFINED) };
    let key = st.property_key(args.get(w, 1))?;
    st.heap.define_own(target, key, &Descriptor::data(args.get(w, 2), attrs))?;
    Ok(Value::UNDEFINED)
}

fn constant(st: &mut State, w: &mut Window, args: Args) -> Res {
    define(st, w, args, Attrs::NONE)
}

fn hidden(st: &mut State, w: &mut Window, args: Args) -> Res {
    define(st, w, args, Attrs::HIDDEN)
}

fn tag(st: &mut State, w: &mut Window, args: Args) -> Res {
    let Some(target) = args.get(w, 0).as_object() else { return Ok(Value::UNDEFINED) };
    let desc = Descriptor::data(args.get(w, 1), Attrs::CONFIGURABLE);
    st.heap.define_own(target, Key::symbol(symbols::TO_STRING_TAG), &desc)?;
    Ok(Value::UNDEFINED)
}

/// `%ReadOnly(target, key)`: an existing property is no longer writable.
fn read_only(st: &mut State, w: &mut Window, args: Args) -> Res {
    let Some(target) = args.get(w, 0).as_object() else { return Ok(Value::UNDEFINED) };
    let key = st.property_key(args.get(w, 1))?;
    st.heap.define_own(target, key, &Descriptor { writable: Some(false), ..Descriptor::EMPTY })?;
    Ok(Value::UNDEFINED)
}

/// `%Proto("Map")`.
fn proto(st: &mut State, w: &mut Window, args: Args) -> Res {
    let name = text(st, args.get(w, 0));
    match Proto::ALL.iter().find(|p| p.text() == name) {
        Some(&p) => Ok(st.heap.object_value(st.realm.proto(p))),
        None => Err(st.type_error(&format!("the realm has no prototype {name}"))),
    }
}

/// `%Share("name", f)`.
fn share(st: &mut State, w: &mut Window, args: Args) -> Res {
    let name = text(st, args.get(w, 0));
    let Some(place) = shared(&name) else {
        return Err(st.type_error(&format!("{name} is not in the list of shared names")));
    };
    if let Some(slot) = st.helpers.get_mut(place as usize) {
        *slot = args.get(w, 1);
    }
    Ok(Value::UNDEFINED)
}

/// `%Shared("name")`.
fn shared_value(st: &mut State, w: &mut Window, args: Args) -> Res {
    let name = text(st, args.get(w, 0));
    let place = shared(&name).and_then(|p| st.helpers.get(p as usize).copied());
    match place {
        Some(v) if !v.is_undefined() => Ok(v),
        _ => Err(st.type_error(&format!("{name} is not shared yet"))),
    }
}

/// `%Global()` is the global object.
fn global(st: &mut State, _w: &mut Window, _args: Args) -> Res {
    Ok(Value::object(st.realm.global))
}

impl State {
    /// A native in front of a JavaScript function.
    fn new_fast_path(&mut self, number: u32, fallback: Value) -> Res {
        let object: ObjId = self.new_native_object(crate::exec::TABLE_NATIVE + number as i32, &[fallback])?;
        Ok(Value::object(object))
    }
}
