//! Regular expressions: against node's recorded answers, against another engine, and against hostile patterns.

mod hostile;
mod other_engine;
mod recorded;

use outrigger_vm::heap::Str;
use outrigger_vm::regex::{ExecError, Flags, Fuel, Program, Scratch, StackBytes, SyntaxError, compile, exec};
use std::ops::Range;

fn units(text: &str) -> Vec<u16> {
    text.encode_utf16().collect()
}

fn program(pattern: &str, flags: &str) -> Result<Program, SyntaxError> {
    compile(Str::Wide(&units(pattern)), Flags::parse(units(flags)).expect("flags"))
}

type Groups = Vec<Option<Range<usize>>>;

/// Every group of the first match; plenty of fuel and stack.
fn groups(program: &Program, text: &[u16], start: usize) -> Result<Option<Groups>, ExecError> {
    let narrow: Vec<u8> = text.iter().filter_map(|&unit| u8::try_from(unit).ok()).collect();
    let wide = run(program, Str::Wide(text), start, &mut Fuel(1_000_000));
    if narrow.len() == text.len() {
        let narrow = run(program, Str::Latin1(&narrow), start, &mut Fuel(1_000_000));
        assert_eq!(narrow, wide, "Latin-1 and UTF-16 disagree");
    }
    wide
}

fn run(program: &Program, text: Str<'_>, start: usize, fuel: &mut Fuel) -> Result<Option<Groups>, ExecError> {
    let mut scratch = Scratch::new(StackBytes(1 << 20));
    let found = exec(program, text, start, fuel, &mut scratch)?;
    Ok(found.map(|captures| (0..captures.len()).map(|group| captures.get(group)).collect()))
}

#[test]
fn names_come_in_the_order_of_the_pattern_with_their_groups() {
    let program = program(r"\k<a>(?<b>.)(x)(?<a>y)|(?<b>z)", "").expect("compiles");
    let names: Vec<(&str, Vec<u32>)> =
        program.names().map(|(name, groups)| (name, groups.to_vec())).collect();
    assert_eq!(names, [("b", vec![1, 4]), ("a", vec![3])]);
    assert_eq!(program.group_count(), 5);
}

#[test]
fn a_name_is_shared_only_by_groups_that_exclude_each_other() {
    for good in ["(?<n>a)|(?<n>b)", "(?:(?<n>a)|x(?<n>b))|(?<n>c)", "(?<n>a)|(?<m>b)(?<n>c)"] {
        assert_eq!(program(good, "").err(), None, "{good}");
    }
    for bad in ["(?<n>a)(?<n>b)", "(?<n>a|(?<n>b))", "(?:(?<n>a)|b)(?<n>c)", "(?<n>(?:a|(?<n>b)))"] {
        let error = program(bad, "").expect_err(bad);
        assert_eq!(error.message, "duplicate capture group name", "{bad}");
    }
    let shared = program(r"(?:(?<n>a)|(?<n>b))\k<n>", "").expect("compiles");
    let found = groups(&shared, &units("abb"), 0).expect("enough fuel");
    assert_eq!(found, Some(vec![Some(1..3), None, Some(1..2)]));
}

#[test]
fn modifiers_hold_inside_their_group_only() {
    let matches = |pattern: &str, text: &str| {
        let program = program(pattern, "").expect(pattern);
        groups(&program, &units(text), 0).expect("enough fuel").is_some()
    };
    assert!(matches("^a(?i:b)c$", "aBc"));
    assert!(!matches("^a(?i:b)c$", "aBC"));
    assert!(matches("(?s:.)", "\n"));
    assert!(!matches("(?-s:.)", "\n"));
    assert!(matches("(?m:^b)", "a\nb"));
    for bad in ["(?i", "(?ii:a)", "(?i-i:a)", "(?-:a)", "(?g:a)", "(?i)a", "(?I:a)"] {
        assert!(program(bad, "").is_err(), "{bad}");
    }
}

#[test]
fn an_error_says_where_it_is() {
    let error = |pattern: &str, flags: &str| program(pattern, flags).expect_err(pattern);
    assert_eq!(error("ab(c", ""), SyntaxError { message: "unterminated group", position: 2 });
    assert_eq!(error("ab[c", ""), SyntaxError { message: "unterminated character class", position: 2 });
    assert_eq!(error("a**", ""), SyntaxError { message: "nothing to repeat", position: 2 });
    assert_eq!(
        error(r"x\k<b>(?<a>)", ""),
        SyntaxError { message: "invalid named capture referenced", position: 1 }
    );
}

#[test]
fn a_start_inside_a_pair_is_a_start_before_it() {
    let text = units("\u{1f600}x");
    let any = program(".", "gu").expect("compiles");
    assert_eq!(groups(&any, &text, 1), Ok(Some(vec![Some(0..2)])));
    let unit = program(".", "g").expect("compiles");
    assert_eq!(groups(&unit, &text, 1), Ok(Some(vec![Some(1..2)])));
    assert_eq!(groups(&any, &text, 4), Ok(None));
}

#[test]
fn under_vi_sets_are_compared_without_case_as_the_standard_says() {
    let matches = |pattern: &str, text: &str| {
        let program = program(pattern, "vi").expect(pattern);
        groups(&program, &units(text), 0).expect("enough fuel").is_some()
    };
    assert!(!matches(r"[\p{Lu}--B]", "b"));
    assert!(matches(r"[\p{Lu}--B]", "c"));
    assert!(!matches("[^a--x]", "A"));
    assert!(matches(r"[\q{ABC}&&\q{abc}]", "aBc"));
}
