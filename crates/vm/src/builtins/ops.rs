//! The intrinsics that the whole prelude is written with: questions about values, and operations that run no guest code.

use super::{Args, Row};
use crate::code::ErrorKind;
use crate::exec::object::array_push;
use crate::exec::property::init_elem;
use crate::exec::state::{Res, State};
use crate::exec::{Calling, FrameFlags, Window};
use crate::heap::{Attrs, Class, Flags, Own, Payload, SymId};
use crate::value::{Unpacked, Value};

pub(super) const ROWS: &[Row] = &[
    ("IsObject", |_, w, a| Ok(Value::bool(a.get(w, 0).is_object()))),
    ("IsCallable", |st, w, a| Ok(Value::bool(st.heap.is_callable(a.get(w, 0))))),
    ("IsConstructor", |st, w, a| Ok(Value::bool(st.heap.is_constructor(a.get(w, 0))))),
    ("Is", is),
    ("SameValue", |st, w, a| Ok(Value::bool(st.heap.same_value(a.get(w, 0), a.get(w, 1))?))),
    ("SameValueZero", |st, w, a| Ok(Value::bool(st.heap.same_value_zero(a.get(w, 0), a.get(w, 1))?))),
    ("ToObject", to_object),
    ("ThrowTypeError", |st, w, a| Err(throw(st, w, a, ErrorKind::Type))),
    ("ThrowRangeError", |st, w, a| Err(throw(st, w, a, ErrorKind::Range))),
    ("ThrowSyntaxError", |st, w, a| Err(throw(st, w, a, ErrorKind::Syntax))),
    ("ThrowReferenceError", |st, w, a| Err(throw(st, w, a, ErrorKind::Reference))),
    ("Symbol", symbol),
    ("Append", |st, w, a| array_push(st, a.get(w, 0), a.get(w, 1)).map(|()| Value::UNDEFINED)),
    ("Done", |_, _, _| Ok(Value::HOLE)),
    ("IsDone", |_, w, a| Ok(Value::bool(a.get(w, 0).is_hole()))),
    ("ArgCount", |st, _, _| Ok(Value::uint(st.top().map_or(0, |f| f.argc)))),
    ("EnumerableKeys", enumerable_keys),
    ("Define", define),
    ("HasPrototype", has_prototype),
    ("NewObject", new_object),
    ("NewArray", |st, _, _| Ok(Value::array(st.heap.new_array(st.realm.array_shape, &[])?))),
    ("IterResult", |st, w, a| st.iter_result(a.get(w, 0), a.get(w, 1) == Value::TRUE)),
    ("NewSlots", new_slots),
    ("Slot", slot),
    ("SetSlot", set_slot),
    ("NewCell", new_cell),
    ("CellOf", cell_of),
    ("SetCellOf", set_cell_of),
    ("Apply", apply),
    ("Construct", construct),
];

fn throw(st: &mut State, w: &Window, args: Args, kind: ErrorKind) -> crate::exec::state::Exit {
    let message = args.get(w, 0).as_string().map(|s| st.string_text(s)).unwrap_or_default();
    st.throw(kind, &message)
}

/// The class that `%Is("Map", …)` and its siblings name; the compiler has made a number of the name.
fn class_of(v: Value) -> Option<Class> {
    v.as_int().and_then(|n| Class::ALL.get(n as usize)).copied()
}

/// `%Is("Map", x)`: whether x is an object of the class.
fn is(st: &mut State, w: &mut Window, args: Args) -> Res {
    let object = args.get(w, 1).as_object();
    Ok(Value::bool(object.is_some_and(|o| Some(st.heap.class(o)) == class_of(args.get(w, 0)))))
}

/// ToObject.
fn to_object(st: &mut State, w: &mut Window, args: Args) -> Res {
    let v = args.get(w, 0);
    st.to_object(v)
}

/// `%Symbol("iterator")`; the compiler has made a number of the name.
fn symbol(st: &mut State, w: &mut Window, args: Args) -> Res {
    match args.get(w, 0).as_int() {
        Some(n) => Ok(Value::symbol(SymId::from_raw(n as u32))),
        None => Err(st.type_error("%Symbol needs a name")),
    }
}

/// `%EnumerableKeys(o)`: own enumerable keys, strings and symbols, of an object that is not a proxy.
fn enumerable_keys(st: &mut State, w: &mut Window, args: Args) -> Res {
    let list = st.heap.new_array(st.realm.array_shape, &[])?;
    let Some(obj) = args.get(w, 0).as_object() else { return Ok(Value::array(list)) };
    let mut keys = Vec::new();
    if !st.heap.own_keys(obj, &mut keys) {
        return Err(st.type_error("keys of this object are not supported yet"));
    }
    st.burn(keys.len() as u64)?;
    for key in keys {
        let enumerable = match st.heap.get_own(obj, key) {
            Own::Data { attrs, .. } | Own::Accessor { attrs, .. } => attrs.has(Attrs::ENUMERABLE),
            Own::Absent | Own::Exotic => false,
        };
        if enumerable && !st.heap.is_private(key) {
            let name = st.heap.key_to_value(key)?;
            array_push(st, Value::array(list), name)?;
        }
    }
    Ok(Value::array(list))
}

/// `%Define(o, key, value)`: an own data property of an ordinary object, as a literal has it.
fn define(st: &mut State, w: &mut Window, args: Args) -> Res {
    if let Some(obj) = args.get(w, 0).as_object() {
        init_elem(st, w, obj, args.get(w, 1), args.get(w, 2))?;
    }
    Ok(Value::UNDEFINED)
}

/// `%HasPrototype(v, p)`: whether it is on the chain; undefined if a proxy has a say.
fn has_prototype(st: &mut State, w: &mut Window, args: Args) -> Res {
    let Some(prototype) = args.get(w, 1).as_object() else { return Ok(Value::FALSE) };
    Ok(st.has_prototype(args.get(w, 0), prototype)?.map_or(Value::UNDEFINED, Value::bool))
}

/// `%NewObject(prototype)`: a plain object; the prototype may be null.
fn new_object(st: &mut State, w: &mut Window, args: Args) -> Res {
    let shape = st.heap.root_shape(args.get(w, 0).as_object())?;
    Ok(Value::object(st.heap.new_object(shape)?))
}

/// `%NewSlots("MapIterator", prototype, fields…)`: an object with internal fields.
fn new_slots(st: &mut State, w: &mut Window, args: Args) -> Res {
    let Some(class) = class_of(args.get(w, 0)).filter(|c| c.payload() == Payload::Slots) else {
        return Err(st.type_error("%NewSlots: the class has no fields"));
    };
    let shape = st.heap.root_shape(args.get(w, 1).as_object())?;
    let fields = args.all(w).get(2..).unwrap_or_default();
    Ok(Value::object(st.heap.new_object_with_slots(shape, class, Flags::NONE, fields)?))
}

/// `%Slot(o, n)`: internal field n.
fn slot(st: &mut State, w: &mut Window, args: Args) -> Res {
    let record = args.get(w, 0).as_object().and_then(|o| st.heap.slots_of(o));
    let n = args.get(w, 1).as_int().unwrap_or(-1);
    let value = record.and_then(|r| st.heap.slots(r).get(n as usize)).copied();
    value.ok_or_else(|| st.type_error("%Slot: there is no such field"))
}

/// `%SetSlot(o, n, v)`.
fn set_slot(st: &mut State, w: &mut Window, args: Args) -> Res {
    let record = args.get(w, 0).as_object().and_then(|o| st.heap.slots_of(o));
    let n = args.get(w, 1).as_int().unwrap_or(-1);
    let v = args.get(w, 2);
    match record.and_then(|r| st.heap.slots_mut(r).get_mut(n as usize)) {
        Some(place) => *place = v,
        None => return Err(st.type_error("%SetSlot: there is no such field")),
    }
    Ok(Value::UNDEFINED)
}

/// `%NewCell("Date", prototype, v)`: an object around one value.
fn new_cell(st: &mut State, w: &mut Window, args: Args) -> Res {
    let Some(class) = class_of(args.get(w, 0)).filter(|c| c.payload() == Payload::Cell) else {
        return Err(st.type_error("%NewCell: the class holds no value"));
    };
    let shape = st.heap.root_shape(args.get(w, 1).as_object())?;
    Ok(Value::object(st.heap.new_object_with_cell(shape, class, args.get(w, 2))?))
}

/// `%CellOf(o)`: the value inside.
fn cell_of(st: &mut State, w: &mut Window, args: Args) -> Res {
    match args.get(w, 0).as_object().and_then(|o| st.heap.cell_of(o)) {
        Some(cell) => Ok(st.heap.cell(cell)),
        None => Err(st.type_error("%CellOf: there is no value inside")),
    }
}

/// `%SetCellOf(o, v)`.
fn set_cell_of(st: &mut State, w: &mut Window, args: Args) -> Res {
    if let Some(cell) = args.get(w, 0).as_object().and_then(|o| st.heap.cell_of(o)) {
        st.heap.set_cell(cell, args.get(w, 1));
    }
    Ok(Value::UNDEFINED)
}

/// `%Apply(f, this, list)`: the list is an array of the prelude's own.
fn apply(st: &mut State, w: &mut Window, args: Args) -> Res {
    let a = st.above;
    w[a as usize] = args.get(w, 0);
    w[a as usize + 1] = args.get(w, 1);
    w[a as usize + 2] = args.get(w, 2);
    st.call_list(w, a, plain(args))
}

/// `%Construct(f, list, newTarget)`.
fn construct(st: &mut State, w: &mut Window, args: Args) -> Res {
    let a = st.above;
    let target = args.get(w, 2);
    w[a as usize] = args.get(w, 0);
    w[a as usize + 2] = args.get(w, 1);
    st.construct_list(w, a, args.calling.dst, target)
}

fn plain(args: Args) -> Calling {
    Calling { dst: args.calling.dst, flags: FrameFlags::NONE, new_target: Value::UNDEFINED }
}

impl State {
    /// ToObject: a wrapper around a primitive; a TypeError for null and undefined.
    #[expect(
        clippy::wrong_self_convention,
        reason = "the specification's name for what happens to the value"
    )]
    pub(crate) fn to_object(&mut self, v: Value) -> Res {
        let (class, prototype) = match v.unpack() {
            Unpacked::Object(_) => return Ok(v),
            Unpacked::String(_) => (Class::String, self.realm.string_prototype),
            Unpacked::Int(_) | Unpacked::Double(_) => (Class::Number, self.realm.number_prototype),
            Unpacked::Bool(_) => (Class::Boolean, self.realm.boolean_prototype),
            Unpacked::Symbol(_) => (Class::Symbol, self.realm.symbol_prototype),
            Unpacked::BigInt(_) => (Class::BigInt, self.realm.bigint_prototype),
            Unpacked::Undefined | Unpacked::Null | Unpacked::Hole | Unpacked::Internal(_) => {
                return Err(self.type_error("Cannot convert undefined or null to object"));
            }
        };
        let shape = self.heap.root_shape(Some(prototype))?;
        Ok(Value::object(self.heap.new_object_with_cell(shape, class, v)?))
    }
}
