//! What waits for one extension: bounded by count and bytes, with exact numbers for what was lost. Pure.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::value::RawValue;

use super::fifo::{Fifos, Place};
use super::topic::{Class, Topic};
use crate::mesh::Address;
use crate::protocol::Dropped;

/// How much may wait, and how much may be on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Events that may wait.
    pub events: usize,
    /// Bytes of their data that may wait.
    pub bytes: usize,
    /// Events that may be on their way without being acknowledged.
    pub window: usize,
}

/// An event for one extension.
#[derive(Clone, Debug)]
pub struct Event {
    /// What it is about.
    pub topic: Topic,
    /// Of `peer.*`, whom: a newer event about them replaces an older one when there is no room.
    pub about: Option<Address>,
    /// When it happened, since the epoch.
    pub time_ms: u64,
    /// What happened; shared with the other extensions that hear the same.
    pub data: Arc<RawValue>,
}

/// An event on its way.
#[derive(Clone, Debug)]
pub struct Delivery {
    /// Its number in this session.
    pub seq: u64,
    /// The event.
    pub event: Event,
    /// What was dropped since the delivery before.
    pub dropped: Option<Dropped>,
}

/// What became of all events. `offered` is the sum of the next four.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// There were for this session.
    pub offered: u64,
    /// Were sent.
    pub delivered: u64,
    /// Found no room, or were withdrawn.
    pub dropped: u64,
    /// Were replaced by newer ones about the same.
    pub coalesced: u64,
    /// Wait.
    pub waiting: u64,
    /// Bytes of those that wait.
    pub waiting_bytes: usize,
    /// Sent and not acknowledged.
    pub in_flight: usize,
}

/// What an offer cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Loss {
    /// Events that were dropped, perhaps the offered one itself.
    pub dropped: u64,
    /// Events that were replaced.
    pub coalesced: u64,
}

/// The events of one session that wait, in order.
#[derive(Debug)]
pub struct Queue {
    bounds: Bounds,
    waiting: Fifos<Waiting, { Class::COUNT }>,
    /// The newest one that waits about each peer.
    peers: HashMap<Address, Place>,
    bytes: usize,
    next_seq: u64,
    in_flight: usize,
    lost: Option<Dropped>,
    tally: Tally,
}

#[derive(Debug)]
struct Waiting {
    seq: u64,
    event: Event,
}

impl Queue {
    /// An empty queue; the first event is number 1.
    #[must_use]
    pub fn new(bounds: Bounds) -> Self {
        Self {
            bounds,
            waiting: Fifos::new(),
            peers: HashMap::new(),
            bytes: 0,
            next_seq: 1,
            in_flight: 0,
            lost: None,
            tally: Tally::default(),
        }
    }

    /// Takes an event, whatever it costs: when there is no room, a newer event about a peer replaces an older one about the
    /// same, and otherwise the oldest of the same class go. If there are none, or it never fits, it goes itself.
    ///
    /// Each event is added once and removed once, so this takes constant time over many of them.
    pub fn offer(&mut self, event: Event) -> Loss {
        let seq = self.next_seq;
        self.next_seq += 1;
        self.tally.offered += 1;
        let mut loss = Loss::default();
        let size = event.data.get().len();
        if size > self.bounds.bytes || self.bounds.events == 0 {
            self.lose(seq);
            return Loss { dropped: 1, coalesced: 0 };
        }
        let class = event.topic.class();
        while !self.has_room(size) {
            let same = event.about.and_then(|about| self.peers.get(&about).copied());
            if let Some(place) = same {
                self.take_out(class, place);
                self.tally.coalesced += 1;
                loss.coalesced += 1;
                continue;
            }
            loss.dropped += 1;
            match self.waiting.first(class.index()) {
                Some(place) => {
                    let oldest = self.take_out(class, place);
                    self.lose(oldest.seq);
                }
                None => {
                    self.lose(seq);
                    return loss;
                }
            }
        }
        self.bytes += size;
        let about = event.about;
        let place = self.waiting.push(class.index(), Waiting { seq, event });
        if let Some(about) = about {
            self.peers.insert(about, place);
        }
        loss
    }

    /// The next event, if the window has room for it.
    pub fn deliver(&mut self) -> Option<Delivery> {
        if self.in_flight >= self.bounds.window.max(1) {
            return None;
        }
        let (class, place) = self.oldest()?;
        let Waiting { seq, event } = self.take_out(class, place);
        self.in_flight += 1;
        self.tally.delivered += 1;
        Some(Delivery { seq, event, dropped: self.lost.take() })
    }

    /// One of those on their way was acknowledged.
    pub fn acknowledge(&mut self) {
        self.in_flight = self.in_flight.saturating_sub(1);
    }

    /// Changes how many may be on their way.
    pub fn set_window(&mut self, window: usize) {
        self.bounds.window = window;
    }

    /// Withdraws what waits and is not wanted any more; it counts as dropped.
    pub fn withdraw(&mut self, unwanted: impl Fn(Topic) -> bool) {
        for (class, place) in self.in_order() {
            if unwanted(self.waiting[place].event.topic) {
                let gone = self.take_out(class, place);
                self.lose(gone.seq);
            }
        }
    }

    /// Forgets what waits and is not wanted, as if it had never been offered, and numbers the others anew. Only before the
    /// first delivery: then nobody has seen a number.
    pub fn restrict(&mut self, wanted: impl Fn(Topic) -> bool) {
        if self.tally.delivered > 0 {
            return self.withdraw(|topic| !wanted(topic));
        }
        for (class, place) in self.in_order() {
            if !wanted(self.waiting[place].event.topic) {
                self.take_out(class, place);
                self.tally.offered -= 1;
            }
        }
        let gone = self.tally.dropped;
        self.lost = (gone > 0).then_some(Dropped { count: gone, from_seq: 1, to_seq: gone });
        let mut seq = gone + self.tally.coalesced;
        for (_, place) in self.in_order() {
            seq += 1;
            self.waiting[place].seq = seq;
        }
        self.next_seq = seq + 1;
    }

    /// Leaves only the newest event about each peer.
    pub fn coalesce(&mut self) {
        for (class, place) in self.in_order() {
            let about = self.waiting[place].event.about;
            if about.is_some_and(|about| self.peers.get(&about) != Some(&place)) {
                self.take_out(class, place);
                self.tally.coalesced += 1;
            }
        }
    }

    /// What became of all events so far.
    #[must_use]
    pub fn tally(&self) -> Tally {
        Tally {
            waiting: self.waiting.len() as u64,
            waiting_bytes: self.bytes,
            in_flight: self.in_flight,
            ..self.tally
        }
    }

    fn has_room(&self, size: usize) -> bool {
        self.waiting.len() < self.bounds.events && self.bytes + size <= self.bounds.bytes
    }

    /// The oldest of all that wait.
    fn oldest(&self) -> Option<(Class, Place)> {
        let first = |class: Class| Some((class, self.waiting.first(class.index())?));
        CLASSES.into_iter().filter_map(first).min_by_key(|(_, place)| self.waiting[*place].seq)
    }

    fn in_order(&self) -> Vec<(Class, Place)> {
        let of = |class: Class| self.waiting.places(class.index()).map(move |place| (class, place));
        let mut all: Vec<_> = CLASSES.into_iter().flat_map(of).collect();
        all.sort_by_key(|(_, place)| self.waiting[*place].seq);
        all
    }

    fn take_out(&mut self, class: Class, place: Place) -> Waiting {
        let waiting = self.waiting.remove(class.index(), place);
        self.bytes -= waiting.event.data.get().len();
        if let Some(about) = waiting.event.about
            && self.peers.get(&about) == Some(&place)
        {
            self.peers.remove(&about);
        }
        waiting
    }

    fn lose(&mut self, seq: u64) {
        self.tally.dropped += 1;
        let lost = self.lost.get_or_insert(Dropped { count: 0, from_seq: seq, to_seq: seq });
        lost.count += 1;
        lost.from_seq = lost.from_seq.min(seq);
        lost.to_seq = lost.to_seq.max(seq);
    }
}

const CLASSES: [Class; Class::COUNT] = [Class::Message, Class::Peer, Class::Contact];

#[cfg(test)]
#[path = "queue_tests.rs"]
mod tests;
