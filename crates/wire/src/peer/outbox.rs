//! What waits to be written: three lanes, the most urgent first. Pure.

use std::collections::VecDeque;

use super::config::{Lane, OutboxLimits};

/// Lines that wait to be written.
#[derive(Debug)]
pub(super) struct Outbox {
    limits: OutboxLimits,
    control: VecDeque<Letter>,
    actions: VecDeque<Letter>,
    events: VecDeque<Letter>,
    reply_bytes: usize,
    event_bytes: usize,
    events_dropped: u64,
}

/// A line and what it occupies.
#[derive(Debug)]
struct Letter {
    line: Vec<u8>,
    /// Whose room it takes: a reply's, or a sender's that paid `cost` for it.
    account: Account,
}

#[derive(Clone, Copy, Debug)]
enum Account {
    Reply,
    Sender { cost: u32 },
    Event,
}

/// What a batch of lines for the writer comes to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Taken {
    pub(super) lines: u64,
    /// What senders paid and may now be given back.
    pub(super) refund: usize,
}

impl Outbox {
    pub(super) fn new(limits: OutboxLimits) -> Self {
        Self {
            limits,
            control: VecDeque::new(),
            actions: VecDeque::new(),
            events: VecDeque::new(),
            reply_bytes: 0,
            event_bytes: 0,
            events_dropped: 0,
        }
    }

    /// Adds an answer. Answers are never refused; no further request is started while [`Outbox::replies_are_full`].
    pub(super) fn push_reply(&mut self, line: Vec<u8>) {
        self.reply_bytes += line.len();
        self.control.push_back(Letter { line, account: Account::Reply });
    }

    /// Adds a call or a notification whose sender has paid for its room.
    pub(super) fn push_paid(&mut self, lane: Lane, line: Vec<u8>, cost: u32) {
        let letter = Letter { line, account: Account::Sender { cost } };
        match lane {
            Lane::Control => self.control.push_back(letter),
            Lane::Action | Lane::Event => self.actions.push_back(letter),
        }
    }

    /// Adds an event and drops the oldest ones if there are too many; returns how many were dropped.
    pub(super) fn push_event(&mut self, line: Vec<u8>) -> u64 {
        self.event_bytes += line.len();
        self.events.push_back(Letter { line, account: Account::Event });
        let mut dropped = 0;
        while (self.events.len() > self.limits.events || self.event_bytes > self.limits.event_bytes)
            && let Some(oldest) = self.events.pop_front()
        {
            self.event_bytes -= oldest.line.len();
            dropped += 1;
        }
        self.events_dropped += dropped;
        dropped
    }

    /// Moves lines to the end of `buffer`, most urgent first, until it has `enough` bytes.
    pub(super) fn take(&mut self, buffer: &mut Vec<u8>, enough: usize, mut each: impl FnMut(&[u8])) -> Taken {
        let mut taken = Taken::default();
        while buffer.len() < enough
            && let Some(letter) = self.pop()
        {
            match letter.account {
                Account::Reply => self.reply_bytes -= letter.line.len(),
                Account::Sender { cost } => taken.refund += cost as usize,
                Account::Event => self.event_bytes -= letter.line.len(),
            }
            each(&letter.line);
            taken.lines += 1;
            buffer.extend_from_slice(&letter.line);
            buffer.push(b'\n');
        }
        taken
    }

    /// Whether so many answers wait that no further request should be started.
    pub(super) fn replies_are_full(&self) -> bool {
        self.reply_bytes > self.limits.reply_bytes
    }

    pub(super) fn is_empty(&self) -> bool {
        self.control.is_empty() && self.actions.is_empty() && self.events.is_empty()
    }

    pub(super) fn events_dropped(&self) -> u64 {
        self.events_dropped
    }

    /// How many bytes wait.
    pub(super) fn bytes(&self) -> usize {
        let lanes = [&self.control, &self.actions, &self.events];
        lanes.into_iter().flatten().map(|letter| letter.line.len() + 1).sum()
    }

    pub(super) fn clear(&mut self) {
        self.control.clear();
        self.actions.clear();
        self.events.clear();
        (self.reply_bytes, self.event_bytes) = (0, 0);
    }

    fn pop(&mut self) -> Option<Letter> {
        self.control.pop_front().or_else(|| self.actions.pop_front()).or_else(|| self.events.pop_front())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: OutboxLimits = OutboxLimits { bytes: 100, reply_bytes: 4, events: 3, event_bytes: 10 };

    fn take(outbox: &mut Outbox, enough: usize) -> (String, Taken) {
        let mut buffer = Vec::new();
        let taken = outbox.take(&mut buffer, enough, |_| {});
        (String::from_utf8(buffer).unwrap(), taken)
    }

    #[test]
    fn answers_and_control_overtake_actions_and_actions_overtake_events() {
        let mut outbox = Outbox::new(LIMITS);
        outbox.push_event(b"event".to_vec());
        outbox.push_paid(Lane::Action, b"action".to_vec(), 7);
        outbox.push_paid(Lane::Control, b"control".to_vec(), 8);
        outbox.push_reply(b"reply".to_vec());
        assert_eq!(outbox.bytes(), 27);
        let (text, taken) = take(&mut outbox, 1000);
        assert_eq!(text, "control\nreply\naction\nevent\n");
        assert_eq!(taken, Taken { lines: 4, refund: 15 });
        assert!(outbox.is_empty());
    }

    #[test]
    fn a_batch_is_bounded_but_never_empty_while_something_waits() {
        let mut outbox = Outbox::new(LIMITS);
        outbox.push_reply(b"a long line".to_vec());
        outbox.push_reply(b"another".to_vec());
        assert_eq!(take(&mut outbox, 1).0, "a long line\n");
        assert_eq!(take(&mut outbox, 1).0, "another\n");
    }

    #[test]
    fn the_oldest_events_are_dropped_and_counted_one_past_the_limit() {
        let mut outbox = Outbox::new(LIMITS);
        for event in ["1", "2", "3"] {
            assert_eq!(outbox.push_event(event.into()), 0);
        }
        assert_eq!(outbox.push_event(b"4".to_vec()), 1);
        assert_eq!(outbox.push_event(b"88888888".to_vec()), 1);
        assert_eq!(outbox.events_dropped(), 2);
        assert_eq!(outbox.push_event(b"999".to_vec()), 3, "bytes count too");
        assert_eq!(take(&mut outbox, 1000).0, "999\n");
        assert_eq!(outbox.push_event(vec![b'x'; 11]), 1, "an event that never fits is dropped itself");
        assert_eq!(outbox.events_dropped(), 6);
        assert!(outbox.is_empty());
    }

    #[test]
    fn replies_are_full_one_past_the_limit_and_not_at_it() {
        let mut outbox = Outbox::new(LIMITS);
        outbox.push_reply(b"1234".to_vec());
        assert!(!outbox.replies_are_full());
        outbox.push_reply(b"5".to_vec());
        assert!(outbox.replies_are_full());
        take(&mut outbox, 1);
        assert!(!outbox.replies_are_full());
    }
}
