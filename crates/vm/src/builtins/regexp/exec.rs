//! One match: `exec`, `test`, and the array that a match is to guests.

use super::cache::NOWHERE;
use super::{regexp, slow, subject};
use crate::builtins::Args;
use crate::exec::Window;
use crate::exec::state::{Exit, Res, State};
use crate::heap::{Attrs, Key, NO_SLOT, ObjId, Own, StrId, atoms};
use crate::regex::Flags;
use crate::text::number::convert::to_length;
use crate::value::Value;

/// A match that was looked for from an object's `lastIndex`.
struct Attempt {
    regexp: ObjId,
    s: StrId,
    /// Where to put the new `lastIndex`; nowhere if the flags do not ask for it.
    slot: Option<u32>,
    found: bool,
}

/// Looks for a match as `exec` does, and has no effect yet.
fn attempt(st: &mut State, w: &Window, a: Args) -> Result<Attempt, Exit> {
    let regexp = regexp(st, a.this).ok_or(Exit::Slow)?;
    let s = match a.get(w, 0) {
        v if v.is_string() => subject(st, v)?,
        v if v.is_object() => return Err(Exit::Slow),
        v => st.primitive_to_string(v)?,
    };
    let Own::Data { value, attrs, slot } = st.heap.get_own(regexp, Key::atom(atoms::LAST_INDEX)) else {
        return Err(Exit::Slow);
    };
    let last = to_length(value.as_number().ok_or(Exit::Slow)?);
    let flags = Flags::from_bits(st.regexp_bits(regexp));
    let moves = flags.has(Flags::GLOBAL) || flags.has(Flags::STICKY);
    if slot == NO_SLOT || (moves && !attrs.has(Attrs::WRITABLE)) {
        return Err(Exit::Slow);
    }
    let from = if moves { last } else { 0 };
    let found = if from > u64::from(st.heap.string_length(s)) {
        false
    } else {
        let pattern = st.ready_regexp(regexp)?;
        st.match_regexp(pattern, s, from as usize)?
    };
    Ok(Attempt { regexp, s, slot: moves.then_some(slot), found })
}

impl Attempt {
    /// The one effect: `lastIndex` moves behind the match, or back to the start.
    fn finish(&self, st: &mut State) {
        if let Some(slot) = self.slot {
            let end = if self.found { st.regexps.places.get(1).copied().unwrap_or(0) } else { 0 };
            st.heap.set_slot(self.regexp, slot, Value::uint(end));
        }
    }
}

pub(super) fn test(st: &mut State, w: &mut Window, a: Args) -> Res {
    // `test` reads `exec`, which the guest may have replaced.
    if super::plain(st, a.this).is_none() {
        return slow();
    }
    let attempt = attempt(st, w, a)?;
    attempt.finish(st);
    Ok(Value::bool(attempt.found))
}

pub(super) fn exec(st: &mut State, w: &mut Window, a: Args) -> Res {
    let attempt = attempt(st, w, a)?;
    let result = if attempt.found { result(st, attempt.regexp, attempt.s)? } else { Value::NULL };
    attempt.finish(st);
    Ok(result)
}

/// `%RegExpMatch(regexp, string, from)`: the result of a match, or null.
pub(super) fn match_at(st: &mut State, w: &mut Window, a: Args) -> Res {
    let Some(regexp) = regexp(st, a.get(w, 0)) else { return slow() };
    let s = subject(st, a.get(w, 1))?;
    let from = a.get(w, 2).as_number().unwrap_or(0.0) as usize;
    let pattern = st.ready_regexp(regexp)?;
    if st.match_regexp(pattern, s, from)? { result(st, regexp, s) } else { Ok(Value::NULL) }
}

/// What group `n` of the last match matched.
pub(super) fn group(st: &mut State, s: StrId, n: usize) -> Res {
    let (start, end) = range(st, n);
    if start == NOWHERE {
        return Ok(Value::UNDEFINED);
    }
    Ok(Value::string(st.heap.substring(s, start, end)?))
}

fn range(st: &State, n: usize) -> (u32, u32) {
    let place = |at: usize| st.regexps.places.get(at).copied().unwrap_or(NOWHERE);
    (place(2 * n), place(2 * n + 1))
}

/// The array of the last match.
pub(super) fn result(st: &mut State, regexp: ObjId, s: StrId) -> Res {
    let groups = st.regexps.places.len() / 2;
    st.burn(2 + groups as u64)?;
    let mut few = [Value::UNDEFINED; 8];
    let mut many = Vec::new();
    let values: &mut [Value] = if groups <= few.len() {
        &mut few[..groups]
    } else {
        many.resize(groups, Value::UNDEFINED);
        &mut many
    };
    for (n, value) in values.iter_mut().enumerate() {
        *value = group(st, s, n)?;
    }
    let flags = Flags::from_bits(st.regexp_bits(regexp));
    let names = names(st, regexp)?;
    let named = match names.is_empty() {
        true => Value::UNDEFINED,
        false => object_of(st, &names, values)?,
    };
    let array = st.heap.new_array(st.realm.match_shape, values)?;
    st.heap.set_slot(array, 0, Value::uint(range(st, 0).0));
    st.heap.set_slot(array, 1, Value::string(s));
    st.heap.set_slot(array, 2, named);
    if flags.has(Flags::INDICES) {
        let indices = indices(st, groups, &names)?;
        st.heap.add_property(array, Key::atom(atoms::INDICES), Attrs::ALL, indices)?;
    }
    Ok(Value::array(array))
}

/// The names of the pattern's groups, each with the number of the group that took part in the last match.
fn names(st: &mut State, regexp: ObjId) -> Result<Vec<(Key, usize)>, Exit> {
    let pattern = st.ready_regexp(regexp)?;
    let Some(program) = st.regexp_program(pattern) else { return Ok(Vec::new()) };
    if program.names().next().is_none() {
        return Ok(Vec::new());
    }
    let taken = |n: &&u32| range(st, **n as usize).0 != NOWHERE;
    let chosen: Vec<(String, usize)> = program
        .names()
        .map(|(name, groups)| {
            let group = groups.iter().find(taken).or(groups.first());
            (name.to_owned(), group.copied().unwrap_or(0) as usize)
        })
        .collect();
    let mut keys = Vec::with_capacity(chosen.len());
    for (name, group) in chosen {
        let atom = st.heap.intern_str(&name)?;
        keys.push((st.heap.key_of_string(atom)?, group));
    }
    Ok(keys)
}

/// An object without prototype that has a value for each name.
fn object_of(st: &mut State, names: &[(Key, usize)], values: &[Value]) -> Res {
    let shape = st.heap.root_shape(None)?;
    let object = st.heap.new_object(shape)?;
    st.burn(names.len() as u64)?;
    for &(key, group) in names {
        let value = values.get(group).copied().unwrap_or(Value::UNDEFINED);
        st.heap.add_property(object, key, Attrs::ALL, value)?;
    }
    Ok(Value::object(object))
}

/// The pairs of positions that the flag `d` asks for.
fn indices(st: &mut State, groups: usize, names: &[(Key, usize)]) -> Res {
    st.burn(groups as u64)?;
    let mut pairs = Vec::with_capacity(groups);
    for n in 0..groups {
        let (start, end) = range(st, n);
        pairs.push(match start {
            NOWHERE => Value::UNDEFINED,
            _ => {
                let pair = [Value::uint(start), Value::uint(end)];
                Value::array(st.heap.new_array(st.realm.array_shape, &pair)?)
            }
        });
    }
    let named = if names.is_empty() { Value::UNDEFINED } else { object_of(st, names, &pairs)? };
    let array = st.heap.new_array(st.realm.array_shape, &pairs)?;
    st.heap.add_property(array, Key::atom(atoms::GROUPS), Attrs::ALL, named)?;
    Ok(Value::array(array))
}
