//! Runs in slices: an embedder looks at the clock between them, and nothing else changes.

use crate::eval::LIMITS;
use outrigger_vm::exec::{Limit, Limits, Step, Vm};
use outrigger_vm::value::Value;

const PROGRAMS: &[&str] = &[
    "let n = 0; for (let i = 0; i < 300; i++) n += i; n",
    "const fib = n => n < 2 ? n : fib(n - 1) + fib(n - 2); fib(10)",
    "function f(...r) { return r.length + arguments[2] } let s = 0; for (let i = 0; i < 20; i++) s += f(i, 1, 2, 3, 4, 5, 6); s",
    "let s = ''; for (const c of 'abc') s += c; [3, 1, 2].sort((a, b) => a - b).join() + s",
    "const o = { get x() { return ask(1) } }; let t = 0; for (let i = 0; i < 9; i++) t += o.x; t",
    "let log = ''; const wait = async n => { for (let i = 0; i < n; i++) await i; log += n }; await wait(3); wait(5); await wait(9); log",
    "function* g() { for (let i = 0; i < 9; i++) yield i } let s = 0; for (const v of g()) s += v; s",
    "try { for (let i = 0; ; i++) if (i > 50) throw i } catch (e) { e }",
    "class A { #n = 1; up() { return this.#n++ } } const a = new A(); for (let i = 0; i < 30; i++) a.up(); a.up()",
    "'aaaaaaaaaaaaaaaaaaaaaaaaaaaa'.replace(/a/g, () => 'b').length + /(a+)+b/.test('aaaaaaaaaaaab')",
];

/// The end of a run, what it cost, and how often it paused.
fn run(source: &str, instructions: u64, slice: Option<u64>) -> (String, u64, u64) {
    let mut vm = Vm::new(Limits { instructions, ..LIMITS }, &["ask"]).unwrap();
    vm.load(source).unwrap();
    let mut pauses = 0;
    let mut step = match slice {
        Some(n) => vm.run_for(n),
        None => vm.run(),
    };
    let end = loop {
        step = match (step, slice) {
            (Step::Paused, Some(n)) => {
                pauses += 1;
                vm.run_for(n)
            }
            (Step::Suspended(_), Some(n)) => vm.resume_for(Ok(Value::int(7)), n),
            (Step::Suspended(_), None) => vm.resume(Ok(Value::int(7))),
            (Step::Completed(v), _) => break vm.text(v),
            (other, _) => break format!("{other:?}"),
        };
    };
    (end, vm.fuel(), pauses)
}

#[test]
fn a_run_in_slices_of_any_size_is_the_same_run() {
    for source in PROGRAMS {
        let (end, fuel, none) = run(source, 1_000_000, None);
        assert_eq!(none, 0);
        for slice in [1, 2, 3, 7, 50, 1_000, u64::MAX] {
            let (sliced, left, _) = run(source, 1_000_000, Some(slice));
            assert_eq!((&sliced, left), (&end, fuel), "{source} in slices of {slice}");
        }
        let (_, _, pauses) = run(source, 1_000_000, Some(5));
        assert!(pauses > 2, "{source} paused {pauses} times");
    }
}

#[test]
fn the_budget_ends_a_sliced_run_where_it_ends_any_other() {
    for source in PROGRAMS {
        let whole = 1_000_000 - run(source, 1_000_000, None).1;
        // A few budgets of each program: a machine for each is not free.
        let stride = (whole / 4).max(1) as usize;
        for budget in (1..whole + 2).step_by(stride).chain([whole - 1, whole]) {
            let (end, left, _) = run(source, budget, None);
            let (sliced, sliced_left, _) = run(source, budget, Some(11));
            assert_eq!((sliced, sliced_left), (end.clone(), left), "{source} with {budget}");
            let enough = budget >= whole;
            assert_eq!(
                end.contains(&format!("{:?}", Limit::Instructions)),
                !enough,
                "{source} with {budget}: {end}"
            );
        }
    }
}

#[test]
fn an_endless_loop_comes_back_to_the_embedder_every_time() {
    let mut vm = Vm::new(LIMITS, &[]).unwrap();
    vm.load("for (;;);").unwrap();
    for _ in 0..100 {
        let before = vm.fuel();
        assert_eq!(vm.run_for(1_000), Step::Paused);
        assert!(before - vm.fuel() <= 1_010, "a slice is about as long as was asked");
    }
    let mut vm = Vm::new(LIMITS, &[]).unwrap();
    vm.load("const f = () => Promise.resolve().then(f); f(); await new Promise(() => {})").unwrap();
    for _ in 0..100 {
        assert_eq!(vm.run_for(1_000), Step::Paused);
    }
}
