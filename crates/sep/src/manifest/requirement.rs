//! Which versions of the application an extension works with: `>=4.5.0`, `^4.5`, `~4.5.1`, `4.*`, and several with commas.
//!
//! Each part is a range of versions from one (included) to another (not included). A host that is a pre-release counts as
//! the release it leads to.

use super::finding::quoted;

/// The version of a host, without its pre-release.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HostVersion([u64; 3]);

/// Why a text is not a requirement, or not a version.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text} {why}")]
pub struct BadRequirement {
    text: String,
    why: &'static str,
}

/// A requirement: all of its parts must be met.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requirement(Vec<Range>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Range {
    from: HostVersion,
    /// None is without end.
    to: Option<HostVersion>,
}

/// More parts than anybody needs.
const MAX_PARTS: usize = 32;
const FIRST: HostVersion = HostVersion([0; 3]);

impl HostVersion {
    /// Reads `4.6.0`, `4.6.0-rc.1`, `4.6.0+build`; only the numbers are kept.
    ///
    /// # Errors
    /// When it is not three numbers.
    pub fn parse(text: &str) -> Result<Self, BadRequirement> {
        let bad = |why| BadRequirement { text: quoted(text), why };
        let partial = Partial::parse(text).map_err(bad)?;
        match partial.numbers {
            [Some(major), Some(minor), Some(patch)] => Ok(Self([major, minor, patch])),
            _ => Err(bad("is not a version: three numbers are needed")),
        }
    }
}

impl Requirement {
    /// Reads a requirement.
    ///
    /// # Errors
    /// When it is none.
    pub fn parse(text: &str) -> Result<Self, BadRequirement> {
        let bad = |why| BadRequirement { text: quoted(text), why };
        let parts: Vec<&str> = text.split(',').collect();
        if parts.len() > MAX_PARTS {
            return Err(bad("has too many parts"));
        }
        parts.into_iter().map(part).collect::<Result<_, _>>().map(Self).map_err(bad)
    }

    /// Whether a host of this version meets it.
    #[must_use]
    pub fn met_by(&self, host: HostVersion) -> bool {
        self.0.iter().all(|range| range.from <= host && range.to.is_none_or(|to| host < to))
    }
}

fn part(text: &str) -> Result<Range, &'static str> {
    let text = text.trim_matches(' ');
    if matches!(text, "*" | "x" | "X") {
        return Ok(Range { from: FIRST, to: None });
    }
    let operators = [">=", "<=", ">", "<", "=", "^", "~"];
    let operator = operators.into_iter().find(|operator| text.starts_with(operator)).unwrap_or("");
    let partial = Partial::parse(text[operator.len()..].trim_start_matches(' '))?;
    let Partial { numbers: [major, minor, patch], pre, .. } = partial;
    let Some(major) = major else { return Err("has a wildcard where a number is needed") };
    let from = HostVersion([major, minor.unwrap_or(0), patch.unwrap_or(0)]);
    // The first version after everything that the numbers stand for.
    let after = match (minor, patch) {
        (None, _) => next([major, 0, 0], 0),
        (Some(minor), None) => next([major, minor, 0], 1),
        (Some(minor), Some(patch)) => next([major, minor, patch], 2),
    };
    let nothing = Range { from, to: Some(from) };
    // A host without a pre-release is after every pre-release of the same numbers.
    Ok(match operator {
        ">" if pre => Range { from, to: None },
        ">" => after.map_or(nothing, |from| Range { from, to: None }),
        ">=" => Range { from, to: None },
        "<" => Range { from: FIRST, to: Some(from) },
        "<=" if pre => Range { from: FIRST, to: Some(from) },
        "<=" => Range { from: FIRST, to: after },
        "=" if pre => nothing,
        "=" => Range { from, to: after },
        "~" => Range { from, to: next([major, minor.unwrap_or(0), 0], usize::from(minor.is_some())) },
        "" if partial.wildcard => Range { from, to: after },
        // The caret, also when it is not written: the first number that is not zero may not change.
        _ => Range { from, to: after_caret(major, minor, patch) },
    })
}

fn after_caret(major: u64, minor: Option<u64>, patch: Option<u64>) -> Option<HostVersion> {
    match (major, minor, patch) {
        (0, Some(0), Some(patch)) => next([0, 0, patch], 2),
        (0, Some(minor), _) => next([0, minor, 0], 1),
        (major, _, _) => next([major, 0, 0], 0),
    }
}

/// The version in which the number at `place` is one higher and those after it are zero; none if there is no such number.
fn next(numbers: [u64; 3], place: usize) -> Option<HostVersion> {
    let mut numbers = numbers;
    numbers[place] = numbers[place].checked_add(1)?;
    numbers[place + 1..].fill(0);
    Some(HostVersion(numbers))
}

/// A version of which the end may be missing.
struct Partial {
    numbers: [Option<u64>; 3],
    wildcard: bool,
    pre: bool,
}

impl Partial {
    fn parse(text: &str) -> Result<Self, &'static str> {
        let (text, build) = split_label(text, '+');
        let (text, pre) = split_label(text, '-');
        let words: Vec<&str> = text.split('.').collect();
        if words.len() > 3 {
            return Err("has more than three numbers");
        }
        let mut partial = Self { numbers: [None; 3], wildcard: false, pre: pre.is_some() };
        for (place, word) in words.into_iter().enumerate() {
            match word {
                "*" | "x" | "X" => partial.wildcard = true,
                _ if partial.wildcard => return Err("has a number after a wildcard"),
                word => partial.numbers[place] = Some(number(word)?),
            }
        }
        let whole = partial.numbers[2].is_some();
        let labels = [pre, build].into_iter().flatten();
        for label in labels {
            if !whole || !label.split('.').all(is_identifier) {
                return Err("has a label that is not of the right form");
            }
        }
        Ok(partial)
    }
}

fn split_label(text: &str, at: char) -> (&str, Option<&str>) {
    text.split_once(at).map_or((text, None), |(text, label)| (text, Some(label)))
}

fn is_identifier(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

fn number(word: &str) -> Result<u64, &'static str> {
    let digits = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
    if !digits {
        return Err("is not a requirement on a version, as in `>=4.5.0`");
    }
    if word.len() > 1 && word.starts_with('0') {
        return Err("has a number that begins with a zero");
    }
    word.parse().map_err(|_| "has a number that is too large")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_requirement_means_what_people_who_write_semver_mean() {
        let table: &[(&str, &[&str], &[&str])] = &[
            (
                ">=4.5.0",
                &["4.5.0", "4.6.0-rc.1", "5.0.0", "4.5.0-rc.1", "4.6.0+b.1"],
                &["4.4.9", "4.4.9-rc.1"],
            ),
            (">4.5.0", &["4.5.1"], &["4.5.0"]),
            (">4.5", &["4.6.0"], &["4.5.9"]),
            (">4", &["5.0.0"], &["4.9.9"]),
            ("<4.5", &["4.4.9"], &["4.5.0"]),
            ("<=4.5", &["4.5.9"], &["4.6.0"]),
            ("<=4.5.1", &["4.5.1"], &["4.5.2"]),
            ("=4.5", &["4.5.7"], &["4.6.0"]),
            ("=4.5.1", &["4.5.1"], &["4.5.2", "4.5.0"]),
            ("4.5.1", &["4.5.1", "4.9.0"], &["4.5.0", "5.0.0"]),
            ("^0.2.3", &["0.2.3", "0.2.9"], &["0.3.0", "0.2.2"]),
            ("^0.0.3", &["0.0.3"], &["0.0.4"]),
            ("^0.0", &["0.0.9"], &["0.1.0"]),
            ("^0", &["0.9.0"], &["1.0.0"]),
            ("~4.5.1", &["4.5.1", "4.5.9"], &["4.6.0", "4.5.0"]),
            ("~4.5", &["4.5.0"], &["4.6.0"]),
            ("~4", &["4.9.0"], &["5.0.0"]),
            ("4.*", &["4.0.0", "4.9.9"], &["5.0.0", "3.9.9"]),
            ("4.5.x", &["4.5.9"], &["4.6.0"]),
            ("*", &["0.0.0", "99.0.0"], &[]),
            (">=4.5.0, <5", &["4.5.0", "4.9.9"], &["5.0.0", "4.4.0"]),
            (">= 4.5.0 , < 5", &["4.6.0"], &["5.0.0"]),
            (">=4.5.0-rc.1", &["4.5.0"], &["4.4.9"]),
            (">4.5.0-rc.1", &["4.5.0"], &["4.4.9"]),
            ("<=4.5.0-rc.1", &["4.4.9"], &["4.5.0"]),
            ("=4.5.0-rc.1", &[], &["4.5.0"]),
            (">18446744073709551615", &[], &["4.5.0", "18446744073709551615.0.0"]),
        ];
        for (text, met, unmet) in table {
            let requirement = Requirement::parse(text).expect(text);
            let host = |version: &&str| HostVersion::parse(version).expect("a version");
            assert!(met.iter().all(|version| requirement.met_by(host(version))), "{text} {met:?}");
            assert!(!unmet.iter().any(|version| requirement.met_by(host(version))), "{text} {unmet:?}");
        }
    }

    #[test]
    fn what_is_no_requirement_is_refused() {
        let many = ["*"; 33].join(",");
        for text in [
            "",
            " ",
            ",",
            ">=4.5.0,",
            ">=",
            "latest",
            "v4",
            "4.5.0.1",
            "4..5",
            "04.5",
            ">=4.5.0 <5",
            "4.*.1",
            ">*",
            "4.5-rc",
            "4.5.0-",
            "4.5.0-a..b",
            "４.5.0",
            "99999999999999999999",
            "4.5.0\n",
            "==4",
            &many,
        ] {
            assert!(Requirement::parse(text).is_err(), "{text:?}");
        }
        for text in ["4", "4.5", "4.*", "x", ""] {
            assert!(HostVersion::parse(text).is_err(), "{text:?}");
        }
    }
}
