//! The standard library, area by area: tables of scripts and the values that node gives them.

mod arrays;
mod clone;
mod collections;
mod date;
mod intl;
mod iterators;
mod json;
mod number;
mod objects;
mod promises;
mod regexp;
mod string;
mod typed;

use outrigger_vm::exec::{Limits, Step, Vm};

const LIMITS: Limits = Limits {
    instructions: 50_000_000,
    call_depth: 1_000,
    host_calls: 8,
    heap: outrigger_vm::heap::Limits { bytes: 256 << 20, records: 8 << 20 },
};

/// The value of a script as text, or how it ended otherwise.
pub(crate) fn eval(source: &str) -> String {
    let mut vm = Vm::new(LIMITS, &[]).expect("an empty engine fits");
    vm.set_world(1, 1_700_000_000_000.0);
    if let Err(error) = vm.load(source) {
        return format!("load: {error}");
    }
    match vm.run() {
        Step::Completed(v) => vm.text(v),
        Step::Threw(e) => format!("threw {}", vm.text(e)),
        Step::Limit(limit) => format!("limit {limit}"),
        other => format!("{other:?}"),
    }
}

/// Runs each script and compares its value, as text.
pub(crate) fn check(cases: &[(&str, &str)]) {
    let mut wrong = String::new();
    for &(source, expected) in cases {
        let found = eval(source);
        if found != expected {
            wrong.push_str(&format!("{source}\n  expected {expected}\n  found    {found}\n"));
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}
