//! structuredClone and the console.

use super::check;
use outrigger_vm::exec::{Step, Vm};
use outrigger_vm::value::Value;

#[test]
fn a_clone_is_deep_keeps_identity_and_forgets_prototypes() {
    check(&[
        (
            "JSON.stringify(structuredClone({ a: [1, { b: 2 }], c: 'x', d: null, e: undefined }))",
            r#"{"a":[1,{"b":2}],"c":"x","d":null}"#,
        ),
        (
            "const a = { x: 1 }; a.self = a; a.list = [a]; const c = structuredClone(a); c !== a && c.self === c && c.list[0] === c",
            "true",
        ),
        (
            "const k = { k: 1 }, c = structuredClone(new Map([[k, new Set([1, k])]])); const [[key, set]] = c; key !== k && [...set][1] === key",
            "true",
        ),
        (
            "const e = new TypeError('m', { cause: { a: 1 } }); e.x = 1; const c = structuredClone(e); c.name + c.message + JSON.stringify(c.cause) + (c instanceof TypeError) + c.x",
            r#"TypeErrorm{"a":1}trueundefined"#,
        ),
        ("const n = new Error('z'); n.name = 'Custom'; structuredClone(n).name", "Error"),
        (
            "const r = /a.b/gi; r.lastIndex = 3; const c = structuredClone(r); c.source + c.flags + c.lastIndex + c.test('AxB')",
            "a.bgi0true",
        ),
        ("const d = new Date(5); structuredClone(d).getTime() + String(structuredClone(d) !== d)", "5true"),
        (
            "class A { constructor() { this.x = 1; } } const c = structuredClone(new A()); JSON.stringify(c) + (c instanceof A)",
            r#"{"x":1}false"#,
        ),
        (
            "const a = [1, , 3]; a.x = 5; const c = structuredClone(a); c.length + Object.keys(c).join() + Array.isArray(c)",
            "30,2,xtrue",
        ),
        (
            "typeof structuredClone(Object('ab')) + structuredClone(Object(1n)) + structuredClone(5) + structuredClone(null)",
            "object15null",
        ),
        (
            "JSON.stringify(structuredClone({ get a() { delete this.b; return { q: 1 }; }, b: {} }))",
            r#"{"a":{"q":1}}"#,
        ),
    ]);
}

#[test]
fn what_cannot_be_cloned_is_a_data_clone_error() {
    check(&[
        (
            "try { structuredClone({ a: [Promise.resolve()] }); } catch (e) { e.name + ': ' + e.message + (e instanceof Error) }",
            "DataCloneError: #<Promise> could not be cloned.true",
        ),
        (
            "try { structuredClone(new WeakMap()); } catch (e) { e.name + ': ' + e.message }",
            "DataCloneError: #<WeakMap> could not be cloned.",
        ),
        ("try { structuredClone(x => x); } catch (e) { e.name }", "DataCloneError"),
        ("try { structuredClone(Symbol('q')); } catch (e) { e.name }", "DataCloneError"),
        ("try { structuredClone(); } catch (e) { e.name }", "TypeError"),
    ]);
}

#[test]
fn a_deep_clone_needs_no_stack() {
    check(&[(
        "let d = []; for (let i = 0; i < 50000; i++) d = i % 2 ? [d] : new Map([[1, d]]); \
         let q = structuredClone(d), n = 0; \
         for (;;) { const next = q instanceof Map ? q.get(1) : q[0]; if (next === undefined) break; q = next; n++; } n",
        "50000",
    )]);
}

/// Runs a script with these capabilities; answers every host call with 7 and tells what was asked.
fn with_console(source: &str, capabilities: &[&str]) -> (String, Vec<String>) {
    let mut vm = Vm::new(super::LIMITS, capabilities).expect("an empty engine fits");
    vm.load(source).expect("a valid script");
    let mut asked = Vec::new();
    let mut step = vm.run();
    while let Step::Suspended(call) = step {
        let name = vm.text(call.name);
        let text: Vec<String> = call.args.iter().map(|&v| vm.text(v)).collect();
        asked.push(format!("{name}({})", text.join(", ")));
        step = vm.resume(Ok(Value::int(7)));
    }
    match step {
        Step::Completed(v) => (vm.text(v), asked),
        other => (format!("{other:?}"), asked),
    }
}

#[test]
fn the_console_has_the_methods_that_the_host_grants_and_answers_nothing() {
    let source = "const r = console.log('a', 1); [typeof console, typeof console.warn, r, ask()].join()";
    let (value, asked) = with_console(source, &["console.log", "ask"]);
    assert_eq!(value, "object,undefined,,7");
    assert_eq!(asked, ["console.log(a, 1)", "ask()"]);
    let source = "async function f() { return String(await console.error('x')) + await ask(); } f()";
    let (value, asked) = with_console(source, &["console.error", "ask"]);
    assert_eq!(value, "undefined7");
    assert_eq!(asked, ["console.error(x)", "ask()"]);
    assert_eq!(with_console("'log' in console", &[]).0, "false");
}

#[test]
fn code_cannot_be_made_from_text_by_any_name() {
    check(&[
        ("try { globalThis.eval('1'); } catch (e) { e.name }", "TypeError"),
        ("globalThis.eval(5)", "5"),
        ("try { (() => {}).constructor('return 1'); } catch (e) { e.name }", "TypeError"),
        (
            "try { new (Object.getPrototypeOf(function* () {}).constructor)('yield 1'); } catch (e) { e.name }",
            "TypeError",
        ),
        (
            "try { Object.getPrototypeOf(async () => {}).constructor('1'); } catch (e) { e.message }",
            "Function constructor is unavailable in the supported surface",
        ),
    ]);
}
