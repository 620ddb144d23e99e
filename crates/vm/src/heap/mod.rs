//! The heap: every guest value that is not a number, and the rules that need no guest code.
//!
//! Everything lives in typed arenas and is named by `u32` ids; there are no pointers, so the whole heap can be copied and
//! written to a snapshot. Nothing here runs guest code, recurses on guest data, or allocates before it has charged
//! (`account`). An operation that answers [`AllocError::Collect`] can be repeated after [`Heap::collect`].
//!
//! What is in the room: [`Key`] and the interner (`atom`), strings and ropes (`string`, `rope`, [`Str`]), shapes (`shape`,
//! `table`), object records (`object`, [`Class`]), properties (`property`, `define`, `assign`, `array`), the payloads of classes
//! (`function`, `collection`, `weak`, `buffer`, `view`), equality, and the collector (`collect`).
//!
//! What callers must know: flatten a string before reading it ([`Heap::text`] does both); hold no id in a Rust local
//! across an allocation unless it is a root; empty all inline caches when a collection reports freed shapes; and repeat
//! the whole operation after `Collect`.
//!
//! A heap can be an *image*, from which others are forked (`shared`): what a fork starts with is not charged to it and never
//! collected. Arenas list the image's records that are written to (`arena`), so that a collection and a snapshot look at
//! nothing else of it. `save` writes in what a fork differs from its image, objects as tables (`rows`) and values in columns
//! (`codec`); `load` and `read` read it back, `check` trusts none of it, and `recycle` keeps the memory of a heap that is gone for the
//! next. A new kind of record, or a new field of one, takes a line in `save`, one in `load` and one in `recycle`.
//!
//! Not here yet: module namespaces (answered `Exotic`), finalisation callbacks, and a dense form for frozen arrays (they
//! are sparse, so reading them costs a hash lookup).
//!
//! ```
//! use outrigger_vm::heap::{Attrs, Found, Heap, Limits, Pace};
//! use outrigger_vm::value::Value;
//!
//! let mut heap = Heap::new(Limits { bytes: 64 << 20, records: 1 << 20 }, Pace::Adaptive, 7);
//! let shape = heap.root_shape(None)?;
//! let point = heap.new_object(shape)?;
//! let x = heap.intern_str("x")?;
//! let x = heap.key_of_string(x)?;
//! heap.add_property(point, x, Attrs::ALL, Value::int(3))?;
//! assert_eq!(heap.get(point, x), Found::Data(Value::int(3)));
//! # Ok::<(), outrigger_vm::heap::AllocError>(())
//! ```

mod account;
mod arena;
mod array;
mod assign;
mod atom;
mod buffer;
mod check;
mod class;
mod codec;
mod collect;
mod collection;
mod define;
mod elements;
mod equality;
mod function;
mod hash;
mod ids;
mod image;
mod key;
mod load;
mod merge;
mod names;
mod object;
mod property;
mod read;
mod recycle;
mod rope;
mod rows;
mod save;
mod shape;
mod shared;
mod sort;
mod string;
mod table;
mod text;
mod view;
mod weak;

pub use account::{AllocError, Limits, OverLimit, Pace, Point};
pub use assign::Assigned;
pub use atom::SymbolKind;
pub use buffer::{MAX_BUFFER, View};
pub use class::{Class, Flags, Payload};
pub use collect::{Collected, Marker};
pub use collection::Cursor;
pub use define::{Defined, Descriptor};
pub use ids::{
    AccessorId, BigId, BufferId, CellId, ClosureId, ElementsId, MapId, ObjId, ShapeId, SlotsId, StrId, SymId,
    TableId, ViewId, WeakId,
};
pub use key::{Key, KeyKind};
pub use names::{atoms, symbols};
pub use object::Slot;
pub use property::{Deleted, Found, NO_SLOT, Own};
pub use sort::SortStep;
pub use string::MAX_LENGTH;
pub use table::Attrs;
pub use text::{Str, Units};
pub use view::{Element, Raw};

pub(crate) use codec::{read_value, read_values, write_value, write_values};
pub(crate) use hash::checksum;
pub(crate) use image::{read_words, write_words};
pub(crate) use recycle::Beside;
pub(crate) use save::Spans;

use arena::Arena;
use rustc_hash::FxHashMap;
use shared::Shared;

/// The heap of one engine.
#[derive(Debug)]
pub struct Heap {
    account: account::Account,
    seed: hash::Seed,
    strings: Shared<StrId, string::StringRecord>,
    symbols: Arena<SymId, atom::SymbolRecord>,
    bigints: Arena<BigId, function::BigRecord>,
    objects: Arena<ObjId, object::ObjectRecord>,
    cells: Arena<CellId, function::Cell>,
    shapes: Shared<ShapeId, shape::ShapeRecord>,
    tables: Shared<TableId, table::PropertyTable>,
    /// What leads from the image's shapes to shapes of our own.
    edges: FxHashMap<ShapeId, shape::Edges>,
    accessors: Arena<AccessorId, function::Accessor>,
    elements: Arena<ElementsId, array::Elements>,
    fields: Arena<SlotsId, function::Fields>,
    closures: Arena<ClosureId, function::Closure>,
    maps: Arena<MapId, collection::OrderedTable>,
    weaks: Arena<WeakId, weak::WeakTable>,
    buffers: Arena<BufferId, buffer::Buffer>,
    views: Arena<ViewId, buffer::ViewRecord>,
    slab: object::Slab,
    interner: atom::Interner,
    /// The root shape of each prototype; does not keep it alive.
    roots: FxHashMap<Option<ObjId>, ShapeId>,
    /// `Symbol.for`, by atom.
    registry: FxHashMap<StrId, SymId>,
    /// See [`Heap::prototype_epoch`].
    epoch: u32,
    /// How many records came with the image this heap was forked from: they are never collected.
    base: Spans,
    /// What becomes of its memory.
    fate: recycle::Fate,
    /// The epoch in which [`Heap::index_free`] said yes last; forgetting it costs only time.
    index_free_epoch: Option<u32>,
    /// Kept between collections for its memory only.
    marker: Marker,
    /// What a machine before this one left.
    pub(crate) beside: recycle::Beside,
}

impl Heap {
    /// A heap with the engine's own names and symbols in it. `seed` keys the hashes that guests could otherwise flood;
    /// no result depends on it.
    pub fn new(limits: Limits, pace: Pace, seed: u64) -> Heap {
        // The names below belong to the engine: they are made without limits, then counted like everything else.
        let boot = Limits { bytes: usize::MAX, records: Limits::MOST_RECORDS };
        let mut heap = Heap {
            account: account::Account::new(boot, Pace::Adaptive),
            seed: hash::Seed::new(seed),
            strings: Shared::new(),
            symbols: Arena::new(),
            bigints: Arena::new(),
            objects: Arena::new(),
            cells: Arena::new(),
            shapes: Shared::new(),
            tables: Shared::new(),
            edges: FxHashMap::default(),
            accessors: Arena::new(),
            elements: Arena::new(),
            fields: Arena::new(),
            closures: Arena::new(),
            maps: Arena::new(),
            weaks: Arena::new(),
            buffers: Arena::new(),
            views: Arena::new(),
            slab: object::Slab::new(),
            interner: atom::Interner::default(),
            roots: FxHashMap::default(),
            registry: FxHashMap::default(),
            epoch: 0,
            base: Spans::default(),
            fate: recycle::Fate::Dropped,
            index_free_epoch: None,
            marker: Marker::default(),
            beside: recycle::Beside::default(),
        };
        heap.add_well_known();
        heap.account = account::Account::with_usage(limits, pace, heap.audit());
        heap
    }

    /// A copy to start another run from: same ids, same content, its own limits and pace. Spare capacity is not copied.
    /// What it starts with is not charged to it, and never collected.
    pub fn fork(&self, limits: Limits, pace: Pace) -> Heap {
        let mut copy = self.copy();
        copy.freeze_records();
        let usage = copy.usage();
        copy.account = self.account.fork(limits, pace, usage);
        copy
    }

    fn copy(&self) -> Heap {
        macro_rules! copy {
            ($($shared:ident)*; $($field:ident)*) => {
                Heap {
                    $($shared: self.$shared.fork(),)*
                    $($field: self.$field.clone(),)*
                    fate: recycle::Fate::Dropped,
                    marker: Marker::default(),
                    beside: recycle::Beside::default(),
                }
            };
        }
        copy!(strings shapes tables;
            account seed symbols bigints objects cells edges accessors elements fields closures maps weaks buffers views
            slab interner roots registry epoch index_free_epoch base)
    }

    /// Everything so far is what a machine starts with: shared or copied, never collected, its free entries lost.
    fn freeze_records(&mut self) {
        let edges = std::mem::take(&mut self.edges);
        self.shapes.freeze_with(edges);
        self.strings.freeze();
        self.tables.freeze();
        macro_rules! forget {
            ($($arena:ident)*) => {$(self.$arena.freeze();)*};
        }
        forget!(symbols bigints objects cells accessors elements fields closures maps weaks buffers views);
        self.slab.line = self.slab.values.len();
        self.base = self.spans();
    }

    /// Makes an image of this heap: a copy to fork from, with every text flat and every hash known.
    pub(crate) fn freeze(&mut self) -> Result<Heap, AllocError> {
        for id in (0..self.strings.span() as u32).map(StrId::from_raw) {
            if !arena::Record::is_vacant(&self.strings[id]) {
                self.flatten(id)?;
                self.string_hash(id);
            }
        }
        self.strings.own_mut().for_each(string::StringRecord::finish);
        self.sweep_interner(0);
        let limits = self.limits();
        Ok(self.fork(limits, Pace::Adaptive))
    }

    /// Prepares for a snapshot, after a collection: the account is as it will be in the machine that is restored.
    pub(crate) fn settle(&mut self) {
        self.account.restart((self.bytes(), self.records()));
    }

    /// Bytes charged and not given back.
    pub fn bytes(&self) -> usize {
        self.account.bytes()
    }

    /// Records allocated and not collected.
    pub fn records(&self) -> usize {
        self.account.records()
    }

    /// The limits this heap was made with.
    pub fn limits(&self) -> Limits {
        self.account.limits()
    }

    /// Other limits, which what the heap holds must fit.
    pub(crate) fn set_limits(&mut self, limits: Limits) {
        self.account.set_limits(limits);
    }

    /// Charges for memory that lives outside the heap but on the guest's account (frames, queues).
    pub fn charge_outside(&mut self, bytes: usize) -> Result<(), AllocError> {
        self.account.grow_outside(bytes)
    }

    /// Gives back what [`Heap::charge_outside`] took.
    pub fn release_outside(&mut self, bytes: usize) {
        self.account.shrink_outside(bytes);
    }
}
