//! What the auto-reply knows and how it decides. Pure: it is told the time and asks nobody.

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};

use crate::extension::Message;
use crate::mesh::{Address, MessageHash};
use crate::protocol::SendMessage;

/// The title of every reply. A message that begins with it was written by a machine and is not answered.
pub(super) const TITLE: &str = "Auto-reply";

/// People and replies that are remembered; beyond that the oldest are forgotten.
const MEMORY: usize = 1000;

/// The longest reply, in bytes. The contract allows more.
pub(super) const MAX_TEXT: usize = 2048;

/// What is kept over restarts, as a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Kept {
    /// What is replied.
    pub(super) text: String,
    /// Nothing is replied at the moment.
    pub(super) paused: bool,
    /// What happened since the last reset.
    pub(super) counts: Counts,
}

/// What happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Counts {
    /// Messages that came in.
    pub(super) received: u64,
    /// Messages that were answered.
    pub(super) replied: u64,
    /// Messages that were not answered on purpose.
    pub(super) skipped: u64,
    /// Replies that could not be sent.
    pub(super) failed: u64,
}

/// Everything it knows.
#[derive(Debug)]
pub(super) struct Book {
    pub(super) kept: Kept,
    /// How long somebody is not answered again, in milliseconds.
    quiet_ms: u64,
    names: BTreeMap<Address, String>,
    /// When somebody was answered, oldest first.
    answered: VecDeque<(Address, u64)>,
    /// Our replies, oldest first.
    replies: VecDeque<MessageHash>,
    strangers: VecDeque<Address>,
}

/// What to do about a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Answer it like this.
    Reply(Box<SendMessage>),
    /// Do not, for this reason.
    Skip(&'static str),
}

impl Book {
    pub(super) fn new(kept: Kept, quiet_ms: u64) -> Self {
        Self {
            kept,
            quiet_ms,
            names: BTreeMap::new(),
            answered: VecDeque::new(),
            replies: VecDeque::new(),
            strangers: VecDeque::new(),
        }
    }

    /// The contacts, anew.
    pub(super) fn know(&mut self, names: impl IntoIterator<Item = (Address, String)>) {
        self.names = names.into_iter().take(MEMORY).collect();
    }

    /// How many contacts are known.
    pub(super) fn known(&self) -> usize {
        self.names.len()
    }

    /// What somebody is called.
    pub(super) fn name(&self, address: Address) -> Option<&str> {
        self.names.get(&address).map(String::as_str)
    }

    /// Whether this is the first message of somebody who is not a contact.
    pub(super) fn is_new_stranger(&mut self, address: Address) -> bool {
        if self.names.contains_key(&address) || self.strangers.contains(&address) {
            return false;
        }
        remember(&mut self.strangers, address);
        true
    }

    /// Decides about a message that came in at `now_ms`, and counts it.
    pub(super) fn consider(&mut self, message: &Message, now_ms: u64) -> Verdict {
        self.kept.counts.received += 1;
        let verdict = self.decide(message, now_ms);
        match &verdict {
            Verdict::Reply(_) => remember(&mut self.answered, (message.source_hash, now_ms)),
            Verdict::Skip(_) => self.kept.counts.skipped += 1,
        }
        verdict
    }

    /// A reply was taken for delivery.
    pub(super) fn replied(&mut self, hash: MessageHash) {
        self.kept.counts.replied += 1;
        remember(&mut self.replies, hash);
    }

    /// A reply could not be sent; its receiver may be answered next time.
    pub(super) fn failed(&mut self, to: Address) {
        self.kept.counts.failed += 1;
        self.answered.retain(|(address, _)| *address != to);
    }

    fn decide(&self, message: &Message, now_ms: u64) -> Verdict {
        if !message.incoming {
            return Verdict::Skip("it is our own");
        }
        if self.kept.paused {
            return Verdict::Skip("paused");
        }
        // Two machines that answer each other would never stop.
        if message.title.starts_with(TITLE) {
            return Verdict::Skip("a machine wrote it");
        }
        if message.reply_to.is_some_and(|hash| self.replies.contains(&hash)) {
            return Verdict::Skip("it answers one of our replies");
        }
        let sender = message.source_hash;
        let recent = |(address, at): &(Address, u64)| *address == sender && now_ms < at + self.quiet_ms;
        if self.answered.iter().any(recent) {
            return Verdict::Skip("its sender was answered a moment ago");
        }
        let hash = message.hash.to_string();
        Verdict::Reply(Box::new(SendMessage {
            destination_hash: sender,
            content: self.text_for(sender),
            title: Some(TITLE.to_owned()),
            method: None,
            reply_to: Some(message.hash),
            // The same message is answered once, also by a process that was started again in the middle of it.
            client_message_id: Some(format!("re-{}", &hash[..48])),
        }))
    }

    fn text_for(&self, address: Address) -> String {
        let name = self.name(address).unwrap_or("there");
        self.kept.text.replace("{name}", name)
    }
}

fn remember<T>(list: &mut VecDeque<T>, item: T) {
    if list.len() == MEMORY {
        list.pop_front();
    }
    list.push_back(item);
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use super::*;
    use crate::mesh::{DeliveryState, Method};

    fn message(number: u8, from: u8) -> Message {
        let source = Address([from; 16]);
        Message {
            hash: MessageHash([number; 32]),
            source_hash: source,
            destination_hash: Address([0; 16]),
            peer_hash: source,
            incoming: true,
            state: DeliveryState::Delivered,
            method: Method::Direct,
            title: Cow::Borrowed(""),
            content: Cow::Borrowed("hello?"),
            content_truncated: false,
            content_lossy: false,
            attachments: Vec::new(),
            reply_to: None,
            timestamp_ms: 0,
            rssi: None,
            snr: None,
            quality: None,
        }
    }

    fn book() -> Book {
        let kept = Kept { text: "hi {name}".into(), paused: false, counts: Counts::default() };
        Book::new(kept, 1000)
    }

    fn skip(verdict: &Verdict) -> &'static str {
        match verdict {
            Verdict::Skip(why) => why,
            Verdict::Reply(_) => "replied",
        }
    }

    #[test]
    fn a_message_is_answered_by_name_and_under_a_key_that_stays_the_same() {
        let mut book = book();
        book.know([(Address([7; 16]), "Ada".to_owned())]);
        let Verdict::Reply(reply) = book.consider(&message(1, 7), 0) else { panic!("no reply") };
        assert_eq!(reply.content, "hi Ada");
        assert_eq!(reply.reply_to, Some(MessageHash([1; 32])));
        let key = reply.client_message_id.clone().expect("a key");
        assert_eq!(key, format!("re-{}", "01".repeat(24)));
        assert!(key.len() <= 64);
        let mut again = self::book();
        let Verdict::Reply(second) = again.consider(&message(1, 7), 99) else { panic!("no reply") };
        assert_eq!(second.client_message_id, Some(key));
    }

    #[test]
    fn two_machines_do_not_answer_each_other_for_ever() {
        let mut book = book();
        assert_eq!(skip(&book.consider(&message(1, 7), 0)), "replied");
        book.replied(MessageHash([9; 32]));
        let machine = Message { title: Cow::Borrowed("Auto-reply"), ..message(2, 8) };
        assert_eq!(skip(&book.consider(&machine, 0)), "a machine wrote it");
        let answer = Message { reply_to: Some(MessageHash([9; 32])), ..message(3, 7) };
        assert_eq!(skip(&book.consider(&answer, 5000)), "it answers one of our replies");
        assert_eq!(skip(&book.consider(&message(4, 7), 999)), "its sender was answered a moment ago");
        assert_eq!(skip(&book.consider(&message(5, 7), 1000)), "replied");
        let own = Message { incoming: false, ..message(6, 6) };
        assert_eq!(skip(&book.consider(&own, 0)), "it is our own");
        assert_eq!(book.kept.counts, Counts { received: 6, replied: 1, skipped: 4, failed: 0 });
    }

    #[test]
    fn a_reply_that_failed_is_no_reason_to_be_silent() {
        let mut book = book();
        assert_eq!(skip(&book.consider(&message(1, 7), 0)), "replied");
        book.failed(Address([7; 16]));
        assert_eq!(skip(&book.consider(&message(2, 7), 1)), "replied");
    }

    #[test]
    fn a_stranger_is_new_once_and_what_is_remembered_is_bounded() {
        let mut book = book();
        book.know([(Address([7; 16]), "Ada".to_owned())]);
        assert!(!book.is_new_stranger(Address([7; 16])));
        assert!(book.is_new_stranger(Address([8; 16])));
        assert!(!book.is_new_stranger(Address([8; 16])));
        for n in 0..=MEMORY {
            book.is_new_stranger(Address((n as u128 + 1000).to_be_bytes()));
        }
        assert_eq!(book.strangers.len(), MEMORY);
    }
}
