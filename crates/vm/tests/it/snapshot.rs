//! Programs and machines as bytes: what comes back is what went in, and nothing else comes in.

use outrigger_vm::code::Program;
use outrigger_vm::exec::{Limits, Step, Vm};
use outrigger_vm::heap::Pace;
use outrigger_vm::snapshot::reseal;
use outrigger_vm::value::Value;
use proptest::prelude::*;
use std::sync::Arc;

pub(crate) const LIMITS: Limits = Limits {
    instructions: 50_000_000,
    call_depth: 1_000,
    host_calls: 8,
    heap: outrigger_vm::heap::Limits { bytes: 64 << 20, records: 4 << 20 },
};

fn suspended(source: &str) -> Vm {
    let mut vm = Vm::new(LIMITS, &["ask"]).expect("the engine starts");
    vm.load(source).expect("the script loads");
    assert!(matches!(vm.run(), Step::Suspended(_)), "{source}");
    vm
}

#[test]
fn a_snapshot_of_a_restored_machine_is_the_same_bytes() {
    for source in [
        "ask(1)",
        "let t = ''; for (let i = 0; i < 300; i++) t += 'x' + i + '\\u1234'; const u = t.slice(3, 90) + t; ask(1) + u.length",
        "const m = new Map([[1, 'a'], ['b', {}], [2n ** 80n, 3]]); m.delete(1); const s = new Set([m, NaN]); ask(m.size + s.size)",
        "class A { #x = 1; get x() { return this.#x } static y = ask(3) } new A().x",
        "function* g() { yield ask(1); yield 2 } const it = g(); [...it]",
        "const o = {}; for (let i = 0; i < 300; i++) o['k' + i] = i; delete o.k7; ask(1); Object.keys(o).length",
        "const a = []; a[5000000] = 1; a.length = 10; ask(1)",
        "const s = Symbol('y'); const w = new WeakMap(); const k = {}; w.set(k, s); ask(1)",
        "async function f(x) { const a = await ask(x); return a + await ask(a) } await f(1) + await f(2)",
    ] {
        let mut vm = suspended(source);
        let first = vm.snapshot().expect("the engine works");
        let mut again = Vm::restore(&first, LIMITS).unwrap_or_else(|e| panic!("{source}: {e}"));
        assert_eq!(again.snapshot().expect("the engine works"), first, "{source}");
        assert_eq!((vm.heap().bytes(), vm.heap().records()), (again.heap().bytes(), again.heap().records()));
        assert_eq!((again.heap().bytes(), again.heap().records()), again.heap().audit(), "{source}");
        assert_eq!(vm.fuel(), again.fuel());
        let (mut a, mut b) = (vm.resume(Ok(Value::int(7))), again.resume(Ok(Value::int(7))));
        loop {
            assert_eq!(format!("{a:?}"), format!("{b:?}"), "{source}");
            assert_eq!(vm.fuel(), again.fuel(), "{source}");
            assert_eq!(vm.heap().bytes(), again.heap().bytes(), "{source}");
            if !matches!(a, Step::Suspended(_)) {
                break;
            }
            (a, b) = (vm.resume(Ok(Value::int(8))), again.resume(Ok(Value::int(8))));
        }
    }
}

#[test]
fn the_snapshot_of_a_small_script_is_below_one_and_a_half_kilobytes() {
    let mut vm = suspended("const answer = ask('how many?'); `${answer} of them`");
    let size = vm.snapshot().expect("the engine works").len();
    assert!(size < 1_536, "{size} bytes");
}

#[test]
fn a_thousand_rows_take_less_than_fifteen_bytes_each_and_a_thousand_alike_next_to_nothing() {
    let row = "{ id: i, name: 'row ' + i, value: i * 1.5, ok: true }";
    let size = |row: &str| {
        let source = format!("const rows = []; for (let i = 0; i < 1000; i++) rows.push({row}); ask(1)");
        suspended(&source).snapshot().expect("the engine works").len()
    };
    assert!(size(row) < 15_000, "{} bytes", size(row));
    assert!(
        size("{ id: i, ok: true, none: null }") < 600,
        "{} bytes",
        size("{ id: i, ok: true, none: null }")
    );
}

#[test]
fn a_program_comes_back_from_its_bytes_and_runs_in_many_machines() {
    let program = Program::compile("const f = n => n < 2 ? n : f(n - 1) + f(n - 2); f(10) + ask(2)")
        .expect("it compiles");
    let bytes = program.to_bytes().expect("the engine works");
    let back = Arc::new(Program::from_bytes(&bytes).expect("it is a program"));
    assert_eq!(back.to_bytes().expect("the engine works"), bytes);
    for _ in 0..2 {
        let mut vm = Vm::with_pace(LIMITS, &["ask"], Pace::Adaptive).expect("the engine starts");
        vm.load_program(&back).expect("it loads");
        assert!(matches!(vm.run(), Step::Suspended(_)));
        assert_eq!(vm.resume(Ok(Value::int(5))), Step::Completed(Value::int(60)));
    }
}

/// Scripts whose machines have something of everything.
const RICH: &[&str] = &[
    "ask(1)",
    "const o = { a: [1, , 'x', 2.5], get g() { return ask(1) } }; const m = new Map([[o, 1n], ['k', o]]); class A { #p = 1; m() { return this.#p } }
     function* g(n) { try { yield n; yield ask(n) } finally { m.delete('k') } } const it = g(3); it.next();
     let t = ''; for (let i = 0; i < 60; i++) t += i + '\\u1234'; const u = t + t.slice(2, 80); const w = new WeakMap([[o, A]]);
     const b = new Uint8Array(new ArrayBuffer(12), 2); b[1] = 7; const p = new Proxy(o, { get: (t, k) => t[k] }); const f = ask.bind(null, 4);
     const d = {}; for (let i = 0; i < 140; i++) d['k' + i] = i; delete d.k3; const s = Symbol.for('z'); o[s] = new Date(5);
     [3, 1, 2].sort((x, y) => ask(x) - y); [...it, o.g, p.a.length, f(), new A().m(), u.length, b[1], w.has(o), d.k139, /a(b)?/d.exec('ab').length]",
    "const later = []; const gen = async function* () { yield 1; yield await ask(2) }; const a = gen(); later.push(a.next(), a.next(), a.return(5));
     const q = new Promise(r => later.push(r)); q.then(v => ask(v)).catch(() => 0); const all = Promise.all([ask(1), ask(2), q]);
     for (const f of later) if (typeof f === 'function') f(9); const out = []; for await (const v of a) out.push(v); (await all).concat(out, await ask(3)).join()",
    "const rows = []; for (let i = 0; i < 30; i++) rows.push({ id: i, name: 'row ' + i, value: i * 1.5, ok: true, more: [i, -i], by: () => i });
     const wide = rows.map(r => ({ ...r, a: 1, b: 2, c: r })); Array.prototype.extra = rows; ask(1); rows[7].ok = null; delete wide[3].a;
     ask(2); [rows.length, wide[9].c.by(), rows.map(r => r.name).join().length, ask(3)].join()",
];

fn snapshot_of(source: &str, calls: u32) -> Vec<u8> {
    let mut vm = suspended(source);
    for n in 0..calls {
        if !matches!(vm.resume(Ok(Value::int(n as i32))), Step::Suspended(_)) {
            break;
        }
    }
    vm.snapshot().expect("the engine works")
}

/// Runs what a snapshot holds, for a while and under small limits.
fn exercise(bytes: &[u8]) {
    let heap = outrigger_vm::heap::Limits { bytes: 4 << 20, records: 1 << 16 };
    let limits = Limits { instructions: 60_000, call_depth: 64, host_calls: 8, heap };
    let Ok(mut vm) = Vm::restore(bytes, limits) else { return };
    let again = vm.snapshot().expect("the engine works");
    assert!(Vm::restore(&again, limits).is_ok(), "what was accepted is accepted again");
    let mut step = vm.run();
    for n in 0..20 {
        match step {
            Step::Suspended(call) => {
                call.args.iter().for_each(|&v| drop(vm.text(v)));
                let answer = if n % 5 == 4 { Err(vm.error("no")) } else { Ok(Value::int(n)) };
                step = vm.resume(answer);
            }
            Step::Completed(v) | Step::Threw(v) => {
                vm.text(v);
                break;
            }
            Step::Limit(_) | Step::Stuck | Step::Paused => break,
        }
    }
    vm.snapshot().expect("the engine works");
}

#[test]
fn the_rich_scripts_run_to_their_end() {
    for source in RICH {
        let mut vm = suspended(source);
        let mut step = vm.resume(Ok(Value::int(7)));
        while let Step::Suspended(_) = step {
            step = vm.resume(Ok(Value::int(7)));
        }
        match step {
            Step::Completed(_) => {}
            Step::Threw(error) => panic!("{source}: {}", vm.text(error)),
            other => panic!("{source}: {other:?}"),
        }
    }
}

#[test]
fn a_snapshot_that_was_cut_or_bent_is_refused() {
    let bytes = snapshot_of(RICH[1], 0);
    for cut in (0..bytes.len()).step_by(97) {
        assert!(Vm::restore(&bytes[..cut], LIMITS).is_err(), "cut at {cut}");
        let mut bent = bytes.clone();
        bent[cut] ^= 0x10;
        assert!(Vm::restore(&bent, LIMITS).is_err(), "bent at {cut}");
        // Cut with a checksum that fits is refused too.
        let mut short = bytes[..cut].to_vec();
        reseal(&mut short);
        assert!(Vm::restore(&short, LIMITS).is_err(), "cut and sealed at {cut}");
    }
}

#[test]
fn a_snapshot_does_not_enter_a_heap_that_is_too_small_for_it() {
    let mut vm = suspended("const a = []; for (let i = 0; i < 20000; i++) a.push({ i }); ask(1)");
    let bytes = vm.snapshot().expect("the engine works");
    let used = vm.heap().bytes();
    let with = |bytes| Limits { heap: outrigger_vm::heap::Limits { bytes, ..LIMITS.heap }, ..LIMITS };
    assert!(Vm::restore(&bytes, with(used)).is_ok());
    let refused = Vm::restore(&bytes, with(used - 1)).map(|_| ()).expect_err("one byte too few");
    assert_eq!(refused.to_string(), "snapshot validation failed: heap usage exceeds configured heap limit");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    /// Bytes are changed, the checksum is repaired, and what is accepted is run.
    #[test]
    fn a_hostile_snapshot_is_refused_or_runs_within_its_limits(
        which in 0..RICH.len(),
        calls in 0..4u32,
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..4u8), 1..5),
    ) {
        let mut bytes = snapshot_of(RICH[which], calls);
        for (at, byte, how) in edits {
            let at = 26 + at.index(bytes.len() - 26);
            match how {
                0 => bytes[at] = byte,
                1 => bytes[at] = bytes[at].wrapping_add(1),
                2 => bytes[at] ^= 1 << (byte % 8),
                _ => bytes[at] = bytes[at].wrapping_sub(1),
            }
        }
        reseal(&mut bytes);
        exercise(&bytes);
    }

    /// The same for programs.
    #[test]
    fn a_hostile_program_is_refused_or_runs_within_its_limits(
        which in 0..RICH.len(),
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let program = Program::compile(RICH[which]).expect("it compiles");
        let mut bytes = program.to_bytes().expect("the engine works");
        // What lies behind the source is code and constants.
        let from = 26 + RICH[which].len() + 12;
        for (at, byte) in edits {
            let at = from + at.index(bytes.len() - from);
            bytes[at] = byte;
        }
        reseal(&mut bytes);
        if let Ok(program) = Program::from_bytes(&bytes) {
            let heap = outrigger_vm::heap::Limits { bytes: 4 << 20, records: 1 << 16 };
            let limits = Limits { instructions: 60_000, call_depth: 64, host_calls: 8, heap };
            let mut vm = Vm::new(limits, &["ask"]).expect("the engine starts");
            vm.load_program(&Arc::new(program)).expect("it was made for this engine");
            if let Step::Suspended(_) = vm.run() {
                exercise(&vm.snapshot().expect("the engine works"));
            }
        }
    }
}

#[test]
fn a_loop_is_left_and_gone_on_with_only_by_ways_that_are_paid_for() {
    for head in ["for (const x in o)", "for (const x of o)", "while (n++ < 9)", "for (;;)", "do"] {
        for body in
            ["continue", "try { continue } finally { n++ }", "l: for (;;) { try { continue } catch {} }"]
        {
            let tail = if head == "do" { "while (n++ < 9)" } else { "" };
            let source =
                format!("const o = [1, 2]; let n = 0; {head} {{ if (n > 5) {body}; {body} }} {tail}");
            let program = Program::compile(&source).expect("it compiles");
            let bytes = program.to_bytes().expect("the engine works");
            assert!(Program::from_bytes(&bytes).is_ok(), "{source}");
        }
    }
}
