//! Programs and machines as bytes: what comes back is what went in, and nothing else comes in.

use outrigger_vm::code::Program;
use outrigger_vm::exec::{Limits, Step, Vm};
use outrigger_vm::heap::Pace;
use outrigger_vm::value::Value;
use std::sync::Arc;

pub(crate) const LIMITS: Limits = Limits {
    instructions: 50_000_000,
    call_depth: 1_000,
    host_calls: 8,
    heap: outrigger_vm::heap::Limits { bytes: 64 << 20, records: 4 << 20 },
};

fn suspended(source: &str) -> Vm {
    let mut vm = Vm::new(LIMITS, &["ask"]).expect("the engine starts");
    vm.load(source).expect("the script loads");
    assert!(matches!(vm.run(), Step::Suspended(_)), "{source}");
    vm
}

#[test]
fn a_snapshot_of_a_restored_machine_is_the_same_bytes() {
    for source in [
        "ask(1)",
        "let t = ''; for (let i = 0; i < 300; i++) t += 'x' + i + '\\u1234'; const u = t.slice(3, 90) + t; ask(1) + u.length",
        "const m = new Map([[1, 'a'], ['b', {}], [2n ** 80n, 3]]); m.delete(1); const s = new Set([m, NaN]); ask(m.size + s.size)",
        "class A { #x = 1; get x() { return this.#x } static y = ask(3) } new A().x",
        "function* g() { yield ask(1); yield 2 } const it = g(); [...it]",
        "const o = {}; for (let i = 0; i < 300; i++) o['k' + i] = i; delete o.k7; ask(1); Object.keys(o).length",
        "const a = []; a[5000000] = 1; a.length = 10; ask(1)",
        "const s = Symbol('y'); const w = new WeakMap(); const k = {}; w.set(k, s); ask(1)",
        "async function f(x) { const a = await ask(x); return a + await ask(a) } await f(1) + await f(2)",
    ] {
        let mut vm = suspended(source);
        let first = vm.snapshot().expect("the engine works");
        let mut again = Vm::restore(&first, LIMITS).unwrap_or_else(|e| panic!("{source}: {e}"));
        assert_eq!(again.snapshot().expect("the engine works"), first, "{source}");
        assert_eq!((vm.heap().bytes(), vm.heap().records()), (again.heap().bytes(), again.heap().records()));
        assert_eq!((again.heap().bytes(), again.heap().records()), again.heap().audit(), "{source}");
        assert_eq!(vm.fuel(), again.fuel());
        let (mut a, mut b) = (vm.resume(Ok(Value::int(7))), again.resume(Ok(Value::int(7))));
        loop {
            assert_eq!(format!("{a:?}"), format!("{b:?}"), "{source}");
            assert_eq!(vm.fuel(), again.fuel(), "{source}");
            assert_eq!(vm.heap().bytes(), again.heap().bytes(), "{source}");
            if !matches!(a, Step::Suspended(_)) {
                break;
            }
            (a, b) = (vm.resume(Ok(Value::int(8))), again.resume(Ok(Value::int(8))));
        }
    }
}

#[test]
fn the_snapshot_of_a_small_script_is_below_one_and_a_half_kilobytes() {
    let mut vm = suspended("const answer = ask('how many?'); `${answer} of them`");
    let size = vm.snapshot().expect("the engine works").len();
    assert!(size < 1_536, "{size} bytes");
}

#[test]
fn a_program_comes_back_from_its_bytes_and_runs_in_many_machines() {
    let program = Program::compile("const f = n => n < 2 ? n : f(n - 1) + f(n - 2); f(10) + ask(2)")
        .expect("it compiles");
    let bytes = program.to_bytes().expect("the engine works");
    let back = Arc::new(Program::from_bytes(&bytes).expect("it is a program"));
    assert_eq!(back.to_bytes().expect("the engine works"), bytes);
    for _ in 0..2 {
        let mut vm = Vm::with_pace(LIMITS, &["ask"], Pace::Adaptive).expect("the engine starts");
        vm.load_program(&back).expect("it loads");
        assert!(matches!(vm.run(), Step::Suspended(_)));
        assert_eq!(vm.resume(Ok(Value::int(5))), Step::Completed(Value::int(60)));
    }
}
