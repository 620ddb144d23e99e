//! A recorded conversation played back: each request gets, under its own id, what the next recorded one of its method got.

use std::collections::{HashMap, VecDeque};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use outrigger_wire::tape::{Direction, Entry, Said, read_tape};

use super::conversation::{Last, ROOM};
use super::object::{Speaker, write_under};
use super::reply::{Problem, Reply};
use crate::protocol::{Event, Incoming};

/// What is left to be played, by method.
#[derive(Debug)]
pub(super) struct Replay {
    rest: Mutex<HashMap<String, VecDeque<Vec<String>>>>,
}

/// Why a recording cannot be played.
#[derive(Debug, thiserror::Error)]
pub(super) enum ReplayError {
    #[error("cannot read {path}: {error}")]
    Io { path: String, error: std::io::Error },
    #[error("{path}: {error}")]
    NoTape { path: String, error: outrigger_wire::tape::TapeError },
}

impl Replay {
    pub(super) fn load(path: &Path) -> Result<Self, ReplayError> {
        let shown = || path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|error| ReplayError::Io { path: shown(), error })?;
        let entries = read_tape(&text).map_err(|error| ReplayError::NoTape { path: shown(), error })?;
        Ok(Self::of(entries))
    }

    fn of(entries: Vec<Entry>) -> Self {
        // The requests in the order in which they came, each with its events. An id may be used again after its end, so the
        // last request of an id is the one that an event belongs to.
        let mut recorded: Vec<(String, Vec<String>)> = Vec::new();
        let mut by_id: HashMap<String, usize> = HashMap::new();
        for Entry { dir, with, said, .. } in entries {
            let (None, Said::Line(line)) = (with, said) else { continue };
            match dir {
                Direction::In => {
                    if let Incoming::Request { id, method, .. } = Incoming::read(&line) {
                        by_id.insert(id.into_owned(), recorded.len());
                        recorded.push((method.into_owned(), Vec::new()));
                    }
                }
                Direction::Out => {
                    let Ok(event) = Event::read(&line) else { continue };
                    // Heartbeats are made by the clock, and there is none here.
                    let place = event.id.filter(|_| event.kind != "heartbeat").and_then(|id| by_id.get(&*id));
                    if let Some(place) = place {
                        recorded[*place].1.push(line.clone());
                    }
                }
            }
        }
        let mut rest: HashMap<String, VecDeque<Vec<String>>> = HashMap::new();
        for (method, events) in recorded {
            rest.entry(method).or_default().push_back(events);
        }
        Self { rest: Mutex::new(rest) }
    }

    /// Plays the next recorded request of that method. The future waits only for the host to read.
    pub(super) fn play(&self, reply: Reply, method: &str) -> impl Future<Output = ()> + Send + 'static {
        let mut rest = self.rest.lock().unwrap_or_else(PoisonError::into_inner);
        let events = rest.get_mut(method).and_then(VecDeque::pop_front);
        if events.is_none() {
            let message = format!("there is no further {method} in the recording");
            reply.fail(&Problem::Refused { code: "unsupported", message });
        }
        let cut = method == "sendMessage"
            && !events.iter().flatten().next_back().is_some_and(|line| is_terminal(line));
        async move {
            let events = events.unwrap_or_default();
            for (at, event) in events.iter().enumerate() {
                reply.conversation.room(ROOM).await;
                let last = if at + 1 == events.len() && !cut { Last::Yes } else { Last::No };
                let write = |line: &mut Vec<u8>| {
                    write_under(event, Speaker::Sidecar, &reply.ticket.quoted, line);
                };
                reply.conversation.say_of(&reply.ticket, last, write);
            }
            if cut {
                let message = "the recording ends in the middle of this turn".to_owned();
                reply.fail(&Problem::Refused { code: "unsupported", message });
            }
            reply.silence();
        }
    }
}

fn is_terminal(line: &str) -> bool {
    Event::read(line).is_ok_and(|event| event.is_terminal())
}
