//! Patterns and texts that want too much get an error, soon, and nothing else happens.

use super::{program, run, units};
use outrigger_vm::heap::Str;
use outrigger_vm::regex::{
    ExecError, Flags, Fuel, MAX_NESTING, MAX_NODES, MAX_PATTERN, Scratch, StackBytes, check, compile, exec,
};
use proptest::prelude::*;

#[test]
fn exponential_patterns_end_by_fuel() {
    let text = "a".repeat(30) + "!";
    for pattern in ["(a+)+$", "(a*)*$", "(a|aa)+$", "(?:a?){30}a{30}$", "(.*)*x$", r"(a+)+\1$"] {
        let program = program(pattern, "").expect(pattern);
        let mut fuel = Fuel(200_000);
        let answer = run(&program, Str::Latin1(text.as_bytes()), 0, &mut fuel);
        assert_eq!((answer, fuel), (Err(ExecError::OutOfFuel), Fuel(0)), "{pattern}");
    }
}

#[test]
fn a_match_succeeds_with_exactly_its_fuel_and_not_with_less() {
    let program = program(r"(\w+)\s(\w+)$", "").expect("compiles");
    let text = Str::Latin1(b"the quick brown fox");
    let mut fuel = Fuel(1_000_000);
    let found = run(&program, text, 0, &mut fuel).expect("enough");
    let cost = 1_000_000 - fuel.0;
    assert_eq!(run(&program, text, 0, &mut Fuel(cost)), Ok(found));
    for less in 0..cost {
        assert_eq!(run(&program, text, 0, &mut Fuel(less)), Err(ExecError::OutOfFuel), "{less} of {cost}");
    }
}

#[test]
fn scanning_for_a_start_is_paid_for_too() {
    let program = program("xyz", "").expect("compiles");
    let text = "a".repeat(1 << 16);
    assert_eq!(run(&program, Str::Latin1(text.as_bytes()), 0, &mut Fuel(1 << 12)), Ok(None));
    assert_eq!(
        run(&program, Str::Latin1(text.as_bytes()), 0, &mut Fuel((1 << 12) - 1)),
        Err(ExecError::OutOfFuel)
    );
}

#[test]
fn the_stacks_stop_at_their_limit() {
    let program = program("(?:a|ab)*c", "").expect("compiles");
    let text = units(&("a".repeat(1_000) + "c"));
    let matches = |limit: usize| {
        let mut scratch = Scratch::new(StackBytes(limit));
        exec(&program, Str::Wide(&text), 0, &mut Fuel(1_000_000), &mut scratch).map(|found| found.is_some())
    };
    // Two choices a round, of sixteen bytes each, in half of the limit, and one more to leave the loop.
    let enough = (1..200_000).find(|&limit| matches(limit).is_ok()).expect("some limit is enough");
    assert_eq!(matches(enough), Ok(true));
    assert_eq!(matches(enough - 1), Err(ExecError::StackLimit));
    assert!(enough < 100_000, "{enough}");
}

#[test]
fn a_pattern_that_the_next_unit_decides_needs_no_stack() {
    let needs_stack = |pattern: &str, text: &str| {
        let program = program(pattern, "").expect(pattern);
        let mut scratch = Scratch::new(StackBytes(0));
        exec(&program, Str::Latin1(text.as_bytes()), 0, &mut Fuel(100_000), &mut scratch)
            .map(|found| assert!(found.is_some(), "{pattern}"))
            .is_err()
    };
    for (pattern, text) in [
        (r"(\d+)-(\d+);", "2024-06;"),
        ("^(?:foo|bar)*!$", "foobarfoo!"),
        ("(?:,[^,]*)+$", "a,b,,c"),
        (r"\w+(?= x)", "abc x"),
        ("^(?:a|b|c)*$", "abcabc"),
        ("\"[^\"]*\"", "say \"this\""),
    ] {
        assert!(!needs_stack(pattern, text), "{pattern}");
    }
    assert!(needs_stack("(?:a|ab)c", "abc"));
    assert!(needs_stack(r"\w+\d", "abc1"));
}

#[test]
fn nesting_is_allowed_up_to_its_limit() {
    let nested = |depth: usize| format!("{}a{}", "(?:bb|".repeat(depth), ")".repeat(depth));
    let program = program(&nested(MAX_NESTING), "").expect("at the limit");
    assert_eq!(run(&program, Str::Latin1(b"ba"), 1, &mut Fuel(10_000)), Ok(Some(vec![Some(1..2)])));
    let error = check(Str::Wide(&units(&nested(MAX_NESTING + 1))), Str::EMPTY).expect_err("one past it");
    assert_eq!(error.message, "regular expression too large");
    let classes = |depth: usize| format!("{}a{}", "[".repeat(depth), "]".repeat(depth));
    assert_eq!(check(Str::Wide(&units(&classes(MAX_NESTING + 1))), Str::Latin1(b"v")), Ok(()));
    assert!(check(Str::Wide(&units(&classes(MAX_NESTING + 2))), Str::Latin1(b"v")).is_err());
}

#[test]
fn patterns_are_large_up_to_their_limit() {
    assert!(compile(Str::Wide(&units(&"a".repeat(MAX_NODES))), Flags::NONE).is_ok());
    let error = compile(Str::Wide(&units(&"a".repeat(MAX_NODES + 1))), Flags::NONE).expect_err("one past it");
    assert_eq!(error.message, "regular expression too large");
    // Zeros in an escape cost nothing but their length.
    let escape = |zeros: usize| units(&format!("\\u{{{}41}}", "0".repeat(zeros)));
    assert!(compile(Str::Wide(&escape(MAX_PATTERN - 6)), Flags::UNICODE).is_ok());
    assert!(compile(Str::Wide(&escape(MAX_PATTERN - 5)), Flags::UNICODE).is_err());
}

#[test]
fn counts_are_counted_and_not_unrolled() {
    let program = program("(?:(?:a{1000000000}){1000000000}|b){0,1000000000}c", "").expect("compiles");
    assert!(program.size_in_bytes() < 2_000, "{}", program.size_in_bytes());
    assert_eq!(run(&program, Str::Latin1(b"bbc"), 0, &mut Fuel(1_000)), Ok(Some(vec![Some(0..3)])));
    let error = check(Str::Wide(&units("a{4294967296,4294967295}")), Str::EMPTY).expect_err("out of order");
    assert_eq!(error.message, "numbers out of order in {} quantifier");
}

#[test]
fn sets_may_not_pile_up_without_end() {
    let many = r"[\p{L}\P{Lu}]".repeat(20_000);
    let error = compile(Str::Wide(&units(&many)), Flags::UNICODE).expect_err("too many ranges");
    assert_eq!(error.message, "regular expression too large");
    // A few thousand spellings of one set are one set.
    let same = program(&r"\w".repeat(2_000), "").expect("compiles");
    let once = program(r"\w\w", "").expect("compiles");
    assert!(same.size_in_bytes() - once.size_in_bytes() < 2_000 * 9);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_pattern_and_no_text_bring_the_matcher_down(
        pattern in proptest::collection::vec(unit(), 0..24),
        text in proptest::collection::vec(unit(), 0..12),
        flags in proptest::sample::select(vec!["", "i", "u", "v", "iu", "iv", "ms", "y", "gs"]),
        start in 0usize..14,
    ) {
        let flags = Flags::parse(units(flags)).expect("flags");
        if let Ok(program) = compile(Str::Wide(&pattern), flags) {
            let mut fuel = Fuel(20_000);
            let _ = run(&program, Str::Wide(&text), start, &mut fuel).map(|found| {
                for range in found.into_iter().flatten().flatten() {
                    assert!(range.start <= range.end && range.end <= text.len());
                }
            });
        }
    }
}

/// Mostly what has a meaning in patterns, sometimes anything.
fn unit() -> impl Strategy<Value = u16> {
    let meaningful = r"()[]{}|\?*+.^$-:=!<>,&akbdDwWsSpPqx0129uLn".encode_utf16().collect::<Vec<_>>();
    prop_oneof![
        12 => proptest::sample::select(meaningful),
        1 => proptest::sample::select(vec![0xd83d, 0xde00, 0xe9, 0x2028, 0x212a, 0x0a]),
        1 => any::<u16>(),
    ]
}
