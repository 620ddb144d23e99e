//! How the tests of this folder run a script.

use outrigger_vm::exec::{Limits, Step, Vm};
use outrigger_vm::heap::Pace;
use outrigger_vm::value::Value;

pub(crate) const LIMITS: Limits = Limits {
    instructions: 50_000_000,
    call_depth: 1_000,
    host_calls: 8,
    heap: outrigger_vm::heap::Limits { bytes: 256 << 20, records: 8 << 20 },
};

/// A script's value as text. The host answers every question with its argument plus one hundred.
pub(crate) fn eval_at(source: &str, pace: Pace) -> String {
    let mut vm = match Vm::with_pace(LIMITS, &["ask"], pace) {
        Ok(vm) => vm,
        Err(e) => return format!("boot: {e}"),
    };
    if let Err(e) = vm.load(source) {
        return format!("load: {e}");
    }
    let mut step = vm.run();
    while let Step::Suspended(call) = step {
        let n = call.args.first().and_then(|v| v.as_int()).unwrap_or(0);
        step = vm.resume(Ok(Value::int(n + 100)));
    }
    match step {
        Step::Completed(v) => vm.text(v),
        Step::Threw(e) => format!("threw {}", vm.text(e)),
        Step::Limit(limit) => format!("limit {limit}"),
        other => format!("{other:?}"),
    }
}

/// A script's value as text.
pub(crate) fn eval(source: &str) -> String {
    eval_at(source, Pace::Adaptive)
}

/// What the body of an async function logs by `p(…)`, separated by spaces.
pub(crate) fn logged(body: &str) -> String {
    let source = format!(
        "await (async () => {{ let log = ''; const p = x => {{ log += x + ' ' }}; {body}\n; return log }})()"
    );
    eval(&source).trim_end().to_owned()
}
