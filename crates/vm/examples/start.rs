//! How long a new machine takes: fork, load, run `1+1`, drop.
#![expect(clippy::print_stdout, reason = "it is a measurement")]

use outrigger_vm::code::Program;
use outrigger_vm::exec::{Limits, Step, Vm};
use std::sync::Arc;
use std::time::Instant;

fn main() {
    let heap = outrigger_vm::heap::Limits { bytes: 64 << 20, records: 1 << 20 };
    let limits = Limits { instructions: 1_000_000, call_depth: 1_000, host_calls: 16, heap };
    let begin = Instant::now();
    let program = Arc::new(Program::compile("1+1").expect("compiles"));
    println!("boot {:?}", begin.elapsed());
    let mut times: Vec<_> = (0..5000)
        .map(|_| {
            let begin = Instant::now();
            let mut vm = Vm::new(limits, &[]).expect("starts");
            vm.load_program(&program).expect("loads");
            assert!(matches!(vm.run(), Step::Completed(_)));
            drop(vm);
            begin.elapsed()
        })
        .collect();
    times.sort();
    // Single runs, so that what else the machine does is seen in the tail only.
    println!(
        "new + 1+1 + drop: best {:?}, median {:?}, nine in ten {:?}",
        times[0], times[2500], times[4500]
    );
    let begin = Instant::now();
    let vms: Vec<Vm> = (0..200).map(|_| Vm::new(limits, &[]).expect("starts")).collect();
    println!("new {:?}", begin.elapsed() / 200);
    let begin = Instant::now();
    drop(vms);
    println!("drop {:?}", begin.elapsed() / 200);
    let mut vm = Vm::new(limits, &["ask"]).expect("starts");
    vm.load("const answer = ask('how many?'); `${answer} of them`").expect("loads");
    vm.run();
    let bytes = vm.snapshot().expect("works");
    let begin = Instant::now();
    for _ in 0..100 {
        vm.snapshot().expect("works");
    }
    println!("snapshot {} bytes {:?}", bytes.len(), begin.elapsed() / 100);
    let begin = Instant::now();
    for _ in 0..100 {
        Vm::restore(&bytes, limits).expect("works");
    }
    println!("restore {:?}", begin.elapsed() / 100);
}
