//! The objects that every run starts with: prototypes, constructors and the shapes that instructions use.

mod image;

use super::native::Native;
use super::state::{Exit, Res, State};
use crate::code::ErrorKind;
use crate::heap::{
    AllocError, Attrs, Class, Flags, Found, Heap, Key, ObjId, ShapeId, SymbolKind, atoms, symbols,
};
use crate::text::number::print;
use crate::value::{Unpacked, Value};

macro_rules! prototypes {
    ($($name:ident : $parent:ident,)*) => {
        /// The prototypes of the realm, by number. A new one is one line in the table: its name and its own prototype, which comes
        /// earlier.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub(crate) enum Proto { Object, $($name),* }

        impl Proto {
            pub(crate) const ALL: &'static [Proto] = &[Proto::Object, $(Proto::$name),*];
            const PARENTS: &'static [Proto] = &[Proto::Object, $(Proto::$parent),*];

            /// Its name in the prelude.
            pub(crate) fn text(self) -> &'static str {
                match self { Proto::Object => "Object", $(Proto::$name => stringify!($name)),* }
            }
        }
    };
}

prototypes! {
    Function: Object,
    Array: Object,
    String: Object,
    Number: Object,
    Boolean: Object,
    Symbol: Object,
    BigInt: Object,
    // In the order of `ErrorKind`.
    Error: Object,
    TypeError: Error,
    ReferenceError: Error,
    RangeError: Error,
    SyntaxError: Error,
    EvalError: Error,
    URIError: Error,
    AggregateError: Error,
    Promise: Object,
    Iterator: Object,
    AsyncIterator: Object,
    Generator: Iterator,
    AsyncGenerator: AsyncIterator,
    GeneratorFunction: Function,
    AsyncFunction: Function,
    AsyncGeneratorFunction: Function,
    ArrayIterator: Iterator,
    StringIterator: Iterator,
    MapIterator: Iterator,
    SetIterator: Iterator,
    RegExpStringIterator: Iterator,
    IteratorHelper: Iterator,
    WrapForValidIterator: Iterator,
    AsyncFromSyncIterator: AsyncIterator,
    Map: Object,
    Set: Object,
    WeakMap: Object,
    WeakSet: Object,
    WeakRef: Object,
    FinalizationRegistry: Object,
    RegExp: Object,
    Date: Object,
    ArrayBuffer: Object,
    DataView: Object,
    TypedArray: Object,
    Int8Array: TypedArray,
    Uint8Array: TypedArray,
    Uint8ClampedArray: TypedArray,
    Int16Array: TypedArray,
    Uint16Array: TypedArray,
    Int32Array: TypedArray,
    Uint32Array: TypedArray,
    BigInt64Array: TypedArray,
    BigUint64Array: TypedArray,
    Float32Array: TypedArray,
    Float64Array: TypedArray,
    IntlNumberFormat: Object,
    IntlDateTimeFormat: Object,
    IntlCollator: Object,
    IntlPluralRules: Object,
    IntlListFormat: Object,
    IntlRelativeTimeFormat: Object,
}

/// What a traceback costs.
const ERROR_COST: u64 = 16;
/// Bits of a BigInt that are spelled for the embedder: longer ones take longer than anybody paid for.
const LONG_BIGINT: u64 = 1 << 16;

/// Well-known objects.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Realm {
    prototypes: [ObjId; Proto::ALL.len()],
    pub(crate) global: ObjId,
    /// The `let`, `const` and `class` names that scripts share.
    pub(crate) script_scope: ObjId,
    pub(crate) object_prototype: ObjId,
    pub(crate) function_prototype: ObjId,
    pub(crate) array_prototype: ObjId,
    pub(crate) string_prototype: ObjId,
    pub(crate) number_prototype: ObjId,
    pub(crate) boolean_prototype: ObjId,
    pub(crate) symbol_prototype: ObjId,
    pub(crate) bigint_prototype: ObjId,
    pub(crate) promise_prototype: ObjId,
    pub(crate) generator_prototype: ObjId,
    pub(crate) async_generator_prototype: ObjId,
    pub(crate) array_iterator_prototype: ObjId,
    pub(crate) error_prototypes: [ObjId; 5],
    pub(crate) object_shape: ShapeId,
    /// `length`, `@@iterator`, `callee`.
    pub(crate) arguments_shape: ShapeId,
    pub(crate) array_shape: ShapeId,
    /// `length`, `name`.
    pub(crate) function_shape: ShapeId,
    /// `length`, `name`, `prototype`.
    pub(crate) constructor_shape: ShapeId,
    pub(crate) generator_function_shape: ShapeId,
    pub(crate) async_generator_function_shape: ShapeId,
    pub(crate) async_function_shape: ShapeId,
    /// `constructor`.
    pub(crate) prototype_shape: ShapeId,
    /// `value`, `done`.
    pub(crate) result_shape: ShapeId,
    /// `lastIndex`.
    pub(crate) regexp_shape: ShapeId,
    /// `index`, `input`, `groups`.
    pub(crate) match_shape: ShapeId,
    /// `Array.prototype.values` and the array iterator's `next`, to see whether anybody changed them.
    pub(crate) array_values: Value,
    pub(crate) array_iterator_next: Value,
    /// `Array` and the getter of its species, likewise.
    pub(crate) array_constructor: Value,
    pub(crate) array_species: Value,
    /// `Function.prototype[Symbol.hasInstance]`, likewise.
    pub(crate) has_instance: Value,
    /// `%ThrowTypeError%`, which guards what strict code must not read.
    pub(crate) thrower: Value,
    /// The accessor that `callee` of every arguments object is: it throws both ways.
    pub(crate) callee_guard: Value,
    /// Where a constructor keeps its field initialiser.
    pub(crate) fields_key: Key,
}

impl Realm {
    /// Prototypes and shapes, still without functions.
    pub(crate) fn new(heap: &mut Heap) -> Result<Realm, AllocError> {
        let bare = heap.root_shape(None)?;
        let object_prototype = heap.new_object(bare)?;
        let object_shape = heap.root_shape(Some(object_prototype))?;
        heap.add_flags(object_prototype, Flags::IMMUTABLE_PROTOTYPE);
        let mut prototypes = [object_prototype; Proto::ALL.len()];
        for (i, &proto) in Proto::ALL.iter().enumerate().skip(1) {
            let shape = heap.root_shape(Some(prototypes[Proto::PARENTS[i] as usize]))?;
            prototypes[i] = match proto {
                Proto::Function => {
                    let fields = [Value::int(Native::Nothing as i32)];
                    heap.new_object_with_slots(shape, Class::NativeFunction, Flags::CALLABLE, &fields)?
                }
                Proto::Array => heap.new_array(shape, &[])?,
                Proto::String => {
                    heap.new_object_with_cell(shape, Class::String, Value::string(atoms::EMPTY))?
                }
                Proto::Number => heap.new_object_with_cell(shape, Class::Number, Value::ZERO)?,
                Proto::Boolean => heap.new_object_with_cell(shape, Class::Boolean, Value::FALSE)?,
                _ => heap.new_object(shape)?,
            };
        }
        let of = |proto: Proto| prototypes[proto as usize];
        let (function_prototype, array_prototype) = (of(Proto::Function), of(Proto::Array));
        let function_root = heap.root_shape(Some(function_prototype))?;
        let grow = |heap: &mut Heap, shape: ShapeId, name, attrs| -> Result<ShapeId, AllocError> {
            Ok(heap.transition(shape, Key::atom(name), attrs)?.unwrap_or(shape))
        };
        let with_length = grow(heap, function_root, atoms::LENGTH, Attrs::CONFIGURABLE)?;
        let function_shape = grow(heap, with_length, atoms::NAME, Attrs::CONFIGURABLE)?;
        let constructor_shape = grow(heap, function_shape, atoms::PROTOTYPE, Attrs::WRITABLE)?;
        let prototype_shape = grow(heap, object_shape, atoms::CONSTRUCTOR, Attrs::HIDDEN)?;
        let arguments_length = grow(heap, object_shape, atoms::LENGTH, Attrs::HIDDEN)?;
        let iterable = heap.transition(arguments_length, Key::symbol(symbols::ITERATOR), Attrs::HIDDEN)?;
        let iterable = iterable.unwrap_or(arguments_length);
        let arguments_shape = grow(heap, iterable, atoms::CALLEE, Attrs::ACCESSOR)?;
        let with_value = grow(heap, object_shape, atoms::VALUE, Attrs::ALL)?;
        let result_shape = grow(heap, with_value, atoms::DONE, Attrs::ALL)?;
        let regexp_root = heap.root_shape(Some(of(Proto::RegExp)))?;
        let regexp_shape = grow(heap, regexp_root, atoms::LAST_INDEX, Attrs::WRITABLE)?;
        let mut match_shape = heap.root_shape(Some(array_prototype))?;
        for name in [atoms::INDEX, atoms::INPUT, atoms::GROUPS] {
            match_shape = grow(heap, match_shape, name, Attrs::ALL)?;
        }
        let mut function_shape_of = |parent: Proto, with_prototype| -> Result<ShapeId, AllocError> {
            let root = heap.root_shape(Some(of(parent)))?;
            let with_length = grow(heap, root, atoms::LENGTH, Attrs::CONFIGURABLE)?;
            let with_name = grow(heap, with_length, atoms::NAME, Attrs::CONFIGURABLE)?;
            if with_prototype {
                grow(heap, with_name, atoms::PROTOTYPE, Attrs::WRITABLE)
            } else {
                Ok(with_name)
            }
        };
        let generator_function_shape = function_shape_of(Proto::GeneratorFunction, true)?;
        let async_generator_function_shape = function_shape_of(Proto::AsyncGeneratorFunction, true)?;
        let async_function_shape = function_shape_of(Proto::AsyncFunction, false)?;
        let error = Proto::Error as usize;
        let error_prototypes = [0, 1, 2, 3, 4].map(|kind| prototypes[error + kind]);
        let fields = heap.new_symbol(SymbolKind::Private, None)?;
        Ok(Realm {
            prototypes,
            global: heap.new_object(object_shape)?,
            script_scope: heap.new_object(bare)?,
            object_prototype,
            function_prototype,
            array_prototype,
            string_prototype: of(Proto::String),
            number_prototype: of(Proto::Number),
            boolean_prototype: of(Proto::Boolean),
            symbol_prototype: of(Proto::Symbol),
            bigint_prototype: of(Proto::BigInt),
            promise_prototype: of(Proto::Promise),
            generator_prototype: of(Proto::Generator),
            async_generator_prototype: of(Proto::AsyncGenerator),
            array_iterator_prototype: of(Proto::ArrayIterator),
            error_prototypes,
            object_shape,
            arguments_shape,
            array_shape: heap.root_shape(Some(array_prototype))?,
            function_shape,
            constructor_shape,
            generator_function_shape,
            async_generator_function_shape,
            async_function_shape,
            prototype_shape,
            result_shape,
            regexp_shape,
            match_shape,
            array_values: Value::UNDEFINED,
            array_iterator_next: Value::UNDEFINED,
            array_constructor: Value::UNDEFINED,
            array_species: Value::UNDEFINED,
            has_instance: Value::UNDEFINED,
            thrower: Value::UNDEFINED,
            callee_guard: Value::UNDEFINED,
            fields_key: Key::symbol(fields),
        })
    }
}

impl Realm {
    /// A prototype by name.
    #[inline]
    pub(crate) fn proto(&self, proto: Proto) -> ObjId {
        self.prototypes[proto as usize]
    }

    /// Everything here is in use for as long as the machine is.
    pub(crate) fn mark(&self, m: &mut crate::heap::Marker) {
        m.object(self.global);
        m.object(self.script_scope);
        for object in self.prototypes {
            m.object(object);
        }
        for shape in [
            self.object_shape,
            self.arguments_shape,
            self.array_shape,
            self.function_shape,
            self.constructor_shape,
            self.generator_function_shape,
            self.async_generator_function_shape,
            self.async_function_shape,
            self.prototype_shape,
            self.result_shape,
            self.regexp_shape,
            self.match_shape,
        ] {
            m.shape(shape);
        }
        m.values(&[self.array_constructor, self.array_species]);
        m.values(&[
            self.array_values,
            self.array_iterator_next,
            self.has_instance,
            self.thrower,
            self.callee_guard,
        ]);
        m.key(self.fields_key);
    }
}

impl State {
    /// Adds the native functions to the realm.
    pub(crate) fn populate(&mut self) -> Result<(), Exit> {
        let realm = self.realm;
        let global = realm.global;
        self.set_hidden(global, "globalThis", Value::object(global))?;
        for (name, value) in [
            (atoms::NAN, Value::NAN),
            (atoms::INFINITY, Value::number(f64::INFINITY)),
            (atoms::UNDEFINED, Value::UNDEFINED),
        ] {
            self.heap.add_property(global, Key::atom(name), Attrs::NONE, value)?;
        }
        for (name, value) in [(atoms::LENGTH, Value::ZERO), (atoms::NAME, Value::string(atoms::EMPTY))] {
            self.heap.add_property(realm.function_prototype, Key::atom(name), Attrs::CONFIGURABLE, value)?;
        }
        self.method(global, "print", Native::Print)?;
        Ok(())
    }

    pub(crate) fn set_hidden(&mut self, object: ObjId, name: &str, value: Value) -> Result<(), Exit> {
        let atom = self.heap.intern_str(name)?;
        let key = self.heap.key_of_string(atom)?;
        self.heap.add_property(object, key, Attrs::HIDDEN, value)?;
        Ok(())
    }

    fn method(&mut self, object: ObjId, name: &str, native: Native) -> Res {
        let function = self.new_native(native, &[])?;
        if let Some(f) = function.as_object() {
            let text = Value::string(self.heap.intern_str(name)?);
            self.heap.set_slot(f, 1, text);
        }
        self.set_hidden(object, name, function)?;
        Ok(function)
    }

    /// A native function with fields of its own after its number.
    pub(crate) fn new_native(&mut self, native: Native, fields: &[Value]) -> Res {
        Ok(Value::object(self.new_native_object(native as i32, fields)?))
    }

    pub(crate) fn new_native_object(&mut self, number: i32, fields: &[Value]) -> Result<ObjId, Exit> {
        let mut slots = [Value::UNDEFINED; 4];
        slots[0] = Value::int(number);
        for (place, &field) in slots[1..].iter_mut().zip(fields) {
            *place = field;
        }
        let shape = self.realm.function_shape;
        let object =
            self.heap.new_object_with_slots(shape, Class::NativeFunction, Flags::CALLABLE, &slots)?;
        self.heap.set_slot(object, 0, Value::ZERO);
        self.heap.set_slot(object, 1, Value::string(atoms::EMPTY));
        Ok(object)
    }

    /// The JavaScript version behind a native.
    pub(crate) fn fallback(&self, native: ObjId) -> Value {
        let fields = self.heap.slots_of(native).map(|s| self.heap.slots(s)).unwrap_or_default();
        fields.get(1).copied().unwrap_or(Value::UNDEFINED)
    }

    /// A capability of the host as a guest function.
    pub(crate) fn new_capability(&mut self, name: &str) -> Res {
        let text = Value::string(self.heap.intern_str(name)?);
        let shape = self.realm.function_shape;
        let object = self.heap.new_object_with_slots(shape, Class::HostFunction, Flags::CALLABLE, &[text])?;
        self.heap.set_slot(object, 0, Value::ZERO);
        self.heap.set_slot(object, 1, text);
        Ok(Value::object(object))
    }

    pub(crate) fn new_error(&mut self, kind: ErrorKind, message: &str) -> Res {
        let text = self.heap.new_string(message)?;
        self.make_error(self.realm.error_prototypes[kind as usize], Some(Value::string(text)))
    }

    /// An error object with its `message` and a `stack` of where it was made.
    pub(crate) fn make_error(&mut self, prototype: ObjId, message: Option<Value>) -> Res {
        self.burn(ERROR_COST)?;
        let shape = self.heap.root_shape(Some(prototype))?;
        let places = self.active_places();
        let object = self.heap.new_object_with_slots(shape, Class::Error, Flags::NONE, &places)?;
        // The place comes first, the text when the message is there.
        self.heap.add_property(object, Key::atom(atoms::STACK), Attrs::HIDDEN, Value::UNDEFINED)?;
        if let Some(message) = message {
            self.heap.add_property(object, Key::atom(atoms::MESSAGE), Attrs::HIDDEN, message)?;
        }
        let text = self.traceback(Value::object(object));
        let stack = self.heap.new_string(&text)?;
        self.heap.add_property(object, Key::atom(atoms::STACK), Attrs::HIDDEN, Value::string(stack))?;
        Ok(Value::object(object))
    }

    /// `Name: message` of an error, or the text of anything else.
    pub(crate) fn describe(&mut self, v: Value) -> String {
        let Some(obj) = v.as_object() else {
            return self.primitive_text(v);
        };
        let part = |st: &mut State, name| match st.heap.get(obj, Key::atom(name)) {
            Found::Data(v) => v.as_string().map(|s| st.bounded_text(s)).unwrap_or_default(),
            _ => String::new(),
        };
        let name = part(self, atoms::NAME);
        let message = part(self, atoms::MESSAGE);
        match (name.is_empty(), message.is_empty()) {
            (true, true) => "[object Object]".to_owned(),
            (true, false) => message,
            (false, true) => name,
            (false, false) => format!("{name}: {message}"),
        }
    }

    /// Text that was not paid for: not more of it than the heap may hold, since a string can be longer than its memory.
    fn bounded_text(&self, s: crate::heap::StrId) -> String {
        let mut out = String::new();
        let mut left = self.heap.limits().bytes;
        self.heap.each_part_while(s, |part| {
            let taken = part.len().min(left);
            left -= taken;
            out.push_str(&part.slice(0, taken).to_string_lossy());
            left > 0
        });
        out
    }

    /// The text of a primitive, made outside the heap: it must not fail when the heap is full.
    pub(crate) fn primitive_text(&mut self, v: Value) -> String {
        match v.unpack() {
            Unpacked::String(s) => self.bounded_text(s),
            Unpacked::Int(i) => i.to_string(),
            Unpacked::Double(x) => print::decimal(x, &mut print::Buffer::new()).to_owned(),
            Unpacked::BigInt(id) if self.heap.bigint(id).bits() > LONG_BIGINT => {
                format!("a BigInt of {} bits", self.heap.bigint(id).bits())
            }
            Unpacked::BigInt(id) => self.heap.bigint(id).to_string(),
            Unpacked::Bool(b) => b.to_string(),
            Unpacked::Null => "null".to_owned(),
            Unpacked::Symbol(id) => {
                let text = self.heap.symbol_description(id).map(|s| self.string_text(s));
                format!("Symbol({})", text.unwrap_or_default())
            }
            Unpacked::Undefined | Unpacked::Hole | Unpacked::Internal(_) | Unpacked::Object(_) => {
                "undefined".to_owned()
            }
        }
    }
}
