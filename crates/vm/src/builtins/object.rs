//! `Object`: the cases that no getter or proxy has a say in.

use super::internal::{describe, list_enumerable};
use super::{Args, Row, slow};
use crate::exec::Window;
use crate::exec::assign::{Placed, place};
use crate::exec::state::{Exit, Res, State};
use crate::heap::{Attrs, Class, Defined, Descriptor, Found, Key, ObjId, Own, atoms, symbols};
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
    ("Object.assign", assign),
    ("Object.create", create),
    ("Object.defineProperty", define_property),
    ("Object.freeze", |st, w, a| harden(st, w, a, Hardness::Frozen)),
    ("Object.seal", |st, w, a| harden(st, w, a, Hardness::Sealed)),
    ("Object.isFrozen", |st, w, a| is_hardened(st, w, a, Hardness::Frozen)),
    ("Object.isSealed", |st, w, a| is_hardened(st, w, a, Hardness::Sealed)),
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

/// `Object.assign(target, source)` where neither side has accessors to call. Assigning twice is the same as assigning
/// once, so it may be begun again after a collection.
fn assign(st: &mut State, w: &mut Window, args: Args) -> Res {
    let (target, source) = (args.get(w, 0), args.get(w, 1));
    let (Some(to), Some(from), 2) = (plain(st, target), plain(st, source), args.argc) else { return slow() };
    if st.heap.class(to) != Class::Object || !st.heap.is_extensible(to) {
        return slow();
    }
    let mut keys = Vec::new();
    if !st.keys(from, &mut keys)? {
        return slow();
    }
    let mut values = Vec::with_capacity(keys.len());
    for key in keys {
        match st.own(from, key)? {
            Own::Data { value, attrs, .. } if attrs.has(Attrs::ENUMERABLE) => values.push((key, value)),
            Own::Data { .. } | Own::Absent => continue,
            Own::Accessor { attrs, .. } if !attrs.has(Attrs::ENUMERABLE) => continue,
            Own::Accessor { .. } | Own::Exotic => return slow(),
        }
        if !takes(st, to, key)? {
            return slow();
        }
    }
    for (key, value) in values {
        if place(st, Some(to), key, value, target)? != Placed::Done {
            return Err(st.type_error("Cannot assign to read only property of object"));
        }
    }
    Ok(target)
}

/// Whether assignment to the key of an extensible object stores a value.
fn takes(st: &mut State, to: ObjId, key: Key) -> Result<bool, Exit> {
    let mut at = Some(to);
    while let Some(obj) = at {
        match st.own(obj, key)? {
            Own::Data { attrs, .. } => return Ok(attrs.has(Attrs::WRITABLE)),
            Own::Accessor { .. } | Own::Exotic => return Ok(false),
            Own::Absent => {
                st.burn(1)?;
                at = st.heap.prototype(obj);
            }
        }
    }
    Ok(true)
}

fn create(st: &mut State, w: &mut Window, args: Args) -> Res {
    let (prototype, properties) = (args.get(w, 0), args.get(w, 1));
    if !properties.is_undefined() || !(prototype.is_object() || prototype.is_null()) {
        return slow();
    }
    let shape = st.heap.root_shape(prototype.as_object())?;
    Ok(Value::object(st.heap.new_object(shape)?))
}

fn define_property(st: &mut State, w: &mut Window, args: Args) -> Res {
    let (target, key, attributes) = (args.get(w, 0), args.get(w, 1), args.get(w, 2));
    let (Some(obj), Some(given), false) = (plain(st, target), plain(st, attributes), key.is_object()) else {
        return slow();
    };
    let mut fields = [None; 6];
    let names =
        [atoms::VALUE, atoms::GET, atoms::SET, atoms::WRITABLE, atoms::ENUMERABLE, atoms::CONFIGURABLE];
    for (place, name) in fields.iter_mut().zip(names) {
        *place = match st.look_up(given, Key::atom(name))? {
            Found::Absent => None,
            Found::Data(v) => Some(v),
            Found::Getter(_) | Found::Exotic(_) => return slow(),
        };
    }
    let [value, get, set, writable, enumerable, configurable] = fields;
    let function = |v: Option<Value>| v.is_none_or(|v| v.is_undefined() || st.heap.is_callable(v));
    let accessor = get.is_some() || set.is_some();
    if !function(get) || !function(set) || accessor && (value.is_some() || writable.is_some()) {
        return slow();
    }
    let flag = |v: Option<Value>| v.map(|v| st.heap.truthy(v));
    let desc = Descriptor {
        value,
        get,
        set,
        writable: flag(writable),
        enumerable: flag(enumerable),
        configurable: flag(configurable),
    };
    let key = st.property_key(key)?;
    match st.define(obj, key, &desc)? {
        Defined::Yes => Ok(target),
        // An array's length may have been cut in part, which happens only once: the JavaScript version throws.
        Defined::No | Defined::InvalidLength | Defined::Exotic => slow(),
    }
}

/// How far an object is closed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Hardness {
    Sealed,
    Frozen,
}

impl Hardness {
    /// The attributes that no property has then.
    fn lost(self) -> Attrs {
        match self {
            Hardness::Sealed => Attrs::CONFIGURABLE,
            Hardness::Frozen => Attrs::CONFIGURABLE.and(Attrs::WRITABLE),
        }
    }
}

/// The own properties of an object with their attributes, if it is neither a proxy nor a typed array.
fn attributes(st: &mut State, obj: ObjId) -> Result<Option<Vec<(Key, Attrs)>>, Exit> {
    let mut keys = Vec::new();
    if st.heap.class(obj) == Class::TypedArray || !st.keys(obj, &mut keys)? {
        return Ok(None);
    }
    let mut list = Vec::with_capacity(keys.len());
    for key in keys {
        match st.own(obj, key)? {
            Own::Data { attrs, .. } | Own::Accessor { attrs, .. } => list.push((key, attrs)),
            Own::Absent | Own::Exotic => {}
        }
    }
    Ok(Some(list))
}

fn harden(st: &mut State, w: &mut Window, args: Args, hardness: Hardness) -> Res {
    let v = args.get(w, 0);
    let Some(obj) = v.as_object() else { return Ok(v) };
    let Some(properties) = attributes(st, obj)? else { return slow() };
    st.close(obj)?;
    for (key, attrs) in properties {
        let data = !attrs.has(Attrs::ACCESSOR);
        let writable = (data && hardness == Hardness::Frozen).then_some(false);
        let desc = Descriptor { configurable: Some(false), writable, ..Descriptor::EMPTY };
        st.define(obj, key, &desc)?;
    }
    Ok(v)
}

fn is_hardened(st: &mut State, w: &mut Window, args: Args, hardness: Hardness) -> Res {
    let Some(obj) = args.get(w, 0).as_object() else { return Ok(Value::TRUE) };
    let Some(properties) = attributes(st, obj)? else { return slow() };
    let open = properties.iter().any(|(_, attrs)| attrs.without(hardness.lost()) != *attrs);
    Ok(Value::bool(!st.heap.is_extensible(obj) && !open))
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
