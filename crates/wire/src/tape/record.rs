//! Recording: a shared handle that every adapter of a conversation writes to, bounded, and never in the way.

use std::fmt;
use std::io::Write;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::base64;

/// Which way something went, seen from this side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// From the other side to this one.
    In,
    /// From this side to the other.
    Out,
}

/// How large a tape may become, in bytes of its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TapeSize(pub u64);

/// What a tape holds and what it missed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TapeSummary {
    /// Entries on the tape.
    pub entries: u64,
    /// Entries that found no room, or could not be written.
    pub missed: u64,
}

/// A tape recorder. Clones record to the same tape.
///
/// Recording never fails the conversation: when the tape is full or its file breaks, it stops and counts what it misses.
#[derive(Clone)]
pub struct Tape {
    onto: Onto,
    with: Option<Arc<str>>,
}

#[derive(Clone)]
enum Onto {
    Deck(Arc<Mutex<Deck>>),
    Listener(Arc<dyn Listener>),
}

/// Hears a conversation as it happens, instead of reading a recording of it.
pub trait Listener: Send + Sync + 'static {
    /// A line, without its newline; of one that was thrown away, its beginning. Called in the midst of the conversation: it
    /// must return at once.
    fn heard(&self, dir: Direction, line: &[u8]);
}

struct Deck {
    output: Box<dyn Write + Send>,
    started: Instant,
    room: u64,
    running: bool,
    summary: TapeSummary,
}

/// The last line of a tape that reached its limit.
const FULL: &str = "{\"full\":true}\n";

impl Tape {
    /// A tape that is written to `output`; wrap a file in a buffered writer. Time starts now.
    pub fn new(output: impl Write + Send + 'static, size: TapeSize) -> Self {
        let deck = Deck {
            output: Box::new(output),
            started: Instant::now(),
            room: size.0,
            running: true,
            summary: TapeSummary { entries: 0, missed: 0 },
        };
        Self { onto: Onto::Deck(Arc::new(Mutex::new(deck))), with: None }
    }

    /// No tape at all: what would be recorded is told to `listener`, which bounds what it keeps by itself.
    pub fn heard_by(listener: Arc<dyn Listener>) -> Self {
        Self { onto: Onto::Listener(listener), with: None }
    }

    /// The same tape, for a conversation with somebody else: what it records carries the name of that one.
    #[must_use]
    pub fn with(&self, whom: &str) -> Self {
        Self { onto: self.onto.clone(), with: Some(whom.into()) }
    }

    /// Records a line, given without its newline.
    pub fn line(&self, dir: Direction, line: &[u8]) {
        let deck = match &self.onto {
            Onto::Deck(deck) => deck,
            Onto::Listener(listener) => return listener.heard(dir, line),
        };
        match std::str::from_utf8(line) {
            Ok(text) => lock(deck).record(self.with.as_deref(), dir, Some(text), None),
            Err(_) => {
                let mut bytes = line.to_vec();
                bytes.push(b'\n');
                self.bytes(dir, &bytes);
            }
        }
    }

    /// Records bytes that are not a line of text.
    pub fn bytes(&self, dir: Direction, bytes: &[u8]) {
        match &self.onto {
            Onto::Deck(deck) => {
                lock(deck).record(self.with.as_deref(), dir, None, Some(&base64::encode(bytes)));
            }
            Onto::Listener(listener) => listener.heard(dir, bytes),
        }
    }

    /// Flushes the tape and says what is on it: nothing, if a listener hears it.
    pub fn summary(&self) -> TapeSummary {
        let Onto::Deck(deck) = &self.onto else { return TapeSummary { entries: 0, missed: 0 } };
        let mut deck = lock(deck);
        if deck.output.flush().is_err() {
            deck.running = false;
        }
        deck.summary
    }
}

fn lock(deck: &Mutex<Deck>) -> MutexGuard<'_, Deck> {
    deck.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Deck {
    fn record(&mut self, with: Option<&str>, dir: Direction, line: Option<&str>, bytes: Option<&str>) {
        if !self.running {
            self.summary.missed += 1;
            return;
        }
        let t_us = u64::try_from(self.started.elapsed().as_micros()).unwrap_or(u64::MAX);
        // Strings, numbers and an enum without data always serialise.
        let mut entry = serde_json::to_vec(&Written { dir, t_us, with, line, bytes }).unwrap_or_default();
        entry.push(b'\n');
        let fits = entry.len() as u64 + FULL.len() as u64 <= self.room;
        let written =
            if fits { self.output.write_all(&entry) } else { self.output.write_all(FULL.as_bytes()) };
        if fits && written.is_ok() {
            self.room -= entry.len() as u64;
            self.summary.entries += 1;
        } else {
            self.running = false;
            self.summary.missed += 1;
        }
    }
}

impl fmt::Debug for Tape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let summary = match &self.onto {
            Onto::Deck(deck) => Some(lock(deck).summary),
            Onto::Listener(_) => None,
        };
        f.debug_struct("Tape").field("summary", &summary).finish_non_exhaustive()
    }
}

#[derive(Serialize)]
struct Written<'a> {
    dir: Direction,
    t_us: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    with: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<&'a str>,
}
