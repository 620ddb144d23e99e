//! A hundred thousand runs in one session: memory stays where it was after the first ten thousand.

use anyhow::{Result, ensure};

use super::Group;
use super::child::Child;
use super::talk::{Talk, Waiting, Way};
use crate::figure::{Bytes, Figure, Measured, Target, size};

pub(super) const GROUP: Group = Group { rows: &[GROWTH], measure };

const GROWTH: &str = "mustard/growth-over-100000-runs";

/// What an allocator may take back and forth, and nothing that 90,000 runs would each leave behind: 46 bytes each.
const MARGIN: Target = Target::Size(Bytes(4 << 20));

const SETTLED: u32 = 10_000;
const RUNS: u32 = 100_000;

/// Different limits make different policies; more than any cache keeps.
const POLICIES: u32 = 5_000;

/// More than the sidecar keeps of small programs.
const PROGRAMS: u32 = 60_000;

const SCRIPT: &str = "const got = fetch_data(1); got + 1;";

/// Started and never resumed: its text alone, ten thousand times, is larger than what the sidecar keeps of snapshots.
const ABANDONED: &str = "const text = 'abcd'.repeat(2000);
const rows = [];
for (let i = 0; i < 50; i++) rows.push({ id: i, name: 'row ' + i, value: i * 1.5, ok: true });
fetch_data(text.length + rows.length);";

fn measure() -> Result<Vec<Figure>> {
    let mut talk = Talk::with(Child::sidecar()?);
    fill_with_programs(&mut talk)?;
    let (program, abandoned) = (talk.program(SCRIPT)?, talk.program(ABANDONED)?);
    let mut waiting = Waiting::default();
    let mut left_behind = 0;
    let (mut settled, mut half_way) = (Bytes(0), Bytes(0));
    for run in 0..RUNS {
        if run == RUNS / 2 {
            half_way = talk.child.resident()?.all;
        }
        if run == SETTLED {
            settled = talk.child.resident()?.all;
            let kept = Bytes(left_behind);
            ensure!(left_behind > 64 << 20, "{} of snapshots do not turn a cache over", size(kept));
        }
        // An abandoned one is never heard of again.
        talk.start(&abandoned, budget(run))?.keep(&mut waiting)?;
        left_behind += waiting.snapshot.len() as u64;
        talk.start(&program, budget(run))?.keep(&mut waiting)?;
        let number = talk.resume(Way::Cached, &waiting, budget(run), 41)?.number()?;
        ensure!(number == 42.0, "run {run} computes {number}");
        if run % 10 == 0 {
            talk.compile(&format!("const run = {run}; run;"))?;
        }
    }
    let end = talk.child.resident()?.all;
    let grown = Bytes(end.0.saturating_sub(settled.0));
    Ok(vec![Figure {
        name: GROWTH,
        measured: Ok(Measured::Size(grown)),
        floor: None,
        goal: MARGIN,
        note: format!(
            "{} after {SETTLED} runs, {} half way, {} at the end; full caches (32 MiB of programs, 64 of snapshots, \
             16 of programs out of snapshots) and what an allocator needs around them",
            size(settled),
            size(half_way),
            size(end)
        ),
    }])
}

/// What a long session has compiled: of the same kind as what comes later, because a cache that exchanges large things for
/// small ones changes its size without keeping more.
fn fill_with_programs(talk: &mut Talk) -> Result<()> {
    for program in 0..PROGRAMS {
        talk.compile(&format!("const filled = {program}; filled;"))?;
    }
    Ok(())
}

fn budget(run: u32) -> u64 {
    1_000_000 + u64::from(run % POLICIES)
}
