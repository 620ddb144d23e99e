//! `policy` and `vm` know no clock, no I/O, no threads: the world arrives as arguments.

use super::edges::line_of;
use super::mask::code_only;
use super::project::{Kind, Project};
use super::{Finding, lexicon::words};

const PURE: &[(&str, &str)] =
    &[("outrigger-policy", "crates/policy/src/"), ("outrigger-vm", "crates/vm/src/")];

/// Crates whose only use is to reach the world.
const WORLDLY_CRATES: &[&str] =
    &["tokio", "tokio-util", "libc", "rand", "getrandom", "rustix", "nix", "mio", "socket2", "jiff"];

/// Paths of the standard library that reach the world.
const WORLDLY_PATHS: &[&str] = &[
    "std::fs",
    "std::io::stdin",
    "std::io::stdout",
    "std::io::stderr",
    "std::net",
    "std::process",
    "std::thread",
    "std::env",
    "SystemTime",
    "Instant::now",
    "RandomState",
];

/// What begins like one of them and reaches nothing: whether a value is dropped by a fault that unwinds.
const HARMLESS: &str = "std::thread::panicking";

pub(super) fn check(project: &Project) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (name, sources) in PURE {
        for package in project.packages.iter().filter(|package| package.name == *name) {
            let used = package.dependencies.iter().filter(|dependency| dependency.kind != Kind::Dev);
            for dependency in used.filter(|dependency| WORLDLY_CRATES.contains(&dependency.name.as_str())) {
                let line = line_of(project.text(&package.manifest).unwrap_or_default(), &dependency.name);
                let what = format!("{name} is pure and may not depend on {}", dependency.name);
                findings.push(Finding::violation(&package.manifest, line, what, "take it as an argument"));
            }
        }
        for (path, text) in project.rust().filter(|(path, _)| path.starts_with(sources)) {
            let code = code_only(text);
            for (number, line) in code.lines().enumerate() {
                let line = &line.replace(HARMLESS, "");
                for worldly in WORLDLY_PATHS.iter().filter(|worldly| words(line, worldly) > 0) {
                    let what = format!("{name} is pure and may not use {worldly}");
                    let fix = "take the time, the bytes or the number as an argument";
                    findings.push(Finding::violation(path, number + 1, what, fix));
                }
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_in_policy_is_found_and_one_in_a_comment_is_not() {
        let source = "//! Why.\n// never Instant::now\nlet now = std::time::Instant::now();\n";
        let project = Project::of(&[("crates/policy/src/rate.rs", source), ("crates/wire/src/a.rs", source)]);
        let findings = check(&project);
        assert_eq!(findings.len(), 1);
        assert_eq!((findings[0].file.as_str(), findings[0].line), ("crates/policy/src/rate.rs", 3));
        assert_eq!(findings[0].what, "outrigger-policy is pure and may not use Instant::now");
    }

    #[test]
    fn asking_whether_a_fault_unwinds_is_no_use_of_threads() {
        let harmless = Project::of(&[("crates/vm/src/a.rs", "if std::thread::panicking() {}")]);
        assert_eq!(check(&harmless), []);
        let worldly =
            Project::of(&[("crates/vm/src/a.rs", "std::thread::panicking(); std::thread::spawn(f)")]);
        assert_eq!(check(&worldly).len(), 1);
    }

    #[test]
    fn vm_may_not_depend_on_tokio_except_in_tests() {
        let mut project = Project::of(&[]).with("outrigger-vm", "crates/vm/Cargo.toml", &["tokio", "serde"]);
        assert_eq!(check(&project).len(), 1);
        project.packages[0].dependencies[0].kind = Kind::Dev;
        assert_eq!(check(&project), []);
    }

    #[test]
    fn other_crates_may_use_the_world() {
        let project = Project::of(&[("crates/supervise/src/a.rs", "use std::fs;")]).with(
            "outrigger-supervise",
            "crates/supervise/Cargo.toml",
            &["tokio"],
        );
        assert_eq!(check(&project), []);
    }
}
