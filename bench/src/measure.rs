//! Measuring: contestants run in turns within each round, so that a noisy moment hits all of them. Medians count, or the
//! best where a run is long enough to be disturbed every time.

use std::time::{Duration, Instant};

/// Times each contestant once per round, in turns, and returns the median of each, in the order given. An odd number of
/// rounds makes the median one of them.
pub(crate) fn medians<E, const N: usize>(
    rounds: usize,
    contestants: [&mut dyn FnMut() -> Result<(), E>; N],
) -> Result<[Duration; N], E> {
    let mut timed = contestants.map(|contestant| {
        move || {
            let start = Instant::now();
            contestant()?;
            Ok(start.elapsed())
        }
    });
    medians_of(
        rounds,
        timed.each_mut().map(|contestant| contestant as &mut dyn FnMut() -> Result<Duration, E>),
    )
}

/// As [`medians`], for contestants that know themselves which part of their work counts.
pub(crate) fn medians_of<E, const N: usize>(
    rounds: usize,
    mut contestants: [&mut dyn FnMut() -> Result<Duration, E>; N],
) -> Result<[Duration; N], E> {
    let mut times: [Vec<Duration>; N] = std::array::from_fn(|_| Vec::with_capacity(rounds));
    // The first round warms caches and the branch predictor, and is not counted.
    for round in 0..=rounds {
        for (contestant, times) in contestants.iter_mut().zip(&mut times) {
            let elapsed = contestant()?;
            if round > 0 {
                times.push(elapsed);
            }
        }
    }
    Ok(times.map(|mut times| {
        times.sort_unstable();
        times[times.len() / 2]
    }))
}
