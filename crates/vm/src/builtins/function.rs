//! Functions: calling them with other receivers, binding them, and their source text.

use super::{Args, Row, slow};
use crate::exec::object::super_base;
use crate::exec::state::{Res, State};
use crate::exec::{Calling, FrameFlags, Window};
use crate::heap::{Attrs, Class, Descriptor, Flags, Key, atoms};
use crate::value::Value;

pub(super) const ROWS: &[Row] = &[
    ("Function.prototype.call", call),
    ("Function.prototype.apply", apply),
    ("NewBound", new_bound),
    ("SetMeta", set_meta),
    ("SourceOf", source_of),
    ("SetGuards", set_guards),
    ("SuperBase", |st, w, a| super_base(st, a.get(w, 0))),
    ("ConstructOn", construct_on),
    ("CheckRealm", check_realm),
];

/// `f.call(receiver, …)`. The call is laid out above the frame: the registers of this one must stay as they are, because it
/// may have to be made again.
fn call(st: &mut State, w: &mut Window, args: Args) -> Res {
    let at = st.above as usize;
    let from = args.first as usize;
    let argc = args.argc.saturating_sub(1) as usize;
    if at + 2 + argc > w.len() {
        return slow();
    }
    let receiver = args.get(w, 0);
    if argc > 0 {
        w.copy_within(from + 1..from + 1 + argc, at + 2);
    }
    w[at] = args.this;
    w[at + 1] = receiver;
    st.call(w, st.above, argc as u32, Calling { new_target: Value::UNDEFINED, ..args.calling })
}

/// `f.apply(receiver, list)` with a plain array or nothing.
fn apply(st: &mut State, w: &mut Window, args: Args) -> Res {
    let (receiver, list) = (args.get(w, 0), args.get(w, 1));
    if !st.heap.is_callable(args.this) {
        return slow();
    }
    let packed = list.as_array().is_some_and(|array| st.heap.packed(array).is_some());
    if !list.is_nullish() && !packed {
        return slow();
    }
    let above = st.above;
    let at = above as usize;
    w[at] = args.this;
    w[at + 1] = receiver;
    w[at + 2] = list;
    st.call_list(w, above, Calling { new_target: Value::UNDEFINED, ..args.calling })
}

/// `%NewBound(f, prototype, list)`: the list is the receiver and the arguments.
fn new_bound(st: &mut State, w: &mut Window, args: Args) -> Res {
    let (target, prototype, list) = (args.get(w, 0), args.get(w, 1), args.get(w, 2));
    let mut flags = Flags::CALLABLE;
    if st.heap.is_constructor(target) {
        flags = flags.and(Flags::CONSTRUCTOR);
    }
    let mut fields = vec![target];
    if let Some(values) = list.as_array().and_then(|array| st.heap.packed(array)) {
        fields.extend_from_slice(values);
    }
    if fields.len() == 1 {
        fields.push(Value::UNDEFINED);
    }
    let shape = st.heap.root_shape(prototype.as_object())?;
    Ok(Value::object(st.heap.new_object_with_slots(shape, Class::BoundFunction, flags, &fields)?))
}

/// `%SetMeta(f, length, name)`.
fn set_meta(st: &mut State, w: &mut Window, args: Args) -> Res {
    let Some(f) = args.get(w, 0).as_object() else { return Ok(Value::UNDEFINED) };
    for (name, value) in [(atoms::LENGTH, args.get(w, 1)), (atoms::NAME, args.get(w, 2))] {
        st.heap.add_property(f, Key::atom(name), Attrs::CONFIGURABLE, value)?;
    }
    Ok(Value::UNDEFINED)
}

/// `%SourceOf(f)`: its text, or undefined for what is no function.
fn source_of(st: &mut State, w: &mut Window, args: Args) -> Res {
    let v = args.get(w, 0);
    let Some(f) = v.as_object().filter(|_| st.heap.is_callable(v)) else { return Ok(Value::UNDEFINED) };
    if let Some(closure) = st.heap.closure_of(f) {
        let index = st.heap.closure_code(closure);
        let code = std::sync::Arc::clone(&st.code);
        if !code.function(index).hidden {
            let text = code.source_of(index);
            st.burn(text.len() as u64 / 16)?;
            return Ok(Value::string(st.heap.new_string(text)?));
        }
    }
    let name = match st.heap.get_own(f, Key::atom(atoms::NAME)) {
        crate::heap::Own::Data { value, .. } => value.as_string(),
        _ => None,
    };
    let name = name.map(|s| st.string_text(s)).filter(|name| is_property_name(name)).unwrap_or_default();
    Ok(Value::string(st.heap.new_string(&format!("function {name}() {{ [native code] }}"))?))
}

/// Whether a native function's text may have this name in it.
fn is_property_name(name: &str) -> bool {
    let name = name.strip_prefix("get ").or_else(|| name.strip_prefix("set ")).unwrap_or(name);
    let word = name.strip_prefix("[Symbol.").and_then(|rest| rest.strip_suffix(']')).unwrap_or(name);
    let mut chars = word.chars();
    chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_' || c == '$')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '$')
}

/// `%ConstructOn(f, list, newTarget, prototype)`: the prototype of the new object has been found already.
fn construct_on(st: &mut State, w: &mut Window, args: Args) -> Res {
    let above = st.above;
    let at = above as usize;
    let (target, prototype) = (args.get(w, 2), args.get(w, 3));
    w[at] = args.get(w, 0);
    w[at + 2] = args.get(w, 1);
    let shape = st.heap.root_shape(prototype.as_object())?;
    w[at + 1] = Value::object(st.heap.new_object(shape)?);
    let calling = Calling { dst: args.calling.dst, flags: FrameFlags::CONSTRUCT, new_target: target };
    st.call_list(w, above, calling)
}

/// `%CheckRealm(f)`: a revoked proxy has no realm to take a prototype from.
fn check_realm(st: &mut State, w: &mut Window, args: Args) -> Res {
    let mut v = args.get(w, 0);
    while let Some(obj) = v.as_object() {
        st.burn(1)?;
        match st.heap.class(obj) {
            Class::Proxy => {
                v = st.proxy_target(obj);
                if v.is_null() {
                    return Err(st.type_error("Cannot use a proxy that has been revoked as a constructor"));
                }
            }
            Class::BoundFunction => {
                let fields = st.heap.slots_of(obj).map(|s| st.heap.slots(s)).unwrap_or_default();
                v = fields.first().copied().unwrap_or(Value::UNDEFINED);
            }
            _ => break,
        }
    }
    Ok(Value::UNDEFINED)
}

/// `%SetGuards(hasInstance, thrower)`: functions that the interpreter must know.
fn set_guards(st: &mut State, w: &mut Window, args: Args) -> Res {
    let (has_instance, thrower) = (args.get(w, 0), args.get(w, 1));
    st.realm.has_instance = has_instance;
    st.realm.thrower = thrower;
    st.realm.callee_guard = st.heap.new_accessor_value(thrower, thrower)?;
    let Some(f) = thrower.as_object() else { return Ok(Value::UNDEFINED) };
    for (name, value) in [(atoms::LENGTH, Value::ZERO), (atoms::NAME, Value::string(atoms::EMPTY))] {
        st.heap.define_own(f, Key::atom(name), &Descriptor::data(value, Attrs::NONE))?;
    }
    st.heap.prevent_extensions(f)?;
    for name in ["arguments", "caller"] {
        let atom = st.heap.intern_str(name)?;
        let prototype = st.realm.function_prototype;
        st.heap.add_accessor(prototype, Key::atom(atom), Attrs::CONFIGURABLE, thrower, thrower)?;
    }
    Ok(Value::UNDEFINED)
}
