//! `JSON.parse` without a reviver: the reader's events become heap values, with a stack of our own instead of recursion.
//!
//! Most objects of a text look alike, so a key is first compared with the key that followed the same shape last time:
//! then it needs neither hashing nor a look at the shape's table.

use crate::code::ErrorKind;
use crate::exec::state::{Exit, Res, State};
use crate::heap::{Attrs, Key, ObjId, ShapeId, Str, StrId, atoms};
use crate::text::json::{Event, Reader, Spelling, StringToken, Unit};
use crate::value::Value;

/// Reads a text into heap values.
pub(super) fn parse(st: &mut State, text: StrId) -> Res {
    let length = st.heap.string_length(text);
    st.burn(1 + u64::from(length) / 16)?;
    make_room(st, length as usize)?;
    // The heap grows while the reader reads, so the reader gets a copy.
    match st.heap.text(text)? {
        Str::Latin1(bytes) => {
            let bytes = bytes.to_vec();
            build(st, &bytes)
        }
        Str::Wide(units) => {
            let units = units.to_vec();
            build(st, &units)
        }
    }
}

/// Lets the heap collect now if what a text of this length becomes would make it collect in the middle: then everything
/// made so far would be in vain. The estimate only decides when to collect.
fn make_room(st: &mut State, length: usize) -> Result<(), Exit> {
    /// What a unit of text becomes, roughly.
    const EXPANSION: usize = 4;
    let free = st.heap.limits().bytes.saturating_sub(st.heap.bytes());
    let wanted = length.saturating_mul(EXPANSION).min(free / 2);
    st.heap.charge_outside(wanted)?;
    st.heap.release_outside(wanted);
    Ok(())
}

fn build<U: Unit>(st: &mut State, source: &[U]) -> Res {
    let mut builder = Builder {
        source,
        open: Vec::new(),
        values: Vec::new(),
        guesses: [NO_GUESS; GUESSES],
        charged: 0,
        work: 0,
    };
    let result = builder.run(st);
    st.heap.release_outside(builder.charged);
    result
}

/// A container that is not closed yet. Its values so far are on the builder's stack of values, from `start` on.
#[derive(Clone, Copy)]
enum Open {
    Array {
        start: u32,
    },
    /// The shape covers the keys so far; `again` is the slot of a key that came before, or [`NEW`].
    Object {
        start: u32,
        shape: ShapeId,
        again: u32,
    },
    /// An object with too many keys for shapes: made already, waiting for the value of `key`.
    Large {
        object: ObjId,
        key: Key,
    },
}

const NEW: u32 = u32::MAX;

/// After this shape came this key last time.
#[derive(Clone, Copy)]
struct Guess {
    shape: ShapeId,
    name: StrId,
    next: ShapeId,
}

const GUESSES: usize = 64;
const NO_GUESS: Guess =
    Guess { shape: ShapeId::from_raw(u32::MAX), name: atoms::EMPTY, next: ShapeId::from_raw(u32::MAX) };

struct Builder<'a, U> {
    source: &'a [U],
    open: Vec<Open>,
    values: Vec<Value>,
    guesses: [Guess; GUESSES],
    /// What the stacks have been charged.
    charged: usize,
    /// Events that have not been charged.
    work: u64,
}

impl<U: Unit> Builder<'_, U> {
    fn run(&mut self, st: &mut State) -> Res {
        let mut reader = Reader::new(self.source, usize::MAX);
        let root = st.heap.root_shape(Some(st.realm.object_prototype))?;
        loop {
            let event = match reader.next_event() {
                Ok(event) => event,
                Err(error) => {
                    let message = error.message(U::text(self.source));
                    let message = message.as_str().to_string_lossy();
                    return Err(st.throw(ErrorKind::Syntax, &message));
                }
            };
            self.work += 1;
            if self.work == 1024 {
                self.work = 0;
                st.burn(1024)?;
                self.charge(st)?;
            }
            let value = match event {
                Event::Integer(i) => Value::int(i),
                Event::Number(x) => Value::number(x),
                Event::String(token) => Value::string(self.string(st, &reader, token)?),
                Event::True => Value::TRUE,
                Event::False => Value::FALSE,
                Event::Null => Value::NULL,
                Event::Key(token) => {
                    self.key(st, &reader, token)?;
                    continue;
                }
                Event::ArrayStart => {
                    self.open.push(Open::Array { start: self.values.len() as u32 });
                    continue;
                }
                Event::ObjectStart => {
                    let start = self.values.len() as u32;
                    self.open.push(Open::Object { start, shape: root, again: NEW });
                    continue;
                }
                Event::ArrayEnd | Event::ObjectEnd => self.close(st)?,
                Event::End => {
                    st.burn(self.work)?;
                    return Ok(self.values.pop().unwrap_or(Value::UNDEFINED));
                }
            };
            self.place(st, value)?;
        }
    }

    /// Puts a finished value into the container that it belongs to.
    #[inline]
    fn place(&mut self, st: &mut State, value: Value) -> Result<(), Exit> {
        match self.open.last_mut() {
            Some(Open::Object { start, again, .. }) if *again != NEW => {
                if let Some(place) = self.values.get_mut((*start + *again) as usize) {
                    *place = value;
                }
                *again = NEW;
            }
            Some(&mut Open::Large { object, key }) => {
                st.heap.add_property(object, key, Attrs::ALL, value)?;
            }
            _ => self.values.push(value),
        }
        Ok(())
    }

    fn key(&mut self, st: &mut State, reader: &Reader<'_, U>, token: StringToken) -> Result<(), Exit> {
        let Some(&top) = self.open.last() else { return Ok(()) };
        let (start, shape) = match top {
            Open::Object { start, shape, .. } => (start, shape),
            Open::Large { object, .. } => {
                let key = self.key_of(st, reader, token)?;
                self.replace_top(Open::Large { object, key });
                return Ok(());
            }
            Open::Array { .. } => return Ok(()),
        };
        let guess = self.guesses[shape.raw() as usize % GUESSES];
        if guess.shape == shape
            && token.spelling == Spelling::Plain
            && let Some(units) = self.source.get(token.start..token.end)
            && st.heap.str(guess.name) == U::text(units)
        {
            self.replace_top(Open::Object { start, shape: guess.next, again: NEW });
            return Ok(());
        }
        let key = self.key_of(st, reader, token)?;
        if let Some((slot, _)) = st.heap.lookup(shape, key) {
            self.replace_top(Open::Object { start, shape, again: slot });
            return Ok(());
        }
        match st.heap.transition(shape, key, Attrs::ALL)? {
            Some(next) => {
                if let Some(name) = key.as_atom() {
                    self.guesses[shape.raw() as usize % GUESSES] = Guess { shape, name, next };
                }
                self.replace_top(Open::Object { start, shape: next, again: NEW });
            }
            None => {
                let object = self.object(st, start, shape)?;
                self.replace_top(Open::Large { object, key });
            }
        }
        Ok(())
    }

    fn replace_top(&mut self, with: Open) {
        if let Some(top) = self.open.last_mut() {
            *top = with;
        }
    }

    fn key_of(&self, st: &mut State, reader: &Reader<'_, U>, token: StringToken) -> Result<Key, Exit> {
        if let (Spelling::Plain, Some(Str::Latin1(bytes))) =
            (token.spelling, self.source.get(token.start..token.end).map(U::text))
        {
            return Ok(st.heap.key_of_text(Str::Latin1(bytes))?);
        }
        let text = reader.decode(token);
        Ok(st.heap.key_of_text(text.as_str())?)
    }

    fn string(&self, st: &mut State, reader: &Reader<'_, U>, token: StringToken) -> Result<StrId, Exit> {
        match self.source.get(token.start..token.end) {
            Some(units) if token.spelling == Spelling::Plain => Ok(st.heap.new_str(U::text(units))?),
            _ => {
                let text = reader.decode(token);
                Ok(st.heap.new_str(text.as_str())?)
            }
        }
    }

    /// Makes the container that ends here.
    fn close(&mut self, st: &mut State) -> Res {
        match self.open.pop() {
            Some(Open::Array { start }) => {
                let elements = self.values.get(start as usize..).unwrap_or_default();
                let array = st.heap.new_array(st.realm.array_shape, elements)?;
                self.values.truncate(start as usize);
                Ok(Value::array(array))
            }
            Some(Open::Object { start, shape, .. }) => self.object(st, start, shape).map(Value::object),
            Some(Open::Large { object, .. }) => Ok(Value::object(object)),
            None => Ok(Value::UNDEFINED),
        }
    }

    fn object(&mut self, st: &mut State, start: u32, shape: ShapeId) -> Result<ObjId, Exit> {
        let object = st.heap.new_object(shape)?;
        for (slot, &value) in self.values.get(start as usize..).unwrap_or_default().iter().enumerate() {
            st.heap.set_slot(object, slot as u32, value);
        }
        self.values.truncate(start as usize);
        Ok(object)
    }

    /// The stacks are the guest's memory too.
    fn charge(&mut self, st: &mut State) -> Result<(), Exit> {
        let used = self.open.capacity() * size_of::<Open>() + self.values.capacity() * size_of::<Value>();
        let more = used.saturating_sub(self.charged);
        st.heap.charge_outside(more)?;
        self.charged += more;
        Ok(())
    }
}
