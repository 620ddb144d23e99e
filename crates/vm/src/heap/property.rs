//! Properties without guest code: reading, adding, deleting and listing own properties, prototypes and extensibility.
//!
//! Whatever could run guest code or needs knowledge from elsewhere (proxies, typed array elements, module namespaces) is
//! answered with `Exotic`: the caller handles it. Everything else about ordinary objects, arrays, arguments and String
//! objects happens here.

use super::object::{INLINE_SLOTS, Slot};
use super::shape::{Extensible, Step};
use super::table::{Attrs, Property};
use super::{AccessorId, AllocError, Class, Flags, Heap, Key, KeyKind, ObjId, Str, atoms};
use crate::text::number::{print, read};
use crate::value::{Internal, Value};

/// The slot of a property that has none: array elements, `length` of arrays and strings, characters of String objects.
pub const NO_SLOT: Slot = Slot::MAX;

/// One own property.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Own {
    /// There is none.
    Absent,
    /// A value.
    Data {
        /// The value.
        value: Value,
        /// Its attributes.
        attrs: Attrs,
        /// Its slot, or [`NO_SLOT`].
        slot: Slot,
    },
    /// A getter and a setter, each a function or undefined.
    Accessor {
        /// The getter.
        get: Value,
        /// The setter.
        set: Value,
        /// Its attributes (always with [`Attrs::ACCESSOR`]).
        attrs: Attrs,
    },
    /// The object decides for itself: a proxy, a typed array's element, a module's export.
    Exotic,
}

/// What looking along the prototype chain found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Found {
    /// Nobody has it.
    Absent,
    /// A value.
    Data(Value),
    /// A getter to call with the original receiver (or undefined: the result is undefined).
    Getter(Value),
    /// This object of the chain decides for itself; go on there.
    Exotic(ObjId),
}

/// What became of a deletion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deleted {
    /// It is gone, or was never there.
    Yes,
    /// It is not configurable.
    No,
    /// The object decides for itself.
    Exotic,
}

impl Heap {
    /// The own property of an object.
    #[inline]
    pub fn get_own(&self, obj: ObjId, key: Key) -> Own {
        let record = &self.objects[obj];
        if record.class != Class::Object {
            match self.get_special(obj, key) {
                Own::Absent => {}
                found => return found,
            }
        }
        match self.lookup(record.shape, key) {
            None => Own::Absent,
            Some((slot, attrs)) => self.read(obj, slot, attrs),
        }
    }

    /// Looks a property up along the prototype chain, stopping where guest code or an exotic object takes over.
    pub fn get(&self, obj: ObjId, key: Key) -> Found {
        let mut at = obj;
        loop {
            match self.get_own(at, key) {
                Own::Data { value, .. } => return Found::Data(value),
                Own::Accessor { get, .. } => return Found::Getter(get),
                Own::Exotic => return Found::Exotic(at),
                Own::Absent => match self.prototype(at) {
                    Some(next) => at = next,
                    None => return Found::Absent,
                },
            }
        }
    }

    /// Adds a data property that is not there yet, or replaces value and attributes of one that is. No checks: this is
    /// CreateDataProperty on an object known to accept it (literals, class members, engine-made objects).
    pub fn add_property(
        &mut self,
        obj: ObjId,
        key: Key,
        attrs: Attrs,
        value: Value,
    ) -> Result<(), AllocError> {
        if let Some(index) = key.as_index()
            && attrs == Attrs::ALL
            && self.has_dense_elements(obj)
            && self.set_dense(obj, index, value)?
        {
            return Ok(());
        }
        if self.has_dense_elements(obj) && self.array_index(key).is_some() {
            self.make_sparse(obj)?;
        }
        self.add_named(obj, key, attrs, value)
    }

    /// Adds or replaces an accessor property. No checks.
    pub fn add_accessor(
        &mut self,
        obj: ObjId,
        key: Key,
        attrs: Attrs,
        get: Value,
        set: Value,
    ) -> Result<(), AllocError> {
        let pair = self.new_accessor(get, set)?;
        let value = Value::internal(Internal::Accessor(pair));
        if self.has_dense_elements(obj) && self.array_index(key).is_some() {
            self.make_sparse(obj)?;
        }
        // Who remembers that a prototype's getters are the engine's own must look again.
        self.touch(obj);
        self.add_named(obj, key, attrs.without(Attrs::WRITABLE).and(Attrs::ACCESSOR), value)
    }

    /// Deletes an own property if it is configurable.
    pub fn delete_own(&mut self, obj: ObjId, key: Key) -> Result<Deleted, AllocError> {
        match self.get_own(obj, key) {
            Own::Absent => return Ok(Deleted::Yes),
            Own::Exotic => return Ok(Deleted::Exotic),
            Own::Data { attrs, .. } | Own::Accessor { attrs, .. } if !attrs.has(Attrs::CONFIGURABLE) => {
                return Ok(Deleted::No);
            }
            Own::Data { slot: NO_SLOT, .. } => {
                if let Some(index) = key.as_index() {
                    self.clear_dense(obj, index);
                }
                return Ok(Deleted::Yes);
            }
            Own::Data { .. } | Own::Accessor { .. } => {}
        }
        self.remove_named(obj, key)?;
        Ok(Deleted::Yes)
    }

    /// Appends the own keys in the order of the specification: indices ascending, strings and then symbols in order of
    /// creation. Private names and the elements of typed arrays are not listed. `false` means that the object decides
    /// for itself.
    #[must_use]
    pub fn own_keys(&self, obj: ObjId, keys: &mut Vec<Key>) -> bool {
        let record = &self.objects[obj];
        match record.class {
            Class::Proxy | Class::ModuleNamespace => return false,
            _ => {}
        }
        let from = keys.len();
        if let Some(elements) = self.elements_of(obj) {
            let dense = self.elements[elements].values.iter().enumerate();
            keys.extend(dense.filter(|(_, v)| !v.is_hole()).map(|(i, _)| Key::from_raw(i as u32)));
        }
        if let Some(text) = self.string_object(obj) {
            keys.extend((0..self.string_length(text)).map(Key::from_raw));
        }
        let ordered = keys.len();
        let shape = &self.shapes[record.shape];
        let Some(table) = shape.table else { return true };
        let entries = &self.tables[table].entries[..shape.count as usize];
        keys.extend(
            entries
                .iter()
                .map(|e| e.key)
                .filter(|&key| key != Key::DELETED && self.array_index(key).is_some()),
        );
        if keys.len() > ordered {
            keys[from..].sort_unstable_by_key(|&key| self.array_index(key));
        }
        if record.class == Class::Array || record.class == Class::String {
            keys.push(Key::atom(atoms::LENGTH));
        }
        let names = |e: &&Property| e.key.as_atom().is_some() && self.array_index(e.key).is_none();
        keys.extend(entries.iter().filter(names).map(|e| e.key));
        let symbols = |key: &Key| *key != Key::DELETED && key.as_symbol().is_some() && !self.is_private(*key);
        keys.extend(entries.iter().map(|e| e.key).filter(symbols));
        true
    }

    /// The prototype of an object that is not a proxy.
    #[inline]
    pub fn prototype(&self, obj: ObjId) -> Option<ObjId> {
        self.shapes[self.objects[obj].shape].prototype
    }

    /// OrdinarySetPrototypeOf: `false` if the object is not extensible, immutable, or would become its own ancestor.
    pub fn set_prototype(&mut self, obj: ObjId, prototype: Option<ObjId>) -> Result<bool, AllocError> {
        if self.prototype(obj) == prototype {
            return Ok(true);
        }
        if !self.is_extensible(obj) || self.flags(obj).has(Flags::IMMUTABLE_PROTOTYPE) {
            return Ok(false);
        }
        let mut ancestor = prototype;
        while let Some(at) = ancestor {
            if at == obj {
                return Ok(false);
            }
            if self.class(at) == Class::Proxy {
                break;
            }
            ancestor = self.prototype(at);
        }
        self.reparent(obj, prototype)?;
        Ok(true)
    }

    /// Does the object accept new properties? (Proxies decide for themselves.)
    #[inline]
    pub fn is_extensible(&self, obj: ObjId) -> bool {
        self.shapes[self.objects[obj].shape].extensible == Extensible::Yes
    }

    /// OrdinaryPreventExtensions.
    pub fn prevent_extensions(&mut self, obj: ObjId) -> Result<(), AllocError> {
        if !self.is_extensible(obj) {
            return Ok(());
        }
        // A dense array accepts elements without asking its shape, so a closed one must not be dense.
        self.make_sparse(obj)?;
        self.close(obj)
    }

    /// The string inside a String object.
    pub(crate) fn string_object(&self, obj: ObjId) -> Option<super::StrId> {
        let record = &self.objects[obj];
        if record.class != Class::String {
            return None;
        }
        self.cells[super::CellId::from_raw(record.payload)].0.as_string()
    }

    /// Reads a slot as a property.
    #[inline]
    pub(crate) fn read(&self, obj: ObjId, slot: Slot, attrs: Attrs) -> Own {
        let value = self.slot(obj, slot);
        if !attrs.has(Attrs::ACCESSOR) {
            return Own::Data { value, attrs, slot };
        }
        match value.as_internal() {
            Some(Internal::Accessor(id)) => {
                let pair = &self.accessors[id];
                Own::Accessor { get: pair.get, set: pair.set, attrs }
            }
            _ => Own::Data { value, attrs, slot },
        }
    }

    /// A getter/setter pair as a slot holds it, to be shared by many objects.
    pub(crate) fn new_accessor_value(&mut self, get: Value, set: Value) -> Result<Value, AllocError> {
        Ok(Value::internal(Internal::Accessor(self.new_accessor(get, set)?)))
    }

    pub(crate) fn new_accessor(&mut self, get: Value, set: Value) -> Result<AccessorId, AllocError> {
        self.account.charge(size_of::<super::function::Accessor>())?;
        Ok(self.accessors.insert(super::function::Accessor { get, set }))
    }

    /// Puts a property into the shape and its slot, whatever was there before.
    pub(crate) fn add_named(
        &mut self,
        obj: ObjId,
        key: Key,
        attrs: Attrs,
        value: Value,
    ) -> Result<(), AllocError> {
        let shape = self.shape(obj);
        if let Some((slot, old)) = self.lookup(shape, key) {
            if old != attrs {
                self.reconfigure(obj, slot, attrs)?;
            }
            self.set_slot(obj, slot, value);
            return Ok(());
        }
        let slot = self.shapes[shape].count;
        self.reserve_slots(obj, slot as usize + 1)?;
        if let Some(next) = self.transition(shape, key, attrs)? {
            self.touch(obj);
            self.objects[obj].shape = next;
            self.set_slot(obj, slot, value);
            return Ok(());
        }
        self.make_dictionary(obj)?;
        let shape = self.shape(obj);
        let Some(table) = self.shapes[shape].table else { return Ok(()) };
        self.account.grow(self.tables[table].growth())?;
        self.tables[table].push(Property { key, attrs }, self.seed);
        self.shapes[shape].count = slot + 1;
        self.touch(obj);
        self.set_slot(obj, slot, value);
        Ok(())
    }

    /// Takes a property out of the shape.
    pub(crate) fn remove_named(&mut self, obj: ObjId, key: Key) -> Result<(), AllocError> {
        let shape = self.shape(obj);
        let Some((slot, attrs)) = self.lookup(shape, key) else { return Ok(()) };
        let record = &self.shapes[shape];
        // Undoing the last addition is common (caches, tests) and keeps the object in the shared tree.
        if let Some(parent) = record.parent
            && record.step == Step::Add(key, attrs)
        {
            self.touch(obj);
            self.set_slot(obj, slot, Value::UNDEFINED);
            self.objects[obj].shape = parent;
            return Ok(());
        }
        self.make_dictionary(obj)?;
        let Some(table) = self.shapes[self.shape(obj)].table else { return Ok(()) };
        self.touch(obj);
        self.tables[table].delete(slot);
        self.set_slot(obj, slot, Value::UNDEFINED);
        let (deleted, len) = (self.tables[table].deleted as usize, self.tables[table].entries.len());
        if deleted > 16 && deleted * 2 > len {
            self.compact(obj);
        }
        Ok(())
    }

    /// Squeezes deleted entries out of a dictionary. Never allocates more than it frees, so it charges nothing.
    fn compact(&mut self, obj: ObjId) {
        let shape = self.shape(obj);
        let Some(id) = self.shapes[shape].table else { return };
        let before = super::arena::Record::bytes(&self.tables[id]);
        let mut kept = 0;
        let old = std::mem::take(&mut self.tables[id].entries);
        let live = old.len() - self.tables[id].deleted as usize;
        let mut table = super::table::PropertyTable::with_entries(std::iter::empty(), live, self.seed);
        for (slot, entry) in old.iter().enumerate() {
            if entry.key != Key::DELETED {
                let value = self.slot(obj, slot as u32);
                self.set_slot(obj, kept, value);
                table.push(*entry, self.seed);
                kept += 1;
            }
        }
        for slot in kept..old.len() as u32 {
            self.set_slot(obj, slot, Value::UNDEFINED);
        }
        self.account.shrink(before.saturating_sub(super::arena::Record::bytes(&table)));
        self.tables[id] = table;
        self.shapes[shape].count = kept;
        debug_assert!(kept as usize <= INLINE_SLOTS || kept as usize <= old.len());
    }

    #[inline(never)]
    fn get_special(&self, obj: ObjId, key: Key) -> Own {
        let record = &self.objects[obj];
        match record.class {
            Class::Array | Class::Arguments => {
                if let Some(index) = key.as_index() {
                    return match self.dense_get(obj, index) {
                        Some(value) => Own::Data { value, attrs: Attrs::ALL, slot: NO_SLOT },
                        None => Own::Absent,
                    };
                }
                if record.class == Class::Array && key == Key::atom(atoms::LENGTH) {
                    return self.length_property(obj);
                }
                Own::Absent
            }
            Class::String => {
                let Some(text) = self.string_object(obj) else { return Own::Absent };
                if key == Key::atom(atoms::LENGTH) {
                    let value = Value::uint(self.string_length(text));
                    return Own::Data { value, attrs: Attrs::NONE, slot: NO_SLOT };
                }
                // A wide character would need a new string: the caller makes it.
                match key.as_index() {
                    Some(index) if index < self.string_length(text) => match self.unit_at(text, index) {
                        Some(Ok(narrow)) => Own::Data {
                            value: Value::string(self.char_string(narrow)),
                            attrs: Attrs::ENUMERABLE,
                            slot: NO_SLOT,
                        },
                        _ => Own::Exotic,
                    },
                    _ => Own::Absent,
                }
            }
            Class::Proxy | Class::ModuleNamespace => {
                if self.is_private(key) {
                    Own::Absent
                } else {
                    Own::Exotic
                }
            }
            Class::TypedArray => match key.kind() {
                KeyKind::Index(_) => Own::Exotic,
                KeyKind::Atom(id) if is_canonical_numeric(self.str(id)) => Own::Exotic,
                KeyKind::Atom(_) | KeyKind::Symbol(_) => Own::Absent,
            },
            _ => Own::Absent,
        }
    }

    /// A unit of a flat string: `Ok` if it is Latin-1.
    pub(crate) fn unit_at(&self, text: super::StrId, index: u32) -> Option<Result<u8, u16>> {
        if !self.is_flat(text) {
            return None;
        }
        let unit = self.str(text).get(index as usize)?;
        Some(u8::try_from(unit).map_err(|_| unit))
    }
}

/// No number is written longer than this.
const LONGEST_NUMBER: usize = 32;

/// Is the name what some number is written as ("-0", "1.5", "Infinity", "NaN")?
fn is_canonical_numeric(text: Str<'_>) -> bool {
    let first = text.get(0).and_then(|unit| u8::try_from(unit).ok());
    if !first.is_some_and(|b| b.is_ascii_digit() || matches!(b, b'-' | b'I' | b'N'))
        || text.len() > LONGEST_NUMBER
    {
        return false;
    }
    let text = text.to_string_lossy();
    if text == "-0" {
        return true;
    }
    let number = read::string_to_number(crate::text::Str::Latin1(text.as_bytes()));
    print::decimal(number, &mut print::Buffer::new()) == text
}
