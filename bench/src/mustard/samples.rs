//! Times of many operations: each by the clock on the wall, each batch by the processor time of the children.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::echo::Echo;
use super::talk::Talk;
use crate::figure::{Figure, Measured, Spread, Target};

#[derive(Default)]
pub(super) struct Samples {
    pub(super) wall: Vec<Duration>,
    /// The share of one operation in each batch.
    pub(super) processor: Vec<Duration>,
}

/// How often an operation is repeated: batches are in turns with the floor's, and the first is not counted.
#[derive(Clone, Copy)]
pub(super) struct Repeats {
    pub(super) rounds: usize,
    pub(super) batch: u32,
}

/// What a row is called and should be.
#[derive(Clone, Copy)]
pub(super) struct Wanted {
    pub(super) name: &'static str,
    pub(super) goal: Target,
}

pub(super) const ECHO: &str = "echo of the same sizes";

/// One request and its reply by `once`, in turns with an echo of the same sizes.
pub(super) fn against_echo(
    wanted: Wanted,
    repeats: Repeats,
    talks: &mut [Talk],
    mut once: impl FnMut(&mut [Talk]) -> Result<()>,
) -> Result<Figure> {
    // Also brings the child into the state that every other turn finds it in.
    once(talks)?;
    let mut echo = Echo::of(talks.first().context("there is a child")?.child.traffic)?;
    let (mut ours, mut floor) = (Samples::default(), Samples::default());
    for round in 0..=repeats.rounds {
        ours.batch(repeats.batch, talks, &mut once)?;
        for _ in 0..repeats.batch {
            let start = Instant::now();
            echo.ask()?;
            floor.wall.push(start.elapsed());
        }
        if round == 0 {
            (ours, floor) = (Samples::default(), Samples::default());
        }
    }
    let floor = Some((ECHO, floor.wall()?));
    Ok(Figure {
        name: wanted.name,
        measured: Ok(ours.measured()?),
        floor,
        goal: wanted.goal,
        note: String::new(),
    })
}

/// As [`against_echo`], for operations of several requests, which have no floor.
pub(super) fn alone(
    wanted: Wanted,
    repeats: Repeats,
    talks: &mut [Talk],
    mut once: impl FnMut(&mut [Talk]) -> Result<()>,
) -> Result<Figure> {
    let mut ours = Samples::default();
    for round in 0..=repeats.rounds {
        ours.batch(repeats.batch, talks, &mut once)?;
        if round == 0 {
            ours = Samples::default();
        }
    }
    let measured = Ok(ours.measured()?);
    Ok(Figure { name: wanted.name, measured, floor: None, goal: wanted.goal, note: String::new() })
}

impl Samples {
    fn batch(
        &mut self,
        count: u32,
        talks: &mut [Talk],
        once: &mut impl FnMut(&mut [Talk]) -> Result<()>,
    ) -> Result<()> {
        let before = processor_time(talks)?;
        for _ in 0..count {
            let start = Instant::now();
            once(talks)?;
            self.wall.push(start.elapsed());
        }
        self.processor.push((processor_time(talks)? - before) / count);
        Ok(())
    }

    pub(super) fn wall(self) -> Result<Spread> {
        Spread::of(self.wall).context("nothing was timed")
    }

    pub(super) fn measured(self) -> Result<Measured> {
        let wall = Spread::of(self.wall).context("nothing was timed")?;
        Ok(Measured::Time { wall, processor: Spread::of(self.processor) })
    }
}

/// What these children used of a processor so far, together.
fn processor_time(talks: &[Talk]) -> Result<Duration> {
    talks.iter().map(|talk| talk.child.processor_time()).sum()
}
