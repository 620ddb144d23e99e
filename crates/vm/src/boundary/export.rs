//! Out of the machine: a guest's value as plain data, and what is said when it is not.

use super::plain::Plain;
use super::purse::Purse;
use super::read::{Container, Sink, Walk};
use crate::exec::Vm;
use crate::exec::state::{Limit, State};
use crate::heap::{Heap, Key, Str, StrId};
use crate::value::Value;

/// Why a value cannot leave the machine.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BoundaryError {
    /// It contains itself.
    #[error("cyclic values cannot cross the structured host boundary")]
    Cyclic,
    /// The same object is in it twice: the other side could not tell.
    #[error("shared references cannot cross the structured host boundary")]
    Shared,
    /// It is deeper than [`super::NESTING`].
    #[error("structured host boundary nesting limit exceeded")]
    Nesting,
    /// Functions, promises, generators and iterators.
    #[error("functions cannot cross the structured host boundary")]
    Function,
    /// A symbol.
    #[error("symbols cannot cross the structured host boundary")]
    Symbol,
    /// A BigInt.
    #[error("BigInt values cannot cross the structured host boundary")]
    BigInt,
    /// A Map or a Set.
    #[error("Map and Set values cannot cross the structured host boundary")]
    Collection,
    /// An object of another built-in class.
    #[error("{0} values cannot cross the structured host boundary; only plain objects and arrays can")]
    Class(&'static str),
    /// An object with a prototype of its own; the name of its constructor, if it has one.
    #[error(
        "{} cannot cross the structured host boundary; only plain objects and arrays can",
        .0.as_ref().map_or("objects with a prototype of their own".to_owned(), |name| format!("instances of {name}"))
    )]
    Instance(Option<String>),
    /// A property with a getter or setter: reading it would run guest code.
    #[error("the property '{0}' has a getter or setter and cannot cross the structured host boundary")]
    Accessor(String),
    /// Text with half of a surrogate pair, which UTF-8 cannot spell.
    #[error("strings with a lone surrogate cannot cross the structured host boundary")]
    Surrogate,
    /// A limit of the run was hit: the run is over.
    #[error(transparent)]
    Limit(Limit),
}

impl Vm {
    /// A value as plain data. Costs an instruction per node and per 256 bytes of text. When a limit is hit, the run is
    /// over.
    pub fn export(&mut self, v: Value) -> Result<Plain, BoundaryError> {
        let mut purse = Purse::of(&self.state);
        let read = self.state.read_plain(v, &mut purse);
        let paid = self.state.settle_purse(&purse);
        let read = read.and_then(|plain| paid.map(|()| plain));
        if let Err(BoundaryError::Limit(limit)) = read {
            self.refused.get_or_insert(limit);
        }
        read
    }
}

impl State {
    /// A value as plain data, paid for out of a purse.
    pub(super) fn read_plain(&self, v: Value, purse: &mut Purse) -> Result<Plain, BoundaryError> {
        let mut build = Build { open: Vec::new(), done: Plain::Undefined };
        Walk::new(self, &mut build, purse).run(v)?;
        Ok(build.done)
    }

    /// A value as plain data, if it is such and the run could have paid for it. For runs that are over.
    pub(crate) fn plain_data(&self, v: Value) -> Option<Plain> {
        self.read_plain(v, &mut Purse::of(self)).ok()
    }

    /// What was spent is gone, also when it was not enough.
    pub(super) fn settle_purse(&mut self, purse: &Purse) -> Result<(), BoundaryError> {
        self.burn(purse.spent).map_err(|_| BoundaryError::Limit(Limit::Instructions))
    }
}

/// Makes plain values.
struct Build {
    open: Vec<Plain>,
    done: Plain,
}

impl Build {
    fn put(&mut self, value: Plain) {
        match self.open.last_mut() {
            Some(Plain::Array(elements)) => elements.push(value),
            Some(Plain::Object(members)) => {
                if let Some((_, place)) = members.last_mut() {
                    *place = value;
                }
            }
            _ => self.done = value,
        }
    }
}

impl Sink for Build {
    fn leaf(&mut self, value: Plain) {
        self.put(value);
    }

    fn text(&mut self, heap: &Heap, id: StrId) -> Result<(), BoundaryError> {
        let text = text_of(heap, id)?;
        self.put(Plain::String(text));
        Ok(())
    }

    fn open(&mut self, container: Container, parts: usize) {
        self.open.push(match container {
            Container::Array => Plain::Array(Vec::with_capacity(parts)),
            Container::Object => Plain::Object(Vec::with_capacity(parts)),
        });
    }

    fn key(&mut self, _: Key, name: &str) {
        if let Some(Plain::Object(members)) = self.open.last_mut() {
            members.push((name.to_owned(), Plain::Undefined));
        }
    }

    fn close(&mut self) {
        if let Some(value) = self.open.pop() {
            self.put(value);
        }
    }
}

/// The text of a string, which may be in parts: a pair of surrogates may be, too.
pub(super) fn text_of(heap: &Heap, id: StrId) -> Result<String, BoundaryError> {
    if heap.is_flat(id) {
        return match heap.str(id) {
            Str::Latin1(bytes) => Ok(latin1(bytes)),
            Str::Wide(units) => String::from_utf16(units).map_err(|_| BoundaryError::Surrogate),
        };
    }
    let length = heap.string_length(id) as usize;
    if heap.is_wide(id) {
        let mut units = Vec::with_capacity(length);
        heap.each_part(id, |part| units.extend(part.units()));
        return String::from_utf16(&units).map_err(|_| BoundaryError::Surrogate);
    }
    let mut text = String::with_capacity(length);
    heap.each_part(id, |part| {
        if let Str::Latin1(bytes) = part {
            push_latin1(&mut text, bytes);
        }
    });
    Ok(text)
}

fn latin1(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    push_latin1(&mut text, bytes);
    text
}

fn push_latin1(text: &mut String, bytes: &[u8]) {
    match std::str::from_utf8(bytes) {
        Ok(ascii) if bytes.is_ascii() => text.push_str(ascii),
        _ => text.extend(bytes.iter().map(|&b| char::from(b))),
    }
}
