//! A platform that follows a script, on whatever clock the runtime has: real, or paused in tests.

use tokio::time::Instant;

use super::{NextSignal, Platform, Script};

/// A phone that nobody has to buy: it does what a script says.
#[derive(Clone, Debug)]
pub struct SimPlatform {
    script: Script,
    next: usize,
    /// When the script began: with the first question.
    began: Option<Instant>,
}

impl SimPlatform {
    /// A platform that begins when it is first asked.
    #[must_use]
    pub fn new(script: Script) -> Self {
        Self { script, next: 0, began: None }
    }
}

impl Platform for SimPlatform {
    fn next(&mut self) -> NextSignal<'_> {
        Box::pin(async move {
            let began = *self.began.get_or_insert_with(Instant::now);
            let (at, signal) = *self.script.entries().get(self.next)?;
            tokio::time::sleep_until(began + at).await;
            // Only here: one who stops waiting has not heard it.
            self.next += 1;
            Some(signal)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::PlatformSignal;
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn signals_come_at_their_time_and_are_not_lost_by_one_who_stops_waiting() {
        let mut platform = SimPlatform::new("t=0 fg; t=2.5 bg".parse().expect("a good script"));
        let began = Instant::now();
        assert_eq!(platform.next().await, Some(PlatformSignal::Foreground));
        let impatient = tokio::time::timeout(Duration::from_secs(1), platform.next()).await;
        assert!(impatient.is_err());
        assert_eq!(platform.next().await, Some(PlatformSignal::Background));
        assert_eq!(began.elapsed(), Duration::from_millis(2500));
        assert_eq!(platform.next().await, None);
    }
}
