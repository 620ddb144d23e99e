//! Every script of `cases/` with host calls in odd places, run in several ways that must not differ: straight, moved to a
//! fresh machine through a snapshot at every host call, and under every budget of instructions.
//!
//! What a case must answer was recorded from node (`cases/record.mjs`). The host answers `ask(n)` with `n + 100` and
//! `fail(text)` with an error.

use outrigger_vm::code::Program;
use outrigger_vm::exec::{Limit, Limits, Step, Vm};
use outrigger_vm::heap::Pace;
use outrigger_vm::value::Value;
use std::path::Path;
use std::sync::Arc;

const LIMITS: Limits = Limits {
    instructions: 10_000_000,
    call_depth: 500,
    host_calls: 16,
    heap: outrigger_vm::heap::Limits { bytes: 16 << 20, records: 1 << 20 },
};

/// The cases that are run with a collection before every allocation.
const TORTURED: &[&str] = &[
    "accessors.js",
    "classes.js",
    "finally.js",
    "functions.js",
    "generators.js",
    "iterators.js",
    "promises.js",
];

/// What became of a run.
#[derive(Debug, PartialEq)]
struct End {
    text: String,
    fuel: u64,
    calls: u32,
}

/// What happens between two steps.
#[derive(Clone, Copy, PartialEq)]
enum Between {
    Nothing(Pace),
    /// The run is had in slices of so many instructions, and the machine moves between them.
    Slices(u64),
    /// The machine is written, dropped, and read back; what is read is written again and must be the same.
    Hop(Pace),
}

fn start(program: &Arc<Program>, limits: Limits, pace: Pace) -> Vm {
    let mut vm = Vm::with_pace(limits, &["ask", "fail"], pace).expect("the engine starts");
    vm.load_program(program).expect("a program that was compiled can be loaded");
    vm
}

/// Runs to the end, or answers that the budget was too small.
fn finish(program: &Arc<Program>, limits: Limits, between: Between) -> Result<End, Limit> {
    let pace = match between {
        Between::Nothing(pace) | Between::Hop(pace) => pace,
        Between::Slices(_) => Pace::Adaptive,
    };
    let mut vm = start(program, limits, pace);
    let mut step = match between {
        Between::Slices(slice) => vm.run_for(slice),
        Between::Nothing(_) | Between::Hop(_) => vm.run(),
    };
    let mut calls = 0;
    loop {
        match step {
            Step::Suspended(call) => {
                calls += 1;
                let argument = call.args.first().copied().unwrap_or(Value::UNDEFINED);
                let answer = match vm.text(call.name).as_str() {
                    "ask" => Ok(Value::number(argument.as_number().unwrap_or(f64::NAN) + 100.0)),
                    _ => Err(vm.text(argument)),
                };
                if let Between::Hop(pace) = between {
                    let bytes = vm.snapshot().expect("the engine works");
                    vm = Vm::restore_with_pace(&bytes, limits, pace).expect("a snapshot can be restored");
                    if calls % 8 == 1 {
                        assert!(
                            vm.snapshot().expect("the engine works") == bytes,
                            "it reads as it was written"
                        );
                    }
                }
                let answer = match answer {
                    Ok(value) => Ok(value),
                    Err(text) => Err(vm.error(&text)),
                };
                step = match between {
                    Between::Slices(slice) => vm.resume_for(answer, slice),
                    Between::Nothing(_) | Between::Hop(_) => vm.resume(answer),
                };
            }
            Step::Paused => {
                let Between::Slices(slice) = between else { panic!("nobody asked it to pause") };
                let bytes = vm.snapshot().expect("the engine works");
                vm = Vm::restore(&bytes, limits).expect("a snapshot can be restored");
                step = vm.run_for(slice);
            }
            Step::Completed(value) => return Ok(End { text: vm.text(value), fuel: vm.fuel(), calls }),
            Step::Threw(error) => {
                return Ok(End { text: format!("threw {}", vm.text(error)), fuel: vm.fuel(), calls });
            }
            Step::Limit(limit) => return Err(limit),
            Step::Stuck => {
                return Ok(End { text: "stuck".to_owned(), fuel: vm.fuel(), calls });
            }
        }
    }
}

/// The cases: name, program, what node answered.
fn cases() -> Vec<(String, Arc<Program>, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let mut names: Vec<_> = std::fs::read_dir(&folder)
        .expect("the cases are there")
        .map(|entry| entry.expect("the folder can be read").path())
        .filter(|path| path.extension().is_some_and(|e| e == "js"))
        .collect();
    names.sort();
    assert!(names.len() >= 10);
    let read = |path: &Path| std::fs::read_to_string(path).expect("the case can be read");
    names
        .into_iter()
        .map(|path| {
            let name = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
            let program = Program::compile(&read(&path)).unwrap_or_else(|error| panic!("{name}: {error}"));
            (name, Arc::new(program), read(&path.with_extension("out")).trim_end().to_owned())
        })
        .collect()
}

#[test]
fn scripts_answer_what_node_answers() {
    let mut wrong = String::new();
    for (name, program, expected) in cases() {
        let end = finish(&program, LIMITS, Between::Nothing(Pace::Adaptive)).expect("the limits are wide");
        assert!(end.calls > 5, "{name} makes no host calls");
        for (i, (found, wanted)) in end.text.lines().zip(expected.lines()).enumerate() {
            if found != wanted {
                wrong.push_str(&format!("{name} line {}\n  node {wanted}\n  here {found}\n", i + 1));
            }
        }
        if end.text.lines().count() != expected.lines().count() {
            wrong.push_str(&format!(
                "{name}: {} lines of {}\n",
                end.text.lines().count(),
                expected.lines().count()
            ));
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

#[test]
fn a_machine_that_moves_at_every_host_call_ends_the_same_and_costs_the_same() {
    for (name, program, _) in cases() {
        let straight = finish(&program, LIMITS, Between::Nothing(Pace::Adaptive));
        assert_eq!(finish(&program, LIMITS, Between::Hop(Pace::Adaptive)), straight, "{name}");
    }
}

#[test]
fn a_machine_that_moves_and_collects_before_every_allocation_ends_the_same() {
    for (name, program, _) in cases() {
        // A native that makes much is collected in between again and again, so only cases without such are tortured.
        if !TORTURED.contains(&name.as_str()) {
            continue;
        }
        let straight = finish(&program, LIMITS, Between::Nothing(Pace::Adaptive));
        let tortured = finish(&program, LIMITS, Between::Nothing(Pace::Torture));
        assert_eq!(tortured, straight, "{name} without moving");
        assert_eq!(finish(&program, LIMITS, Between::Hop(Pace::Torture)), straight, "{name}");
    }
}

#[test]
fn every_budget_is_enough_or_ends_in_a_clean_limit_wherever_the_machine_moved() {
    for (name, program, _) in cases() {
        let straight =
            finish(&program, LIMITS, Between::Nothing(Pace::Adaptive)).expect("the limits are wide");
        let used = LIMITS.instructions - straight.fuel;
        // Every budget of a short script, every so manyth of a long one, and both sides of the last.
        let stride = (used / 100).max(1) as usize;
        for budget in (0..used).step_by(stride).chain([used - 1]) {
            let limits = Limits { instructions: budget, ..LIMITS };
            for between in [Between::Nothing(Pace::Adaptive), Between::Hop(Pace::Adaptive)] {
                assert_eq!(
                    finish(&program, limits, between),
                    Err(Limit::Instructions),
                    "{name} with {budget}"
                );
            }
        }
        let limits = Limits { instructions: used, ..LIMITS };
        let end = finish(&program, limits, Between::Hop(Pace::Adaptive)).expect("exactly enough is enough");
        assert_eq!((end.text, end.fuel), (straight.text, 0), "{name}");
    }
}

#[test]
fn a_machine_that_moves_between_slices_of_any_size_ends_the_same_and_costs_the_same() {
    for (name, program, _) in cases() {
        let straight =
            finish(&program, LIMITS, Between::Nothing(Pace::Adaptive)).expect("the limits are wide");
        let used = LIMITS.instructions - straight.fuel;
        for slice in [3, 7, 50, 1000] {
            // Short slices of long scripts would take all day.
            if used / slice < 500 {
                let sliced = finish(&program, LIMITS, Between::Slices(slice)).expect("the limits are wide");
                assert_eq!(sliced, straight, "{name} in slices of {slice}");
            }
        }
    }
}

/// Short scripts that between them stop in the middle of everything that is not one instruction.
const SHORT: &[&str] = &[
    "[3, 1, 2].sort((a, b) => a - b + ask(0) - 100).join()",
    "const o = { get x() { return ask(1); }, valueOf() { return ask(2); } }; o.x + o",
    "function* g() { try { yield ask(1); } finally { ask(2); } } let s = ''; for (const v of g()) { s += v; break; } s",
    "class A { f = ask(1); static s = ask(2); constructor() { this.g = this.f + A.s; } } new A().g",
    "JSON.stringify({ a: { toJSON: () => ask(1) }, b: [1, 2] }, (k, v) => k === 'b' ? ask(2) : v)",
    "const { a = ask(1), ...r } = new Proxy({ b: 2 }, { ownKeys: t => (ask(2), Reflect.ownKeys(t)) }); a + r.b",
    "'a-b'.replace(/\\w/g, m => m + ask(1)) + [...new Map([[1, ask(2)]])].join()",
    "try { try { ask(1); throw ask(2); } finally { ask(3); } } catch (e) { `${e}${[1, 2].map(x => x + ask(x))}` }",
];

#[test]
fn every_single_budget_of_a_short_script_is_enough_or_ends_in_a_clean_limit() {
    for source in SHORT {
        let program = Arc::new(Program::compile(source).expect("a script that can be read above"));
        let straight =
            finish(&program, LIMITS, Between::Nothing(Pace::Adaptive)).expect("the limits are wide");
        let used = LIMITS.instructions - straight.fuel;
        assert!((5..5_000).contains(&used), "{source} is short: {used}");
        for budget in 0..used {
            let limits = Limits { instructions: budget, ..LIMITS };
            for between in [Between::Nothing(Pace::Adaptive), Between::Hop(Pace::Adaptive)] {
                assert_eq!(
                    finish(&program, limits, between),
                    Err(Limit::Instructions),
                    "{source} with {budget}"
                );
            }
        }
        let limits = Limits { instructions: used, ..LIMITS };
        let end = finish(&program, limits, Between::Hop(Pace::Adaptive)).expect("exactly enough is enough");
        assert_eq!((end.text, end.fuel), (straight.text, 0), "{source}");
    }
}
