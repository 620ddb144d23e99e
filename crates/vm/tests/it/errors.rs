//! What a person sees when something goes wrong: messages that name the thing, positions, the line with a mark.

use crate::eval::{LIMITS, eval_at};
use outrigger_vm::exec::{Step, Vm};
use outrigger_vm::heap::Pace;

/// The message of the error that a script ends with.
fn message(source: &str) -> String {
    eval_at(&format!("try {{ {source} }} catch (e) {{ e.message }}"), Pace::Adaptive)
}

/// The report of the exception that a script ends with.
fn report(source: &str) -> String {
    let mut vm = Vm::new(LIMITS, &[]).unwrap();
    vm.load(source).unwrap();
    match vm.run() {
        Step::Threw(e) => vm.report(e).to_string(),
        other => format!("{other:?}"),
    }
}

#[test]
fn a_call_of_what_is_no_function_names_it() {
    let cases = [
        ("const x = {}; x.foo()", "x.foo is not a function"),
        ("const x = { y: {} }; x.y.z(1, 2)", "x.y.z is not a function"),
        ("const f = 1; f()", "f is not a function"),
        ("undefined()", "undefined is not a function"),
        ("const a = [1]; a[0]()", "a[0] is not a function"),
        ("const o = {}; o.a?.b; o.m(...[1])", "o.m is not a function"),
        ("const x = 1; new x", "x is not a constructor"),
        ("const x = 1; new x(2)", "x is not a constructor"),
        ("(() => 5)()()", "5 is not a function"),
        ("[1].map(3)", "3 is not a function"),
        ("null.x", "Cannot read properties of null (reading 'x')"),
    ];
    for (source, expected) in cases {
        assert_eq!(message(source), expected, "{source}");
    }
}

#[test]
fn a_name_that_is_nearly_right_is_suggested() {
    let cases = [
        ("[].pusj(1)", "[].pusj is not a function — did you mean `push`?"),
        (
            "const api = { fetchUser() {} }; api.fecthUser()",
            "api.fecthUser is not a function — did you mean `fetchUser`?",
        ),
        ("'abc'.toUppercase()", "'abc'.toUppercase is not a function — did you mean `toUpperCase`?"),
        (
            "class A { render() {} } new A().rendr()",
            "new A().rendr is not a function — did you mean `render`?",
        ),
        ("const o = { abcdef() {} }; o.xyz()", "o.xyz is not a function"),
        ("const o = { count: 1 }; o.coun()", "o.coun is not a function"),
    ];
    for (source, expected) in cases {
        assert_eq!(message(source), expected, "{source}");
    }
}

#[test]
fn an_uncaught_error_shows_its_line_and_who_called() {
    let source =
        "function inner(o) {\n  return o.name.first;\n}\nconst outer = () => inner({});\n\touter();\n";
    let expected = "TypeError: Cannot read properties of undefined (reading 'first')\n\
                    2 |   return o.name.first;\n\
                    \x20 |                     ^\n\
                    \x20   at inner (2:21)\n\
                    \x20   at outer (4:21)\n\
                    \x20   at <anonymous> (5:2)";
    assert_eq!(report(source), expected);
}

#[test]
fn a_thrown_value_that_is_no_error_still_has_a_place() {
    assert_eq!(
        report("\n\n  throw 'plain'"),
        "plain\n3 |   throw 'plain'\n  |   ^\n    at <anonymous> (3:3)"
    );
    let far = format!("/* {} */ throw 1", "é".repeat(300));
    let found = report(&far);
    assert!(found.contains(" throw 1\n") && found.ends_with("(1:308)"), "{found}");
}

#[test]
fn a_stack_names_functions_with_lines_and_columns() {
    let source = "class K { m() { return new Error('x').stack } static s() { return new K().m() } }\nK.s()";
    assert_eq!(
        eval_at(source, Pace::Adaptive),
        "Error: x\n    at m (1:24)\n    at s (1:67)\n    at <anonymous> (2:1)"
    );
    // The engine's own functions are left out.
    let through = "let s; [1].forEach(function each() { s = new Error('y').stack }); s";
    assert_eq!(eval_at(through, Pace::Adaptive), "Error: y\n    at each (1:42)\n    at <anonymous> (1:8)");
}
