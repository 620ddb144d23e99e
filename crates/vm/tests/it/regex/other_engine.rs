//! The same answers as `regress`, an independent engine, on patterns made of everything that interacts.
//!
//! Only engines that agree with node in the recorded table are worth asking; this one has no step limit, so the
//! texts are short.

use super::{groups, program, units};
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: 3_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn another_engine_finds_the_same_groups(
        pattern in pattern().prop_filter("the other engine keeps what was undone", |p| !refers_to_itself(p)),
        text in "[abcA_ \n]{0,9}",
        flags in proptest::sample::select(vec!["", "i", "m", "s", "u", "iu"]),
    ) {
        let theirs = regress::Regex::with_flags(&pattern, flags);
        let ours = program(&pattern, flags);
        prop_assert_eq!(theirs.is_ok(), ours.is_ok(), "{} {:?}", pattern, ours.err());
        if let (Ok(theirs), Ok(ours)) = (theirs, ours) {
            let expected = theirs.find(&text).map(|found| found.groups().collect::<Vec<_>>());
            // A pattern that needs more fuel than this tells nothing about the answer.
            if let Ok(answer) = groups(&ours, &units(&text), 0) {
                prop_assert_eq!(answer, expected, "/{}/{} on {:?}", pattern, flags, text);
            }
        }
    }
}

/// Whether a back-reference is inside the group that it refers to. Until that group is closed it has captured nothing, also
/// when it was closed before on a way that failed; `regress` then still sees the old end. What is right is below.
fn refers_to_itself(pattern: &str) -> bool {
    let (mut groups, mut open) = (0, Vec::new());
    let mut rest = pattern;
    while let Some(c) = rest.chars().next() {
        let escaped = rest[c.len_utf8()..].chars().next().filter(|_| c == '\\');
        match (c, escaped) {
            ('(', _) if rest.starts_with("(?") => open.push(None),
            ('(', _) => {
                groups += 1;
                open.push(Some(groups));
            }
            (')', _) => drop(open.pop()),
            (_, Some(digit)) if open.contains(&digit.to_digit(10)) && digit.is_ascii_digit() => return true,
            _ => {}
        }
        rest = &rest[c.len_utf8() + escaped.map_or(0, char::len_utf8)..];
    }
    false
}

#[test]
fn a_group_that_is_not_closed_has_captured_nothing() {
    // As node answers.
    for (pattern, text, expected) in [
        (r"(A|\1)A", "A", vec![Some(0..1), Some(0..0)]),
        (r"(A|\1)A", "AA", vec![Some(0..2), Some(0..1)]),
        (r"(a\1)b", "ab", vec![Some(0..2), Some(0..1)]),
        (r"(\1|a)+", "aa", vec![Some(0..2), Some(1..2)]),
        (r"(a|b\1)+", "aba", vec![Some(0..3), Some(2..3)]),
        (r"(a|\1)*?b", "ab", vec![Some(0..2), Some(0..1)]),
    ] {
        assert!(refers_to_itself(pattern), "{pattern}");
        let ours = program(pattern, "").expect(pattern);
        assert_eq!(groups(&ours, &units(text), 0), Ok(Some(expected)), "/{pattern}/ on {text:?}");
    }
    for pattern in [r"(a)\1", r"\1(a)", r"(?:\1(a))+", r"(a)(?:\1|b(c))\2", r"\(\1", r"(a)(?=\1)"] {
        assert!(!refers_to_itself(pattern), "{pattern}");
    }
}

fn pattern() -> impl Strategy<Value = String> {
    let atom = proptest::sample::select(vec![
        "a", "b", "c", "ab", "A", ".", r"\w", r"\W", r"\s", "[ab]", "[^a]", "[a-c]", "^", "$", r"\b", r"\B",
        r"\1", r"\2",
    ]);
    let leaf = atom.prop_map(str::to_owned);
    leaf.prop_recursive(4, 24, 4, |inner| {
        let quantified = (
            inner.clone(),
            proptest::sample::select(vec!["*", "+", "?", "{2}", "{1,2}", "*?", "+?", "??", "{0,2}?"]),
        )
            .prop_map(|(body, quantifier)| format!("(?:{body}){quantifier}"));
        let grouped =
            (inner.clone(), proptest::sample::select(vec!["(", "(?:", "(?=", "(?!", "(?<=", "(?<!"]))
                .prop_map(|(body, open)| format!("{open}{body})"));
        prop_oneof![
            quantified,
            grouped,
            proptest::collection::vec(inner.clone(), 1..4).prop_map(|parts| parts.concat()),
            proptest::collection::vec(inner, 2..4).prop_map(|parts| parts.join("|")),
        ]
    })
}
