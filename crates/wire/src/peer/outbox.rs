//! What waits to be written: three lanes, the most urgent first; calls in no hurry come just before the events. Pure.

use std::collections::VecDeque;

use super::config::{Lane, OutboxLimits};
use super::handler::Receipt;

/// Lines that wait to be written.
#[derive(Debug)]
pub(super) struct Outbox {
    limits: OutboxLimits,
    control: VecDeque<Letter>,
    actions: VecDeque<Letter>,
    /// Calls on the lane of events, which are never dropped.
    slow_calls: VecDeque<Letter>,
    events: VecDeque<Letter>,
    reply_bytes: usize,
    event_bytes: usize,
    events_dropped: u64,
}

/// An answer, and who is told when it has been written.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) line: Vec<u8>,
    pub(super) receipts: Vec<Receipt>,
}

/// A line, or several with newlines between them, and what they occupy. A letter without a line is only a mark.
#[derive(Debug)]
struct Letter {
    line: Vec<u8>,
    receipts: Vec<Receipt>,
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
#[derive(Debug, Default)]
pub(super) struct Taken {
    pub(super) lines: u64,
    /// What senders paid and may now be given back.
    pub(super) refund: usize,
    /// Who is told when the lines have been written.
    pub(super) receipts: Vec<Receipt>,
}

impl Outbox {
    pub(super) fn new(limits: OutboxLimits) -> Self {
        Self {
            limits,
            control: VecDeque::new(),
            actions: VecDeque::new(),
            slow_calls: VecDeque::new(),
            events: VecDeque::new(),
            reply_bytes: 0,
            event_bytes: 0,
            events_dropped: 0,
        }
    }

    /// Adds an answer. Answers are never refused; no further request is started while [`Outbox::replies_are_full`].
    pub(super) fn push_reply(&mut self, Reply { line, receipts }: Reply) {
        self.reply_bytes += line.len();
        self.control.push_back(Letter { line, receipts, account: Account::Reply });
    }

    /// Adds a call whose sender has paid for its room.
    pub(super) fn push_call(&mut self, lane: Lane, line: Vec<u8>, cost: u32) {
        let letter = Letter { line, receipts: Vec::new(), account: Account::Sender { cost } };
        match lane {
            Lane::Control => self.control.push_back(letter),
            Lane::Action => self.actions.push_back(letter),
            Lane::Event => self.slow_calls.push_back(letter),
        }
    }

    /// Adds a notification whose sender has paid for its room.
    pub(super) fn push_paid(&mut self, lane: Lane, line: Vec<u8>, cost: u32) {
        let letter = Letter { line, receipts: Vec::new(), account: Account::Sender { cost } };
        self.lane(lane).push_back(letter);
    }

    /// Marks a place: the receipt is due when everything that is before it has been written.
    pub(super) fn push_mark(&mut self, lane: Lane, receipt: Receipt) {
        let mark = Letter { line: Vec::new(), receipts: vec![receipt], account: Account::Sender { cost: 0 } };
        self.lane(lane).push_back(mark);
    }

    /// Adds an event and drops the oldest ones if there are too many; returns how many were dropped.
    pub(super) fn push_event(&mut self, line: Vec<u8>) -> u64 {
        self.event_bytes += line.len();
        self.events.push_back(Letter { line, receipts: Vec::new(), account: Account::Event });
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
            && let Some(mut letter) = self.pop()
        {
            taken.receipts.append(&mut letter.receipts);
            match letter.account {
                Account::Reply => self.reply_bytes -= letter.line.len(),
                Account::Sender { cost } => taken.refund += cost as usize,
                Account::Event => self.event_bytes -= letter.line.len(),
            }
            if letter.line.is_empty() {
                continue;
            }
            each(&letter.line);
            taken.lines += 1 + memchr::memchr_iter(b'\n', &letter.line).count() as u64;
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
        [&self.control, &self.actions, &self.slow_calls, &self.events].into_iter().all(VecDeque::is_empty)
    }

    pub(super) fn events_dropped(&self) -> u64 {
        self.events_dropped
    }

    /// How many bytes wait.
    pub(super) fn bytes(&self) -> usize {
        let lanes = [&self.control, &self.actions, &self.slow_calls, &self.events];
        lanes.into_iter().flatten().map(|letter| letter.line.len() + 1).sum()
    }

    pub(super) fn clear(&mut self) {
        self.control.clear();
        self.actions.clear();
        self.slow_calls.clear();
        self.events.clear();
        (self.reply_bytes, self.event_bytes) = (0, 0);
    }

    fn lane(&mut self, lane: Lane) -> &mut VecDeque<Letter> {
        match lane {
            Lane::Control => &mut self.control,
            Lane::Action | Lane::Event => &mut self.actions,
        }
    }

    fn pop(&mut self) -> Option<Letter> {
        let lanes = [&mut self.control, &mut self.actions, &mut self.slow_calls, &mut self.events];
        lanes.into_iter().find_map(VecDeque::pop_front)
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

    fn reply(line: &str) -> Reply {
        Reply { line: line.into(), receipts: Vec::new() }
    }

    #[test]
    fn answers_and_control_overtake_actions_and_actions_overtake_events() {
        let mut outbox = Outbox::new(LIMITS);
        outbox.push_event(b"event".to_vec());
        outbox.push_paid(Lane::Action, b"action".to_vec(), 7);
        outbox.push_paid(Lane::Control, b"control".to_vec(), 8);
        outbox.push_reply(reply("reply"));
        assert_eq!(outbox.bytes(), 27);
        let (text, taken) = take(&mut outbox, 1000);
        assert_eq!(text, "control\nreply\naction\nevent\n");
        assert_eq!((taken.lines, taken.refund), (4, 15));
        assert!(outbox.is_empty());
    }

    #[test]
    fn calls_travel_on_their_lanes_and_are_never_dropped() {
        let mut outbox = Outbox::new(LIMITS);
        outbox.push_call(Lane::Event, b"acknowledged event".to_vec(), 18);
        outbox.push_call(Lane::Action, b"action".to_vec(), 6);
        outbox.push_call(Lane::Control, b"health".to_vec(), 0);
        for event in ["1", "2", "3", "4"] {
            outbox.push_event(event.into());
        }
        let (text, taken) = take(&mut outbox, 1000);
        assert_eq!(text, "health\naction\nacknowledged event\n2\n3\n4\n");
        assert_eq!(taken.refund, 24);
        outbox.push_call(Lane::Event, b"x".to_vec(), 1);
        assert!(!outbox.is_empty());
        assert_eq!(outbox.bytes(), 2);
        outbox.clear();
        assert!(outbox.is_empty());
    }

    #[test]
    fn a_batch_is_bounded_but_never_empty_while_something_waits() {
        let mut outbox = Outbox::new(LIMITS);
        outbox.push_reply(reply("a long line"));
        outbox.push_reply(reply("another"));
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
    fn a_mark_comes_with_what_was_sent_before_it_and_is_no_line() {
        let mut outbox = Outbox::new(LIMITS);
        let (receipt, _written) = tokio::sync::oneshot::channel();
        outbox.push_paid(Lane::Action, b"one\ntwo".to_vec(), 7);
        outbox.push_mark(Lane::Action, receipt);
        outbox.push_paid(Lane::Action, b"three".to_vec(), 5);
        let (text, taken) = take(&mut outbox, 1);
        assert_eq!((text.as_str(), taken.lines, taken.receipts.len()), ("one\ntwo\n", 2, 0));
        let (text, taken) = take(&mut outbox, 1);
        assert_eq!((text.as_str(), taken.lines, taken.receipts.len()), ("three\n", 1, 1));
    }

    #[test]
    fn replies_are_full_one_past_the_limit_and_not_at_it() {
        let mut outbox = Outbox::new(LIMITS);
        outbox.push_reply(reply("1234"));
        assert!(!outbox.replies_are_full());
        outbox.push_reply(reply("5"));
        assert!(outbox.replies_are_full());
        take(&mut outbox, 1);
        assert!(!outbox.replies_are_full());
    }
}
