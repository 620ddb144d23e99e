//! `cargo xtask test262 --path DIR`: the engine against a checkout of tc39/test262, which is never part of this project.
//!
//! # Theory of operation
//!
//! `meta` reads what a test says about itself, `scope` decides whether it counts, `pool` runs it in a worker process, and
//! `ledger` knows which failures are expected. A run fails when a test fails that is not in the ledger, when one in the
//! ledger passes, or when a worker crashes.

mod engine;
mod ledger;
mod meta;
mod pool;
mod scope;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;

use anyhow::{Context, Result, ensure};
use clap::Parser;

use crate::engine::Stage;
use crate::ledger::Ledger;
use crate::meta::Meta;
use crate::pool::Verdict;

/// Run the engine against a checkout of tc39/test262.
#[derive(Parser)]
#[command(name = "cargo xtask test262")]
#[command(after_help = "Example:\n  cargo xtask test262 --path ../test262 --stage parse --filter language/")]
struct Args {
    /// The checkout; it has the folders `test` and `harness`.
    #[arg(long)]
    path: PathBuf,
    /// How far each test is taken.
    #[arg(long, value_enum, default_value = "parse")]
    stage: Stage,
    /// Only tests whose path contains this.
    #[arg(long)]
    filter: Option<String>,
    /// Only one test in so many; always the same ones.
    #[arg(long, value_name = "N", default_value_t = 1)]
    sample: usize,
    /// Worker processes.
    #[arg(long, default_value_t = 2)]
    jobs: usize,
    /// The known failures.
    #[arg(long, default_value = "test262/ledger.txt")]
    ledger: PathBuf,
    /// Write the failures of this run into the ledger.
    #[arg(long)]
    update_ledger: bool,
    /// Print every failure with its reason.
    #[arg(long)]
    verbose: bool,
    /// Be a worker: read paths, answer with verdicts.
    #[arg(long, hide = true)]
    worker: bool,
}

fn main() -> Result<ExitCode> {
    let args = Args::parse();
    if args.worker {
        return work(&args).map(|()| ExitCode::SUCCESS);
    }
    let (tests, left_out) = select(&args)?;
    ensure!(!tests.is_empty(), "no test matches; is {} a checkout of test262?", args.path.display());

    let outcome = Mutex::new(Outcome::default());
    let own = ["--worker".to_owned(), "--path".to_owned(), args.path.display().to_string()];
    let stage = ["--stage".to_owned(), args.stage.word().to_owned()];
    let told = |test: &str, verdict| {
        if let Ok(mut outcome) = outcome.lock() {
            outcome.note(test, verdict, args.verbose);
        }
    };
    pool::run(&tests, args.jobs.max(1), &[own.as_slice(), &stage].concat(), &told)?;
    let outcome = outcome.into_inner().unwrap_or_default();

    let ledger = Ledger::read(&args.ledger)?;
    let difference = ledger.compare(&outcome.passed, &outcome.failed);
    print(&outcome.summary(&left_out));
    for path in &difference.new {
        print(&format!("new failure: {path}"));
    }
    for path in &difference.mended {
        print(&format!("in the ledger, but passes: {path}"));
    }
    if args.update_ledger {
        ledger.write(&args.ledger, &outcome.passed, &outcome.failed)?;
        return Ok(ExitCode::SUCCESS);
    }
    let clean = difference.new.is_empty() && difference.mended.is_empty() && outcome.crashes == 0;
    Ok(if clean { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

#[derive(Default)]
struct Outcome {
    passed: BTreeSet<String>,
    failed: BTreeSet<String>,
    crashes: usize,
}

impl Outcome {
    fn note(&mut self, test: &str, verdict: Verdict, verbose: bool) {
        let reason = match verdict {
            Verdict::Pass => {
                self.passed.insert(test.to_owned());
                return;
            }
            Verdict::Fail(reason) => reason,
            Verdict::Crash(reason) => {
                self.crashes += 1;
                format!("CRASH: {reason}")
            }
        };
        self.failed.insert(test.to_owned());
        if verbose || reason.starts_with("CRASH") {
            print(&format!("{test}: {reason}"));
        }
    }

    fn summary(&self, left_out: &BTreeMap<scope::LeftOut, usize>) -> String {
        let (passed, failed) = (self.passed.len(), self.failed.len());
        let share = 100.0 * passed as f64 / (passed + failed).max(1) as f64;
        let left_out: Vec<_> = left_out.iter().map(|(why, count)| format!("{why:?} {count}")).collect();
        let crashes = self.crashes;
        let left_out = left_out.join(", ");
        format!("{passed} passed, {failed} failed\n{share:.2} %, {crashes} crashes; left out: {left_out}")
    }
}

/// The tests that count, as paths below `test/`, and how many are left out for which reason.
fn select(args: &Args) -> Result<(Vec<String>, BTreeMap<scope::LeftOut, usize>)> {
    let root = args.path.join("test");
    let mut tests = Vec::new();
    let mut left_out = BTreeMap::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        let listing = std::fs::read_dir(&folder).with_context(|| format!("reading {}", folder.display()))?;
        for entry in listing {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let relative = path.strip_prefix(&root)?.to_string_lossy().into_owned();
            let wanted = args.filter.as_ref().is_none_or(|filter| relative.contains(filter.as_str()));
            if !wanted || !relative.ends_with(".js") || relative.contains("_FIXTURE") {
                continue;
            }
            let source = std::fs::read_to_string(&path).with_context(|| format!("reading {relative}"))?;
            let Some(meta) = Meta::read(&source) else { continue };
            match scope::judge(&relative, &meta, &source) {
                Ok(()) => tests.push(relative),
                Err(why) => *left_out.entry(why).or_insert(0) += 1,
            }
        }
    }
    tests.sort();
    let tests = tests.into_iter().step_by(args.sample.max(1)).collect();
    Ok((tests, left_out))
}

/// The worker: one path a line in, one verdict a line out.
fn work(args: &Args) -> Result<()> {
    let mut stdout = std::io::stdout();
    for test in std::io::stdin().lock().lines() {
        let answer = match run_one(&args.path, &test?, args.stage) {
            Ok(()) => "pass".to_owned(),
            Err(error) => format!("fail\t{}", format!("{error:#}").replace(['\n', '\t'], " ")),
        };
        writeln!(stdout, "{answer}")?;
        stdout.flush()?;
    }
    Ok(())
}

fn run_one(checkout: &Path, test: &str, stage: Stage) -> Result<()> {
    let source = std::fs::read_to_string(checkout.join("test").join(test)).context("reading the test")?;
    let meta = Meta::read(&source).context("the test has no front matter")?;
    match stage {
        Stage::Parse => engine::parse(&source, &meta),
    }
}

#[expect(clippy::print_stdout, reason = "a test runner is a program for people: this is its output")]
fn print(text: &str) {
    println!("{text}");
}
