//! A monotonic instant that the machine can be given by anyone: the driver's clock, or a test's script.

use std::fmt;
use std::ops::Add;
use std::time::Duration;

/// Nanoseconds from an origin that whoever calls the machine has chosen. It never goes backwards.
///
/// It is signed so that crashes from before the origin (an earlier run of the host) can be written down.
/// Arithmetic saturates: a deadline that does not fit simply never comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment(i64);

impl Moment {
    /// The origin itself.
    pub const ORIGIN: Self = Self(0);

    /// The instant `after` the origin.
    pub fn after_origin(after: Duration) -> Self {
        Self::ORIGIN + after
    }

    /// The instant so many nanoseconds from the origin.
    pub const fn from_nanos(nanos: i64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds from the origin.
    pub const fn as_nanos(self) -> i64 {
        self.0
    }

    /// The instant `before` this one.
    pub fn before(self, before: Duration) -> Self {
        Self(self.0.saturating_sub(nanos(before)))
    }

    /// How long ago `earlier` was; zero when it is still to come.
    pub fn since(self, earlier: Self) -> Duration {
        let nanos = i128::from(self.0) - i128::from(earlier.0);
        Duration::from_nanos(u64::try_from(nanos.max(0)).unwrap_or(u64::MAX))
    }
}

impl Add<Duration> for Moment {
    type Output = Self;

    fn add(self, later: Duration) -> Self {
        Self(self.0.saturating_add(nanos(later)))
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.3}s", self.0 as f64 / 1e9)
    }
}

fn nanos(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)
}
