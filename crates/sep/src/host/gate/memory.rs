//! Remembers which messages were sent under which key, so that one that is sent again after a crash goes out once.

use std::collections::HashMap;
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use tokio::sync::watch;

use crate::mesh::{DeliveryState, MeshError, MessageHash, Outgoing, Sent};
use crate::protocol::ExtensionId;

/// How long a key is remembered.
pub const REMEMBERED: Duration = Duration::from_secs(600);

/// How many keys of one extension are remembered. More than anybody may send within [`REMEMBERED`]; past it the oldest goes.
pub const MAX_KEYS: usize = 2048;

/// The keys under which extensions sent messages. It outlives their processes.
#[derive(Debug, Default)]
pub struct SendMemory {
    books: Mutex<HashMap<ExtensionId, HashMap<Box<str>, Entry>>>,
}

/// What became of a message that was sent under a key.
pub(super) type Delivery = Result<Sent, MeshError>;

#[derive(Debug)]
struct Entry {
    payload: [u8; 32],
    since_ms: u64,
    stage: Stage,
}

#[derive(Debug)]
enum Stage {
    /// It is on its way; whoever asks again waits for the same answer.
    Pending(watch::Receiver<Option<Delivery>>),
    Done(Sent),
}

/// What to do about a message with a key.
#[derive(Debug)]
pub(super) enum Claim {
    /// It is new: send it, and then say what became of it.
    New(Ticket),
    /// It is on its way: wait.
    Pending(watch::Receiver<Option<Delivery>>),
    /// It was sent.
    Done(Sent),
    /// Another message was sent under this key.
    Conflict,
}

/// The promise to say what became of a message. Dropped without a word, the message counts as not taken.
#[derive(Debug)]
pub(super) struct Ticket {
    memory: Arc<SendMemory>,
    extension: ExtensionId,
    key: Box<str>,
    outcome: watch::Sender<Option<Delivery>>,
}

impl Ticket {
    /// Where what became of it can be awaited.
    pub(super) fn outcome(&self) -> watch::Receiver<Option<Delivery>> {
        self.outcome.subscribe()
    }

    /// Says what became of it. A message that was not taken is forgotten, so that it can be tried again.
    pub(super) fn settle(self, delivery: Delivery) {
        self.say(delivery);
    }

    fn say(&self, delivery: Delivery) {
        let mut books = self.memory.books();
        if let Some(keys) = books.get_mut(&self.extension) {
            match &delivery {
                Ok(sent) => {
                    if let Some(entry) = keys.get_mut(&self.key) {
                        entry.stage = Stage::Done(*sent);
                    }
                }
                Err(_) => {
                    keys.remove(&self.key);
                }
            }
        }
        drop(books);
        self.outcome.send_replace(Some(delivery));
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if self.outcome.borrow().is_none() {
            self.say(Err(MeshError::Unavailable { why: "the host failed while it was sent".into() }));
        }
    }
}

impl SendMemory {
    /// Nothing is remembered.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    pub(super) fn claim(
        self: &Arc<Self>,
        now_ms: u64,
        extension: &ExtensionId,
        key: &str,
        message: &Outgoing,
    ) -> Claim {
        let payload = fingerprint(message);
        let mut books = self.books();
        let keys = books.entry(extension.clone()).or_default();
        if let Some(entry) = keys.get(key).filter(|entry| entry.is_fresh(now_ms)) {
            return match &entry.stage {
                _ if entry.payload != payload => Claim::Conflict,
                Stage::Pending(outcome) => Claim::Pending(outcome.clone()),
                Stage::Done(sent) => Claim::Done(*sent),
            };
        }
        if keys.len() >= MAX_KEYS {
            make_room(keys, now_ms);
        }
        let (outcome, pending) = watch::channel(None);
        let entry = Entry { payload, since_ms: now_ms, stage: Stage::Pending(pending) };
        keys.insert(key.into(), entry);
        let (memory, extension) = (Arc::clone(self), extension.clone());
        Claim::New(Ticket { memory, extension, key: key.into(), outcome })
    }

    /// What must survive the host: the messages that were taken and whose keys still count.
    #[must_use]
    pub fn to_json(&self, now_ms: u64) -> Vec<u8> {
        let mut stored = Vec::new();
        for (extension, keys) in &*self.books() {
            for (key, entry) in keys {
                if let (true, Stage::Done(sent)) = (entry.is_fresh(now_ms), &entry.stage) {
                    stored.push(Stored {
                        extension: extension.clone(),
                        key: key.to_string(),
                        payload: MessageHash(entry.payload),
                        since_ms: entry.since_ms,
                        hash: sent.hash,
                        state: sent.state,
                    });
                }
            }
        }
        stored.sort_by(|a, b| (&a.extension, &a.key).cmp(&(&b.extension, &b.key)));
        // Texts and numbers always serialise.
        serde_json::to_vec(&stored).unwrap_or_default()
    }

    /// Remembers again what [`SendMemory::to_json`] wrote. What is too old, or from the future, is left out.
    ///
    /// # Errors
    /// When the bytes are something else. Nothing is remembered then.
    pub fn from_json(json: &[u8], now_ms: u64) -> Result<Self, serde_json::Error> {
        let stored: Vec<Stored> = serde_json::from_slice(json)?;
        let memory = Self::new();
        let mut books = memory.books();
        for Stored { extension, key, payload, since_ms, hash, state } in stored {
            let entry = Entry { payload: payload.0, since_ms, stage: Stage::Done(Sent { hash, state }) };
            let keys = books.entry(extension).or_default();
            if entry.is_fresh(now_ms) && since_ms <= now_ms && keys.len() < MAX_KEYS {
                keys.insert(key.into(), entry);
            }
        }
        drop(books);
        Ok(memory)
    }

    /// Writes it to a file, whole or not at all.
    pub fn save(&self, path: &Path, now_ms: u64) -> io::Result<()> {
        let fresh = path.with_extension("new");
        let mut file = std::fs::File::create(&fresh)?;
        file.write_all(&self.to_json(now_ms))?;
        file.sync_all()?;
        std::fs::rename(&fresh, path)
    }

    /// Reads what [`SendMemory::save`] wrote. A missing file remembers nothing, and so does one that cannot be read as such:
    /// the worst that can follow is a message that goes out twice, and that is better than a host that does not start.
    pub fn load(path: &Path, now_ms: u64) -> io::Result<Self> {
        match std::fs::read(path) {
            Ok(json) => Ok(Self::from_json(&json, now_ms).unwrap_or_default()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self::new()),
            Err(error) => Err(error),
        }
    }

    fn books(&self) -> MutexGuard<'_, HashMap<ExtensionId, HashMap<Box<str>, Entry>>> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entry {
    fn is_fresh(&self, now_ms: u64) -> bool {
        let is_pending = matches!(self.stage, Stage::Pending(_));
        is_pending || u128::from(now_ms.saturating_sub(self.since_ms)) < REMEMBERED.as_millis()
    }
}

/// A message that was taken, as it is stored.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    extension: ExtensionId,
    key: String,
    payload: MessageHash,
    since_ms: u64,
    hash: MessageHash,
    state: DeliveryState,
}

fn make_room(keys: &mut HashMap<Box<str>, Entry>, now_ms: u64) {
    keys.retain(|_, entry| entry.is_fresh(now_ms));
    if keys.len() >= MAX_KEYS {
        let oldest = keys.iter().min_by_key(|(_, entry)| entry.since_ms).map(|(key, _)| key.clone());
        if let Some(oldest) = oldest {
            keys.remove(&oldest);
        }
    }
}

/// Two messages have the same one only if they say the same to the same.
fn fingerprint(message: &Outgoing) -> [u8; 32] {
    let Outgoing { destination, content, title, method, reply_to } = message;
    let mut hash = Sha256::new();
    hash.update(destination.0);
    // Lengths keep the fields apart.
    hash.update((content.len() as u64).to_be_bytes());
    hash.update(content);
    hash.update(format!("{title:?}\n{method:?}\n{reply_to:?}"));
    hash.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mesh::{Address, Refused};

    fn id() -> ExtensionId {
        ExtensionId::new("org.example").expect("an id")
    }

    fn message(content: &str) -> Outgoing {
        let destination = Address([1; 16]);
        Outgoing { destination, content: content.into(), title: None, method: None, reply_to: None }
    }

    const SENT: Sent = Sent { hash: MessageHash([5; 32]), state: DeliveryState::Outbound };

    fn send(memory: &Arc<SendMemory>, now_ms: u64, key: &str, content: &str) -> &'static str {
        match memory.claim(now_ms, &id(), key, &message(content)) {
            Claim::New(ticket) => {
                ticket.settle(Ok(SENT));
                "new"
            }
            Claim::Pending(_) => "pending",
            Claim::Done(sent) => {
                assert_eq!(sent, SENT);
                "done"
            }
            Claim::Conflict => "conflict",
        }
    }

    #[test]
    fn a_key_is_good_for_one_message_and_for_ten_minutes() {
        let memory = Arc::new(SendMemory::new());
        assert_eq!(send(&memory, 0, "k", "hello"), "new");
        assert_eq!(send(&memory, 599_999, "k", "hello"), "done");
        assert_eq!(send(&memory, 599_999, "k", "other"), "conflict");
        assert_eq!(send(&memory, 599_999, "l", "other"), "new");
        assert_eq!(send(&memory, 600_000, "k", "other"), "new", "ten minutes are over");
    }

    #[test]
    fn who_asks_while_it_is_on_its_way_gets_the_same_answer() {
        let memory = Arc::new(SendMemory::new());
        let Claim::New(ticket) = memory.claim(0, &id(), "k", &message("a")) else { panic!("new") };
        let Claim::Pending(waiting) = memory.claim(700_000, &id(), "k", &message("a")) else {
            panic!("it is on its way, however long it takes")
        };
        assert!(matches!(memory.claim(0, &id(), "k", &message("b")), Claim::Conflict));
        ticket.settle(Ok(SENT));
        assert_eq!(*waiting.borrow(), Some(Ok(SENT)));
    }

    #[test]
    fn a_message_that_was_refused_can_be_tried_again() {
        let memory = Arc::new(SendMemory::new());
        let Claim::New(ticket) = memory.claim(0, &id(), "k", &message("a")) else { panic!("new") };
        ticket.settle(Err(MeshError::Refused(Refused::NoPath)));
        assert_eq!(send(&memory, 1, "k", "b"), "new");
        let Claim::New(ticket) = memory.claim(2, &id(), "l", &message("a")) else { panic!("new") };
        let waiting = ticket.outcome();
        drop(ticket);
        assert!(matches!(*waiting.borrow(), Some(Err(MeshError::Unavailable { .. }))));
        assert_eq!(send(&memory, 3, "l", "b"), "new", "whoever sent it is gone");
    }

    #[test]
    fn the_memory_of_one_extension_is_bounded_and_the_oldest_goes_first() {
        let memory = Arc::new(SendMemory::new());
        for i in 0..MAX_KEYS {
            assert_eq!(send(&memory, i as u64, &format!("k{i}"), "a"), "new");
        }
        assert_eq!(send(&memory, 3000, "k0", "a"), "done");
        assert_eq!(send(&memory, 3000, "one more", "a"), "new");
        assert_eq!(send(&memory, 3000, "k1", "a"), "done");
        assert_eq!(send(&memory, 3000, "k0", "a"), "new", "it had to go");
    }

    #[test]
    fn what_was_sent_is_remembered_by_the_next_host_and_a_broken_file_is_not_fatal() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("sent.json");
        let load = |now_ms| Arc::new(SendMemory::load(&path, now_ms).expect("read, or no file"));
        let memory = load(0);
        assert_eq!(send(&memory, 1000, "k", "a"), "new");
        let Claim::New(pending) = memory.claim(1000, &id(), "p", &message("a")) else { panic!("new") };
        memory.save(&path, 1000).expect("saved");
        drop(pending);
        let again = load(2000);
        assert_eq!(send(&again, 2000, "k", "a"), "done");
        assert_eq!(send(&again, 2000, "p", "a"), "new", "nobody knows what became of it");
        assert_eq!(send(&load(601_000), 601_000, "k", "a"), "new");
        assert_eq!(send(&load(999), 999, "k", "a"), "new", "from the future");
        std::fs::write(&path, b"[{\"extension\":").expect("written");
        assert_eq!(send(&load(2000), 2000, "k", "a"), "new");
    }
}
