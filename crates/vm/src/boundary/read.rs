//! The walk through a guest's value: what may cross is told to a sink, everything else ends it. No guest code runs and
//! nothing is allocated in the heap.
//!
//! What an object of some shape looks like is worked out once per walk: its keys, and where their values are.

use super::NESTING;
use super::export::{BoundaryError, text_of};
use super::plain::Plain;
use super::purse::Purse;
use crate::exec::state::{Limit, State};
use crate::heap::{Attrs, Class, Found, Heap, Key, ObjId, OverLimit, Own, ShapeId, StrId, atoms};
use crate::value::{Unpacked, Value};
use rustc_hash::{FxHashMap, FxHashSet};
use std::rc::Rc;

/// Names of constructors longer than this are not quoted.
const LONGEST_NAME: u32 = 100;

/// What the parts of a value are told to, in order.
pub(super) trait Sink {
    /// Anything but text and containers.
    fn leaf(&mut self, value: Plain);
    fn text(&mut self, heap: &Heap, id: StrId) -> Result<(), BoundaryError>;
    /// What follows, up to the matching `close`, is inside.
    fn open(&mut self, container: Container, parts: usize);
    /// The next value belongs to this key, which is spelled so.
    fn key(&mut self, key: Key, name: &str);
    fn close(&mut self);
}

#[derive(Clone, Copy)]
pub(super) enum Container {
    Array,
    Object,
}

/// A property that crosses: its key, and where its value is.
struct Member {
    key: Key,
    name: Box<str>,
    place: Place,
}

enum Place {
    Slot(u32),
    /// For objects whose shape is their own.
    Value(Value),
}

type Plan = Rc<[Member]>;

/// A container that is being walked through.
struct Open {
    object: ObjId,
    /// `None` for an array.
    plan: Option<Plan>,
    next: u32,
    length: u32,
}

pub(super) struct Walk<'a, S> {
    st: &'a State,
    sink: &'a mut S,
    purse: &'a mut Purse,
    open: Vec<Open>,
    seen: FxHashSet<ObjId>,
    plans: FxHashMap<ShapeId, Plan>,
    last: Option<(ShapeId, Plan)>,
}

impl<'a, S: Sink> Walk<'a, S> {
    pub(super) fn new(st: &'a State, sink: &'a mut S, purse: &'a mut Purse) -> Walk<'a, S> {
        Walk {
            st,
            sink,
            purse,
            open: Vec::new(),
            seen: FxHashSet::default(),
            plans: FxHashMap::default(),
            last: None,
        }
    }

    pub(super) fn run(mut self, value: Value) -> Result<(), BoundaryError> {
        self.purse.nodes(1)?;
        self.value(value)?;
        while let Some(top) = self.open.last_mut() {
            let (object, next) = (top.object, top.next);
            if next == top.length {
                self.open.pop();
                self.sink.close();
                continue;
            }
            top.next += 1;
            let value = match &top.plan {
                None => self.element(object, next)?,
                Some(plan) => {
                    let Some(member) = plan.get(next as usize) else { continue };
                    self.purse.text(member.name.len())?;
                    self.sink.key(member.key, &member.name);
                    match member.place {
                        Place::Slot(slot) => self.st.heap.slot(object, slot),
                        Place::Value(value) => value,
                    }
                }
            };
            self.value(value)?;
        }
        Ok(())
    }

    /// Tells the sink a primitive, or opens a container. It is paid for.
    fn value(&mut self, value: Value) -> Result<(), BoundaryError> {
        match value.unpack() {
            Unpacked::Undefined | Unpacked::Internal(_) => self.sink.leaf(Plain::Undefined),
            Unpacked::Null => self.sink.leaf(Plain::Null),
            Unpacked::Hole => self.sink.leaf(Plain::Hole),
            Unpacked::Bool(b) => self.sink.leaf(Plain::Bool(b)),
            Unpacked::Int(i) => self.sink.leaf(Plain::Number(f64::from(i))),
            Unpacked::Double(x) => self.sink.leaf(Plain::Number(x)),
            Unpacked::String(id) => {
                self.purse.text(self.st.heap.string_length(id) as usize)?;
                self.sink.text(&self.st.heap, id)?;
            }
            Unpacked::Symbol(_) => return Err(BoundaryError::Symbol),
            Unpacked::BigInt(_) => return Err(BoundaryError::BigInt),
            Unpacked::Object(object) => self.enter(object)?,
        }
        Ok(())
    }

    /// An element of an array, which may be kept like a property.
    fn element(&self, array: ObjId, index: u32) -> Result<Value, BoundaryError> {
        let heap = &self.st.heap;
        if let Some(value) = heap.array_get(array, index) {
            return Ok(value);
        }
        if heap.has_dense_elements(array) {
            return Ok(Value::HOLE);
        }
        match Key::index(index).map_or(Own::Absent, |key| heap.get_own(array, key)) {
            Own::Data { value, .. } => Ok(value),
            Own::Absent | Own::Exotic => Ok(Value::HOLE),
            Own::Accessor { .. } => Err(BoundaryError::Accessor(index.to_string())),
        }
    }

    fn enter(&mut self, object: ObjId) -> Result<(), BoundaryError> {
        let heap = &self.st.heap;
        let (container, plan, length) = match heap.class(object) {
            Class::Array => {
                self.plain_prototype(object, self.st.realm.array_prototype)?;
                let length = heap.array_length(object);
                if length > Key::MAX_INDEX {
                    let limit = heap.limits().bytes;
                    return Err(BoundaryError::Limit(Limit::Heap(OverLimit::Bytes { limit })));
                }
                (Container::Array, None, length)
            }
            Class::Object if object != self.st.realm.global => {
                let plan = self.plan(object)?;
                let length = plan.len() as u32;
                (Container::Object, Some(plan), length)
            }
            _ => return Err(self.refusal(object)),
        };
        if !self.seen.insert(object) {
            let inside = self.open.iter().any(|open| open.object == object);
            return Err(if inside { BoundaryError::Cyclic } else { BoundaryError::Shared });
        }
        if self.open.len() == NESTING {
            return Err(BoundaryError::Nesting);
        }
        // Holes are nodes, too: a length of billions is paid for before anything is made of it.
        self.purse.nodes(length as usize)?;
        self.sink.open(container, length as usize);
        self.open.push(Open { object, plan, next: 0, length });
        Ok(())
    }

    /// The members of an object of this shape.
    fn plan(&mut self, object: ObjId) -> Result<Plan, BoundaryError> {
        let heap = &self.st.heap;
        let shape = heap.shape(object);
        if let Some((last, plan)) = &self.last
            && *last == shape
        {
            return Ok(Rc::clone(plan));
        }
        if let Some(plan) = self.plans.get(&shape) {
            self.last = Some((shape, Rc::clone(plan)));
            return Ok(Rc::clone(plan));
        }
        self.plain_prototype(object, self.st.realm.object_prototype)?;
        // Also what does not cross is looked at.
        self.purse.nodes(heap.slot_count(shape) as usize)?;
        let mut keys = Vec::new();
        let listed = heap.own_keys(object, &mut keys);
        debug_assert!(listed, "a plain object lists its keys");
        let shared = !heap.is_dictionary(shape);
        let mut members = Vec::with_capacity(keys.len());
        for key in keys.into_iter().filter(|key| key.as_symbol().is_none()) {
            let (value, slot) = match heap.get_own(object, key) {
                Own::Data { attrs, .. } | Own::Accessor { attrs, .. } if !attrs.has(Attrs::ENUMERABLE) => {
                    continue;
                }
                Own::Data { value, slot, .. } => (value, slot),
                Own::Accessor { .. } => return Err(BoundaryError::Accessor(self.name(key)?.into())),
                Own::Absent | Own::Exotic => continue,
            };
            let place = if shared { Place::Slot(slot) } else { Place::Value(value) };
            members.push(Member { key, name: self.name(key)?, place });
        }
        let plan: Plan = members.into();
        if shared {
            self.plans.insert(shape, Rc::clone(&plan));
            self.last = Some((shape, Rc::clone(&plan)));
        }
        Ok(plan)
    }

    fn name(&mut self, key: Key) -> Result<Box<str>, BoundaryError> {
        if let Some(index) = key.as_index() {
            return Ok(index.to_string().into());
        }
        let Some(name) = key.as_atom() else { return Ok("".into()) };
        self.purse.text(self.st.heap.string_length(name) as usize)?;
        text_of(&self.st.heap, name).map(String::into_boxed_str)
    }

    /// An object's prototype must be this one, or none.
    fn plain_prototype(&self, object: ObjId, wanted: ObjId) -> Result<(), BoundaryError> {
        match self.st.heap.prototype(object) {
            None => Ok(()),
            Some(prototype) if prototype == wanted => Ok(()),
            Some(prototype) => Err(BoundaryError::Instance(self.constructor_name(prototype))),
        }
    }

    /// The name of the class whose prototype this is, as far as it can be had without running guest code.
    fn constructor_name(&self, prototype: ObjId) -> Option<String> {
        let heap = &self.st.heap;
        let Own::Data { value, .. } = heap.get_own(prototype, Key::atom(atoms::CONSTRUCTOR)) else {
            return None;
        };
        let constructor = value.as_object().filter(|_| heap.is_callable(value))?;
        let Found::Data(name) = heap.get(constructor, Key::atom(atoms::NAME)) else { return None };
        let name = name.as_string().filter(|&s| (1..=LONGEST_NAME).contains(&heap.string_length(s)))?;
        text_of(heap, name).ok()
    }

    fn refusal(&self, object: ObjId) -> BoundaryError {
        if self.st.heap.is_callable(Value::object(object)) {
            return BoundaryError::Function;
        }
        let name = match self.st.heap.class(object) {
            Class::Function
            | Class::NativeFunction
            | Class::BoundFunction
            | Class::HostFunction
            | Class::Promise
            | Class::Generator
            | Class::AsyncGenerator
            | Class::ArrayIterator
            | Class::MapIterator
            | Class::SetIterator
            | Class::StringIterator
            | Class::RegExpStringIterator
            | Class::ForInIterator
            | Class::AsyncFromSyncIterator
            | Class::IteratorHelper
            | Class::WrapForValidIterator => return BoundaryError::Function,
            Class::Map | Class::Set | Class::WeakMap | Class::WeakSet => return BoundaryError::Collection,
            Class::Array | Class::Arguments => "arguments",
            Class::Object => "globalThis",
            Class::Error => "Error",
            Class::Boolean => "Boolean object",
            Class::Number => "Number object",
            Class::String => "String object",
            Class::Symbol => "Symbol object",
            Class::BigInt => "BigInt object",
            Class::Date => "Date",
            Class::RegExp => "RegExp",
            Class::WeakRef => "WeakRef",
            Class::FinalizationRegistry => "FinalizationRegistry",
            Class::ArrayBuffer | Class::SharedArrayBuffer => "ArrayBuffer",
            Class::TypedArray => "typed array",
            Class::DataView => "DataView",
            Class::Proxy => "Proxy",
            Class::Branded | Class::ModuleNamespace | Class::Vacant => "internal",
        };
        BoundaryError::Class(name)
    }
}
