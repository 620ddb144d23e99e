//! Proxies and typed array elements: what their prelude functions need from the engine.

use super::{Args, Row};
use crate::exec::Window;
use crate::exec::state::{Res, State};
use crate::heap::{Attrs, Class, Flags, Own};
use crate::value::Value;

pub(super) const ROWS: &[Row] = &[
    ("new Proxy", construct),
    ("NewProxy", new_proxy),
    ("Promised", promised),
    ("HasBigElements", has_big_elements),
    ("SetElement", set_element),
];

fn construct(st: &mut State, w: &mut Window, args: Args) -> Res {
    if args.calling.new_target.is_undefined() {
        return Err(st.type_error("Constructor Proxy requires 'new'"));
    }
    new_proxy(st, w, args)
}

/// `%NewProxy(target, handler)`.
fn new_proxy(st: &mut State, w: &mut Window, args: Args) -> Res {
    let (target, handler) = (args.get(w, 0), args.get(w, 1));
    if !target.is_object() || !handler.is_object() {
        return Err(st.type_error("Cannot create proxy with a non-object as target or handler"));
    }
    let mut flags = Flags::NONE;
    if st.heap.is_callable(target) {
        flags = flags.and(Flags::CALLABLE);
    }
    if st.heap.is_constructor(target) {
        flags = flags.and(Flags::CONSTRUCTOR);
    }
    let shape = st.heap.root_shape(None)?;
    Ok(Value::object(st.heap.new_object_with_slots(shape, Class::Proxy, flags, &[target, handler])?))
}

/// `%Promised(target, key)`: what a proxy's target holds its handler to, without a descriptor being made. 0: nothing, the
/// property is absent; 1: it is there but configurable; 2: the descriptor must be looked at.
fn promised(st: &mut State, w: &mut Window, args: Args) -> Res {
    let Some(target) = args.get(w, 0).as_object() else { return Ok(Value::int(2)) };
    let key = st.property_key(args.get(w, 1))?;
    Ok(Value::int(match st.own(target, key)? {
        Own::Absent => 0,
        Own::Data { attrs, .. } | Own::Accessor { attrs, .. } if attrs.has(Attrs::CONFIGURABLE) => 1,
        Own::Data { .. } | Own::Accessor { .. } | Own::Exotic => 2,
    }))
}

/// `%HasBigElements(view)`.
fn has_big_elements(st: &mut State, w: &mut Window, args: Args) -> Res {
    let view = args.get(w, 0).as_object().and_then(|o| st.heap.view_of(o));
    Ok(Value::bool(view.is_some_and(|v| v.kind().is_big())))
}

/// `%SetElement(view, key, value)`: a value that has been converted; nothing happens where there is no element.
fn set_element(st: &mut State, w: &mut Window, args: Args) -> Res {
    let key = st.property_key(args.get(w, 1))?;
    if let (Some(view), Some(index)) = (args.get(w, 0).as_object(), key.as_index()) {
        st.heap.view_set(view, index, args.get(w, 2));
    }
    Ok(Value::UNDEFINED)
}
