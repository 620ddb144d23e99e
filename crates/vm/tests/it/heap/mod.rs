//! The heap against naive models, and its promises about limits, accounting and collection.

mod arrays;
mod collections;
mod equality;
mod garbage;
mod objects;
mod strings;

use outrigger_vm::heap::{AllocError, Heap, Key, Limits, Marker, OverLimit, Pace, Point};
use outrigger_vm::value::Value;

/// A heap with a caller that collects and repeats, as the interpreter does.
pub(crate) struct Rig {
    pub(crate) heap: Heap,
    /// What is in use.
    pub(crate) roots: Vec<Value>,
    /// Keys in use.
    pub(crate) keys: Vec<Key>,
    point: u64,
}

impl Rig {
    pub(crate) fn new(pace: Pace) -> Rig {
        Rig::with_limits(pace, Limits { bytes: 1 << 30, records: 1 << 24 })
    }

    pub(crate) fn with_limits(pace: Pace, limits: Limits) -> Rig {
        Rig { heap: Heap::new(limits, pace, 0x5EED), roots: Vec::new(), keys: Vec::new(), point: 0 }
    }

    /// Does one thing that may allocate; panics when the limit is reached.
    pub(crate) fn run<T>(&mut self, op: impl FnMut(&mut Heap) -> Result<T, AllocError>) -> T {
        self.try_run(op).expect("the limit is far away")
    }

    /// Does one thing that may allocate.
    pub(crate) fn try_run<T>(
        &mut self,
        mut op: impl FnMut(&mut Heap) -> Result<T, AllocError>,
    ) -> Result<T, OverLimit> {
        self.point += 1;
        loop {
            match op(&mut self.heap) {
                Ok(done) => return Ok(done),
                Err(AllocError::Collect) => self.collect()?,
                Err(AllocError::TooLong) => panic!("too long"),
            }
        }
    }

    pub(crate) fn collect(&mut self) -> Result<(), OverLimit> {
        let (roots, keys) = (&self.roots, &self.keys);
        self.heap.collect(Point(self.point), |marker: &mut Marker| {
            marker.values(roots);
            keys.iter().for_each(|&key| marker.key(key));
        })?;
        self.check_accounts();
        Ok(())
    }

    /// The counters equal the sum over everything alive.
    pub(crate) fn check_accounts(&self) {
        assert_eq!((self.heap.bytes(), self.heap.records()), self.heap.audit());
    }

    pub(crate) fn name(&mut self, text: &str) -> Key {
        let key = self.run(|heap| {
            let id = heap.new_string(text)?;
            heap.key_of_string(id)
        });
        self.keys.push(key);
        key
    }

    pub(crate) fn object(&mut self) -> outrigger_vm::heap::ObjId {
        let id = self.run(|heap| {
            let shape = heap.root_shape(None)?;
            heap.new_object(shape)
        });
        self.roots.push(Value::object(id));
        id
    }

    pub(crate) fn array(&mut self, values: &[Value]) -> outrigger_vm::heap::ObjId {
        let id = self.run(|heap| {
            let shape = heap.root_shape(None)?;
            heap.new_array(shape, values)
        });
        self.roots.push(Value::array(id));
        id
    }
}
