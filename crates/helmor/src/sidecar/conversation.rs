//! The conversation with the host: the lines that wait to be read, the requests in flight and the questions that are open.
//!
//! All of it is under one lock, so that the order on the wire is the order in which things happened: nothing can be said of a
//! request after its end, and no question is open that the host has not been told of.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use outrigger_wire::tape::{Direction, Tape};
use serde_json::Value;
use tokio::sync::{Notify, oneshot};
use tokio_util::sync::CancellationToken;

use super::spell::{event, quoted};
use crate::provider::{Answer, Verdict};

/// How many requests may be in flight.
pub(super) const IN_FLIGHT: usize = 1024;

/// Beyond this many bytes that wait drivers are made to wait.
pub(super) const ROOM: usize = 1 << 20;

/// Beyond this many the reader waits too: a host that only writes could otherwise fill our memory with answers.
pub(super) const ROOM_FOR_ANSWERS: usize = 16 << 20;

/// Beyond this many the stream of a driver that does not wait fails.
const PATIENCE: usize = 160 << 20;

/// A buffer that grew beyond this is given back.
const KEEP: usize = 256 << 10;

pub(super) struct Conversation {
    state: Mutex<State>,
    /// Bytes that were said and that nobody has taken from us.
    waiting: AtomicUsize,
    said: Notify,
    taken: Notify,
    gone: CancellationToken,
    tape: Option<Tape>,
}

#[derive(Default)]
struct State {
    lines: Vec<u8>,
    in_flight: HashMap<Arc<str>, Serial>,
    questions: HashMap<Question, Waiter>,
    callbacks: HashMap<String, oneshot::Sender<Result<Value, String>>>,
    next: u64,
    closing: bool,
}

/// A request in flight. A later one may have the same id, so it has a number too.
#[derive(Clone, Debug)]
pub(super) struct Ticket {
    id: Arc<str>,
    /// The id as JSON.
    pub(super) quoted: Arc<str>,
    serial: Serial,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Serial(u64);

/// The name of a question.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Question {
    Permission(String),
    Input(String),
}

/// Who waits for its answer.
pub(super) enum Sender {
    Permission(oneshot::Sender<Verdict>),
    Input(oneshot::Sender<Answer>),
}

struct Waiter {
    /// The request on whose stream it was asked.
    stream: Ticket,
    serial: Serial,
    sender: Sender,
}

/// Why a request is not served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// Another one in flight has its id.
    Taken,
    /// There are too many.
    Overloaded,
    /// Everything ends.
    Closing,
}

/// How long a request takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Takes {
    /// It is answered before the next line is read, and so never one too many.
    NoTime,
    Time,
}

/// What became of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spoken {
    Said,
    /// The request is over.
    Over,
    /// Far too much waits.
    TooMuch,
    /// It was no object.
    Nonsense,
}

/// Whether a request goes on after a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Last {
    No,
    Yes,
}

impl Conversation {
    pub(super) fn new(tape: Option<Tape>) -> Self {
        Self {
            state: Mutex::default(),
            waiting: AtomicUsize::new(0),
            said: Notify::new(),
            taken: Notify::new(),
            gone: CancellationToken::new(),
            tape,
        }
    }

    /// Takes a request on. Its id is taken until [`over`](Self::over).
    pub(super) fn begin(&self, id: &str, takes: Takes) -> Result<Ticket, Refused> {
        let mut state = self.state();
        if state.in_flight.contains_key(id) {
            return Err(Refused::Taken);
        }
        if state.closing {
            return Err(Refused::Closing);
        }
        if takes == Takes::Time && state.in_flight.len() >= IN_FLIGHT {
            return Err(Refused::Overloaded);
        }
        let serial = state.number();
        let ticket = Ticket { id: id.into(), quoted: quoted(id).into(), serial };
        state.in_flight.insert(Arc::clone(&ticket.id), serial);
        Ok(ticket)
    }

    /// No more requests are taken on.
    pub(super) fn close(&self) {
        self.state().closing = true;
    }

    /// Says a line that belongs to no request in flight. `id` is left out if a request in flight has it.
    pub(super) fn say(&self, id: Option<&str>, kind: &str, members: &[(&str, Value)]) {
        let mut state = self.state();
        let id = id.filter(|id| !state.in_flight.contains_key(*id)).map(quoted);
        self.line(&mut state, |line| event(line, id.as_deref(), kind, members));
    }

    /// Says a line of a request in flight. With the last one its id is free again and its open questions are withdrawn, which
    /// is said before.
    pub(super) fn say_of(&self, ticket: &Ticket, last: Last, write: impl FnOnce(&mut Vec<u8>)) -> Spoken {
        let mut state = self.state();
        if !state.has(ticket) {
            return Spoken::Over;
        }
        match last {
            Last::No if self.waiting() > PATIENCE => return Spoken::TooMuch,
            Last::No => {}
            Last::Yes => {
                self.withdraw_all(&mut state, ticket);
                state.in_flight.remove(&ticket.id);
            }
        }
        self.line(&mut state, write);
        Spoken::Said
    }

    /// A request is over without a word.
    pub(super) fn over(&self, ticket: &Ticket) {
        let mut state = self.state();
        if state.has(ticket) {
            self.withdraw_all(&mut state, ticket);
            state.in_flight.remove(&ticket.id);
        }
    }

    /// Asks the host something on a stream. `None` if the stream is over; else the number that [`withdraw`](Self::withdraw)
    /// needs.
    pub(super) fn ask(
        &self,
        stream: &Ticket,
        question: Question,
        sender: Sender,
        write: impl FnOnce(&mut Vec<u8>),
    ) -> Option<Serial> {
        let mut state = self.state();
        if !state.has(stream) {
            return None;
        }
        let serial = state.number();
        state.questions.insert(question, Waiter { stream: stream.clone(), serial, sender });
        self.line(&mut state, write);
        Some(serial)
    }

    /// Nobody waits for the answer any more.
    pub(super) fn withdraw(&self, question: &Question, serial: Serial) {
        let mut state = self.state();
        if state.questions.get(question).is_some_and(|waiter| waiter.serial == serial)
            && let Some(waiter) = state.questions.remove(question)
        {
            self.line(&mut state, |line| withdrawn(line, &waiter.stream, question));
        }
    }

    /// The host says whether a tool may be used. `false` if nobody waits for that.
    pub(super) fn permit(&self, id: String, verdict: Verdict) -> bool {
        match self.state().questions.remove(&Question::Permission(id)).map(|waiter| waiter.sender) {
            Some(Sender::Permission(sender)) => sender.send(verdict).is_ok(),
            Some(Sender::Input(_)) | None => false,
        }
    }

    /// The user answers. `false` if nobody waits for that.
    pub(super) fn answer(&self, id: String, answer: Answer) -> bool {
        match self.state().questions.remove(&Question::Input(id)).map(|waiter| waiter.sender) {
            Some(Sender::Input(sender)) => sender.send(answer).is_ok(),
            Some(Sender::Permission(_)) | None => false,
        }
    }

    /// Asks the host something of our own. The name is for [`forget`](Self::forget).
    pub(super) fn call(
        &self,
        method: &str,
        params: &Value,
    ) -> (String, oneshot::Receiver<Result<Value, String>>) {
        let mut state = self.state();
        let name = format!("host-{}", state.number().0);
        let (sender, answer) = oneshot::channel();
        state.callbacks.insert(name.clone(), sender);
        let members = [
            ("callbackId", Value::from(name.as_str())),
            ("method", Value::from(method)),
            ("params", params.clone()),
        ];
        self.line(&mut state, |line| event(line, None, "hostRequest", &members));
        (name, answer)
    }

    /// The host answers a call; nothing happens if nobody waits for that.
    pub(super) fn called_back(&self, name: &str, answer: Result<Value, String>) {
        let sender = self.state().callbacks.remove(name);
        if let Some(sender) = sender {
            let _ = sender.send(answer);
        }
    }

    /// Nobody waits for the answer of a call any more.
    pub(super) fn forget(&self, name: &str) {
        self.state().callbacks.remove(name);
    }

    /// How many bytes wait to be read.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Acquire)
    }

    /// Waits until at most this many bytes wait, or nobody will ever read them.
    pub(super) async fn room(&self, bytes: usize) {
        loop {
            let taken = self.taken.notified();
            tokio::pin!(taken);
            // From here on nothing is missed, so that the number may be looked at.
            taken.as_mut().enable();
            if self.waiting() <= bytes || self.gone.is_cancelled() {
                return;
            }
            taken.await;
        }
    }

    /// The lines that wait, for the one who writes them; waits until there are some.
    pub(super) async fn take(&self, batch: &mut Vec<u8>) {
        batch.clear();
        batch.shrink_to(KEEP);
        loop {
            {
                let mut state = self.state();
                if !state.lines.is_empty() {
                    std::mem::swap(&mut state.lines, batch);
                    return;
                }
            }
            self.said.notified().await;
        }
    }

    /// Bytes have been written.
    pub(super) fn left(&self, bytes: usize) {
        self.waiting.fetch_sub(bytes, Ordering::AcqRel);
        self.taken.notify_waiters();
    }

    /// Nobody reads any more.
    pub(super) fn hung_up(&self) {
        self.gone.cancel();
        let mut state = self.state();
        self.waiting.store(0, Ordering::Release);
        state.lines = Vec::new();
        drop(state);
        self.taken.notify_waiters();
    }

    /// Waits until nobody reads any more.
    pub(super) async fn gone(&self) {
        self.gone.cancelled().await;
    }

    fn withdraw_all(&self, state: &mut State, stream: &Ticket) {
        if state.questions.is_empty() {
            return;
        }
        let of_it = |(question, waiter): (&Question, &Waiter)| {
            (waiter.stream.serial == stream.serial).then(|| (waiter.serial, question.clone()))
        };
        let mut open: Vec<(Serial, Question)> = state.questions.iter().filter_map(of_it).collect();
        open.sort_by_key(|(serial, _)| *serial);
        for (_, question) in open {
            state.questions.remove(&question);
            self.line(state, |line| withdrawn(line, stream, &question));
        }
    }

    fn line(&self, state: &mut State, write: impl FnOnce(&mut Vec<u8>)) {
        if self.gone.is_cancelled() {
            return;
        }
        let (start, idle) = (state.lines.len(), state.lines.is_empty());
        write(&mut state.lines);
        let line = &mut state.lines[start..];
        if line.is_empty() {
            return;
        }
        // A line break between two tokens of passed-on JSON would end the line, and means nothing there.
        if memchr::memchr2(b'\n', b'\r', line).is_some() {
            line.iter_mut().filter(|byte| matches!(byte, b'\n' | b'\r')).for_each(|byte| *byte = b' ');
        }
        if let Some(tape) = &self.tape {
            tape.line(Direction::Out, line);
        }
        let length = line.len() + 1;
        state.lines.push(b'\n');
        self.waiting.fetch_add(length, Ordering::AcqRel);
        if idle {
            self.said.notify_one();
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn has(&self, ticket: &Ticket) -> bool {
        self.in_flight.get(&ticket.id) == Some(&ticket.serial)
    }

    fn number(&mut self) -> Serial {
        self.next += 1;
        Serial(self.next)
    }
}

fn withdrawn(line: &mut Vec<u8>, stream: &Ticket, question: &Question) {
    let (kind, member, id) = match question {
        Question::Permission(id) => ("permissionCancelled", "permissionId", id),
        Question::Input(id) => ("userInputCancelled", "userInputId", id),
    };
    event(line, Some(&stream.quoted), kind, &[(member, Value::from(id.as_str()))]);
}
