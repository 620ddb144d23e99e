//! Random lives, held to the laws: what the tests, the fuzz targets and a nightly seed all run.
//!
//! A simulated world answers the machine truthfully (a spawn is answered once, a process ends once, a kill works) while
//! everything else is arbitrary: when, in which order, what people want, what the platform does. After every event the laws
//! are checked, and on a desktop a second, plain model of the contract has to agree. A broken law panics with one line that
//! says how to see it again.
//!
//! ```
//! use outrigger_sep::host::life::model;
//!
//! model::lifecycle(1, 200);
//! model::android(1, 200);
//! ```

mod chance;
mod laws;
mod reference;
mod world;

use chance::Chance;
use world::{Case, World};

/// A life on a desktop: starts, event storms, heartbeats, faults, stops, restart loops; compared with the plain model.
///
/// # Panics
///
/// When a law is broken, with a line that names the seed.
pub fn lifecycle(seed: u64, steps: u32) {
    World::desktop(Chance::seeded(seed), Case::Seed { name: "lifecycle", seed, steps }).live(steps);
}

/// A life on a phone: the same, and the platform pauses, freezes and takes what it likes.
///
/// # Panics
///
/// When a law is broken, with a line that names the seed.
pub fn android(seed: u64, steps: u32) {
    World::phone(Chance::seeded(seed), Case::Seed { name: "android", seed, steps }).live(steps);
}

/// [`lifecycle`], chosen by bytes instead of a seed.
///
/// # Panics
///
/// When a law is broken.
pub fn lifecycle_bytes(bytes: &[u8]) {
    World::desktop(Chance::bytes(bytes), Case::Bytes { name: "lifecycle_bytes" }).live(MOST_STEPS);
}

/// [`android`], chosen by bytes instead of a seed.
///
/// # Panics
///
/// When a law is broken.
pub fn android_bytes(bytes: &[u8]) {
    World::phone(Chance::bytes(bytes), Case::Bytes { name: "android_bytes" }).live(MOST_STEPS);
}

/// Bytes run out by themselves, but not all of them have to be looked at.
const MOST_STEPS: u32 = 4000;

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::any;
    use proptest::test_runner::{Config, TestRunner};

    use super::*;

    /// Always the same, so that a failure on one machine is a failure on every machine.
    const SEEDS: u64 = 400;
    const STEPS: u32 = 300;

    /// One more, of somebody's choosing.
    fn seed_of_the_day() -> Option<u64> {
        let text = std::env::var("OUTRIGGER_SEED").ok()?;
        Some(text.parse().unwrap_or_else(|_| panic!("OUTRIGGER_SEED is a number, not `{text}`")))
    }

    #[test]
    fn no_life_on_a_desktop_breaks_a_law_or_surprises_the_plain_model() {
        for seed in (0..SEEDS).chain(seed_of_the_day()) {
            lifecycle(seed, STEPS);
        }
    }

    #[test]
    fn no_life_on_a_phone_breaks_a_law() {
        for seed in (0..SEEDS).chain(seed_of_the_day()) {
            android(seed, STEPS);
        }
    }

    #[test]
    fn any_bytes_are_a_life() {
        let mut runner = TestRunner::new(Config { failure_persistence: None, ..Config::with_cases(300) });
        let ran = runner.run(&vec(any::<u8>(), 0..600), |bytes| {
            lifecycle_bytes(&bytes);
            android_bytes(&bytes);
            Ok(())
        });
        ran.unwrap_or_else(|why| panic!("{why}"));
    }
}
