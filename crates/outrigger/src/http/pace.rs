//! How many requests a second: a bucket of tokens that fills with time.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A bucket that everybody takes from.
#[derive(Debug)]
pub(super) struct Pace {
    per_second: f64,
    burst: f64,
    bucket: Mutex<Bucket>,
}

#[derive(Debug)]
struct Bucket {
    tokens: f64,
    at: Instant,
}

impl Pace {
    /// A full bucket.
    pub(super) fn new(per_second: u32, burst: u32, now: Instant) -> Self {
        let burst = f64::from(burst.max(1));
        Self {
            per_second: f64::from(per_second.max(1)),
            burst,
            bucket: Mutex::new(Bucket { tokens: burst, at: now }),
        }
    }

    /// Takes a token; else how long it is until there is one.
    pub(super) fn take(&self, now: Instant) -> Result<(), Duration> {
        let mut bucket = self.bucket.lock().unwrap_or_else(PoisonError::into_inner);
        let passed = now.saturating_duration_since(bucket.at).as_secs_f64();
        bucket.tokens = (bucket.tokens + passed * self.per_second).min(self.burst);
        bucket.at = bucket.at.max(now);
        if bucket.tokens >= 1.0 {
            bucket.tokens -= 1.0;
            return Ok(());
        }
        Err(Duration::from_secs_f64((1.0 - bucket.tokens) / self.per_second))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_passes_whole_and_the_next_one_waits_for_its_token() {
        let start = Instant::now();
        let pace = Pace::new(10, 3, start);
        assert_eq!([(); 3].map(|()| pace.take(start)), [Ok(()), Ok(()), Ok(())]);
        assert_eq!(pace.take(start), Err(Duration::from_millis(100)));
        assert_eq!(pace.take(start + Duration::from_millis(50)), Err(Duration::from_millis(50)));
        assert_eq!(pace.take(start + Duration::from_millis(100)), Ok(()));
    }

    #[test]
    fn a_quiet_hour_saves_no_more_than_a_burst() {
        let start = Instant::now();
        let pace = Pace::new(10, 2, start);
        let later = start + Duration::from_secs(3600);
        assert_eq!([(); 2].map(|()| pace.take(later)), [Ok(()), Ok(())]);
        assert!(pace.take(later).is_err());
    }

    #[test]
    fn a_clock_that_is_read_out_of_order_gives_nothing_away() {
        let start = Instant::now();
        let pace = Pace::new(1, 1, start);
        let later = start + Duration::from_secs(1);
        assert_eq!(pace.take(later), Ok(()));
        assert!(pace.take(start).is_err());
        assert!(pace.take(later).is_err());
    }
}
