//! `docs/compatibility/*.md`: every promise of a dialect is open, or names tests that exist.
//!
//! A row is `| A1 | the promise | open |` or `| A1 | the promise | crates/abp/tests/it/hello.rs::a_test |`.

use super::Finding;
use super::mask::{code_and_strings, code_only};
use super::project::Project;
use std::collections::BTreeSet;

const FOLDER: &str = "docs/compatibility/";

pub(super) fn check(project: &Project) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in documents(project) {
        let rows = rows(text);
        if rows.is_empty() {
            let fix = "give it a table: item | promise | shown by";
            findings.push(Finding::violation(path, 1, "the document promises nothing", fix));
        }
        let mut seen = BTreeSet::new();
        for row in rows {
            if !seen.insert(row.id) {
                let what = format!("{} is listed twice", row.id);
                findings.push(Finding::violation(path, row.line, what, "an item has one row"));
            }
            for problem in row.problems(project) {
                let fix = "name a test as path/to/file.rs::test_name, or say `open`";
                findings.push(Finding::violation(path, row.line, format!("{}: {problem}", row.id), fix));
            }
        }
    }
    findings
}

/// How far each dialect is, for people.
pub(super) fn counts(project: &Project) -> String {
    let mut text = String::new();
    for (path, document) in documents(project) {
        let dialect = path[FOLDER.len()..].trim_end_matches(".md");
        let rows = rows(document);
        let open = rows.iter().filter(|row| row.is_open()).count();
        text.push_str(&format!("  {dialect:<10} {:>3} shown {open:>3} open\n", rows.len() - open));
    }
    text
}

/// Whether `named` (`path::test`) is a test of this project; otherwise what is wrong with it.
pub(super) fn find_test(project: &Project, named: &str) -> Result<(), String> {
    let Some((path, test)) = named.rsplit_once("::") else {
        return Err(format!("`{named}` does not have the form path::test_name"));
    };
    let Some(text) = project.text(path) else {
        return Err(format!("there is no file `{path}`"));
    };
    let found =
        if path.ends_with(".rs") { is_rust_test(project, path, text, test) } else { text.contains(test) };
    if found { Ok(()) } else { Err(format!("`{path}` has no test `{test}`")) }
}

struct Row<'a> {
    line: usize,
    id: &'a str,
    shown_by: &'a str,
}

impl Row<'_> {
    fn is_open(&self) -> bool {
        self.shown_by == "open"
    }

    fn problems(&self, project: &Project) -> Vec<String> {
        if self.is_open() {
            return Vec::new();
        }
        let named: Vec<&str> = names(self.shown_by).collect();
        if named.is_empty() {
            return vec!["names neither a test nor `open`".to_owned()];
        }
        named.into_iter().filter_map(|name| find_test(project, name).err()).collect()
    }
}

fn documents(project: &Project) -> impl Iterator<Item = (&str, &str)> {
    project.markdown().filter(|(path, _)| path.starts_with(FOLDER) && !path.ends_with("/README.md"))
}

/// The rows of every table whose first cell looks like an item: letters and a number.
fn rows(text: &str) -> Vec<Row<'_>> {
    text.lines().enumerate().filter_map(|(number, line)| row(number + 1, line)).collect()
}

fn row(line: usize, text: &str) -> Option<Row<'_>> {
    let cells = cells(text)?;
    let (id, shown_by) = (*cells.first()?, *cells.last()?);
    let digits = id.trim_start_matches(|c: char| c.is_ascii_uppercase());
    let is_item = digits.len() < id.len() && !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    is_item.then_some(Row { line, id, shown_by })
}

/// The cells of a table row; a bar inside backticks or after a backslash separates nothing.
pub(super) fn cells(line: &str) -> Option<Vec<&str>> {
    let inner = line.trim().strip_prefix('|')?.strip_suffix('|')?;
    let mut cells = Vec::new();
    let (mut start, mut in_code, mut escaped) = (0, false, false);
    for (at, c) in inner.char_indices() {
        match c {
            '`' => in_code = !in_code,
            '|' if !in_code && !escaped => {
                cells.push(inner[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
        escaped = c == '\\';
    }
    cells.push(inner[start..].trim());
    Some(cells)
}

/// The names in a cell, with or without backticks, separated by commas, spaces or `<br>`.
pub(super) fn names(cell: &str) -> impl Iterator<Item = &str> {
    cell.split([',', ' ', '<', '>', '`']).filter(|word| !word.is_empty() && *word != "br")
}

/// A function under a test attribute; or, where a crate registers its tests itself, a function or its name.
fn is_rust_test(project: &Project, path: &str, text: &str, test: &str) -> bool {
    if test.is_empty() || !test.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
        return false;
    }
    let code = code_only(text);
    let lines: Vec<&str> = code.lines().collect();
    let defines = |line: &&str| {
        line.split_once(&format!("fn {test}")).is_some_and(|(before, after)| {
            after.starts_with(['(', '<'])
                && before.split_whitespace().all(|word| word == "async" || word == "pub")
        })
    };
    let Some(at) = lines.iter().position(defines) else {
        let registered = format!("\"{test}\"");
        return registers_tests(project, path) && code_and_strings(text).contains(&registered);
    };
    let above = lines[..at]
        .iter()
        .rev()
        .take_while(|line| line.trim_start().starts_with('#') || line.trim().is_empty());
    let attribute = |line: &&str| line.contains("test]") || line.contains("test(");
    above.into_iter().any(attribute) || registers_tests(project, path)
}

fn registers_tests(project: &Project, path: &str) -> bool {
    let Some((krate, _)) = path.split_once("/tests/") else { return false };
    project.text(&format!("{krate}/Cargo.toml")).is_some_and(|manifest| manifest.contains("harness = false"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TESTS: &str = "//! Tests.\n#[test]\nfn hello_comes_first() {}\n\nfn helper() {}\n\n\
                         #[tokio::test(start_paused = true)]\nasync fn pongs_are_awaited() {}\n// fn commented() {}\n";

    fn whats(row: &str) -> Vec<String> {
        let table = format!("# Abp\n\n| item | promise | shown by |\n|---|---|---|\n{row}\n");
        let files = [("docs/compatibility/abp.md", table.as_str()), ("crates/abp/tests/it/a.rs", TESTS)];
        check(&Project::of(&files)).into_iter().map(|finding| finding.what).collect()
    }

    #[test]
    fn an_item_is_open_or_names_tests_that_exist() {
        assert_eq!(whats("| A1 | a `a|b` promise | open |"), [""; 0]);
        assert_eq!(whats("| A1 | x | crates/abp/tests/it/a.rs::hello_comes_first |"), [""; 0]);
        let both = "| A1 | x | `crates/abp/tests/it/a.rs::hello_comes_first`, \
                    `crates/abp/tests/it/a.rs::pongs_are_awaited` |";
        assert_eq!(whats(both), [""; 0]);
    }

    #[test]
    fn a_test_that_does_not_exist_is_found() {
        let cases = [
            ("crates/abp/tests/it/a.rs::gone", "A1: `crates/abp/tests/it/a.rs` has no test `gone`"),
            (
                "crates/abp/tests/it/a.rs::hello_comes",
                "A1: `crates/abp/tests/it/a.rs` has no test `hello_comes`",
            ),
            ("crates/abp/tests/it/a.rs::helper", "A1: `crates/abp/tests/it/a.rs` has no test `helper`"),
            ("crates/abp/tests/it/a.rs::commented", "A1: `crates/abp/tests/it/a.rs` has no test `commented`"),
            ("crates/abp/tests/it/b.rs::x", "A1: there is no file `crates/abp/tests/it/b.rs`"),
            ("done", "A1: `done` does not have the form path::test_name"),
            ("", "A1: names neither a test nor `open`"),
        ];
        for (named, expected) in cases {
            assert_eq!(whats(&format!("| A1 | x | {named} |")), [expected], "{named}");
        }
    }

    #[test]
    fn an_item_listed_twice_and_a_document_without_items_are_found() {
        assert_eq!(whats("| A1 | x | open |\n| A1 | y | open |"), ["A1 is listed twice"]);
        assert_eq!(whats("nothing"), ["the document promises nothing"]);
    }

    #[test]
    fn a_crate_that_registers_its_tests_may_name_them_in_a_string() {
        let named = "crates/s/tests/it/a.rs::a_child_dies";
        let source = "//! T.\nTrial::test(\"a_child_dies\", run)\n";
        let plain = Project::of(&[("crates/s/tests/it/a.rs", source), ("crates/s/Cargo.toml", "[package]")]);
        assert!(find_test(&plain, named).is_err());
        let manifest = "[[test]]\nharness = false\n";
        let own = Project::of(&[("crates/s/tests/it/a.rs", source), ("crates/s/Cargo.toml", manifest)]);
        assert_eq!(find_test(&own, named), Ok(()));
    }

    #[test]
    fn progress_is_counted_by_dialect() {
        let table = "| M1 | x | open |\n| M2 | x | a::b |\n";
        let project = Project::of(&[("docs/compatibility/mustard.md", table)]);
        assert_eq!(counts(&project), "  mustard      1 shown   1 open\n");
    }
}
