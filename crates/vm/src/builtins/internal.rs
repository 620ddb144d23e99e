//! The internal methods of objects as intrinsics: `%GetOwn`, `%DefineOwn`, `%OwnKeys` and the rest, for ordinary objects at once and
//! for proxies by entering the prelude's version of the trap.
//!
//! Descriptors inside the prelude are objects without a prototype that have only the fields that were given: reading
//! an absent one finds nothing, whatever a guest does to `Object.prototype`.

use super::{Args, Row};
use crate::exec::assign::{Placed, place};
use crate::exec::object::array_push;
use crate::exec::property;
use crate::exec::state::{Exit, Res, State};
use crate::exec::{Helper, Window};
use crate::heap::{Attrs, Class, Defined, Deleted, Descriptor, Key, ObjId, Own, atoms};
use crate::value::Value;

pub(super) const ROWS: &[Row] = &[
    ("ToKey", to_key),
    ("GetOwn", get_own),
    ("DefineOwn", define_own),
    ("CreateData", create_data),
    ("HasOwn", has_own),
    ("DeleteOwn", delete_own),
    ("OwnKeys", own_keys),
    ("GetProto", get_proto),
    ("SetProto", set_proto),
    ("IsExtensible", is_extensible),
    ("PreventExtensions", prevent_extensions),
    ("GetFrom", get_from),
    ("SetOn", set_on),
    ("EnumerableOwn", enumerable_own),
    ("IsArray", is_array),
    ("PublicDescriptor", public_descriptor),
];

/// ToPropertyKey: a string, a symbol, or a small integer that stands for its string.
fn to_key(st: &mut State, w: &mut Window, args: Args) -> Res {
    let v = args.get(w, 0);
    if v.is_string() || v.is_symbol() {
        return Ok(v);
    }
    if v.is_object() {
        return enter(st, w, args, Helper::ToKey, &[v]);
    }
    let key = st.property_key(v)?;
    Ok(st.heap.key_to_value(key)?)
}

/// Enters a prelude function whose result is the intrinsic's.
fn enter(st: &mut State, w: &mut Window, args: Args, helper: Helper, values: &[Value]) -> Res {
    Err(st.enter_helper(w, helper, values, args.calling.dst, args.calling.flags))
}

/// The object that an intrinsic is about.
fn object(st: &mut State, w: &Window, args: Args) -> Result<ObjId, Exit> {
    match args.get(w, 0).as_object() {
        Some(obj) => Ok(obj),
        None => Err(st.type_error("the engine expected an object")),
    }
}

fn is_proxy(st: &State, obj: ObjId) -> bool {
    st.heap.class(obj) == Class::Proxy
}

/// `%GetOwn(o, k)`: a descriptor, or undefined.
fn get_own(st: &mut State, w: &mut Window, args: Args) -> Res {
    let obj = object(st, w, args)?;
    let key = st.property_key(args.get(w, 1))?;
    match st.own(obj, key)? {
        Own::Exotic => {
            let key = st.heap.key_to_value(key)?;
            enter(st, w, args, Helper::ProxyGetOwn, &[Value::object(obj), key])
        }
        own => describe(st, own, None),
    }
}

/// The descriptor of a property as an object with this prototype.
pub(super) fn describe(st: &mut State, own: Own, prototype: Option<ObjId>) -> Res {
    let (first, second, attrs) = match own {
        Own::Absent | Own::Exotic => return Ok(Value::UNDEFINED),
        Own::Data { value, attrs, .. } => {
            let writable = Value::bool(attrs.has(Attrs::WRITABLE));
            ((atoms::VALUE, value), (atoms::WRITABLE, writable), attrs)
        }
        Own::Accessor { get, set, attrs } => ((atoms::GET, get), (atoms::SET, set), attrs),
    };
    let shape = st.heap.root_shape(prototype)?;
    let made = st.heap.new_object(shape)?;
    let enumerable = Value::bool(attrs.has(Attrs::ENUMERABLE));
    let configurable = Value::bool(attrs.has(Attrs::CONFIGURABLE));
    for (name, value) in [first, second, (atoms::ENUMERABLE, enumerable), (atoms::CONFIGURABLE, configurable)]
    {
        st.heap.add_property(made, Key::atom(name), Attrs::ALL, value)?;
    }
    Ok(Value::object(made))
}

/// Reads a descriptor of the prelude's own.
fn described(st: &State, desc: Value) -> Descriptor {
    let Some(obj) = desc.as_object() else { return Descriptor::EMPTY };
    let field = |name| match st.heap.get_own(obj, Key::atom(name)) {
        Own::Data { value, .. } => Some(value),
        Own::Absent | Own::Accessor { .. } | Own::Exotic => None,
    };
    let flag = |name| field(name).map(|v| st.heap.truthy(v));
    Descriptor {
        value: field(atoms::VALUE),
        get: field(atoms::GET),
        set: field(atoms::SET),
        writable: flag(atoms::WRITABLE),
        enumerable: flag(atoms::ENUMERABLE),
        configurable: flag(atoms::CONFIGURABLE),
    }
}

/// `%PublicDescriptor(d)`: FromPropertyDescriptor.
fn public_descriptor(st: &mut State, w: &mut Window, args: Args) -> Res {
    let Some(desc) = args.get(w, 0).as_object() else { return Ok(Value::UNDEFINED) };
    let made = st.heap.new_object(st.realm.object_shape)?;
    for name in
        [atoms::VALUE, atoms::WRITABLE, atoms::GET, atoms::SET, atoms::ENUMERABLE, atoms::CONFIGURABLE]
    {
        if let Own::Data { value, .. } = st.heap.get_own(desc, Key::atom(name)) {
            st.heap.add_property(made, Key::atom(name), Attrs::ALL, value)?;
        }
    }
    Ok(Value::object(made))
}

/// `%DefineOwn(o, k, d)`: whether it was accepted.
fn define_own(st: &mut State, w: &mut Window, args: Args) -> Res {
    let obj = object(st, w, args)?;
    let key = st.property_key(args.get(w, 1))?;
    let desc = args.get(w, 2);
    if is_proxy(st, obj) {
        let key = st.heap.key_to_value(key)?;
        return enter(st, w, args, Helper::ProxyDefine, &[Value::object(obj), key, desc]);
    }
    let given = described(st, desc);
    match st.define(obj, key, &given)? {
        Defined::Yes => Ok(Value::TRUE),
        Defined::No => Ok(Value::FALSE),
        Defined::InvalidLength => Err(st.throw(crate::code::ErrorKind::Range, "Invalid array length")),
        Defined::Exotic => {
            let key = st.heap.key_to_value(key)?;
            enter(st, w, args, Helper::DefineSpecial, &[args.get(w, 0), key, desc])
        }
    }
}

/// `%CreateData(o, k, v)`: CreateDataPropertyOrThrow.
fn create_data(st: &mut State, w: &mut Window, args: Args) -> Res {
    let obj = object(st, w, args)?;
    let key = st.property_key(args.get(w, 1))?;
    let value = args.get(w, 2);
    if !is_proxy(st, obj) {
        match st.define(obj, key, &Descriptor::data(value, Attrs::ALL))? {
            Defined::Yes => return Ok(Value::UNDEFINED),
            Defined::No => {
                let name = st.key_text(key);
                return Err(st.type_error(&format!("Cannot add property {name}, object is not extensible")));
            }
            Defined::InvalidLength => {
                return Err(st.throw(crate::code::ErrorKind::Range, "Invalid array length"));
            }
            Defined::Exotic => {}
        }
    }
    let key = st.heap.key_to_value(key)?;
    enter(st, w, args, Helper::CreateDataSlow, &[args.get(w, 0), key, value])
}

/// `%HasOwn(o, k)`.
fn has_own(st: &mut State, w: &mut Window, args: Args) -> Res {
    let obj = object(st, w, args)?;
    let key = st.property_key(args.get(w, 1))?;
    match st.own(obj, key)? {
        Own::Exotic => {
            let key = st.heap.key_to_value(key)?;
            enter(st, w, args, Helper::ProxyHasOwn, &[Value::object(obj), key])
        }
        own => Ok(Value::bool(own != Own::Absent)),
    }
}

/// `%DeleteOwn(o, k)`: whether it is gone.
fn delete_own(st: &mut State, w: &mut Window, args: Args) -> Res {
    let obj = object(st, w, args)?;
    let key = st.property_key(args.get(w, 1))?;
    match st.remove(obj, key)? {
        Deleted::Yes => Ok(Value::TRUE),
        Deleted::No => Ok(Value::FALSE),
        Deleted::Exotic => {
            let key = st.heap.key_to_value(key)?;
            enter(st, w, args, Helper::ProxyDelete, &[Value::object(obj), key])
        }
    }
}

/// `%OwnKeys(o)`: all of them, strings and then symbols, as an array.
fn own_keys(st: &mut State, w: &mut Window, args: Args) -> Res {
    let obj = object(st, w, args)?;
    let mut keys = Vec::new();
    if !st.keys(obj, &mut keys)? {
        return enter(st, w, args, Helper::ProxyOwnKeys, &[Value::object(obj)]);
    }
    let list = st.heap.new_array(st.realm.array_shape, &[])?;
    for key in keys {
        let name = st.heap.key_to_value(key)?;
        array_push(st, Value::array(list), name)?;
    }
    Ok(Value::array(list))
}

/// `%GetProto(o)`.
fn get_proto(st: &mut State, w: &mut Window, args: Args) -> Res {
    let obj = object(st, w, args)?;
    if is_proxy(st, obj) {
        return enter(st, w, args, Helper::ProxyGetProto, &[Value::object(obj)]);
    }
    Ok(st.heap.prototype(obj).map_or(Value::NULL, |p| st.heap.object_value(p)))
}

/// `%SetProto(o, p)`: whether it was accepted.
fn set_proto(st: &mut State, w: &mut Window, args: Args) -> Res {
    let obj = object(st, w, args)?;
    let prototype = args.get(w, 1);
    if is_proxy(st, obj) {
        return enter(st, w, args, Helper::ProxySetProto, &[Value::object(obj), prototype]);
    }
    Ok(Value::bool(st.set_prototype(obj, prototype.as_object())?))
}

/// `%IsExtensible(o)`.
fn is_extensible(st: &mut State, w: &mut Window, args: Args) -> Res {
    let obj = object(st, w, args)?;
    if is_proxy(st, obj) {
        return enter(st, w, args, Helper::ProxyIsExtensible, &[Value::object(obj)]);
    }
    Ok(Value::bool(st.heap.is_extensible(obj)))
}

/// `%PreventExtensions(o)`: whether it was accepted.
fn prevent_extensions(st: &mut State, w: &mut Window, args: Args) -> Res {
    let obj = object(st, w, args)?;
    if is_proxy(st, obj) {
        return enter(st, w, args, Helper::ProxyPreventExtensions, &[Value::object(obj)]);
    }
    Ok(Value::bool(st.close(obj)?))
}

/// `%GetFrom(o, k, receiver)`.
fn get_from(st: &mut State, w: &mut Window, args: Args) -> Res {
    let obj = object(st, w, args)?;
    let key = st.property_key(args.get(w, 1))?;
    property::get_from(st, w, args.calling.dst, obj, key, args.get(w, 2))
}

/// `%SetOn(o, k, v, receiver)`: whether it was accepted.
fn set_on(st: &mut State, w: &mut Window, args: Args) -> Res {
    let obj = object(st, w, args)?;
    let key = st.property_key(args.get(w, 1))?;
    let (value, receiver) = (args.get(w, 2), args.get(w, 3));
    let placed = place(st, Some(obj), key, value, receiver)?;
    let (helper, about) = match placed {
        Placed::Done => return Ok(Value::TRUE),
        Placed::Refused(_) => return Ok(Value::FALSE),
        Placed::InvalidLength => {
            return Err(st.throw(crate::code::ErrorKind::Range, "Invalid array length"));
        }
        Placed::Setter(setter) => {
            return enter(st, w, args, Helper::CallSetter, &[setter, receiver, value]);
        }
        Placed::Proxy(proxy) => (Helper::ProxySet, Value::object(proxy)),
        Placed::Element(view) => (Helper::SetViewElement, Value::object(view)),
        Placed::Receiver => (Helper::SetOnReceiver, Value::UNDEFINED),
    };
    let key = st.heap.key_to_value(key)?;
    enter(st, w, args, helper, &[about, key, value, receiver])
}

/// `%EnumerableOwn(o, kind)`: names (0), values (1) or pairs (2) of the enumerable own properties with string keys.
fn enumerable_own(st: &mut State, w: &mut Window, args: Args) -> Res {
    let obj = object(st, w, args)?;
    let kind = args.get(w, 1).as_int().unwrap_or(0);
    match list_enumerable(st, obj, kind)? {
        Some(list) => Ok(list),
        None => enter(st, w, args, Helper::EnumerableOwn, &[args.get(w, 0), Value::int(kind)]),
    }
}

/// The list, unless a proxy or a getter has a say.
pub(super) fn list_enumerable(st: &mut State, obj: ObjId, kind: i32) -> Result<Option<Value>, Exit> {
    let mut keys = Vec::new();
    if !st.keys(obj, &mut keys)? {
        return Ok(None);
    }
    let list = Value::array(st.heap.new_array(st.realm.array_shape, &[])?);
    for key in keys {
        if key.as_symbol().is_some() {
            break;
        }
        let (value, attrs) = match st.own(obj, key)? {
            Own::Absent => continue,
            Own::Data { value, attrs, .. } => (value, attrs),
            Own::Accessor { attrs, .. } if kind == 0 || !attrs.has(Attrs::ENUMERABLE) => {
                (Value::UNDEFINED, attrs)
            }
            Own::Accessor { .. } | Own::Exotic => return Ok(None),
        };
        if !attrs.has(Attrs::ENUMERABLE) {
            continue;
        }
        let item = match kind {
            0 => st.heap.key_to_value(key)?,
            1 => value,
            _ => {
                let name = st.heap.key_to_value(key)?;
                Value::array(st.heap.new_array(st.realm.array_shape, &[name, value])?)
            }
        };
        array_push(st, list, item)?;
    }
    Ok(Some(list))
}

/// `%IsArray(x)`: an array, or a proxy of one.
fn is_array(st: &mut State, w: &mut Window, args: Args) -> Res {
    let mut v = args.get(w, 0);
    loop {
        let Some(obj) = v.as_object() else { return Ok(Value::FALSE) };
        match st.heap.class(obj) {
            Class::Array => return Ok(Value::TRUE),
            Class::Proxy => {
                st.burn(1)?;
                v = st.proxy_target(obj);
                if v.is_null() {
                    return Err(st.type_error("Cannot perform 'IsArray' on a proxy that has been revoked"));
                }
            }
            _ => return Ok(Value::FALSE),
        }
    }
}
