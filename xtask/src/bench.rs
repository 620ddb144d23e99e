//! `cargo xtask bench`: the bench package, always optimised, from any folder.

use crate::shell::Line;
use anyhow::Result;
use std::path::Path;
use std::process::ExitCode;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only the rows whose name contains this.
    filter: Option<String>,
    /// Fail when a row misses its goal.
    #[arg(long)]
    check: bool,
    /// One JSON object a row instead of a table.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(root: &Path, args: &Args) -> Result<ExitCode> {
    // Starting a child is measured with the program that people use.
    let built = Line::cargo(["build", "--quiet", "--release", "-p", "outrigger"]).run(root)?;
    if !built.success() {
        return Ok(ExitCode::FAILURE);
    }
    let status = line(args).run(root)?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn line(args: &Args) -> Line {
    let mut words = vec!["run", "--quiet", "--release", "-p", "outrigger-bench", "--"];
    words.extend(args.filter.as_deref());
    words.extend(args.check.then_some("--check"));
    words.extend(args.json.then_some("--json"));
    Line::cargo(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_asked_is_what_the_bench_is_told() {
        let args = Args { filter: Some("lines".into()), check: true, json: true };
        assert_eq!(
            line(&args).to_string(),
            "cargo run --quiet --release -p outrigger-bench -- lines --check --json"
        );
        let args = Args { filter: None, check: false, json: false };
        assert_eq!(line(&args).to_string(), "cargo run --quiet --release -p outrigger-bench --");
    }
}
