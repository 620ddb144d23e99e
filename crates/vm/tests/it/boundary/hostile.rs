//! Whatever a guest, a host or a store makes up: nothing is lost, nothing crashes.

use super::{LIMITS, machine, machine_at};
use outrigger_vm::boundary::Plain;
use outrigger_vm::exec::{Limits, Step, Vm};
use outrigger_vm::heap::Pace;
use outrigger_vm::snapshot::reseal;
use proptest::prelude::*;

/// Any plain value, not very deep.
fn plain() -> impl Strategy<Value = Plain> {
    let leaf = prop_oneof![
        Just(Plain::Undefined),
        Just(Plain::Null),
        any::<bool>().prop_map(Plain::Bool),
        any::<i32>().prop_map(|i| Plain::Number(f64::from(i))),
        prop_oneof![
            Just(-0.0),
            Just(f64::INFINITY),
            any::<f64>().prop_filter("equal to itself", |x| !x.is_nan())
        ]
        .prop_map(Plain::Number),
        ".{0,12}".prop_map(Plain::String),
        "[a-zé→]{30,60}".prop_map(Plain::String),
    ];
    leaf.prop_recursive(5, 60, 8, |inner| {
        let element = prop_oneof![4 => inner.clone(), 1 => Just(Plain::Hole)];
        prop_oneof![
            prop::collection::vec(element, 0..8).prop_map(Plain::Array),
            prop::collection::vec((key(), inner), 0..8).prop_map(Plain::Object),
        ]
    })
}

fn key() -> impl Strategy<Value = String> {
    prop_oneof![
        "[abc]",
        "[0-9]{1,3}",
        "429496729[3-7]",
        ".{0,6}",
        Just("__proto__".to_owned()),
        Just("then".to_owned())
    ]
}

/// The value as a guest has it: each key once, indices first.
fn as_guests_have_it(value: &Plain) -> Plain {
    match value {
        Plain::Array(elements) => Plain::Array(elements.iter().map(as_guests_have_it).collect()),
        Plain::Object(members) => {
            let mut own: Vec<(String, Plain)> = Vec::new();
            for (key, value) in members {
                let value = as_guests_have_it(value);
                match own.iter_mut().find(|(k, _)| k == key) {
                    Some((_, old)) => *old = value,
                    None => own.push((key.clone(), value)),
                }
            }
            let index =
                |key: &str| key.parse::<u32>().ok().filter(|n| n.to_string() == key && *n != u32::MAX);
            own.sort_by_key(|(key, _)| index(key).map_or((1, 0), |n| (0, n)));
            Plain::Object(own)
        }
        _ => value.clone(),
    }
}

/// Equal, and -0 is not 0.
fn same(a: &Plain, b: &Plain) -> bool {
    format!("{a:?}") == format!("{b:?}")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_goes_in_comes_out_through_globals_arguments_answers_and_snapshots(value in plain(), torture in any::<bool>()) {
        let expected = as_guests_have_it(&value);
        let pace = if torture { Pace::Torture } else { Pace::Adaptive };
        let mut vm = machine_at(LIMITS, "tell(x); await ask(x)", pace);
        let x = vm.import(&value).expect("it fits");
        vm.set_global("x", x).expect("it fits");
        prop_assert!(matches!(vm.run(), Step::Suspended(_)));
        let said = vm.arguments(1).expect("it is plain");
        prop_assert!(same(&said[0], &expected), "{said:?}");
        let bytes = vm.snapshot().expect("the engine works");
        let mut vm = Vm::restore(&bytes, LIMITS).expect("it fits");
        let answer = vm.import(&Plain::Null).expect("it fits");
        vm.answer(1, Ok(answer)).expect("it is outstanding");
        prop_assert!(matches!(vm.run(), Step::Suspended(_)));
        let said = vm.arguments(2).expect("it is plain");
        prop_assert!(same(&said[0], &expected), "{said:?}");
        // A `then` in the answer is plain data, too.
        let answer = vm.import(&value).expect("it fits");
        vm.answer(2, Ok(answer)).expect("it is outstanding");
        let Step::Completed(end) = vm.run() else { panic!("it ends") };
        let end = vm.export(end).expect("it is plain");
        prop_assert!(same(&end, &expected), "{end:?}");
    }
}

/// Machines that wait in every way: blocked, queued, half answered.
fn waiting(which: usize) -> Vec<u8> {
    let source = "const o = { a: [1, { b: 'text' }], '7': null }; const go = async n => { try { return await ask(n, o) } catch (e) { return e.message } };
        const all = Promise.all([go(1), go(2), go(3)]); const blocks = () => tell(o, 'é→'); const r = blocks(); all.then(v => [r, ...v, o])";
    let mut vm = machine(LIMITS, source);
    assert!(matches!(vm.run(), Step::Suspended(_)));
    for &id in [&[][..], &[2], &[4], &[4, 3], &[1, 4]][which] {
        let value = vm.import(&Plain::Array(vec![Plain::Number(id as f64)])).expect("it fits");
        let error = vm.host_error("Oops", "no", Some("E"), Some(&Plain::Null)).expect("it fits");
        vm.answer(id, if id == 3 { Err(error) } else { Ok(value) }).expect("it is outstanding");
        if id != 4 {
            vm.run();
        }
    }
    vm.snapshot().expect("the engine works")
}

/// Everything that a host does with a machine that came back.
fn exercise(bytes: &[u8]) {
    let heap = outrigger_vm::heap::Limits { bytes: 2 << 20, records: 1 << 15 };
    let limits = Limits { instructions: 60_000, call_depth: 64, host_calls: 8, heap };
    let Ok(mut vm) = Vm::restore(bytes, limits) else { return };
    vm.capabilities();
    vm.places();
    vm.set_limits(limits).expect("it came back under these");
    for n in 0..20 {
        let step = vm.run_for(500);
        let ids: Vec<u64> = vm.outstanding().map(|call| call.id).collect();
        for &id in &ids {
            // A bent machine may hold what cannot cross; then that is said.
            drop(vm.arguments(id));
        }
        match (step, ids.last()) {
            (Step::Completed(v), _) => {
                drop(vm.export(v));
                break;
            }
            (Step::Threw(v), _) => {
                vm.report(v).headline();
                break;
            }
            (Step::Suspended(_), Some(&id)) => {
                let Ok(value) = vm.import(&Plain::Object(vec![("n".into(), Plain::Number(f64::from(n)))]))
                else {
                    break;
                };
                vm.answer(id, if n % 4 == 3 { Err(value) } else { Ok(value) }).expect("it is outstanding");
            }
            (Step::Paused, _) => {}
            (Step::Suspended(_) | Step::Limit(_) | Step::Stuck, _) => break,
        }
    }
    vm.capabilities();
    vm.snapshot().expect("the engine works");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_bent_machine_is_refused_or_handled_within_its_limits(
        which in 0..5usize,
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..4u8), 1..5),
    ) {
        let mut bytes = waiting(which);
        for (at, byte, how) in edits {
            let at = 26 + at.index(bytes.len() - 26);
            match how {
                0 => bytes[at] = byte,
                1 => bytes[at] = bytes[at].wrapping_add(1),
                2 => bytes[at] ^= 1 << (byte % 8),
                _ => bytes[at] = bytes[at].wrapping_sub(1),
            }
        }
        reseal(&mut bytes);
        exercise(&bytes);
    }
}

#[test]
fn machines_that_wait_in_every_way_come_back() {
    for which in 0..5 {
        let bytes = waiting(which);
        let mut vm = Vm::restore(&bytes, LIMITS).unwrap_or_else(|error| panic!("{which}: {error}"));
        assert!(vm.snapshot().expect("the engine works") == bytes, "{which}");
        exercise(&bytes);
    }
}
