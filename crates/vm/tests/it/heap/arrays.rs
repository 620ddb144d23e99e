//! Arrays against a sorted map with a length.

use super::Rig;
use outrigger_vm::heap::{Assigned, Attrs, Defined, Deleted, Descriptor, Key, ObjId, Own, Pace, atoms};
use outrigger_vm::value::Value;
use proptest::prelude::*;
use std::collections::BTreeMap;

struct Model {
    elements: BTreeMap<u32, (Value, Attrs)>,
    length: u32,
    fixed: bool,
    closed: bool,
}

impl Model {
    fn define(&mut self, index: u32, value: Value, attrs: Attrs) -> Defined {
        match self.elements.get(&index) {
            None if self.closed || (self.fixed && index >= self.length) => return Defined::No,
            None => {}
            Some(&(old, had)) if !had.has(Attrs::CONFIGURABLE) => {
                let widened = attrs.has(Attrs::CONFIGURABLE)
                    || attrs.has(Attrs::ENUMERABLE) != had.has(Attrs::ENUMERABLE)
                    || (!had.has(Attrs::WRITABLE) && (attrs.has(Attrs::WRITABLE) || old != value));
                if widened {
                    return Defined::No;
                }
            }
            Some(_) => {}
        }
        self.elements.insert(index, (value, attrs));
        self.length = self.length.max(index + 1);
        Defined::Yes
    }

    fn set_length(&mut self, length: u32) -> Defined {
        if length == self.length {
            return Defined::Yes;
        }
        if self.fixed {
            return Defined::No;
        }
        while let Some((&last, &(_, attrs))) = self.elements.range(length..).next_back() {
            if !attrs.has(Attrs::CONFIGURABLE) {
                self.length = last + 1;
                return Defined::No;
            }
            self.elements.remove(&last);
        }
        self.length = length;
        Defined::Yes
    }
}

#[derive(Clone, Debug)]
enum Op {
    Define(u32, i32, u8),
    Length(u32),
    FixLength,
    Push(i32),
    Pop,
    Delete(u32),
    Close,
    Overwrite(u32, i32),
    Assign(u32, i32),
}

fn index() -> impl Strategy<Value = u32> {
    prop_oneof![20 => 0..12u32, 4 => 1000..1100u32, 1 => Just(5_000_000), 1 => Just(2147483648), 1 => Just(4294967294)]
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        8 => (index(), 0..4, prop_oneof![9 => Just(7u8), 1 => 0..8u8]).prop_map(|(i, v, a)| Op::Define(i, v, a)),
        3 => prop_oneof![index(), Just(4294967295)].prop_map(Op::Length),
        1 => Just(Op::FixLength),
        8 => (0..4).prop_map(Op::Push),
        4 => Just(Op::Pop),
        3 => index().prop_map(Op::Delete),
        1 => Just(Op::Close),
        4 => (index(), 0..4).prop_map(|(i, v)| Op::Overwrite(i, v)),
        6 => (index(), 0..4).prop_map(|(i, v)| Op::Assign(i, v)),
    ]
}

fn attrs(bits: u8) -> Attrs {
    [Attrs::WRITABLE, Attrs::ENUMERABLE, Attrs::CONFIGURABLE]
        .into_iter()
        .enumerate()
        .filter(|(n, _)| bits >> n & 1 == 1)
        .fold(Attrs::NONE, |all, (_, a)| all.and(a))
}

fn check(rig: &mut Rig, array: ObjId, model: &Model) {
    assert_eq!(rig.heap.array_length(array), model.length);
    let length = Own::Data {
        value: Value::uint(model.length),
        attrs: if model.fixed { Attrs::NONE } else { Attrs::WRITABLE },
        slot: outrigger_vm::heap::NO_SLOT,
    };
    assert_eq!(rig.heap.get_own(array, Key::atom(atoms::LENGTH)), length);
    let mut keys = Vec::new();
    assert!(rig.heap.own_keys(array, &mut keys));
    assert_eq!(keys.pop(), Some(Key::atom(atoms::LENGTH)));
    let mut listed = BTreeMap::new();
    let mut order = Vec::new();
    for key in keys {
        let index = rig.heap.array_index(key).expect("only indices");
        let Own::Data { value, attrs, .. } = rig.heap.get_own(array, key) else {
            panic!("{index} is no data")
        };
        listed.insert(index, (value, attrs));
        order.push(index);
    }
    assert!(order.is_sorted());
    assert_eq!(listed, model.elements);
    rig.check_accounts();
}

fn replay(pace: Pace, ops: &[Op]) {
    let mut rig = Rig::new(pace);
    let array = rig.array(&[]);
    let mut model = Model { elements: BTreeMap::new(), length: 0, fixed: false, closed: false };
    for op in ops {
        match *op {
            Op::Define(index, value, bits) => {
                let (value, attrs) = (Value::int(value), attrs(bits));
                let done = rig.run(|heap| {
                    let key = heap.key_of_index(index)?;
                    heap.define_own(array, key, &Descriptor::data(value, attrs))
                });
                assert_eq!(done, model.define(index, value, attrs), "{op:?}");
            }
            Op::Length(length) => {
                let desc = Descriptor::value(Value::uint(length));
                let done = rig.run(|heap| heap.define_own(array, Key::atom(atoms::LENGTH), &desc));
                assert_eq!(done, model.set_length(length), "{op:?}");
            }
            Op::FixLength => {
                let desc = Descriptor { writable: Some(false), ..Descriptor::EMPTY };
                let done = rig.run(|heap| heap.define_own(array, Key::atom(atoms::LENGTH), &desc));
                assert_eq!(done, Defined::Yes);
                model.fixed = true;
            }
            Op::Push(value) => {
                if rig.run(|heap| heap.array_push(array, Value::int(value))) {
                    assert_eq!(model.define(model.length, Value::int(value), Attrs::ALL), Defined::Yes);
                }
            }
            Op::Pop => {
                if let Some(value) = rig.heap.array_pop(array) {
                    let last = model.elements.remove(&(model.length - 1));
                    assert_eq!(last, Some((value, Attrs::ALL)));
                    model.length -= 1;
                }
            }
            Op::Delete(index) => {
                let done = rig.run(|heap| {
                    let key = heap.key_of_index(index)?;
                    heap.delete_own(array, key)
                });
                let stuck = model.elements.get(&index).is_some_and(|(_, a)| !a.has(Attrs::CONFIGURABLE));
                assert_eq!(done, if stuck { Deleted::No } else { Deleted::Yes });
                if !stuck {
                    model.elements.remove(&index);
                }
            }
            Op::Close => {
                rig.run(|heap| heap.prevent_extensions(array));
                model.closed = true;
            }
            Op::Assign(index, value) => {
                let value = Value::int(value);
                let done = rig.run(|heap| {
                    let key = heap.key_of_index(index)?;
                    heap.assign(array, key, value)
                });
                let expected = match model.elements.get(&index) {
                    Some((_, attrs)) if !attrs.has(Attrs::WRITABLE) => Defined::No,
                    Some(&(_, attrs)) => model.define(index, value, attrs),
                    None => model.define(index, value, Attrs::ALL),
                };
                assert_eq!(done == Assigned::Yes, expected == Defined::Yes, "{op:?}");
            }
            Op::Overwrite(index, value) => {
                if rig.heap.array_set(array, index, Value::int(value)) {
                    let place =
                        model.elements.get_mut(&index).expect("only existing elements are overwritten");
                    assert!(place.1.has(Attrs::WRITABLE));
                    place.0 = Value::int(value);
                }
            }
        }
        check(&mut rig, array, &model);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn an_array_behaves_like_a_sorted_map_with_a_length(ops in proptest::collection::vec(op(), 0..40)) {
        replay(Pace::Adaptive, &ops);
    }

    #[test]
    fn an_array_survives_a_collection_before_every_allocation(ops in proptest::collection::vec(op(), 0..20)) {
        replay(Pace::Torture, &ops);
    }
}

#[test]
fn an_array_that_shrinks_gives_its_memory_back() {
    let mut rig = Rig::new(Pace::Adaptive);
    let array = rig.array(&[]);
    let empty = rig.heap.bytes();
    for n in 0..100_000 {
        assert!(rig.run(|heap| heap.array_push(array, Value::int(n))));
    }
    assert!(rig.heap.bytes() > empty + 800_000);
    while rig.heap.array_pop(array).is_some() {}
    assert!(rig.heap.bytes() < empty + 1000);
    rig.check_accounts();
}

#[test]
fn a_far_element_does_not_cost_what_lies_between() {
    let mut rig = Rig::new(Pace::Adaptive);
    let array = rig.array(&[Value::int(1)]);
    let before = rig.heap.bytes();
    for index in [1 << 20, (1 << 31) - 1, 1 << 31, u32::MAX - 1] {
        let done = rig.run(|heap| {
            let key = heap.key_of_index(index)?;
            heap.define_own(array, key, &Descriptor::data(Value::int(2), Attrs::ALL))
        });
        assert_eq!(done, Defined::Yes);
        assert_eq!(rig.heap.array_length(array), index + 1);
    }
    assert!(rig.heap.bytes() < before + 2000);
}

#[test]
fn a_length_that_is_no_length_is_told_apart() {
    let mut rig = Rig::new(Pace::Adaptive);
    let array = rig.array(&[]);
    let mut set =
        |value| rig.run(|heap| heap.define_own(array, Key::atom(atoms::LENGTH), &Descriptor::value(value)));
    assert_eq!(set(Value::uint(u32::MAX)), Defined::Yes);
    assert_eq!(set(Value::number(4294967296.0)), Defined::InvalidLength);
    assert_eq!(set(Value::int(-1)), Defined::InvalidLength);
    assert_eq!(set(Value::number(1.5)), Defined::InvalidLength);
    assert_eq!(set(Value::TRUE), Defined::Exotic);
}

#[test]
fn a_long_sparse_array_is_emptied_from_its_end_in_reasonable_time() {
    let mut rig = Rig::new(Pace::Adaptive);
    let array = rig.array(&[]);
    for index in 0..30_000 {
        // Not enumerable, so that the elements live in the property table.
        let desc = Descriptor::data(Value::NULL, Attrs::HIDDEN);
        let key = Key::index(index).expect("small");
        assert_eq!(rig.run(|heap| heap.define_own(array, key, &desc)), Defined::Yes);
    }
    for length in (0..30_000).rev() {
        assert_eq!(rig.run(|heap| heap.set_array_length(array, length)), Defined::Yes);
    }
    let mut keys = Vec::new();
    assert!(rig.heap.own_keys(array, &mut keys));
    assert_eq!(keys, [Key::atom(atoms::LENGTH)]);
}
