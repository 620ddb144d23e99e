//! Iteration: arrays by position, everything else through the protocol in the prelude.
//!
//! An iterator is two registers. For an array or a string whose iteration nobody has changed they hold it and the next
//! position; otherwise the iterator object and its `next`. An iterator that ran out is undefined in the first.

use super::Window;
use super::frame::FrameFlags;
use super::helper::Helper;
use super::object::array_push;
use super::state::{Exit, State};
use crate::heap::{Attrs, Class, Found, Key, Own, symbols};
use crate::value::Value;
use std::collections::BTreeSet;

/// What a step found.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    Value,
    Done,
}

/// Whether `for…of` over this array is the same as counting.
pub(crate) fn is_plain_array(st: &State, v: Value) -> bool {
    let Some(obj) = v.as_array() else { return false };
    st.heap.get(obj, Key::symbol(symbols::ITERATOR)) == Found::Data(st.realm.array_values)
        && matches!(st.heap.get_own(st.realm.array_iterator_prototype, Key::atom(crate::heap::atoms::NEXT)),
            Own::Data { value, .. } if value == st.realm.array_iterator_next)
}

#[inline(never)]
pub(crate) fn get_iter(st: &mut State, w: &mut Window, a: u8, b: u8) -> Result<(), Exit> {
    let v = w[b as usize];
    if is_plain_array(st, v) || (v.is_string() && crate::builtins::iterates_plainly(st)) {
        w[a as usize] = v;
        w[a as usize + 1] = Value::ZERO;
        return Ok(());
    }
    get_real_iter(st, w, a, b)
}

pub(crate) fn get_real_iter(st: &mut State, w: &mut Window, a: u8, b: u8) -> Result<(), Exit> {
    let v = w[b as usize];
    Err(st.enter_helper(w, Helper::GetIterator, &[v], a, FrameFlags::PAIR))
}

pub(crate) fn get_async_iter(st: &mut State, w: &mut Window, a: u8, b: u8) -> Result<(), Exit> {
    let v = w[b as usize];
    Err(st.enter_helper(w, Helper::GetAsyncIterator, &[v], a, FrameFlags::PAIR))
}

#[inline(never)]
pub(crate) fn iter_next(st: &mut State, w: &mut Window, d: u8, a: u8) -> Result<Next, Exit> {
    let (iter, next) = (w[a as usize], w[a as usize + 1]);
    if iter.is_undefined() {
        w[d as usize] = Value::UNDEFINED;
        return Ok(Next::Done);
    }
    if let (Some(i), Some(s)) = (next.as_int(), iter.as_string()) {
        return next_of_string(st, w, d, a, s, i as u32);
    }
    let (Some(i), Some(array)) = (next.as_int(), iter.as_array()) else {
        if let Some(found) = own_step(st, w, d, iter, next)? {
            if found == Next::Done {
                w[a as usize] = Value::UNDEFINED;
                w[d as usize] = Value::UNDEFINED;
            }
            return Ok(found);
        }
        return Err(st.enter_helper(w, Helper::IterStep, &[iter, next], d, FrameFlags::STEP));
    };
    if i as u32 >= st.heap.array_length(array) {
        w[a as usize] = Value::UNDEFINED;
        w[d as usize] = Value::UNDEFINED;
        return Ok(Next::Done);
    }
    // A hole: looked up like any property, which may run a getter.
    let key = st.heap.key_of_index(i as u32)?;
    w[a as usize + 1] = Value::int(i.wrapping_add(1));
    match super::property::get(st, w, d, iter, key) {
        Ok(v) => w[d as usize] = v,
        Err(exit) => {
            if let Exit::Alloc(_) = exit {
                // The step is taken again after a collection.
                w[a as usize + 1] = Value::int(i);
            }
            return Err(exit);
        }
    }
    Ok(Next::Value)
}

/// A step of an iterator of the engine's own with the `next` that the engine gave it: no helper, and no result object where
/// that can be had. `None`: the case needs the protocol.
fn own_step(st: &mut State, w: &mut Window, d: u8, iter: Value, next: Value) -> Result<Option<Next>, Exit> {
    let Some(object) = iter.as_object() else { return Ok(None) };
    let class = st.heap.class(object);
    let helper = match class {
        Class::Generator if next == st.helper(Helper::GeneratorNext) => {
            return st.step_generator(iter, d);
        }
        Class::MapIterator => Helper::MapIteratorNext,
        Class::SetIterator => Helper::SetIteratorNext,
        Class::ArrayIterator if next == st.realm.array_iterator_next => {
            return native_step(st, w, d, iter, next);
        }
        Class::StringIterator if next == st.helper(Helper::StringIteratorNext) => {
            return native_step(st, w, d, iter, next);
        }
        _ => return Ok(None),
    };
    if next != st.helper(helper) {
        return Ok(None);
    }
    match crate::builtins::table_step(st, object, class)? {
        Some(v) => {
            w[d as usize] = v;
            Ok(Some(Next::Value))
        }
        None => Ok(Some(Next::Done)),
    }
}

/// A step by a native that enters no frame; its result is taken apart at once.
fn native_step(
    st: &mut State,
    w: &mut Window,
    d: u8,
    iter: Value,
    next: Value,
) -> Result<Option<Next>, Exit> {
    let result = match super::native::call_directly(st, w, next, iter) {
        Ok(result) => result,
        Err(Exit::Slow) => return Ok(None),
        Err(exit) => return Err(exit),
    };
    let Some(object) = result.as_object().filter(|&o| st.heap.shape(o) == st.realm.result_shape) else {
        return Ok(None);
    };
    if st.heap.slot(object, 1) == Value::TRUE {
        return Ok(Some(Next::Done));
    }
    w[d as usize] = st.heap.slot(object, 0);
    Ok(Some(Next::Value))
}

/// The next code point.
fn next_of_string(
    st: &mut State,
    w: &mut Window,
    d: u8,
    a: u8,
    s: crate::heap::StrId,
    at: u32,
) -> Result<Next, Exit> {
    st.heap.flatten(s)?;
    let Some((_, len)) = st.heap.str(s).code_point(at as usize) else {
        w[a as usize] = Value::UNDEFINED;
        w[d as usize] = Value::UNDEFINED;
        return Ok(Next::Done);
    };
    let end = at + len as u32;
    w[d as usize] = Value::string(st.heap.substring(s, at, end)?);
    w[a as usize + 1] = Value::uint(end);
    Ok(Next::Value)
}

#[inline(never)]
pub(crate) fn close(st: &mut State, w: &mut Window, a: u8) -> Result<(), Exit> {
    let (iter, next) = (w[a as usize], w[a as usize + 1]);
    if iter.is_undefined() || next.is_int() {
        return Ok(());
    }
    Err(st.enter_helper(w, Helper::IterClose, &[iter], 0, FrameFlags::DISCARD))
}

#[inline(never)]
pub(crate) fn abort(st: &mut State, w: &mut Window, a: u8) -> Result<(), Exit> {
    let (iter, next) = (w[a as usize], w[a as usize + 1]);
    if iter.is_undefined() || next.is_int() {
        return Ok(());
    }
    Err(st.enter_helper(w, Helper::IterAbort, &[iter], 0, FrameFlags::DISCARD))
}

#[cold]
pub(crate) fn not_a_result(st: &mut State) -> Result<(), Exit> {
    Err(st.type_error("Iterator result is not an object"))
}

#[inline(never)]
pub(crate) fn spread(st: &mut State, w: &mut Window, array: Value, iterable: Value) -> Result<(), Exit> {
    if is_plain_array(st, iterable)
        && let Some(from) = iterable.as_array()
        && let Some(values) = st.heap.packed(from)
        && let Some(to) = array.as_array()
    {
        let values = values.to_vec();
        st.burn(values.len() as u64)?;
        let start = st.heap.array_length(to);
        for v in values {
            if let Err(exit) = array_push(st, array, v) {
                // The instruction is executed again after a collection, so it takes back what it did.
                if let Exit::Alloc(_) = exit {
                    st.heap.set_array_length(to, start)?;
                }
                return Err(exit);
            }
        }
        return Ok(());
    }
    Err(st.enter_helper(w, Helper::Spread, &[array, iterable], 0, FrameFlags::DISCARD))
}

/// Enumerable string keys along the prototype chain, as an array in `a` and a position in `a + 1`; `a + 1` of a
/// nullish subject counts nothing.
#[inline(never)]
pub(crate) fn for_in(st: &mut State, w: &mut Window, a: u8, b: u8) -> Result<(), Exit> {
    let subject = w[b as usize];
    let mut at = subject.as_object();
    let list = st.heap.new_array(st.realm.array_shape, &[subject])?;
    // A tree and not a hash table: no choice of keys makes it slow.
    let mut seen = BTreeSet::new();
    while let Some(obj) = at {
        let mut keys = Vec::new();
        if !st.keys(obj, &mut keys)? {
            return Err(st.enter_helper(w, Helper::ForIn, &[subject], a, FrameFlags::PAIR));
        }
        st.burn(1)?;
        for key in keys {
            if key.as_symbol().is_some() || seen.contains(&key) {
                continue;
            }
            let attrs = match st.own(obj, key)? {
                Own::Data { attrs, .. } | Own::Accessor { attrs, .. } => attrs,
                Own::Absent | Own::Exotic => continue,
            };
            seen.insert(key);
            if attrs.has(Attrs::ENUMERABLE) {
                let name = st.heap.key_to_value(key)?;
                array_push(st, Value::array(list), name)?;
            }
        }
        at = st.heap.prototype(obj);
    }
    if let Some(s) = subject.as_string() {
        for i in 0..st.heap.string_length(s) {
            let key = st.heap.key_of_index(i)?;
            let name = st.heap.key_to_value(key)?;
            array_push(st, Value::array(list), name)?;
        }
    }
    w[a as usize] = Value::array(list);
    w[a as usize + 1] = Value::int(1);
    Ok(())
}

#[inline(never)]
pub(crate) fn for_in_next(st: &mut State, w: &mut Window, d: u8, a: u8) -> Result<Next, Exit> {
    let (Some(list), Some(mut i)) = (w[a as usize].as_array(), w[a as usize + 1].as_int()) else {
        return Ok(Next::Done);
    };
    let subject = st.heap.array_get(list, 0).unwrap_or(Value::UNDEFINED);
    loop {
        let Some(name) = st.heap.array_get(list, i as u32) else { return Ok(Next::Done) };
        i = i.wrapping_add(1);
        w[a as usize + 1] = Value::int(i);
        // A key that was deleted meanwhile is not visited.
        let key = st.property_key(name)?;
        let there = match subject.as_object() {
            Some(obj) => st.look_up(obj, key)? != Found::Absent,
            None => true,
        };
        if there {
            w[d as usize] = name;
            return Ok(Next::Value);
        }
    }
}
