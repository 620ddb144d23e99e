//! How long an answer is waited for: deadlines that stand still while the extension cannot run, and the moment when people
//! should be told that it does not answer.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep};

/// After this long without an answer, people are told.
pub const UNRESPONSIVE_AFTER: Duration = Duration::from_secs(3);

/// How many calls have waited too long for people not to be told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Overdue {
    /// How many.
    pub calls: usize,
}

/// No answer came in time.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct RanOut {
    pub(super) after: Duration,
}

#[derive(Clone, Debug)]
pub(super) struct Patience {
    clocks: Arc<Clocks>,
}

#[derive(Debug)]
struct Clocks {
    frozen: watch::Sender<bool>,
    overdue: watch::Sender<Overdue>,
}

impl Patience {
    pub(super) fn new() -> Self {
        let clocks =
            Clocks { frozen: watch::Sender::new(false), overdue: watch::Sender::new(Overdue::default()) };
        Self { clocks: Arc::new(clocks) }
    }

    pub(super) fn overdue(&self) -> watch::Receiver<Overdue> {
        self.clocks.overdue.subscribe()
    }

    pub(super) fn freeze(&self) {
        self.clocks.frozen.send_replace(true);
    }

    pub(super) fn thaw(&self) {
        self.clocks.frozen.send_replace(false);
    }

    /// Waits for `answer`, `within` this much time that is not frozen.
    pub(super) async fn bear<A: Future>(
        &self,
        answer: A,
        within: Option<Duration>,
    ) -> Result<A::Output, RanOut> {
        tokio::pin!(answer);
        let quietly = within.map_or(UNRESPONSIVE_AFTER, |within| within.min(UNRESPONSIVE_AFTER));
        tokio::select! {
            biased;
            answer = &mut answer => return Ok(answer),
            () = self.run_out(quietly) => {}
        }
        if within.is_some_and(|within| within < UNRESPONSIVE_AFTER) {
            return Err(RanOut { after: quietly });
        }
        let _counted = Counted::new(&self.clocks.overdue);
        match within {
            None => Ok(answer.await),
            Some(within) => tokio::select! {
                biased;
                answer = &mut answer => Ok(answer),
                () = self.run_out(within - quietly) => Err(RanOut { after: within }),
            },
        }
    }

    /// Waits until `left` has passed while nothing was frozen.
    async fn run_out(&self, mut left: Duration) {
        let mut frozen = self.clocks.frozen.subscribe();
        loop {
            if *frozen.borrow_and_update() {
                // The sender is ours, so it cannot be gone.
                let _ = frozen.changed().await;
                continue;
            }
            let begun = Instant::now();
            tokio::select! {
                biased;
                () = sleep(left) => return,
                _ = frozen.changed() => left = left.saturating_sub(begun.elapsed()),
            }
        }
    }
}

/// Counts a call as overdue for as long as it is held.
struct Counted<'a>(&'a watch::Sender<Overdue>);

impl<'a> Counted<'a> {
    fn new(overdue: &'a watch::Sender<Overdue>) -> Self {
        overdue.send_modify(|overdue| overdue.calls += 1);
        Self(overdue)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|overdue| overdue.calls -= 1);
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use tokio::sync::oneshot;
    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_answer_in_time_is_the_answer() {
        assert_eq!(Patience::new().bear(async { 7 }, Some(Duration::ZERO)).await, Ok(7));
    }

    #[tokio::test(start_paused = true)]
    async fn a_deadline_ends_the_waiting_and_not_a_moment_early() {
        let begun = Instant::now();
        let after = Duration::from_secs(30);
        assert_eq!(Patience::new().bear(pending::<()>(), Some(after)).await, Err(RanOut { after }));
        assert_eq!(begun.elapsed(), after);
        let begun = Instant::now();
        let after = Duration::from_secs(2);
        assert_eq!(Patience::new().bear(pending::<()>(), Some(after)).await, Err(RanOut { after }));
        assert_eq!(begun.elapsed(), after);
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_is_overdue_from_the_third_second_until_it_is_answered() {
        let patience = Patience::new();
        let mut overdue = patience.overdue();
        let (answer, waiting) = oneshot::channel::<u8>();
        let begun = Instant::now();
        let bearer = patience.clone();
        let call = tokio::spawn(async move { bearer.bear(waiting, None).await });
        overdue.changed().await.expect("the patience lives");
        assert_eq!(
            (*overdue.borrow_and_update(), begun.elapsed()),
            (Overdue { calls: 1 }, UNRESPONSIVE_AFTER)
        );
        answer.send(7).expect("it is waited for");
        assert_eq!(call.await.expect("no panic"), Ok(Ok(7)));
        overdue.changed().await.expect("the patience lives");
        assert_eq!(overdue.borrow().calls, 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_that_is_dropped_is_not_overdue_any_more() {
        let patience = Patience::new();
        let bearer = patience.clone();
        let call = tokio::spawn(async move { bearer.bear(pending::<()>(), None).await });
        let mut overdue = patience.overdue();
        overdue.changed().await.expect("the patience lives");
        call.abort();
        overdue.changed().await.expect("the patience lives");
        assert_eq!(overdue.borrow().calls, 0);
    }

    #[tokio::test(start_paused = true)]
    async fn no_time_passes_while_it_is_frozen() {
        let patience = Patience::new();
        let bearer = patience.clone();
        let begun = Instant::now();
        let call = tokio::spawn(async move {
            let after = Duration::from_secs(10);
            let answer = bearer.bear(pending::<()>(), Some(after)).await;
            (answer, begun.elapsed())
        });
        tokio::task::yield_now().await;
        advance(Duration::from_secs(2)).await;
        patience.freeze();
        tokio::task::yield_now().await;
        advance(Duration::from_secs(3600)).await;
        assert_eq!(patience.overdue().borrow().calls, 0);
        patience.thaw();
        let (answer, elapsed) = call.await.expect("no panic");
        assert_eq!(answer, Err(RanOut { after: Duration::from_secs(10) }));
        assert_eq!(elapsed, Duration::from_secs(3610));
    }
}
