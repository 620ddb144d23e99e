//! `cargo xtask test262 --path DIR`: the engine against a checkout of tc39/test262, which is never part of this project.
//!
//! # Theory of operation
//!
//! `meta` reads what a test says about itself, `scope` decides whether it counts, `select` lists those that do, `pool`
//! hands them to worker processes, `engine` and `run` say in a worker whether a test passes (`harness` reads what runs
//! before it, `hop` does it in two processes), `ledger` knows which failures are expected, and `report` prints. A run fails when a test fails that is
//! not in the ledger, when one in the ledger passes, or when a worker crashes.

mod engine;
mod harness;
mod hop;
mod ledger;
mod meta;
mod pool;
mod report;
mod run;
mod scope;
mod select;
mod work;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Mutex;

use anyhow::{Context, Result, ensure};
use clap::Parser;

use crate::engine::Stage;
use crate::ledger::{Ledger, Ran, Reach};
use crate::pool::Crew;
use crate::report::Outcome;
use crate::select::{Sample, select};
use crate::work::Role;

/// Run the engine against a checkout of tc39/test262.
#[derive(Parser)]
#[command(name = "cargo xtask test262")]
#[command(
    after_help = "Example:\n  cargo xtask test262 --path ../test262 --filter built-ins/Math/ --verbose"
)]
struct Args {
    /// The checkout; it has the folders `test` and `harness`.
    #[arg(long)]
    path: PathBuf,
    /// How far each test is taken.
    #[arg(long, value_enum, default_value = "run")]
    stage: Stage,
    /// Only tests whose path contains this; may be given several times.
    #[arg(long)]
    filter: Vec<String>,
    /// Only one test in N, or N% of them; always the same ones.
    #[arg(long, value_name = "N", default_value = "1", value_parser = Sample::read)]
    sample: Sample,
    /// Worker processes.
    #[arg(long, default_value_t = 2)]
    jobs: usize,
    /// The known failures; by default the list of the stage in this project.
    #[arg(long)]
    ledger: Option<PathBuf>,
    /// Write the failures of this run into the ledger.
    #[arg(long)]
    update_ledger: bool,
    /// Print every failure with its reason.
    #[arg(long)]
    verbose: bool,
    /// Print shares by folder.
    #[arg(long)]
    summary: bool,
    /// Print the commonest reasons of failures, so many of them.
    #[arg(long, value_name = "MOST", num_args = 0..=1, default_missing_value = "40")]
    group: Option<usize>,
    /// Print the tests that took longest, so many of them.
    #[arg(long, value_name = "MOST", num_args = 0..=1, default_missing_value = "20")]
    slowest: Option<usize>,
    /// Stop each test at a host call before its first statement and go on from a snapshot in another process.
    #[arg(long)]
    hop: bool,
    /// Be a worker: read paths, answer with verdicts.
    #[arg(long, hide = true)]
    worker: Option<Role>,
}

/// New failures that are listed when not all of them are asked for.
const LISTED: usize = 20;

fn main() -> Result<ExitCode> {
    let args = Args::parse();
    if let Some(role) = args.worker {
        return work::work(&args.path, args.stage, role).map(|()| ExitCode::SUCCESS);
    }
    ensure!(!args.hop || args.stage == Stage::Run, "a test that is only parsed cannot hop");
    let selection = select(&args.path, &args.filter, args.sample)?;
    ensure!(
        !selection.tests.is_empty(),
        "no test matches; is {} a checkout of test262?",
        args.path.display()
    );

    let outcome = Mutex::new(Outcome::default());
    let told = |test: &str, verdict, took| {
        let Ok(mut outcome) = outcome.lock() else { return };
        let Some(reason) = outcome.note(test, verdict, took) else { return };
        if args.verbose || reason.starts_with("CRASH") {
            print(&format!("{test}: {reason}"));
        }
    };
    let path = args.path.display().to_string();
    let worker = |role: Role| {
        ["--worker", role.word(), "--path", &path, "--stage", args.stage.word()].map(str::to_owned).to_vec()
    };
    // Removed with all that is in it when the run is over.
    let folder = tempfile::tempdir().context("a folder for snapshots")?;
    let crew = if args.hop {
        let folder = folder.path().to_owned();
        Crew::Two { first: worker(Role::Leave), second: worker(Role::Arrive), folder }
    } else {
        Crew::One(worker(Role::Whole))
    };
    let hops = pool::run(&selection.tests, args.jobs.max(1), &crew, &told)?;
    let outcome = outcome.into_inner().unwrap_or_default();

    if args.summary {
        print(&outcome.by_folder());
    }
    if let Some(most) = args.group {
        print(&outcome.by_reason(most));
    }
    if let Some(most) = args.slowest {
        print(&outcome.slowest(most));
    }
    print(&outcome.totals(&selection.left_out));
    if args.hop {
        print(&format!(
            "{hops} went on from a snapshot in another process; the others ended before their first statement"
        ));
    }
    compare(&args, &outcome)
}

/// Holds the outcome against the ledger.
fn compare(args: &Args, outcome: &Outcome) -> Result<ExitCode> {
    let path = args.ledger.clone().unwrap_or_else(|| PathBuf::from(args.stage.ledger()));
    let ledger = Ledger::read(&path)?;
    let whole = args.filter.is_empty() && args.sample == Sample::ALL;
    let reach = if whole { Reach::Everything } else { Reach::Part };
    let ran = Ran { passed: &outcome.passed, failed: &outcome.failed, reach };
    if args.update_ledger {
        ledger.write(&path, &ran)?;
        return Ok(ExitCode::SUCCESS);
    }
    let difference = ledger.compare(&ran);
    let listed = if args.verbose { difference.new.len() } else { LISTED };
    for path in difference.new.iter().take(listed) {
        print(&format!("new failure: {path}"));
    }
    if let Some(more) = difference.new.len().checked_sub(listed).filter(|&more| more > 0) {
        print(&format!("and {more} more new failures; --verbose lists all with their reasons"));
    }
    for path in &difference.mended {
        print(&format!("in the ledger, but passes: {path}"));
    }
    for path in &difference.stray {
        print(&format!("in the ledger, but no test that counts: {path}"));
    }
    let clean = difference.is_none() && outcome.crashes == 0;
    Ok(if clean { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

#[expect(clippy::print_stdout, reason = "a test runner is a program for people: this is its output")]
fn print(text: &str) {
    println!("{text}");
}
