//! Words that code may not use anywhere, and words that belong to one room.

use super::Finding;
use super::mask::code_only;
use super::project::Project;

struct Word {
    text: &'static str,
    /// Where it may be used all the same.
    allowed: fn(&str) -> bool,
    fix: &'static str,
}

const WORDS: &[Word] = &[
    Word { text: "todo!", allowed: nowhere, fix: "finish it, or do not offer it" },
    Word { text: "unimplemented!", allowed: nowhere, fix: "finish it, or do not offer it" },
    Word {
        text: "#[ignore",
        allowed: nowhere,
        fix: "a test runs or is removed; what it needs goes into xtask's needs",
    },
    Word { text: "#[allow(", allowed: nowhere, fix: "write #[expect(lint, reason = \"…\")]" },
    Word { text: "#![allow(", allowed: nowhere, fix: "write #![expect(lint, reason = \"…\")]" },
    Word {
        text: "unbounded_channel",
        allowed: nowhere,
        fix: "use a bounded channel and say what happens when it is full",
    },
    Word {
        text: "mpsc::unbounded",
        allowed: nowhere,
        fix: "use a bounded channel and say what happens when it is full",
    },
    Word {
        text: "mpsc::channel()",
        allowed: is_test,
        fix: "use sync_channel(n): the other one has no bound",
    },
    Word {
        text: "Command::new",
        allowed: may_start_processes,
        fix: "start children through outrigger-supervise",
    },
    Word { text: "print!", allowed: may_print, fix: "return the text; the program prints it" },
    Word { text: "println!", allowed: may_print, fix: "return the text; the program prints it" },
    Word { text: "eprint!", allowed: may_print, fix: "return the text; the program prints it" },
    Word { text: "eprintln!", allowed: may_print, fix: "return the text; the program prints it" },
];

pub(super) fn check(project: &Project) -> Vec<Finding> {
    project.rust().flat_map(|(path, text)| check_file(path, &code_only(text))).collect()
}

fn check_file(path: &str, code: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (number, line) in code.lines().enumerate() {
        // The argument parser's `Command` starts nothing.
        let line = line.replace("clap::Command::new", "");
        for word in WORDS.iter().filter(|word| !(word.allowed)(path) && words(&line, word.text) > 0) {
            let what = format!("`{}` may not be used here", word.text);
            findings.push(Finding::violation(path, number + 1, what, word.fix));
        }
    }
    findings
}

/// How often `word` stands in `line` and not merely as part of a longer one.
pub(super) fn words(line: &str, word: &str) -> usize {
    let part_of_word = |c: char| c.is_alphanumeric() || c == '_';
    let is_whole = |at: usize| {
        let before = line[..at].chars().next_back();
        let after = line[at + word.len()..].chars().next();
        let starts = !word.starts_with(part_of_word) || !before.is_some_and(part_of_word);
        let ends = !word.ends_with(part_of_word) || !after.is_some_and(part_of_word);
        starts && ends
    };
    line.match_indices(word).filter(|(at, _)| is_whole(*at)).count()
}

fn nowhere(_: &str) -> bool {
    false
}

fn may_start_processes(path: &str) -> bool {
    path.starts_with("crates/supervise/src/") || is_tool(path) || is_test(path)
}

fn may_print(path: &str) -> bool {
    path.starts_with("crates/outrigger/") || is_tool(path) || is_test(path) || is_build_script(path)
}

/// Printing is how a build script speaks with cargo.
fn is_build_script(path: &str) -> bool {
    path.ends_with("/build.rs") && !path.contains("/src/")
}

fn is_tool(path: &str) -> bool {
    ["xtask/", "bench/", "test262/", "fuzz/src/bin/"].iter().any(|tool| path.starts_with(tool))
}

fn is_test(path: &str) -> bool {
    path.split('/').any(|part| part == "tests")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(path: &str, code: &str) -> Vec<(usize, String)> {
        let project = Project::of(&[(path, code)]);
        super::check(&project).into_iter().map(|finding| (finding.line, finding.what)).collect()
    }

    fn refused(path: &str, code: &str, word: &str) {
        assert_eq!(check(path, code), [(1, format!("`{word}` may not be used here"))], "{path}: {code}");
    }

    fn fine(path: &str, code: &str) {
        assert_eq!(check(path, code), [], "{path}: {code}");
    }

    #[test]
    fn words_that_no_code_may_use_are_found_everywhere() {
        for path in ["crates/wire/src/a.rs", "crates/wire/tests/it/a.rs", "xtask/src/a.rs"] {
            refused(path, "fn f() { todo!() }", "todo!");
            refused(path, "fn f() { unimplemented!(\"x\") }", "unimplemented!");
            refused(path, "#[ignore = \"slow\"]", "#[ignore");
            refused(path, "#[ignore]", "#[ignore");
            refused(path, "#[allow(dead_code)]", "#[allow(");
            refused(path, "#![allow(dead_code)]", "#![allow(");
            refused(path, "let (a, b) = mpsc::unbounded_channel();", "unbounded_channel");
        }
    }

    #[test]
    fn the_channel_without_a_bound_is_for_tests() {
        let code = "let (a, b) = std::sync::mpsc::channel();";
        refused("crates/wire/src/a.rs", code, "mpsc::channel()");
        fine("crates/wire/tests/it/a.rs", code);
    }

    #[test]
    fn only_supervise_and_tools_start_processes() {
        let code = "std::process::Command::new(\"ls\");";
        refused("crates/sep/src/host.rs", code, "Command::new");
        refused("crates/outrigger/src/main.rs", code, "Command::new");
        fine("crates/supervise/src/spawn.rs", code);
        fine("crates/outrigger/tests/it/cli.rs", code);
        fine("xtask/src/shell.rs", code);
        fine("bench/src/spawn.rs", code);
        fine("crates/outrigger/src/main.rs", "clap::Command::new(\"x\")");
        refused(
            "crates/outrigger/src/main.rs",
            "clap::Command::new(\"x\"); Command::new(\"x\")",
            "Command::new",
        );
    }

    #[test]
    fn only_programs_print() {
        refused("crates/vm/src/lib.rs", "println!(\"x\");", "println!");
        refused("crates/vm/src/lib.rs", "eprintln!(\"x\");", "eprintln!");
        refused("fuzz/src/lib.rs", "print!(\"x\");", "print!");
        fine("crates/outrigger/src/main.rs", "println!(\"x\");");
        fine("crates/vm/tests/it/main.rs", "println!(\"x\");");
        fine("crates/mustard/build.rs", "println!(\"x\");");
        refused("crates/mustard/src/build.rs", "println!(\"x\");", "println!");
    }

    #[test]
    fn comments_strings_and_longer_words_are_not_code() {
        fine("a.rs", "// todo!");
        fine("a.rs", "/// println!(\"x\");");
        fine("a.rs", "let s = \"#[allow(x)] todo!\";");
        fine("a.rs", "my_todo!()");
        fine("a.rs", "mpsc::channel(8)");
        fine("a.rs", "unbounded_channels");
        fine("a.rs", "#[expect(dead_code, reason = \"x\")]");
    }
}
