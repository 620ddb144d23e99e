//! Early errors and refusals, one line each; every one has a neighbour that is fine.

use super::{ok, ok_with, options, parse_error, refusal};
use outrigger_vm::parse::{FreeNames, Permission};

/// Each pair: what is refused, and something close to it that is not.
fn check(pairs: &[(&str, &str)]) {
    for (wrong, right) in pairs {
        parse_error(wrong);
        ok(right);
    }
}

#[test]
fn a_name_is_declared_once_in_a_scope() {
    check(&[
        ("let a; let a", "let a; { let a }"),
        ("let a; var a", "var a; var a"),
        ("var a; let a", "var a; { let a }"),
        ("{ var a } let a", "{ let a } var a"),
        ("let a; { var a }", "let a; (function () { var a })"),
        ("{ { var a } let a }", "{ { let a } } { var a }"),
        ("{ function f() {} function f() {} }", "function f() {} function f() {}"),
        ("{ function f() {} var f }", "function f() {} var f"),
        ("(function (a) { let a })", "(function (a) { var a })"),
        ("(function (a = 1) { let a })", "(function (a = 1) { var a })"),
        ("(function (a, a) {})", "(function (a, b) {})"),
        ("(a, [a]) => 1", "(a, [b]) => 1"),
        ("try {} catch (e) { let e }", "try {} catch (e) { { let e } }"),
        ("try {} catch ([e, e]) {}", "try {} catch ([e, f]) {}"),
        ("switch (1) { case 1: let a; case 2: let a }", "switch (1) { case 1: { let a } case 2: let a }"),
        ("for (let a of []) { var a }", "for (let a of []) { let a }"),
        ("for (let a, a;;) {}", "for (var a, a;;) {}"),
        ("class A {} class A {}", "class A {} { class A {} }"),
        ("class A { #a; #a }", "class A { get #a() {} set #a(v) {} }"),
        ("class A { get #a() {} static set #a(v) {} }", "class A { static get #a() {} static set #a(v) {} }"),
        (
            "class A { constructor() {} constructor() {} }",
            "class A { constructor() {} static constructor() {} }",
        ),
        ("class A { static { let a; var a } }", "class A { static { var a } static { let a } }"),
    ]);
}

#[test]
fn only_what_can_hold_a_value_is_assigned_to() {
    check(&[
        ("f() = 1", "f().a = 1"),
        ("a?.b = 1", "(a?.b).c = 1"),
        ("({ a: 1 }) = 1", "({ a: b } = {})"),
        ("[(a = 1)] = []", "[(a)] = []"),
        ("[([a])] = []", "[[a]] = []"),
        ("[...a, b] = []", "[b, ...a] = []"),
        ("[...a,] = []", "[...a,]"),
        ("({ ...{ a } } = {})", "({ ...a } = {})"),
        ("({ a = 1 })", "({ a = 1 } = {})"),
        ("[{ a = 1 }.b] = []", "[{ a: 1 }.b] = []"),
        ("f({ a = 1 })", "({ a = 1 }) => 1"),
        ("({ get a() {} } = {})", "({ a: get } = {})"),
        ("eval = 1", "x.eval = 1"),
        ("arguments++", "x.arguments++"),
        ("++f()", "++f().a"),
        ("this = 1", "this.a = 1"),
        ("new.target = 1", "(function () { new.target.a = 1 })"),
        ("for (f() of []) ;", "for (f().a of []) ;"),
        ("a => {} = 1", "a = () => {}"),
        ("let a; delete a", "let a; delete a.b"),
        ("delete ((a))", "delete ((a.b))"),
        ("class A { #a; b() { delete this.#a } }", "class A { #a; b() { delete this.#a.c } }"),
    ]);
}

#[test]
fn jumps_have_targets() {
    check(&[
        ("break", "for (;;) break"),
        ("continue", "for (;;) continue"),
        ("switch (1) { case 1: continue }", "switch (1) { case 1: break }"),
        ("a: { continue a }", "a: { break a }"),
        ("a: { b: for (;;) continue a }", "a: b: for (;;) continue a"),
        ("a: (function () { break a })", "(function () { a: break a })"),
        ("a: a: 1", "a: 1; a: 2"),
        ("return", "(function () { return })"),
        ("class A { static { return } }", "class A { static { () => { return } } }"),
    ]);
}

#[test]
fn words_keep_their_meaning() {
    check(&[
        ("var let", "var lett"),
        ("var static", "x.static"),
        ("var yield", "x.yield"),
        ("var enum", "({ enum: 1 })"),
        ("l\\u0065t a", "var l\\u0065tt"),
        ("v\\u0061r a", "x.v\\u0061r"),
        ("var eval", "x.eval"),
        ("function arguments() {}", "({ arguments() {} })"),
        ("(function* () { function* g(a = yield) {} })", "(function* () { yield (function* () {}) })"),
        ("async (a = await 1) => 1", "async (a) => await 1"),
        ("(function* () { (a = yield) => 1 })", "(function* () { (yield) })"),
        ("async function f() { function g() { await 1 } }", "async function f() { async () => await 1 }"),
        ("class A { a = arguments }", "class A { a = function () { arguments } }"),
        ("class A { static { await } }", "class A { static { async () => await 1 } }"),
        ("super.a", "({ a() { super.a } })"),
        ("class A { constructor() { super() } }", "class A extends B { constructor() { () => super() } }"),
        ("new.target", "function f() { () => new.target }"),
        ("class A { b() { this.#c } }", "class A { #c; b() { this.#c } }"),
        ("class A extends B.#a { #a }", "class A { #a; b() { class C extends this.#a {} } }"),
        ("#a in b", "class A { #a; b() { #a in this } }"),
        ("1 + #a in b", "class A { #a; b() { 1 + (#a in this) } }"),
        ("a ?? b || c", "a ?? (b || c)"),
        ("-1 ** 2", "(-1) ** 2"),
        ("function f(a = 1) { 'use strict' }", "function f(a) { 'use strict' }"),
        ("if (1) function f() {}", "if (1) { function f() {} }"),
        ("if (1) class A {}", "if (1) { class A {} }"),
        ("a: function f() {}", "a: { function f() {} }"),
        ("for (const a;;) ;", "for (const a = 1;;) ;"),
        ("for (let a = 1 of []) ;", "for (let a of []) ;"),
        ("for (async of []) ;", "for (async of => 1;;) ;"),
        ("for await (a in b) ;", "for await (a of b) ;"),
        ("let [a]", "let [a] = []"),
        ("({ get a(b) {} })", "({ get a() {} })"),
        ("({ set a() {} })", "({ set a(b) {} })"),
        ("class A { get constructor() {} }", "class A { static get constructor() {} }"),
        ("class A { static prototype() {} }", "class A { prototype() {} }"),
        ("class A { constructor = 1 }", "class A { ['constructor'] = 1 }"),
        ("({ __proto__: a, __proto__: b })", "({ __proto__: a, ['__proto__']: b, __proto__() {} })"),
        ("a?.`b`", "a?.b"),
        ("new a?.b", "new (a?.b)"),
        ("() => {} || 1", "(() => {}) || 1"),
        ("a\n=> 1", "a =>\n1"),
        ("throw\n1", "throw 1"),
        ("a\n++\n", "a\n++\nb"),
    ]);
}

#[test]
fn literals_are_well_formed() {
    check(&[
        ("010", "0o10"),
        ("09", "0.9"),
        ("1__0", "1_0"),
        ("1_", "1"),
        ("0_1", ".0_1"),
        ("0x", "0xf"),
        ("1.a", "1..a"),
        ("01n", "0n"),
        ("3in []", "3 in []"),
        ("'\\01'", "'\\0'"),
        ("'\\8'", "'8'"),
        ("'\\u{110000}'", "'\\u{10ffff}'"),
        ("'\\xg0'", "'\\x00'"),
        ("'a\nb'", "'a\\\nb'"),
        ("`\\u`", "f`\\u`"),
        ("`${`", "`${1}`"),
        ("/a", "/a/"),
        ("/a/gg", "/a/g"),
        ("/a/uv", "/a/u"),
        ("/a/\\u0067", "/a/g"),
        ("/* a", "/* a */"),
        ("<!-- a", "a < !--b"),
    ]);
}

#[test]
fn a_regular_expression_is_checked_by_whoever_knows_how() {
    let checking = outrigger_vm::parse::Options {
        check_regex: |_, _| Err(outrigger_vm::parse::RegexProblem { message: "no".to_owned() }),
        ..options()
    };
    let problems = outrigger_vm::parse::parse("let a = /b/", &checking).unwrap_err();
    assert_eq!(problems[0].message, "invalid regular expression: no");
    assert_eq!((problems[0].span.start, problems[0].span.end), (8, 11));
}

#[test]
fn good_javascript_that_we_do_not_run_is_refused_as_such() {
    for source in ["import a from 'b'", "import('a')", "import.meta", "export let a", "with (a) {}"] {
        refusal(source);
    }
    for name in outrigger_vm::parse::REFUSED_NAMES {
        assert_eq!(refusal(&format!("{name}.a")), format!("`{name}` is not available in this environment"));
        let elsewhere = outrigger_vm::parse::Options { free_names: FreeNames::Allowed, ..options() };
        ok_with(&format!("{name}.a"), &elsewhere);
    }
    ok("let process = 1; process; (fetch) => fetch; x.require");
}

#[test]
fn await_is_a_name_where_scripts_cannot_wait() {
    let script = outrigger_vm::parse::Options { top_level_await: Permission::Refused, ..options() };
    ok_with("var await; await: 1; (await) => await", &script);
    assert!(outrigger_vm::parse::parse("await 1", &script).is_err());
    assert!(outrigger_vm::parse::parse("async (a = await) => 1", &script).is_err());
}

#[test]
fn several_problems_are_told_at_once() {
    let source = "let a; let a;\nbreak;\nfunction f() { return new.target } new.target";
    let lines: Vec<u32> = super::problems(source).iter().map(|problem| problem.line).collect();
    assert_eq!(lines, [1, 2, 3]);
}
