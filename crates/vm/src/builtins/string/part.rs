//! Parts of a string: they share its storage when they are long.

use super::build::find_each;
use super::{flat, integer, position, primitives, receiver};
use crate::builtins::Args;
use crate::exec::Window;
use crate::exec::state::{Exit, Res, State};
use crate::heap::{Str, StrId};
use crate::text::number::convert::to_uint32;
use crate::text::{linear_cost, unicode};
use crate::value::Value;

/// A substring, paid for: short ones are copied, wide ones are looked through.
fn substring_of(st: &mut State, s: StrId, start: usize, end: usize) -> Res {
    st.burn(linear_cost(end.saturating_sub(start)))?;
    Ok(Value::string(st.heap.substring(s, start as u32, end as u32)?))
}

/// A position that counts from the end when it is negative.
fn relative(st: &mut State, v: Value, len: usize) -> Result<usize, Exit> {
    let at = integer(st, v)?;
    let at = if at < 0.0 { len as f64 + at } else { at };
    Ok(at.clamp(0.0, len as f64) as usize)
}

pub(super) fn slice(st: &mut State, w: &mut Window, a: Args) -> Res {
    let s = receiver(st, a)?;
    primitives(w, a, 2)?;
    let len = st.heap.string_length(s) as usize;
    let start = relative(st, a.get(w, 0), len)?;
    let end = match a.get(w, 1) {
        v if v.is_undefined() => len,
        v => relative(st, v, len)?,
    };
    substring_of(st, s, start, end.max(start))
}

pub(super) fn substring(st: &mut State, w: &mut Window, a: Args) -> Res {
    let s = receiver(st, a)?;
    primitives(w, a, 2)?;
    let len = st.heap.string_length(s) as usize;
    let start = position(st, a.get(w, 0), len)?;
    let end = match a.get(w, 1) {
        v if v.is_undefined() => len,
        v => position(st, v, len)?,
    };
    substring_of(st, s, start.min(end), start.max(end))
}

pub(super) fn substr(st: &mut State, w: &mut Window, a: Args) -> Res {
    let s = receiver(st, a)?;
    primitives(w, a, 2)?;
    let len = st.heap.string_length(s) as usize;
    let start = relative(st, a.get(w, 0), len)?;
    let count = match a.get(w, 1) {
        v if v.is_undefined() => len - start,
        v => position(st, v, len - start)?,
    };
    substring_of(st, s, start, start + count)
}

pub(super) fn trim(st: &mut State, _w: &mut Window, a: Args) -> Res {
    trimmed(st, a, unicode::trim_start, unicode::trim_end)
}

pub(super) fn trim_start(st: &mut State, _w: &mut Window, a: Args) -> Res {
    trimmed(st, a, unicode::trim_start, |text| text)
}

pub(super) fn trim_end(st: &mut State, _w: &mut Window, a: Args) -> Res {
    trimmed(st, a, |text| text, unicode::trim_end)
}

fn trimmed(st: &mut State, a: Args, start: fn(Str<'_>) -> Str<'_>, end: fn(Str<'_>) -> Str<'_>) -> Res {
    let s = receiver(st, a)?;
    let text = st.heap.str(s);
    st.burn(linear_cost(text.len()))?;
    let text = st.heap.str(s);
    let rest = start(text);
    let from = text.len() - rest.len();
    let to = from + end(rest).len();
    substring_of(st, s, from, to)
}

/// `split` by a string.
pub(super) fn split(st: &mut State, w: &mut Window, a: Args) -> Res {
    let s = receiver(st, a)?;
    if a.get(w, 0).is_object() {
        return crate::builtins::regexp::string_split(st, w, a);
    }
    primitives(w, a, 2)?;
    let limit = match a.get(w, 1) {
        v if v.is_undefined() => u32::MAX,
        v => to_uint32(st.primitive_to_number(v)?),
    };
    let separator = a.get(w, 0);
    let by = flat(st, separator)?;
    let mut parts = Vec::new();
    if limit == 0 {
        // Nothing is wanted, whatever the separator is.
    } else if separator.is_undefined() {
        parts.push(Value::string(s));
    } else if st.heap.string_length(by) == 0 {
        let count = st.heap.string_length(s).min(limit);
        st.burn(u64::from(count))?;
        super::build::room(st, count as usize * size_of::<Value>())?;
        parts.reserve(count as usize);
        for at in 0..count as usize {
            parts.push(super::unit_at(st, s, at)?);
        }
    } else {
        for (start, end) in pieces(st, s, by, limit)? {
            parts.push(Value::string(st.heap.substring(s, start, end)?));
        }
    }
    Ok(Value::array(st.heap.new_array(st.realm.array_shape, &parts)?))
}

/// Where the parts between separators are, at most `limit` of them.
fn pieces(st: &mut State, s: StrId, by: StrId, limit: u32) -> Result<Vec<(u32, u32)>, Exit> {
    // Twice: wide parts are looked through again when they become strings.
    st.burn(2 * linear_cost(st.heap.string_length(s) as usize + st.heap.string_length(by) as usize))?;
    let len = st.heap.string_length(s);
    let width = st.heap.string_length(by);
    let mut pieces = Vec::new();
    let mut start = 0;
    find_each(st, s, by, limit as usize, |at| {
        pieces.push((start, at as u32));
        start = at as u32 + width;
    })?;
    if (pieces.len() as u32) < limit {
        pieces.push((start, len));
    }
    st.burn(pieces.len() as u64)?;
    Ok(pieces)
}
