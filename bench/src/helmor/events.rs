//! What the bridge adds to what an agent says: one session, and eight at once.

use std::io::BufRead;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::{Group, agent};
use crate::child::Child;
use crate::figure::{Figure, Measured, Spread, Target};

pub(super) const GROUP: Group = Group { rows: &[ONE, EIGHT], measure };

const ONE: &str = "helmor/event";
const EIGHT: &str = "helmor/event-of-8-sessions";

const ROUNDS: usize = 10;

fn measure() -> Result<Vec<Figure>> {
    let ourselves = std::env::current_exe()?.into_os_string();
    let variables = [(agent::VARIABLE, "1".into())];
    let mut sidecar = super::sidecar(&["--claude".into(), ourselves], &variables)?;
    ensure!(sidecar.hear()?.contains(r#""type":"ready""#), "the first line is another one");
    let mut bare = Child::agent(agent::VARIABLE)?;
    let mut floor = Vec::new();
    let mut rows = [(ONE, 1, Vec::new(), Vec::new()), (EIGHT, 8, Vec::new(), Vec::new())];
    for round in 0..=ROUNDS {
        for (_, sessions, wall, processor) in &mut rows {
            let events = *sessions * agent::EVENTS;
            let before = sidecar.processor_time()?;
            let start = Instant::now();
            turns(&mut sidecar, *sessions, round)?;
            // The first round starts the agents.
            if round > 0 {
                wall.push(start.elapsed() / events);
                processor.push((sidecar.processor_time()? - before) / events);
            }
        }
        let start = Instant::now();
        read_directly(&mut bare)?;
        floor.push(start.elapsed() / agent::EVENTS);
    }
    let spread = |times| Spread::of(times).context("nothing was timed");
    let bare = spread(floor)?;
    let figures = rows.into_iter().map(|(name, sessions, wall, processor)| {
        let processor = spread(processor)?;
        Ok(Figure {
            name,
            measured: Ok(Measured::Time { wall: spread(wall)?, processor: Some(processor) }),
            floor: Some(("the agent read directly", bare)),
            goal: Target::Processor(Duration::from_micros(20)),
            note: format!(
                "{:.0} a second of one core; {sessions} × {} events",
                1.0 / processor.median.as_secs_f64(),
                agent::EVENTS
            ),
        })
    });
    figures.collect()
}

/// A turn in each session, read to its end.
fn turns(sidecar: &mut Child, sessions: u32, round: usize) -> Result<()> {
    for number in 0..sessions {
        sidecar.say(&format!(
            r#"{{"id":"{round}-{number}","method":"sendMessage","params":{{"sessionId":"s{number}","prompt":"go","provider":"claude","permissionMode":"default"}}}}"#
        ))?;
    }
    let (mut events, mut ended) = (0, 0);
    let mut line = Vec::new();
    while ended < sessions {
        line.clear();
        ensure!(sidecar.output.read_until(b'\n', &mut line)? > 0, "the bridge ended");
        if line.starts_with(br#"{"type":"stream_event""#) {
            events += 1;
        } else if memchr::memmem::find(&line, br#""type":"end""#).is_some() {
            ended += 1;
        } else {
            let failed = memchr::memmem::find(&line, br#""type":"error""#).is_some();
            ensure!(!failed, "{}", String::from_utf8_lossy(&line));
        }
    }
    ensure!(events == sessions * agent::EVENTS, "{events} events came");
    Ok(())
}

fn read_directly(agent: &mut Child) -> Result<()> {
    agent.say(r#"{"type":"user","message":{"role":"user","content":"go"}}"#)?;
    let mut line = Vec::new();
    loop {
        line.clear();
        ensure!(agent.output.read_until(b'\n', &mut line)? > 0, "the agent ended");
        if memchr::memmem::find(&line, b"session_state_changed").is_some() {
            return Ok(());
        }
    }
}
