//! Corners of the language, a script and its value each.

use crate::eval::{eval, logged};

#[test]
fn template_objects_are_frozen_and_belong_to_their_site() {
    let source = "const t = s => s; const f = () => t`a${1}b`; const x = f(), y = f(), z = t`a${1}b`; \
        [x === y, x === z, Object.isFrozen(x), Object.isFrozen(x.raw), x.length, x.raw[1], Object.keys(x).join(), \
         (() => { try { x[0] = 1 } catch (e) { return e.name } })()].join(' ')";
    assert_eq!(eval(source), "true false true true 2 b 0,1 TypeError");
}

#[test]
fn assigning_to_a_global_that_only_its_own_value_makes_is_an_error() {
    let source = "let r = ''; try { later = (globalThis.later = 5) } catch (e) { r = e.message } r + later";
    assert_eq!(eval(source), "later is not defined5");
    assert_eq!(eval("globalThis.now = 1; now = now + 1; now"), "2");
    assert_eq!(
        eval("let n = 0; try { nowhere = n++ } catch (e) { e.message + n }"),
        "nowhere is not defined1"
    );
}

#[test]
fn what_a_derived_constructor_returns_is_judged_after_its_body() {
    let source = "class A {} class B extends A { constructor() { super(); try { return 1 } catch (e) { return {} } finally { log.push('f') } } } \
        const log = []; try { new B() } catch (e) { e.name + log }";
    assert_eq!(eval(source), "TypeErrorf");
}

#[test]
fn functions_take_the_names_of_their_places() {
    let source = "const s = Symbol('sym'), o = { f: () => {}, [s]: class {}, ['k' + 1]: function () {}, get g() {}, async *m() {} }; \
        const { d = () => {} } = {}; let a; a ??= () => {}; class C { static x = () => {}; #p() {} static q = new C().#p.name; static name() {} } \
        [o.f.name, o[s].name, o.k1.name, Object.getOwnPropertyDescriptor(o, 'g').get.name, o.m.name, d.name, a.name, C.x.name, C.q, typeof C.name, (class { static name = 'own' }).name].join(' ')";
    assert_eq!(eval(source), "f [sym] k1 get g m d a x #p function own");
}

#[test]
fn destructuring_evaluates_in_order_and_closes_what_it_opened() {
    let body = "const src = () => ({ [Symbol.iterator]() { return { i: 0, next() { p('n' + this.i); return { value: this.i++, done: false } }, return() { p('closed'); return {} } } } }); \
        const o = {}; const t = n => { p('t' + n); return o }; \
        [t(1).a, t(2).b] = src(); ({ [(p('k'), 'x')]: t(3).c = (p('default'), 9), ...t(4).rest } = { y: 1 }); p(o.c + o.rest.y); \
        try { [t(5).z, (() => { throw 'mid' })().y] = src() } catch (e) { p(e) } \
        const [] = src(); const [, ...[q]] = [1, 2]; p(q); for (const v of src()) { if (v) break }";
    assert_eq!(logged(body), "t1 n0 t2 n1 closed k t3 default t4 10 t5 n0 closed mid closed 2 n0 n1 closed");
}

#[test]
fn finally_has_the_last_word() {
    let cases = [
        ("(() => { try { return 1 } finally { return 2 } })()", "2"),
        ("(() => { for (;;) { try { return 1 } finally { break } } return 3 })()", "3"),
        (
            "(() => { let i = 0; for (;;) { try { if (i++ < 3) continue; return i } finally { if (i === 2) i = 10 } } })()",
            "11",
        ),
        ("(() => { try { throw 1 } catch (e) { return 'c' } finally { } })()", "c"),
        ("(() => { let x = 1; try { return x } finally { x = 2 } })()", "1"),
        ("(() => { l: try { return 1 } finally { break l } return 'after' })()", "after"),
        ("(() => { try { try { throw 'a' } finally { throw 'b' } } catch (e) { return e } })()", "b"),
        ("1; do { 2; continue; } while (false)", "2"),
        ("1; try { 2 } finally { 3 }", "2"),
        ("1; l: { 2; break l; }", "2"),
        ("1; if (false) 2", "undefined"),
        ("var x = 1; switch (1) { case 1: 5; }", "5"),
    ];
    for (source, expected) in cases {
        assert_eq!(eval(source), expected, "{source}");
    }
}
