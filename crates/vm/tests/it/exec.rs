//! The interpreter, through scripts: each case is a script and the value it must have.

use outrigger_vm::exec::{Limit, Limits, Step, Vm};
use outrigger_vm::heap::Pace;
use outrigger_vm::value::Value;

const LIMITS: Limits = Limits {
    instructions: 50_000_000,
    call_depth: 1_000,
    host_calls: 8,
    heap: outrigger_vm::heap::Limits { bytes: 256 << 20, records: 8 << 20 },
};

fn eval_with(source: &str, pace: Pace) -> String {
    let mut vm = match Vm::with_pace(LIMITS, &["ask"], pace) {
        Ok(vm) => vm,
        Err(e) => return format!("boot: {e}"),
    };
    if let Err(e) = vm.load(source) {
        return format!("load: {e}");
    }
    let mut step = vm.run();
    // The host answers every question with its argument plus one hundred.
    while let Step::Suspended(call) = step {
        let n = call.args.first().and_then(|v| v.as_int()).unwrap_or(0);
        step = vm.resume(Ok(Value::int(n + 100)));
    }
    match step {
        Step::Completed(v) => vm.text(v),
        Step::Threw(e) => format!("threw {}", vm.text(e)),
        Step::Limit(limit) => format!("limit {limit}"),
        Step::Stuck => "stuck".to_owned(),
        Step::Suspended(_) | Step::Paused => "suspended".to_owned(),
    }
}

/// Runs each script and compares its value, as text, with what the language says it is.
fn check(cases: &[(&str, &str)]) {
    let mut wrong = String::new();
    for &(source, expected) in cases {
        let found = eval_with(source, Pace::Adaptive);
        if found != expected {
            wrong.push_str(&format!("{source}\n  expected {expected}\n  found    {found}\n"));
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

#[test]
fn expressions_have_the_values_of_the_language() {
    check(&[
        ("1 + 2 * 3", "7"),
        ("2 ** 10", "1024"),
        ("7 % 3", "1"),
        ("1 / 3", "0.3333333333333333"),
        ("'a' + 1 + 2", "a12"),
        ("1 + 2 + 'a'", "3a"),
        ("`x${1 + 1}y${'z'}`", "x2yz"),
        ("2147483647 + 1", "2147483648"),
        ("-2147483648 - 1", "-2147483649"),
        ("65536 * 65536", "4294967296"),
        ("1 / (-1 * 0)", "-Infinity"),
        ("1 / (-4 % 2)", "-Infinity"),
        ("5 & 3 | 8 ^ 1", "9"),
        ("-1 >>> 0", "4294967295"),
        ("1 << 33", "2"),
        ("~5", "-6"),
        ("typeof null + typeof undefined + typeof (() => 1) + typeof 1n", "objectundefinedfunctionbigint"),
        ("typeof nothing", "undefined"),
        ("1 < 2 && 2 < 3 || false", "true"),
        ("null ?? 'd'", "d"),
        ("0 || 'd'", "d"),
        ("'b' > 'a'", "true"),
        ("NaN >= NaN", "false"),
        ("1 == '1'", "true"),
        ("null == undefined", "true"),
        ("null == 0", "false"),
        ("2n ** 64n", "18446744073709551616"),
        ("1n < 2", "true"),
        ("10n == 10", "true"),
        ("(1, 2, 3)", "3"),
        ("void 0", "undefined"),
        ("!0", "true"),
        ("let x = 5; x++ + ++x", "12"),
        ("let a = 1; a + (a = 5) + a", "11"),
        ("let a = 1; a += (a = 5); a", "6"),
        ("let y = 1; y = y + 1, y", "2"),
        ("let q; q ??= 4; q &&= q + 1; q ||= 9; q", "5"),
    ]);
}

#[test]
fn functions_closures_and_loops_work() {
    check(&[
        ("function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); } fib(15)", "610"),
        ("const f = n => n <= 1 ? 1 : n * f(n - 1); f(10)", "3628800"),
        (
            "let t = 0; for (let i = 0; i < 100; i++) { if (i % 2) continue; if (i > 50) break; t += i; } t",
            "650",
        ),
        ("let i = 0; while (true) { if (++i === 7) break; } i", "7"),
        ("let i = 0; do i += 3; while (i < 10); i", "12"),
        (
            "outer: for (let i = 0; i < 3; i++) for (let j = 0; j < 3; j++) if (j === 1) continue outer; else if (i === 2) break outer; 1",
            "1",
        ),
        (
            "const fs = []; for (let i = 0; i < 3; i++) fs.push(() => i); fs[0]() + '' + fs[1]() + fs[2]()",
            "012",
        ),
        (
            "function counter() { let n = 0; return () => ++n; } const a = counter(), b = counter(); a(); a(); b(); a() * 10 + b()",
            "32",
        ),
        ("(function f(n) { return n ? f(n - 1) : typeof f; })(3)", "function"),
        ("function f(a, b = a + 1, ...c) { return a + b + c.length; } f(1) + f(1, 1, 1, 1)", "7"),
        ("function f() { return arguments.length + arguments[1]; } f(1, 2, 3)", "5"),
        ("function f(a) { arguments[0] = 9; return a; } f(1)", "1"),
        (
            "(() => { try { x; let x = 1; } catch (e) { return e.message; } })()",
            "Cannot access 'x' before initialization",
        ),
        ("const c = 1; try { c = 2; } catch (e) { e.message }", "Assignment to constant variable."),
        ("const o = {f() { return this.x; }, x: 4}; o.f()", "4"),
        ("(function () { return this; })()", "undefined"),
        ("const f = () => function (a) { return typeof this + a; }; f(1, 2)(3)", "undefined3"),
        ("const t = s => t2 => s[0] + t2[0]; t`a``b`", "ab"),
        ("const o = {x: 1, f() { return [1].length && (() => this.x)(); }}; o.f()", "1"),
        ("switch (3) { case 1: 'a'; case 3: 'b'; case 4: 'c'; break; default: 'd' }", "c"),
        ("switch (9) { case 1: 'a'; default: 'd'; case 2: 'e' }", "e"),
        ("if (0) 1; else if (1) 2; else 3", "2"),
        ("undefinedName", "threw ReferenceError: undefinedName is not defined"),
        ("null.x", "threw TypeError: Cannot read properties of null (reading 'x')"),
        ("let u; u.x()", "threw TypeError: Cannot read properties of undefined (reading 'x')"),
        ("({}).x()", "threw TypeError: ({}).x is not a function"),
    ]);
}

#[test]
fn a_script_has_the_completion_value_of_the_language() {
    check(&[
        ("1; if (false) {}", "undefined"),
        ("1; var x;", "1"),
        ("1; do { 2; break; } while (0)", "2"),
        ("try { 1 } finally { 2 }", "1"),
        ("1; function f() {}", "1"),
        ("1; {}", "1"),
        ("for (let i = 0; i < 3; i++) i", "2"),
    ]);
}

#[test]
fn objects_arrays_and_accessors_work() {
    check(&[
        ("const o = {a: 1, 'b c': 2, [1 + 1]: 3}; o.a + o['b c'] + o[2]", "6"),
        ("const o = {get x() { return 7; }, set x(v) { this.y = v; }}; o.x = 5; o.x + o.y", "12"),
        ("[1, 2, 3].length + [, 1].length", "5"),
        ("const a = [1]; a[3] = 4; a.length + '' + a[2]", "4undefined"),
        ("const a = []; a[0] = 1; a[1] = 2; a.push(3, 4); a.length", "4"),
        ("const o = {...{a: 1, b: 2}, b: 3}; o.a + o.b", "4"),
        ("[...[1, 2], ...[3]].length", "3"),
        ("const {a, b: {c = 5}, ...r} = {a: 1, b: {}, d: 4, e: 5}; a + c + r.d + r.e", "15"),
        ("const [x, , y = 9, ...z] = [1, 2, undefined, 4, 5]; x + y + z.length", "12"),
        ("let a = 1, b = 2; [a, b] = [b, a]; a * 10 + b", "21"),
        ("const o = {}; [o.x, o['y']] = [1, 2]; o.x + o.y", "3"),
        ("(({a}, [b]) => a + b)({a: 1}, [2])", "3"),
        ("let s = ''; for (const k in {a: 1, b: 2}) s += k; s", "ab"),
        ("let t = 0; for (const v of [1, 2, 3]) t += v; t", "6"),
        ("'x' in {x: 1} && !('y' in {x: 1})", "true"),
        ("const o = {a: 1}; delete o.a; typeof o.a", "undefined"),
        ("const o = {a: {b: null}}; o?.a?.b?.c.d + '' + o.q?.(1)", "undefinedundefined"),
        ("const o = {f() { return this.v; }, v: 3}; (o.f)() + o?.f() + (o?.f)()", "9"),
        ("'abc'.length + 'abc'[1]", "3b"),
        ("const p = {x: 1}; const o = {__proto__: p}; o.x", "1"),
        ("const f = () => {}; f.name + (function () {}).name + ({m() {}}).m.name", "fm"),
        ("const t = (s, ...v) => s[0] + v[0] + s.raw[1]; t`a${1}\\n`", "a1\\n"),
    ]);
}

#[test]
fn exceptions_unwind_through_finally_in_every_way() {
    check(&[
        ("try { throw 1; } catch (e) { e + 1 }", "2"),
        ("(() => { try { return 1; } finally { print(1); } })()", "1"),
        ("(() => { try { return 1; } finally { return 2; } })()", "2"),
        ("(() => { try { throw 1; } catch (e) { throw e + 1; } finally { return 5; } })()", "5"),
        ("(() => { for (;;) { try { break; } finally { print(0); } } return 3; })()", "3"),
        (
            "(() => { let s = ''; for (let i = 0; i < 3; i++) { try { if (i == 1) continue; s += i; } finally { s += 'f'; } } return s; })()",
            "0ff2f",
        ),
        (
            "function a() { throw new TypeError('deep'); } function b() { try { a(); } finally { } } try { b() } catch (e) { e.message + (e instanceof TypeError) + (e instanceof Error) }",
            "deeptruetrue",
        ),
        ("(() => { try { try { throw 1; } finally { throw 2; } } catch (e) { return e; } })()", "2"),
        ("(() => { l: try { return 1; } finally { break l; } return 2; })()", "2"),
        ("throw new RangeError('no')", "threw RangeError: no"),
        ("try { throw {a: 1}; } catch ({a}) { a }", "1"),
        ("try { throw 1 } catch { 4 }", "4"),
    ]);
}

#[test]
fn iterators_are_closed_however_a_loop_ends() {
    let it = "let log = ''; const it = {[Symbol.iterator]() { let n = 0; return {next() { return {value: ++n, done: n > 4}; }, return() { log += 'r'; return {}; }}; }};";
    for (body, expected) in [
        ("for (const v of it) log += v; log", "1234"),
        ("for (const v of it) { if (v == 2) break; log += v; } log", "1r"),
        ("try { for (const v of it) throw 1; } catch (e) { log += e; } log", "r1"),
        ("(() => { for (const v of it) return v; })() + log", "1r"),
        ("const [a, b] = it; a + b + log", "3r"),
        ("const [...a] = it; a.length + log", "4"),
        ("[...it].length + log", "4"),
        ("o: for (const x of [1, 2]) for (const v of it) continue o; log", "rr"),
        ("o: for (const x of it) for (const v of it) break o; log", "rr"),
        ("Math.floor(...it)", "1"),
    ] {
        check(&[(&format!("{it}{body}"), expected)]);
    }
}

#[test]
fn classes_have_fields_private_names_and_inheritance() {
    check(&[
        (
            "class A { constructor(x) { this.x = x; } get y() { return this.x * 2; } static s() { return 5; } } new A(3).y + A.s()",
            "11",
        ),
        (
            "class A { x = 1; y = this.x + 1; static z = 9; ['c' + 1] = 4; } const a = new A(); a.x + a.y + A.z + a.c1",
            "16",
        ),
        (
            "class A { #p = 1; get() { return this.#p; } inc() { this.#p++; return this; } static has(o) { return #p in o; } } new A().inc().get() + '' + A.has(new A()) + A.has({})",
            "2truefalse",
        ),
        (
            "class A { #m() { return 7; } get #g() { return 1; } f() { return this.#m() + this.#g; } } new A().f()",
            "8",
        ),
        (
            "class A { f() { return 'A'; } } class B extends A { f() { return super.f() + 'B'; } } new B().f()",
            "AB",
        ),
        (
            "class A { constructor(x) { this.x = x; } } class B extends A { y = this.x + 1; constructor() { super(4); this.z = this.y + 1; } } const b = new B(); b.x + b.y + b.z",
            "15",
        ),
        ("class A { constructor(x) { this.x = x; } } class B extends A {} new B(6).x", "6"),
        ("class A { constructor() { this.t = new.target === B; } } class B extends A {} new B().t", "true"),
        (
            "class B extends Object { constructor() { try { this; } catch (e) { super(); this.m = e.name; } } } new B().m",
            "ReferenceError",
        ),
        (
            "class E extends Error { constructor(m) { super(m); this.name = 'E'; } } try { throw new E('hi'); } catch (e) { e.name + e.message + (e instanceof E) + (e instanceof Error) }",
            "Ehitruetrue",
        ),
        (
            "class A {} try { A(); } catch (e) { e.message }",
            "Class constructor cannot be invoked without 'new'",
        ),
        ("class A { static { this.x = 3; } } A.x", "3"),
        ("const A = class {}; A.name + (class Q {}).name", "AQ"),
        ("class A { static #c = 0; static next() { return ++A.#c; } } A.next(); A.next()", "2"),
        ("class A { a = () => this; } const a = new A(); a.a() === a", "true"),
        ("({}) instanceof class { static [Symbol.hasInstance]() { return true; } }", "true"),
    ]);
}

#[test]
fn generators_suspend_and_resume_in_every_way() {
    check(&[
        (
            "function* g() { const x = yield 1; return x + (yield 2); } const i = g(); i.next().value + i.next(10).value + i.next(5).value",
            "18",
        ),
        ("function* g() { yield* [1, 2]; return 3; } let t = ''; for (const v of g()) t += v; t", "12"),
        (
            "function* a() { return yield* b(); } function* b() { yield 1; return 9; } const i = a(); i.next(); i.next().value",
            "9",
        ),
        (
            "function* g() { try { yield 1; } finally { print('f'); yield 2; } } const i = g(); i.next(); const r = i.return(7); r.value + '' + r.done + i.next().value",
            "2false7",
        ),
        (
            "function* g() { try { yield 1; } catch (e) { yield e + 1; } } const i = g(); i.next(); i.throw(4).value",
            "5",
        ),
        ("function* g() { yield 1; } const i = g(); i.return(3).value + '' + i.next().done", "3true"),
        (
            "function* f() { let a = 0, b = 1; for (;;) { yield a; [a, b] = [b, a + b]; } } let n = 0; for (const v of f()) { n = v; if (v > 50) break; } n",
            "55",
        ),
        ("[...(function* () { yield* [1, 2, 3]; })()].length", "3"),
        (
            "function* g() { i.next(); } const i = g(); try { i.next() } catch (e) { e.message }",
            "Generator is already running",
        ),
    ]);
}

#[test]
fn async_code_runs_in_the_order_of_the_language() {
    check(&[
        ("await 5", "5"),
        ("const f = async x => (await x) + 1; await f(1) + await f(Promise.resolve(2))", "5"),
        ("let s = ''; (async () => { s += 1; await 0; s += 3; })(); s += 2; await 0; await 0; s", "123"),
        ("async function f() { throw new Error('x'); } try { await f(); } catch (e) { e.message }", "x"),
        ("await new Promise(r => r(4))", "4"),
        ("await Promise.resolve(1).then(v => { throw v + 1; }).then(null, e => e * 10)", "20"),
        ("await {then(r) { r(8); }}", "8"),
        (
            "async function f() { try { return await Promise.reject(3); } catch (e) { return e + 1; } finally { print(1); } } await f()",
            "4",
        ),
        ("let t = 0; for await (const v of [1, Promise.resolve(2)]) t += v; t", "3"),
        ("new Promise(() => {})", "stuck"),
        ("Promise.reject(new TypeError('no'))", "threw TypeError: no"),
    ]);
}

#[test]
fn a_host_call_suspends_wherever_it_is_made() {
    check(&[
        ("ask(1) + ask(2)", "203"),
        ("const o = {get x() { return ask(5); }}; o.x + 1", "106"),
        ("const o = {valueOf() { return ask(1); }}; o + o", "202"),
        (
            "const o = {valueOf() { return ask(1); }}; (o < 200) + '' + (o > 200) + (o == 101)",
            "truefalsetrue",
        ),
        ("const o = {toString() { return 'k' + ask(0); }}; const p = {k100: 3}; p[o] + `${o}`", "3k100"),
        ("class A { x = ask(1); constructor() { this.y = ask(2); } } const a = new A(); a.x + a.y", "203"),
        ("function* g() { yield ask(1); } [...g()][0]", "101"),
        (
            "let t = 0; for (const v of {*[Symbol.iterator]() { yield ask(1); yield ask(2); }}) t += v; t",
            "203",
        ),
        // A sort-like loop: the comparator asks, in the middle of somebody else's loop.
        (
            "function sort(a, less) { for (let i = 1; i < a.length; i++) for (let j = i; j > 0 && less(a[j], a[j - 1]); j--) [a[j], a[j - 1]] = [a[j - 1], a[j]]; return a; } const a = sort([3, 1, 2], (x, y) => ask(x) < ask(y)); a[0] + '' + a[1] + a[2]",
            "123",
        ),
        ("const f = async n => (await ask(n)) + 1; await f(1) + await f(2)", "205"),
        (
            "const a = ask; (async () => { const p = ask(1), q = ask(2); return (await q) * 1000 + await p; })()",
            "102101",
        ),
    ]);
}

#[test]
fn a_host_error_is_thrown_at_the_call() {
    let mut vm = Vm::new(LIMITS, &["ask"]).unwrap();
    vm.load("try { ask(1); } catch (e) { 'caught ' + e.message }").unwrap();
    assert!(matches!(vm.run(), Step::Suspended(_)));
    let error = vm.error("refused");
    let Step::Completed(v) = vm.resume(Err(error)) else { panic!("the script catches it") };
    assert_eq!(vm.text(v), "caught refused");
}

#[test]
fn limits_end_the_run_and_cannot_be_caught() {
    check(&[
        ("try { for (;;) {} } catch { 1 } finally { 2 }", "limit instruction budget exhausted"),
        ("function f() { f(); } try { f(); } catch { 1 }", "limit call depth limit exceeded"),
        (
            "const a = []; try { for (;;) a.push([a, {}, 'x' + a.length]); } catch { 1 }",
            "limit heap limit of 268435456 bytes exceeded",
        ),
    ]);
}

#[test]
fn the_call_depth_limit_is_exact() {
    let depth = |limit: u32| {
        let mut vm = Vm::new(Limits { call_depth: limit, ..LIMITS }, &[]).unwrap();
        vm.load("const f = n => n ? f(n - 1) : 0; f(8)").unwrap();
        vm.run()
    };
    assert_eq!(depth(10), Step::Completed(Value::ZERO));
    assert_eq!(depth(9), Step::Limit(Limit::CallDepth));
}

#[test]
fn every_budget_either_finishes_or_stops_cleanly() {
    let source = "let t = 0; for (let i = 0; i < 20; i++) { try { t += [i, i].length; } finally { t++; } } t";
    let mut finished = 0;
    for instructions in 0..600 {
        let mut vm = Vm::new(Limits { instructions, ..LIMITS }, &[]).unwrap();
        vm.load(source).unwrap();
        match vm.run() {
            Step::Completed(v) => {
                assert_eq!(v, Value::int(60));
                finished += 1;
            }
            step => {
                assert_eq!(step, Step::Limit(Limit::Instructions));
                assert_eq!(finished, 0, "more budget must not stop a run that less finished");
            }
        }
    }
    assert!(finished > 0);
}

#[test]
fn collecting_before_every_allocation_changes_nothing() {
    for source in [
        "class A { #p = {v: 1}; get() { return this.#p.v; } } let s = 0; for (let i = 0; i < 20; i++) { const o = {a: [i], b: () => i}; s += o.b() + o.a[0] + new A().get(); } s",
        "function* g() { for (let i = 0; i < 5; i++) yield {i}; } let t = ''; for (const {i} of g()) t += 'x' + i; t",
        "const f = async n => { const o = {n}; await 0; return o.n; }; await f(1) + await f(2)",
        "const o = {valueOf() { return ask(1); }}; 'a' + o + [1, 2, 3].length",
    ] {
        assert_eq!(eval_with(source, Pace::Torture), eval_with(source, Pace::Adaptive), "{source}");
    }
}

#[test]
fn long_sums_chains_and_literals_need_few_registers() {
    let sum = format!("const x = 1; {}", vec!["x"; 60_000].join(" + "));
    let text = format!("({}).length", vec!["'a'"; 60_000].join(" + "));
    let array = format!("[{}].length", vec!["1"; 10_000].join(","));
    let chain = format!("const o = {{}}; o.o = o; (o{}) === o", ".o".repeat(20_000));
    let elses = format!("let i = 999; {} 7", "if (i === 1) 1; else ".repeat(3_000));
    let args = format!("(function () {{ return arguments.length; }})({})", vec!["1"; 150].join(","));
    check(&[
        (&sum, "60000"),
        (&text, "60000"),
        (&array, "10000"),
        (&chain, "true"),
        (&elses, "7"),
        (&args, "150"),
    ]);
}

#[test]
fn a_stack_names_functions_lines_and_columns() {
    check(&[(
        "function inner() {\n  return new Error('here').stack;\n}\nconst outer = () => inner();\nouter()",
        "Error: here\n    at inner (2:10)\n    at outer (4:21)\n    at <anonymous> (5:1)",
    )]);
}

#[test]
fn a_limit_is_final() {
    let mut vm = Vm::new(Limits { instructions: 1_000, ..LIMITS }, &[]).unwrap();
    vm.load("for (;;) {}").unwrap();
    assert_eq!(vm.run(), Step::Limit(Limit::Instructions));
    assert_eq!(vm.run(), Step::Limit(Limit::Instructions));
}

#[test]
fn compiled_code_can_be_read() {
    use outrigger_vm::code::{Base, disassemble};
    use outrigger_vm::compile::{Source, compile};
    use outrigger_vm::parse::{FreeNames, NestingLimit, Options, Permission, TopLevel, parse};
    let options = Options {
        top_level_await: Permission::Refused,
        top_level_return: Permission::Refused,
        intrinsics: Permission::Refused,
        top_level: TopLevel::Private,
        free_names: FreeNames::Allowed,
        nesting: NestingLimit::SAFE_ON_2_MIB,
        source_bytes: 1_000,
        check_regex: |_, _| Ok(()),
    };
    let tree = parse("let x = 1; x + 2", &options).unwrap();
    let program = compile(&tree, Base::ZERO, Source::Guest).unwrap();
    let expected = "function 0 Script registers=4 parameters=0 captures=[]\n\
                    \x20    0 LoadUndef(1)\n\
                    \x20    1 LoadUndef(2)\n\
                    \x20    2 LoadInt(1, 1)\n\
                    \x20    3 AddInt(3, 1, 2)\n\
                    \x20    4 Move(2, 3)\n\
                    \x20    5 Ret(2)\n\
                    \x20    6 RetUndef\n";
    assert_eq!(disassemble(&program), expected);
}

#[test]
fn a_pattern_that_is_none_is_refused_before_anything_runs() {
    let found = eval_with("ask(1); /(/", Pace::Adaptive);
    assert!(found.starts_with("load: the script is not valid"), "{found}");
    assert_eq!(eval_with("if (false) /(a)/u; 1", Pace::Adaptive), "1");
}

#[test]
fn for_in_visits_a_key_once_however_many_there_are_and_wherever_it_stands() {
    let source = "const proto = {}, own = { __proto__: proto }; for (let i = 0; i < 60000; i++) { proto['k' + i] = 1; own['k' + i] = 2; } \
                  let n = 0; for (const k in own) n++; n";
    assert_eq!(eval_with(source, Pace::Adaptive), "60000");
}
