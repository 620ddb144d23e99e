//! The worker's end: one path a line in, one verdict a line out.

use std::io::{BufRead, Write};
use std::path::Path;

use anyhow::{Context, Result};

use crate::engine::{self, Stage};
use crate::harness::Harness;
use crate::meta::Meta;
use crate::run;

/// In characters.
const LONGEST_REASON: usize = 500;

/// Runs tests until there are no more. A panic is told like a verdict, and ends the process.
pub(crate) fn work(checkout: &Path, stage: Stage) -> Result<()> {
    std::panic::set_hook(Box::new(|panic| {
        let text = panic.to_string();
        // If the other end is gone there is nobody left to tell.
        let _ = answer("crash", &text);
        std::process::exit(101);
    }));
    let mut harness = Harness::of(checkout);
    for test in std::io::stdin().lock().lines() {
        match run_one(checkout, &test?, stage, &mut harness) {
            Ok(()) => answer("pass", "")?,
            Err(error) => answer("fail", &format!("{error:#}"))?,
        }
    }
    Ok(())
}

fn answer(verdict: &str, reason: &str) -> std::io::Result<()> {
    // A reason may quote whatever the test made: it must fit in a line that a terminal can show.
    let reason: String =
        reason.chars().take(LONGEST_REASON).map(|c| if c.is_control() { ' ' } else { c }).collect();
    let mut stdout = std::io::stdout().lock();
    writeln!(stdout, "{verdict}\t{reason}")?;
    stdout.flush()
}

fn run_one(checkout: &Path, test: &str, stage: Stage, harness: &mut Harness) -> Result<()> {
    let source = std::fs::read_to_string(checkout.join("test").join(test)).context("reading the test")?;
    let meta = Meta::read(&source).context("the test has no front matter")?;
    match stage {
        Stage::Parse => engine::parse(&source, &meta),
        Stage::Run => run::run(&source, &meta, harness),
    }
}
