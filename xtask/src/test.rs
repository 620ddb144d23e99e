//! `cargo xtask test`: everything a change must pass, in the order that finds a mistake soonest.

use crate::shell::Line;
use crate::{needs, tidy};
use anyhow::Result;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// One line of the list below: what a person calls it, what is done, and what to type to do only that.
struct Step {
    name: &'static str,
    repeat: Line,
    action: Action,
}

enum Action {
    Needs,
    Tidy,
    /// A cargo command; the component is what `rustup` calls the part that may be missing.
    Cargo {
        component: Option<&'static str>,
    },
    /// The cargo command that is told where the needs are.
    Tests,
}

enum Outcome {
    Passed(Duration),
    Failed(Duration),
    NotRun,
}

pub(crate) fn run(root: &Path) -> Result<ExitCode> {
    let mut steps = steps().into_iter();
    let mut table = Vec::new();
    // What the needs step found is what the test step hands to the tests.
    let mut environment: Vec<(String, String)> = Vec::new();
    let mut failed = None;
    for mut step in steps.by_ref() {
        if let Action::Tests = step.action {
            step.repeat = environment.iter().fold(step.repeat, |line, (name, value)| line.env(name, value));
        }
        println!("\n== {}: {}", step.name, step.repeat);
        let started = Instant::now();
        let passed = perform(&step, root, &mut environment).unwrap_or_else(|error| {
            eprintln!("xtask: {error:#}");
            false
        });
        let elapsed = started.elapsed();
        println!(
            "== {} {} in {:.1} s",
            step.name,
            if passed { "passed" } else { "FAILED" },
            elapsed.as_secs_f64()
        );
        if passed {
            table.push((step.name, Outcome::Passed(elapsed)));
        } else {
            table.push((step.name, Outcome::Failed(elapsed)));
            failed = Some(step.repeat);
            break;
        }
    }
    table.extend(steps.map(|step| (step.name, Outcome::NotRun)));
    print!("\n{}", summary(&table));
    match failed {
        None => Ok(ExitCode::SUCCESS),
        Some(repeat) => {
            println!("\nto repeat what failed:\n  {repeat}");
            Ok(ExitCode::FAILURE)
        }
    }
}

fn steps() -> Vec<Step> {
    let cargo = |name, component, line| Step { name, repeat: line, action: Action::Cargo { component } };
    vec![
        Step { name: "needs", repeat: Line::cargo(["xtask", "needs"]), action: Action::Needs },
        cargo("fmt", Some("rustfmt"), Line::cargo(["fmt", "--all", "--check"])),
        cargo(
            "clippy",
            Some("clippy"),
            Line::cargo(["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]),
        ),
        Step { name: "tidy", repeat: Line::cargo(["xtask", "tidy"]), action: Action::Tidy },
        cargo(
            "doc",
            None,
            Line::cargo(["doc", "--workspace", "--no-deps"]).env("RUSTDOCFLAGS", "-Dwarnings"),
        ),
        Step { name: "test", repeat: Line::cargo(["test", "--workspace"]), action: Action::Tests },
    ]
}

fn perform(step: &Step, root: &Path, environment: &mut Vec<(String, String)>) -> Result<bool> {
    match step.action {
        Action::Needs => {
            *environment = needs::provide()?;
            Ok(true)
        }
        Action::Tidy => Ok(tidy::run(root, &tidy::Args::for_people())? == ExitCode::SUCCESS),
        Action::Cargo { component } => {
            if let Some(component) = component.filter(|component| !has_component(root, component)) {
                eprintln!(
                    "this toolchain has no {component}: `rustup component add {component}` installs it"
                );
                return Ok(false);
            }
            Ok(step.repeat.run(root)?.success())
        }
        Action::Tests => Ok(step.repeat.run(root)?.success()),
    }
}

fn has_component(root: &Path, component: &str) -> bool {
    let command = if component == "rustfmt" { "fmt" } else { component };
    Line::cargo([command, "--version"]).capture(root).is_ok_and(|output| output.status.success())
}

fn summary(table: &[(&str, Outcome)]) -> String {
    let mut text = String::new();
    for (name, outcome) in table {
        let row = match outcome {
            Outcome::Passed(elapsed) => format!("  {name:<8} ok      {:>7.1} s\n", elapsed.as_secs_f64()),
            Outcome::Failed(elapsed) => format!("  {name:<8} FAILED  {:>7.1} s\n", elapsed.as_secs_f64()),
            Outcome::NotRun => format!("  {name:<8} not run\n"),
        };
        text.push_str(&row);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_says_what_passed_what_failed_and_what_was_not_tried() {
        let table = [
            ("fmt", Outcome::Passed(Duration::from_millis(1234))),
            ("clippy", Outcome::Failed(Duration::from_secs(60))),
            ("test", Outcome::NotRun),
        ];
        let expected = "  fmt      ok          1.2 s\n  clippy   FAILED     60.0 s\n  test     not run\n";
        assert_eq!(summary(&table), expected);
    }

    #[test]
    fn every_step_can_be_repeated_by_the_line_it_shows() {
        let lines: Vec<String> = steps().iter().map(|step| step.repeat.to_string()).collect();
        let expected = [
            "cargo xtask needs",
            "cargo fmt --all --check",
            "cargo clippy --workspace --all-targets -- -D warnings",
            "cargo xtask tidy",
            "RUSTDOCFLAGS=-Dwarnings cargo doc --workspace --no-deps",
            "cargo test --workspace",
        ];
        assert_eq!(lines, expected);
    }
}
