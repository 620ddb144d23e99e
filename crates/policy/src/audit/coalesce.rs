//! Repeated denials become one record with a count: a subject that is denied in a loop cannot fill the disk.

use crate::decision::Reason;
use crate::name::Subject;
use crate::rate::Millis;
use std::collections::BTreeMap;

/// The most different denials that are counted at once. Beyond it each one is written: nothing is ever lost.
pub const MAX_HELD_DENIALS: usize = 4096;

/// What makes two denials the same.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Denial {
    /// Who was denied.
    pub subject: Subject,
    /// What: a method, a tool, a capability.
    pub object: String,
    /// Why.
    pub reason: Reason,
}

/// How many of the same denial are written in how much time, before they are only counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Threshold {
    /// So many are written one by one.
    pub written: u32,
    /// The window begins with the first of them and lasts this long, in milliseconds.
    pub window_millis: u64,
}

/// What to do with a denial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offer {
    /// Write a record for it.
    Write,
    /// It is counted; [`Coalescer::due`] will return it.
    Held,
}

/// A record to write: this denial came `repeat` times more than was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repeated<K = Denial> {
    /// Which.
    pub denial: K,
    /// How often it was held; at least 1.
    pub repeat: u64,
    /// When it was held first.
    pub first: Millis,
    /// When it was held last.
    pub last: Millis,
}

/// Counts denials by window. What makes two of them the same is up to the caller; a [`Denial`] will mostly do.
#[derive(Debug)]
pub struct Coalescer<K = Denial> {
    threshold: Threshold,
    windows: BTreeMap<K, Window>,
}

#[derive(Debug)]
struct Window {
    begin: Millis,
    written: u32,
    held: Option<Held>,
}

#[derive(Debug)]
struct Held {
    repeat: u64,
    first: Millis,
    last: Millis,
}

impl<K: Ord + Clone> Coalescer<K> {
    /// A coalescer that has seen nothing.
    #[must_use]
    pub fn new(threshold: Threshold) -> Self {
        Coalescer { threshold, windows: BTreeMap::new() }
    }

    /// Says what to do with a denial that happens `now`. Call [`Coalescer::due`] first: a window that is over and
    /// still holds something goes on holding, so that a late caller loses no count.
    pub fn offer(&mut self, now: Millis, denial: &K) -> Offer {
        let Threshold { written, window_millis } = self.threshold;
        let Some(window) = self.windows.get_mut(denial) else {
            return self.open(now, denial);
        };
        let over = now.0.saturating_sub(window.begin.0) >= window_millis;
        if over && window.held.is_none() {
            *window = Window { begin: now, written: 0, held: None };
        }
        if window.written < written && window.held.is_none() {
            window.written += 1;
            return Offer::Write;
        }
        let held = window.held.get_or_insert(Held { repeat: 0, first: now, last: now });
        held.repeat = held.repeat.saturating_add(1);
        held.last = held.last.max(now);
        Offer::Held
    }

    /// The records whose window is over. Their windows are forgotten, as are those that hold nothing.
    pub fn due(&mut self, now: Millis) -> Vec<Repeated<K>> {
        let window = self.threshold.window_millis;
        self.extract(|begin| now.0.saturating_sub(begin.0) >= window)
    }

    /// All records, whether their window is over or not: for the end of a program.
    pub fn finish(&mut self) -> Vec<Repeated<K>> {
        self.extract(|_| true)
    }

    /// The moment at which [`Coalescer::due`] will have something to do; none when it will not.
    #[must_use]
    pub fn next_due(&self) -> Option<Millis> {
        let begin = self.windows.values().map(|window| window.begin).min()?;
        Some(Millis(begin.0.saturating_add(self.threshold.window_millis)))
    }

    fn open(&mut self, now: Millis, denial: &K) -> Offer {
        if self.windows.len() >= MAX_HELD_DENIALS {
            return Offer::Write;
        }
        let mut window = Window { begin: now, written: 1, held: None };
        let offer = if self.threshold.written == 0 { Offer::Held } else { Offer::Write };
        if offer == Offer::Held {
            window = Window { begin: now, written: 0, held: Some(Held { repeat: 1, first: now, last: now }) };
        }
        self.windows.insert(denial.clone(), window);
        offer
    }

    fn extract(&mut self, over: impl Fn(Millis) -> bool) -> Vec<Repeated<K>> {
        let finished = self.windows.extract_if(.., |_, window| over(window.begin));
        let record = |(denial, window): (K, Window)| {
            let Held { repeat, first, last } = window.held?;
            Some(Repeated { denial, repeat, first, last })
        };
        finished.filter_map(record).collect()
    }
}
