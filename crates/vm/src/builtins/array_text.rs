//! Arrays as text: `join` of primitives, and sorting by the text of the elements.

use super::array::packed;
use super::{Args, Row, slow};
use crate::code::ErrorKind;
use crate::exec::state::{Exit, Res, State};
use crate::exec::{Calling, FrameFlags, Helper, Window};
use crate::heap::{Heap, MAX_LENGTH, ObjId, SortStep, Str, StrId, atoms};
use crate::value::{Unpacked, Value};
use std::cmp::Ordering;

pub(super) const ROWS: &[Row] = &[
    ("Array.prototype.join", |st, w, a| match a.get(w, 0) {
        v if v.is_undefined() => join(st, a.this, Value::string(st.heap.char_string(b','))),
        v if v.is_string() => join(st, a.this, v),
        _ => slow(),
    }),
    ("Array.prototype.sort", sort),
    ("SortByText", sort_by_text),
    ("NewSort", new_sort),
    ("SortRun", sort_run),
];

/// The elements' texts with a separator in between: primitives only, an object's text is for JavaScript to ask for.
fn join(st: &mut State, this: Value, separator: Value) -> Res {
    let (Some((array, values)), Some(separator)) = (packed(st, this), separator.as_string()) else {
        return slow();
    };
    if values.iter().any(|v| v.is_object() || v.is_symbol()) {
        return slow();
    }
    let n = values.len();
    st.burn(n as u64)?;
    st.heap.flatten(separator)?;
    for i in 0..n {
        if let Some(s) = st.heap.array_get(array, i as u32).and_then(Value::as_string) {
            st.heap.flatten(s)?;
        }
    }
    let mut total = (st.heap.string_length(separator) as usize).saturating_mul(n.saturating_sub(1));
    let mut wide = matches!(st.heap.str(separator), Str::Wide(_));
    for i in 0..n {
        let v = st.heap.array_get(array, i as u32).unwrap_or(Value::UNDEFINED);
        total = total.saturating_add(match v.unpack() {
            Unpacked::String(s) => {
                wide |= matches!(st.heap.str(s), Str::Wide(_));
                st.heap.string_length(s) as usize
            }
            Unpacked::BigInt(b) => st.heap.bigint(b).bits() as usize / 3 + 2,
            Unpacked::Undefined | Unpacked::Null => 0,
            Unpacked::Int(_) => 11,
            _ => 24,
        });
    }
    if total > MAX_LENGTH.saturating_add(n.saturating_mul(24)) {
        return Err(st.throw(ErrorKind::Range, "Invalid string length"));
    }
    // The text is written outside the heap first; that is on the guest's account too.
    let bytes = total * if wide { 2 } else { 1 };
    st.burn(bytes as u64 / 16)?;
    st.heap.charge_outside(bytes)?;
    let made = if wide {
        join_wide(st, array, n, separator, total)
    } else {
        join_narrow(st, array, n, separator, total)
    };
    st.heap.release_outside(bytes);
    Ok(Value::string(made?))
}

fn join_narrow(
    st: &mut State,
    array: ObjId,
    n: usize,
    separator: StrId,
    total: usize,
) -> Result<StrId, Exit> {
    let mut out: Vec<u8> = Vec::with_capacity(total);
    for i in 0..n {
        if i > 0
            && let Str::Latin1(text) = st.heap.str(separator)
        {
            out.extend_from_slice(text);
        }
        let v = st.heap.array_get(array, i as u32).unwrap_or(Value::UNDEFINED);
        if let Some(s) = v.as_string() {
            if let Str::Latin1(text) = st.heap.str(s) {
                out.extend_from_slice(text);
            }
        } else if !v.is_nullish() {
            number_text(st, v, |text| out.extend_from_slice(text))?;
        }
    }
    Ok(st.heap.new_latin1(&out)?)
}

fn join_wide(st: &mut State, array: ObjId, n: usize, separator: StrId, total: usize) -> Result<StrId, Exit> {
    let mut out: Vec<u16> = Vec::with_capacity(total);
    for i in 0..n {
        if i > 0 {
            out.extend(st.heap.str(separator).units());
        }
        let v = st.heap.array_get(array, i as u32).unwrap_or(Value::UNDEFINED);
        if let Some(s) = v.as_string() {
            out.extend(st.heap.str(s).units());
        } else if !v.is_nullish() {
            number_text(st, v, |text| out.extend(text.iter().map(|&b| u16::from(b))))?;
        }
    }
    Ok(st.heap.new_utf16(&out)?)
}

/// The text of a number, bigint or boolean without a string of its own.
fn number_text(st: &mut State, v: Value, mut write: impl FnMut(&[u8])) -> Result<(), Exit> {
    use crate::text::number::print;
    match v.unpack() {
        Unpacked::Int(i) => write(print::integer(i, &mut [0; 11]).as_bytes()),
        Unpacked::Double(x) => write(print::decimal(x, &mut print::Buffer::new()).as_bytes()),
        Unpacked::Bool(true) => write(b"true"),
        Unpacked::Bool(false) => write(b"false"),
        Unpacked::BigInt(id) => {
            st.burn(st.heap.bigint(id).bits() / 8)?;
            write(st.heap.bigint(id).to_string().as_bytes());
        }
        _ => {}
    }
    Ok(())
}

/// `sort()` of an array of primitives without a comparator.
fn sort(st: &mut State, w: &mut Window, args: Args) -> Res {
    if !args.get(w, 0).is_undefined() {
        return slow();
    }
    let Some((array, values)) = packed(st, args.this) else { return slow() };
    if values.iter().any(|v| v.is_object() || v.is_symbol() || v.is_bigint()) {
        return slow();
    }
    let n = values.len();
    sort_with(st, array, n, |st| st.heap.packed(array).unwrap_or_default().to_vec())?;
    Ok(args.this)
}

/// Sorts an array by texts that `texts` answers. The work happens outside the heap, on the guest's account.
fn sort_with(
    st: &mut State,
    array: ObjId,
    n: usize,
    texts: impl Fn(&State) -> Vec<Value>,
) -> Result<(), Exit> {
    let outside = n * (2 * size_of::<Value>() + 2 * size_of::<Keyed>() + 2 * size_of::<u32>());
    st.heap.charge_outside(outside)?;
    let texts = texts(st);
    let values = st.heap.packed(array).unwrap_or_default().to_vec();
    let sorted = keys(st, &values, &texts).and_then(|mut keyed| order(st, &mut keyed).map(|()| keyed));
    st.heap.release_outside(outside);
    if let Some(places) = st.heap.dense_mut(array) {
        for (place, key) in places.iter_mut().zip(&sorted?) {
            *place = key.value;
        }
    }
    Ok(())
}

/// `%SortByText(list, texts)`: the list ordered by the texts, which JavaScript has made; undefined comes last. Both
/// are lists of the prelude's own.
fn sort_by_text(st: &mut State, w: &mut Window, args: Args) -> Res {
    let (list, texts) = (args.get(w, 0), args.get(w, 1));
    let (Some((array, values)), Some((texts, _))) = (packed(st, list), packed(st, texts)) else {
        return slow();
    };
    let n = values.len();
    sort_with(st, array, n, |st| st.heap.packed(texts).unwrap_or_default().to_vec())?;
    Ok(list)
}

/// `%NewSort(list)`: a sort of a list of the prelude's own by a comparator.
fn new_sort(st: &mut State, w: &mut Window, args: Args) -> Res {
    let Some((list, values)) = packed(st, args.get(w, 0)) else { return slow() };
    let n = values.len();
    st.burn(n as u64 / 16 + 4)?;
    let temp = st.heap.new_array_from(st.realm.array_shape, list, 0, n)?;
    let shape = st.heap.root_shape(None)?;
    Ok(Value::object(st.heap.new_sort(shape, list, temp)?))
}

/// `%SortRun(sort, compare)`: asks the comparator until the list is sorted.
///
/// Each question is a call whose answer lands in the destination register; then the same instruction is executed once
/// more and takes it from there. So nothing but the comparator itself costs instructions.
fn sort_run(st: &mut State, w: &mut Window, args: Args) -> Res {
    let (sort, compare) = (args.get(w, 0), args.get(w, 1));
    let dst = args.calling.dst;
    let Some(record) = sort.as_object().and_then(|o| st.heap.slots_of(o)) else { return slow() };
    let mut order = w[dst as usize];
    loop {
        if !st.heap.sort_asks_again(record) {
            let less = match order.unpack() {
                Unpacked::Int(i) => i < 0,
                Unpacked::Double(x) => x < 0.0,
                _ if st.heap.sort_begins(record) => false,
                // ToNumber may run guest code; its result is the answer then.
                Unpacked::Object(_) => {
                    st.pc = st.pc.saturating_sub(1);
                    return Err(st.enter_helper(
                        w,
                        Helper::Unary,
                        &[order, Value::int(1)],
                        dst,
                        FrameFlags::NONE,
                    ));
                }
                _ => st.primitive_to_number(order)? < 0.0,
            };
            match st.heap.sort_step(record, less) {
                Some((SortStep::Compare, work)) => st.burn(work)?,
                Some((SortStep::Done, _)) => return Ok(Value::UNDEFINED),
                None => return slow(),
            }
        }
        let (first, second) = st.heap.sort_question(record);
        let a = st.above;
        let Some(call) = w.get_mut(a as usize..a as usize + 4) else { return slow() };
        call.copy_from_slice(&[compare, Value::UNDEFINED, first, second]);
        st.pc = st.pc.saturating_sub(1);
        let calling = Calling { dst, flags: FrameFlags::NONE, new_target: Value::UNDEFINED };
        let result = st.call(w, a, 2, calling);
        if !matches!(result, Err(Exit::Enter | Exit::Suspend)) {
            st.pc = st.pc.wrapping_add(1);
        }
        match result {
            // A native answered at once.
            Ok(answer) => {
                st.burn(1)?;
                w[dst as usize] = answer;
                order = answer;
            }
            Err(exit) => {
                if let Exit::Alloc(_) = exit {
                    st.heap.ask_sort_again(record);
                }
                return Err(exit);
            }
        }
    }
}

#[derive(Clone, Copy)]
struct Keyed {
    value: Value,
    text: Text,
}

#[derive(Clone, Copy)]
enum Text {
    /// A flat string of the heap.
    Heap(StrId),
    /// The text of a number: short, so that a sort of numbers makes no garbage.
    Short(u8, [u8; 24]),
    /// Comes last.
    Undefined,
}

impl Text {
    fn units<'a>(&'a self, heap: &'a Heap) -> Str<'a> {
        match self {
            Text::Heap(s) => heap.str(*s),
            Text::Short(len, bytes) => Str::Latin1(bytes.get(..usize::from(*len)).unwrap_or_default()),
            Text::Undefined => Str::EMPTY,
        }
    }
}

fn keys(st: &mut State, values: &[Value], texts: &[Value]) -> Result<Vec<Keyed>, Exit> {
    st.burn(values.len() as u64)?;
    let mut keyed = Vec::with_capacity(values.len());
    for (&value, &text) in values.iter().zip(texts) {
        let text = match text.unpack() {
            Unpacked::Undefined => Text::Undefined,
            Unpacked::String(s) => {
                st.heap.flatten(s)?;
                Text::Heap(s)
            }
            Unpacked::Null => Text::Heap(atoms::NULL),
            _ => {
                let mut short = [0; 24];
                let mut len = 0;
                number_text(st, text, |bytes| {
                    len = bytes.len().min(24);
                    for (to, from) in short.iter_mut().zip(bytes) {
                        *to = *from;
                    }
                })?;
                if len < 24 {
                    Text::Short(len as u8, short)
                } else {
                    Text::Heap(st.primitive_to_string(text)?)
                }
            }
        };
        keyed.push(Keyed { value, text });
    }
    Ok(keyed)
}

/// Sorts by text, stable: a merge sort that can stop when the fuel runs out in the middle. Every comparison is paid for
/// by the length of the shorter text.
fn order(st: &mut State, keyed: &mut Vec<Keyed>) -> Result<(), Exit> {
    let n = keyed.len();
    let mut from: Vec<u32> = (0..n as u32).collect();
    let mut to = from.clone();
    let mut width = 1;
    while width < n {
        let mut start = 0;
        while start < n {
            let (middle, end) = ((start + width).min(n), (start + 2 * width).min(n));
            let (mut i, mut j, mut k) = (start, middle, start);
            // Runs that are in order already are copied.
            if j < end && after(st, keyed, from[j - 1], from[j])? {
                while i < middle && j < end {
                    let taken = if after(st, keyed, from[i], from[j])? { &mut j } else { &mut i };
                    to[k] = from[*taken];
                    *taken += 1;
                    k += 1;
                }
            }
            to[k..k + middle - i].copy_from_slice(&from[i..middle]);
            k += middle - i;
            to[k..end].copy_from_slice(&from[j..end]);
            start = end;
        }
        std::mem::swap(&mut from, &mut to);
        width *= 2;
    }
    *keyed = from.into_iter().map(|i| keyed[i as usize]).collect();
    Ok(())
}

/// Whether one key comes after another.
fn after(st: &mut State, keyed: &[Keyed], a: u32, b: u32) -> Result<bool, Exit> {
    let (a, b) = (&keyed[a as usize].text, &keyed[b as usize].text);
    match (a, b) {
        (_, Text::Undefined) => Ok(false),
        (Text::Undefined, _) => Ok(true),
        (a, b) => {
            let (left, right) = (a.units(&st.heap), b.units(&st.heap));
            let order = left.compare(right);
            let cost = left.len().min(right.len()) as u64 / 64 + 1;
            st.burn(cost)?;
            Ok(order == Ordering::Greater)
        }
    }
}
