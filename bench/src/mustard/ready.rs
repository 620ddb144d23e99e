//! From `exec` to the first reply, and what a child that waits has in memory.

#![expect(clippy::disallowed_methods, reason = "the baselines are bare processes")]

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use super::Group;
use super::child::{Child, Resident, sidecar};
use super::samples::Samples;
use super::talk::Talk;
use crate::figure::{Bytes, Figure, Measured, Target, size};

pub(super) const GROUP: Group = Group { rows: &[HELLO, COMPILE, OUTRIGGER, NODE, RESIDENT], measure };

const HELLO: &str = "mustard/ready-hello";
const COMPILE: &str = "mustard/ready-compile";
const OUTRIGGER: &str = "mustard/ready-outrigger-sidecar";
const NODE: &str = "mustard/ready-node";
const RESIDENT: &str = "mustard/idle-memory";

const READY: Target = Target::Wall(Duration::from_millis(2));
const IDLE: Target = Target::Size(Bytes(8_000_000));

const STARTS: usize = 200;
/// Node takes long, and nothing is promised about it.
const NODE_STARTS: usize = 15;

fn measure() -> Result<Vec<Figure>> {
    let (mut hello, mut compile, mut nothing) = (Samples::default(), Samples::default(), Samples::default());
    let (mut outrigger, mut node) = (Samples::default(), Samples::default());
    let mut resident = Vec::new();
    let program = sidecar()?;
    let whole = program.with_file_name("outrigger");
    for round in 0..=STARTS {
        first_reply(&mut Command::new(&program), &mut hello, |talk| talk.hello(&[]).map(drop))?;
        let child =
            first_reply(&mut Command::new(&program), &mut compile, |talk| talk.compile("1;").map(drop))?;
        resident.push(child.resident()?);
        drop(child);
        bare(&mut Command::new("/bin/true"), &mut nothing)?;
        if round <= NODE_STARTS {
            let mut command = Command::new(&whole);
            command.args(["sidecar", "mustard"]);
            first_reply(&mut command, &mut outrigger, |talk| talk.compile("1;").map(drop))?;
            bare(Command::new("node").args(["-e", "0"]), &mut node)?;
        }
        if round == 0 {
            for samples in [&mut hello, &mut compile, &mut nothing, &mut outrigger, &mut node] {
                *samples = Samples::default();
            }
        }
    }
    let floor = Some(("spawn and wait for /bin/true", nothing.wall()?));
    let row = |name, samples: Samples, goal| -> Result<Figure> {
        Ok(Figure { name, measured: Ok(samples.measured()?), floor, goal, note: String::new() })
    };
    Ok(vec![
        row(HELLO, hello, READY)?,
        row(COMPILE, compile, READY)?,
        row(OUTRIGGER, outrigger, Target::Shown)?,
        row(NODE, node, Target::Shown)?,
        memory(resident),
    ])
}

/// Starts it and asks at once; what it answers is timed from before the start.
fn first_reply(
    command: &mut Command,
    samples: &mut Samples,
    ask: impl FnOnce(&mut Talk) -> Result<()>,
) -> Result<Child> {
    let start = Instant::now();
    let mut talk = Talk::with(Child::start(command)?);
    ask(&mut talk)?;
    samples.wall.push(start.elapsed());
    samples.processor.push(talk.child.processor_time()?);
    Ok(talk.child)
}

/// Starts it and waits for its end.
fn bare(command: &mut Command, samples: &mut Samples) -> Result<()> {
    let start = Instant::now();
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).status()?;
    samples.wall.push(start.elapsed());
    ensure!(status.success(), "{} ended with {status}", command.get_program().display());
    Ok(())
}

/// The largest of all: a promise about memory is not one about the median.
fn memory(resident: Vec<Resident>) -> Figure {
    let largest = resident.into_iter().fold(Resident { all: Bytes(0), anonymous: Bytes(0) }, |most, one| {
        if one.all > most.all { one } else { most }
    });
    Figure {
        name: RESIDENT,
        measured: Ok(Measured::Size(largest.all)),
        floor: None,
        goal: IDLE,
        note: format!(
            "resident after the first compile, the most of {STARTS}; {} of it anonymous",
            size(largest.anonymous)
        ),
    }
}
