//! The objects that every run starts with: prototypes, constructors and the shapes that instructions use.

use super::native::Native;
use super::state::{Exit, Res, State};
use crate::code::ErrorKind;
use crate::heap::{
    AllocError, Attrs, Class, Flags, Found, Heap, Key, ObjId, ShapeId, SymbolKind, atoms, symbols,
};
use crate::text::number::print;
use crate::value::{Unpacked, Value};

/// Well-known objects.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Realm {
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
    pub(crate) array_shape: ShapeId,
    /// `length`, `name`.
    pub(crate) function_shape: ShapeId,
    /// `length`, `name`, `prototype`.
    pub(crate) constructor_shape: ShapeId,
    pub(crate) generator_function_shape: ShapeId,
    pub(crate) async_generator_function_shape: ShapeId,
    /// `constructor`.
    pub(crate) prototype_shape: ShapeId,
    /// `value`, `done`.
    pub(crate) result_shape: ShapeId,
    /// `Array.prototype.values` and the array iterator's `next`, to see whether anybody changed them.
    pub(crate) array_values: Value,
    pub(crate) array_iterator_next: Value,
    /// Where a constructor keeps its field initialiser.
    pub(crate) fields_key: Key,
    /// The prelude function that runs a promise's executor.
    pub(crate) run_executor: Value,
}

impl Realm {
    /// Prototypes and shapes, still without functions.
    pub(crate) fn new(heap: &mut Heap) -> Result<Realm, AllocError> {
        let bare = heap.root_shape(None)?;
        let object_prototype = heap.new_object(bare)?;
        let object_shape = heap.root_shape(Some(object_prototype))?;
        let plain = |heap: &mut Heap| heap.new_object(object_shape);
        let function_prototype = plain(heap)?;
        let array_prototype = heap.new_array(object_shape, &[])?;
        let function_root = heap.root_shape(Some(function_prototype))?;
        let grow = |heap: &mut Heap, shape: ShapeId, name, attrs| -> Result<ShapeId, AllocError> {
            Ok(heap.transition(shape, Key::atom(name), attrs)?.unwrap_or(shape))
        };
        let with_length = grow(heap, function_root, atoms::LENGTH, Attrs::CONFIGURABLE)?;
        let function_shape = grow(heap, with_length, atoms::NAME, Attrs::CONFIGURABLE)?;
        let constructor_shape = grow(heap, function_shape, atoms::PROTOTYPE, Attrs::WRITABLE)?;
        let prototype_shape = grow(heap, object_shape, atoms::CONSTRUCTOR, Attrs::HIDDEN)?;
        let with_value = grow(heap, object_shape, atoms::VALUE, Attrs::ALL)?;
        let result_shape = grow(heap, with_value, atoms::DONE, Attrs::ALL)?;
        let error = plain(heap)?;
        let error_shape = heap.root_shape(Some(error))?;
        let mut error_prototypes = [error; 5];
        for place in &mut error_prototypes[1..] {
            *place = heap.new_object(error_shape)?;
        }
        let fields = heap.new_symbol(SymbolKind::Private, None)?;
        Ok(Realm {
            global: plain(heap)?,
            script_scope: heap.new_object(bare)?,
            object_prototype,
            function_prototype,
            array_prototype,
            string_prototype: plain(heap)?,
            number_prototype: plain(heap)?,
            boolean_prototype: plain(heap)?,
            symbol_prototype: plain(heap)?,
            bigint_prototype: plain(heap)?,
            promise_prototype: plain(heap)?,
            generator_prototype: plain(heap)?,
            async_generator_prototype: plain(heap)?,
            array_iterator_prototype: plain(heap)?,
            error_prototypes,
            object_shape,
            array_shape: heap.root_shape(Some(array_prototype))?,
            function_shape,
            constructor_shape,
            generator_function_shape: constructor_shape,
            async_generator_function_shape: constructor_shape,
            prototype_shape,
            result_shape,
            array_values: Value::UNDEFINED,
            array_iterator_next: Value::UNDEFINED,
            fields_key: Key::symbol(fields),
            run_executor: Value::UNDEFINED,
        })
    }
}

impl Realm {
    /// Everything here is in use for as long as the machine is.
    pub(crate) fn mark(&self, m: &mut crate::heap::Marker) {
        let objects = [
            self.global,
            self.script_scope,
            self.object_prototype,
            self.function_prototype,
            self.array_prototype,
            self.string_prototype,
            self.number_prototype,
            self.boolean_prototype,
            self.symbol_prototype,
            self.bigint_prototype,
            self.promise_prototype,
            self.generator_prototype,
            self.async_generator_prototype,
            self.array_iterator_prototype,
        ];
        for object in objects.into_iter().chain(self.error_prototypes) {
            m.object(object);
        }
        for shape in [
            self.object_shape,
            self.array_shape,
            self.function_shape,
            self.constructor_shape,
            self.generator_function_shape,
            self.async_generator_function_shape,
            self.prototype_shape,
            self.result_shape,
        ] {
            m.shape(shape);
        }
        m.values(&[self.array_values, self.array_iterator_next, self.run_executor]);
        m.key(self.fields_key);
    }
}

impl State {
    /// Adds the native functions to the realm.
    pub(crate) fn populate(&mut self) -> Result<(), Exit> {
        let realm = self.realm;
        let global = realm.global;
        self.set_hidden(global, "globalThis", Value::object(global))?;
        self.set_hidden(global, "NaN", Value::NAN)?;
        self.set_hidden(global, "Infinity", Value::number(f64::INFINITY))?;
        self.method(global, "print", Native::Print)?;
        let names = ["Error", "TypeError", "ReferenceError", "RangeError", "SyntaxError"];
        let natives = [
            Native::Error,
            Native::TypeError,
            Native::ReferenceError,
            Native::RangeError,
            Native::SyntaxError,
        ];
        for ((name, native), prototype) in names.into_iter().zip(natives).zip(realm.error_prototypes) {
            let ctor = self.constructor(global, name, native, prototype)?;
            if native != Native::Error
                && let Found::Data(parent) = self.global_value("Error")?
            {
                self.heap.set_prototype(ctor, parent.as_object())?;
            }
            let text = Value::string(self.heap.intern_str(name)?);
            self.set_hidden(prototype, "name", text)?;
            self.set_hidden(prototype, "message", Value::string(atoms::EMPTY))?;
        }
        self.method(realm.error_prototypes[0], "toString", Native::ErrorToString)?;
        let math = self.heap.new_object(realm.object_shape)?;
        self.method(math, "floor", Native::MathFloor)?;
        self.set_hidden(global, "Math", Value::object(math))?;
        let object = self.constructor(global, "Object", Native::ObjectConstructor, realm.object_prototype)?;
        self.method(object, "keys", Native::ObjectKeys)?;
        self.method(object, "defineProperty", Native::ObjectDefineProperty)?;
        self.method(realm.object_prototype, "toString", Native::ObjectToString)?;
        self.method(realm.object_prototype, "valueOf", Native::ObjectValueOf)?;
        self.method(realm.function_prototype, "call", Native::FunctionCall)?;
        self.method(realm.array_prototype, "push", Native::ArrayPush)?;
        let values = self.new_native(Native::ArrayValues, &[])?;
        self.set_hidden(realm.array_prototype, "values", values)?;
        self.heap.add_property(
            realm.array_prototype,
            Key::symbol(symbols::ITERATOR),
            Attrs::HIDDEN,
            values,
        )?;
        let next = self.method(realm.array_iterator_prototype, "next", Native::ArrayIteratorNext)?;
        self.realm.array_values = values;
        self.realm.array_iterator_next = next;
        let itself = self.new_native(Native::IteratorSelf, &[])?;
        for prototype in [realm.array_iterator_prototype, realm.generator_prototype] {
            self.heap.add_property(prototype, Key::symbol(symbols::ITERATOR), Attrs::HIDDEN, itself)?;
        }
        self.method(realm.generator_prototype, "next", Native::GeneratorNext)?;
        self.method(realm.generator_prototype, "return", Native::GeneratorReturn)?;
        self.method(realm.generator_prototype, "throw", Native::GeneratorThrow)?;
        let promise = self.constructor(global, "Promise", Native::Promise, realm.promise_prototype)?;
        self.method(promise, "resolve", Native::PromiseResolve)?;
        self.method(promise, "reject", Native::PromiseReject)?;
        self.method(realm.promise_prototype, "then", Native::PromiseThen)?;
        let symbol = self.constructor(global, "Symbol", Native::SymbolConstructor, realm.symbol_prototype)?;
        for (name, id) in [
            ("iterator", symbols::ITERATOR),
            ("asyncIterator", symbols::ASYNC_ITERATOR),
            ("toPrimitive", symbols::TO_PRIMITIVE),
            ("hasInstance", symbols::HAS_INSTANCE),
        ] {
            self.set_hidden(symbol, name, Value::symbol(id))?;
        }
        Ok(())
    }

    fn global_value(&mut self, name: &str) -> Result<Found, Exit> {
        let atom = self.heap.intern_str(name)?;
        Ok(self.heap.get(self.realm.global, Key::atom(atom)))
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

    fn constructor(
        &mut self,
        object: ObjId,
        name: &str,
        native: Native,
        prototype: ObjId,
    ) -> Result<ObjId, Exit> {
        let function = self.method(object, name, native)?;
        let Some(f) = function.as_object() else { return Ok(object) };
        self.heap.add_flags(f, Flags::CONSTRUCTOR);
        self.heap.add_property(f, Key::atom(atoms::PROTOTYPE), Attrs::NONE, Value::object(prototype))?;
        self.heap.add_property(prototype, Key::atom(atoms::CONSTRUCTOR), Attrs::HIDDEN, function)?;
        Ok(f)
    }

    /// A native function with fields of its own after its number.
    pub(crate) fn new_native(&mut self, native: Native, fields: &[Value]) -> Res {
        let mut slots = [Value::UNDEFINED; 4];
        slots[0] = Value::int(native as i32);
        for (place, &field) in slots[1..].iter_mut().zip(fields) {
            *place = field;
        }
        let shape = self.realm.function_shape;
        let object =
            self.heap.new_object_with_slots(shape, Class::NativeFunction, Flags::CALLABLE, &slots)?;
        self.heap.set_slot(object, 0, Value::ZERO);
        self.heap.set_slot(object, 1, Value::string(atoms::EMPTY));
        Ok(Value::object(object))
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
        let shape = self.heap.root_shape(Some(prototype))?;
        let object =
            self.heap.new_object_with_slots(shape, Class::Error, Flags::NONE, &[Value::UNDEFINED])?;
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
            Found::Data(v) => v.as_string().map(|s| st.string_text(s)).unwrap_or_default(),
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

    /// The text of a primitive, made outside the heap: it must not fail when the heap is full.
    fn primitive_text(&mut self, v: Value) -> String {
        match v.unpack() {
            Unpacked::String(s) => self.string_text(s),
            Unpacked::Int(i) => i.to_string(),
            Unpacked::Double(x) => print::decimal(x, &mut print::Buffer::new()).to_owned(),
            Unpacked::BigInt(id) => self.heap.bigint(id).to_string(),
            Unpacked::Bool(b) => b.to_string(),
            Unpacked::Null => "null".to_owned(),
            Unpacked::Symbol(_) => "Symbol()".to_owned(),
            Unpacked::Undefined | Unpacked::Hole | Unpacked::Internal(_) | Unpacked::Object(_) => {
                "undefined".to_owned()
            }
        }
    }
}
