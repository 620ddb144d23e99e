//! Every member is built one way (no cargo features) and under the workspace's lints.

use super::Finding;
use super::project::Project;

pub(super) fn check(project: &Project) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in &project.packages {
        let path = &package.manifest;
        if !package.features.is_empty() {
            let what = format!("{} has cargo features: {}", package.name, package.features.join(", "));
            let fix = "one build, one thing to test: remove the feature or the `optional` that makes it";
            findings.push(Finding::violation(path, 1, what, fix));
        }
        let text = project.text(path).unwrap_or_default();
        if !inherits_lints(text) {
            let what = format!("{} does not take the workspace's lints", package.name);
            findings.push(Finding::violation(path, 1, what, "add `[lints]` with `workspace = true`"));
        }
    }
    findings
}

fn inherits_lints(manifest: &str) -> bool {
    let mut section = "";
    for line in manifest.lines().map(str::trim) {
        if line.starts_with('[') {
            section = line;
        }
        let bare: String = line.chars().filter(|c| !c.is_whitespace()).collect();
        let here = section == "[lints]" && bare == "workspace=true";
        if here || bare == "lints.workspace=true" {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "[package]\nname = \"a\"\n\n[lints]\nworkspace = true\n";

    #[test]
    fn a_plain_member_is_fine() {
        assert_eq!(check(&Project::of(&[("a/Cargo.toml", GOOD)]).with("a", "a/Cargo.toml", &[])), []);
    }

    #[test]
    fn a_member_without_the_lints_is_found() {
        for bad in ["[package]\n", "[lints]\n[package]\nworkspace = true\n", "# [lints] workspace = true\n"] {
            let project = Project::of(&[("a/Cargo.toml", bad)]).with("a", "a/Cargo.toml", &[]);
            let whats: Vec<_> = check(&project).into_iter().map(|finding| finding.what).collect();
            assert_eq!(whats, ["a does not take the workspace's lints"], "{bad}");
        }
    }

    #[test]
    fn a_feature_is_found() {
        let mut project = Project::of(&[("a/Cargo.toml", GOOD)]).with("a", "a/Cargo.toml", &[]);
        project.packages[0].features.push("fast".into());
        assert_eq!(check(&project)[0].what, "a has cargo features: fast");
    }
}
