//! What the guest gives to a call of the host: held to the boundary when the call is made.

use super::build::Builder;
use super::export::{BoundaryError, text_of};
use super::plain::Plain;
use super::purse::Purse;
use super::read::{Container, Sink, Walk};
use crate::exec::state::{Arguments, Exit, State};
use crate::heap::{Heap, Key, StrId};
use crate::value::Value;

impl State {
    /// The arguments of a call that the script waits for: they must be able to cross, and cannot change meanwhile.
    pub(crate) fn check_arguments(&mut self, args: &[Value]) -> Result<(), Exit> {
        if self.arguments == Arguments::Any {
            return Ok(());
        }
        let mut purse = Purse::of(self);
        let checked = args.iter().try_for_each(|&v| Walk::new(self, &mut Look, &mut purse).run(v));
        self.settle_arguments(&purse, checked)
    }

    /// The arguments of a call that the script does not wait for: as they are now, whatever becomes of them. Texts are not
    /// copied: they cannot change. Also answers how large they are outside the heap, where all queued calls share the room
    /// of one value: a host may look at them all at once.
    pub(crate) fn copy_arguments(&mut self, args: Vec<Value>) -> Result<(Vec<Value>, u64), Exit> {
        if self.arguments == Arguments::Any {
            return Ok((args, 0));
        }
        let mut purse = Purse::beside(self, self.queued_weight);
        let mut recipe = Recipe { parts: Vec::new() };
        let checked = args.iter().try_for_each(|&v| Walk::new(self, &mut recipe, &mut purse).run(v));
        self.settle_arguments(&purse, checked)?;
        let mut parts = recipe.parts.into_iter();
        let copies: Result<Vec<Value>, Exit> = args.iter().map(|_| self.follow(&mut parts)).collect();
        Ok((copies?, purse.weight))
    }

    fn settle_arguments(&mut self, purse: &Purse, checked: Result<(), BoundaryError>) -> Result<(), Exit> {
        match self.settle_purse(purse).and(checked) {
            Ok(()) => Ok(()),
            Err(BoundaryError::Limit(limit)) => Err(Exit::Limit(limit)),
            Err(error) => Err(self.type_error(&error.to_string())),
        }
    }

    /// Makes the next value of a recipe.
    fn follow(&mut self, parts: &mut impl Iterator<Item = Part>) -> Result<Value, Exit> {
        let mut builder = Builder::new();
        let mut depth = 0usize;
        for part in parts {
            match part {
                Part::Value(v) => builder.put(self, v)?,
                Part::Key(key) => builder.key(self, key)?,
                Part::Open(container) => {
                    depth += 1;
                    match container {
                        Container::Array => builder.open_array(),
                        Container::Object => builder.open_object(self),
                    }
                }
                Part::Close => {
                    depth -= 1;
                    builder.close(self)?;
                }
            }
            // A key is only ever inside, so this is the end of a value.
            if depth == 0 {
                break;
            }
        }
        Ok(builder.finish())
    }
}

/// Only looks whether a value can cross.
struct Look;

impl Sink for Look {
    fn leaf(&mut self, _: Plain) {}

    fn text(&mut self, heap: &Heap, id: StrId) -> Result<(), BoundaryError> {
        check_text(heap, id)
    }

    fn open(&mut self, _: Container, _: usize) {}

    fn key(&mut self, _: Key, _: &str) {}

    fn close(&mut self) {}
}

/// How to make a copy: the heap cannot grow while it is read.
struct Recipe {
    parts: Vec<Part>,
}

enum Part {
    Value(Value),
    Key(Key),
    Open(Container),
    Close,
}

impl Sink for Recipe {
    fn leaf(&mut self, value: Plain) {
        self.parts.push(Part::Value(match value {
            Plain::Null => Value::NULL,
            Plain::Hole => Value::HOLE,
            Plain::Bool(b) => Value::bool(b),
            Plain::Number(x) => Value::number(x),
            Plain::Undefined | Plain::String(_) | Plain::Array(_) | Plain::Object(_) => Value::UNDEFINED,
        }));
    }

    fn text(&mut self, heap: &Heap, id: StrId) -> Result<(), BoundaryError> {
        check_text(heap, id)?;
        self.parts.push(Part::Value(Value::string(id)));
        Ok(())
    }

    fn open(&mut self, container: Container, _: usize) {
        self.parts.push(Part::Open(container));
    }

    fn key(&mut self, key: Key, _: &str) {
        self.parts.push(Part::Key(key));
    }

    fn close(&mut self) {
        self.parts.push(Part::Close);
    }
}

fn check_text(heap: &Heap, id: StrId) -> Result<(), BoundaryError> {
    // Only wide text can have surrogates.
    if heap.is_wide(id) { text_of(heap, id).map(|_| ()) } else { Ok(()) }
}
