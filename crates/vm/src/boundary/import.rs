//! Into the machine: plain data as a guest's value, inputs, and errors of the host.
//!
//! Most objects of a value look alike, so a key is first compared with the key that followed the same shape last time.

use super::NESTING;
use super::plain::Plain;
use super::purse::pieces;
use crate::code::ErrorKind;
use crate::exec::Vm;
use crate::exec::state::{Exit, Limit, Res, State};
use crate::heap::{AllocError, Attrs, Class, Flags, Key, ObjId, Point, ShapeId, Str, StrId, atoms};
use crate::value::Value;

/// Why a value cannot enter the machine.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ImportError {
    /// It is deeper than [`super::NESTING`].
    #[error("structured host boundary nesting limit exceeded")]
    Nesting,
    /// A hole is only in arrays.
    #[error("a hole can only be an element of an array")]
    Hole,
    /// Text is longer than any string may be.
    #[error("a string is too long")]
    TooLong,
    /// A limit of the run was hit: the run is over.
    #[error(transparent)]
    Limit(Limit),
}

/// Where execution stands while the embedder makes something; together with the fuel, which every making uses.
const MAKING: u64 = 0xB0 << 56;

impl Vm {
    /// Plain data as a guest's value, paid for like an export and with its memory. The machine keeps the value until it
    /// runs: give it to [`Vm::answer`] or [`Vm::set_global`] before. When a limit is hit, the run is over.
    pub fn import(&mut self, plain: &Plain) -> Result<Value, ImportError> {
        let cost = cost(plain)?;
        self.make(|st| {
            st.burn(cost)?;
            st.write_plain(plain)
        })
    }

    /// Gives the guest a global variable, which shadows a capability or built-in of the same name.
    pub fn set_global(&mut self, name: &str, v: Value) -> Result<(), ImportError> {
        // What was there may have been the last reference to a capability.
        self.state.stale = true;
        let set = self.make(|st| {
            st.burn(1 + pieces(name.len()))?;
            st.set_hidden(st.realm.global, name, v)?;
            Ok(Value::UNDEFINED)
        });
        set.map(|_| ())
    }

    /// An error to answer a call with: an `Error` whose `name`, `message`, and `code` and `details` if there are any, are its
    /// own and enumerable.
    pub fn host_error(
        &mut self,
        name: &str,
        message: &str,
        code: Option<&str>,
        details: Option<&Plain>,
    ) -> Result<Value, ImportError> {
        let texts = [Some(name), Some(message), code];
        let cost = texts.iter().flatten().map(|text| 1 + pieces(text.len())).sum::<u64>()
            + details.map_or(Ok(0), cost)?;
        self.make(|st| {
            st.burn(cost)?;
            let mut members = vec![(Key::atom(atoms::NAME), st.write_text(name)?)];
            members.push((Key::atom(atoms::MESSAGE), st.write_text(message)?));
            if let Some(code) = code {
                members.push((Key::atom(st.heap.intern_str("code")?), st.write_text(code)?));
            }
            if let Some(details) = details {
                members.push((Key::atom(st.heap.intern_str("details")?), st.write_plain(details)?));
            }
            st.new_host_error(&members)
        })
    }

    /// A new guest error, to answer a host call with.
    pub fn error(&mut self, message: &str) -> Value {
        self.make(|st| st.new_error(ErrorKind::Error, message)).unwrap_or(Value::UNDEFINED)
    }

    /// Makes a value between runs, again after a collection if need be, and keeps it alive until the next run.
    fn make(&mut self, mut work: impl FnMut(&mut State) -> Res) -> Result<Value, ImportError> {
        let (fuel, reserve) = (self.state.fuel, self.state.reserve);
        loop {
            let limit = match work(&mut self.state) {
                Ok(value) => {
                    if value.is_reference() {
                        self.state.held.push(value);
                    }
                    return Ok(value);
                }
                Err(Exit::Alloc(AllocError::Collect)) => {
                    // What is done again is paid for once.
                    (self.state.fuel, self.state.reserve) = (fuel, reserve);
                    match self.collect_between_runs(Point(fuel ^ MAKING)) {
                        Ok(()) => continue,
                        Err(over) => Limit::Heap(over),
                    }
                }
                Err(Exit::Limit(limit)) => limit,
                Err(_) => return Err(ImportError::TooLong),
            };
            self.refused.get_or_insert(limit);
            return Err(ImportError::Limit(limit));
        }
    }
}

/// What making a value costs. Refuses what no machine takes, before anything is made of it.
fn cost(plain: &Plain) -> Result<u64, ImportError> {
    let mut open: Vec<Parts<'_>> = Vec::new();
    let mut next = Some(plain);
    let mut cost = 0u64;
    let mut place = Place::Root;
    loop {
        if let Some(plain) = next {
            cost += 1;
            match plain {
                Plain::Hole if place != Place::Array => return Err(ImportError::Hole),
                Plain::String(text) => cost += pieces(text.len()),
                Plain::Array(_) | Plain::Object(_) if open.len() == NESTING => {
                    return Err(ImportError::Nesting);
                }
                Plain::Array(elements) => open.push(Parts::Elements(elements.iter())),
                Plain::Object(members) => open.push(Parts::Members(members.iter())),
                Plain::Undefined | Plain::Null | Plain::Hole | Plain::Bool(_) | Plain::Number(_) => {}
            }
        }
        let Some(top) = open.last_mut() else { return Ok(cost) };
        (next, place) = match top {
            Parts::Elements(elements) => (elements.next(), Place::Array),
            Parts::Members(members) => {
                let member = members.next();
                cost += member.map_or(0, |(key, _)| pieces(key.len()));
                (member.map(|(_, value)| value), Place::Object)
            }
        };
        if next.is_none() {
            open.pop();
        }
    }
}

/// Where a value stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Root,
    Array,
    Object,
}

/// What is left of a container.
enum Parts<'a> {
    Elements(std::slice::Iter<'a, Plain>),
    Members(std::slice::Iter<'a, (String, Plain)>),
}

impl State {
    /// Plain data as a guest's value; the caller has paid for the work. Nothing visible has happened if it fails.
    pub(super) fn write_plain(&mut self, plain: &Plain) -> Res {
        Builder { open: Vec::new(), values: Vec::new(), guesses: [NO_GUESS; GUESSES] }.run(self, plain)
    }

    fn write_text(&mut self, text: &str) -> Res {
        Ok(Value::string(self.heap.new_string(text)?))
    }

    fn new_host_error(&mut self, members: &[(Key, Value)]) -> Res {
        let shape = self.heap.root_shape(Some(self.realm.error_prototypes[ErrorKind::Error as usize]))?;
        let places = self.active_places();
        let object = self.heap.new_object_with_slots(shape, Class::Error, Flags::NONE, &places)?;
        self.heap.add_property(object, Key::atom(atoms::STACK), Attrs::HIDDEN, Value::UNDEFINED)?;
        for &(key, value) in members {
            self.heap.add_property(object, key, Attrs::ALL, value)?;
        }
        let text = self.traceback(Value::object(object));
        let stack = self.heap.new_string(&text)?;
        self.heap.add_property(object, Key::atom(atoms::STACK), Attrs::HIDDEN, Value::string(stack))?;
        Ok(Value::object(object))
    }
}

/// A container that is not closed yet. Its values so far are on the builder's stack of values, from `start` on.
struct Open<'a> {
    parts: Parts<'a>,
    start: usize,
    kind: Making,
}

#[derive(Clone, Copy)]
enum Making {
    Array,
    /// The shape covers the keys so far; `again` is the slot of a key that came before.
    Object {
        shape: ShapeId,
        again: Option<u32>,
    },
    /// An object with too many keys for shapes: made already, waiting for the value of `key`.
    Large {
        object: ObjId,
        key: Key,
    },
}

/// After this shape came this key last time.
#[derive(Clone, Copy)]
struct Guess {
    shape: ShapeId,
    name: StrId,
    next: ShapeId,
}

const GUESSES: usize = 32;
const NO_GUESS: Guess =
    Guess { shape: ShapeId::from_raw(u32::MAX), name: atoms::EMPTY, next: ShapeId::from_raw(u32::MAX) };

struct Builder<'a> {
    open: Vec<Open<'a>>,
    values: Vec<Value>,
    guesses: [Guess; GUESSES],
}

impl<'a> Builder<'a> {
    fn run(mut self, st: &mut State, plain: &'a Plain) -> Res {
        let mut next = Some(plain);
        loop {
            if let Some(plain) = next {
                self.value(st, plain)?;
            }
            let Some(top) = self.open.last_mut() else { break };
            next = match &mut top.parts {
                Parts::Elements(elements) => elements.next(),
                Parts::Members(members) => match members.next() {
                    Some((key, value)) => {
                        self.key(st, key)?;
                        Some(value)
                    }
                    None => None,
                },
            };
            if next.is_none() {
                self.close(st)?;
            }
        }
        Ok(self.values.pop().unwrap_or(Value::UNDEFINED))
    }

    fn value(&mut self, st: &mut State, plain: &'a Plain) -> Result<(), Exit> {
        let start = self.values.len();
        let value = match plain {
            Plain::Undefined => Value::UNDEFINED,
            Plain::Null => Value::NULL,
            Plain::Hole => Value::HOLE,
            Plain::Bool(b) => Value::bool(*b),
            Plain::Number(x) => Value::number(*x),
            Plain::String(text) => Value::string(st.heap.new_string(text)?),
            Plain::Array(elements) => {
                self.open.push(Open { parts: Parts::Elements(elements.iter()), start, kind: Making::Array });
                return Ok(());
            }
            Plain::Object(members) => {
                let kind = Making::Object { shape: st.realm.object_shape, again: None };
                self.open.push(Open { parts: Parts::Members(members.iter()), start, kind });
                return Ok(());
            }
        };
        self.place(st, value)
    }

    /// Puts a finished value into the container that it belongs to.
    fn place(&mut self, st: &mut State, value: Value) -> Result<(), Exit> {
        match self.open.last_mut() {
            Some(Open { start, kind: Making::Object { again: Some(slot), .. }, .. }) => {
                if let Some(place) = self.values.get_mut(*start + *slot as usize) {
                    *place = value;
                }
            }
            Some(Open { kind: Making::Large { object, key }, .. }) => {
                st.heap.add_property(*object, *key, Attrs::ALL, value)?;
            }
            _ => self.values.push(value),
        }
        Ok(())
    }

    fn key(&mut self, st: &mut State, name: &str) -> Result<(), Exit> {
        let Some(&Open { start, kind, .. }) = self.open.last() else { return Ok(()) };
        let kind = match kind {
            Making::Array => kind,
            Making::Large { object, .. } => Making::Large { object, key: key_of(st, name)? },
            Making::Object { shape, .. } => {
                let place = shape.raw() as usize % GUESSES;
                let guess = self.guesses[place];
                if guess.shape == shape && name.is_ascii() && st.heap.str(guess.name).is_ascii(name) {
                    Making::Object { shape: guess.next, again: None }
                } else {
                    let key = key_of(st, name)?;
                    if let Some((slot, _)) = st.heap.lookup(shape, key) {
                        Making::Object { shape, again: Some(slot) }
                    } else if let Some(next) = st.heap.transition(shape, key, Attrs::ALL)? {
                        if let Some(name) = key.as_atom() {
                            self.guesses[place] = Guess { shape, name, next };
                        }
                        Making::Object { shape: next, again: None }
                    } else {
                        Making::Large { object: self.object(st, start, shape)?, key }
                    }
                }
            }
        };
        if let Some(top) = self.open.last_mut() {
            top.kind = kind;
        }
        Ok(())
    }

    /// Makes the container that ends here.
    fn close(&mut self, st: &mut State) -> Result<(), Exit> {
        let Some(Open { start, kind, .. }) = self.open.pop() else { return Ok(()) };
        let value = match kind {
            Making::Array => {
                let elements = self.values.get(start..).unwrap_or_default();
                let array = st.heap.new_array(st.realm.array_shape, elements)?;
                self.values.truncate(start);
                Value::array(array)
            }
            Making::Object { shape, .. } => Value::object(self.object(st, start, shape)?),
            Making::Large { object, .. } => Value::object(object),
        };
        self.place(st, value)
    }

    fn object(&mut self, st: &mut State, start: usize, shape: ShapeId) -> Result<ObjId, Exit> {
        let object = st.heap.new_object(shape)?;
        for (slot, &value) in self.values.get(start..).unwrap_or_default().iter().enumerate() {
            st.heap.set_slot(object, slot as u32, value);
        }
        self.values.truncate(start);
        Ok(object)
    }
}

fn key_of(st: &mut State, name: &str) -> Result<Key, Exit> {
    if name.is_ascii() {
        return Ok(st.heap.key_of_text(Str::Latin1(name.as_bytes()))?);
    }
    let id = st.heap.intern_str(name)?;
    Ok(st.heap.key_of_string(id)?)
}
