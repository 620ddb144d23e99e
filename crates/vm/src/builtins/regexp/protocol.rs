//! `Symbol.match` and its siblings for plain objects, where no step can be seen by guest code; `replace` is next door.

use super::cache::{FLAGS, NOWHERE, SOURCE};
use super::{exec, hands_over, plain, slow, species_intact, subject};
use crate::builtins::Args;
use crate::builtins::string::listed;
use crate::exec::state::{Exit, Res, State};
use crate::exec::{Proto, Window};
use crate::heap::{Class, ObjId, StrId, symbols};
use crate::regex::Flags;
use crate::text::number::convert::to_uint32;
use crate::value::Value;

/// A plain object and the string that it is used on.
pub(super) fn operands(st: &mut State, v: Value, s: Value) -> Result<(ObjId, StrId), Exit> {
    let s = subject(st, s)?;
    let regexp = plain(st, v).ok_or(Exit::Slow)?;
    Ok((regexp, s))
}

/// `regexp[Symbol.match](string)`.
pub(super) fn find_all(st: &mut State, w: &mut Window, a: Args) -> Res {
    matches(st, a.this, a.get(w, 0))
}

/// `string.match(regexp)`.
pub(in crate::builtins) fn string_match(st: &mut State, w: &mut Window, a: Args) -> Res {
    if !hands_over(st, symbols::MATCH) {
        return slow();
    }
    matches(st, a.get(w, 0), a.this)
}

fn matches(st: &mut State, by: Value, s: Value) -> Res {
    let (regexp, s) = operands(st, by, s)?;
    if !Flags::from_bits(st.regexp_bits(regexp)).has(Flags::GLOBAL) {
        // One match is what `exec` answers.
        return one(st, regexp, s);
    }
    let mut list = Vec::new();
    each(st, regexp, s, 0, |st| {
        list.push(whole(st));
        listed(st, list.len())
    })?;
    if list.is_empty() {
        st.heap.set_slot(regexp, 0, Value::ZERO);
        return Ok(Value::NULL);
    }
    let mut strings = Vec::with_capacity(list.len());
    for (start, end) in list {
        strings.push(Value::string(st.heap.substring(s, start, end)?));
    }
    let array = st.heap.new_array(st.realm.array_shape, &strings)?;
    st.heap.set_slot(regexp, 0, Value::ZERO);
    Ok(Value::array(array))
}

/// `exec` of a plain object.
fn one(st: &mut State, regexp: ObjId, s: StrId) -> Res {
    let flags = Flags::from_bits(st.regexp_bits(regexp));
    let sticky = flags.has(Flags::STICKY);
    let from = if sticky { last_index(st, regexp) } else { 0 };
    let found = from <= st.heap.string_length(s) as usize && {
        let pattern = st.ready_regexp(regexp)?;
        st.match_regexp(pattern, s, from)?
    };
    let end = whole(st).1;
    let result = if found { exec::result(st, regexp, s)? } else { Value::NULL };
    if sticky {
        st.heap.set_slot(regexp, 0, if found { Value::uint(end) } else { Value::ZERO });
    }
    Ok(result)
}

pub(super) fn last_index(st: &State, regexp: ObjId) -> usize {
    st.heap.slot(regexp, 0).as_int().unwrap_or(0).max(0) as usize
}

/// Where the last match is.
pub(super) fn whole(st: &State) -> (u32, u32) {
    match st.regexps.places.first_chunk() {
        Some(&[start, end]) => (start, end),
        None => (0, 0),
    }
}

/// Calls `f` after every match from `from` on, as the loops over a global expression do. Has no effect on `lastIndex`.
pub(super) fn each(
    st: &mut State,
    regexp: ObjId,
    s: StrId,
    from: usize,
    mut f: impl FnMut(&mut State) -> Result<(), Exit>,
) -> Result<(), Exit> {
    let flags = Flags::from_bits(st.regexp_bits(regexp));
    let pattern = st.ready_regexp(regexp)?;
    let len = st.heap.string_length(s) as usize;
    let mut at = from;
    while at <= len && st.match_regexp(pattern, s, at)? {
        let (start, end) = whole(st);
        st.burn(2)?;
        f(st)?;
        at = if start == end { advance(st, s, end as usize, flags) } else { end as usize };
    }
    Ok(())
}

/// As [`listed`], for a list that grows by several values at once.
pub(super) fn room_for(st: &mut State, len: usize, step: usize) -> Result<(), Exit> {
    // The power of two that the last step reached or passed, if it did.
    let passed = (len - step + 1..=len).find(|n| n.is_power_of_two());
    passed.map_or(Ok(()), |n| listed(st, n))
}

/// AdvanceStringIndex.
fn advance(st: &State, s: StrId, at: usize, flags: Flags) -> usize {
    let step = match flags.reads_code_points() {
        true => st.heap.str(s).code_point(at).map_or(1, |(_, len)| len),
        false => 1,
    };
    at + step
}

/// `regexp[Symbol.matchAll](string)`.
pub(super) fn match_all(st: &mut State, w: &mut Window, a: Args) -> Res {
    iterate(st, a.this, a.get(w, 0))
}

/// `string.matchAll(regexp)`.
pub(in crate::builtins) fn string_match_all(st: &mut State, w: &mut Window, a: Args) -> Res {
    if !hands_over(st, symbols::MATCH_ALL) {
        return slow();
    }
    let global = plain(st, a.get(w, 0)).map(|r| Flags::from_bits(st.regexp_bits(r)).has(Flags::GLOBAL));
    if global == Some(true) { iterate(st, a.get(w, 0), a.this) } else { slow() }
}

/// An iterator over a copy of the expression. Its fields: the copy, string, global, code points, done.
fn iterate(st: &mut State, by: Value, s: Value) -> Res {
    let (regexp, s) = operands(st, by, s)?;
    if !species_intact(st) {
        return slow();
    }
    let fields = st.heap.slots_of(regexp).map(|id| st.heap.slots(id)).unwrap_or_default();
    let text = |n: usize| fields.get(n).and_then(|v| v.as_string());
    let (Some(source), Some(letters)) = (text(SOURCE), text(FLAGS)) else { return slow() };
    let flags = Flags::from_bits(st.regexp_bits(regexp));
    let prototype = st.realm.proto(Proto::RegExp);
    let copy = st.new_regexp(prototype, source, letters)?;
    let fields = [
        copy,
        Value::string(s),
        Value::bool(flags.has(Flags::GLOBAL)),
        Value::bool(flags.reads_code_points()),
        Value::FALSE,
    ];
    let shape = st.heap.root_shape(Some(st.realm.proto(Proto::RegExpStringIterator)))?;
    let class = Class::RegExpStringIterator;
    let iterator = st.heap.new_object_with_slots(shape, class, crate::heap::Flags::NONE, &fields)?;
    if let Some(copy) = copy.as_object() {
        st.heap.set_slot(copy, 0, st.heap.slot(regexp, 0));
    }
    Ok(Value::object(iterator))
}

/// The next match of an iterator whose expression is plain.
pub(super) fn next_match(st: &mut State, _w: &mut Window, a: Args) -> Res {
    let record = a.this.as_object().filter(|&o| st.heap.class(o) == Class::RegExpStringIterator);
    let Some(record) = record.and_then(|o| st.heap.slots_of(o)) else { return slow() };
    let &[by, s, global, _, done] = st.heap.slots(record) else { return slow() };
    if done == Value::TRUE || global != Value::TRUE {
        return slow();
    }
    let (regexp, s) = operands(st, by, s)?;
    let from = last_index(st, regexp);
    let found = from <= st.heap.string_length(s) as usize && {
        let pattern = st.ready_regexp(regexp)?;
        st.match_regexp(pattern, s, from)?
    };
    let (start, end) = whole(st);
    let flags = Flags::from_bits(st.regexp_bits(regexp));
    let value = if found { exec::result(st, regexp, s)? } else { Value::UNDEFINED };
    let result = st.iter_result(value, !found)?;
    let last = match (found, start == end) {
        (false, _) => 0,
        (true, true) => advance(st, s, end as usize, flags) as u32,
        (true, false) => end,
    };
    set_last_index(st, regexp, Some(last));
    if !found && let Some(done) = st.heap.slots_mut(record).get_mut(4) {
        *done = Value::TRUE;
    }
    Ok(result)
}

/// `%RegExpAdvance(string, index, codePoints)`.
pub(super) fn advance_index(st: &mut State, w: &mut Window, a: Args) -> Res {
    let s = subject(st, a.get(w, 0))?;
    let at = a.get(w, 1).as_number().unwrap_or(0.0);
    if a.get(w, 2) != Value::TRUE || at >= f64::from(st.heap.string_length(s)) {
        return Ok(Value::number(at + 1.0));
    }
    Ok(Value::number(advance(st, s, at as usize, Flags::UNICODE) as f64))
}

pub(super) fn set_last_index(st: &mut State, regexp: ObjId, last: Option<u32>) {
    if let Some(last) = last {
        st.heap.set_slot(regexp, 0, Value::uint(last));
    }
}

/// `regexp[Symbol.search](string)`.
pub(super) fn search(st: &mut State, w: &mut Window, a: Args) -> Res {
    search_for(st, a.this, a.get(w, 0))
}

/// `string.search(regexp)`.
pub(in crate::builtins) fn string_search(st: &mut State, w: &mut Window, a: Args) -> Res {
    if !hands_over(st, symbols::SEARCH) {
        return slow();
    }
    search_for(st, a.get(w, 0), a.this)
}

fn search_for(st: &mut State, by: Value, s: Value) -> Res {
    let (regexp, s) = operands(st, by, s)?;
    let pattern = st.ready_regexp(regexp)?;
    let found = st.match_regexp(pattern, s, 0)?;
    Ok(if found { Value::uint(whole(st).0) } else { Value::int(-1) })
}

/// `regexp[Symbol.split](string, limit)`.
pub(super) fn split(st: &mut State, w: &mut Window, a: Args) -> Res {
    split_by(st, a.this, a.get(w, 0), a.get(w, 1))
}

/// `string.split(regexp, limit)`.
pub(in crate::builtins) fn string_split(st: &mut State, w: &mut Window, a: Args) -> Res {
    if !hands_over(st, symbols::SPLIT) {
        return slow();
    }
    split_by(st, a.get(w, 0), a.this, a.get(w, 1))
}

fn split_by(st: &mut State, by: Value, s: Value, limit: Value) -> Res {
    let (regexp, s) = operands(st, by, s)?;
    let flags = Flags::from_bits(st.regexp_bits(regexp));
    // A sticky expression is tried at every place, which only the JavaScript version does.
    if limit.is_object() || flags.has(Flags::STICKY) || !species_intact(st) {
        return slow();
    }
    let limit = if limit.is_undefined() { u32::MAX } else { to_uint32(st.primitive_to_number(limit)?) };
    let parts = pieces(st, regexp, s, flags, limit as usize)?;
    st.burn(parts.len() as u64)?;
    let mut strings = Vec::with_capacity(parts.len());
    for (start, end) in parts {
        strings.push(match start {
            NOWHERE => Value::UNDEFINED,
            _ => Value::string(st.heap.substring(s, start, end)?),
        });
    }
    Ok(Value::array(st.heap.new_array(st.realm.array_shape, &strings)?))
}

/// The ranges that `split` answers with: the parts, and the captures between them.
fn pieces(
    st: &mut State,
    regexp: ObjId,
    s: StrId,
    flags: Flags,
    limit: usize,
) -> Result<Vec<(u32, u32)>, Exit> {
    let mut list = Vec::new();
    if limit == 0 {
        return Ok(list);
    }
    let size = st.heap.string_length(s);
    let pattern = st.ready_regexp(regexp)?;
    if size == 0 {
        if !st.match_regexp(pattern, s, 0)? {
            list.push((0, 0));
        }
        return Ok(list);
    }
    let (mut p, mut q) = (0u32, 0u32);
    while q < size && st.match_regexp(pattern, s, q as usize)? {
        let (start, end) = whole(st);
        if start >= size {
            break;
        }
        if end == p {
            q = advance(st, s, start as usize, flags) as u32;
            continue;
        }
        list.push((p, start));
        p = end;
        q = if start == end { advance(st, s, end as usize, flags) as u32 } else { end };
        st.burn(2 + st.regexps.places.len() as u64)?;
        for group in st.regexps.places.chunks_exact(2).skip(1) {
            if list.len() >= limit {
                break;
            }
            list.push((group[0], group[1]));
        }
        room_for(st, list.len(), st.regexps.places.len() / 2)?;
        if list.len() >= limit {
            return Ok(list);
        }
    }
    list.push((p, size));
    Ok(list)
}
