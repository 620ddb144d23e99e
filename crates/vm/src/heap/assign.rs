//! Assignment without guest code: OrdinarySet where the receiver is the object itself.

use super::property::{NO_SLOT, Own};
use super::table::Attrs;
use super::{AllocError, Class, Defined, Heap, Key, ObjId, atoms};
use crate::value::Value;

/// What became of an assignment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Assigned {
    /// The value is stored.
    Yes,
    /// A setter must be called with the original receiver.
    Setter(Value),
    /// A read-only property, an accessor without setter, or an object that takes no more properties: a TypeError.
    Refused,
    /// An array length that is not a length: a RangeError.
    InvalidLength,
    /// This object of the chain decides for itself (or a length must be converted to a number first).
    Exotic(ObjId),
}

impl Heap {
    /// `obj[key] = value`.
    pub fn assign(&mut self, obj: ObjId, key: Key, value: Value) -> Result<Assigned, AllocError> {
        match self.get_own(obj, key) {
            Own::Data { attrs, .. } if !attrs.has(Attrs::WRITABLE) => return Ok(Assigned::Refused),
            Own::Data { slot: NO_SLOT, .. } => return self.overwrite(obj, key, value),
            Own::Data { slot, .. } => {
                self.set_slot(obj, slot, value);
                return Ok(Assigned::Yes);
            }
            Own::Accessor { set, .. } => return Ok(setter(set)),
            Own::Exotic => return Ok(Assigned::Exotic(obj)),
            Own::Absent => {}
        }
        let mut next = self.prototype(obj);
        while let Some(at) = next {
            match self.get_own(at, key) {
                Own::Absent => next = self.prototype(at),
                Own::Data { attrs, .. } if attrs.has(Attrs::WRITABLE) => break,
                Own::Data { .. } => return Ok(Assigned::Refused),
                Own::Accessor { set, .. } => return Ok(setter(set)),
                Own::Exotic => return Ok(Assigned::Exotic(at)),
            }
        }
        self.create(obj, key, value)
    }

    /// Overwrites a writable property that has no slot: an element, or the length of an array.
    fn overwrite(&mut self, obj: ObjId, key: Key, value: Value) -> Result<Assigned, AllocError> {
        if let Some(index) = key.as_index() {
            self.set_dense(obj, index, value)?;
            return Ok(Assigned::Yes);
        }
        debug_assert_eq!(key, Key::atom(atoms::LENGTH), "only elements and lengths have no slot");
        Ok(match self.define_own(obj, key, &super::Descriptor::value(value))? {
            Defined::Yes => Assigned::Yes,
            Defined::No => Assigned::Refused,
            Defined::InvalidLength => Assigned::InvalidLength,
            Defined::Exotic => Assigned::Exotic(obj),
        })
    }

    /// Adds a property that neither the object nor its chain has a say about.
    fn create(&mut self, obj: ObjId, key: Key, value: Value) -> Result<Assigned, AllocError> {
        if !self.is_extensible(obj) && !self.is_private(key) {
            return Ok(Assigned::Refused);
        }
        if self.class(obj) == Class::Array
            && let Some(index) = self.array_index(key)
        {
            if index >= self.array_length(obj) && self.is_length_read_only(obj) {
                return Ok(Assigned::Refused);
            }
            self.add_property(obj, key, Attrs::ALL, value)?;
            self.cover(obj, index);
            return Ok(Assigned::Yes);
        }
        self.add_property(obj, key, Attrs::ALL, value)?;
        Ok(Assigned::Yes)
    }
}

fn setter(set: Value) -> Assigned {
    if set.is_undefined() { Assigned::Refused } else { Assigned::Setter(set) }
}
