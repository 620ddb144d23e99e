//! What people and CI run: `cargo xtask test | tidy | needs | bench | fuzz | schema | test262`.
//!
//! Everything here works from any folder of the workspace, reads nothing from standard input and uses the
//! toolchain that is already there. Only this program, the bench and the product itself may print.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool talks to its terminal")]

mod bench;
mod fuzz;
mod needs;
mod schema;
mod shell;
mod test;
mod test262;
mod tidy;

use anyhow::Result;
use clap::{Parser, Subcommand};
use std::process::ExitCode;

#[derive(Parser)]
#[command(
    name = "xtask",
    bin_name = "cargo xtask",
    about = "The chores of the workspace",
    after_help = "Examples:\n  cargo xtask test\n  cargo xtask tidy --json\n  cargo xtask fuzz lines --seconds 30"
)]
struct Cli {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Everything a change must pass: needs, fmt, clippy, tidy, doc, test.
    #[command(after_help = "Example:\n  cargo xtask test\n  OUTRIGGER_NO_INSTALL=1 cargo xtask test")]
    Test,
    /// The rules that rustc cannot check: who may import whom, what a file must and must not contain, whether
    /// the documents tell the truth.
    #[command(after_help = "Example:\n  cargo xtask tidy\n  cargo xtask tidy --json | jq .file")]
    Tidy(tidy::Args),
    /// Install what the tests need and this machine lacks (Debian and npm packages).
    #[command(
        after_help = "Example:\n  cargo xtask needs\n  eval \"$(cargo xtask needs --print-env)\" && cargo test"
    )]
    Needs(needs::Args),
    /// Measure against the baselines in the same run.
    #[command(after_help = "Example:\n  cargo xtask bench lines --check")]
    Bench(bench::Args),
    /// Fuzz every decoder with libFuzzer on the stable toolchain.
    #[command(after_help = "Example:\n  cargo xtask fuzz\n  cargo xtask fuzz lines rpc --seconds 300")]
    Fuzz(fuzz::Args),
    /// Write the JSON Schemas of the protocols from their types.
    #[command(after_help = "Example:\n  cargo xtask schema")]
    Schema,
    /// Run the JavaScript engine against a checkout of tc39/test262.
    #[command(after_help = "Example:\n  cargo xtask test262 --path ../test262 --filter language/")]
    Test262(test262::Args),
}

fn main() -> ExitCode {
    match run(Cli::parse().chore) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(chore: Chore) -> Result<ExitCode> {
    let root = shell::workspace_root()?;
    match chore {
        Chore::Test => test::run(&root),
        Chore::Tidy(args) => tidy::run(&root, &args),
        Chore::Needs(args) => needs::run(&root, &args),
        Chore::Bench(args) => bench::run(&root, &args),
        Chore::Fuzz(args) => fuzz::run(&root, &args),
        Chore::Schema => schema::run(&root),
        Chore::Test262(args) => test262::run(&root, &args),
    }
}
