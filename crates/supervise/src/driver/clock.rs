//! The driver's clock: tokio's, so that tests can pause it, counted from when the supervisor was made.

use tokio::time::Instant;

use crate::state::Moment;

/// Turns the runtime's time into the machine's and back.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    origin: Instant,
}

impl Clock {
    pub(super) fn started_now() -> Self {
        Self { origin: Instant::now() }
    }

    pub(super) fn now(self) -> Moment {
        Moment::after_origin(self.origin.elapsed())
    }

    /// The instant to sleep until; moments before the origin are the origin.
    pub(super) fn instant(self, moment: Moment) -> Instant {
        let after = moment.since(Moment::ORIGIN);
        // A deadline beyond what the runtime can count to is as good as never.
        self.origin
            .checked_add(after)
            .unwrap_or_else(|| self.origin + std::time::Duration::from_secs(86_400 * 365))
    }
}
