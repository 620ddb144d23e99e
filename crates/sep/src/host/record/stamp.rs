//! The time of a record: milliseconds since the epoch, and how people read them.

use std::fmt;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use outrigger_policy::Millis;

/// The wall clock. One that stands before 1970 is wrong anyway; the records go on.
#[must_use]
pub fn wall_clock() -> Millis {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Millis(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

/// A moment by both clocks: what people read can be set back, what rates and windows are measured with cannot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// Since the epoch.
    pub wall: Millis,
    /// Since some moment of this process; it never goes back.
    pub steady: Millis,
}

impl Now {
    /// When by the wall clock it was `steady`, as far as can be known now.
    #[must_use]
    pub fn wall_at(self, steady: Millis) -> Millis {
        Millis(self.wall.0.saturating_sub(self.steady.0.saturating_sub(steady.0)))
    }
}

/// Tells the time; tests bring their own.
pub type Clock = Arc<dyn Fn() -> Now + Send + Sync>;

/// The clocks of the machine.
#[must_use]
pub fn system_clock() -> Clock {
    static BEGIN: LazyLock<Instant> = LazyLock::new(Instant::now);
    Arc::new(|| {
        let steady = u64::try_from(BEGIN.elapsed().as_millis()).unwrap_or(u64::MAX);
        Now { wall: wall_clock(), steady: Millis(steady) }
    })
}

/// A moment that prints as `2026-11-15T15:47:36.123Z`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp(pub Millis);

impl fmt::Display for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        outrigger_supervise::logs::Stamp(Duration::from_millis(self.0.0)).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_print_as_people_and_programs_read_them() {
        let at = |millis| Stamp(Millis(millis)).to_string();
        assert_eq!(at(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(at(951_782_400_007), "2000-02-29T00:00:00.007Z");
        assert_eq!(at(1_709_251_199_999), "2024-02-29T23:59:59.999Z");
        assert!(at(u64::MAX).ends_with('Z'), "a clock that is far off is no reason to panic");
    }
}
