//! What a machine holds and may use, asserted anew.

use super::{LIMITS, machine, run};
use outrigger_vm::boundary::Plain;
use outrigger_vm::exec::{Limits, Step, Vm};
use outrigger_vm::snapshot::SnapshotError;

#[test]
fn a_machine_names_every_function_of_the_host_it_still_holds() {
    for (source, expected) in [
        ("ask(1)", &["ask", "console.log", "tell"][..]),
        ("delete globalThis.tell; ask(1)", &["ask", "console.log"]),
        (
            "const kept = { deep: [tell] }; delete globalThis.tell; ask(1); kept",
            &["ask", "console.log", "tell"],
        ),
        (
            "const f = () => g; const g = tell; delete globalThis.tell; ask(1); f",
            &["ask", "console.log", "tell"],
        ),
        ("delete console.log; delete globalThis.tell; ask(1)", &["ask"]),
        // The call that it waits for is answered to somebody, even if nobody can make it again.
        ("const f = ask; delete globalThis.ask; globalThis.tell = 1; f(1)", &["ask", "console.log"]),
        (
            "ask(tell.name); new Map([[tell.bind(null), 1]]); globalThis.tell = undefined; ask(2)",
            &["ask", "console.log", "tell"],
        ),
    ] {
        let mut vm = machine(LIMITS, source);
        assert!(matches!(vm.run(), Step::Suspended(_)), "{source}");
        assert_eq!(vm.capabilities(), expected, "{source}");
        let bytes = vm.snapshot().expect("the engine works");
        assert_eq!(vm.capabilities(), expected, "{source}");
        let mut restored = Vm::restore(&bytes, LIMITS).expect("it fits");
        assert_eq!(restored.capabilities(), expected, "{source}");
        restored.resume(Ok(outrigger_vm::value::Value::NULL));
    }
}

#[test]
fn an_input_that_shadows_a_capability_takes_it_away() {
    let mut vm = Vm::new(LIMITS, &["ask", "ask", "tell"]).expect("the engine starts");
    assert_eq!(vm.capabilities(), ["ask", "tell"]);
    let value = vm.import(&Plain::Null).expect("it fits");
    vm.set_global("tell", value).expect("it fits");
    assert_eq!(vm.capabilities(), ["ask"]);
    assert_eq!(Vm::new(LIMITS, &[]).expect("the engine starts").capabilities(), Vec::<String>::new());
}

/// Asserts limits on a live machine and on its snapshot: both must say the same.
fn assert_limits(vm: &mut Vm, limits: Limits) -> Option<String> {
    let bytes = vm.snapshot().expect("the engine works");
    let restored = Vm::restore(&bytes, limits).map(|_| ()).map_err(|error| error.to_string());
    let live = vm.set_limits(limits).map_err(|error| error.to_string());
    assert_eq!(restored, live);
    live.err()
}

#[test]
fn limits_are_asserted_alike_on_live_machines_and_on_snapshots() {
    let source = "const deep = n => n ? deep(n - 1) + 1 : ask('deep'); const rows = []; for (let i = 0; i < 100; i++) rows.push({ i });
        for (let i = 0; i < 3; i++) (async () => { await tell(i) })(); deep(9) + rows.length";
    let mut vm = machine(LIMITS, source);
    assert_eq!(run(&mut vm), "4: ask(\"deep\")");
    let used = vm.instructions_used();
    vm.snapshot().expect("the engine works");
    let (bytes, records) = (vm.heap().bytes(), vm.heap().records());
    let heap = outrigger_vm::heap::Limits { bytes, records };
    let exact = Limits { instructions: used, call_depth: 11, host_calls: 3, heap };
    assert_eq!(assert_limits(&mut vm, exact), None, "exactly enough is enough");
    for (limits, said) in [
        (Limits { call_depth: 10, ..exact }, "call depth limit exceeded"),
        (
            Limits { heap: outrigger_vm::heap::Limits { bytes: bytes - 1, records }, ..exact },
            "snapshot validation failed: heap usage exceeds configured heap limit",
        ),
        (
            Limits { heap: outrigger_vm::heap::Limits { bytes, records: records - 1 }, ..exact },
            "snapshot validation failed: heap usage exceeds configured heap limit",
        ),
        (Limits { host_calls: 2, ..exact }, "outstanding host-call limit exhausted"),
        (Limits { instructions: used - 1, ..exact }, "instruction budget exhausted"),
        // The first that fails is named.
        (Limits { call_depth: 10, host_calls: 2, instructions: 1, ..exact }, "call depth limit exceeded"),
        (Limits { host_calls: 2, instructions: 1, ..exact }, "outstanding host-call limit exhausted"),
    ] {
        assert_eq!(assert_limits(&mut vm, limits).as_deref(), Some(said));
    }
    assert_eq!(assert_limits(&mut vm, LIMITS), None);
    assert_eq!(vm.instructions_used(), used, "what was used stays used");
}

#[test]
fn a_machine_lives_by_the_limits_it_was_given_last() {
    let mut vm = machine(LIMITS, "ask(1); for (let i = 0; i < 1000000; i++); 'done'");
    vm.run();
    let used = vm.instructions_used();
    vm.set_limits(Limits { instructions: used + 1_000, ..LIMITS }).expect("it fits");
    let step = vm.resume(Ok(outrigger_vm::value::Value::NULL));
    assert_eq!(step, Step::Limit(outrigger_vm::exec::Limit::Instructions));

    let mut vm = machine(LIMITS, "ask(1); const a = []; for (;;) a.push('some text ' + a.length)");
    vm.run();
    let heap = outrigger_vm::heap::Limits { bytes: 64 << 10, records: 10_000 };
    vm.set_limits(Limits { heap, ..LIMITS }).expect("it fits");
    let step = vm.resume(Ok(outrigger_vm::value::Value::NULL));
    assert!(matches!(step, Step::Limit(outrigger_vm::exec::Limit::Heap(_))), "{step:?}");
    assert!(vm.heap().bytes() <= 64 << 10);

    let mut vm = machine(LIMITS, "ask(1); const f = n => n ? f(n - 1) : 0; f(50)");
    vm.run();
    vm.set_limits(Limits { call_depth: 20, ..LIMITS }).expect("it fits");
    let step = vm.resume(Ok(outrigger_vm::value::Value::NULL));
    assert_eq!(step, Step::Limit(outrigger_vm::exec::Limit::CallDepth));
}

#[test]
fn garbage_does_not_count_when_limits_are_asserted() {
    let mut vm = machine(LIMITS, "for (let i = 0; i < 1000; i++) ({ a: ['text ' + i] }); ask(1)");
    vm.run();
    let heap = outrigger_vm::heap::Limits { bytes: 16 << 10, records: 200 };
    assert!(vm.heap().bytes() > heap.bytes);
    vm.set_limits(Limits { heap, ..LIMITS }).expect("what is alive fits");
    assert!(matches!(
        vm.set_limits(Limits { heap: outrigger_vm::heap::Limits { bytes: 10, records: 200 }, ..LIMITS }),
        Err(SnapshotError::HeapLimit)
    ));
}

#[test]
fn a_machine_that_was_larger_once_comes_back_under_its_own_limits() {
    let source = "const fill = f => { const a = []; for (let i = 0; i < 900; i++) a.push(f(i)) };
        fill(i => 'text ' + i); fill(() => ({})); fill(i => () => i);
        ask(1)";
    let heap = outrigger_vm::heap::Limits { bytes: 4 << 20, records: 4_000 };
    let limits = Limits { heap, ..LIMITS };
    let mut vm = machine(limits, source);
    assert_eq!(run(&mut vm), "1: ask(1)");
    let bytes = vm.snapshot().expect("the engine works");
    let few = outrigger_vm::heap::Limits { records: vm.heap().records(), ..heap };
    assert!(few.records < 200, "{}", few.records);
    assert!(Vm::restore(&bytes, Limits { heap: few, ..limits }).is_ok(), "what is free is not counted");
}

#[test]
fn a_machine_says_where_it_stands() {
    let mut vm =
        machine(LIMITS, "function outer() {\n  return inner();\n}\nconst inner = () => ask(1);\nouter()");
    vm.run();
    let places: Vec<(String, u32)> = vm.places().into_iter().map(|p| (p.function, p.line)).collect();
    assert_eq!(places, [("inner".to_owned(), 4), ("outer".to_owned(), 2), (String::new(), 5)]);
    let bytes = vm.snapshot().expect("the engine works");
    assert_eq!(Vm::restore(&bytes, LIMITS).expect("it fits").places(), vm.places());
}
