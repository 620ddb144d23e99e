//! Blobs: a snapshot or a program with bytes changed and its checksum repaired is refused or runs within its limits.
//!
//! The input does not hold a blob, which only one build of the engine could read: it says what to change in one that is
//! made here. Each change is three bytes: where (two) and what. A blob of nothing but the input is tried too.

use crate::Choices;
use outrigger_vm::code::Program;
use outrigger_vm::exec::{Limits, Step, Vm};
use outrigger_vm::snapshot::reseal;
use outrigger_vm::value::Value;
use std::sync::Arc;

const LIMITS: Limits = Limits {
    instructions: 60_000,
    call_depth: 64,
    host_calls: 8,
    heap: outrigger_vm::heap::Limits { bytes: 4 << 20, records: 1 << 16 },
};

/// What stands before a payload.
const HEADER: usize = 26;

/// Scripts whose machines have something of everything.
const SCRIPTS: &[&str] = &[
    "ask(1)",
    "const o = { a: [1, , 'x', 2.5], get g() { return ask(1) } }; const m = new Map([[o, 1n], ['k', o]]);
     function* g(n) { try { yield n; yield ask(n) } finally { m.delete('k') } } const it = g(3); it.next();
     let t = ''; for (let i = 0; i < 60; i++) t += i + '\\u1234'; const u = t + t.slice(2, 80);
     const d = {}; for (let i = 0; i < 140; i++) d['k' + i] = i; delete d.k3;
     [3, 1, 2].sort((x, y) => ask(x) - y); [...it, o.g, u.length, d.k139]",
    "async function* gen() { yield 1; yield await ask(2) } const a = gen(); const two = [a.next(), a.next()];
     const all = Promise.all([ask(1), ask(2)]); for await (const v of a) two.push(v); (await all).concat(await ask(3)).join()",
    "class A { #p = ask(1); get p() { return this.#p + super.toString().length } } const p = new Proxy(new A(), { get: (t, k) => t[k] });
     const b = new Uint8Array(12); b[1] = ask(2); const w = new WeakMap([[p, b]]); [new A().p, w.get(p)[1], ask.bind(null, 4)()].join()",
];

/// Changes a snapshot and runs what is accepted.
pub fn snapshot_load(input: &[u8]) {
    let mut choices = Choices::new(input);
    let script = choices.pick(SCRIPTS);
    let calls = choices.byte() % 4;
    let Ok(mut vm) = Vm::new(LIMITS, &["ask"]) else { return };
    if vm.load(script).is_err() {
        return;
    }
    let mut step = vm.run();
    for n in 0..calls {
        if let Step::Suspended(_) = step {
            step = vm.resume(Ok(Value::int(i32::from(n))));
        }
    }
    let Ok(mut bytes) = vm.snapshot() else { return };
    assert!(Vm::restore(&bytes, LIMITS).is_ok(), "an honest snapshot is accepted");
    change(&mut bytes, choices.rest);
    run(&bytes);
    let mut foreign = bytes[..HEADER].to_vec();
    foreign.extend_from_slice(choices.rest);
    reseal(&mut foreign);
    run(&foreign);
}

/// Changes a program and runs what is accepted.
pub fn program_load(input: &[u8]) {
    let mut choices = Choices::new(input);
    let script = choices.pick(SCRIPTS);
    let Ok(Ok(mut bytes)) = Program::compile(script).map(|program| program.to_bytes()) else { return };
    assert!(Program::from_bytes(&bytes).is_ok(), "an honest program is accepted");
    change(&mut bytes, choices.rest);
    let Ok(program) = Program::from_bytes(&bytes) else { return };
    let Ok(mut vm) = Vm::new(LIMITS, &["ask"]) else { return };
    if vm.load_program(&Arc::new(program)).is_ok() {
        finish(vm);
    }
}

fn change(bytes: &mut [u8], edits: &[u8]) {
    let len = bytes.len() - HEADER;
    for edit in edits.chunks_exact(3) {
        let at = usize::from(u16::from_le_bytes([edit[0], edit[1]])) % len;
        bytes[HEADER + at] = edit[2];
    }
    reseal(bytes);
}

fn run(bytes: &[u8]) {
    if let Ok(mut vm) = Vm::restore(bytes, LIMITS) {
        let again = vm.snapshot();
        assert!(
            again.is_ok_and(|again| Vm::restore(&again, LIMITS).is_ok()),
            "what was accepted is accepted again"
        );
        finish(vm);
    }
}

fn finish(mut vm: Vm) {
    let mut step = vm.run();
    for n in 0..20 {
        let Step::Suspended(_) = step else { break };
        let answer = if n % 5 == 4 { Err(vm.error("no")) } else { Ok(Value::int(n)) };
        step = vm.resume(answer);
    }
    if let Step::Completed(v) | Step::Threw(v) = step {
        let _ = vm.text(v);
    }
}
