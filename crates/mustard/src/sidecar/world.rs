//! Time and randomness, which the engine itself does not know.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// What a session knows of the world.
pub trait World {
    /// Milliseconds since 1970.
    fn now_ms(&mut self) -> f64;
    /// Time that never goes back.
    fn elapsed(&mut self) -> Duration;
    /// A seed that nobody can guess.
    fn entropy(&mut self) -> u64;
}

/// The machine's own clocks and randomness.
#[derive(Debug)]
pub struct System {
    began: Instant,
}

impl System {
    /// Begins now.
    #[must_use]
    pub fn new() -> System {
        System { began: Instant::now() }
    }
}

impl Default for System {
    fn default() -> System {
        System::new()
    }
}

impl World for System {
    fn now_ms(&mut self) -> f64 {
        // Whole milliseconds, as guests expect them. A clock before 1970 is not set at all.
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_millis() as f64)
    }

    fn elapsed(&mut self) -> Duration {
        self.began.elapsed()
    }

    fn entropy(&mut self) -> u64 {
        // Without randomness a guest's `Math.random` follows the clock: it promises no more.
        getrandom::u64().unwrap_or_else(|_| self.now_ms().to_bits() ^ self.began.elapsed().as_nanos() as u64)
    }
}
