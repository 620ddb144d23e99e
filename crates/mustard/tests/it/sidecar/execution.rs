//! How a run looks from outside: values of scripts, host calls in sync and async code, errors and their places.

use serde_json::{Value, json};

use super::kit::{LONG, NOW, SLOW, Said, Talk, both, both_cut, number};

fn finite(n: f64) -> Value {
    json!({"Number": {"Finite": n}})
}

/// Answers every call with ten times its first argument; tells the arguments in order.
fn answer_all(talk: &mut Talk, mut said: Said) -> (Vec<f64>, Said) {
    let mut asked = Vec::new();
    while said.header["ok"] == json!(true) && said.result()["step"]["type"] == "suspended" {
        let n = said.call().1[0]["Number"]["Finite"].as_f64().unwrap_or(-1.0);
        asked.push(n);
        said = talk.resume(&said, number(n * 10.0));
    }
    (asked, said)
}

#[test]
fn the_value_of_a_script_is_that_of_its_last_statement_if_that_is_an_expression() {
    both(|talk| {
        assert_eq!(talk.run("1; 2", &[]).value(), &finite(2.0));
        assert_eq!(talk.run("let x = 3", &[]).value(), &json!("Undefined"));
        assert_eq!(talk.run("Promise.resolve(4)", &[]).value(), &finite(4.0));
        assert_eq!(talk.run("await 5", &[]).value(), &finite(5.0));
        assert_eq!(talk.run("", &[]).value(), &json!("Undefined"));
        let said = talk.run("Promise.reject(new TypeError('no'))", &[]);
        assert!(said.error().starts_with("Runtime: TypeError: no"));
        let said = talk.run("new Promise(() => {})", &[]);
        assert!(said.error().starts_with("Runtime: async root promise could not make progress"));
    });
}

#[test]
fn capabilities_never_run_in_the_child_it_suspends_and_the_host_does_the_work() {
    both(|talk| {
        let step = talk.run("ask(1) + ask(2) * ask(3)", &["ask"]);
        let (asked, said) = answer_all(talk, step);
        assert_eq!((asked, said.value()), (vec![1.0, 2.0, 3.0], &finite(610.0)));
    });
}

#[test]
fn a_call_suspends_wherever_it_is_made() {
    both_cut(LONG, |talk| {
        for (source, calls, value) in [
            ("[1, 2, 3].map(x => ask(x)).reduce((a, b) => a + b)", 3, 60.0),
            ("const o = { get x() { return ask(4); } }; o.x", 1, 40.0),
            (
                "function* g() { yield ask(1); yield ask(2); } let t = 0; for (const v of g()) t += v; t",
                2,
                30.0,
            ),
            ("class A { constructor() { this.n = ask(7); } } new A().n", 1, 70.0),
            ("+'a-b'.replace(/./g, c => c === '-' ? ask(5) : '')", 1, 50.0),
            ("const m = new Map([[1, ask]]); m.get(1)(6)", 1, 60.0),
        ] {
            let step = talk.run(source, &["ask"]);
            let (asked, said) = answer_all(talk, step);
            assert_eq!((asked.len(), said.value()), (calls, &finite(value)), "{source}");
        }
        let step = talk.run("[3, 1, 2].sort((a, b) => (ask(a), a - b)).join()", &["ask"]);
        assert_eq!(answer_all(talk, step).1.value(), &json!({"String": "1,2,3"}));
    });
}

#[test]
fn async_calls_are_surfaced_one_a_step_in_the_order_they_were_made_and_none_is_lost() {
    both(|talk| {
        let step = talk.run(
            "const f = async () => (await Promise.all([1, 2, 3].map(async x => await ask(x)))).join(); f()",
            &["ask"],
        );
        let (asked, said) = answer_all(talk, step);
        assert_eq!((asked, said.value()), (vec![1.0, 2.0, 3.0], &json!({"String": "10,20,30"})));
        let step = talk.run(
            "const f = async () => { ask(1); return await Promise.race([ask(2), ask(3)]); }; f()",
            &["ask"],
        );
        let (asked, said) = answer_all(talk, step);
        assert_eq!(
            (asked, said.value()),
            (vec![1.0, 2.0, 3.0], &finite(20.0)),
            "also those nobody waits for"
        );
    });
}

#[test]
fn console_functions_exist_if_granted_and_answer_nothing() {
    both(|talk| {
        let step = talk.run("`${console.log('a', 1)} ${typeof console.warn}`", &["console.log"]);
        assert_eq!(step.call(), ("console.log", &json!([{"String": "a"}, finite(1.0)])));
        assert_eq!(talk.resume(&step, number(5.0)).value(), &json!({"String": "undefined undefined"}));
    });
}

#[test]
fn clock_and_randomness_come_from_outside_and_a_replay_sees_the_same_numbers() {
    both(|talk| {
        let step =
            talk.run("const r = [Math.random()]; ask(0); r.push(Math.random(), Date.now()); r", &["ask"]);
        let (one, two) = (talk.resume(&step, number(0.0)), talk.resume(&step, number(0.0)));
        assert_eq!(one.value(), two.value());
        assert_eq!(one.value()["Array"][2], finite(NOW));
        assert_ne!(one.value()["Array"][0], one.value()["Array"][1]);
    });
}

#[test]
fn an_error_says_kind_message_and_the_functions_it_went_through() {
    both(|talk| {
        let source = "function inner() { null.x; }\nfunction outer() { inner(); }\nouter();";
        let said = talk.run(source, &[]);
        let lines: Vec<&str> = said.error().lines().collect();
        assert!(lines[0].starts_with("Runtime: TypeError: ") && lines[0].ends_with(" [0..28]"), "{lines:?}");
        assert_eq!(lines[1..], ["  at inner [0..28]", "  at outer [29..58]", "  at <script> [0..67]"]);
        let said = talk.run("const f = () => { throw new RangeError('far'); }; [() => f()][0]()", &[]);
        assert!(said.error().starts_with("Runtime: RangeError: far ["), "{}", said.error());
    });
}

#[test]
fn what_is_thrown_and_is_no_error_is_shown_as_it_is() {
    both(|talk| {
        let first = |said: &Said| said.error().lines().next().unwrap().to_owned();
        let thrown = talk.run("throw 5", &[]);
        assert!(first(&thrown).starts_with("Runtime: Uncaught 5"), "{}", thrown.error());
        let thrown = talk.run("throw 'up'", &[]);
        assert!(first(&thrown).starts_with("Runtime: Uncaught up"), "{}", thrown.error());
        let thrown = talk.run("throw undefined", &[]);
        assert!(first(&thrown).starts_with("Runtime: Uncaught undefined"), "{}", thrown.error());
    });
}

#[test]
fn what_does_not_compile_is_said_a_line_a_problem() {
    both(|talk| {
        let compile = |source: &str| json!({"method": "compile", "source": source});
        assert!(talk.say(compile("let x = ;"), b"").error().starts_with("Parse: "));
        assert!(
            talk.say(compile("import x from 'y'"), b"").error().contains("module syntax is not supported")
        );
        let said = talk.say(compile("let a; eval('1'); process.exit()"), b"");
        let lines: Vec<&str> = said.error().lines().collect();
        assert_eq!(lines[0], "Validation: free reference to forbidden ambient global `eval` [7..11]");
        assert_eq!(lines[1], "Validation: free reference to forbidden ambient global `process` [18..25]");
    });
}

#[test]
fn errors_show_nothing_of_the_machine_they_happened_on() {
    both_cut(LONG, |talk| {
        for source in [
            "null.x",
            "throw new Error('e')",
            "let x = ;",
            "while (1);",
            "new Promise(() => {})",
            "10n",
            "missing()",
        ] {
            let said = talk.say(json!({"method": "compile", "source": source}), b"");
            let said = if said.header["ok"] == json!(true) { talk.run(source, &[]) } else { said };
            let text = said.error();
            for secret in ["/", ".rs", "core.js", "outrigger", "0x", "panicked", "src"] {
                assert!(!text.contains(secret), "{text} shows {secret}");
            }
        }
    });
}

#[test]
fn one_guest_cannot_disturb_another() {
    both_cut(SLOW, |talk| {
        let waiting =
            talk.run("const before = ask(1); [1, 2].map(x => x + before).join() + typeof polluted", &["ask"]);
        for hostile in [
            "Object.prototype.polluted = 1; Array.prototype.map = () => 'mine'; globalThis.polluted = 2; ''.constructor.prototype.toString = 0;",
            "const a = []; while (true) a.push(new Array(1000).fill(a.length))",
            "const f = () => f(); f()",
            "while (true) {}",
            "Object.freeze(Object.prototype); Object.freeze(Array.prototype); throw globalThis",
            "delete globalThis.Array; JSON.parse = null; Promise.prototype.then = null; Math.random = () => 4",
        ] {
            talk.run(hostile, &["ask"]);
            let step = talk.run(
                "ask(2); ({}).polluted === undefined && [1].map(x => x + 1)[0] === 2 && typeof Math.random()",
                &["ask"],
            );
            assert_eq!(talk.resume(&step, number(1.0)).value(), &json!({"String": "number"}), "{hostile}");
        }
        assert_eq!(talk.resume(&waiting, number(1.0)).value(), &json!({"String": "2,3undefined"}));
    });
}

#[test]
fn runs_that_are_interleaved_do_not_meet() {
    both_cut(LONG, |talk| {
        let program =
            talk.compile("let n = start; for (let i = 0; i < 5; i++) n += ask(n); n").id("program_id");
        let mut steps: Vec<Said> = (0..5)
            .map(|i| {
                let options = json!({"inputs": {"start": finite(f64::from(i))}, "capabilities": ["ask"]});
                talk.say(json!({"method": "start", "program_id": program, "options": options}), b"")
            })
            .collect();
        for _ in 0..5 {
            for step in &mut steps {
                *step = talk.resume(&step.clone(), number(1.0));
            }
        }
        let ends: Vec<&Value> = steps.iter().map(Said::value).collect();
        assert_eq!(ends, [&finite(5.0), &finite(6.0), &finite(7.0), &finite(8.0), &finite(9.0)]);
    });
}
