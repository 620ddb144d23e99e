//! `cargo xtask test262`: the engine against a checkout of tc39/test262, always optimised, from any folder.

use crate::shell::Line;
use anyhow::Result;
use std::path::Path;
use std::process::ExitCode;

#[derive(clap::Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Args {
    /// What is passed on; `--help` lists it.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    rest: Vec<String>,
}

pub(crate) fn run(root: &Path, args: &Args) -> Result<ExitCode> {
    let status = line(args).run(root)?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn line(args: &Args) -> Line {
    let words = ["run", "--quiet", "--release", "-p", "outrigger-test262", "--"];
    Line::cargo(words.into_iter().chain(args.rest.iter().map(String::as_str)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_passed_on() {
        let args = Args { rest: vec!["--path".into(), "x".into()] };
        assert_eq!(line(&args).to_string(), "cargo run --quiet --release -p outrigger-test262 -- --path x");
    }
}
