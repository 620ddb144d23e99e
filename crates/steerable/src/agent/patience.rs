//! How long a tool may take: its own time counts, the time that a person takes to answer does not.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep};

/// The shortest sleep, so that a clock which stands still does not make us spin.
const SHORTEST: Duration = Duration::from_millis(10);

/// The clock of one call, which stands still while somebody is asked on behalf of it.
#[derive(Clone, Debug)]
pub(super) struct Clock(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    began: Instant,
    paused: Duration,
    /// How many questions are open, and since when there is one.
    open: u32,
    since: Instant,
}

/// A question that is open. The clock goes on when the last one is dropped.
#[derive(Debug)]
pub(super) struct Pause(Clock);

impl Clock {
    pub(super) fn new() -> Self {
        let now = Instant::now();
        Self(Arc::new(Mutex::new(State { began: now, paused: Duration::ZERO, open: 0, since: now })))
    }

    pub(super) fn pause(&self) -> Pause {
        let mut state = self.state();
        if state.open == 0 {
            state.since = Instant::now();
        }
        state.open += 1;
        Pause(self.clone())
    }

    /// The time that counts.
    fn used(&self) -> Duration {
        let state = self.state();
        let now = Instant::now();
        let pausing = if state.open > 0 { now.duration_since(state.since) } else { Duration::ZERO };
        now.duration_since(state.began).saturating_sub(state.paused).saturating_sub(pausing)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Pause {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.open -= 1;
        if state.open == 0 {
            let took = state.since.elapsed();
            state.paused += took;
        }
    }
}

/// What `work` comes to, or `None` if it takes longer than `limit` by its clock.
pub(super) async fn within<T>(limit: Duration, clock: &Clock, work: impl Future<Output = T>) -> Option<T> {
    let mut work = std::pin::pin!(work);
    loop {
        let left = limit.saturating_sub(clock.used());
        if left.is_zero() {
            return None;
        }
        tokio::select! {
            biased;
            done = &mut work => return Some(done),
            () = sleep(left.max(SHORTEST)) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn work_that_takes_too_long_is_given_up_at_its_limit() {
        let began = Instant::now();
        let clock = Clock::new();
        assert_eq!(within(5 * SECOND, &clock, sleep(6 * SECOND)).await, None);
        assert_eq!(began.elapsed(), 5 * SECOND);
        let clock = Clock::new();
        assert_eq!(within(5 * SECOND, &clock, sleep(4 * SECOND)).await, Some(()));
    }

    #[tokio::test(start_paused = true)]
    async fn the_time_that_a_person_takes_does_not_count() {
        let clock = Clock::new();
        let asking = clock.clone();
        let work = async move {
            sleep(3 * SECOND).await;
            let pause = asking.pause();
            sleep(600 * SECOND).await;
            drop(pause);
            sleep(SECOND).await;
            "done"
        };
        assert_eq!(within(5 * SECOND, &clock, work).await, Some("done"));
    }
}
