//! What the value of a script is, and what a script sees of the world.

use super::{LIMITS, machine, outcome, run};
use outrigger_vm::boundary::Plain;
use outrigger_vm::code::Program;
use outrigger_vm::exec::{LoadError, Step, TopLevelReturn, Vm};
use std::sync::Arc;

/// Each script and what it comes to.
fn check(cases: &[(&str, &str)]) {
    for &(source, expected) in cases {
        assert_eq!(run(&mut machine(LIMITS, source)), expected, "{source}");
    }
}

#[test]
fn a_script_has_the_value_of_its_last_expression() {
    check(&[
        ("1; 2", "2"),
        ("const x = 1", "undefined"),
        ("", "undefined"),
        ("if (1) { 5; }", "5"),
        ("Promise.resolve(4)", "4"),
        ("Promise.resolve(Promise.resolve([1]))", "[1]"),
        ("await 1; 2", "2"),
        ("(async () => 3)()", "3"),
        ("Promise.reject(new RangeError('no'))", "threw RangeError: no"),
        ("Promise.reject(5)", "threw 5"),
        ("new Promise(() => {})", "stuck"),
        ("await new Promise(() => {})", "stuck"),
        ("(async () => { await new Promise(() => {}) })(); 7", "7"),
        ("[Promise.resolve(1)]", "cannot cross: functions cannot cross the structured host boundary"),
    ]);
}

#[test]
fn a_final_return_is_allowed_when_asked_for() {
    let run_with = |source: &str| {
        let program = Program::compile_with(source, TopLevelReturn::Allowed).expect("it compiles");
        let bytes = program.to_bytes().expect("the engine works");
        let program = Program::from_bytes(&bytes).expect("it is a program");
        let mut vm = Vm::new(LIMITS, &["ask"]).expect("the engine starts");
        vm.load_program(&Arc::new(program)).expect("it loads");
        run(&mut vm)
    };
    for (source, expected) in [
        ("return 5", "5"),
        ("for (const x of [1, 2, 3]) if (x === 2) return { x }; 9", "{x: 2}"),
        ("return", "undefined"),
        ("1; if (false) return 2", "undefined"),
        ("try { return 1 } finally { globalThis.y = 2 }", "1"),
        ("const v = await Promise.resolve(3); return v + 1", "4"),
        ("return Promise.resolve(8)", "8"),
        ("return await Promise.all([1, 2])", "[1, 2]"),
        ("5", "5"),
    ] {
        assert_eq!(run_with(source), expected, "{source}");
    }
    for source in ["return 5", "if (1) { return }"] {
        assert!(matches!(Program::compile(source), Err(LoadError::Parse(_))), "{source}");
        assert!(matches!(Program::compile_with(source, TopLevelReturn::Refused), Err(LoadError::Parse(_))));
    }
}

#[test]
fn every_queued_call_is_surfaced_before_the_end() {
    let mut vm = machine(
        LIMITS,
        "(async () => { ask('fire and forget') })(); await Promise.race([ask('a'), ask('b')])",
    );
    assert_eq!(run(&mut vm), "1: ask(\"fire and forget\")");
    for (id, next) in [(1, "2: ask(\"a\")"), (2, "3: ask(\"b\")"), (3, "2")] {
        let value = vm.import(&Plain::Number(id as f64)).expect("it fits");
        vm.answer(id, Ok(value)).expect("it is outstanding");
        let step = vm.run();
        assert_eq!(outcome(&mut vm, step), next);
    }
}

#[test]
fn the_function_constructor_refuses_by_name_and_is_reached_by_nobody() {
    check(&[
        ("typeof globalThis.Function", "\"function\""),
        ("try { globalThis.Function('return 1')() } catch (e) { e.name }", "\"TypeError\""),
        ("try { (() => 1).constructor('return 1')() } catch (e) { e.name }", "\"TypeError\""),
        ("try { (async () => 1).constructor('return 1')() } catch (e) { e.name }", "\"TypeError\""),
    ]);
}

#[test]
fn the_order_of_async_calls_is_the_order_of_the_script() {
    let mut vm = machine(LIMITS, "await Promise.all([1, 2, 3].map(async x => { await ask(x) }))");
    assert_eq!(run(&mut vm), "1: ask(1)");
    let said: Vec<_> = [2, 3].map(|id| vm.arguments(id).expect("it is plain")).into();
    assert_eq!(said, [vec![Plain::Number(2.0)], vec![Plain::Number(3.0)]]);
    let Step::Suspended(first) = vm.run() else { panic!("it waits") };
    assert_eq!((first.id, vm.text(first.name)), (1, "ask".to_owned()));
}
