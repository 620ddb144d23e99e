//! `JSON.stringify` of plain data: no replacer, no `toJSON` anywhere, no getters, no proxies, no cycles. Anything else is
//! told apart before anything has happened, and left to `json.js`.
//!
//! What an object of some shape looks like is worked out once per call: its keys, quoted, and where their values are.

use crate::exec::state::{Exit, Limit, Res, State};
use crate::heap::{Attrs, Class, Found, Key, MAX_LENGTH, ObjId, OverLimit, Own, ShapeId, Str, atoms};
use crate::text::Text;
use crate::text::json::quote;
use crate::text::number::print;
use crate::value::{Unpacked, Value};
use rustc_hash::{FxHashMap, FxHashSet};
use std::rc::Rc;

/// Writes a value.
pub(super) fn stringify(st: &mut State, value: Value, gap: &Text) -> Res {
    let mut writer = Writer {
        gap,
        out: Text::with_capacity(64),
        open: Vec::new(),
        inside: FxHashSet::default(),
        plans: FxHashMap::default(),
        last: None,
        number: print::Buffer::new(),
    };
    match writer.run(st, value)? {
        Written::Nothing => Ok(Value::UNDEFINED),
        Written::Text => Ok(Value::string(st.heap.new_str(writer.out.as_str())?)),
    }
}

enum Written {
    Text,
    /// A function, a symbol or undefined.
    Nothing,
}

/// Up to this depth a cycle is looked for by going through the open containers.
const SHALLOW: usize = 16;

/// A property that is written: its key, quoted and with the colon, and where its value is.
struct Member {
    key: Text,
    place: Place,
}

enum Place {
    Slot(u32),
    /// For objects whose shape is their own.
    Value(Value),
}

type Plan = Rc<[Member]>;

/// A container that is being written.
struct Open {
    object: ObjId,
    /// `None` for an array.
    plan: Option<Plan>,
    /// The next element or member.
    next: u32,
    /// Whether anything was written.
    some: bool,
}

struct Writer<'a> {
    gap: &'a Text,
    out: Text,
    open: Vec<Open>,
    inside: FxHashSet<ObjId>,
    plans: FxHashMap<ShapeId, Plan>,
    last: Option<(ShapeId, Plan)>,
    number: print::Buffer,
}

impl Writer<'_> {
    fn run(&mut self, st: &mut State, value: Value) -> Result<Written, Exit> {
        if matches!(self.value(st, value)?, Written::Nothing) {
            return Ok(Written::Nothing);
        }
        let mut steps = 0u32;
        while let Some(top) = self.open.last_mut() {
            steps += 1;
            if steps == 256 {
                steps = 0;
                st.burn(256)?;
                check_size(st, self.out.len())?;
            }
            let (object, next) = (top.object, top.next);
            let Some(plan) = &top.plan else {
                let Some(value) = st.heap.array_get(object, next) else {
                    self.close(st, b']')?;
                    continue;
                };
                top.next += 1;
                self.separate(st)?;
                if matches!(self.value(st, value)?, Written::Nothing) {
                    self.out.push_str("null");
                }
                continue;
            };
            let Some(member) = plan.get(next as usize) else {
                self.close(st, b'}')?;
                continue;
            };
            top.next += 1;
            let value = match member.place {
                Place::Slot(slot) => st.heap.slot(object, slot),
                Place::Value(value) => value,
            };
            if is_nothing(st, value) {
                continue;
            }
            let plan = Rc::clone(plan);
            self.separate(st)?;
            if let Some(member) = plan.get(next as usize) {
                self.out.push_text(member.key.as_str());
            }
            self.value(st, value)?;
        }
        st.burn(u64::from(steps))?;
        check_size(st, self.out.len())?;
        Ok(Written::Text)
    }

    /// Writes a primitive, or opens a container.
    fn value(&mut self, st: &mut State, value: Value) -> Result<Written, Exit> {
        match value.unpack() {
            Unpacked::String(s) => {
                let length = st.heap.string_length(s) as usize;
                if length > 1024 {
                    st.burn(length as u64 / 16)?;
                    check_size(st, self.out.len() + length)?;
                }
                let text: Str<'_> = st.heap.text(s)?;
                quote(text, &mut self.out);
            }
            Unpacked::Int(i) => self.int(i),
            Unpacked::Double(x) if x.is_finite() => self.out.push_str(print::decimal(x, &mut self.number)),
            Unpacked::Double(_) => self.out.push_str("null"),
            Unpacked::Bool(true) => self.out.push_str("true"),
            Unpacked::Bool(false) => self.out.push_str("false"),
            Unpacked::Null => self.out.push_str("null"),
            // It may have a `toJSON`, and it throws otherwise.
            Unpacked::BigInt(_) => return Err(Exit::Slow),
            Unpacked::Undefined | Unpacked::Symbol(_) | Unpacked::Hole | Unpacked::Internal(_) => {
                return Ok(Written::Nothing);
            }
            Unpacked::Object(object) => {
                if st.heap.is_callable(value) {
                    return if has_to_json(st, object) { Err(Exit::Slow) } else { Ok(Written::Nothing) };
                }
                self.enter(st, object)?;
            }
        }
        Ok(Written::Text)
    }

    fn int(&mut self, i: i32) {
        let mut digits = [0; 11];
        let mut at = digits.len();
        let mut rest = i.unsigned_abs();
        loop {
            at -= 1;
            digits[at] = b'0' + (rest % 10) as u8;
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        if i < 0 {
            at -= 1;
            digits[at] = b'-';
        }
        self.out.push_text(Str::Latin1(&digits[at..]));
    }

    fn enter(&mut self, st: &mut State, object: ObjId) -> Result<(), Exit> {
        let plan = match st.heap.class(object) {
            Class::Array => {
                if has_to_json(st, object) || st.heap.packed(object).is_none() {
                    return Err(Exit::Slow);
                }
                None
            }
            Class::Object | Class::Error => Some(self.plan(st, object)?),
            _ => return Err(Exit::Slow),
        };
        let seen = if self.open.len() < SHALLOW {
            self.open.iter().any(|open| open.object == object)
        } else {
            if self.inside.is_empty() {
                self.inside.extend(self.open.iter().map(|open| open.object));
            }
            !self.inside.insert(object)
        };
        if seen {
            return Err(Exit::Slow);
        }
        self.out.push_str(if plan.is_some() { "{" } else { "[" });
        self.open.push(Open { object, plan, next: 0, some: false });
        Ok(())
    }

    fn close(&mut self, st: &mut State, bracket: u8) -> Result<(), Exit> {
        let Some(closed) = self.open.pop() else { return Ok(()) };
        if self.open.len() >= SHALLOW {
            self.inside.remove(&closed.object);
        } else {
            self.inside.clear();
        }
        if closed.some {
            self.line(st)?;
        }
        self.out.push(u16::from(bracket));
        Ok(())
    }

    /// The comma and the new line before an element or member.
    fn separate(&mut self, st: &mut State) -> Result<(), Exit> {
        let Some(top) = self.open.last_mut() else { return Ok(()) };
        if std::mem::replace(&mut top.some, true) {
            self.out.push(u16::from(b','));
        }
        self.line(st)
    }

    /// A new line, if there are lines at all.
    fn line(&mut self, st: &mut State) -> Result<(), Exit> {
        if self.gap.is_empty() {
            return Ok(());
        }
        let depth = self.open.len();
        if depth > SHALLOW {
            st.burn(depth as u64)?;
            check_size(st, self.out.len() + depth * self.gap.len())?;
        }
        self.out.push(u16::from(b'\n'));
        for _ in 0..depth {
            self.out.push_text(self.gap.as_str());
        }
        Ok(())
    }

    /// The members of an object of this shape.
    fn plan(&mut self, st: &mut State, object: ObjId) -> Result<Plan, Exit> {
        let shape = st.heap.shape(object);
        if let Some((last, plan)) = &self.last
            && *last == shape
        {
            return Ok(Rc::clone(plan));
        }
        if let Some(plan) = self.plans.get(&shape) {
            self.last = Some((shape, Rc::clone(plan)));
            return Ok(Rc::clone(plan));
        }
        if has_to_json(st, object) {
            return Err(Exit::Slow);
        }
        let mut keys = Vec::new();
        if !st.heap.own_keys(object, &mut keys) {
            return Err(Exit::Slow);
        }
        st.burn(keys.len() as u64)?;
        let shared = !st.heap.is_dictionary(shape);
        let mut members = Vec::with_capacity(keys.len());
        for key in keys {
            if key.as_symbol().is_some() {
                continue;
            }
            match st.heap.get_own(object, key) {
                Own::Data { attrs, .. } if !attrs.has(Attrs::ENUMERABLE) => {}
                Own::Data { value, slot, .. } => {
                    let name = st.heap.key_to_value(key)?;
                    let Some(name) = name.as_string() else { continue };
                    let mut text = Text::with_capacity(16);
                    quote(st.heap.text(name)?, &mut text);
                    text.push_str(if self.gap.is_empty() { ":" } else { ": " });
                    let place = if shared { Place::Slot(slot) } else { Place::Value(value) };
                    members.push(Member { key: text, place });
                }
                Own::Accessor { attrs, .. } if !attrs.has(Attrs::ENUMERABLE) => {}
                Own::Accessor { .. } | Own::Absent | Own::Exotic => return Err(Exit::Slow),
            }
        }
        let plan: Plan = members.into();
        if shared {
            self.plans.insert(shape, Rc::clone(&plan));
            self.last = Some((shape, Rc::clone(&plan)));
        }
        Ok(plan)
    }
}

/// Whether `toJSON` leads to anything: then guest code has a say.
fn has_to_json(st: &State, object: ObjId) -> bool {
    st.heap.get(object, Key::atom(atoms::TO_JSON)) != Found::Absent
}

/// Whether a member with this value is left out. A function with a `toJSON` is found out when it is written.
fn is_nothing(st: &State, value: Value) -> bool {
    match value.unpack() {
        Unpacked::Undefined | Unpacked::Symbol(_) => true,
        Unpacked::Object(object) => st.heap.is_callable(value) && !has_to_json(st, object),
        _ => false,
    }
}

/// The text is held outside the heap until it is complete, so it is held to the limits here.
fn check_size(st: &mut State, length: usize) -> Result<(), Exit> {
    let limit = st.heap.limits().bytes;
    if length > limit {
        return Err(Exit::Limit(Limit::Heap(OverLimit::Bytes { limit })));
    }
    if length > MAX_LENGTH {
        return Err(Exit::Alloc(crate::heap::AllocError::TooLong));
    }
    Ok(())
}
