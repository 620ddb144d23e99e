//! `cargo xtask tidy`: the rules of the house that rustc and clippy cannot check, each one a function.
//!
//! A rule sees the [`Project`] as a value (files in memory, packages as cargo describes them) and returns
//! findings. So every rule is tested on a few lines of text, and none can pass because it looked at nothing.

mod compat;
mod edges;
mod lexicon;
mod links;
mod machine;
mod manifest;
mod mask;
mod opening;
mod project;
mod promises;
mod purity;
mod size;
mod supported;

use anyhow::{Context as _, Result};
use project::Project;
use serde_json::json;
use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

struct Rule {
    name: &'static str,
    /// What holds when the rule finds nothing.
    promise: &'static str,
    check: fn(&Project) -> Vec<Finding>,
}

const RULES: &[Rule] = &[
    Rule { name: "edges", promise: "arrows between crates point down only", check: edges::check },
    Rule { name: "purity", promise: "policy and vm know no clock, no I/O, no threads", check: purity::check },
    Rule {
        name: "manifest",
        promise: "one build for everybody, with the same lints",
        check: manifest::check,
    },
    Rule { name: "opening", promise: "every file says first why it exists", check: opening::check },
    Rule {
        name: "lexicon",
        promise: "words that code may not use, or only in some rooms",
        check: lexicon::check,
    },
    Rule { name: "size", promise: "a file can be read in a sitting", check: size::check },
    Rule { name: "compat", promise: "every promise names a test that exists", check: compat::check },
    Rule {
        name: "promises",
        promise: "every number names the bench or test that holds it",
        check: promises::check,
    },
    Rule {
        name: "supported",
        promise: "the README says what the engine's tests show",
        check: supported::check,
    },
    Rule { name: "links", promise: "links between documents lead somewhere", check: links::check },
    Rule {
        name: "machine",
        promise: "nothing speaks of the machine it was written on",
        check: machine::check,
    },
];

/// Something a rule has to say about one line.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Finding {
    weight: Weight,
    file: String,
    line: usize,
    what: String,
    /// What to do about it.
    fix: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Weight {
    Violation,
    /// Worth a look; does not fail.
    Note,
}

impl Finding {
    fn violation(file: &str, line: usize, what: impl Into<String>, fix: impl Into<String>) -> Finding {
        let (what, fix) = (what.into(), fix.into());
        Finding { weight: Weight::Violation, file: file.to_owned(), line, what, fix }
    }

    fn note(file: &str, line: usize, what: impl Into<String>, fix: impl Into<String>) -> Finding {
        Finding { weight: Weight::Note, ..Finding::violation(file, line, what, fix) }
    }
}

#[derive(clap::Args)]
pub(crate) struct Args {
    /// One JSON object a finding, on standard output.
    #[arg(long)]
    json: bool,
    /// Bring up to date what is written from other files, then check.
    #[arg(long)]
    write: bool,
}

impl Args {
    pub(crate) fn for_people() -> Args {
        Args { json: false, write: false }
    }
}

pub(crate) fn run(root: &Path, args: &Args) -> Result<ExitCode> {
    let started = Instant::now();
    let mut project = Project::read(root)?;
    if args.write
        && let Some(readme) = supported::updated(&project)
    {
        fs::write(root.join("README.md"), readme).context("cannot write README.md")?;
        project = Project::read(root)?;
    }
    let mut violations = 0;
    for rule in RULES {
        for finding in (rule.check)(&project) {
            violations += usize::from(finding.weight == Weight::Violation);
            println!("{}", if args.json { as_json(rule, &finding) } else { as_text(rule, &finding) });
        }
    }
    if !args.json {
        print!("{}", compat::counts(&project));
        let (rules, files) = (RULES.len(), project.files().count());
        let verdict = if violations == 0 { "tidy".to_owned() } else { format!("{violations} violations") };
        println!("{verdict}: {rules} rules, {files} files, {:.1} s", started.elapsed().as_secs_f64());
    }
    Ok(if violations == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn as_text(rule: &Rule, finding: &Finding) -> String {
    let Finding { file, line, what, fix, .. } = finding;
    let mark = match finding.weight {
        Weight::Violation => "error",
        Weight::Note => "note",
    };
    format!("{file}:{line}: {mark}[{}]: {what}\n    {fix}", rule.name)
}

fn as_json(rule: &Rule, finding: &Finding) -> String {
    let Finding { file, line, what, fix, .. } = finding;
    let weight = match finding.weight {
        Weight::Violation => "violation",
        Weight::Note => "note",
    };
    json!({"rule": rule.name, "promise": rule.promise, "weight": weight, "file": file, "line": line,
           "what": what, "fix": fix})
    .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: Rule = Rule { name: "size", promise: "short", check: size::check };

    #[test]
    fn a_finding_is_a_place_that_an_editor_can_open() {
        let finding = Finding::violation("a/b.rs", 7, "too long", "split it");
        assert_eq!(as_text(&RULE, &finding), "a/b.rs:7: error[size]: too long\n    split it");
        let finding = Finding::note("a/b.rs", 7, "long", "split it");
        assert_eq!(as_text(&RULE, &finding), "a/b.rs:7: note[size]: long\n    split it");
    }

    #[test]
    fn a_finding_is_one_json_object_for_programs() {
        let line = as_json(&RULE, &Finding::violation("a/b.rs", 7, "too long", "split it"));
        let value: serde_json::Value = serde_json::from_str(&line).unwrap();
        let expected = json!({"rule": "size", "promise": "short", "weight": "violation", "file": "a/b.rs",
            "line": 7, "what": "too long", "fix": "split it"});
        assert_eq!(value, expected);
    }

    #[test]
    fn an_empty_project_breaks_no_rule() {
        for rule in RULES {
            assert_eq!((rule.check)(&Project::of(&[])), [], "{}", rule.name);
        }
    }
}
