//! What `structuredClone` copies without running guest code: buffers, views, wrappers, empty containers.

use super::{Args, Row, slow};
use crate::exec::state::{Res, State};
use crate::exec::{Proto, Window};
use crate::heap::{Class, View};
use crate::value::Value;

pub(super) const ROWS: &[Row] = &[
    ("CloneBuffer", clone_buffer),
    ("DetachBuffer", |st, w, a| {
        if let Some(id) = a.get(w, 0).as_object().and_then(|o| st.heap.buffer_of(o)) {
            st.heap.detach_buffer(id);
        }
        Ok(Value::UNDEFINED)
    }),
    ("ViewBuffer", |st, w, a| match a.get(w, 0).as_object().and_then(|o| st.heap.view_of(o)) {
        Some(view) => Ok(Value::object(view.buffer)),
        None => slow(),
    }),
    ("CloneView", clone_view),
    ("CloneSimple", clone_simple),
];

/// `%CloneBuffer(buffer)`: a copy; undefined if it is detached.
fn clone_buffer(st: &mut State, w: &mut Window, a: Args) -> Res {
    let Some(from) = a.get(w, 0).as_object().and_then(|o| st.heap.buffer_of(o)) else { return slow() };
    if st.heap.is_detached(from) {
        return Ok(Value::UNDEFINED);
    }
    let length = st.heap.buffer(from).len();
    st.burn(1 + length as u64 / 16)?;
    let shape = st.heap.root_shape(Some(st.realm.proto(Proto::ArrayBuffer)))?;
    let max = st.heap.buffer_max(from);
    let made = st.heap.new_buffer(shape, Class::ArrayBuffer, length, max)?;
    if let Some(to) = st.heap.buffer_of(made) {
        let bytes = st.heap.buffer(from).to_vec();
        st.heap.buffer_mut(to).copy_from_slice(&bytes);
    }
    Ok(Value::object(made))
}

/// `%CloneView(view, buffer)`: the same window into another buffer.
fn clone_view(st: &mut State, w: &mut Window, a: Args) -> Res {
    let (Some(from), Some(buffer)) = (a.get(w, 0).as_object(), a.get(w, 1).as_object()) else {
        return slow();
    };
    let Some(view) = st.heap.view_of(from) else { return slow() };
    let class = st.heap.class(from);
    // The prototypes of typed arrays are in the order of the element types.
    let first = Proto::Int8Array as usize;
    let proto = if class == Class::DataView {
        Proto::DataView
    } else {
        *Proto::ALL.get(first + view.element as usize).unwrap_or(&Proto::Uint8Array)
    };
    let shape = st.heap.root_shape(Some(st.realm.proto(proto)))?;
    Ok(Value::object(st.heap.new_view(shape, class, View { buffer, ..view })?))
}

/// `%CloneSimple(o)`: a wrapper or date with the same value, or an empty object or array; undefined for anything else.
fn clone_simple(st: &mut State, w: &mut Window, a: Args) -> Res {
    let Some(from) = a.get(w, 0).as_object() else { return slow() };
    let proto = match st.heap.class(from) {
        Class::Object | Class::Arguments => {
            return Ok(Value::object(st.heap.new_object(st.realm.object_shape)?));
        }
        Class::Array => {
            let length = st.heap.array_length(from);
            let array = st.heap.new_array(st.realm.array_shape, &[])?;
            st.heap.set_array_length(array, length)?;
            return Ok(Value::array(array));
        }
        Class::Boolean => Proto::Boolean,
        Class::Number => Proto::Number,
        Class::String => Proto::String,
        Class::BigInt => Proto::BigInt,
        Class::Date => Proto::Date,
        _ => return Ok(Value::UNDEFINED),
    };
    let Some(cell) = st.heap.cell_of(from) else { return slow() };
    let value = st.heap.cell(cell);
    let shape = st.heap.root_shape(Some(st.realm.proto(proto)))?;
    Ok(Value::object(st.heap.new_object_with_cell(shape, st.heap.class(from), value)?))
}
