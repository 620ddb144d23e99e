//! `docs/promises.md`: every number names the bench row or the test that holds it.
//!
//! The last cell of a row is `bench::<row>` (a row of `cargo xtask bench`, named by a string in `bench/src`) or
//! `path/to/file.rs::test_name`.

use super::Finding;
use super::compat::{cells, find_test, names};
use super::mask::code_and_strings;
use super::project::Project;

const DOCUMENT: &str = "docs/promises.md";

pub(super) fn check(project: &Project) -> Vec<Finding> {
    let Some(text) = project.text(DOCUMENT) else { return Vec::new() };
    let mut findings = Vec::new();
    let mut in_body = false;
    for (number, line) in text.lines().enumerate() {
        let Some(cells) = cells(line) else {
            in_body = false;
            continue;
        };
        let is_rule = cells.iter().all(|cell| !cell.is_empty() && cell.chars().all(|c| "-: ".contains(c)));
        if is_rule || !in_body {
            in_body = is_rule;
            continue;
        }
        let held_by = cells.last().copied().unwrap_or_default();
        let mut problems: Vec<String> = names(held_by).filter_map(|name| find(project, name).err()).collect();
        if names(held_by).next().is_none() {
            problems.push("nothing holds this promise".to_owned());
        }
        let fix = "end the row with bench::<row> or path/to/file.rs::test_name";
        findings.extend(problems.into_iter().map(|what| Finding::violation(DOCUMENT, number + 1, what, fix)));
    }
    findings
}

fn find(project: &Project, named: &str) -> Result<(), String> {
    let Some(row) = named.strip_prefix("bench::") else { return find_test(project, named) };
    let quoted = format!("\"{row}\"");
    let mut sources = project.rust().filter(|(path, _)| path.starts_with("bench/src/"));
    let found = !row.is_empty() && sources.any(|(_, text)| code_and_strings(text).contains(&quoted));
    if found { Ok(()) } else { Err(format!("the bench has no row `{row}`")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whats(row: &str) -> Vec<String> {
        let table = format!("# Promises\n\n| promise | number | held by |\n|---|--:|---|\n{row}\n");
        let files = [
            (DOCUMENT, table.as_str()),
            ("bench/src/lines.rs", "//! B.\nRow::new(\"lines\") // \"gone\"\n"),
            ("crates/wire/tests/it/a.rs", "//! T.\n#[test]\nfn memory_is_bounded() {}\n"),
        ];
        check(&Project::of(&files)).into_iter().map(|finding| finding.what).collect()
    }

    #[test]
    fn a_number_is_held_by_a_bench_or_a_test() {
        assert_eq!(whats("| fast | 1.5× | `bench::lines` |"), [""; 0]);
        assert_eq!(whats("| small | 1 MiB | `crates/wire/tests/it/a.rs::memory_is_bounded` |"), [""; 0]);
    }

    #[test]
    fn a_number_that_nothing_holds_is_found() {
        assert_eq!(whats("| fast | 1.5× | `bench::gone` |"), ["the bench has no row `gone`"]);
        assert_eq!(whats("| fast | 1.5× | |"), ["nothing holds this promise"]);
        let gone = "`crates/wire/tests/it/a.rs` has no test `gone`";
        assert_eq!(whats("| x | 1 | crates/wire/tests/it/a.rs::gone |"), [gone]);
    }
}
