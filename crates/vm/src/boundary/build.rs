//! Values made in the heap, part by part. If one cannot be made now, everything made so far is garbage and nothing has
//! happened.
//!
//! Most objects of a value look alike, so a key is first compared with the key that followed the same shape last time.

use crate::exec::state::{Exit, State};
use crate::heap::{Attrs, Key, ObjId, ShapeId, Str, StrId, atoms};
use crate::value::Value;

/// A container that is not closed yet. Its values so far are on the builder's stack of values, from `start` on.
#[derive(Clone, Copy)]
struct Open {
    start: usize,
    kind: Kind,
}

#[derive(Clone, Copy)]
enum Kind {
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

pub(super) struct Builder {
    open: Vec<Open>,
    values: Vec<Value>,
    guesses: [Guess; GUESSES],
}

impl Builder {
    pub(super) fn new() -> Builder {
        Builder { open: Vec::new(), values: Vec::new(), guesses: [NO_GUESS; GUESSES] }
    }

    /// The value, once everything that was opened is closed.
    pub(super) fn finish(mut self) -> Value {
        self.values.pop().unwrap_or(Value::UNDEFINED)
    }

    pub(super) fn open_array(&mut self) {
        self.open.push(Open { start: self.values.len(), kind: Kind::Array });
    }

    pub(super) fn open_object(&mut self, st: &State) {
        let kind = Kind::Object { shape: st.realm.object_shape, again: None };
        self.open.push(Open { start: self.values.len(), kind });
    }

    /// Puts a finished value into the container that it belongs to.
    pub(super) fn put(&mut self, st: &mut State, value: Value) -> Result<(), Exit> {
        match self.open.last() {
            Some(&Open { start, kind: Kind::Object { again: Some(slot), .. } }) => {
                if let Some(place) = self.values.get_mut(start + slot as usize) {
                    *place = value;
                }
            }
            Some(&Open { kind: Kind::Large { object, key }, .. }) => {
                st.heap.add_property(object, key, Attrs::ALL, value)?;
            }
            _ => self.values.push(value),
        }
        Ok(())
    }

    /// The next value belongs to this key, by name.
    pub(super) fn name(&mut self, st: &mut State, name: &str) -> Result<(), Exit> {
        if let Some(Open { kind: Kind::Object { shape, again }, .. }) = self.open.last_mut() {
            let guess = self.guesses[shape.raw() as usize % GUESSES];
            // Other text may have the same bytes, but only in another spelling.
            if guess.shape == *shape && name.is_ascii() && st.heap.str(guess.name).is_ascii(name) {
                (*shape, *again) = (guess.next, None);
                return Ok(());
            }
        }
        let key = if name.is_ascii() {
            st.heap.key_of_text(Str::Latin1(name.as_bytes()))?
        } else {
            let id = st.heap.intern_str(name)?;
            st.heap.key_of_string(id)?
        };
        self.key(st, key)
    }

    /// The next value belongs to this key.
    pub(super) fn key(&mut self, st: &mut State, key: Key) -> Result<(), Exit> {
        let Some(&Open { start, kind }) = self.open.last() else { return Ok(()) };
        let kind = match kind {
            Kind::Array => kind,
            Kind::Large { object, .. } => Kind::Large { object, key },
            Kind::Object { shape, .. } => {
                if let Some((slot, _)) = st.heap.lookup(shape, key) {
                    Kind::Object { shape, again: Some(slot) }
                } else if let Some(next) = st.heap.transition(shape, key, Attrs::ALL)? {
                    if let Some(name) = key.as_atom() {
                        self.guesses[shape.raw() as usize % GUESSES] = Guess { shape, name, next };
                    }
                    Kind::Object { shape: next, again: None }
                } else {
                    Kind::Large { object: self.object(st, start, shape)?, key }
                }
            }
        };
        if let Some(top) = self.open.last_mut() {
            top.kind = kind;
        }
        Ok(())
    }

    /// Makes the container that ends here.
    pub(super) fn close(&mut self, st: &mut State) -> Result<(), Exit> {
        let Some(Open { start, kind }) = self.open.pop() else { return Ok(()) };
        let value = match kind {
            Kind::Array => {
                let elements = self.values.get(start..).unwrap_or_default();
                let array = st.heap.new_array(st.realm.array_shape, elements)?;
                self.values.truncate(start);
                Value::array(array)
            }
            Kind::Object { shape, .. } => Value::object(self.object(st, start, shape)?),
            Kind::Large { object, .. } => Value::object(object),
        };
        self.put(st, value)
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
