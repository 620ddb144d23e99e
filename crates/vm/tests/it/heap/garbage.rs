//! Collection and limits: nothing in use dies, nothing unused stays, nothing grows past the limit.

use super::Rig;
use num_bigint::BigInt;
use outrigger_vm::heap::{
    AllocError, Attrs, Class, Cursor, Flags, Found, Heap, Limits, OverLimit, Own, Pace, Point,
};
use outrigger_vm::value::{Internal, Value};

const MIB: usize = 1 << 20;

#[test]
fn everything_reachable_from_one_root_survives_and_the_rest_goes() {
    let mut rig = Rig::new(Pace::Torture);
    let (next, pair) = (rig.name("next"), rig.name("pair"));
    let holder = rig.object();
    let baseline = rig.heap.records();
    for round in 0..20 {
        // One of each kind hangs from the holder; the last round's become garbage.
        rig.run(|heap| {
            let shape = heap.root_shape(None)?;
            let text = heap.new_string("a text that does not fit inside its record")?;
            let more = heap.concat(text, text)?;
            let cell = heap.new_cell(Value::string(more))?;
            let home = heap.new_object_with_cell(shape, Class::Number, Value::int(round))?;
            let captures = [Value::internal(Internal::Cell(cell)), Value::int(round)];
            let function = heap.new_closure(shape, Flags::NONE, 3, &captures, Value::object(home))?;
            let array = heap.new_array(shape, &[Value::object(function), Value::HOLE])?;
            let promise =
                heap.new_object_with_slots(shape, Class::Promise, Flags::NONE, &[Value::array(array)])?;
            let map = heap.new_map(shape, Class::Map)?;
            let Some(table) = heap.map_of(map) else { return Ok(()) };
            heap.map_set(table, Value::object(promise), Value::object(promise))?;
            let big = heap.new_bigint(BigInt::from(round))?;
            let setter = heap.new_object_with_cell(shape, Class::BigInt, Value::bigint(big))?;
            heap.add_property(holder, next, Attrs::ALL, Value::object(map))?;
            heap.add_accessor(holder, pair, Attrs::ALL, Value::object(map), Value::object(setter))
        });
        // What was freed by mistake is overwritten by these, all of them garbage.
        rig.collect().expect("within limits");
        for _ in 0..20 {
            rig.run(|heap| {
                let shape = heap.root_shape(None)?;
                let text = heap.new_string("another text that has exactly this length.")?;
                let cell = heap.new_cell(Value::string(text))?;
                let captures = [Value::internal(Internal::Cell(cell)); 2];
                heap.new_closure(shape, Flags::NONE, 9, &captures, Value::UNDEFINED)?;
                heap.new_array(shape, &[Value::NULL, Value::NULL])?;
                heap.new_object_with_slots(shape, Class::Promise, Flags::NONE, &[Value::NULL])?;
                heap.new_bigint(BigInt::from(-1))?;
                heap.new_map(shape, Class::Map)
            });
        }
        rig.collect().expect("within limits");
        let heap = &rig.heap;
        let Found::Data(map) = heap.get(holder, next) else { panic!("no map") };
        let table = map.as_object().and_then(|obj| heap.map_of(obj)).expect("a map");
        let (promise, _, _) = heap.map_next(table, Cursor::START).expect("one entry");
        let slots = promise.as_object().and_then(|obj| heap.slots_of(obj)).expect("a promise");
        let array = heap.slots(slots)[0].as_array().expect("an array");
        let function = heap.array_get(array, 0).and_then(Value::as_object).expect("a function");
        let closure = heap.closure_of(function).expect("a closure");
        assert_eq!((heap.closure_code(closure), heap.capture(closure, 1)), (3, Value::int(round)));
        let cell = heap.capture(closure, 0).as_cell().expect("a cell");
        let text = heap.cell(cell).as_string().expect("a text");
        assert_eq!(heap.string_length(text), 84);
        let inside =
            |value: Value| value.as_object().and_then(|obj| heap.cell_of(obj)).map(|cell| heap.cell(cell));
        assert_eq!(inside(heap.home_object(closure)), Some(Value::int(round)));
        let Own::Accessor { get, set, .. } = heap.get_own(holder, pair) else { panic!("no accessor") };
        assert_eq!(get, map);
        let big = inside(set).and_then(Value::as_bigint).expect("a bigint");
        assert_eq!(heap.bigint(big), &BigInt::from(round));
    }
    rig.run(|heap| heap.delete_own(holder, pair));
    rig.run(|heap| heap.delete_own(holder, next));
    rig.collect().expect("within limits");
    assert_eq!(rig.heap.records(), baseline);
}

#[test]
fn a_list_of_a_million_objects_is_marked_without_recursion() {
    let mut rig = Rig::new(Pace::Adaptive);
    let next = rig.name("next");
    let mut head = Value::NULL;
    rig.roots.push(head);
    for _ in 0..1_000_000 {
        let obj = rig.run(|heap| {
            let shape = heap.root_shape(None)?;
            let shape = match heap.transition(shape, next, Attrs::ALL)? {
                Some(shape) => shape,
                None => shape,
            };
            heap.new_object(shape)
        });
        rig.heap.set_slot(obj, 0, head);
        head = Value::object(obj);
        rig.roots[0] = head;
    }
    rig.collect().expect("within limits");
    assert!(rig.heap.records() > 1_000_000);
    rig.roots.clear();
    rig.collect().expect("within limits");
    assert!(rig.heap.records() < 1000);
}

/// Grows something until the limit; the limit must come, and before the memory is taken.
fn grows_until_the_limit(mut grow: impl FnMut(&mut Rig) -> Result<(), OverLimit>) {
    let limits = Limits { bytes: 16 * MIB, records: 1 << 20 };
    let mut rig = Rig::with_limits(Pace::Adaptive, limits);
    for _ in 0..10_000_000 {
        assert!(rig.heap.bytes() <= limits.bytes);
        if let Err(error) = grow(&mut rig) {
            assert_eq!(error, OverLimit::Bytes { limit: limits.bytes });
            assert!(rig.heap.bytes() > limits.bytes / 4, "there was room left: {}", rig.heap.bytes());
            rig.check_accounts();
            return;
        }
    }
    panic!("the limit never came");
}

#[test]
fn hostile_growth_of_every_kind_meets_the_limit() {
    // An array that is pushed to.
    let mut array = None;
    grows_until_the_limit(|rig| {
        let array = *array.get_or_insert_with(|| rig.array(&[]));
        rig.try_run(|heap| heap.array_push(array, Value::NULL)).map(|_| ())
    });
    // One object with ever more properties.
    let mut object = None;
    let mut n = 0;
    grows_until_the_limit(|rig| {
        let object = *object.get_or_insert_with(|| rig.object());
        n += 1;
        rig.try_run(|heap| {
            let text = heap.new_string(&format!("property {n}"))?;
            let key = heap.key_of_string(text)?;
            heap.add_property(object, key, Attrs::ALL, Value::NULL)
        })
    });
    // A map.
    let mut map = None;
    let mut n = 0;
    grows_until_the_limit(|rig| {
        let map = *map.get_or_insert_with(|| {
            let obj = rig.run(|heap| {
                let shape = heap.root_shape(None)?;
                heap.new_map(shape, Class::Map)
            });
            rig.roots.push(Value::object(obj));
            rig.heap.map_of(obj).expect("a map")
        });
        n += 1;
        rig.try_run(|heap| heap.map_set(map, Value::int(n), Value::NULL))
    });
    // Strings that are kept.
    grows_until_the_limit(|rig| {
        let text = rig.try_run(|heap| heap.new_latin1(&[b'z'; 5000]))?;
        rig.roots.push(Value::string(text));
        Ok(())
    });
    // Registered symbols.
    let mut n = 0;
    grows_until_the_limit(|rig| {
        n += 1;
        rig.try_run(|heap| {
            let text = heap.new_string(&format!("symbol {n}"))?;
            heap.symbol_for(text).map(|_| ())
        })
    });
}

#[test]
fn one_request_beyond_the_limit_is_refused_before_memory_is_touched() {
    let limits = Limits { bytes: 16 * MIB, records: 1 << 20 };
    let mut rig = Rig::with_limits(Pace::Adaptive, limits);
    let refused = rig.try_run(|heap| {
        let shape = heap.root_shape(None)?;
        heap.new_buffer(shape, Class::ArrayBuffer, (1 << 31) - 1, None)
    });
    assert_eq!(refused, Err(OverLimit::Bytes { limit: limits.bytes }));
    // A rope may be far longer than memory; only reading it costs.
    let mut id = rig.run(|heap| heap.new_latin1(&[b'q'; 1 << 10]));
    rig.roots.push(Value::string(id));
    for _ in 0..15 {
        id = rig.run(|heap| heap.concat(id, id));
        rig.roots[0] = Value::string(id);
    }
    assert_eq!(rig.try_run(|heap| heap.flatten(id)), Err(OverLimit::Bytes { limit: limits.bytes }));
}

#[test]
fn the_limit_is_exact_and_one_past_it_is_refused() {
    let probe = Heap::new(Limits { bytes: usize::MAX, records: usize::MAX }, Pace::Adaptive, 1);
    let (start, records) = (probe.bytes(), probe.records());
    let cells = 1000;
    let with = |bytes, records| {
        let mut rig = Rig::with_limits(Pace::Adaptive, Limits { bytes, records });
        for _ in 0..cells {
            let cell = rig.try_run(|heap| heap.new_cell(Value::NULL))?;
            rig.roots.push(Value::internal(Internal::Cell(cell)));
        }
        Ok(())
    };
    assert_eq!(with(start + cells * 8, records + cells), Ok(()));
    let limit = start + cells * 8 - 1;
    assert_eq!(with(limit, records + cells), Err(OverLimit::Bytes { limit }));
    let limit = records + cells - 1;
    assert_eq!(with(start + cells * 8, limit), Err(OverLimit::Records { limit }));
}

#[test]
fn a_program_that_lives_near_the_limit_on_garbage_goes_on() {
    let limits = Limits { bytes: 8 * MIB, records: 1 << 20 };
    let mut rig = Rig::with_limits(Pace::Adaptive, limits);
    let live = rig.run(|heap| heap.new_latin1(&vec![b'l'; 6 * MIB]));
    rig.roots.push(Value::string(live));
    for _ in 0..2000 {
        rig.run(|heap| heap.new_latin1(&[b'g'; 100_000]));
    }
    assert_eq!(rig.heap.string_length(live) as usize, 6 * MIB);
}

#[test]
fn an_instruction_that_needs_several_large_pieces_gets_them_or_an_error() {
    let limits = Limits { bytes: 16 * MIB, records: 1 << 20 };
    let mut rig = Rig::with_limits(Pace::Adaptive, limits);
    let two = |heap: &mut Heap, size: usize| {
        heap.new_latin1(&vec![b'a'; size])?;
        heap.new_latin1(&vec![b'b'; size])?;
        heap.new_latin1(&vec![b'c'; size])
    };
    assert!(rig.try_run(|heap| two(heap, 5 * MIB)).is_ok());
    assert_eq!(rig.try_run(|heap| two(heap, 6 * MIB)), Err(OverLimit::Bytes { limit: limits.bytes }));
}

#[test]
fn collections_come_at_the_same_moments_in_every_run() {
    let moments = || {
        let mut heap = Heap::new(Limits { bytes: 64 * MIB, records: 1 << 22 }, Pace::Adaptive, 99);
        let mut moments = Vec::new();
        for n in 0..400_000u64 {
            if heap.new_cell(Value::NULL).and_then(|_| heap.new_latin1(b"some text of twenty-odd"))
                == Err(AllocError::Collect)
            {
                moments.push((n, heap.bytes()));
                heap.collect(Point(n), |_| ()).expect("all of it is garbage");
            }
        }
        moments
    };
    let first = moments();
    assert!(first.len() > 3);
    assert_eq!(first, moments());
}

#[test]
fn a_copy_of_a_heap_goes_its_own_way_under_its_own_limits() {
    let mut rig = Rig::new(Pace::Adaptive);
    let x = rig.name("x");
    let array = rig.array(&[]);
    for n in 0..1000 {
        rig.run(|heap| heap.array_push(array, Value::int(n)));
    }
    let object = rig.object();
    rig.run(|heap| heap.add_property(object, x, Attrs::ALL, Value::array(array)));
    let limits = Limits { bytes: 100, records: 1 << 20 };
    let mut copy = rig.heap.fork(limits, Pace::Adaptive);
    assert_eq!((copy.bytes(), copy.records()), (0, 0), "what it starts with is not charged to it");
    assert_eq!((copy.bytes(), copy.records()), copy.audit());
    assert_eq!(copy.limits(), limits);
    assert_eq!(copy.get(object, x), Found::Data(Value::array(array)));
    assert!(copy.array_set(array, 7, Value::NULL));
    assert_eq!(rig.heap.array_get(array, 7), Some(Value::int(7)));
    assert_eq!(copy.new_latin1(&[0; 10_000]), Err(AllocError::Collect), "its limit is near");
}

#[test]
fn free_entries_are_given_back_or_count_against_the_limit() {
    let limits = Limits { bytes: 8 * MIB, records: 1 << 20 };
    // Waves of one kind of record each, as many as fit; the guest keeps the last of every wave, or nothing.
    let waves = |keep_last: bool| -> Result<usize, OverLimit> {
        let mut rig = Rig::with_limits(Pace::Adaptive, limits);
        let (mut most, mut pins) = (0, 0);
        for wave in 0..12 {
            let mut last = Value::NULL;
            while rig.heap.bytes() < limits.bytes / 8 * 7 && rig.heap.records() < limits.records {
                last = rig.try_run(|heap| {
                    let shape = heap.root_shape(None)?;
                    Ok(match wave {
                        0 => Value::internal(Internal::Cell(heap.new_cell(Value::NULL)?)),
                        1 => Value::string(heap.new_latin1(b"short")?),
                        2 => Value::object(heap.new_object(shape)?),
                        3 => Value::bigint(heap.new_bigint(BigInt::from(1))?),
                        4 => Value::array(heap.new_array(shape, &[])?),
                        5 => Value::internal(Internal::Slots(heap.new_slots(&[])?)),
                        _ => {
                            let captures = [Value::NULL; 64];
                            let some = &captures[..1 << (wave - 6)];
                            Value::object(heap.new_closure(shape, Flags::NONE, 0, some, Value::NULL)?)
                        }
                    })
                })?;
                rig.roots.push(last);
            }
            rig.roots.truncate(pins);
            if keep_last {
                rig.roots.push(last);
                pins += 1;
            }
            rig.collect()?;
            most = most.max(rig.heap.footprint());
        }
        Ok(most)
    };
    assert!(waves(false).is_ok_and(|most| most <= 4 * limits.bytes));
    assert_eq!(waves(true), Err(OverLimit::Bytes { limit: limits.bytes }));
}
