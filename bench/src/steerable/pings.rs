//! Ten thousand pings written without waiting for the answers.

use std::io::Write;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::Group;
use crate::figure::{Figure, Measured, Spread, Target};

pub(super) const GROUP: Group = Group { rows: &[PINGS], measure };

const PINGS: &str = "steerable/pipelined-ping";

const COUNT: u32 = 10_000;
const ROUNDS: usize = 20;

fn measure() -> Result<Vec<Figure>> {
    let mut child = super::sidecar()?;
    ensure!(child.hear()?.contains("lifecycle.ready"), "the first line is another one");
    let requests: String = (0..COUNT)
        .map(|id| format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"system.ping\"}}\n"))
        .collect();
    let (mut wall, mut processor) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let before = child.processor_time()?;
        let start = Instant::now();
        // A thread writes, because neither side may wait for the other to read.
        let mut input = &child.input;
        let output = &mut child.output;
        std::thread::scope(|scope| -> Result<()> {
            scope.spawn(|| input.write_all(requests.as_bytes()));
            let mut line = String::new();
            for id in 0..COUNT {
                line.clear();
                std::io::BufRead::read_line(output, &mut line)?;
                ensure!(
                    line.starts_with(&format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\"")),
                    "out of order: {line}"
                );
            }
            Ok(())
        })?;
        wall.push(start.elapsed() / COUNT);
        processor.push((child.processor_time()? - before) / COUNT);
    }
    let wall = Spread::of(wall).context("nothing was timed")?;
    Ok(vec![Figure {
        name: PINGS,
        measured: Ok(Measured::Time { wall, processor: Spread::of(processor) }),
        floor: None,
        goal: Target::Wall(Duration::from_micros(5)),
        note: format!("{:.0} a second, {COUNT} at a time", 1.0 / wall.median.as_secs_f64()),
    }])
}
