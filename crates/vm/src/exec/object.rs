//! Instructions about objects, functions and classes that are not worth a place in the dispatch loop.

use super::Window;
use super::call::Calling;
use super::code_table::Code;
use super::frame::{Frame, FrameFlags};
use super::helper::Helper;
use super::property;
use super::state::{Exit, Res, State};
use crate::code::{ErrorKind, Member};
use crate::heap::{Attrs, Class, Descriptor, Flags, Found, Key, Own, SymbolKind, atoms, symbols};
use crate::value::Value;

type Done = Result<(), Exit>;

#[cold]
pub(crate) fn uninitialised(st: &mut State, k: u32) -> Done {
    let name = st.constant_text(k);
    if name == "this" {
        return unbound_this(st);
    }
    Err(st.throw(ErrorKind::Reference, &format!("Cannot access '{name}' before initialization")))
}

#[cold]
pub(crate) fn unbound_this(st: &mut State) -> Done {
    let message = "Must call super constructor in derived class before accessing 'this' or returning from derived constructor";
    Err(st.throw(ErrorKind::Reference, message))
}

#[cold]
pub(crate) fn already_bound(st: &mut State) -> Done {
    Err(st.throw(ErrorKind::Reference, "Super constructor may only be called once"))
}

#[cold]
pub(crate) fn constant_assignment(st: &mut State, _k: u32) -> Done {
    Err(st.type_error("Assignment to constant variable."))
}

#[cold]
pub(crate) fn not_an_object(st: &mut State, v: Value) -> Done {
    let what = if v.is_null() { "null" } else { "undefined" };
    Err(st.type_error(&format!("Cannot destructure '{what}' as it is {what}.")))
}

#[cold]
pub(crate) fn throw_new(st: &mut State, kind: u8, k: u32) -> Done {
    let message = st.constant_text(k);
    let kind = match kind {
        1 => ErrorKind::Type,
        2 => ErrorKind::Reference,
        3 => ErrorKind::Range,
        4 => ErrorKind::Syntax,
        _ => ErrorKind::Error,
    };
    Err(st.throw(kind, &message))
}

#[inline(never)]
pub(crate) fn to_str(st: &mut State, w: &mut Window, d: u8, v: Value) -> Res {
    if v.is_object() {
        return Err(st.enter_helper(w, Helper::ToStr, &[v], d, FrameFlags::NONE));
    }
    Ok(Value::string(st.primitive_to_string(v)?))
}

#[inline(never)]
pub(crate) fn to_key(st: &mut State, w: &mut Window, d: u8, v: Value) -> Res {
    if v.is_object() {
        return Err(st.enter_helper(w, Helper::ToKey, &[v], d, FrameFlags::NONE));
    }
    let key = st.property_key(v)?;
    Ok(st.heap.key_to_value(key)?)
}

#[inline(never)]
pub(crate) fn instance_of(st: &mut State, w: &mut Window, d: u8, v: Value, class: Value) -> Res {
    let Some(obj) = class.as_object() else {
        return Err(st.type_error("Right-hand side of 'instanceof' is not an object"));
    };
    // Only an ordinary function without a handler of its own is simple enough.
    let handler = st.look_up(obj, Key::symbol(symbols::HAS_INSTANCE))?;
    let prototype = st.heap.get_own(obj, Key::atom(atoms::PROTOTYPE));
    if handler == Found::Data(st.realm.has_instance)
        && st.heap.is_callable(class)
        && st.heap.class(obj) != Class::BoundFunction
        && let Own::Data { value, .. } = prototype
        && let Some(prototype) = value.as_object()
        && let Some(found) = st.has_prototype(v, prototype)?
    {
        return Ok(Value::bool(found));
    }
    Err(st.enter_helper(w, Helper::InstanceOf, &[v, class], d, FrameFlags::NONE))
}

pub(crate) fn declare_var(st: &mut State, site: u32) -> Done {
    let key = st.sites[site as usize].key;
    let global = st.realm.global;
    if st.heap.get_own(global, key) == Own::Absent {
        let attrs = Attrs::WRITABLE.and(Attrs::ENUMERABLE);
        st.heap.add_property(global, key, attrs, Value::UNDEFINED)?;
    }
    Ok(())
}

pub(crate) fn declare_function(st: &mut State, f: Value, site: u32) -> Done {
    let key = st.sites[site as usize].key;
    let attrs = Attrs::WRITABLE.and(Attrs::ENUMERABLE);
    let global = st.realm.global;
    st.heap.define_own(global, key, &Descriptor::data(f, attrs))?;
    Ok(())
}

#[inline(never)]
pub(crate) fn init_member(st: &mut State, target: Value, key: Value, f: Value, member: Member) -> Done {
    let Some(obj) = target.as_object() else { return Ok(()) };
    let key = st.property_key(key)?;
    let mut desc = Descriptor { configurable: Some(true), enumerable: Some(false), ..Descriptor::EMPTY };
    match member {
        Member::Method | Member::Field => {
            desc.value = Some(f);
            desc.writable = Some(true);
        }
        Member::LiteralMethod => {
            desc.value = Some(f);
            desc.writable = Some(true);
            desc.enumerable = Some(true);
        }
        Member::Getter => desc.get = Some(f),
        Member::Setter => desc.set = Some(f),
        Member::LiteralGetter => {
            desc.get = Some(f);
            desc.enumerable = Some(true);
        }
        Member::LiteralSetter => {
            desc.set = Some(f);
            desc.enumerable = Some(true);
        }
    }
    if st.heap.define_own(obj, key, &desc)? != crate::heap::Defined::Yes {
        return Err(st.type_error("Cannot redefine property: prototype"));
    }
    Ok(())
}

#[inline(never)]
pub(crate) fn array_push(st: &mut State, array: Value, v: Value) -> Done {
    let Some(obj) = array.as_array() else { return Ok(()) };
    if !v.is_hole() && st.heap.array_push(obj, v)? {
        return Ok(());
    }
    let length = st.heap.array_length(obj);
    if v.is_hole() {
        st.heap.set_array_length(obj, length.saturating_add(1))?;
    } else {
        let key = st.heap.key_of_index(length)?;
        st.heap.define_own(obj, key, &Descriptor::data(v, Attrs::ALL))?;
    }
    Ok(())
}

pub(crate) fn init_proto(st: &mut State, object: Value, prototype: Value) -> Done {
    if let Some(obj) = object.as_object()
        && (prototype.is_object() || prototype.is_null())
    {
        st.heap.set_prototype(obj, prototype.as_object())?;
    }
    Ok(())
}

/// The object where `super` looks: the prototype of the method's home, or null.
pub(crate) fn super_base(st: &mut State, method: Value) -> Res {
    let home = method.as_object().and_then(|m| st.heap.closure_of(m)).map(|c| st.heap.home_object(c));
    match home.and_then(Value::as_object) {
        Some(home) => Ok(st.heap.prototype(home).map_or(Value::NULL, |p| st.heap.object_value(p))),
        None => Err(st.throw(ErrorKind::Syntax, "'super' keyword unexpected here")),
    }
}

#[inline(never)]
pub(crate) fn get_super(st: &mut State, w: &mut Window, d: u8, base: Value, this: Value, key: Value) -> Res {
    let Some(start) = base.as_object() else { return Err(st.type_error("Cannot read properties of null")) };
    if key.is_object() {
        return Err(st.enter_helper(w, Helper::GetSuper, &[base, key, this], d, FrameFlags::NONE));
    }
    let key = st.property_key(key)?;
    property::get_from(st, w, d, start, key, this)
}

#[inline(never)]
pub(crate) fn set_super(
    st: &mut State,
    w: &mut Window,
    base: Value,
    this: Value,
    key: Value,
    v: Value,
) -> Done {
    let Some(start) = base.as_object() else { return Err(st.type_error("Cannot set properties of null")) };
    if key.is_object() {
        let args = [base, key, v, this];
        return Err(st.enter_helper(w, Helper::SetSuper, &args, 0, FrameFlags::DISCARD));
    }
    let key = st.property_key(key)?;
    super::assign::set_from(st, w, Some(start), key, v, this)
}

pub(crate) fn new_private(st: &mut State, k: u32) -> Res {
    let description = st.constants[k as usize].as_string();
    Ok(Value::symbol(st.heap.new_symbol(SymbolKind::Private, description)?))
}

pub(crate) fn has_private(st: &mut State, name: Value, object: Value) -> Res {
    if !object.is_object() {
        return Err(
            st.type_error("Cannot use 'in' operator to search for a private name in a primitive value")
        );
    }
    Ok(Value::bool(property::private(st, object, name) != Own::Absent))
}

#[inline(never)]
pub(crate) fn init_private(st: &mut State, target: Value, name: Value, v: Value, member: Member) -> Done {
    let (Some(obj), Some(symbol)) = (target.as_object(), name.as_symbol()) else { return Ok(()) };
    let key = Key::symbol(symbol);
    let old = st.heap.get_own(obj, key);
    match (member, old) {
        (Member::Getter, Own::Accessor { get, set, .. }) if get.is_undefined() => {
            st.heap.add_accessor(obj, key, Attrs::NONE, v, set)?;
        }
        (Member::Setter, Own::Accessor { get, set, .. }) if set.is_undefined() => {
            st.heap.add_accessor(obj, key, Attrs::NONE, get, v)?;
        }
        (_, Own::Data { .. } | Own::Accessor { .. } | Own::Exotic) => {
            return Err(st.type_error("Cannot initialize private member twice on the same object"));
        }
        (Member::Getter, Own::Absent) => st.heap.add_accessor(obj, key, Attrs::NONE, v, Value::UNDEFINED)?,
        (Member::Setter, Own::Absent) => st.heap.add_accessor(obj, key, Attrs::NONE, Value::UNDEFINED, v)?,
        (Member::Field, Own::Absent) => st.heap.add_property(obj, key, Attrs::WRITABLE, v)?,
        (_, Own::Absent) => st.heap.add_property(obj, key, Attrs::NONE, v)?,
    }
    Ok(())
}

#[inline(never)]
pub(crate) fn set_name(st: &mut State, f: Value, key: Value, member: Member) -> Done {
    let Some(obj) = f.as_object() else { return Ok(()) };
    let text = match key.as_symbol() {
        Some(symbol) => match (st.heap.symbol_description(symbol), st.heap.symbol_kind(symbol)) {
            (Some(d), SymbolKind::Private) => st.string_text(d),
            (Some(d), _) => format!("[{}]", st.string_text(d)),
            (None, _) => String::new(),
        },
        None => {
            let s = st.primitive_to_string(key)?;
            match member {
                Member::Field | Member::Method | Member::LiteralMethod => {
                    return st.set_name(obj, Value::string(s));
                }
                Member::Getter | Member::Setter | Member::LiteralGetter | Member::LiteralSetter => {
                    st.string_text(s)
                }
            }
        }
    };
    let text = match member {
        Member::Getter | Member::LiteralGetter => format!("get {text}"),
        Member::Setter | Member::LiteralSetter => format!("set {text}"),
        Member::Field | Member::Method | Member::LiteralMethod => text,
    };
    let name = st.heap.new_string(&text)?;
    st.set_name(obj, Value::string(name))
}

/// A class's constructor in `d` and its prototype in `d + 1`.
#[inline(never)]
pub(crate) fn new_class(st: &mut State, w: &mut Window, code: &Code, d: u8, a: u8, n: u32) -> Done {
    // The register after the parent's has its `prototype`, which has been checked.
    let (heritage, prototype) = (w[a as usize], w[a as usize + 1]);
    let (parent, prototype_parent) = if heritage.is_hole() {
        (Some(st.realm.function_prototype), Some(st.realm.object_prototype))
    } else if heritage.is_null() {
        (Some(st.realm.function_prototype), None)
    } else {
        (heritage.as_object(), prototype.as_object())
    };
    let ctor = st.new_closure(w, code, n)?;
    let Some(function) = ctor.as_object() else { return Ok(()) };
    let mut flags = Flags::CONSTRUCTOR.and(Flags::CLASS_CONSTRUCTOR);
    if !heritage.is_hole() {
        flags = flags.and(Flags::DERIVED);
    }
    st.heap.add_flags(function, flags);
    if parent != Some(st.realm.function_prototype) {
        st.heap.set_prototype(function, parent)?;
    }
    let shape = st.heap.root_shape(prototype_parent)?;
    let prototype = st.heap.new_object(shape)?;
    st.heap.add_property(function, Key::atom(atoms::PROTOTYPE), Attrs::NONE, Value::object(prototype))?;
    st.heap.add_property(prototype, Key::atom(atoms::CONSTRUCTOR), Attrs::HIDDEN, ctor)?;
    set_home(st, ctor, Value::object(prototype));
    w[d as usize] = ctor;
    w[d as usize + 1] = Value::object(prototype);
    Ok(())
}

pub(crate) fn set_fields(st: &mut State, ctor: Value, f: Value) -> Done {
    if let Some(obj) = ctor.as_object() {
        let key = st.realm.fields_key;
        st.heap.add_property(obj, key, Attrs::WRITABLE, f)?;
    }
    Ok(())
}

/// Runs the field initialiser on a new object.
#[inline(never)]
pub(crate) fn init_fields(st: &mut State, w: &mut Window, ctor: Value, object: Value) -> Done {
    let Some(class) = ctor.as_object() else { return Ok(()) };
    if let Own::Data { value, .. } = st.heap.get_own(class, st.realm.fields_key) {
        st.call_above(w, value, object, &[], 0, FrameFlags::DISCARD)?;
    }
    Ok(())
}

pub(crate) fn set_home(st: &mut State, f: Value, home: Value) {
    if let Some(closure) = f.as_object().and_then(|f| st.heap.closure_of(f)) {
        st.heap.set_home_object(closure, home);
    }
}

pub(crate) fn call_other(st: &mut State, w: &mut Window, d: u8, a: u8, argc: u32) -> Res {
    st.call(w, a, argc, plain(d))
}

pub(crate) fn call_spread(st: &mut State, w: &mut Window, d: u8, a: u8) -> Res {
    st.call_list(w, a, plain(d))
}

fn plain(dst: u8) -> Calling {
    Calling { dst, flags: FrameFlags::NONE, new_target: Value::UNDEFINED }
}

pub(crate) fn new_spread(st: &mut State, w: &mut Window, d: u8, a: u8) -> Res {
    let target = w[a as usize];
    st.construct_list(w, a, d, target)
}

pub(crate) fn super_call(st: &mut State, w: &mut Window, d: u8, a: u8, argc: u32, target: Value) -> Res {
    let method = w[a as usize];
    w[a as usize] = super_constructor(st, method)?;
    let result = st.construct(w, a, argc, d, target);
    State::put_back(w, a, method, result)
}

pub(crate) fn super_call_spread(st: &mut State, w: &mut Window, d: u8, a: u8, target: Value) -> Res {
    let method = w[a as usize];
    w[a as usize] = super_constructor(st, method)?;
    let result = st.construct_list(w, a, d, target);
    State::put_back(w, a, method, result)
}

fn super_constructor(st: &mut State, method: Value) -> Res {
    let parent = method.as_object().and_then(|c| st.heap.prototype(c)).map(|p| st.heap.object_value(p));
    match parent {
        Some(parent) if st.heap.is_constructor(parent) => Ok(parent),
        _ => Err(st.type_error("Super constructor is not a constructor")),
    }
}

pub(crate) fn call_helper(st: &mut State, w: &mut Window, d: u8, a: u8, n: u8, helper: u32) -> Res {
    let args: Vec<Value> = w[a as usize..a as usize + n as usize].to_vec();
    let callee = st.helpers.get(helper as usize).copied().unwrap_or(Value::UNDEFINED);
    st.call_above(w, callee, Value::UNDEFINED, &args, d, FrameFlags::NONE)
}

#[inline(never)]
pub(crate) fn arguments(st: &mut State, regs: &[Value], frame: &Frame) -> Res {
    let given = st.arguments_of(regs, frame, 0);
    let object = st.heap.new_arguments(st.realm.arguments_shape, &given)?;
    // In the order of the shape.
    st.heap.set_slot(object, 0, Value::uint(frame.argc));
    st.heap.set_slot(object, 1, st.realm.array_values);
    st.heap.set_slot(object, 2, st.realm.callee_guard);
    Ok(Value::object(object))
}

#[inline(never)]
pub(crate) fn rest(st: &mut State, regs: &[Value], frame: &Frame, skip: u32) -> Res {
    let given = st.arguments_of(regs, frame, skip);
    Ok(Value::array(st.heap.new_array(st.realm.array_shape, &given)?))
}

/// `{...source}` without guest code; with a getter or a proxy the helper does it.
#[inline(never)]
pub(crate) fn copy_props(st: &mut State, w: &mut Window, target: Value, source: Value) -> Done {
    copy_except(st, w, target, source, Value::UNDEFINED, FrameFlags::DISCARD, 0).map(|_| ())
}

#[inline(never)]
pub(crate) fn copy_rest(st: &mut State, w: &mut Window, d: u8, source: Value, except: Value) -> Res {
    let target = Value::object(st.heap.new_object(st.realm.object_shape)?);
    copy_except(st, w, target, source, except, FrameFlags::NONE, d)
}

fn copy_except(
    st: &mut State,
    w: &mut Window,
    target: Value,
    source: Value,
    except: Value,
    flags: FrameFlags,
    d: u8,
) -> Res {
    let Some(to) = target.as_object() else { return Ok(target) };
    if let Some(s) = source.as_string() {
        st.burn(u64::from(st.heap.string_length(s)))?;
        st.heap.flatten(s)?;
        for i in 0..st.heap.string_length(s) {
            let unit = st.heap.str(s).get(i as usize).unwrap_or(0);
            let v = Value::string(st.heap.unit_string(unit)?);
            let key = st.heap.key_of_index(i)?;
            st.heap.add_property(to, key, Attrs::ALL, v)?;
        }
        return Ok(target);
    }
    let Some(from) = source.as_object() else { return Ok(target) };
    let mut keys = Vec::new();
    let mut simple = st.keys(from, &mut keys)?;
    for &key in &keys {
        simple &= !matches!(st.own(from, key)?, Own::Accessor { .. } | Own::Exotic);
    }
    if !simple {
        let exit = st.enter_helper(w, Helper::CopyProps, &[target, source, except], d, flags);
        return Err(exit);
    }
    let mut skipped = Vec::new();
    if let Some(list) = except.as_array() {
        for v in st.heap.packed(list).unwrap_or_default().to_vec() {
            skipped.push(st.property_key(v)?);
        }
    }
    for key in keys {
        if let Own::Data { value, attrs, .. } = st.own(from, key)?
            && attrs.has(Attrs::ENUMERABLE)
            && !st.heap.is_private(key)
            && !skipped.contains(&key)
        {
            st.heap.define_own(to, key, &Descriptor::data(value, Attrs::ALL))?;
        }
    }
    Ok(target)
}

impl State {
    pub(crate) fn constant_text(&mut self, k: u32) -> String {
        self.constant_text_of(k)
    }

    pub(crate) fn constant_text_of(&self, k: u32) -> String {
        // Constants are interned, so they are flat.
        match self.constants.get(k as usize).and_then(|v| v.as_string()) {
            Some(s) => self.heap.str(s).to_string_lossy().into_owned(),
            None => String::new(),
        }
    }
}
