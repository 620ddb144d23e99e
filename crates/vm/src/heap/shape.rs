//! Shapes: which properties an object has, where their values are, and its prototype, shared by all objects that were
//! made the same way.
//!
//! Shapes form a tree: adding a property, changing attributes, changing the prototype and preventing extensions are
//! edges. Along a line of additions all shapes share one [`PropertyTable`], each seeing the prefix of its length, so n
//! additions cost n entries and not n². An edge does not keep its child alive; a child keeps its parent.
//!
//! The tree is bounded: an object with more than [`MOST_SHARED`] properties, or one that leaves a crowded shape, or one
//! that loses a property in the middle, gets a *dictionary* shape of its own. Inline caches only ever see shared shapes
//! ([`Heap::lookup_shared`]), whose meaning never changes.

use super::arena::Record;
use super::object::Slot;
use super::table::{Attrs, Property, PropertyTable};
use super::{AllocError, Flags, Heap, Key, ObjId, ShapeId, TableId};
use rustc_hash::FxHashMap;

/// The most properties of a shared shape.
const MOST_SHARED: u32 = 128;
/// The most children of a shape.
const MOST_EDGES: usize = 1024;
/// What an edge costs.
const EDGE: usize = 32;

/// How a shape differs from its parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Step {
    Root,
    Add(Key, Attrs),
    Reconfigure(Key, Attrs),
    Prototype(Option<ObjId>),
    PreventExtensions,
    Dictionary,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extensible {
    Yes,
    No,
}

#[derive(Clone, Debug)]
pub(super) enum Edges {
    None,
    One(Step, ShapeId),
    Many(Box<FxHashMap<Step, ShapeId>>),
}

#[derive(Clone, Debug)]
pub(crate) struct ShapeRecord {
    pub(crate) prototype: Option<ObjId>,
    pub(crate) parent: Option<ShapeId>,
    /// `None` for a free entry.
    pub(crate) table: Option<TableId>,
    pub(crate) count: u32,
    pub(crate) step: Step,
    pub(crate) extensible: Extensible,
    pub(super) edges: Edges,
}

impl Record for ShapeRecord {
    fn vacant() -> Self {
        ShapeRecord {
            prototype: None,
            parent: None,
            table: None,
            count: 0,
            step: Step::Root,
            extensible: Extensible::Yes,
            edges: Edges::None,
        }
    }
    fn is_vacant(&self) -> bool {
        self.table.is_none()
    }
    fn bytes(&self) -> usize {
        size_of::<ShapeRecord>() + self.edges.len() * EDGE
    }
}

impl Edges {
    fn len(&self) -> usize {
        match self {
            Edges::None => 0,
            Edges::One(..) => 1,
            Edges::Many(map) => map.len(),
        }
    }

    pub(super) fn each(self, mut f: impl FnMut(Step, ShapeId)) {
        match self {
            Edges::None => {}
            Edges::One(step, child) => f(step, child),
            Edges::Many(map) => map.into_iter().for_each(|(step, child)| f(step, child)),
        }
    }

    #[inline]
    pub(super) fn get(&self, step: Step) -> Option<ShapeId> {
        match self {
            Edges::None => None,
            Edges::One(known, child) => (*known == step).then_some(*child),
            Edges::Many(map) => map.get(&step).copied(),
        }
    }

    pub(super) fn insert(&mut self, step: Step, child: ShapeId) {
        match self {
            Edges::None => *self = Edges::One(step, child),
            Edges::One(known, other) => {
                let map = FxHashMap::from_iter([(*known, *other), (step, child)]);
                *self = Edges::Many(Box::new(map));
            }
            Edges::Many(map) => {
                map.insert(step, child);
            }
        }
    }

    fn retain(&mut self, mut live: impl FnMut(ShapeId) -> bool) {
        match self {
            Edges::None => {}
            Edges::One(_, child) => {
                if !live(*child) {
                    *self = Edges::None;
                }
            }
            Edges::Many(map) => {
                map.retain(|_, child| live(*child));
                if map.is_empty() {
                    *self = Edges::None;
                }
            }
        }
    }
}

impl Heap {
    /// The shape of an object with this prototype and no properties.
    pub fn root_shape(&mut self, prototype: Option<ObjId>) -> Result<ShapeId, AllocError> {
        if let Some(&shape) = self.roots.get(&prototype) {
            return Ok(shape);
        }
        self.account.charge_many(size_of::<ShapeRecord>() + PropertyTable::bytes_with_room_for(0), 2)?;
        let table = self.tables.insert(PropertyTable::with_entries(std::iter::empty(), 0, self.seed));
        let shape =
            self.shapes.insert(ShapeRecord { prototype, table: Some(table), ..ShapeRecord::vacant() });
        if let Some(prototype) = prototype {
            self.add_flags(prototype, Flags::PROTOTYPE);
        }
        self.roots.insert(prototype, shape);
        Ok(shape)
    }

    /// Where objects of this shape keep a property.
    #[inline]
    pub fn lookup(&self, shape: ShapeId, key: Key) -> Option<(Slot, Attrs)> {
        let record = &self.shapes[shape];
        let table = &self.tables[record.table?];
        let position = table.find(key, self.seed)?;
        if position >= record.count {
            return None;
        }
        Some((position, table.entries[position as usize].attrs))
    }

    /// Like [`Heap::lookup`], for filling an inline cache. The outer `None` means "do not cache": a dictionary shape,
    /// which may change its meaning. `Some(None)` is a lasting fact: objects of this shape lack the property.
    pub fn lookup_shared(&self, shape: ShapeId, key: Key) -> Option<Option<(Slot, Attrs)>> {
        if self.is_dictionary(shape) { None } else { Some(self.lookup(shape, key)) }
    }

    /// Is the shape one object's own, and so not to be cached?
    #[inline]
    pub fn is_dictionary(&self, shape: ShapeId) -> bool {
        self.shapes[shape].step == Step::Dictionary
    }

    /// The prototype of objects of this shape.
    #[inline]
    pub fn shape_prototype(&self, shape: ShapeId) -> Option<ObjId> {
        self.shapes[shape].prototype
    }

    /// How many slots objects of this shape use.
    #[inline]
    pub fn slot_count(&self, shape: ShapeId) -> u32 {
        self.shapes[shape].count
    }

    /// The shape that adding this property leads to; the new property's slot is the old shape's
    /// [`Heap::slot_count`]. `None`: not cacheable, use [`Heap::add_property`]. The key must not be in the shape yet.
    pub fn transition(
        &mut self,
        shape: ShapeId,
        key: Key,
        attrs: Attrs,
    ) -> Result<Option<ShapeId>, AllocError> {
        let step = Step::Add(key, attrs);
        let record = &self.shapes[shape];
        if let Some(next) = self.edge(shape, step) {
            return Ok(Some(next));
        }
        let Some(table) = record.table else { return Ok(None) };
        if record.step == Step::Dictionary
            || record.count >= MOST_SHARED
            || self.edge_count(shape) >= MOST_EDGES
            || record.extensible == Extensible::No
        {
            return Ok(None);
        }
        let count = record.count as usize;
        let entry = Property { key, attrs };
        // The image's tables stay as they are: a fork differs from it in as little as possible.
        let extends = self.tables[table].entries.len() == count && table.raw() >= self.base.tables;
        let table = if extends {
            let growth = self.tables[table].growth();
            self.account.charge_many(size_of::<ShapeRecord>() + EDGE + growth, 1)?;
            self.tables[table].push(entry, self.seed);
            table
        } else {
            self.account.charge_many(
                size_of::<ShapeRecord>() + EDGE + PropertyTable::bytes_with_room_for(count),
                2,
            )?;
            let entries = self.tables[table].entries.iter().take(count).copied();
            let mut branch = PropertyTable::with_entries(entries, count, self.seed);
            branch.push(entry, self.seed);
            self.tables.insert(branch)
        };
        Ok(Some(self.add_child(shape, step, table, count as u32 + 1)))
    }

    /// The number that changes whenever an object that is somebody's prototype changes shape. A cache of "objects of
    /// this shape find this key in that slot of that prototype" is valid while it stands still.
    #[inline]
    pub fn prototype_epoch(&self) -> u32 {
        self.epoch
    }

    /// The object is about to change in a way that method caches may have relied on.
    #[inline]
    pub(crate) fn touch(&mut self, obj: ObjId) {
        if self.objects[obj].flags.has(Flags::PROTOTYPE) {
            self.epoch = self.epoch.wrapping_add(1);
        }
    }

    /// Moves an object to the shape with other attributes for one of its properties.
    pub(crate) fn reconfigure(&mut self, obj: ObjId, slot: Slot, attrs: Attrs) -> Result<(), AllocError> {
        if self.is_dictionary(self.shape(obj)) {
            self.make_dictionary(obj)?;
        }
        let shape = self.shape(obj);
        let Some(table) = self.shapes[shape].table else { return Ok(()) };
        let key = self.tables[table].entries[slot as usize].key;
        if self.is_dictionary(shape) {
            self.touch(obj);
            self.tables[table].entries[slot as usize].attrs = attrs;
            return Ok(());
        }
        let step = Step::Reconfigure(key, attrs);
        let next = match self.edge(shape, step) {
            Some(next) => next,
            None if self.edge_count(shape) >= MOST_EDGES || self.shapes[shape].count > 32 => {
                // Each such edge copies the table: objects with many properties change in place instead.
                self.make_dictionary(obj)?;
                return self.reconfigure(obj, slot, attrs);
            }
            None => {
                let count = self.shapes[shape].count as usize;
                self.account.charge_many(
                    size_of::<ShapeRecord>() + EDGE + PropertyTable::bytes_with_room_for(count),
                    2,
                )?;
                let entries = self.tables[table].entries.iter().take(count).copied();
                let mut copy = PropertyTable::with_entries(entries, count, self.seed);
                copy.entries[slot as usize].attrs = attrs;
                let copy = self.tables.insert(copy);
                self.add_child(shape, step, copy, count as u32)
            }
        };
        self.touch(obj);
        self.objects[obj].shape = next;
        Ok(())
    }

    /// Moves an object to the shape with another prototype. The caller has checked that this is allowed.
    pub(crate) fn reparent(&mut self, obj: ObjId, prototype: Option<ObjId>) -> Result<(), AllocError> {
        if self.is_dictionary(self.shape(obj)) {
            self.make_dictionary(obj)?;
        }
        let shape = self.shape(obj);
        if self.is_dictionary(shape) {
            self.shapes[shape].prototype = prototype;
        } else {
            let next = self.side_step(obj, Step::Prototype(prototype))?;
            // A shape that was there already has it, and may be the image's.
            if self.shapes[next].prototype != prototype {
                self.shapes[next].prototype = prototype;
            }
            self.objects[obj].shape = next;
        }
        if let Some(prototype) = prototype {
            self.add_flags(prototype, Flags::PROTOTYPE);
        }
        self.touch(obj);
        Ok(())
    }

    /// Moves an object to the shape that accepts no more properties.
    pub(crate) fn close(&mut self, obj: ObjId) -> Result<(), AllocError> {
        if self.is_dictionary(self.shape(obj)) {
            self.make_dictionary(obj)?;
        }
        let shape = self.shape(obj);
        let next =
            if self.is_dictionary(shape) { shape } else { self.side_step(obj, Step::PreventExtensions)? };
        if self.shapes[next].extensible != Extensible::No {
            self.shapes[next].extensible = Extensible::No;
        }
        self.objects[obj].shape = next;
        self.touch(obj);
        Ok(())
    }

    /// Gives an object a shape of its own, with the same slots.
    pub(crate) fn make_dictionary(&mut self, obj: ObjId) -> Result<(), AllocError> {
        let shape = self.shape(obj);
        // The image's dictionaries are shared by all machines: one that is about to change is copied first.
        if self.is_dictionary(shape) && shape.raw() >= self.base.shapes {
            return Ok(());
        }
        let record = &self.shapes[shape];
        let Some(table) = record.table else { return Ok(()) };
        let count = record.count as usize;
        let (prototype, extensible) = (record.prototype, record.extensible);
        self.account.charge_many(size_of::<ShapeRecord>() + PropertyTable::bytes_with_room_for(count), 2)?;
        let entries = self.tables[table].entries.iter().take(count).copied();
        let own = PropertyTable::with_entries(entries, count, self.seed);
        let own = self.tables.insert(own);
        let shape = self.shapes.insert(ShapeRecord {
            prototype,
            table: Some(own),
            count: count as u32,
            step: Step::Dictionary,
            extensible,
            ..ShapeRecord::vacant()
        });
        self.touch(obj);
        self.objects[obj].shape = shape;
        Ok(())
    }

    /// Where an edge leads.
    #[inline]
    pub(super) fn edge(&self, shape: ShapeId, step: Step) -> Option<ShapeId> {
        let known = self.shapes[shape].edges.get(step);
        if known.is_some() || shape.raw() >= self.base.shapes {
            return known;
        }
        self.edges.get(&shape).and_then(|edges| edges.get(step))
    }

    fn edge_count(&self, shape: ShapeId) -> usize {
        self.shapes[shape].edges.len() + self.edges.get(&shape).map_or(0, Edges::len)
    }

    pub(super) fn add_edge(&mut self, parent: ShapeId, step: Step, child: ShapeId) {
        if parent.raw() < self.base.shapes {
            self.edges.entry(parent).or_insert(Edges::None).insert(step, child);
        } else {
            self.shapes[parent].edges.insert(step, child);
        }
    }

    /// What the edges between the image and our own shapes cost.
    pub(super) fn edge_bytes(&self) -> usize {
        self.edges.values().map(|edges| edges.len() * EDGE).sum()
    }

    /// After marking: edges and roots forget shapes that are about to be freed.
    pub(crate) fn prune_edges(&mut self, mut live: impl FnMut(ShapeId) -> bool) {
        // The image's own edges lead to its own shapes, which live.
        for shape in self.shapes.own_mut() {
            shape.edges.retain(&mut live);
        }
        self.edges.retain(|_, edges| {
            edges.retain(&mut live);
            !matches!(edges, Edges::None)
        });
        self.roots.retain(|_, shape| live(*shape));
    }

    /// The child along an edge that keeps all properties. In a crowded shape the object gets a dictionary instead.
    fn side_step(&mut self, obj: ObjId, step: Step) -> Result<ShapeId, AllocError> {
        let shape = self.shape(obj);
        let record = &self.shapes[shape];
        if let Some(next) = self.edge(shape, step) {
            return Ok(next);
        }
        let Some(table) = record.table else { return Ok(shape) };
        if self.edge_count(shape) >= MOST_EDGES {
            self.make_dictionary(obj)?;
            return Ok(self.shape(obj));
        }
        let count = record.count;
        self.account.charge(size_of::<ShapeRecord>() + EDGE)?;
        Ok(self.add_child(shape, step, table, count))
    }

    fn add_child(&mut self, parent: ShapeId, step: Step, table: TableId, count: u32) -> ShapeId {
        let record = &self.shapes[parent];
        let child = ShapeRecord {
            prototype: record.prototype,
            parent: Some(parent),
            table: Some(table),
            count,
            step,
            extensible: record.extensible,
            edges: Edges::None,
        };
        let child = self.shapes.insert(child);
        self.add_edge(parent, step, child);
        child
    }
}
