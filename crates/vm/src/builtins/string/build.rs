//! New strings made of others: joined, repeated, padded, replaced, spelled by numbers.

use super::{flat, integer, primitives, receiver};
use crate::builtins::Args;
use crate::code::ErrorKind;
use crate::exec::Window;
use crate::exec::state::{Exit, Res, State};
use crate::heap::{AllocError, MAX_LENGTH, Str, StrId, atoms};
use crate::text::number::convert::{to_integer_or_infinity, to_uint16, to_uint32};
use crate::text::search::Finder;
use crate::text::substitute::{Matched, is_plain, substitute};
use crate::text::{Text, linear_cost};
use crate::value::Value;

/// Makes sure that the heap could hold so many bytes more, before they are put together outside of it.
pub(in crate::builtins) fn room(st: &mut State, bytes: usize) -> Result<(), Exit> {
    st.heap.charge_outside(bytes)?;
    st.heap.release_outside(bytes);
    Ok(())
}

/// The finished text as a string.
fn finish(st: &mut State, text: &Text) -> Res {
    Ok(Value::string(st.heap.new_str(text.as_str())?))
}

pub(super) fn concat(st: &mut State, w: &mut Window, a: Args) -> Res {
    let mut result = a.this.as_string().ok_or(Exit::Slow)?;
    primitives(w, a, a.argc)?;
    st.burn(u64::from(a.argc))?;
    for n in 0..a.argc {
        let part = st.primitive_to_string(a.get(w, n))?;
        result = st.heap.concat(result, part)?;
    }
    Ok(Value::string(result))
}

pub(super) fn repeat(st: &mut State, w: &mut Window, a: Args) -> Res {
    let s = receiver(st, a)?;
    primitives(w, a, 1)?;
    let count = integer(st, a.get(w, 0))?;
    if !(0.0..f64::INFINITY).contains(&count) {
        let count = a.get(w, 0);
        let count = st.primitive_to_string(count)?;
        let count = st.string_text(count);
        return Err(st.throw(ErrorKind::Range, &format!("Invalid count value: {count}")));
    }
    let len = st.heap.string_length(s) as usize;
    if len == 0 || count == 0.0 {
        return Ok(Value::string(atoms::EMPTY));
    }
    filled(st, s, count * len as f64)
}

/// Appends a text again and again until so many units are there.
fn repeat_into(out: &mut Text, text: Str<'_>, total: usize) {
    match (out, text) {
        (Text::Latin1(out), Str::Latin1(&[byte])) => out.resize(total, byte),
        (out, text) => {
            while out.len() < total {
                let missing = total - out.len();
                out.push_text(text.slice(0, missing));
            }
        }
    }
}

/// A string repeated up to `total` units, whose size is checked and paid for first.
fn filled(st: &mut State, s: StrId, total: f64) -> Res {
    if total > MAX_LENGTH as f64 {
        return Err(Exit::Alloc(AllocError::TooLong));
    }
    let total = total as usize;
    st.burn(linear_cost(total) + total as u64 / u64::from(st.heap.string_length(s).max(1)))?;
    room(st, total * if st.heap.is_wide(s) { 2 } else { 1 })?;
    let mut out = Text::with_capacity(total);
    repeat_into(&mut out, st.heap.str(s), total);
    finish(st, &out)
}

pub(super) fn pad_start(st: &mut State, w: &mut Window, a: Args) -> Res {
    match padding(st, w, a)? {
        (s, Some(fill)) => Ok(Value::string(st.heap.concat(fill, s)?)),
        (s, None) => Ok(Value::string(s)),
    }
}

pub(super) fn pad_end(st: &mut State, w: &mut Window, a: Args) -> Res {
    match padding(st, w, a)? {
        (s, Some(fill)) => Ok(Value::string(st.heap.concat(s, fill)?)),
        (s, None) => Ok(Value::string(s)),
    }
}

/// The receiver and what must be added to it.
fn padding(st: &mut State, w: &Window, a: Args) -> Result<(StrId, Option<StrId>), Exit> {
    let s = receiver(st, a)?;
    primitives(w, a, 2)?;
    let wanted = integer(st, a.get(w, 0))?;
    let len = f64::from(st.heap.string_length(s));
    if wanted <= len {
        return Ok((s, None));
    }
    let fill = match a.get(w, 1) {
        v if v.is_undefined() => st.heap.char_string(b' '),
        v => flat(st, v)?,
    };
    if st.heap.string_length(fill) == 0 {
        return Ok((s, None));
    }
    if wanted > MAX_LENGTH as f64 {
        return Err(Exit::Alloc(AllocError::TooLong));
    }
    let fill = filled(st, fill, wanted - len)?;
    Ok((s, fill.as_string()))
}

/// `replace` of a string by a string.
pub(super) fn replace(st: &mut State, w: &mut Window, a: Args) -> Res {
    replaced(st, w, a, Occurrences::First)
}

/// `replaceAll` of a string by a string.
pub(super) fn replace_all(st: &mut State, w: &mut Window, a: Args) -> Res {
    replaced(st, w, a, Occurrences::All)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Occurrences {
    First,
    All,
}

fn replaced(st: &mut State, w: &mut Window, a: Args, which: Occurrences) -> Res {
    let s = receiver(st, a)?;
    if which == Occurrences::First && a.get(w, 0).is_object() {
        return crate::builtins::regexp::string_replace(st, w, a);
    }
    primitives(w, a, 2)?;
    let (needle, by) = (flat(st, a.get(w, 0))?, flat(st, a.get(w, 1))?);
    let lengths = [s, needle, by].map(|s| st.heap.string_length(s) as usize);
    st.burn(lengths.into_iter().map(linear_cost).sum())?;
    let mut places = Vec::new();
    let most = if which == Occurrences::First { 1 } else { usize::MAX };
    find_each(st, s, needle, most, |at| places.push(at))?;
    if places.is_empty() {
        return Ok(Value::string(s));
    }
    // A reference may stand for the whole text, in every place.
    let plain = is_plain(st.heap.str(by));
    let each = if plain { lengths[2] } else { lengths[2].saturating_mul(lengths[0].max(1)) };
    let total = lengths[0].saturating_add(each.saturating_mul(places.len()));
    if plain {
        enough(st, total)?;
    }
    let mut out = Text::with_capacity(if plain { total } else { lengths[0] });
    let (mut done, mut paid) = (0, 0);
    for at in places {
        let end = at + lengths[1];
        out.push_text(st.heap.str(s).slice(done, at));
        if plain {
            out.push_text(st.heap.str(by));
        } else {
            let matched = Matched {
                text: st.heap.str(s),
                whole: st.heap.str(needle),
                start: at,
                end,
                groups: 0,
                group: |_: usize| None,
            };
            substitute(st.heap.str(by), &matched, None::<fn(Str<'_>) -> Option<Str<'static>>>, &mut out);
            grown(st, out.len(), paid)?;
            paid = out.len();
        }
        done = end;
    }
    out.push_text(st.heap.str(s).slice(done, lengths[0]));
    finish(st, &out)
}

/// Calls `found` for each place where the needle stands, at most `most` times. Places do not overlap.
pub(super) fn find_each(
    st: &mut State,
    s: StrId,
    needle: StrId,
    most: usize,
    mut found: impl FnMut(usize),
) -> Result<(), Exit> {
    let step = st.heap.string_length(needle).max(1) as usize;
    let (mut from, mut count) = (0, 0);
    // In rounds, so that the list that the caller makes is looked at while it grows.
    loop {
        let round = (2 * count).max(LISTED).min(most);
        let (text, mut finder) = (st.heap.str(s), Finder::new(st.heap.str(needle)));
        while count < round
            && let Some(at) = finder.find(text, from)
        {
            found(at);
            count += 1;
            from = at + step;
        }
        if count < round || count == most {
            return st.burn(count as u64);
        }
        room(st, 2 * count * size_of::<Value>())?;
    }
}

/// A text of so many units may be made: not too long, paid for, and with room in the heap.
pub(in crate::builtins) fn enough(st: &mut State, units: usize) -> Result<(), Exit> {
    grown(st, units, 0)
}

/// A text that grew to so many units may be made, where some of them are paid for.
pub(in crate::builtins) fn grown(st: &mut State, units: usize, paid: usize) -> Result<(), Exit> {
    if units > MAX_LENGTH {
        return Err(Exit::Alloc(AllocError::TooLong));
    }
    st.burn(linear_cost(units.saturating_sub(paid)))?;
    room(st, units)
}

/// A list that grows outside of the heap may go on growing: the heap must be able to hold what becomes of it.
#[inline]
pub(in crate::builtins) fn listed(st: &mut State, len: usize) -> Result<(), Exit> {
    if len >= LISTED && len.is_power_of_two() { room(st, 2 * len * size_of::<Value>()) } else { Ok(()) }
}

/// Shorter lists are not looked at.
const LISTED: usize = 4096;

/// `%StringExpand(template, text, matched, start, captures)`: GetSubstitution without named groups. Captures are strings
/// or undefined.
pub(super) fn expand(st: &mut State, w: &mut Window, a: Args) -> Res {
    let (template, text, whole) = (flat(st, a.get(w, 0))?, flat(st, a.get(w, 1))?, flat(st, a.get(w, 2))?);
    let len = st.heap.string_length(text) as usize;
    let start = super::position(st, a.get(w, 3), len)?;
    let end = (start + st.heap.string_length(whole) as usize).min(len);
    let captures: Vec<Value> =
        a.get(w, 4).as_array().and_then(|list| st.heap.packed(list)).unwrap_or_default().to_vec();
    st.burn(linear_cost(len) + captures.len() as u64)?;
    for capture in captures.iter().filter_map(|c| c.as_string()) {
        st.heap.flatten(capture)?;
    }
    let mut out = Text::with_capacity(st.heap.string_length(template) as usize);
    let heap = &st.heap;
    let group = |n: usize| captures.get(n - 1).and_then(|c| c.as_string()).map(|c| heap.str(c));
    let matched =
        Matched { text: heap.str(text), whole: heap.str(whole), start, end, groups: captures.len(), group };
    substitute(heap.str(template), &matched, None::<fn(Str<'_>) -> Option<Str<'static>>>, &mut out);
    enough(st, out.len())?;
    finish(st, &out)
}

pub(super) fn from_char_code(st: &mut State, w: &mut Window, a: Args) -> Res {
    primitives(w, a, a.argc)?;
    if a.argc == 1 {
        let unit = to_uint16(st.primitive_to_number(a.get(w, 0))?);
        return Ok(Value::string(st.heap.unit_string(unit)?));
    }
    st.burn(u64::from(a.argc))?;
    let mut out = Text::with_capacity(a.argc as usize);
    for n in 0..a.argc {
        let code = st.primitive_to_number(a.get(w, n))?;
        out.push(to_uint32(code) as u16);
    }
    finish(st, &out)
}

pub(super) fn from_code_point(st: &mut State, w: &mut Window, a: Args) -> Res {
    primitives(w, a, a.argc)?;
    st.burn(u64::from(a.argc))?;
    let mut out = Text::with_capacity(a.argc as usize);
    for n in 0..a.argc {
        let v = a.get(w, n);
        let point = st.primitive_to_number(v)?;
        if !(0.0..=1_114_111.0).contains(&point) || to_integer_or_infinity(point) != point {
            let text = st.primitive_to_string(v)?;
            let text = st.string_text(text);
            return Err(st.throw(ErrorKind::Range, &format!("Invalid code point {text}")));
        }
        out.push_code_point(point as u32);
    }
    finish(st, &out)
}
