//! A token bucket that is told the time.
//!
//! The level is kept in tokens times the period, so that refilling is exact: no fraction is ever lost, however
//! often the bucket is asked.

/// A moment, in milliseconds since any fixed one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Millis(pub u64);

/// So many tokens in so much time, and at most `burst` at once. Zero anywhere lets nothing through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// How many tokens come in each period.
    pub tokens: u32,
    /// How long a period is, in milliseconds.
    pub period_millis: u32,
    /// How many tokens the bucket holds, and has at the beginning.
    pub burst: u32,
}

/// Not now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Limited {
    /// There will be enough tokens later.
    #[error("too many: try again in {retry_after_millis} ms")]
    Later {
        /// When, if nobody else takes them.
        retry_after_millis: u64,
    },
    /// The bucket never holds that many.
    #[error("too many at once: {asked} were asked for and there are never more than {burst}")]
    Never {
        /// How many were asked for.
        asked: u32,
        /// How many there can be.
        burst: u32,
    },
}

/// The bucket.
#[derive(Clone, Debug)]
pub struct Bucket {
    rate: Rate,
    level: u128,
    /// The latest moment it was told.
    latest: Option<Millis>,
}

impl Bucket {
    /// A full bucket.
    #[must_use]
    pub fn new(rate: Rate) -> Bucket {
        Bucket { rate, level: capacity(rate), latest: None }
    }

    /// Takes `count` tokens, all or none. A clock that goes backwards brings no tokens and takes none away.
    pub fn take(&mut self, now: Millis, count: u32) -> Result<(), Limited> {
        self.refill(now);
        let Rate { tokens, period_millis, burst } = self.rate;
        let cost = u128::from(count) * u128::from(period_millis.max(1));
        if cost <= self.level {
            self.level -= cost;
            return Ok(());
        }
        if count > burst || tokens == 0 || period_millis == 0 {
            return Err(Limited::Never { asked: count, burst });
        }
        let wait = (cost - self.level).div_ceil(u128::from(tokens));
        Err(Limited::Later { retry_after_millis: u64::try_from(wait).unwrap_or(u64::MAX) })
    }

    /// How many whole tokens there are.
    #[must_use]
    pub fn available(&mut self, now: Millis) -> u32 {
        self.refill(now);
        let whole = self.level / u128::from(self.rate.period_millis.max(1));
        u32::try_from(whole).unwrap_or(u32::MAX)
    }

    fn refill(&mut self, now: Millis) {
        let elapsed = self.latest.map_or(0, |latest| now.0.saturating_sub(latest.0));
        self.latest = self.latest.max(Some(now));
        let gained = u128::from(elapsed) * u128::from(self.rate.tokens);
        self.level = capacity(self.rate).min(self.level + gained);
    }
}

fn capacity(rate: Rate) -> u128 {
    let period = if rate.tokens == 0 { 0 } else { rate.period_millis };
    u128::from(rate.burst) * u128::from(period)
}
