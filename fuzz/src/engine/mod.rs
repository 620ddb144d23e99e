//! The engine: any text, any generated program and any pattern end without a panic, within their limits.

mod blob;
pub mod generate;
mod pattern;

pub use blob::{program_load, snapshot_load};
pub use pattern::pattern;

use crate::Choices;
use outrigger_vm::exec::{Limits, Step, Vm};
use outrigger_vm::heap::Pace;
use outrigger_vm::value::Value;

const LIMITS: Limits = Limits {
    instructions: 200_000,
    call_depth: 200,
    host_calls: 8,
    heap: outrigger_vm::heap::Limits { bytes: 8 << 20, records: 1 << 18 },
};

/// The input is a script.
pub fn script(input: &[u8]) {
    let mut choices = Choices::new(input);
    let pace = choices.pick(&[Pace::Adaptive, Pace::Torture]);
    if let Ok(source) = std::str::from_utf8(choices.rest) {
        run(source, pace);
    }
}

/// The input chooses a program of a grammar.
pub fn program(input: &[u8]) {
    let mut choices = Choices::new(input);
    let pace = choices.pick(&[Pace::Adaptive, Pace::Adaptive, Pace::Adaptive, Pace::Torture]);
    let source = generate::program(choices.rest, generate::Library::Ours);
    run(&source, pace);
}

fn run(source: &str, pace: Pace) {
    let Ok(mut vm) = Vm::with_pace(LIMITS, &["ask"], pace) else { return };
    if vm.load(source).is_err() {
        return;
    }
    let mut step = vm.run();
    for n in 0..20 {
        let Step::Suspended(_) = step else { break };
        step = match n % 5 {
            4 => {
                let error = vm.error("the host is not pleased");
                vm.resume(Err(error))
            }
            _ => vm.resume(Ok(Value::int(n))),
        };
    }
    if let Step::Completed(v) | Step::Threw(v) = step {
        let _ = vm.text(v);
    }
}
