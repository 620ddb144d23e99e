//! From `exec` to `lifecycle.ready`, and what a child that waits has in memory.

#![expect(clippy::disallowed_methods, reason = "the floor is a bare process")]

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::Group;
use crate::figure::{Bytes, Figure, Measured, Spread, Target};

pub(super) const GROUP: Group = Group { rows: &[READY, RESIDENT], measure };

const READY: &str = "steerable/ready";
const RESIDENT: &str = "steerable/idle-memory";

const STARTS: usize = 100;

fn measure() -> Result<Vec<Figure>> {
    let (mut ready, mut nothing) = (Vec::new(), Vec::new());
    let mut largest = Bytes(0);
    for _ in 0..STARTS {
        let start = Instant::now();
        let mut child = super::sidecar()?;
        ensure!(child.hear()?.contains("lifecycle.ready"), "the first line is another one");
        ready.push(start.elapsed());
        child.say(r#"{"jsonrpc":"2.0","id":1,"method":"system.ping"}"#)?;
        ensure!(child.hear()?.contains(r#""status":"ok""#), "the ping was not answered");
        let resident = child.resident()?;
        if resident > largest {
            largest = resident;
        }
        drop(child);
        let start = Instant::now();
        Command::new("/bin/true").stdin(Stdio::null()).status()?;
        nothing.push(start.elapsed());
    }
    let time = |times| Spread::of(times).context("nothing was timed");
    Ok(vec![
        Figure {
            name: READY,
            measured: Ok(Measured::Time { wall: time(ready)?, processor: None }),
            floor: Some(("spawn and wait for /bin/true", time(nothing)?)),
            goal: Target::Wall(Duration::from_millis(10)),
            note: "from before the start to the notification".to_owned(),
        },
        Figure {
            name: RESIDENT,
            measured: Ok(Measured::Size(largest)),
            floor: None,
            goal: Target::Size(Bytes(12_000_000)),
            note: format!("resident after the first ping, the most of {STARTS}"),
        },
    ])
}
