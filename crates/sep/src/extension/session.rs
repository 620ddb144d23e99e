//! The conversation with the host: own calls that await answers, requests of the host that await ours, and one pen.

use std::collections::HashMap;
use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use outrigger_wire::rpc::{self, ErrorObject, Id, code};
use serde_json::value::RawValue;

use super::error::HostError;
use super::link::Link;
use crate::protocol::{CANCEL, Version};

/// The longest frame before the host has said what it takes.
const FIRST_FRAME: usize = 4096;

/// Calls at the same time before the host has said how many it takes.
const FIRST_CALLS: usize = 1;

type Answer = Result<Box<RawValue>, HostError>;

/// One conversation. Locks are held for moments only, except the pen, which waits for the host to read.
pub(super) struct Session {
    pen: Mutex<Link>,
    state: Mutex<State>,
    /// A place among the calls is free, or the conversation is over.
    changed: Condvar,
    max_frame: AtomicUsize,
    max_calls: AtomicUsize,
    version: OnceLock<Version>,
}

struct State {
    next: u64,
    calls: HashMap<u64, Waiting>,
    serving: HashMap<Id, std::sync::Arc<AtomicBool>>,
    ended: Option<String>,
}

/// A call of ours that awaits its answer.
struct Waiting {
    method: String,
    answer: SyncSender<Answer>,
    /// The request of the host that it is made for.
    owner: Option<Id>,
}

/// What a request of the host came to.
pub(super) type Outcome = Result<Box<RawValue>, ErrorObject>;

impl Session {
    pub(super) fn new(pen: Link) -> Self {
        let state = State { next: 1, calls: HashMap::new(), serving: HashMap::new(), ended: None };
        Self {
            pen: Mutex::new(pen),
            state: Mutex::new(state),
            changed: Condvar::new(),
            max_frame: AtomicUsize::new(FIRST_FRAME),
            max_calls: AtomicUsize::new(FIRST_CALLS),
            version: OnceLock::new(),
        }
    }

    /// The host has said what it takes, and which version is spoken.
    pub(super) fn agree(&self, version: Version, max_frame: usize, max_calls: usize) {
        self.max_frame.store(max_frame, Ordering::Relaxed);
        self.max_calls.store(max_calls.max(1), Ordering::Relaxed);
        let _ = self.version.set(version);
        self.changed.notify_all();
    }

    /// The version of this session, once there is one.
    pub(super) fn version(&self) -> Option<Version> {
        self.version.get().copied()
    }

    /// Calls the host and waits for the answer, no longer than `patience`. When `owner` is given up, so is this call.
    pub(super) fn call(
        &self,
        method: &str,
        params: Option<&RawValue>,
        patience: Duration,
        owner: Option<&Id>,
    ) -> Answer {
        let until = Instant::now() + patience;
        let no_answer = || HostError::NoAnswer { method: method.to_owned(), after: patience };
        let (answer, answered) = sync_channel(1);
        let mut state = self.state();
        while state.ended.is_none() && state.calls.len() >= self.max_calls.load(Ordering::Relaxed) {
            let left = until.saturating_duration_since(Instant::now());
            let (back, waited) =
                self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner);
            state = back;
            if waited.timed_out() {
                return Err(no_answer());
            }
        }
        if let Some(why) = &state.ended {
            return Err(HostError::Ended { method: method.to_owned(), why: why.clone() });
        }
        if owner.is_some_and(|owner| !state.serving.contains_key(owner)) {
            return Err(HostError::Cancelled { method: method.to_owned() });
        }
        let number = state.next;
        let mut line = Vec::with_capacity(method.len() + params.map_or(0, |raw| raw.get().len()) + 64);
        rpc::encode_request(&mut line, &Id::from(number), method, params);
        let limit = self.max_frame.load(Ordering::Relaxed);
        if line.len() > limit {
            return Err(HostError::TooLong { method: method.to_owned(), length: line.len(), limit });
        }
        state.next += 1;
        state.calls.insert(number, Waiting { method: method.to_owned(), answer, owner: owner.cloned() });
        drop(state);
        self.write(line);
        match answered.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(answer) => answer,
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                if self.forget(number) {
                    self.write(cancel(number));
                }
                Err(no_answer())
            }
        }
    }

    /// Says something that is not answered.
    pub(super) fn notify(&self, method: &str, params: Option<&RawValue>) -> Result<(), HostError> {
        let mut line = Vec::new();
        rpc::encode_notification(&mut line, method, params);
        let limit = self.max_frame.load(Ordering::Relaxed);
        if line.len() > limit {
            return Err(HostError::TooLong { method: method.to_owned(), length: line.len(), limit });
        }
        self.write(line);
        Ok(())
    }

    /// An answer of the host came. One that nobody waits for any more is let pass.
    pub(super) fn settle(&self, id: &Id, answer: Result<Box<RawValue>, ErrorObject>) {
        let Some(waiting) = id.as_u64().and_then(|number| self.state().calls.remove(&number)) else { return };
        self.changed.notify_one();
        let answer = answer.map_err(|error| HostError::from_host(&waiting.method, &error));
        // There is room for one answer, and this is the one.
        let _ = waiting.answer.try_send(answer);
    }

    /// A request of the host begins; the flag says when it is given up. `None` if there is one of this id already.
    pub(super) fn begin(&self, id: &Id) -> Option<std::sync::Arc<AtomicBool>> {
        let mut state = self.state();
        if state.serving.contains_key(id) {
            return None;
        }
        let given_up = std::sync::Arc::new(AtomicBool::new(false));
        state.serving.insert(id.clone(), given_up.clone());
        Some(given_up)
    }

    /// Answers a request that has begun, unless it has been given up.
    pub(super) fn answer(&self, id: &Id, outcome: &Outcome) {
        if self.state().serving.remove(id).is_some() {
            self.write(self.encode(id, outcome));
        }
    }

    /// A request that had begun will be answered by somebody else.
    pub(super) fn forget_request(&self, id: &Id) {
        self.state().serving.remove(id);
    }

    /// Answers a request that never began.
    pub(super) fn answer_at_once(&self, id: &Id, outcome: &Outcome) {
        self.write(self.encode(id, outcome));
    }

    /// The host gives up a request. What has to be said about it is returned, because whoever reads must not write.
    pub(super) fn give_up(&self, id: &Id) -> Vec<Vec<u8>> {
        let mut state = self.state();
        let Some(given_up) = state.serving.remove(id) else { return Vec::new() };
        given_up.store(true, Ordering::Relaxed);
        let owned: Vec<u64> = state
            .calls
            .iter()
            .filter(|(_, call)| call.owner.as_ref() == Some(id))
            .map(|(id, _)| *id)
            .collect();
        let mut lines =
            vec![self.encode(id, &Err(error(code::sep::CANCELLED, "cancelled", "it was given up")))];
        for number in owned {
            if let Some(waiting) = state.calls.remove(&number) {
                let _ = waiting.answer.try_send(Err(HostError::Cancelled { method: waiting.method }));
                lines.push(cancel(number));
            }
        }
        drop(state);
        self.changed.notify_all();
        lines
    }

    /// The conversation is over, for this reason; the first one counts.
    pub(super) fn end(&self, why: &str) {
        let mut state = self.state();
        state.ended.get_or_insert_with(|| why.to_owned());
        for (_, waiting) in state.calls.drain() {
            let ended = HostError::Ended { method: waiting.method, why: why.to_owned() };
            let _ = waiting.answer.try_send(Err(ended));
        }
        drop(state);
        self.changed.notify_all();
    }

    /// Writes a line. If that fails the conversation is over, and the reader will notice too.
    pub(super) fn write(&self, mut line: Vec<u8>) {
        line.push(b'\n');
        let written = self.pen.lock().unwrap_or_else(PoisonError::into_inner).write_all(&line);
        if let Err(error) = written {
            self.end(&format!("the channel cannot be written to: {error}"));
        }
    }

    /// An answer that is longer than the host takes becomes an error that says so.
    fn encode(&self, id: &Id, outcome: &Outcome) -> Vec<u8> {
        let mut line = Vec::new();
        match outcome {
            Ok(result) => rpc::encode_result(&mut line, id, result),
            Err(error) => rpc::encode_error(&mut line, id, error),
        }
        if line.len() > self.max_frame.load(Ordering::Relaxed) {
            line.clear();
            let sorry =
                error(code::INTERNAL_ERROR, "internal_error", "the answer is longer than a frame may be");
            rpc::encode_error(&mut line, id, &sorry);
        }
        line
    }

    fn forget(&self, number: u64) -> bool {
        let known = self.state().calls.remove(&number).is_some();
        self.changed.notify_one();
        known
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An error as the contract wants it: a number, a word, a sentence.
pub(super) fn error(code: rpc::Code, slug: &str, message: impl Into<String>) -> ErrorObject {
    let error = ErrorObject::new(code, message);
    match serde_json::value::to_raw_value(&serde_json::json!({ "sep": slug })) {
        Ok(data) => error.with_data(data),
        Err(_) => error,
    }
}

fn cancel(number: u64) -> Vec<u8> {
    let mut line = Vec::new();
    if let Ok(params) = serde_json::value::to_raw_value(&serde_json::json!({ "id": number })) {
        rpc::encode_notification(&mut line, CANCEL, Some(&params));
    }
    line
}
