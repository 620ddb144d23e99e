//! `Symbol.replace` of plain objects: by a text here, by a function together with `regexp.js`.

use super::cache::NOWHERE;
use super::protocol::{each, last_index, operands, room_for, set_last_index, whole};
use super::{exec, hands_over, slow, subject};
use crate::builtins::Args;
use crate::builtins::string::{enough, flat, grown};
use crate::exec::Window;
use crate::exec::state::{Exit, Res, State};
use crate::heap::{ObjId, Str, StrId, symbols};
use crate::regex::Flags;
use crate::text::Text;
use crate::text::substitute::{Matched, is_plain, substitute};
use crate::value::Value;

/// `regexp[Symbol.replace](string, replacement)` with a replacement that is no function.
pub(super) fn replace(st: &mut State, w: &mut Window, a: Args) -> Res {
    replace_by(st, a.this, a.get(w, 0), a.get(w, 1))
}

/// `string.replace(regexp, replacement)`.
pub(in crate::builtins) fn string_replace(st: &mut State, w: &mut Window, a: Args) -> Res {
    if !hands_over(st, symbols::REPLACE) {
        return slow();
    }
    replace_by(st, a.get(w, 0), a.this, a.get(w, 1))
}

fn replace_by(st: &mut State, by: Value, s: Value, replacement: Value) -> Res {
    let (regexp, s) = operands(st, by, s)?;
    if replacement.is_object() {
        return slow();
    }
    let template = flat(st, replacement)?;
    let verbatim = is_plain(st.heap.str(template));
    let pattern = st.ready_regexp(regexp)?;
    let mut out = Text::with_capacity(0);
    let mut done = 0;
    let mut paid = 0;
    let last = replaced(st, regexp, s, |st| {
        let (start, end) = whole(st);
        let (heap, places) = (&st.heap, &st.regexps.places);
        let text = heap.str(s);
        out.push_text(text.slice(done, start as usize));
        done = end as usize;
        if verbatim {
            out.push_text(heap.str(template));
        } else {
            let group = |n: usize| match (places.get(2 * n), places.get(2 * n + 1)) {
                (Some(&start), Some(&end)) if start != NOWHERE => {
                    Some(text.slice(start as usize, end as usize))
                }
                _ => None,
            };
            let program = st.regexp_program(pattern);
            let has_names = program.is_some_and(|p| p.names().next().is_some());
            let named = |name: Str<'_>| {
                let name = name.to_string_lossy();
                let (_, groups) = program.and_then(|p| p.names().find(|(n, _)| *n == name))?;
                groups.iter().find_map(|&n| group(n as usize))
            };
            let matched = Matched {
                text,
                whole: text.slice(start as usize, done),
                start: start as usize,
                end: done,
                groups: places.len() / 2 - 1,
                group,
            };
            substitute(heap.str(template), &matched, has_names.then_some(named), &mut out);
        }
        // Paid as it grows: a reference may stand for the whole text in every match.
        if out.len() - paid >= 4096 {
            grown(st, out.len(), paid)?;
            paid = out.len();
        }
        Ok(())
    })?;
    let len = st.heap.string_length(s) as usize;
    let result = if out.is_empty() && done == 0 {
        s
    } else {
        out.push_text(st.heap.str(s).slice(done, len));
        grown(st, out.len(), paid)?;
        st.heap.new_str(out.as_str())?
    };
    set_last_index(st, regexp, last);
    Ok(Value::string(result))
}

/// `%RegExpArguments(regexp, string)`: for a plain object, what a function gets for every match that `replace` is about:
/// the match, the captures, the position; one match after the other. `lastIndex` is then as `replace` leaves it. Null
/// for a pattern with names.
pub(super) fn arguments(st: &mut State, w: &mut Window, a: Args) -> Res {
    let (regexp, s) = operands(st, a.get(w, 0), a.get(w, 1))?;
    let pattern = st.ready_regexp(regexp)?;
    if st.regexp_program(pattern).is_none_or(|p| p.names().next().is_some()) {
        return Ok(Value::NULL);
    }
    let mut list = Vec::new();
    let last = replaced(st, regexp, s, |st| {
        let groups = st.regexps.places.len() / 2;
        st.burn(groups as u64)?;
        for n in 0..groups {
            list.push(exec::group(st, s, n)?);
        }
        list.push(Value::uint(whole(st).0));
        room_for(st, list.len(), groups + 1)
    })?;
    let array = st.heap.new_array(st.realm.array_shape, &list)?;
    set_last_index(st, regexp, last);
    Ok(Value::array(array))
}

/// `%RegExpAssemble(string, found, stride, replacements)`: the string with each match replaced; `found` is the answer of
/// `%RegExpArguments`, `stride` the number of its values for each match.
pub(super) fn assemble(st: &mut State, w: &mut Window, a: Args) -> Res {
    let s = subject(st, a.get(w, 0))?;
    let list =
        |st: &State, v: Value| v.as_array().and_then(|l| st.heap.packed(l)).unwrap_or_default().to_vec();
    let (found, by) = (list(st, a.get(w, 1)), list(st, a.get(w, 3)));
    let stride = a.get(w, 2).as_int().unwrap_or(2).max(2) as usize;
    let mut units = st.heap.string_length(s) as usize;
    for v in &by {
        let Some(part) = v.as_string() else { return slow() };
        st.heap.flatten(part)?;
        units += st.heap.string_length(part) as usize;
    }
    st.burn(by.len() as u64)?;
    enough(st, units)?;
    let text = st.heap.str(s);
    let mut out = Text::with_capacity(units);
    let mut done = 0;
    for (group, by) in found.chunks_exact(stride).zip(&by) {
        let (Some(matched), Some(start)) = (group[0].as_string(), group[stride - 1].as_int()) else {
            return slow();
        };
        let start = start as usize;
        out.push_text(text.slice(done, start));
        if let Some(by) = by.as_string() {
            out.push_text(st.heap.str(by));
        }
        done = start + st.heap.string_length(matched) as usize;
    }
    out.push_text(text.slice(done, text.len()));
    Ok(Value::string(st.heap.new_str(out.as_str())?))
}

/// `%RegExpGroups(regexp)`: how many groups its pattern has, the whole match included.
pub(super) fn group_count(st: &mut State, w: &mut Window, a: Args) -> Res {
    let Some(regexp) = super::regexp(st, a.get(w, 0)) else { return slow() };
    let pattern = st.ready_regexp(regexp)?;
    let count = st.regexp_program(pattern).map_or(1, |p| p.group_count());
    Ok(Value::uint(count as u32))
}

/// Calls `f` after every match that `replace` replaces. Answers the `lastIndex` to set afterwards.
fn replaced(
    st: &mut State,
    regexp: ObjId,
    s: StrId,
    mut f: impl FnMut(&mut State) -> Result<(), Exit>,
) -> Result<Option<u32>, Exit> {
    let flags = Flags::from_bits(st.regexp_bits(regexp));
    if flags.has(Flags::GLOBAL) {
        each(st, regexp, s, 0, f)?;
        return Ok(Some(0));
    }
    let sticky = flags.has(Flags::STICKY);
    let from = if sticky { last_index(st, regexp) } else { 0 };
    let found = from <= st.heap.string_length(s) as usize && {
        let pattern = st.ready_regexp(regexp)?;
        st.match_regexp(pattern, s, from)?
    };
    if found {
        f(st)?;
    }
    Ok(sticky.then(|| if found { whole(st).1 } else { 0 }))
}
