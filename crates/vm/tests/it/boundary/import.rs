//! Values on their way in.

use super::{LIMITS, machine, machine_at, nested, outcome, run, text};
use outrigger_vm::boundary::{ImportError, Plain};
use outrigger_vm::exec::{Limit, Limits, Step, Vm};
use outrigger_vm::heap::{OverLimit, Pace};

/// Plain data goes in as the input `x`; the script's value comes out.
fn with_input(x: &Plain, source: &str) -> String {
    let mut vm = machine(LIMITS, source);
    let value = vm.import(x).expect("it fits");
    vm.set_global("x", value).expect("it fits");
    run(&mut vm)
}

fn everything() -> Plain {
    let inner = vec![
        ("name".to_owned(), text("häß→😀")),
        ("7".to_owned(), Plain::Number(-0.0)),
        ("holes".to_owned(), Plain::Array(vec![Plain::Hole, Plain::Undefined, Plain::Hole])),
        ("__proto__".to_owned(), Plain::Null),
        ("é".to_owned(), Plain::Number(f64::INFINITY)),
    ];
    Plain::Array(vec![
        Plain::Object(inner.clone()),
        Plain::Bool(true),
        Plain::Array(vec![]),
        Plain::Object(vec![]),
        text(""),
        Plain::Object(inner),
        Plain::Number(1e300),
    ])
}

#[test]
fn what_goes_in_comes_out() {
    for pace in [Pace::Adaptive, Pace::Torture] {
        let mut vm = machine_at(LIMITS, "x", pace);
        let value = vm.import(&everything()).expect("it fits");
        vm.set_global("x", value).expect("it fits");
        let Step::Completed(value) = vm.run() else { panic!("it ends") };
        let Ok(Plain::Array(ref found)) = vm.export(value) else { panic!("it is plain") };
        let mut expected = everything();
        let Plain::Array(expected) = &mut expected else { panic!("it is an array") };
        for i in [0, 5] {
            // The order of the language: integers first.
            if let Plain::Object(members) = &mut expected[i] {
                members.swap(0, 1);
            }
        }
        assert_eq!(found, expected);
    }
}

#[test]
fn imported_data_is_ordinary_to_the_guest() {
    let x = Plain::Object(vec![
        ("__proto__".into(), Plain::Number(1.0)),
        ("a".into(), Plain::Number(2.0)),
        ("list".into(), Plain::Array(vec![Plain::Hole, Plain::Number(3.0)])),
        ("a".into(), Plain::Number(4.0)),
    ]);
    let source = "[Object.keys(x).join(), x.a, Object.getPrototypeOf(x) === Object.prototype, Object.hasOwn(x, '__proto__'),
        0 in x.list, x.list instanceof Array, x.list.length, (x.a = 5, x.a)]";
    assert_eq!(with_input(&x, source), "[\"__proto__,a,list\", 4, true, true, false, true, 2, 5]");
}

#[test]
fn objects_with_very_many_or_repeated_keys_are_whole() {
    let mut members: Vec<(String, Plain)> =
        (0..3000).map(|i| (format!("k{i}"), Plain::Number(f64::from(i)))).collect();
    members.push(("k5".into(), text("again")));
    let source = "[Object.keys(x).length, x.k5, x.k2999, Object.keys(x)[5]]";
    assert_eq!(with_input(&Plain::Object(members), source), "[3000, \"again\", 2999, \"k5\"]");
}

#[test]
fn a_key_is_not_taken_for_another_one_with_the_same_bytes() {
    // The UTF-8 bytes of é are the Latin-1 bytes of Ã©.
    let one = Plain::Object(vec![("Ã©".into(), Plain::Number(1.0))]);
    let two = Plain::Object(vec![("é".into(), Plain::Number(2.0))]);
    let x = Plain::Array(vec![one, two]);
    assert_eq!(with_input(&x, "[Object.keys(x[0])[0], Object.keys(x[1])[0]]"), "[\"Ã©\", \"é\"]");
}

#[test]
fn a_hole_belongs_into_an_array_and_depth_ends_at_128() {
    let mut vm = machine(LIMITS, "1");
    assert_eq!(vm.import(&Plain::Hole), Err(ImportError::Hole));
    assert_eq!(vm.import(&Plain::Object(vec![("a".into(), Plain::Hole)])), Err(ImportError::Hole));
    let array = Plain::Array(vec![Plain::Array(vec![]), Plain::Hole]);
    assert!(vm.import(&array).is_ok());
    assert!(vm.import(&nested(128)).is_ok());
    assert_eq!(vm.import(&nested(129)), Err(ImportError::Nesting));
    assert_eq!(vm.import(&nested(1_000_000)), Err(ImportError::Nesting));
    assert_eq!(run(&mut vm), "1", "a refused value leaves the machine as it was");
}

#[test]
fn an_import_is_paid_for_before_it_is_made() {
    for (plain, cost) in [
        (Plain::Null, 1),
        (text(&"x".repeat(512)), 3),
        (Plain::Array(vec![Plain::Null; 99]), 100),
        (Plain::Object(vec![("k".repeat(256), Plain::Null)]), 3),
    ] {
        let mut vm = machine(Limits { instructions: cost + 4, ..LIMITS }, "1");
        let before = vm.instructions_used();
        vm.import(&plain).expect("it is paid for");
        assert_eq!(vm.instructions_used() - before, cost, "{plain:?}");
        let mut vm = machine(Limits { instructions: before + cost - 1, ..LIMITS }, "1");
        assert_eq!(vm.import(&plain), Err(ImportError::Limit(Limit::Instructions)), "{plain:?}");
        assert_eq!(vm.run(), Step::Limit(Limit::Instructions), "the run is over");
    }
}

#[test]
fn an_import_that_does_not_fit_the_heap_ends_the_run() {
    let rich = Limits { instructions: 1 << 40, ..LIMITS };
    let full = ImportError::Limit(Limit::Heap(OverLimit::Bytes { limit: 8 << 20 }));
    let mut vm = machine(rich, "1");
    assert_eq!(vm.import(&text(&"x".repeat(16 << 20))), Err(full.clone()));
    assert_eq!(vm.run(), Step::Limit(Limit::Heap(OverLimit::Bytes { limit: 8 << 20 })));
    let mut vm = machine(rich, "1");
    let wide = Plain::Array((0..200_000).map(|_| Plain::Array(vec![Plain::Null])).collect());
    assert_eq!(vm.import(&wide), Err(full));
    let few = Limits { heap: outrigger_vm::heap::Limits { records: 100, ..rich.heap }, ..rich };
    let mut vm = machine(few, "1");
    let many = Plain::Array((0..200).map(|i| text(&format!("text {i}"))).collect());
    assert_eq!(vm.import(&many), Err(ImportError::Limit(Limit::Heap(OverLimit::Records { limit: 100 }))));
}

#[test]
fn imports_that_were_used_up_are_garbage() {
    // Each of them is a quarter of the heap: they fit one after another, not together.
    let mut vm = machine(LIMITS, "let n = 0; for (let i = 0; i < 40; i++) n += ask().length; n");
    let piece = text(&"x".repeat(2 << 20));
    let mut step = vm.run();
    while let Step::Suspended(call) = step {
        let value = vm.import(&piece).unwrap_or_else(|error| panic!("call {}: {error}", call.id));
        vm.answer(call.id, Ok(value)).expect("it is outstanding");
        step = vm.run();
    }
    assert_eq!(outcome(&mut vm, step), format!("{}", 40 * (2 << 20)));
}

#[test]
fn several_imports_before_a_run_are_all_kept() {
    for pace in [Pace::Adaptive, Pace::Torture] {
        let mut vm = machine_at(LIMITS, "await Promise.all([ask(), ask(), ask()])", pace);
        assert!(matches!(vm.run(), Step::Suspended(_)));
        let values: Vec<_> = (0..3)
            .map(|i| {
                vm.import(&Plain::Object(vec![("n".into(), text(&format!("number {i}")))])).expect("it fits")
            })
            .collect();
        for (i, value) in values.into_iter().enumerate().rev() {
            vm.answer(i as u64 + 1, Ok(value)).expect("it is outstanding");
        }
        assert_eq!(run(&mut vm), "[{n: \"number 0\"}, {n: \"number 1\"}, {n: \"number 2\"}]");
    }
}

#[test]
fn inputs_shadow_capabilities_which_shadow_built_ins() {
    let mut vm = Vm::new(LIMITS, &["Map", "ask", "tools.search"]).expect("the engine starts");
    vm.convert_arguments();
    let five = vm.import(&Plain::Number(5.0)).expect("it fits");
    vm.set_global("ask", five).expect("it fits");
    vm.set_global("not an identifier", five).expect("it fits");
    vm.load("[ask, globalThis['not an identifier'], Map(1), globalThis['tools.search']('a')]")
        .expect("it loads");
    assert_eq!(run(&mut vm), "1: Map(1)");
    let step = vm.resume(Ok(five));
    assert_eq!(outcome(&mut vm, step), "2: tools.search(\"a\")");
    let step = vm.resume(Ok(five));
    assert_eq!(outcome(&mut vm, step), "[5, 5, 5, 5]");
}

#[test]
fn the_guest_may_assign_to_its_inputs() {
    assert_eq!(with_input(&Plain::Number(1.0), "x += 1; x"), "2");
    assert_eq!(with_input(&Plain::Number(1.0), "const f = () => { const x = 7; return x }; f() + x"), "8");
    assert_eq!(with_input(&Plain::Number(1.0), "delete globalThis.x; typeof x"), "\"undefined\"");
}
