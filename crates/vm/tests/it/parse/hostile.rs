//! Sources made to break a parser: deep, long, cut off, and random.

use super::{ok, options, problems, refusal};
use outrigger_vm::parse::{NestingLimit, Options, parse};
use proptest::prelude::*;

/// Ways to nest: what opens a level, what is inside, what closes it.
const NESTS: &[(&str, &str, &str)] = &[
    ("(", "1", ")"),
    ("[", "", "]"),
    ("x={a:", "1", "}"),
    ("{", "", "}"),
    ("(function(){", "", "})"),
    ("a=>", "1", ""),
    ("(a=", "1", ")=>1"),
    ("(class{m(){", "", "}})"),
    ("(class{a=", "1", "})"),
    ("(class{static{", "", "}})"),
    ("!", "1", ""),
    ("new ", "a", ""),
    ("1?1:", "1", ""),
    ("a=", "1", ""),
    ("2**", "1", ""),
    ("a||b&&c|d^e&f==g<h<<i+j*(", "1", ")"),
    ("if(1)", ";", ""),
    ("`${", "1", "}`"),
    ("f(", "", ")"),
    ("async(", "", ")"),
    ("a[", "1", "]"),
    ("switch(1){case 1:", "", "}"),
    ("try{", "", "}finally{}"),
    ("for(;;)", ";", ""),
    ("(function(a=", "1", "){})"),
];

fn nested((open, inside, close): (&str, &str, &str), depth: usize) -> String {
    format!("{}{inside}{}", open.repeat(depth), close.repeat(depth))
}

#[test]
fn nesting_of_every_kind_ends_with_an_error_on_a_small_stack() {
    let parse_all = || {
        for &nest in NESTS {
            assert_eq!(refusal(&nested(nest, 100_000)), "source is nested too deeply", "{}", nest.0);
            ok(&nested(nest, 30));
        }
    };
    let thread = std::thread::Builder::new().stack_size(2 << 20).spawn(parse_all);
    thread.expect("a thread starts").join().expect("no stack overflow and no panic");
}

#[test]
fn the_nesting_limit_is_exact() {
    // One level for the statement and one for each parenthesis' expression.
    let limited = Options { nesting: NestingLimit(10), ..options() };
    assert!(parse(&nested(("(", "1", ")"), 8), &limited).is_ok());
    let problems = parse(&nested(("(", "1", ")"), 9), &limited).unwrap_err();
    assert_eq!(problems[0].message, "source is nested too deeply");
}

#[test]
fn the_length_limit_is_exact() {
    let limited = Options { source_bytes: 10, ..options() };
    assert!(parse("1234567890", &limited).is_ok());
    assert_eq!(parse("12345678901", &limited).unwrap_err()[0].message, "source is too long");
}

#[test]
fn chains_may_be_as_long_as_the_source() {
    let n = 60_000;
    let parse_all = move || {
        for (start, link, end) in [
            ("1", "+a", ""),
            ("1", "&&a", ""),
            ("a", ".b", ""),
            ("a", "?.b", ""),
            ("a", "()", ""),
            ("a", "[1]", ""),
            ("a", "``", ""),
            ("if(1);", "else if(1);", ""),
            ("", "a;", ""),
            ("a", ",a", ""),
            ("`", "${a}", "`"),
            ("[", "1,", "]"),
            ("x={", "a:1,", "}"),
            ("f(", "a,", ")"),
        ] {
            ok(&format!("{start}{}{end}", link.repeat(n)));
        }
    };
    let thread = std::thread::Builder::new().stack_size(2 << 20).spawn(parse_all);
    thread.expect("a thread starts").join().expect("no stack overflow and no panic");
}

#[test]
fn no_more_than_twenty_problems_are_told() {
    assert_eq!(problems(&"break;".repeat(1000)).len(), 20);
    assert_eq!(problems(&"fetch;".repeat(1000)).len(), 20);
}

/// A little of everything.
pub(super) const SAMPLE: &str = r#"
'use strict'; let [a = 1, , ...b] = [], { c, d: { e } = {}, ...f } = {};
label: for (const x of [1, 2]) { if (x) continue label; else break }
class A extends B { #p = 1; static s = `t${a}u`; get [c]() { return this.#p ?? super.m?.(...b) } static { var q } }
async function* g(h = () => arguments, ...i) { for await (const j of h) yield* await j; return new.target }
var re = /[/\]]+/giu, big = 0xffn, num = 1_0.5e-3, str = 'é\u{1F600}\x41\
'; do { k => ({ k }); } while (a ** 2 >= 3 || !b); switch (a) { case 1: default: }
try { throw a } catch { debugger } finally { (async (l) => { await l })() }
"#;

#[test]
fn a_source_cut_off_anywhere_is_an_error_or_a_program_and_never_a_panic() {
    ok(SAMPLE);
    for (end, _) in SAMPLE.char_indices() {
        if let Err(problems) = parse(&SAMPLE[..end], &options()) {
            for problem in &problems {
                assert!(problem.render(&SAMPLE[..end]).contains(&problem.message));
            }
            assert!(!problems.is_empty());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_text_is_an_error_or_a_program_and_never_a_panic(source in "\\PC{0,60}") {
        if let Err(problems) = parse(&source, &options()) {
            prop_assert!(!problems.is_empty());
            prop_assert!(problems[0].render(&source).contains(&problems[0].message));
        }
    }

    #[test]
    fn shuffled_pieces_of_a_program_never_panic(picks in prop::collection::vec(0usize..400, 0..40)) {
        let pieces: Vec<&str> = SAMPLE.split_inclusive(|c: char| !c.is_alphanumeric()).collect();
        let source: String = picks.iter().map(|&i| pieces[i % pieces.len()]).collect();
        if let Err(problems) = parse(&source, &options()) {
            prop_assert!(!problems.is_empty());
            prop_assert!(problems[0].render(&source).contains(&problems[0].message));
        }
    }
}
