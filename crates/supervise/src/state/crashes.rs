//! When did it crash, and is that too often? A true sliding window, not a counter that is reset at fixed times.

use std::collections::VecDeque;

use super::policy::CrashLimit;
use super::time::Moment;

/// The latest crashes, oldest first; never more than the largest limit needs.
#[derive(Clone, Debug)]
pub(super) struct Crashes {
    times: VecDeque<Moment>,
    keep: usize,
}

impl Crashes {
    /// Remembers as many crashes as the largest of `limits` asks for.
    pub(super) fn for_limits(limits: impl IntoIterator<Item = CrashLimit>) -> Self {
        let keep = limits.into_iter().map(|limit| limit.crashes.get()).max().unwrap_or(0);
        Self { times: VecDeque::new(), keep: keep as usize }
    }

    /// Writes down a crash. Times must not go backwards.
    pub(super) fn record(&mut self, at: Moment) {
        if self.times.len() == self.keep {
            self.times.pop_front();
        }
        if self.keep > 0 {
            self.times.push_back(at);
        }
    }

    /// Whether the limit is reached at `now`.
    pub(super) fn reach(&self, limit: CrashLimit, now: Moment) -> bool {
        let wanted = limit.crashes.get() as usize;
        match self.times.len().checked_sub(wanted) {
            // The window is reached when the oldest of the last `wanted` crashes is still inside it.
            Some(oldest) => now.since(self.times[oldest]) <= limit.within,
            None => false,
        }
    }
}
