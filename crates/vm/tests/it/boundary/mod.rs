//! What crosses between guest and host: values, calls, answers and authority.

mod authority;
mod calls;
mod errors;
mod export;
mod hostile;
mod import;
mod roots;

use outrigger_vm::boundary::{BoundaryError, Plain};
use outrigger_vm::exec::{Limit, Limits, Step, Vm};
use outrigger_vm::heap::Pace;

const LIMITS: Limits = Limits {
    instructions: 1_000_000,
    call_depth: 256,
    host_calls: 8,
    heap: outrigger_vm::heap::Limits { bytes: 8 << 20, records: 250_000 },
};

/// A machine that converts arguments, as a sidecar's does, with a script in it.
fn machine(limits: Limits, source: &str) -> Vm {
    machine_at(limits, source, Pace::Adaptive)
}

fn machine_at(limits: Limits, source: &str, pace: Pace) -> Vm {
    let mut vm = Vm::with_pace(limits, &["ask", "tell", "console.log"], pace).expect("the engine starts");
    vm.convert_arguments();
    vm.load(source).unwrap_or_else(|error| panic!("{source}: {error}"));
    vm
}

/// The script's value, exported.
fn export(source: &str) -> Result<Plain, BoundaryError> {
    export_with(LIMITS, source)
}

fn export_with(limits: Limits, source: &str) -> Result<Plain, BoundaryError> {
    let mut vm = machine(limits, source);
    match vm.run() {
        Step::Completed(value) => vm.export(value),
        Step::Limit(limit) => Err(BoundaryError::Limit(limit)),
        step => panic!("{source}: {step:?}"),
    }
}

/// What became of a run, in words.
fn outcome(vm: &mut Vm, step: Step) -> String {
    match step {
        Step::Completed(value) => match vm.export(value) {
            Ok(plain) => show(&plain),
            Err(error) => format!("cannot cross: {error}"),
        },
        Step::Threw(error) => format!("threw {}", vm.report(error).headline()),
        Step::Limit(limit) => format!("limit: {limit}"),
        Step::Suspended(call) => {
            let args = vm.arguments(call.id).expect("arguments can cross");
            let args: Vec<String> = args.iter().map(show).collect();
            format!("{}: {}({})", call.id, vm.text(call.name), args.join(", "))
        }
        Step::Stuck => "stuck".to_owned(),
        Step::Paused => "paused".to_owned(),
    }
}

fn run(vm: &mut Vm) -> String {
    let step = vm.run();
    outcome(vm, step)
}

/// Plain data, short.
fn show(plain: &Plain) -> String {
    match plain {
        Plain::Undefined => "undefined".to_owned(),
        Plain::Null => "null".to_owned(),
        Plain::Hole => "-".to_owned(),
        Plain::Bool(b) => b.to_string(),
        Plain::Number(x) => x.to_string(),
        Plain::String(s) => format!("{s:?}"),
        Plain::Array(parts) => format!("[{}]", parts.iter().map(show).collect::<Vec<_>>().join(", ")),
        Plain::Object(parts) => {
            let parts: Vec<String> =
                parts.iter().map(|(key, value)| format!("{key}: {}", show(value))).collect();
            format!("{{{}}}", parts.join(", "))
        }
    }
}

fn text(s: &str) -> Plain {
    Plain::String(s.to_owned())
}

fn nested(levels: usize) -> Plain {
    (0..levels).fold(Plain::Null, |inner, _| Plain::Array(vec![inner]))
}

const INSTRUCTIONS: BoundaryError = BoundaryError::Limit(Limit::Instructions);
