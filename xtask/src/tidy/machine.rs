//! Nothing in the project speaks of the machine it was written on: such a path means nothing to its reader.

use super::Finding;
use super::project::Project;

struct Trace {
    text: &'static str,
    allowed: fn(&str) -> bool,
}

/// Written in two halves, because this file is judged too.
const TRACES: &[Trace] = &[
    Trace { text: concat!("/wo", "rk/"), allowed: |_| false },
    // A test of the sandbox may well try to read the superuser's files.
    Trace { text: concat!("/ro", "ot/"), allowed: |path| path.contains("/tests/") },
    Trace { text: concat!("/tmp/", "target-"), allowed: |_| false },
];

pub(super) fn check(project: &Project) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in project.files() {
        for trace in TRACES.iter().filter(|trace| !(trace.allowed)(path)) {
            for (number, line) in text.lines().enumerate().filter(|(_, line)| names(line, trace.text)) {
                let what = format!("`{}` is a path of one machine: {}", trace.text, line.trim());
                findings.push(Finding::violation(path, number + 1, what, "say it without the machine"));
            }
        }
    }
    findings
}

/// Whether `line` has `path` as the beginning of an absolute path, and not inside a longer one or a URL.
fn names(line: &str, path: &str) -> bool {
    let inside = |c: char| c.is_alphanumeric() || "_-./~}*".contains(c);
    line.match_indices(path).any(|(at, _)| !line[..at].chars().next_back().is_some_and(inside))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> usize {
        check(&Project::of(&[(path, text)])).len()
    }

    #[test]
    fn a_path_of_the_machine_is_found_in_any_file() {
        for trace in TRACES {
            for line in
                [format!("see {}x", trace.text), format!("\"{}x\"", trace.text), trace.text.to_owned()]
            {
                assert_eq!(found("docs/a.md", &line), 1, "{line}");
                assert_eq!(found("crates/a/src/b.rs", &line), 1, "{line}");
            }
        }
    }

    #[test]
    fn paths_that_only_look_alike_are_fine() {
        let work = TRACES[0].text;
        for line in [format!("https://example.org{work}x"), format!("a{work}x"), format!("$HOME}}{work}x")] {
            assert_eq!(found("docs/a.md", &line), 0, "{line}");
        }
        assert_eq!(found("docs/a.md", "/workspace/x /rooted/x"), 0);
    }

    #[test]
    fn a_sandbox_test_may_knock_at_the_superusers_door() {
        let line = format!("open(\"{}.ssh\")", TRACES[1].text);
        assert_eq!(found("crates/supervise/tests/it/box.rs", &line), 0);
        assert_eq!(found("crates/supervise/src/box.rs", &line), 1);
    }
}
