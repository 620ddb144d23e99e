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
        pattern in pattern(),
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
