//! Who may import whom: the picture of the architecture, executed.
//!
//! ```text
//! outrigger ─► mustard │ abp │ steerable │ helmor │ sep ─► supervise ─► wire
//!                 │        └──────┴────┬─────┴───────┘
//!                 └► vm                └► policy
//! ```

use super::Finding;
use super::project::{Kind, Package, Project};

/// What a member may use of ours, by package name. Test code is free: it meets other crates as a user would.
const PICTURE: &[(&str, Reach)] = &[
    ("outrigger", Reach::Everything),
    ("outrigger-mustard", Reach::Only(&["outrigger-vm", "outrigger-supervise", "outrigger-wire"])),
    ("outrigger-abp", DIALECT),
    ("outrigger-steerable", DIALECT),
    ("outrigger-helmor", DIALECT),
    ("outrigger-sep", DIALECT),
    ("outrigger-supervise", Reach::Only(&["outrigger-wire"])),
    ("outrigger-wire", Reach::Only(&[])),
    ("outrigger-policy", Reach::Only(&[])),
    ("outrigger-vm", Reach::Only(&[])),
    ("outrigger-fuzz", Reach::Everything),
    ("outrigger-bench", Reach::Everything),
    ("outrigger-test262", Reach::Everything),
    ("xtask", Reach::Everything),
];

const DIALECT: Reach = Reach::Only(&["outrigger-policy", "outrigger-supervise", "outrigger-wire"]);

/// The only members that may answer "something went wrong" without saying which thing.
const MAY_USE_ANYHOW: &[&str] = &["outrigger", "outrigger-bench", "outrigger-test262", "xtask"];

enum Reach {
    Everything,
    Only(&'static [&'static str]),
}

pub(super) fn check(project: &Project) -> Vec<Finding> {
    project.packages.iter().flat_map(|package| check_package(project, package)).collect()
}

fn check_package(project: &Project, package: &Package) -> Vec<Finding> {
    let Package { name, manifest, .. } = package;
    let Some((_, reach)) = PICTURE.iter().find(|(member, _)| member == name) else {
        let fix = "add it to PICTURE in xtask/src/tidy/edges.rs and to ARCHITECTURE.md, or remove it";
        return vec![Finding::violation(manifest, 1, format!("{name} is not in the picture"), fix)];
    };
    let line = |dependency: &str| line_of(project.text(manifest).unwrap_or_default(), dependency);
    let mut findings = Vec::new();
    for dependency in &package.dependencies {
        let used = dependency.name.as_str();
        if used == "anyhow" && !MAY_USE_ANYHOW.contains(&name.as_str()) {
            let fix = "write an error enum beside the operation (thiserror)";
            findings.push(Finding::violation(manifest, line(used), format!("{name} uses anyhow"), fix));
        }
        let ours = project.packages.iter().any(|member| member.name == used);
        let allowed = match reach {
            Reach::Everything => true,
            Reach::Only(names) => names.contains(&used),
        };
        if ours && !allowed && dependency.kind != Kind::Dev {
            let what = format!("{name} may not depend on {used}: that arrow is not in the picture");
            let fix = "move the shared part down, or let `outrigger` bring the two together";
            findings.push(Finding::violation(manifest, line(used), what, fix));
        }
    }
    findings
}

/// The line of the manifest that names `dependency`.
pub(super) fn line_of(manifest: &str, dependency: &str) -> usize {
    let names = |line: &str| {
        let rest = line.trim_start().strip_prefix(dependency);
        rest.is_some_and(|rest| rest.starts_with(['.', ' ', '=']))
    };
    manifest.lines().position(names).map_or(1, |at| at + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whats(project: &Project) -> Vec<String> {
        check(project).into_iter().map(|finding| finding.what).collect()
    }

    fn workspace() -> Project {
        ["outrigger-wire", "outrigger-policy", "outrigger-vm"]
            .iter()
            .fold(Project::of(&[]), |project, name| project.with(name, "x/Cargo.toml", &[]))
    }

    #[test]
    fn arrows_that_point_down_are_fine() {
        let project = workspace()
            .with("outrigger-supervise", "s/Cargo.toml", &["outrigger-wire", "tokio"])
            .with(
                "outrigger-abp",
                "a/Cargo.toml",
                &["outrigger-policy", "outrigger-supervise", "outrigger-wire"],
            )
            .with("outrigger-mustard", "m/Cargo.toml", &["outrigger-vm", "outrigger-supervise"])
            .with("outrigger", "o/Cargo.toml", &["outrigger-abp", "outrigger-mustard", "anyhow"])
            .with("xtask", "t/Cargo.toml", &["outrigger", "anyhow"]);
        assert_eq!(whats(&project), [""; 0]);
    }

    #[test]
    fn a_dialect_may_not_import_another_dialect() {
        let project = workspace().with("outrigger-abp", "a/Cargo.toml", &["outrigger-sep"]).with(
            "outrigger-sep",
            "s/Cargo.toml",
            &[],
        );
        let expected = "outrigger-abp may not depend on outrigger-sep: that arrow is not in the picture";
        assert_eq!(whats(&project), [expected]);
    }

    #[test]
    fn an_arrow_that_points_up_or_across_is_found_at_its_line() {
        let manifest = "[dependencies]\nserde = \"1\"\noutrigger-policy.workspace = true\n";
        let mut project = Project::of(&[("crates/supervise/Cargo.toml", manifest)])
            .with("outrigger-policy", "p/Cargo.toml", &[])
            .with("outrigger-supervise", "crates/supervise/Cargo.toml", &["outrigger-policy"]);
        let findings = check(&project);
        assert_eq!(findings.len(), 1);
        assert_eq!((findings[0].file.as_str(), findings[0].line), ("crates/supervise/Cargo.toml", 3));

        project.packages[1].dependencies[0].kind = Kind::Dev;
        assert_eq!(check(&project), [], "test code may");
        project.packages[1].dependencies[0].kind = Kind::Build;
        assert_eq!(check(&project).len(), 1, "a build script may not");
    }

    #[test]
    fn a_member_that_nobody_drew_is_found() {
        let project = workspace().with("outrigger-utils", "u/Cargo.toml", &[]);
        assert_eq!(whats(&project), ["outrigger-utils is not in the picture"]);
    }

    #[test]
    fn a_library_may_not_use_anyhow() {
        let project = workspace().with("outrigger-sep", "s/Cargo.toml", &["anyhow"]);
        assert_eq!(whats(&project), ["outrigger-sep uses anyhow"]);
    }
}
