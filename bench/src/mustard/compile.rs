//! What a program costs without any host call: to compile, and to run from its id or from its bytes.

use anyhow::{Result, ensure};

use super::Group;
use super::child::Child;
use super::samples::{Repeats, Wanted, against_echo};
use super::talk::{ENDLESS, Step, Talk};
use crate::figure::{Figure, Target};

pub(super) const GROUP: Group = Group { rows: &[TRIVIAL, FIFTY_LINES, BY_ID, BY_BYTES], measure };

const TRIVIAL: &str = "mustard/compile-trivial";
const FIFTY_LINES: &str = "mustard/compile-50-lines";
const BY_ID: &str = "mustard/run-trivial-by-id";
const BY_BYTES: &str = "mustard/run-trivial-by-bytes";

const REPEATS: Repeats = Repeats { rounds: 20, batch: 100 };

/// Fifty lines of the kind that a model writes between calls of tools.
const SCRIPT: &str = include_str!("fifty_lines.js");

fn measure() -> Result<Vec<Figure>> {
    ensure!(SCRIPT.lines().count() == 50, "the script has {} lines", SCRIPT.lines().count());
    let shown = |name| Wanted { name, goal: Target::Shown };
    let mut talks = [Talk::with(Child::sidecar()?)];
    // Equal sources may be found in a cache; these are about sources that are not.
    let mut turn = 0;
    let mut next = || {
        turn += 1;
        turn
    };
    let trivial = against_echo(shown(TRIVIAL), REPEATS, &mut talks, |talks| {
        talks[0].compile(&format!("{};", next())).map(drop)
    })?;
    let fifty_lines = against_echo(shown(FIFTY_LINES), REPEATS, &mut talks, |talks| {
        talks[0].compile(&SCRIPT.replacen("LIMIT = 10", &format!("LIMIT = {}", next()), 1)).map(drop)
    })?;
    let program = talks[0].compile("1;")?.blob.to_vec();
    let program_id = talks[0].program("1;")?;
    let by_id = against_echo(shown(BY_ID), REPEATS, &mut talks, |talks| {
        is_one(talks[0].start(&program_id, ENDLESS)?)
    })?;
    let by_bytes = against_echo(shown(BY_BYTES), REPEATS, &mut talks, |talks| {
        is_one(talks[0].start_bytes(&program, ENDLESS)?)
    })?;
    Ok(vec![trivial, fifty_lines, by_id, by_bytes])
}

fn is_one(step: Step<'_>) -> Result<()> {
    let number = step.number()?;
    ensure!(number == 1.0, "`1;` is {number}");
    Ok(())
}
