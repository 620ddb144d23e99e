//! Relative links in documents lead to files that exist.

use super::Finding;
use super::project::Project;

pub(super) fn check(project: &Project) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in project.markdown() {
        for (line, target) in links(text) {
            let Some(resolved) = resolve(path, target) else {
                let what = format!("the link `{target}` leaves the project");
                findings.push(Finding::violation(
                    path,
                    line,
                    what,
                    "link to a file of the project or to a URL",
                ));
                continue;
            };
            if !project.has(&resolved) {
                let what = format!("the link `{target}` leads nowhere: there is no `{resolved}`");
                findings.push(Finding::violation(path, line, what, "correct the path or remove the link"));
            }
        }
    }
    findings
}

/// The relative link targets of a document, with their lines. What stands in code is no link.
fn links(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut in_fence = false;
    for (number, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            in_fence = !in_fence;
        } else if !in_fence {
            found.extend(targets(line).into_iter().map(|target| (number + 1, target)));
        }
    }
    found
}

fn targets(line: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for (at, _) in line.match_indices("](") {
        let in_code = line[..at].matches('`').count() % 2 == 1;
        let target = line[at + 2..].split([')', ' ']).next().unwrap_or_default();
        let target =
            target.trim_start_matches('<').trim_end_matches('>').split('#').next().unwrap_or_default();
        let absolute = target.contains("://") || target.starts_with("mailto:");
        if !in_code && !absolute && !target.is_empty() {
            found.push(target);
        }
    }
    found
}

/// `target` as seen from the document `path`, as a path from the root; none when it leaves the project.
fn resolve(path: &str, target: &str) -> Option<String> {
    let mut parts: Vec<&str> = if target.starts_with('/') { Vec::new() } else { path.split('/').collect() };
    parts.pop();
    for part in target.trim_start_matches('/').split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whats(text: &str) -> Vec<String> {
        let files = [("docs/a/x.md", text), ("docs/b.md", ""), ("README.md", ""), ("docs/a/pic.png", "")];
        check(&Project::of(&files)).into_iter().map(|finding| finding.what).collect()
    }

    #[test]
    fn links_that_lead_somewhere_are_fine() {
        for text in [
            "[b](../b.md)",
            "[b](../b.md#part)",
            "![p](pic.png)",
            "[d](..)",
            "[r](/README.md \"title\")",
            "[h](#here)",
            "[u](https://example.org/x.md)",
            "[m](mailto:a@b)",
            "[top](../../)",
        ] {
            assert_eq!(whats(text), [""; 0], "{text}");
        }
    }

    #[test]
    fn links_that_lead_nowhere_are_found() {
        assert_eq!(whats("x [b](b.md) y"), ["the link `b.md` leads nowhere: there is no `docs/a/b.md`"]);
        assert_eq!(whats("[b](../../../b.md)"), ["the link `../../../b.md` leaves the project"]);
        assert_eq!(
            whats("[a](../b.md) [c](<c.md>)"),
            ["the link `c.md` leads nowhere: there is no `docs/a/c.md`"]
        );
    }

    #[test]
    fn what_stands_in_code_is_no_link() {
        assert_eq!(whats("```\n[b](b.md)\n```\n`[b](b.md)`"), [""; 0]);
        assert_eq!(whats("```\n```\n[b](b.md)").len(), 1, "a fence that ended");
    }
}
