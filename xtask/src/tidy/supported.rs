//! What the engine supports, in the README: one row for each case that the engine's tests run, so that no row can be a wish.

use super::Finding;
use super::project::Project;
use std::fmt::Write as _;

const README: &str = "README.md";
const CASES: &str = "crates/vm/tests/cases/";
const BEGIN: &str =
    "<!-- supported: written by `cargo xtask tidy --write` from the first lines of the engine's cases -->";
const END: &str = "<!-- end of supported -->";

/// The groups of the table, by the prefix of a case's name.
const GROUPS: &[(&str, &str)] =
    &[("lang-", "Language"), ("lib-", "Library"), ("", "A host call in the middle of")];

pub(super) fn check(project: &Project) -> Vec<Finding> {
    let Some(readme) = project.text(README) else { return Vec::new() };
    if table(project).is_empty() {
        return Vec::new();
    }
    match updated(project) {
        Some(text) if text == readme => Vec::new(),
        Some(_) => vec![Finding::violation(
            README,
            1,
            "the table of what the engine supports is not what its cases say",
            "run `cargo xtask tidy --write`",
        )],
        None => {
            let fix = format!("put these two lines where it belongs:\n    {BEGIN}\n    {END}");
            vec![Finding::violation(README, 1, "the table of what the engine supports is missing", fix)]
        }
    }
}

/// The README with the table as it should be; `None` without its marks.
pub(super) fn updated(project: &Project) -> Option<String> {
    let readme = project.text(README)?;
    let (before, rest) = readme.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{BEGIN}\n{}{END}{after}", table(project)))
}

fn table(project: &Project) -> String {
    let cases: Vec<(&str, &str)> = project
        .files()
        .filter_map(|(path, text)| Some((path.strip_prefix(CASES)?.strip_suffix(".js")?, text)))
        .collect();
    let mut out = String::new();
    for &(prefix, title) in GROUPS {
        let of_group = |name: &str| match prefix {
            "" => !name.starts_with("lang-") && !name.starts_with("lib-"),
            _ => name.starts_with(prefix),
        };
        let rows: Vec<_> = cases.iter().filter(|(name, _)| of_group(name)).collect();
        if rows.is_empty() {
            continue;
        }
        let _ = writeln!(out, "\n| {title} | |\n|---|---|");
        for (name, text) in rows {
            let said = text.lines().next().unwrap_or_default().trim_start_matches('/').trim();
            let said = said.strip_prefix(title).map_or(said, |rest| rest.trim_start_matches(':').trim());
            let shown = name.trim_start_matches(prefix);
            let _ = writeln!(out, "| [{shown}]({CASES}{name}.js) | {} |", said.replace('|', "\\|"));
        }
    }
    if !out.is_empty() {
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn project(readme: &str) -> Project {
        Project::of(&[
            ("README.md", readme),
            ("crates/vm/tests/cases/lang-loops.js", "// Language: loops.\nfor (;;);"),
            ("crates/vm/tests/cases/getter.js", "// A host call in a getter."),
        ])
    }

    #[test]
    fn a_table_that_is_out_of_date_is_told_and_written() {
        let old = format!("# x\n{BEGIN}\nold\n{END}\nrest");
        assert_eq!(check(&project(&old)).len(), 1);
        let new = updated(&project(&old)).unwrap_or_default();
        assert!(new.contains("| [loops](crates/vm/tests/cases/lang-loops.js) | loops. |"), "{new}");
        assert!(
            new.contains("| [getter](crates/vm/tests/cases/getter.js) | A host call in a getter. |"),
            "{new}"
        );
        assert!(new.ends_with("\nrest"));
        assert_eq!(check(&project(&new)), Vec::new());
    }

    #[test]
    fn a_readme_without_the_table_is_told() {
        assert_eq!(check(&project("# x")).len(), 1);
    }
}
