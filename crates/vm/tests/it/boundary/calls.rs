//! Calls of the host: their arguments, and their answers in any order.

use super::{LIMITS, machine, machine_at, outcome, run, text};
use outrigger_vm::boundary::{ArgumentsError, Plain, UnknownCall};
use outrigger_vm::exec::{Limit, Limits, Step, Vm};
use outrigger_vm::heap::Pace;
use outrigger_vm::value::Value;

fn ids(vm: &Vm) -> Vec<u64> {
    vm.outstanding().map(|call| call.id).collect()
}

/// Answers a call with plain data.
fn answer(vm: &mut Vm, id: u64, plain: &Plain) {
    let value = vm.import(plain).expect("it fits");
    vm.answer(id, Ok(value)).expect("it is outstanding");
}

#[test]
fn what_cannot_cross_is_a_type_error_where_the_call_is_made() {
    for (argument, message) in [
        ("() => 1", "functions cannot cross the structured host boundary"),
        ("1n", "BigInt values cannot cross the structured host boundary"),
        ("new Map()", "Map and Set values cannot cross the structured host boundary"),
        ("(o => (o.o = o))({})", "cyclic values cannot cross the structured host boundary"),
        ("(o => [o, o])({})", "shared references cannot cross the structured host boundary"),
        ("'\\ud800'", "strings with a lone surrogate cannot cross the structured host boundary"),
        ("Symbol()", "symbols cannot cross the structured host boundary"),
    ] {
        let caught = format!("[e instanceof TypeError, e.message === {message:?}]");
        let sync = format!("try {{ ask(1, {argument}) }} catch (e) {{ {caught} }}");
        assert_eq!(run(&mut machine(LIMITS, &sync)), "[true, true]", "{sync}");
        let queued = format!(
            "await (async () => {{ try {{ ask(1, {argument}) }} catch (e) {{ return {caught} }} }})()"
        );
        assert_eq!(run(&mut machine(LIMITS, &queued)), "[true, true]", "{queued}");
        let uncaught = format!("ask({argument})");
        assert_eq!(run(&mut machine(LIMITS, &uncaught)), format!("threw TypeError: {message}"));
    }
    // A call that was refused was not made.
    let mut vm = machine(LIMITS, "try { ask(() => 1) } catch {} ask('first')");
    assert_eq!(run(&mut vm), "1: ask(\"first\")");
}

#[test]
fn the_same_object_may_be_in_two_arguments_of_one_call() {
    assert_eq!(
        run(&mut machine(LIMITS, "const o = { a: 1 }; ask(o, o, [o])")),
        "1: ask({a: 1}, {a: 1}, [{a: 1}])"
    );
}

#[test]
fn a_queued_call_keeps_its_arguments_as_they_were() {
    for pace in [Pace::Adaptive, Pace::Torture] {
        let source = "const o = { list: [1, 2] }; (async () => { await ask(o, 'x') })(); o.list.push(3); o.more = 1; tell(o)";
        let mut vm = machine_at(LIMITS, source, pace);
        assert_eq!(run(&mut vm), "2: tell({list: [1, 2, 3], more: 1})");
        assert_eq!(ids(&vm), [2, 1]);
        assert_eq!(vm.arguments(1).map(|a| a.len()), Ok(2));
        answer(&mut vm, 2, &Plain::Null);
        assert_eq!(run(&mut vm), "1: ask({list: [1, 2]}, \"x\")");
    }
}

#[test]
fn copies_of_arguments_count_against_the_heap_but_texts_are_not_copied() {
    let calls = |argument: &str| {
        format!("const a = {argument}; await Promise.all([1, 2, 3, 4, 5].map(() => ask(a)))")
    };
    let rich = Limits { instructions: 1 << 40, ..LIMITS };
    let mut vm = machine(rich, &calls("{ text: 'x'.repeat(3 << 20) }"));
    let step = vm.run();
    assert!(matches!(step, Step::Suspended(_)), "{step:?}");
    assert_eq!(ids(&vm), [1, 2, 3, 4, 5]);
    assert_eq!(vm.arguments(5), Ok(vec![Plain::Object(vec![("text".into(), text(&"x".repeat(3 << 20)))])]));
    let mut vm = machine(rich, &calls("new Array(100000).fill(1)"));
    assert!(matches!(vm.run(), Step::Suspended(_)), "six of them fit");
    let step = machine(rich, &calls("new Array(300000).fill(1)")).run();
    assert!(matches!(step, Step::Limit(Limit::Heap(_))), "{step:?}");
}

#[test]
fn all_queued_calls_together_are_not_larger_outside_than_one_value_may_be() {
    let rich = Limits { instructions: 1 << 40, host_calls: 100, ..LIMITS };
    // Four heaps of 8 MiB: 31 times a mebibyte and a few nodes, not 32 times.
    let calls = |n| {
        format!(
            "const s = 'x'.repeat(1 << 20); const go = async () => {{ await ask(s); await ask(s) }}; await Promise.all(new Array({n}).fill(0).map(go))"
        )
    };
    let full = Step::Limit(Limit::Heap(outrigger_vm::heap::OverLimit::Bytes { limit: 8 << 20 }));
    assert_eq!(machine(rich, &calls(32)).run(), full);
    let mut vm = machine(rich, &calls(31));
    assert!(matches!(vm.run(), Step::Suspended(_)));
    // What is answered makes room, also in a machine that moved.
    for id in 1..=31 {
        let bytes = vm.snapshot().expect("the engine works");
        vm = Vm::restore(&bytes, rich).expect("it fits");
        answer(&mut vm, id, &Plain::Null);
        let step = vm.run();
        assert!(matches!(step, Step::Suspended(_)), "{id}: {step:?}");
    }
    assert_eq!(ids(&vm).len(), 31);
    for id in 32..=62 {
        answer(&mut vm, id, &Plain::Null);
    }
    assert!(matches!(vm.run(), Step::Completed(_)));
}

#[test]
fn copies_of_arguments_are_whole() {
    let big = "const o = {}; for (let i = 0; i < 1500; i++) o['k' + i] = [i];";
    let source = format!(
        "{big} const frozen = Object.freeze({{ b: 1, 5: [,'é→', Object.freeze([-0])] }});
        const hidden = Object.defineProperty({{ x: 1 }}, 'f', {{ value: () => 1 }});
        const sparse = []; sparse[2000] = {{ y: null }};
        await ask(o, frozen, hidden, sparse, 'text', undefined, NaN)"
    );
    for pace in [Pace::Adaptive, Pace::Torture] {
        let mut vm = machine_at(LIMITS, &source, pace);
        assert!(matches!(vm.run(), Step::Suspended(_)));
        let args = vm.arguments(1).expect("they are plain");
        let Plain::Object(members) = &args[0] else { panic!("{:?}", args[0]) };
        let expected = (0..1500).map(|i| (format!("k{i}"), Plain::Array(vec![Plain::Number(f64::from(i))])));
        assert!(members.iter().cloned().eq(expected));
        let shown: Vec<String> = args[1..3].iter().chain(&args[4..]).map(super::show).collect();
        assert_eq!(shown, ["{5: [-, \"é→\", [-0]], b: 1}", "{x: 1}", "\"text\"", "undefined", "NaN"]);
        let Plain::Array(sparse) = &args[3] else { panic!("{:?}", args[3]) };
        assert_eq!((sparse.len(), &sparse[1999]), (2001, &Plain::Hole));
    }
}

#[test]
fn arguments_are_paid_for_at_the_call_and_free_to_look_at() {
    let used = |source: &str| {
        let mut vm = machine(LIMITS, source);
        assert!(matches!(vm.run(), Step::Suspended(_)));
        vm.instructions_used()
    };
    let more =
        used("const a = new Array(1000).fill(1); ask(a)") - used("const a = new Array(1000).fill(1); ask(1)");
    assert_eq!(more, 1000);
    let mut vm = machine(LIMITS, "ask(new Array(1000).fill(1))");
    vm.run();
    let before = vm.instructions_used();
    assert_eq!(vm.arguments(1).map(|args| args.len()), Ok(1));
    assert_eq!(vm.instructions_used(), before);
    assert_eq!(vm.arguments(2), Err(ArgumentsError::Unknown(UnknownCall(2))));
    // Not paid for, not made: the limit cannot be caught.
    let source = "const a = []; a.length = 2 ** 31 - 1; try { ask(a) } catch { 1 }";
    assert_eq!(machine(LIMITS, source).run(), Step::Limit(Limit::Instructions));
}

#[test]
fn a_machine_that_was_not_asked_to_hands_arguments_over_as_they_are() {
    let mut vm = Vm::new(LIMITS, &["ask"]).expect("the engine starts");
    vm.load("const o = {}; o.o = o; ask(o, () => 1)").expect("it loads");
    let Step::Suspended(call) = vm.run() else { panic!("it asks") };
    assert_eq!(call.args.len(), 2);
}

const FAN: &str = "const log = []; const go = async n => { const v = await ask(n); log.push(v); return v };
    const all = await Promise.all([go('a'), go('b'), go('c')]); [all, log]";

#[test]
fn calls_are_answered_in_any_order_and_a_few_at_a_time() {
    let mut vm = machine(LIMITS, FAN);
    assert_eq!(run(&mut vm), "1: ask(\"a\")");
    assert_eq!(ids(&vm), [1, 2, 3]);
    answer(&mut vm, 2, &text("B"));
    assert_eq!(ids(&vm), [1, 3]);
    assert_eq!(vm.answer(2, Ok(Value::NULL)), Err(UnknownCall(2)), "a call is answered once");
    assert_eq!(vm.answer(9, Ok(Value::NULL)), Err(UnknownCall(9)));
    assert_eq!(run(&mut vm), "1: ask(\"a\")", "what is not answered is still first");
    answer(&mut vm, 3, &text("C"));
    answer(&mut vm, 1, &text("A"));
    assert_eq!(ids(&vm), []);
    assert_eq!(run(&mut vm), "[[\"A\", \"B\", \"C\"], [\"B\", \"C\", \"A\"]]");
}

#[test]
fn a_run_without_an_answer_waits_where_it_was() {
    for source in ["ask(1) + 1", "await ask(1) + 1"] {
        let mut vm = machine(LIMITS, source);
        for _ in 0..3 {
            assert_eq!(run(&mut vm), "1: ask(1)", "{source}");
            assert_eq!(ids(&vm), [1]);
        }
        answer(&mut vm, 1, &Plain::Number(4.0));
        assert_eq!(ids(&vm), []);
        assert_eq!(vm.answer(1, Ok(Value::NULL)), Err(UnknownCall(1)));
        assert_eq!(run(&mut vm), "5", "{source}");
    }
}

#[test]
fn a_queued_call_may_be_answered_while_another_one_blocks_the_script() {
    // No await at top level: that would make the whole script async.
    let source =
        "const p = (async () => (await ask('queued')) + 1)(); const b = tell('blocks'); p.then(v => [b, v])";
    let mut vm = machine(LIMITS, source);
    assert_eq!(run(&mut vm), "2: tell(\"blocks\")");
    assert_eq!(ids(&vm), [2, 1]);
    answer(&mut vm, 1, &Plain::Number(1.0));
    assert_eq!(run(&mut vm), "2: tell(\"blocks\")");
    assert_eq!(ids(&vm), [2]);
    answer(&mut vm, 2, &text("done"));
    assert_eq!(run(&mut vm), "[\"done\", 2]");
}

#[test]
fn an_error_is_thrown_where_its_call_waits() {
    let mut vm = machine(LIMITS, "try { ask(1) } catch (e) { tell(e.message) }");
    assert_eq!(run(&mut vm), "1: ask(1)");
    let error = vm.host_error("Error", "no", None, None).expect("it fits");
    vm.answer(1, Err(error)).expect("it is outstanding");
    assert_eq!(run(&mut vm), "2: tell(\"no\")");
    let error = vm.host_error("Error", "really no", None, None).expect("it fits");
    vm.answer(2, Err(error)).expect("it is outstanding");
    assert_eq!(run(&mut vm), "threw Error: really no");

    let mut vm =
        machine(LIMITS, "await Promise.allSettled([ask(1), ask(2)]).then(all => all.map(o => o.status))");
    vm.run();
    let error = vm.error("no");
    vm.answer(2, Err(error)).expect("it is outstanding");
    answer(&mut vm, 1, &Plain::Null);
    assert_eq!(run(&mut vm), "[\"fulfilled\", \"rejected\"]");
}

/// Every order in which some calls can be answered.
fn orders(calls: &[u64]) -> Vec<Vec<u64>> {
    if calls.is_empty() {
        return vec![vec![]];
    }
    let rest = |i: usize| [&calls[..i], &calls[i + 1..]].concat();
    (0..calls.len())
        .flat_map(|i| {
            orders(&rest(i)).into_iter().map(move |mut order| {
                order.insert(0, calls[i]);
                order
            })
        })
        .collect()
}

#[test]
fn a_snapshot_between_any_two_answers_changes_nothing() {
    let source = "const log = []; const go = async n => { try { const v = await ask(n); log.push(v) } catch (e) { log.push(e.message) } };
        const first = go(1); const settled = Promise.all([first, go(2), go(3)]); const b = tell('blocks'); settled.then(() => [b, ...log])";
    for order in orders(&[1, 2, 3, 4]) {
        let mut plain = machine(LIMITS, source);
        let mut moved = machine(LIMITS, source);
        assert_eq!(plain.run(), moved.run());
        for &id in &order {
            for vm in [&mut plain, &mut moved] {
                let said = if id == 2 {
                    Err(vm.host_error("Oops", "two failed", None, None).expect("it fits"))
                } else {
                    Ok(vm.import(&Plain::Number(id as f64)).expect("it fits"))
                };
                vm.answer(id, said).expect("it is outstanding");
            }
            // Once with the answer not yet seen by the guest, once after.
            for _ in 0..2 {
                let bytes = moved.snapshot().expect("the engine works");
                moved = Vm::restore(&bytes, LIMITS).unwrap_or_else(|error| panic!("{order:?}: {error}"));
                assert_eq!(ids(&plain), ids(&moved), "{order:?}");
                let (a, b) = (plain.run(), moved.run());
                assert_eq!(outcome(&mut plain, a), outcome(&mut moved, b), "{order:?}");
            }
        }
        let said = order.iter().filter(|&&id| id != 4);
        let said: Vec<&str> = said.map(|&id| ["1", "\"two failed\"", "3"][id as usize - 1]).collect();
        let end = run(&mut plain);
        assert_eq!(end, run(&mut moved));
        assert_eq!(end, format!("[4, {}]", said.join(", ")), "{order:?}");
    }
}

#[test]
fn ids_count_on_after_a_snapshot() {
    let source = "ask(); ask(); Promise.resolve().then(() => Promise.all([tell(), tell()]))";
    let mut vm = machine(LIMITS, source);
    for id in 1..=2 {
        assert!(matches!(vm.run(), Step::Suspended(call) if call.id == id));
        let bytes = vm.snapshot().expect("the engine works");
        vm = Vm::restore(&bytes, LIMITS).expect("it fits");
        assert_eq!(ids(&vm), [id]);
        answer(&mut vm, id, &Plain::Null);
    }
    vm.run();
    assert_eq!(ids(&vm), [3, 4]);
}

#[test]
fn the_limit_of_outstanding_calls_counts_the_surfaced_one_and_those_behind_it() {
    let many = |n| {
        format!(
            "const all = []; for (let i = 0; i < {n}; i++) all.push(ask(i)); await Promise.all(all); 'done'"
        )
    };
    let mut vm = machine(LIMITS, &many(8));
    assert_eq!(run(&mut vm), "1: ask(0)");
    assert_eq!(ids(&vm).len(), 8);
    assert_eq!(machine(LIMITS, &many(9)).run(), Step::Limit(Limit::HostCalls));
    // With seven answered there is room for seven more beside the surfaced one, and not for eight.
    for (more, end) in [(7, "1: ask(0)"), (8, "limit: outstanding host-call limit exhausted")] {
        let source = format!(
            "const first = (async () => await ask(0))(); await Promise.all([1, 2, 3, 4, 5, 6, 7].map(n => ask(n)));
            await Promise.all([first, ...new Array({more}).fill(9).map(n => ask(n))])"
        );
        let mut vm = machine(LIMITS, &source);
        assert_eq!(run(&mut vm), "1: ask(0)");
        for id in 2..=8 {
            answer(&mut vm, id, &Plain::Null);
        }
        assert_eq!(run(&mut vm), end);
    }
    // A call that blocks is not one of them.
    let none = Limits { host_calls: 0, ..LIMITS };
    let mut vm = machine(none, "ask(1)");
    assert_eq!(run(&mut vm), "1: ask(1)");
    assert_eq!(machine(none, "await ask(1)").run(), Step::Limit(Limit::HostCalls));
}

#[test]
fn slices_and_answers_work_together() {
    let mut vm =
        machine(LIMITS, FAN.replace("log.push(v)", "for (let i = 0; i < 500; i++); log.push(v)").as_str());
    let mut pauses = 0;
    let mut clock = 0.0;
    let step = loop {
        clock += 1.0;
        vm.set_now(clock);
        match vm.run_for(50) {
            Step::Paused => {
                pauses += 1;
                if pauses == 20 {
                    let bytes = vm.snapshot().expect("the engine works");
                    vm = Vm::restore(&bytes, LIMITS).expect("it fits");
                }
            }
            Step::Suspended(_) => {
                let last = *ids(&vm).last().expect("it waits");
                answer(&mut vm, last, &Plain::Number(last as f64));
            }
            step => break step,
        }
    };
    assert_eq!(outcome(&mut vm, step), "[[1, 2, 3], [3, 2, 1]]");
    assert!(pauses > 20, "{pauses}");
}

/// How a run goes on between two looks at it.
#[derive(Clone, Copy, Debug)]
enum Manner {
    AtOnce,
    InSlices,
    Moving,
}

/// A run with everything that crosses, to its end; and what it cost.
fn whole_run(instructions: u64, manner: Manner) -> (String, u64) {
    let source = "const o = { list: [1, 'two', { three: 3 }] }; const a = ask(o); const go = async n => (await tell(n, o, a)).v;
        Promise.all([go(1), go(2)]).then(v => ({ v, a }))";
    let limits = Limits { instructions, ..LIMITS };
    let mut vm = machine(limits, source);
    let reply = Plain::Object(vec![("v".into(), Plain::Array(vec![text(&"x".repeat(600)), Plain::Hole]))]);
    let mut pauses = 0;
    let step = loop {
        let step = match manner {
            Manner::InSlices => vm.run_for(7),
            Manner::AtOnce | Manner::Moving => vm.run(),
        };
        match step {
            Step::Paused => {
                pauses += 1;
                assert!(pauses < 10_000, "a run without anything left to spend goes on and on");
            }
            Step::Suspended(_) => {
                let last = *ids(&vm).last().expect("it waits");
                match vm.import(&reply) {
                    Ok(value) => vm.answer(last, Ok(value)).expect("it is outstanding"),
                    Err(_) => break vm.run(),
                }
                if let Manner::Moving = manner {
                    let bytes = vm.snapshot().expect("the engine works");
                    vm = Vm::restore(&bytes, limits).expect("it fits");
                }
            }
            step => break step,
        }
    };
    (outcome(&mut vm, step), vm.instructions_used())
}

#[test]
fn every_budget_is_enough_or_ends_in_a_clean_limit_however_the_run_goes() {
    let (end, cost) = whole_run(1_000_000, Manner::AtOnce);
    assert!(end.starts_with("{v: [[\"xxx"), "{end}");
    for budget in 1..cost + 2 {
        let plain = whole_run(budget, Manner::AtOnce);
        assert_eq!(whole_run(budget, Manner::InSlices), plain, "{budget} of {cost}");
        assert_eq!(whole_run(budget, Manner::Moving), plain, "{budget} of {cost}");
        let said = plain.0.trim_start_matches("limit: ").trim_start_matches("cannot cross: ");
        assert_eq!(said == end, budget >= cost, "{budget} of {cost}: {said}");
        assert!(budget >= cost || said == "instruction budget exhausted", "{budget} of {cost}: {said}");
    }
}

#[test]
fn the_clock_can_be_set_between_steps() {
    let mut vm = machine(LIMITS, "const a = Date.now(); ask(); [a, Date.now()]");
    vm.set_now(1_000.0);
    assert_eq!(run(&mut vm), "1: ask()");
    vm.set_now(2_500.0);
    answer(&mut vm, 1, &Plain::Null);
    assert_eq!(run(&mut vm), "[1000, 2500]");
}

#[test]
fn a_guests_then_on_every_object_is_asked_once_per_answer() {
    let source = "let asked = 0; Object.defineProperty(Object.prototype, 'then', { get() { asked++; return undefined }, configurable: true });
        const [a, b] = await Promise.all([ask(1), ask(2)].map(async p => (await p).v)); delete Object.prototype.then; [a, b, asked > 1]";
    let mut vm = machine(LIMITS, source);
    assert_eq!(run(&mut vm), "1: ask(1)");
    for id in [2, 1] {
        answer(&mut vm, id, &Plain::Object(vec![("v".into(), Plain::Number(id as f64))]));
    }
    assert_eq!(run(&mut vm), "[1, 2, true]");
}

#[test]
fn console_methods_are_there_when_granted_and_answer_nothing() {
    let mut vm = machine(
        LIMITS,
        "[typeof console.warn, console.log('a', 1), (() => { try { console.error(1) } catch (e) { return e.name } })()]",
    );
    assert_eq!(run(&mut vm), "1: console.log(\"a\", 1)");
    answer(&mut vm, 1, &text("ignored"));
    assert_eq!(run(&mut vm), "[\"undefined\", undefined, \"TypeError\"]");
    let mut vm = machine(LIMITS, "await console.log(1)");
    vm.run();
    answer(&mut vm, 1, &text("ignored"));
    assert_eq!(run(&mut vm), "undefined");
}

#[test]
fn calls_from_inside_comparators_getters_and_callbacks_suspend_like_any_other() {
    let source = "const o = { get price() { return ask('price') } };
        [[3, 1, 2].sort((a, b) => ask('less', a, b)), [1, 2].map(x => ask('map', x)), 'ab'.replace(/./g, c => ask('letter', c)), o.price]";
    let mut vm = machine(LIMITS, source);
    let mut step = vm.run();
    while let Step::Suspended(call) = step {
        let said = match &vm.arguments(call.id).expect("it is plain")[..] {
            [Plain::String(_), Plain::Number(a), Plain::Number(b)] => Plain::Number(a - b),
            [Plain::String(_), Plain::Number(x)] => Plain::Number(x * 10.0),
            [Plain::String(_), Plain::String(c)] => text(&c.to_uppercase()),
            _ => Plain::Number(7.0),
        };
        answer(&mut vm, call.id, &said);
        let bytes = vm.snapshot().expect("the engine works");
        vm = Vm::restore(&bytes, LIMITS).expect("it fits");
        step = vm.run();
    }
    assert_eq!(outcome(&mut vm, step), "[[1, 2, 3], [10, 20], \"AB\", 7]");
}
