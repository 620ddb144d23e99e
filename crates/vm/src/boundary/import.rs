//! Into the machine: plain data as a guest's value, inputs, and errors of the host.

use super::NESTING;
use super::build::Builder;
use super::plain::Plain;
use super::purse::pieces;
use crate::code::ErrorKind;
use crate::exec::Vm;
use crate::exec::state::{Exit, Limit, Res, State};
use crate::heap::{AllocError, Attrs, Class, Flags, Key, Point, atoms};
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
    /// runs or is written to a snapshot: give it to [`Vm::answer`] or [`Vm::set_global`] before. When a limit is hit, the run is over.
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
        let mut builder = Builder::new();
        let mut open: Vec<Parts<'_>> = Vec::new();
        let mut next = Some(plain);
        loop {
            match next {
                None => {}
                Some(Plain::Undefined) => builder.put(self, Value::UNDEFINED)?,
                Some(Plain::Null) => builder.put(self, Value::NULL)?,
                Some(Plain::Hole) => builder.put(self, Value::HOLE)?,
                Some(Plain::Bool(b)) => builder.put(self, Value::bool(*b))?,
                Some(Plain::Number(x)) => builder.put(self, Value::number(*x))?,
                Some(Plain::String(text)) => {
                    let text = self.write_text(text)?;
                    builder.put(self, text)?;
                }
                Some(Plain::Array(elements)) => {
                    builder.open_array();
                    open.push(Parts::Elements(elements.iter()));
                }
                Some(Plain::Object(members)) => {
                    builder.open_object(self);
                    open.push(Parts::Members(members.iter()));
                }
            }
            let Some(top) = open.last_mut() else { return Ok(builder.finish()) };
            next = match top {
                Parts::Elements(elements) => elements.next(),
                Parts::Members(members) => match members.next() {
                    Some((name, value)) => {
                        builder.name(self, name)?;
                        Some(value)
                    }
                    None => None,
                },
            };
            if next.is_none() {
                open.pop();
                builder.close(self)?;
            }
        }
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
