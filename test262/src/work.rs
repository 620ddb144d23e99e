//! The worker's end: one path a line in (and where the snapshot is, if there is one), one verdict a line out.

use std::io::{BufRead, Write};
use std::path::Path;

use anyhow::{Context, Result};
use clap::ValueEnum;

use crate::engine::{self, Stage};
use crate::harness::Harness;
use crate::hop::{self, Told};
use crate::meta::Meta;
use crate::run;

/// In characters.
const LONGEST_REASON: usize = 500;

/// What a worker does with a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Role {
    /// All of it.
    Whole,
    /// All of it, and a snapshot on the way.
    Leave,
    /// What comes after the snapshot.
    Arrive,
}

impl Role {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Whole => "whole",
            Self::Leave => "leave",
            Self::Arrive => "arrive",
        }
    }
}

/// Runs tests until there are no more. A panic is told like a verdict, and ends the process.
pub(crate) fn work(checkout: &Path, stage: Stage, role: Role) -> Result<()> {
    std::panic::set_hook(Box::new(|panic| {
        // If the other end is gone there is nobody left to tell.
        let _ = answer("crash", &panic.to_string(), None);
        std::process::exit(101);
    }));
    let mut harness = Harness::of(checkout);
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let (test, file) = line.split_once('\t').unwrap_or((&line, ""));
        let told = run_one(checkout, test, stage, role, Path::new(file), &mut harness);
        let (verdict, fuel_left) = match told {
            Ok(told) => (told.verdict, told.fuel_left),
            Err(error) => (Err(error), None),
        };
        match verdict {
            Ok(()) => answer("pass", "", fuel_left)?,
            Err(error) => answer("fail", &format!("{error:#}"), fuel_left)?,
        }
    }
    Ok(())
}

fn answer(verdict: &str, reason: &str, fuel_left: Option<u64>) -> std::io::Result<()> {
    // A reason may quote whatever the test made: it must fit in a line that a terminal can show.
    let reason: String =
        reason.chars().take(LONGEST_REASON).map(|c| if c.is_control() { ' ' } else { c }).collect();
    let fuel_left = fuel_left.map_or(String::new(), |fuel| fuel.to_string());
    let mut stdout = std::io::stdout().lock();
    writeln!(stdout, "{verdict}\t{fuel_left}\t{reason}")?;
    stdout.flush()
}

fn run_one(
    checkout: &Path,
    test: &str,
    stage: Stage,
    role: Role,
    file: &Path,
    harness: &mut Harness,
) -> Result<Told> {
    let source = std::fs::read_to_string(checkout.join("test").join(test)).context("reading the test")?;
    let meta = Meta::read(&source).context("the test has no front matter")?;
    match (stage, role) {
        (Stage::Parse, _) => Ok(Told::without_fuel(engine::parse(&source, &meta))),
        (Stage::Run, Role::Whole) => Ok(Told::without_fuel(run::run(&source, &meta, harness))),
        (Stage::Run, Role::Leave) => hop::leave(&source, &meta, harness, file),
        (Stage::Run, Role::Arrive) => hop::arrive(&meta, file),
    }
}
