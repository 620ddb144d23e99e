//! What must be true of a heap that came from bytes: every reference is to something that is there and of its kind, and
//! whatever is followed without asking ends somewhere.
//!
//! The engine indexes by these rules and walks prototype chains without counting, so this is what stands between a
//! hostile snapshot and a panic or a hang.

use super::arena::{Arena, Id, Record};
use super::array::LengthState;
use super::object::ObjectRecord;
use super::shape::{Extensible, ShapeRecord, Step};
use super::shared::Shared;
use super::string::Role;
use super::{Class, Flags, Heap, Key, KeyKind, Payload, ShapeId, StrId};
use crate::snapshot::bytes::{Flaw, Read, require};
use crate::value::{Internal, Unpacked, Value};

impl Heap {
    /// Is the value something that this heap has?
    pub(crate) fn check_value(&self, v: Value) -> Read<()> {
        if self.has(v) { Ok(()) } else { Err(self.flaw_of(v)) }
    }

    /// Are the values something that this heap has?
    #[inline]
    pub(crate) fn check_values(&self, values: &[Value]) -> Read<()> {
        match values.iter().find(|&&v| !self.has(v)) {
            None => Ok(()),
            Some(&v) => Err(self.flaw_of(v)),
        }
    }

    #[inline(always)]
    fn has(&self, v: Value) -> bool {
        if !v.is_reference() {
            return true;
        }
        match (v.as_string(), v.as_object()) {
            (Some(id), _) => is_there(&self.strings, id),
            (_, Some(id)) => {
                self.objects.items.get(id.index()).is_some_and(|object| {
                    !object.is_vacant() && v.is_array() == (object.class == Class::Array)
                })
            }
            (None, None) => self.has_other(v),
        }
    }

    /// The same for what is rare.
    fn has_other(&self, v: Value) -> bool {
        match v.unpack() {
            Unpacked::Undefined
            | Unpacked::Null
            | Unpacked::Bool(_)
            | Unpacked::Hole
            | Unpacked::Int(_)
            | Unpacked::Double(_)
            | Unpacked::Internal(Internal::Raw(_)) => true,
            Unpacked::String(id) => is_there(&self.strings, id),
            Unpacked::Symbol(id) => is_there(&self.symbols, id),
            Unpacked::BigInt(id) => is_there(&self.bigints, id),
            Unpacked::Object(id) => is_there(&self.objects, id),
            Unpacked::Internal(Internal::Accessor(id)) => is_there(&self.accessors, id),
            Unpacked::Internal(Internal::Cell(id)) => is_there(&self.cells, id),
            Unpacked::Internal(Internal::Slots(id)) => is_there(&self.fields, id),
            Unpacked::Internal(Internal::Shape(id)) => is_there(&self.shapes, id) && !self.is_dictionary(id),
        }
    }

    /// What is wrong with a value that this heap does not have.
    #[cold]
    fn flaw_of(&self, v: Value) -> Flaw {
        Flaw::Invalid(match v.unpack() {
            Unpacked::Object(id) if is_there(&self.objects, id) => "an array is not an array",
            Unpacked::Internal(Internal::Shape(id)) if is_there(&self.shapes, id) => "a dictionary is shared",
            _ => MISSING,
        })
    }

    fn check_string(&self, id: StrId) -> Read<()> {
        there(&self.strings, id)
    }

    /// Checks everything that is not as it was in the image.
    pub(crate) fn check(&self) -> Read<()> {
        self.check_tables()?;
        self.shapes
            .own()
            .filter(|(_, s)| !s.is_vacant())
            .try_for_each(|(_, shape)| self.check_shape(shape))?;
        self.check_objects()?;
        for (_, closure) in self.closures.unknown() {
            self.check_value(closure.home)?;
            if let Some(span) = closure.span() {
                self.check_values(self.slab.slice(span))?;
            }
        }
        for (_, cell) in self.cells.unknown() {
            self.check_value(cell.0)?;
        }
        for (_, pair) in self.accessors.unknown() {
            self.check_value(pair.get)?;
            self.check_value(pair.set)?;
        }
        for (_, elements) in self.elements.unknown() {
            self.check_values(&elements.values)?;
            require(elements.state != LengthState::Vacant, "an array is free")?;
        }
        for (id, _) in self.fields.unknown() {
            self.check_values(self.slots(id))?;
        }
        for (_, map) in self.maps.unknown() {
            for entry in &map.entries {
                self.check_value(entry.key)?;
                self.check_value(entry.value)?;
            }
        }
        for (_, weak) in self.weaks.unknown() {
            for &(key, value) in weak.entries.values() {
                self.check_value(key)?;
                self.check_value(value)?;
            }
        }
        for (_, view) in self.views.unknown() {
            if let Some(view) = view.0 {
                there(&self.objects, view.buffer)?;
                let buffer = self.class(view.buffer).payload() == Payload::Buffer;
                require(buffer, "a view of something that is no buffer")?;
            }
        }
        self.check_chains()
    }

    fn check_key(&self, key: Key) -> Read<()> {
        match key.kind() {
            KeyKind::Index(_) => Ok(()),
            KeyKind::Atom(id) => {
                self.check_string(id)?;
                require(self.strings[id].role != Role::Plain, "a key is not a name")
            }
            KeyKind::Symbol(id) => there(&self.symbols, id),
        }
    }

    fn check_tables(&self) -> Read<()> {
        for (_, table) in self.tables.own() {
            for entry in &table.entries {
                if entry.key != Key::DELETED {
                    self.check_key(entry.key)?;
                }
            }
        }
        Ok(())
    }

    fn check_shape(&self, shape: &ShapeRecord) -> Read<()> {
        let Some(table) = shape.table else { return Ok(()) };
        there(&self.tables, table)?;
        let entries = &self.tables[table].entries;
        let count = shape.count as usize;
        require(count <= entries.len(), "a shape has more properties than its table")?;
        if let Some(prototype) = shape.prototype {
            there(&self.objects, prototype)?;
            require(self.flags(prototype).has(Flags::PROTOTYPE), "a prototype does not know that it is one")?;
        }
        let deleted = entries[..count].iter().any(|e| e.key == Key::DELETED);
        require(!deleted || shape.step == Step::Dictionary, "a shape has a deleted property")?;
        let parent = match shape.parent {
            Some(parent) => {
                there(&self.shapes, parent)?;
                Some(&self.shapes[parent])
            }
            None => None,
        };
        let follows = match (shape.step, parent) {
            (Step::Root, None) => count == 0 && shape.extensible == Extensible::Yes,
            (Step::Dictionary, None) => count == entries.len(),
            (Step::Add(key, attrs), Some(parent)) => {
                let last = count.checked_sub(1).and_then(|at| entries.get(at));
                parent.count as usize + 1 == count
                    && last.is_some_and(|e| e.key == key && e.attrs == attrs)
                    && inherits(shape, parent)
            }
            (Step::Reconfigure(key, attrs), Some(parent)) => {
                parent.count as usize == count
                    && entries[..count].iter().any(|e| e.key == key && e.attrs == attrs)
                    && inherits(shape, parent)
            }
            (Step::Prototype(prototype), Some(parent)) => {
                parent.count as usize == count
                    && shape.prototype == prototype
                    && shape.extensible == parent.extensible
            }
            (Step::PreventExtensions, Some(parent)) => {
                parent.count as usize == count
                    && shape.prototype == parent.prototype
                    && shape.extensible == Extensible::No
            }
            (Step::Root | Step::Dictionary, Some(_)) | (_, None) => false,
        };
        require(follows, "a shape does not follow from its parent")?;
        if let Step::Add(key, _) | Step::Reconfigure(key, _) = shape.step {
            self.check_key(key)?;
        }
        Ok(())
    }

    fn check_objects(&self) -> Read<()> {
        let mut dictionaries = vec![false; self.shapes.own().count()];
        let line = self.base.shapes as usize;
        // Neighbours often have the same shape.
        let mut known = None;
        for (id, object) in self.objects.unknown() {
            let shape = match known {
                Some((of, shape)) if of == object.shape => shape,
                _ => {
                    there(&self.shapes, object.shape)?;
                    &self.shapes[object.shape]
                }
            };
            known = Some((object.shape, shape));
            require(shape.count as usize <= object.capacity(), "an object has too few slots")?;
            if shape.step == Step::Dictionary {
                let fresh = match (object.shape.raw() as usize).checked_sub(line) {
                    Some(own) => dictionaries.get_mut(own).is_some_and(|seen| !std::mem::replace(seen, true)),
                    // One of the image's belongs to an object of the image, and it was there that they were compared.
                    None => id.raw() < self.base.objects,
                };
                require(fresh, "a dictionary is shared")?;
            }
            self.check_values(&object.slots)?;
            if let Some(span) = object.span() {
                self.check_values(self.slab.slice(span))?;
            }
            self.check_payload(object)?;
        }
        self.image_objects_with_new_payloads().try_for_each(|(_, object)| self.check_payload(object))
    }

    /// Objects of the image whose payload was written to.
    pub(super) fn image_objects_with_new_payloads(&self) -> impl Iterator<Item = (usize, &ObjectRecord)> {
        let (cells, fields, elements) = (&self.cells, &self.fields, &self.elements);
        let some = cells.is_touched() || fields.is_touched() || elements.is_touched();
        let image = if some { self.base.objects as usize } else { 0 };
        self.objects.items.iter().take(image).enumerate().filter(move |(_, object)| {
            match object.class.payload() {
                Payload::Cell => cells.was_touched(object.payload),
                Payload::Slots => fields.was_touched(object.payload),
                Payload::Elements => elements.was_touched(object.payload),
                Payload::None
                | Payload::Closure
                | Payload::Map
                | Payload::Weak
                | Payload::Buffer
                | Payload::View => false,
            }
        })
    }

    fn check_payload(&self, object: &ObjectRecord) -> Read<()> {
        let raw = object.payload;
        match object.class.payload() {
            Payload::None => Ok(()),
            Payload::Elements => {
                there(&self.elements, super::ElementsId::from_raw(raw))?;
                let elements = &self.elements.items[raw as usize];
                let sparse = object.flags.has(Flags::SPARSE);
                require(!sparse || elements.values.is_empty(), "a sparse array has dense elements")
            }
            Payload::Cell => {
                there(&self.cells, super::CellId::from_raw(raw))?;
                let v = self.cells.items[raw as usize].0;
                let fits = match object.class {
                    Class::String => v.as_string().is_some(),
                    Class::Symbol => v.is_symbol(),
                    Class::BigInt => v.is_bigint(),
                    Class::Number => v.is_number(),
                    Class::Boolean => v.is_bool(),
                    _ => true,
                };
                require(fits, "a wrapper holds something else")
            }
            Payload::Slots => {
                there(&self.fields, super::SlotsId::from_raw(raw))?;
                let fields = self.fields.items[raw as usize].len as usize;
                require(fields >= least_fields(object.class), "an object lacks internal fields")
            }
            Payload::Closure => there(&self.closures, super::ClosureId::from_raw(raw)),
            Payload::Map => there(&self.maps, super::MapId::from_raw(raw)),
            Payload::Weak => there(&self.weaks, super::WeakId::from_raw(raw)),
            Payload::Buffer => there(&self.buffers, super::BufferId::from_raw(raw)),
            Payload::View => there(&self.views, super::ViewId::from_raw(raw)),
        }
    }

    /// Prototypes, the targets of proxies and of bound functions, and the parents of shapes: all of them end.
    ///
    /// In the image they do, so a ring has a member that is not as it was there: it is enough to start from those.
    fn check_chains(&self) -> Read<()> {
        let objects = self.objects.items.len();
        let live = |at: usize| self.objects.items.get(at).filter(|o| !o.is_vacant());
        let unknown = || self.objects.unknown().map(|(id, o)| (id.raw() as usize, o));
        // Whoever is a prototype knows it.
        let prototypes = unknown().filter(|(_, o)| o.flags.has(Flags::PROTOTYPE)).map(|(at, _)| at);
        ends(objects, prototypes, |at| {
            let object = live(at).filter(|o| o.class != Class::Proxy)?;
            self.shapes[object.shape].prototype.map(|p| p.raw() as usize)
        })?;
        let leads_on = |o: &ObjectRecord| matches!(o.class, Class::Proxy | Class::BoundFunction);
        // The target of one of the image's is in its fields, which may have been written to without it.
        let bound = unknown().chain(self.image_objects_with_new_payloads());
        let bound = bound.filter(|(_, o)| leads_on(o)).map(|(at, _)| at);
        ends(objects, bound, |at| {
            let object = live(at).filter(|o| leads_on(o))?;
            let target = self.slots(super::SlotsId::from_raw(object.payload)).first()?;
            target.as_object().map(|target| target.raw() as usize)
        })?;
        let shapes = self.shapes.own().map(|(at, _)| at);
        ends(self.shapes.span(), shapes, |at| self.shapes.get(at)?.parent.map(|p: ShapeId| p.raw() as usize))
    }
}

fn inherits(shape: &ShapeRecord, parent: &ShapeRecord) -> bool {
    shape.prototype == parent.prototype && shape.extensible == parent.extensible
}

/// How many internal fields an object of a class has at least: as many as the engine reads without looking.
fn least_fields(class: Class) -> usize {
    match class {
        Class::Generator | Class::AsyncGenerator => crate::exec::RECORD_FIELDS,
        Class::Promise | Class::Proxy => 2,
        Class::NativeFunction | Class::BoundFunction | Class::HostFunction => 1,
        _ => 0,
    }
}

/// An arena of either kind.
trait Entries<T> {
    fn entry(&self, index: usize) -> Option<&T>;
}

impl<I, T> Entries<T> for Arena<I, T> {
    #[inline]
    fn entry(&self, index: usize) -> Option<&T> {
        self.items.get(index)
    }
}

impl<I: Id, T: Record + Clone> Entries<T> for Shared<I, T> {
    #[inline]
    fn entry(&self, index: usize) -> Option<&T> {
        self.get(index)
    }
}

const MISSING: &str = "a reference to something that is not there";

/// Is there a live record with this id?
#[inline]
fn is_there<I: Id, T: Record>(arena: &impl Entries<T>, id: I) -> bool {
    arena.entry(id.index()).is_some_and(|record| !record.is_vacant())
}

fn there<I: Id, T: Record>(arena: &impl Entries<T>, id: I) -> Read<()> {
    require(is_there(arena, id), MISSING)
}

/// Does following `next` from any of these places come to an end? Each place is looked at once.
fn ends(len: usize, starts: impl Iterator<Item = usize>, next: impl Fn(usize) -> Option<usize>) -> Read<()> {
    // Zero: not seen. Otherwise the number of the walk that saw it.
    let mut seen = Vec::new();
    for (walk, start) in (1u32..).zip(starts) {
        if seen.is_empty() {
            seen.resize(len, 0u32);
        }
        let mut at = Some(start);
        while let Some(place) = at {
            let Some(mark) = seen.get_mut(place) else { break };
            if *mark == walk {
                return Err(Flaw::Invalid("a chain has no end"));
            }
            if *mark != 0 {
                break;
            }
            *mark = walk;
            at = next(place);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_that_bites_its_tail_is_found_and_a_tree_is_not() {
        let tree = [None, Some(0), Some(0), Some(2), Some(3)];
        assert_eq!(ends(tree.len(), 0..tree.len(), |at| tree[at]), Ok(()));
        let ring = [None, Some(3), Some(1), Some(2)];
        assert!(ends(ring.len(), 0..ring.len(), |at| ring[at]).is_err());
        let own = [Some(0)];
        assert!(ends(own.len(), 0..own.len(), |at| own[at]).is_err());
    }
}
