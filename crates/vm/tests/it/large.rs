//! Large programs: more variables than registers, more instructions than a page, more arguments than a window.

use crate::eval::{LIMITS, eval_at};
use outrigger_vm::exec::Vm;
use outrigger_vm::heap::Pace;

fn eval(source: &str) -> String {
    eval_at(source, Pace::Adaptive)
}

fn many(n: usize, f: impl Fn(usize) -> String) -> String {
    (0..n).map(f).collect()
}

#[test]
fn a_function_may_have_far_more_variables_than_there_are_registers() {
    let declare = many(1_000, |i| format!("let v{i} = {i};"));
    let sum = many(1_000, |i| format!("+ v{i}"));
    assert_eq!(eval(&format!("{declare} 0 {sum}")), "499500");
    assert_eq!(
        eval(&format!("(function () {{ {declare} v7 += 1; v8++; v9 = 0; return 0 {sum} }})()")),
        "499493"
    );
    let closures = format!(
        "(() => {{ {declare} const f = () => v999++, g = () => v999; f(); f(); return g() + v5 }})()"
    );
    assert_eq!(eval(&closures), "1006");
}

#[test]
fn a_variable_beyond_the_registers_has_its_dead_zone_and_its_turns() {
    let declare = many(300, |i| format!("let v{i} = {i};"));
    let early = format!("try {{ late }} catch (e) {{ var r = e.message }} {declare} const late = 1; r");
    assert_eq!(eval(&early), "Cannot access 'late' before initialization");
    let constant = format!("{declare} const c = 1; try {{ c = 2 }} catch (e) {{ e.message }}");
    assert_eq!(eval(&constant), "Assignment to constant variable.");
    let turns = format!(
        "{declare} const fs = []; for (let i = 0; i < 3; i++) fs[i] = () => i; '' + fs[0]() + fs[1]() + fs[2]()"
    );
    assert_eq!(eval(&turns), "012");
    let parts = format!(
        "function f(a, b = a + 1, ...c) {{ {declare} var a; class K {{ #p = v3; get p() {{ return this.#p + b }} }} \
         const {{ x, ...y }} = {{ x: 1, z: 2 }}; return () => a + b + c[0] + new K().p + x + y.z + arguments[2] }} f(1, undefined, 5)()"
    );
    assert_eq!(eval(&parts), "21");
    let generator = format!(
        "function* g() {{ {declare} for (let i = 0; i < 2; i++) yield () => v299 + i }} let s = 0; for (const f of g()) s += f(); s"
    );
    assert_eq!(eval(&generator), "599");
    let derived = format!(
        "class A {{}} class B extends A {{ constructor() {{ {declare} const f = () => super(); f(); this.n = v9 }} }} new B().n"
    );
    assert_eq!(eval(&derived), "9");
}

#[test]
fn what_still_does_not_fit_is_refused_with_a_reason() {
    let load = |source: &str| Vm::new(LIMITS, &[]).unwrap().load(source).map_err(|e| e.to_string());
    let function = |n: usize| format!("function f({}) {{}}", many(n, |i| format!("p{i},")));
    assert_eq!(load(&function(230)), Ok(()));
    assert_eq!(
        load(&function(300)),
        Err("function needs more than 240 registers: it has too many variables or arguments".to_owned())
    );
}

#[test]
fn sixty_thousand_terms_are_one_expression() {
    let sum = format!("let x = 1; 0{}", "+x".repeat(60_000));
    assert_eq!(eval_at(&sum, Pace::Adaptive), "60000");
    let product = format!("let o = {{ a: 2 }}; 0{}", "+o.a*o.a".repeat(60_000));
    assert_eq!(eval_at(&product, Pace::Adaptive), "240000");
    let logical = format!("let x = 0; x{} || 'end'", "||x".repeat(60_000));
    assert_eq!(eval_at(&logical, Pace::Adaptive), "end");
}

#[test]
fn jumps_cross_the_pages_of_a_long_function_in_both_directions() {
    // A loop body of two pages, left by break, continue, an exception and a return from the middle.
    let filler = "n += 1;".repeat(40_000);
    let source = format!(
        "function f() {{ let n = 0, i = 0; outer: for (;;) {{ i++; if (i === 4) break; {filler} \
         try {{ if (i === 2) continue outer; {filler} if (i === 3) throw 1; }} catch (e) {{ n += 0.5 }} finally {{ n += 0.25 }} }} \
         return n + ':' + i }} f()"
    );
    assert_eq!(eval_at(&source, Pace::Adaptive), "200001.25:4");
    let compare = format!(
        "let s = 0; for (let i = {{ valueOf() {{ return s }} }}; i < 3;) {{ s++; {} }} s",
        "s += 0;".repeat(70_000)
    );
    assert_eq!(eval_at(&compare, Pace::Adaptive), "3");
}

#[test]
fn ten_thousand_elements_cases_and_statements_are_nothing_special() {
    let array = format!("const a = [{}]; a.length + a[9999]", many(10_000, |i| format!("{i},")));
    assert_eq!(eval_at(&array, Pace::Adaptive), "19999");
    let object = format!("const o = {{{}}}; o.k9999", many(10_000, |i| format!("k{i}: {i},")));
    assert_eq!(eval_at(&object, Pace::Adaptive), "9999");
    let switch =
        format!("let r; switch (9998) {{ {} }} r", many(10_000, |i| format!("case {i}: r = 'c{i}'; break;")));
    assert_eq!(eval_at(&switch, Pace::Adaptive), "c9998");
    let statements = format!("let x = 0; {} x", "x = x + 1;".repeat(100_000));
    assert_eq!(eval_at(&statements, Pace::Adaptive), "100000");
    let functions = format!("{} f9999()", many(10_000, |i| format!("function f{i}() {{ return {i} }}")));
    assert_eq!(eval_at(&functions, Pace::Adaptive), "9999");
}

#[test]
fn a_hundred_thousand_arguments_can_be_spread() {
    let big = "const big = []; for (let i = 0; i < 100000; i++) big[i] = i;";
    let cases = [
        (
            "function f(a, b) { return arguments.length + ':' + a + ':' + b + ':' + arguments[99999] } f(...big)",
            "100000:0:1:99999",
        ),
        ("const f = (a, ...r) => a + r.length + r[99998]; f(...big)", "199998"),
        (
            "class A { constructor(...r) { this.n = r.length } } class B extends A {} new B(...big).n",
            "100000",
        ),
        ("Math.max(...big)", "99999"),
        ("const t = { m(...r) { return this === t && r.length } }; t.m('x', ...big, 'y')", "100002"),
        ("function* g(...r) { yield r.length } g(...big).next().value", "100000"),
        ("await (async (...r) => r.length)(...big)", "100000"),
        ("[].push(...big)", "100000"),
        ("String.fromCharCode(...big).length", "100000"),
    ];
    for (source, expected) in cases {
        assert_eq!(eval_at(&format!("{big} {source}"), Pace::Adaptive), expected, "{source}");
    }
}

#[test]
fn arguments_that_just_fit_and_just_do_not_fit_in_registers_arrive_alike() {
    for n in [99, 100, 101, 229, 230, 231, 234, 235, 236, 237, 238, 239, 240, 241, 255, 256, 257, 1_000] {
        let list = many(n, |i| format!("{i},"));
        let source = format!(
            "function f(a) {{ return a + arguments.length + arguments[{last}] }} class K {{ constructor(...r) {{ this.s = r.length + r[{last}] }} }} \
             f({list}) + ':' + f(...[{list}]) + ':' + new K({list}).s + ':' + new K(...[{list}]).s",
            last = n - 1
        );
        let sum = 2 * n - 1;
        assert_eq!(eval(&source), format!("{sum}:{sum}:{sum}:{sum}"), "{n}");
    }
}
