//! A file is read in a sitting: past 500 lines (tests aside) it is listed, past 1000 it fails.

use super::Finding;
use super::mask::code_only;
use super::project::Project;

const LISTED: usize = 500;
const REFUSED: usize = 1000;

pub(super) fn check(project: &Project) -> Vec<Finding> {
    project.rust().filter_map(|(path, text)| judge(path, lines_without_tests(path, text))).collect()
}

fn judge(path: &str, lines: usize) -> Option<Finding> {
    let what = format!("{lines} lines without tests");
    let fix = "look for the second idea in it and give that a file of its own";
    if lines > REFUSED {
        Some(Finding::violation(path, 1, what, fix))
    } else if lines > LISTED {
        Some(Finding::note(path, 1, what, fix))
    } else {
        None
    }
}

fn lines_without_tests(path: &str, text: &str) -> usize {
    let file_is_test = path.split('/').any(|part| part == "tests" || part == "tests.rs");
    if file_is_test {
        return 0;
    }
    let code = code_only(text);
    let lines: Vec<&str> = code.lines().collect();
    let mut count = 0;
    let mut at = 0;
    while at < lines.len() {
        let opens_tests = lines[at].trim() == "#[cfg(test)]"
            && lines.get(at + 1).is_some_and(|next| next.trim_end().ends_with('{'));
        if opens_tests {
            at += 1 + block_length(&lines[at + 1..]);
        } else {
            count += 1;
            at += 1;
        }
    }
    count
}

/// How many lines the block takes that opens on the first of `lines`.
fn block_length(lines: &[&str]) -> usize {
    let mut depth = 0i64;
    for (number, line) in lines.iter().enumerate() {
        depth += line.matches('{').count() as i64 - line.matches('}').count() as i64;
        if depth <= 0 {
            return number + 1;
        }
    }
    lines.len()
}

#[cfg(test)]
mod tests {
    use super::super::Weight;
    use super::*;

    fn weight(path: &str, text: &str) -> Option<Weight> {
        check(&Project::of(&[(path, text)])).first().map(|finding| finding.weight)
    }

    #[test]
    fn a_limit_is_met_exactly_and_passed_by_one() {
        for (lines, expected) in [
            (500, None),
            (501, Some(Weight::Note)),
            (1000, Some(Weight::Note)),
            (1001, Some(Weight::Violation)),
        ] {
            assert_eq!(weight("a.rs", &"x\n".repeat(lines)), expected, "{lines}");
        }
    }

    #[test]
    fn tests_are_not_counted_wherever_they_are() {
        let module =
            format!("#[cfg(test)]\nmod tests {{\n    let s = \"}}\";\n{}}}\n", "    x\n".repeat(2000));
        assert_eq!(weight("a.rs", &module), None);
        assert_eq!(weight("a.rs", &format!("{module}{}", "x\n".repeat(501))), Some(Weight::Note));
        assert_eq!(weight("crates/a/tests/it/main.rs", &"x\n".repeat(2000)), None);
        assert_eq!(weight("crates/a/src/b/tests.rs", &"x\n".repeat(2000)), None);
    }
}
