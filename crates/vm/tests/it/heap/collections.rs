//! Map and Set against a list, with iterations under way; weak tables; buffers.

use super::Rig;
use num_bigint::BigInt;
use outrigger_vm::heap::{Class, Cursor, MapId, ObjId, Pace};
use outrigger_vm::value::Value;
use proptest::prelude::*;

fn new_map(rig: &mut Rig) -> (ObjId, MapId) {
    let obj = rig.run(|heap| {
        let shape = heap.root_shape(None)?;
        heap.new_map(shape, Class::Map)
    });
    rig.roots.push(Value::object(obj));
    (obj, rig.heap.map_of(obj).expect("a map"))
}

/// Key number `n`: all kinds of values, strings and bigints freshly made every time.
fn key(rig: &mut Rig, n: u8) -> Value {
    let value = match n % 4 {
        0 => Value::int(i32::from(n)),
        1 => Value::number(f64::from(n) + 0.5),
        2 => Value::string(rig.run(|heap| heap.new_string(&format!("key number {n} with a long tail")))),
        _ => Value::bigint(rig.run(|heap| heap.new_bigint(BigInt::from(n) << 100))),
    };
    rig.roots.push(value);
    value
}

#[derive(Clone, Debug)]
enum Op {
    Set(u8, i32),
    Delete(u8),
    Clear,
    /// Starts an iteration.
    Begin,
    /// Takes a step in iteration number n.
    Step(usize),
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        10 => (0..40u8, any::<i32>()).prop_map(|(k, v)| Op::Set(k, v)),
        8 => (0..40u8).prop_map(Op::Delete),
        1 => Just(Op::Clear),
        1 => Just(Op::Begin),
        6 => any::<usize>().prop_map(Op::Step),
    ]
}

/// The specification's own model: a list whose deleted entries stay as gaps, iterations as positions in it.
fn replay(pace: Pace, ops: &[Op]) {
    let mut rig = Rig::new(pace);
    let (_, map) = new_map(&mut rig);
    let mut list: Vec<Option<(u8, i32)>> = Vec::new();
    let mut walks: Vec<(Cursor, usize)> = vec![(Cursor::START, 0)];
    for op in ops {
        let kept = rig.roots.len();
        match *op {
            Op::Set(k, v) => {
                let key = key(&mut rig, k);
                rig.run(|heap| heap.map_set(map, key, Value::int(v)));
                match list.iter_mut().flatten().find(|(known, _)| *known == k) {
                    Some(entry) => entry.1 = v,
                    None => list.push(Some((k, v))),
                }
            }
            Op::Delete(k) => {
                let key = key(&mut rig, k);
                let gone = rig.run(|heap| heap.map_delete(map, key));
                let place = list.iter_mut().find(|e| e.is_some_and(|(known, _)| known == k));
                assert_eq!(gone, place.is_some());
                if let Some(place) = place {
                    *place = None;
                }
            }
            Op::Clear => {
                rig.heap.map_clear(map);
                list.iter_mut().for_each(|e| *e = None);
            }
            Op::Begin => walks.push((Cursor::START, 0)),
            Op::Step(n) => {
                let n = n % walks.len();
                let (cursor, position) = walks[n];
                let expected = list.iter().enumerate().skip(position).find_map(|(at, e)| e.map(|e| (at, e)));
                let actual = rig.heap.map_next(map, cursor);
                match (expected, actual) {
                    (None, None) => {}
                    (Some((at, (k, v))), Some((found, value, next))) => {
                        let key = key(&mut rig, k);
                        assert!(rig.run(|heap| heap.same_value_zero(found, key)));
                        assert_eq!(value, Value::int(v));
                        walks[n] = (next, at + 1);
                    }
                    other => panic!("{other:?}"),
                }
            }
        }
        rig.roots.truncate(kept);
        assert_eq!(rig.heap.map_size(map) as usize, list.iter().flatten().count());
        rig.check_accounts();
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_map_keeps_order_while_iterations_run(ops in proptest::collection::vec(op(), 0..150)) {
        replay(Pace::Adaptive, &ops);
    }

    #[test]
    fn a_map_survives_a_collection_before_every_allocation(ops in proptest::collection::vec(op(), 0..40)) {
        replay(Pace::Torture, &ops);
    }
}

#[test]
fn zero_and_minus_zero_are_one_key_and_nan_is_one_key() {
    let mut rig = Rig::new(Pace::Adaptive);
    let (_, map) = new_map(&mut rig);
    rig.run(|heap| heap.map_set(map, Value::number(-0.0), Value::int(1)));
    assert_eq!(rig.run(|heap| heap.map_get(map, Value::ZERO)), Some(Value::int(1)));
    rig.run(|heap| heap.map_set(map, Value::NAN, Value::int(2)));
    let other_nan = Value::number(f64::from_bits(0xFFF8_0000_0000_0000));
    assert_eq!(rig.run(|heap| heap.map_get(map, other_nan)), Some(Value::int(2)));
    let stored = rig.heap.map_next(map, Cursor::START).expect("an entry").0;
    assert_eq!(stored, Value::ZERO, "-0 is normalised on the way in");
}

#[test]
fn a_queue_that_moves_through_a_map_stays_small() {
    let mut rig = Rig::new(Pace::Adaptive);
    let (_, map) = new_map(&mut rig);
    let before = rig.heap.bytes();
    for n in 0..100_000 {
        rig.run(|heap| heap.map_set(map, Value::int(n), Value::NULL));
        if n >= 10 {
            assert!(rig.run(|heap| heap.map_delete(map, Value::int(n - 10))));
        }
    }
    assert!(rig.heap.bytes() < before + 4000, "{}", rig.heap.bytes() - before);
    let first = rig.heap.map_next(map, Cursor::START).expect("ten are left");
    assert_eq!(first.0, Value::int(99_990));
}

#[test]
fn the_oldest_of_many_is_found_at_once() {
    let mut rig = Rig::new(Pace::Adaptive);
    let (_, map) = new_map(&mut rig);
    let size = 50_000;
    for n in 0..size {
        rig.run(|heap| heap.map_set(map, Value::int(n), Value::NULL));
    }
    // A cache that drops its oldest entry; stepping over what was dropped before would take minutes.
    for n in 0..300_000 {
        let (oldest, _, _) = rig.heap.map_next(map, Cursor::START).expect("never empty");
        assert_eq!(oldest, Value::int(n));
        assert!(rig.run(|heap| heap.map_delete(map, oldest)));
        rig.run(|heap| heap.map_set(map, Value::int(n + size), Value::NULL));
    }
    assert_eq!(rig.heap.map_size(map), size as u32);
}

fn new_object(rig: &mut Rig) -> Value {
    let obj = rig.object();
    rig.roots.pop();
    Value::object(obj)
}

#[test]
fn a_weak_entry_lives_exactly_as_long_as_its_key_even_along_a_chain() {
    let mut rig = Rig::new(Pace::Adaptive);
    let weak = rig.run(|heap| {
        let shape = heap.root_shape(None)?;
        heap.new_weak(shape, Class::WeakMap)
    });
    rig.roots.push(Value::object(weak));
    let table = rig.heap.weak_of(weak).expect("a weak table");
    // Each value is the next key; the last value is the first key again.
    let chain: Vec<Value> = (0..1000).map(|_| new_object(&mut rig)).collect();
    for n in 0..chain.len() {
        let (key, value) = (chain[n], chain[(n + 1) % chain.len()]);
        rig.run(|heap| heap.weak_set(table, key, value));
    }
    rig.roots.push(chain[500]);
    rig.collect().expect("within limits");
    assert!(chain.iter().all(|&key| rig.heap.weak_get(table, key).is_some()));
    rig.roots.pop();
    rig.collect().expect("within limits");
    assert!(chain.iter().all(|&key| rig.heap.weak_get(table, key).is_none()));
}

#[test]
fn a_weak_reference_keeps_its_target_so_that_a_collection_never_shows() {
    let mut rig = Rig::new(Pace::Adaptive);
    let target = new_object(&mut rig);
    let weak = rig.run(|heap| {
        let shape = heap.root_shape(None)?;
        heap.new_object_with_cell(shape, Class::WeakRef, target)
    });
    rig.roots.push(Value::object(weak));
    let before = rig.heap.records();
    rig.collect().expect("within limits");
    assert_eq!(rig.heap.cell(rig.heap.cell_of(weak).expect("a cell")), target);
    assert_eq!(rig.heap.records(), before, "the target is alive");
}

#[test]
fn a_buffer_grows_shrinks_and_detaches_on_the_account() {
    let mut rig = Rig::new(Pace::Adaptive);
    let obj = rig.run(|heap| {
        let shape = heap.root_shape(None)?;
        heap.new_buffer(shape, Class::ArrayBuffer, 100, Some(1000))
    });
    rig.roots.push(Value::object(obj));
    let id = rig.heap.buffer_of(obj).expect("a buffer");
    rig.heap.buffer_mut(id)[99] = 7;
    rig.run(|heap| heap.resize_buffer(id, 1000));
    assert_eq!((rig.heap.buffer(id)[99], rig.heap.buffer(id)[100], rig.heap.buffer(id).len()), (7, 0, 1000));
    rig.check_accounts();
    rig.run(|heap| heap.resize_buffer(id, 50));
    rig.run(|heap| heap.resize_buffer(id, 100));
    assert_eq!(rig.heap.buffer(id)[99], 0, "what was cut off does not come back");
    rig.heap.detach_buffer(id);
    assert!(rig.heap.is_detached(id));
    assert_eq!(rig.heap.buffer(id), []);
    rig.check_accounts();
}

#[test]
fn a_weak_entry_that_is_deleted_is_given_back() {
    let mut rig = Rig::new(Pace::Adaptive);
    let weak = rig.run(|heap| {
        let shape = heap.root_shape(None)?;
        heap.new_weak(shape, Class::WeakSet)
    });
    rig.roots.push(Value::object(weak));
    let table = rig.heap.weak_of(weak).expect("a weak table");
    let key = Value::object(rig.object());
    rig.run(|heap| heap.weak_set(table, key, Value::TRUE));
    assert!(rig.heap.weak_delete(table, key));
    assert!(!rig.heap.weak_delete(table, key));
    assert_eq!(rig.heap.weak_get(table, key), None);
    rig.check_accounts();
}
