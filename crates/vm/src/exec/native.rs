//! Functions implemented by the engine itself; the tables of [`crate::builtins`] have the rest.

use super::Window;
use super::call::Calling;
use super::frame::FrameFlags;
use super::object::array_push;
use super::state::{Exit, Res, State};
use super::suspend::{Resume, Settled};
use crate::builtins::{self, Args};
use crate::code::ErrorKind;
use crate::heap::{Attrs, Class, Descriptor, Flags, Key, ObjId, Own, atoms};
use crate::value::Value;

/// From here on, the number of a native function is a place in the tables of the standard library.
pub(crate) const TABLE_NATIVE: i32 = 1 << 24;

/// A call of a native: where its arguments are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NativeArgs {
    /// The register with the callee; `this` and the arguments follow.
    pub(crate) a: u8,
    pub(crate) argc: u32,
    pub(crate) calling: Calling,
}

/// The native functions, numbered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Native {
    Print,
    Error,
    TypeError,
    ReferenceError,
    RangeError,
    SyntaxError,
    ArrayPush,
    ArrayValues,
    ArrayIteratorNext,
    IteratorSelf,
    GeneratorNext,
    GeneratorReturn,
    GeneratorThrow,
    ResolvePromise,
    RejectPromise,
    FunctionCall,
    ObjectKeys,
    ObjectDefineProperty,
    SymbolConstructor,
    ObjectConstructor,
    ObjectToString,
    ObjectValueOf,
    ErrorToString,
    /// `Function.prototype` itself: answers undefined.
    Nothing,
}

impl Native {
    const ALL: &'static [Native] = &[
        Native::Print,
        Native::Error,
        Native::TypeError,
        Native::ReferenceError,
        Native::RangeError,
        Native::SyntaxError,
        Native::ArrayPush,
        Native::ArrayValues,
        Native::ArrayIteratorNext,
        Native::IteratorSelf,
        Native::GeneratorNext,
        Native::GeneratorReturn,
        Native::GeneratorThrow,
        Native::ResolvePromise,
        Native::RejectPromise,
        Native::FunctionCall,
        Native::ObjectKeys,
        Native::ObjectDefineProperty,
        Native::SymbolConstructor,
        Native::ObjectConstructor,
        Native::ObjectToString,
        Native::ObjectValueOf,
        Native::ErrorToString,
        Native::Nothing,
    ];
}

pub(crate) fn call(st: &mut State, w: &mut Window, callee: ObjId, args: NativeArgs) -> Res {
    let number =
        st.heap.slots_of(callee).and_then(|s| st.heap.slots(s).first().copied()).and_then(|v| v.as_int());
    let this = w[args.a as usize + 1];
    if let Some(n) = number.filter(|&n| n >= TABLE_NATIVE)
        && let Some(native) = builtins::native((n - TABLE_NATIVE) as u32)
    {
        let first = args.a.saturating_add(2);
        let callee = Value::object(callee);
        let args = Args { callee, this, first, argc: args.argc, calling: args.calling };
        return paying_once(st, |st| native(st, w, args));
    }
    let Some(&native) = number.and_then(|n| Native::ALL.get(n as usize)) else {
        return Err(st.type_error("unknown native function"));
    };
    let arg = |w: &Window, n: u32| {
        if n < args.argc { w[args.a as usize + 2 + n as usize] } else { Value::UNDEFINED }
    };
    let (first, second) = (arg(w, 0), arg(w, 1));
    match native {
        Native::Print => {
            st.printed.push(first);
            Ok(Value::UNDEFINED)
        }
        Native::Error
        | Native::TypeError
        | Native::ReferenceError
        | Native::RangeError
        | Native::SyntaxError => {
            let kind = match native {
                Native::TypeError => ErrorKind::Type,
                Native::ReferenceError => ErrorKind::Reference,
                Native::RangeError => ErrorKind::Range,
                Native::SyntaxError => ErrorKind::Syntax,
                _ => ErrorKind::Error,
            };
            let target = if args.calling.new_target.is_undefined() {
                Value::object(callee)
            } else {
                args.calling.new_target
            };
            let prototype = st.prototype_for(target, st.realm.error_prototypes[kind as usize]);
            let message = match first {
                v if v.is_undefined() => None,
                v if v.is_object() => {
                    return Err(st.type_error("an error's message must be a primitive for now"));
                }
                v => Some(Value::string(st.primitive_to_string(v)?)),
            };
            st.make_error(prototype, message)
        }
        Native::ArrayPush => {
            let Some(array) = this.as_array() else {
                return Err(st.type_error("push needs an array for now"));
            };
            let start = st.heap.array_length(array);
            for n in 0..args.argc {
                if let Err(exit) = array_push(st, this, arg(w, n)) {
                    if let Exit::Alloc(_) = exit {
                        st.heap.set_array_length(array, start)?;
                    }
                    return Err(exit);
                }
            }
            Ok(Value::uint(st.heap.array_length(array)))
        }
        Native::ArrayValues => {
            let shape = st.heap.root_shape(Some(st.realm.array_iterator_prototype))?;
            let fields = [this, Value::ZERO];
            let object = st.heap.new_object_with_slots(shape, Class::ArrayIterator, Flags::NONE, &fields)?;
            Ok(Value::object(object))
        }
        Native::ArrayIteratorNext => array_iterator_next(st, w, this, args.calling.dst),
        Native::IteratorSelf => Ok(this),
        Native::GeneratorNext | Native::GeneratorReturn | Native::GeneratorThrow => {
            let how = match native {
                Native::GeneratorReturn => Resume::Return,
                Native::GeneratorThrow => Resume::Throw,
                _ => Resume::Next,
            };
            let base = st.top().map_or(0, |f| f.base) + u32::from(args.a) + 2;
            st.generator_resume(base, args.calling, this, how, first)
        }
        Native::ResolvePromise => st.call_resolving(w, callee, Settled::Fulfilled, first, args.calling),
        Native::RejectPromise => st.call_resolving(w, callee, Settled::Rejected, first, args.calling),
        Native::FunctionCall => {
            // The arguments move down by one: this becomes the callee, the first argument its `this`.
            let a = args.a as usize;
            w[a] = this;
            let end = a + 2 + args.argc.max(1) as usize;
            if args.argc == 0 {
                w[a + 2] = Value::UNDEFINED;
            }
            w.copy_within(a + 2..end, a + 1);
            let argc = args.argc.saturating_sub(1);
            st.call(w, args.a, argc, Calling { new_target: Value::UNDEFINED, ..args.calling })
        }
        Native::ObjectKeys => {
            let Some(obj) = first.as_object() else {
                return Err(st.type_error("Object.keys needs an object for now"));
            };
            own_keys(st, obj)
        }
        Native::ObjectDefineProperty => define_property(st, first, second, arg(w, 2)),
        Native::SymbolConstructor => {
            let description = first.as_string();
            Ok(Value::symbol(st.heap.new_symbol(crate::heap::SymbolKind::Unique, description)?))
        }
        Native::ObjectConstructor => {
            if first.is_object() && args.calling.new_target.is_undefined() {
                return Ok(first);
            }
            let prototype = st.prototype_for(args.calling.new_target, st.realm.object_prototype);
            let shape = st.heap.root_shape(Some(prototype))?;
            Ok(Value::object(st.heap.new_object(shape)?))
        }
        Native::ObjectToString => Ok(Value::string(st.heap.intern_str("[object Object]")?)),
        Native::ObjectValueOf => Ok(this),
        Native::Nothing => Ok(Value::UNDEFINED),
        Native::ErrorToString => {
            let text = st.describe(this);
            Ok(Value::string(st.heap.new_string(&text)?))
        }
    }
}

fn array_iterator_next(st: &mut State, w: &mut Window, this: Value, dst: u8) -> Res {
    let record = this
        .as_object()
        .filter(|&o| st.heap.class(o) == Class::ArrayIterator)
        .and_then(|o| st.heap.slots_of(o));
    let Some(record) = record else { return Err(st.type_error("next called on an incompatible receiver")) };
    let (array, position) = (st.heap.slots(record)[0], st.heap.slots(record)[1]);
    let length = match array.as_array() {
        Some(id) => st.heap.array_length(id),
        None => match array.as_object().map(|o| st.heap.get(o, Key::atom(atoms::LENGTH))) {
            Some(crate::heap::Found::Data(v)) => v.as_int().unwrap_or(0).max(0) as u32,
            _ => 0,
        },
    };
    let i = position.as_int().unwrap_or(0);
    if array.is_undefined() || i as u32 >= length {
        let result = st.iter_result(Value::UNDEFINED, true)?;
        st.heap.slots_mut(record)[0] = Value::UNDEFINED;
        return Ok(result);
    }
    let key = st.heap.key_of_index(i as u32)?;
    let value = super::property::get(st, w, dst, array, key)?;
    let result = st.iter_result(value, false)?;
    st.heap.slots_mut(record)[1] = Value::int(i + 1);
    Ok(result)
}

fn own_keys(st: &mut State, obj: ObjId) -> Res {
    let mut keys = Vec::new();
    if !st.heap.own_keys(obj, &mut keys) {
        return Err(st.type_error("keys of this object are not supported yet"));
    }
    st.burn(keys.len() as u64)?;
    let list = st.heap.new_array(st.realm.array_shape, &[])?;
    for key in keys {
        let enumerable = match st.heap.get_own(obj, key) {
            Own::Data { attrs, .. } | Own::Accessor { attrs, .. } => attrs.has(Attrs::ENUMERABLE),
            Own::Absent | Own::Exotic => false,
        };
        if enumerable && key.as_symbol().is_none() {
            let name = st.heap.key_to_value(key)?;
            array_push(st, Value::array(list), name)?;
        }
    }
    Ok(Value::array(list))
}

fn define_property(st: &mut State, target: Value, key: Value, desc: Value) -> Res {
    let (Some(obj), Some(desc)) = (target.as_object(), desc.as_object()) else {
        return Err(st.type_error("Object.defineProperty called on non-object"));
    };
    let key = st.property_key(key)?;
    let field = |st: &State, name| match st.heap.get(desc, Key::atom(name)) {
        crate::heap::Found::Data(v) => Some(v),
        _ => None,
    };
    let flag = |st: &State, name| field(st, name).map(|v| st.heap.truthy(v));
    let described = Descriptor {
        value: field(st, atoms::VALUE),
        get: field(st, atoms::GET),
        set: field(st, atoms::SET),
        writable: flag(st, atoms::WRITABLE),
        enumerable: flag(st, atoms::ENUMERABLE),
        configurable: flag(st, atoms::CONFIGURABLE),
    };
    match st.heap.define_own(obj, key, &described)? {
        crate::heap::Defined::Yes => Ok(target),
        _ => Err(st.type_error("Cannot redefine property")),
    }
}

/// `%Name(…)`.
#[inline(never)]
pub(crate) fn intrinsic(st: &mut State, w: &mut Window, d: u8, a: u8, n: u8, number: u32) -> Res {
    let calling = Calling { dst: d, flags: FrameFlags::NONE, new_target: Value::UNDEFINED };
    let undefined = Value::UNDEFINED;
    let args = Args { callee: undefined, this: undefined, first: a, argc: u32::from(n), calling };
    let native = builtins::native(number);
    match native.map(|native| paying_once(st, |st| native(st, w, args))) {
        Some(Err(Exit::Slow)) | None => {
            Err(st.type_error("the engine called an intrinsic with a value it is not for"))
        }
        Some(result) => result,
    }
}

/// A native that must be run again after a collection pays for its last run only: so what a script costs does not
/// depend on when garbage is collected, and the heap can tell a repeated instruction from progress.
#[inline]
fn paying_once(st: &mut State, native: impl FnOnce(&mut State) -> Res) -> Res {
    let fuel = st.fuel;
    let result = native(st);
    if let Err(Exit::Alloc(crate::heap::AllocError::Collect)) = result {
        st.fuel = fuel;
    }
    result
}
