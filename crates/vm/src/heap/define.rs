//! Defining properties as the specification says: ValidateAndApplyPropertyDescriptor and the array's own rules.

use super::property::Own;
use super::table::Attrs;
use super::{AllocError, Class, Heap, Key, ObjId, atoms};
use crate::value::{Internal, Value};

/// A property descriptor, as far as it was given.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Descriptor {
    /// `value`.
    pub value: Option<Value>,
    /// `get`: a function or undefined.
    pub get: Option<Value>,
    /// `set`: a function or undefined.
    pub set: Option<Value>,
    /// `writable`.
    pub writable: Option<bool>,
    /// `enumerable`.
    pub enumerable: Option<bool>,
    /// `configurable`.
    pub configurable: Option<bool>,
}

/// What became of a definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Defined {
    /// Done.
    Yes,
    /// Refused: a TypeError where the caller must throw.
    No,
    /// An array length that is not a length: a RangeError.
    InvalidLength,
    /// The object decides for itself, or a length must be converted to a number first.
    Exotic,
}

impl Descriptor {
    /// A descriptor that says nothing.
    pub const EMPTY: Descriptor = Descriptor {
        value: None,
        get: None,
        set: None,
        writable: None,
        enumerable: None,
        configurable: None,
    };

    /// A complete data descriptor.
    pub const fn data(value: Value, attrs: Attrs) -> Descriptor {
        Descriptor {
            value: Some(value),
            get: None,
            set: None,
            writable: Some(attrs.has(Attrs::WRITABLE)),
            enumerable: Some(attrs.has(Attrs::ENUMERABLE)),
            configurable: Some(attrs.has(Attrs::CONFIGURABLE)),
        }
    }

    /// A descriptor with only a value.
    pub const fn value(value: Value) -> Descriptor {
        Descriptor { value: Some(value), ..Descriptor::EMPTY }
    }

    fn is_accessor(&self) -> bool {
        self.get.is_some() || self.set.is_some()
    }

    fn is_data(&self) -> bool {
        self.value.is_some() || self.writable.is_some()
    }

    /// The attributes after applying this to a property that had `old`.
    fn attrs_over(&self, old: Attrs) -> Attrs {
        let pick = |given: Option<bool>, attr: Attrs| match given {
            Some(true) => attr,
            Some(false) => Attrs::NONE,
            None => Attrs(old.0 & attr.0),
        };
        pick(self.writable, Attrs::WRITABLE)
            .and(pick(self.enumerable, Attrs::ENUMERABLE))
            .and(pick(self.configurable, Attrs::CONFIGURABLE))
    }
}

impl Heap {
    /// `[[DefineOwnProperty]]` of ordinary objects, arrays, arguments and String objects.
    pub fn define_own(&mut self, obj: ObjId, key: Key, desc: &Descriptor) -> Result<Defined, AllocError> {
        let class = self.class(obj);
        if class == Class::Array {
            if key == Key::atom(atoms::LENGTH) {
                return self.define_length(obj, desc);
            }
            if let Some(index) = self.array_index(key) {
                let current = self.get_own(obj, key);
                if current == Own::Absent && index >= self.array_length(obj) && self.is_length_read_only(obj)
                {
                    return Ok(Defined::No);
                }
                let defined = self.validate_and_apply(obj, key, desc, current)?;
                if defined == Defined::Yes {
                    self.cover(obj, index);
                }
                return Ok(defined);
            }
        }
        let current = self.get_own(obj, key);
        self.validate_and_apply(obj, key, desc, current)
    }

    fn define_length(&mut self, array: ObjId, desc: &Descriptor) -> Result<Defined, AllocError> {
        if desc.is_accessor() || desc.configurable == Some(true) || desc.enumerable == Some(true) {
            // The conversion of a bad value still comes first in the specification.
            return match desc.value.map(length_of) {
                Some(Err(problem)) => Ok(problem),
                Some(Ok(_)) | None => Ok(Defined::No),
            };
        }
        let mut defined = Defined::Yes;
        if let Some(value) = desc.value {
            let length = match length_of(value) {
                Ok(length) => length,
                Err(problem) => return Ok(problem),
            };
            if self.is_length_read_only(array) && desc.writable == Some(true) {
                return Ok(Defined::No);
            }
            let was_read_only = self.is_length_read_only(array);
            defined = self.set_array_length(array, length)?;
            if was_read_only && defined == Defined::No {
                return Ok(Defined::No);
            }
        }
        if self.is_length_read_only(array) && desc.writable == Some(true) {
            return Ok(Defined::No);
        }
        if desc.writable == Some(false) {
            self.set_length_read_only(array);
        }
        Ok(defined)
    }

    /// The same over a current property that the caller knows better than the heap does.
    pub(crate) fn define_over(
        &mut self,
        obj: ObjId,
        key: Key,
        desc: &Descriptor,
        current: Own,
    ) -> Result<Defined, AllocError> {
        self.validate_and_apply(obj, key, desc, current)
    }

    fn validate_and_apply(
        &mut self,
        obj: ObjId,
        key: Key,
        desc: &Descriptor,
        current: Own,
    ) -> Result<Defined, AllocError> {
        let (old, old_value) = match current {
            Own::Exotic => return Ok(Defined::Exotic),
            Own::Absent => {
                if !self.is_extensible(obj) && !self.is_private(key) {
                    return Ok(Defined::No);
                }
                let attrs = desc.attrs_over(Attrs::NONE);
                if desc.is_accessor() {
                    let get = desc.get.unwrap_or(Value::UNDEFINED);
                    let set = desc.set.unwrap_or(Value::UNDEFINED);
                    self.add_accessor(obj, key, attrs, get, set)?;
                } else {
                    self.add_property(obj, key, attrs, desc.value.unwrap_or(Value::UNDEFINED))?;
                }
                return Ok(Defined::Yes);
            }
            Own::Data { value, attrs, .. } => (attrs, Some(value)),
            Own::Accessor { attrs, .. } => (attrs, None),
        };
        if !old.has(Attrs::CONFIGURABLE) && !self.allowed(desc, current, old)? {
            return Ok(Defined::No);
        }
        if desc.is_accessor() {
            let (get, set) = match current {
                Own::Accessor { get, set, .. } => (desc.get.unwrap_or(get), desc.set.unwrap_or(set)),
                Own::Data { .. } | Own::Absent | Own::Exotic => {
                    (desc.get.unwrap_or(Value::UNDEFINED), desc.set.unwrap_or(Value::UNDEFINED))
                }
            };
            let attrs = desc.attrs_over(old.without(Attrs::WRITABLE));
            self.add_accessor(obj, key, attrs, get, set)?;
            return Ok(Defined::Yes);
        }
        if old.has(Attrs::ACCESSOR) && !desc.is_data() {
            let attrs = desc.attrs_over(old).and(Attrs::ACCESSOR);
            if attrs != old
                && let Some((slot, _)) = self.lookup(self.shape(obj), key)
            {
                self.reconfigure(obj, slot, attrs)?;
            }
            return Ok(Defined::Yes);
        }
        let attrs =
            desc.attrs_over(if old.has(Attrs::ACCESSOR) { old.without(Attrs::WRITABLE) } else { old });
        let value = desc.value.or(old_value).unwrap_or(Value::UNDEFINED);
        if self.string_object(obj).is_some() && (key.as_index().is_some() || key == Key::atom(atoms::LENGTH))
        {
            // Characters and length of a String object cannot change; what was allowed above changes nothing.
            if self.lookup(self.shape(obj), key).is_none() {
                return Ok(Defined::Yes);
            }
        }
        self.add_property(obj, key, attrs, value)?;
        Ok(Defined::Yes)
    }

    /// May this descriptor be applied to a property that is not configurable?
    fn allowed(&mut self, desc: &Descriptor, current: Own, old: Attrs) -> Result<bool, AllocError> {
        if desc.configurable == Some(true)
            || desc.enumerable.is_some_and(|given| given != old.has(Attrs::ENUMERABLE))
        {
            return Ok(false);
        }
        match current {
            Own::Accessor { get, set, .. } => Ok(!desc.is_data()
                && desc.get.is_none_or(|given| given == get)
                && desc.set.is_none_or(|given| given == set)),
            Own::Data { value, .. } => {
                if desc.is_accessor() {
                    return Ok(false);
                }
                if old.has(Attrs::WRITABLE) {
                    return Ok(true);
                }
                if desc.writable == Some(true) {
                    return Ok(false);
                }
                match desc.value {
                    None => Ok(true),
                    Some(given) => self.same_value(given, value),
                }
            }
            Own::Absent | Own::Exotic => Ok(true),
        }
    }

    /// The getter/setter pair in a slot, for callers that cache accessors.
    pub fn accessor(&self, value: Value) -> Option<(Value, Value)> {
        match value.as_internal() {
            Some(Internal::Accessor(id)) => {
                let pair = &self.accessors[id];
                Some((pair.get, pair.set))
            }
            _ => None,
        }
    }
}

/// A value as an array length, or what is wrong with it.
fn length_of(value: Value) -> Result<u32, Defined> {
    let number = value.as_number().ok_or(Defined::Exotic)?;
    let length = number as u32;
    if f64::from(length) == number { Ok(length) } else { Err(Defined::InvalidLength) }
}
