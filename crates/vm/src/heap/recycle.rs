//! The memory of a heap that is gone, kept for the next one: a machine that hops is made and dropped again and again.
//!
//! One heap is kept for each thread. It keeps nothing of what the last guest had but room: its own records are dropped at once,
//! and what it wrote to the image's is taken from the image again before anybody gets it. So making a fork costs what the
//! last one wrote to, and no fresh pages. A process that is woken for a hop finds little of its memory in the processor's
//! caches: what is not touched here is what makes the hop short.

use super::arena::{Arena, Id, Record};
use super::atom::Interner;
use super::object::{Slab, Span};
use super::shared::Shared;
use super::{Heap, Limits, Marker, Pace, Spans};
use crate::exec::state::Site;
use crate::value::Value;
use rustc_hash::FxHashMap;
use std::cell::Cell;

/// An arena keeps so many bytes of room; more was a large heap, and few are.
const ROOM: usize = 512 << 10;

thread_local! {
    static SPARE: Cell<Option<Box<Heap>>> = const { Cell::new(None) };
}

/// What becomes of a heap when its machine is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// Its memory is kept for the next.
    Recycled,
    /// It is no fork of an image, or it is the one that is kept.
    Dropped,
}

/// What the machine around a heap copied from the image, kept with the heap's memory.
#[derive(Default)]
pub(crate) struct Beside {
    pub(crate) constants: Vec<Value>,
    pub(crate) sites: Vec<Site>,
}

impl std::fmt::Debug for Beside {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Its content means nothing to anybody but the next machine.
        f.write_str("Beside")
    }
}

impl Drop for Heap {
    fn drop(&mut self) {
        if self.fate == Fate::Recycled && !std::thread::panicking() {
            let mut spare = self.take();
            spare.forget_own();
            spare.fate = Fate::Dropped;
            // A thread that is about to end keeps nothing.
            let _ = SPARE.try_with(|place| place.set(Some(Box::new(spare))));
        }
    }
}

impl Heap {
    /// A fork of a heap that was made by [`Heap::freeze`]: what there is to know about it is known.
    pub(crate) fn fork_image(&self, limits: Limits, pace: Pace) -> Heap {
        // A thread that is about to end has no spare any more.
        let spare = SPARE.try_with(Cell::take).ok().flatten();
        let mut fork = match spare {
            Some(mut spare) if spare.strings.same_base(&self.strings) => {
                spare.become_image(self);
                spare.take()
            }
            _ => self.copy(),
        };
        fork.account = self.account.fork_again(limits, pace);
        fork.fate = Fate::Recycled;
        fork
    }

    /// Whether its memory will be kept for another fork of the same image.
    pub(crate) fn is_recycled(&self) -> bool {
        self.fate == Fate::Recycled
    }

    /// Nobody gets its memory, unless [`Heap::redeem`] says otherwise: it is not known to be whole.
    pub(super) fn condemn(&mut self) {
        self.fate = Fate::Dropped;
    }

    /// It is whole.
    pub(super) fn redeem(&mut self) {
        self.fate = Fate::Recycled;
    }

    /// Leaves nothing behind but what dropping costs nothing.
    fn take(&mut self) -> Heap {
        let hollow = Heap {
            account: self.account.clone(),
            seed: self.seed,
            strings: self.strings.hollow(),
            symbols: Arena::new(),
            bigints: Arena::new(),
            objects: Arena::new(),
            cells: Arena::new(),
            shapes: self.shapes.hollow(),
            tables: self.tables.hollow(),
            edges: FxHashMap::default(),
            accessors: Arena::new(),
            elements: Arena::new(),
            fields: Arena::new(),
            closures: Arena::new(),
            maps: Arena::new(),
            weaks: Arena::new(),
            buffers: Arena::new(),
            views: Arena::new(),
            slab: Slab::new(),
            interner: Interner::default(),
            roots: FxHashMap::default(),
            registry: FxHashMap::default(),
            epoch: 0,
            base: Spans::default(),
            fate: Fate::Dropped,
            index_free_epoch: None,
            marker: Marker::default(),
            beside: Beside::default(),
        };
        std::mem::replace(self, hollow)
    }

    /// Drops everything that is not the image's.
    fn forget_own(&mut self) {
        macro_rules! forget {
            ($($arena:ident)*) => {$(self.$arena.forget_own(ROOM);)*};
        }
        forget!(strings symbols bigints objects cells shapes tables accessors elements fields closures maps weaks buffers
            views);
        self.slab.values.truncate(self.slab.line);
        self.slab.values.shrink_to(ROOM / 8);
        self.slab.free.iter_mut().for_each(|free| free.shrink_to(0));
        self.edges = FxHashMap::default();
        self.registry = FxHashMap::default();
        self.marker.forget(ROOM);
        let Beside { constants, sites } = &mut self.beside;
        if constants.capacity() * size_of::<Value>() + sites.capacity() * size_of::<Site>() > ROOM {
            self.beside = Beside::default();
        }
    }

    /// Makes a fork that has nothing of its own equal to a new one.
    fn become_image(&mut self, image: &Heap) {
        let Heap {
            account: _,
            seed,
            strings: _,
            symbols,
            bigints,
            objects,
            cells,
            shapes: _,
            tables: _,
            edges,
            accessors,
            elements,
            fields,
            closures,
            maps,
            weaks,
            buffers,
            views,
            slab,
            interner,
            roots,
            registry,
            epoch,
            base,
            fate: _,
            index_free_epoch,
            marker: _,
            // Whoever takes it looks after it.
            beside: _,
        } = self;
        // Values of the image change through those who own them, or through somebody who got a span that was free.
        macro_rules! respan {
            ($($arena:ident)*) => {$(
                let spans = $arena.each_touched().filter_map(|(id, _)| image.$arena[id].span());
                spans.for_each(|span| slab.respan(span, &image.slab));
            )*};
        }
        respan!(objects closures fields);
        for (class, free) in (0..).zip(&image.slab.free) {
            free.iter().for_each(|&start| slab.respan(Span { start, class }, &image.slab));
        }
        macro_rules! restore {
            ($($arena:ident)*) => {$($arena.restore(&image.$arena);)*};
        }
        restore!(symbols bigints objects cells accessors elements fields closures maps weaks buffers views);
        slab.free.clone_from(&image.slab.free);
        slab.line = image.slab.line;
        interner.forget_own(base.strings, &image.interner);
        edges.clone_from(&image.edges);
        // What the image has there stays, so only more of them are others.
        if roots.len() != image.roots.len() {
            roots.clone_from(&image.roots);
        }
        registry.clone_from(&image.registry);
        *seed = image.seed;
        *epoch = image.epoch;
        *base = image.base;
        *index_free_epoch = image.index_free_epoch;
    }
}

impl<I: Id, T: Record + Clone> Shared<I, T> {
    fn forget_own(&mut self, room: usize) {
        self.own_arena().forget_own(room);
    }
}

impl<I: Id, T: Record> Arena<I, T> {
    fn forget_own(&mut self, room: usize) {
        self.items.truncate(self.line);
        if self.items.capacity() * size_of::<T>() > self.line * size_of::<T>() + room {
            self.items.shrink_to(self.line);
        }
        self.free = Vec::new();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exec::{Limits as Most, Step, Vm, image};

    /// A guest that writes to whatever it can reach.
    const VANDAL: &str = "
        Array.prototype.map = 1; delete Array.prototype.filter; Object.freeze(Math); JSON.extra = { a: [1, 2, 3] };
        Object.setPrototypeOf(Map.prototype, Set.prototype); Object.getPrototypeOf(ask).own = function () { return this };
        for (const name of ['parse', 'stringify']) JSON[name].mark = Symbol.for(name);
        for (let i = 0; i < 300; i++) globalThis['name' + i] = 'value ' + i;
        Object.defineProperty(String.prototype, 'here', { get() { return 7 } });
        const seen = new WeakMap([[Math, 1], [JSON, {}]]); Promise.prototype.then.call(Promise.resolve(1), v => v);
        Error.prototype.message = 'x'.repeat(100); Object.prototype.anything = seen; Array.prototype.push(1, 2, 3);
        [3, 1, 2].sort(); new Date(0); /a(b)/.exec('ab'); ask(1)";

    #[test]
    fn a_machine_in_used_memory_is_like_a_new_one() {
        let heap = Limits { bytes: 16 << 20, records: 1 << 20 };
        let most = Most { instructions: 1 << 30, call_depth: 100, host_calls: 8, heap };
        let image = &image().expect("the engine works").state.heap;
        let text = |heap: Heap| format!("{heap:#?}");
        let mut fresh = image.copy();
        fresh.account = image.account.fork_again(heap, Pace::Adaptive);
        fresh.fate = Fate::Recycled;
        let fresh = text(fresh);
        for _ in 0..2 {
            let mut vm = Vm::new(most, &["ask"]).expect("the engine starts");
            vm.load(VANDAL).expect("the script loads");
            let step = vm.run();
            assert!(matches!(step, Step::Suspended(_)), "{step:?}");
            let bytes = vm.snapshot().expect("the engine works");
            drop(vm);
            assert!(text(image.fork_image(heap, Pace::Adaptive)) == fresh, "after a run");
            drop(Vm::restore(&bytes, most).expect("it is a snapshot"));
            assert!(text(image.fork_image(heap, Pace::Adaptive)) == fresh, "after a restore");
        }
    }

    #[test]
    fn a_machine_in_used_memory_has_the_constants_and_sites_of_a_new_one() {
        let heap = Limits { bytes: 16 << 20, records: 1 << 20 };
        let most = Most { instructions: 1 << 30, call_depth: 100, host_calls: 8, heap };
        let image = image().expect("the engine works");
        let of = |vm: &Vm| format!("{:?} {:?}", vm.state.constants, vm.state.sites);
        let fresh = format!("{:?} {:?}", image.state.constants, image.state.sites);
        let mut vm = Vm::new(most, &["ask"]).expect("the engine starts");
        vm.load(VANDAL).expect("the script loads");
        assert!(matches!(vm.run(), Step::Suspended(_)));
        assert!(of(&vm) != fresh, "it has found things, and has its own");
        drop(vm);
        assert!(of(&image.fork(most, Pace::Adaptive)) == fresh);
    }

    #[test]
    fn the_memory_of_a_heap_that_turned_out_to_be_wrong_is_nobodys() {
        let heap = Limits { bytes: 16 << 20, records: 1 << 20 };
        let most = Most { instructions: 1 << 30, call_depth: 100, host_calls: 8, heap };
        let image = &image().expect("the engine works").state.heap;
        let mut vm = Vm::new(most, &["ask"]).expect("the engine starts");
        vm.load(VANDAL).expect("the script loads");
        assert!(matches!(vm.run(), Step::Suspended(_)));
        let bytes = vm.snapshot().expect("the engine works");
        drop(vm);
        let fresh = format!("{:#?}", image.fork_image(heap, Pace::Adaptive));
        let mut refused = 0;
        for at in (26..bytes.len()).step_by(37) {
            let mut bent = bytes.clone();
            bent[at] ^= 0x15;
            crate::snapshot::reseal(&mut bent);
            refused += usize::from(Vm::restore(&bent, most).is_err());
            assert!(format!("{:#?}", image.fork_image(heap, Pace::Adaptive)) == fresh, "byte {at}");
        }
        assert!(refused > 10, "{refused}");
    }
}
