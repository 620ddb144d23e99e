//! How many processes may be started in a second, over all extensions together.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use outrigger_policy::{Bucket, Limited, Millis, Rate};
use tokio::time::Instant;

/// Ten a second, and ten at once.
const STARTS: Rate = Rate { tokens: 10, period_millis: 1000, burst: 10 };

/// Whoever wants to start a process waits for a turn.
#[derive(Debug)]
pub(super) struct Pace {
    bucket: Mutex<Bucket>,
    began: Instant,
}

impl Pace {
    pub(super) fn new() -> Self {
        Self { bucket: Mutex::new(Bucket::new(STARTS)), began: Instant::now() }
    }

    /// Waits for a turn.
    pub(super) async fn turn(&self) {
        while let Some(wait) = self.take() {
            tokio::time::sleep(wait).await;
        }
    }

    fn take(&self) -> Option<Duration> {
        let now = Millis(u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX));
        match self.bucket.lock().unwrap_or_else(PoisonError::into_inner).take(now, 1) {
            Ok(()) => None,
            Err(Limited::Later { retry_after_millis }) => Some(Duration::from_millis(retry_after_millis)),
            // One is never more than the bucket holds.
            Err(Limited::Never { .. }) => Some(Duration::from_millis(u64::from(STARTS.period_millis))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn ten_start_at_once_and_the_others_a_tenth_of_a_second_apart() {
        let pace = Pace::new();
        let began = Instant::now();
        for _ in 0..10 {
            pace.turn().await;
        }
        assert_eq!(began.elapsed(), Duration::ZERO);
        for _ in 0..5 {
            pace.turn().await;
        }
        assert!((490..=510).contains(&began.elapsed().as_millis()), "{:?}", began.elapsed());
    }
}
