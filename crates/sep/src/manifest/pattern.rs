//! The patterns of the schema, each as a matcher written by hand. `\d` is an ASCII digit and `$` is the end of the text.

/// A matcher for one pattern of the schema.
pub(super) struct Pattern {
    /// The pattern, exactly as the schema has it.
    pub(super) text: &'static str,
    /// What it means, to fit after "must be".
    pub(super) meaning: &'static str,
    /// Whether a text matches.
    pub(super) matches: fn(&str) -> bool,
}

/// All patterns there are.
pub(super) const PATTERNS: &[Pattern] = &[
    Pattern {
        text: r"^\d+\.\d+\.\d+$",
        meaning: "three numbers, as in `1.0.0`",
        matches: |text| text.split('.').count() == 3 && text.split('.').all(digits),
    },
    Pattern {
        text: r"^\d+\.\d+\.\d+(?:[-+][A-Za-z0-9._-]+)?$",
        meaning: "three numbers and perhaps one label, as in `1.0.0` or `1.0.0-rc.1`",
        matches: labelled_version,
    },
    Pattern {
        text: r"^[a-z0-9]+(?:[._-][a-z0-9]+)+$",
        meaning: "lower-case words joined by `.`, `_` or `-`, at least two, as in `org.example.notes`",
        matches: |text| {
            text.split(['.', '_', '-']).count() > 1 && text.split(['.', '_', '-']).all(lower_word)
        },
    },
    Pattern {
        text: r"^[a-z0-9]+(?:[._-][a-z0-9]+)*$",
        meaning: "lower-case words joined by `.`, `_` or `-`, as in `stats-panel`",
        matches: |text| text.split(['.', '_', '-']).all(lower_word),
    },
    Pattern {
        text: r"^[a-z0-9]+(?:\.[a-z0-9]+)+$",
        meaning: "lower-case words joined by dots, at least two, as in `message.received`",
        matches: |text| text.split('.').count() > 1 && text.split('.').all(lower_word),
    },
    Pattern {
        text: r"^[A-Z_][A-Z0-9_]*$",
        meaning: "capital letters, digits and `_`, not a digit first, as in `LOG_LEVEL`",
        matches: |text| {
            let capital = |byte: u8| byte.is_ascii_uppercase() || byte == b'_';
            text.bytes().next().is_some_and(capital)
                && text.bytes().all(|byte| capital(byte) || byte.is_ascii_digit())
        },
    },
];

/// The matcher for a pattern of the schema.
pub(super) fn find(pattern: &str) -> Option<&'static Pattern> {
    PATTERNS.iter().find(|known| known.text == pattern)
}

fn labelled_version(text: &str) -> bool {
    let (numbers, label) = match text.find(['-', '+']) {
        Some(at) => (&text[..at], Some(&text[at + 1..])),
        None => (text, None),
    };
    let labels = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    numbers.split('.').count() == 3
        && numbers.split('.').all(digits)
        && label.is_none_or(|label| !label.is_empty() && label.bytes().all(labels))
}

fn digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn lower_word(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;
    use std::collections::BTreeSet;

    /// All patterns in a schema. A member of `properties` that is named like the word would be an object, not a text.
    fn collect<'s>(schema: &'s Value, found: &mut BTreeSet<&'s str>) {
        match schema {
            Value::Object(words) => {
                found.extend(words.get("pattern").and_then(Value::as_str));
                words.values().for_each(|value| collect(value, found));
            }
            Value::Array(parts) => parts.iter().for_each(|part| collect(part, found)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    #[test]
    fn the_patterns_of_the_schema_are_exactly_those_that_have_a_matcher() {
        let schema: Value = serde_json::from_str(super::super::SCHEMA).expect("the schema is JSON");
        let mut used = BTreeSet::new();
        collect(&schema, &mut used);
        assert_eq!(used, PATTERNS.iter().map(|pattern| pattern.text).collect());
    }

    #[test]
    fn each_matcher_accepts_what_its_pattern_does() {
        let table: &[(usize, &[&str], &[&str])] = &[
            (
                0,
                &["1.0.0", "01.002.3"],
                &["", "1.0", "1.0.0.0", "1.0.0\n", "１.２.３", "1.0.x", " 1.0.0", "+1.0.0"],
            ),
            (
                1,
                &["1.0.0", "1.0.0-rc.1", "1.0.0+5", "01.0.0", "1.0.0-a..b", "1.0.0--", "1.0.0+-"],
                &["1.0.0-rc.1+5", "1.0.0-", "1.0.0+", "1.0-rc", "1.0.0 ", "1.0.0-é", "1.0.0\n", "1.0.0-1\n"],
            ),
            (2, &["a.b", "a-b_c.d", "1.2"], &["ab", "", ".a", "a.", "a..b", "A.b", "a.b\n", "é.b"]),
            (3, &["a", "a.b", "stats-panel"], &["", "-a", "a-", "a--b", "A", "a\n"]),
            (4, &["a.b", "message.received"], &["a", "a-b.c", "a.", "a..b", "a.b\n"]),
            (5, &["A", "_", "_1", "LOG_LEVEL2"], &["", "1A", "a", "A-B", "A=", "Á", "A\n"]),
        ];
        assert_eq!(table.len(), PATTERNS.len());
        for (index, accepted, rejected) in table {
            let pattern = &PATTERNS[*index];
            for text in *accepted {
                assert!((pattern.matches)(text), "{} {text:?}", pattern.text);
            }
            for text in *rejected {
                assert!(!(pattern.matches)(text), "{} {text:?}", pattern.text);
            }
        }
    }
}
