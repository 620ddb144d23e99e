//! The first line of every Rust file is a `//!` sentence that says why the file exists.

use super::Finding;
use super::project::Project;

pub(super) fn check(project: &Project) -> Vec<Finding> {
    let silent = |text: &str| !text.lines().next().is_some_and(|first| first.starts_with("//! "));
    let fix = "open it with `//! ` and one sentence: why it exists";
    project
        .rust()
        .filter(|(_, text)| silent(text))
        .map(|(path, _)| Finding::violation(path, 1, "the file does not say why it exists", fix))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_says_why_it_exists_is_fine() {
        assert_eq!(check(&Project::of(&[("a.rs", "//! Why.\nfn f() {}\n"), ("b.md", "# B")])), []);
    }

    #[test]
    fn a_file_that_starts_with_anything_else_is_found() {
        for text in ["", "use std::fs;\n//! Late.\n", "// Why.\n", "//!\n//! Why.\n"] {
            assert_eq!(check(&Project::of(&[("a.rs", text)])).len(), 1, "{text:?}");
        }
    }

    #[test]
    fn the_inputs_of_tests_need_no_opening() {
        let files = [("crates/vm/tests/cases/a.rs", "x"), ("crates/vm/tests/it/snapshots/b.rs", "x")];
        assert_eq!(check(&Project::of(&files)), []);
    }
}
