//! The handle of a conversation: call, notify, offer events, close.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use serde_json::value::RawValue;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{SemaphorePermit, oneshot};
use tokio::time::{Instant, timeout_at};

use super::calls::{CallId, Receiver};
use super::config::{CallIds, Deadline, Lane, PeerConfig};
use super::end::{CallError, End, NotifyError};
use super::handler::Handler;
use super::shared::{Counts, Phase, Shared};
use super::{drive, write};
use crate::rpc;
use crate::tape::Tape;

/// The two streams of a conversation, and a tape if it is to be recorded.
pub struct Wiring {
    pub(super) input: Box<dyn AsyncRead + Send + Unpin>,
    pub(super) output: Box<dyn AsyncWrite + Send + Unpin>,
    pub(super) tape: Option<Tape>,
    pub(super) call_ids: CallIds,
}

impl Wiring {
    /// Reads from `input` and writes to `output`.
    pub fn new(
        input: impl AsyncRead + Send + Unpin + 'static,
        output: impl AsyncWrite + Send + Unpin + 'static,
    ) -> Self {
        Self { input: Box::new(input), output: Box::new(output), tape: None, call_ids: CallIds::Numbers }
    }

    /// Gives own calls ids of another look than numbers.
    #[must_use]
    pub fn call_ids(mut self, call_ids: CallIds) -> Self {
        self.call_ids = call_ids;
        self
    }

    /// Records both directions.
    #[must_use]
    pub fn taped(mut self, tape: Tape) -> Self {
        self.tape = Some(tape);
        self
    }
}

/// One side of a conversation. Clones are the same side; when the last one is dropped, the conversation ends at once.
#[derive(Clone)]
pub struct Peer {
    owner: Arc<Owner>,
}

/// Ends the conversation with the last handle, which the tasks do not hold.
pub(super) struct Owner {
    pub(super) shared: Arc<Shared>,
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.shared.finish(End::Dropped);
    }
}

/// What became of an offered event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offered {
    /// It waits to be written.
    Queued,
    /// It waits to be written, and this many older events were dropped to make room (or this one, if it never fits).
    Displaced(u64),
}

impl Peer {
    /// Starts a conversation. Must be called within a tokio runtime.
    pub fn start(wiring: Wiring, handler: Arc<dyn Handler>, config: PeerConfig) -> Self {
        let Wiring { input, output, tape, call_ids } = wiring;
        let shared = Arc::new(Shared::new(config, handler, tape, call_ids, write::Pen::new(output)));
        let owner = Arc::new(Owner { shared: Arc::clone(&shared) });
        tokio::spawn(drive::drive(Arc::clone(&shared), Arc::downgrade(&owner), input));
        tokio::spawn(drive::listen(Arc::clone(&shared), Arc::downgrade(&owner)));
        tokio::spawn(write::write(shared));
        Self { owner }
    }

    pub(super) fn from_owner(owner: Arc<Owner>) -> Self {
        Self { owner }
    }

    /// Calls the other side and waits for the answer.
    ///
    /// Waits for a place among the calls in flight and for room in the outbox; the deadline covers that too. Dropping
    /// the future gives the call up and tells the other side, if the dialect has a word for it.
    ///
    /// # Errors
    /// The other side's error, or the reason why there is no answer.
    pub async fn call(
        &self,
        method: &str,
        params: Option<&RawValue>,
        deadline: Deadline,
    ) -> Result<Box<RawValue>, CallError> {
        self.call_on(Lane::Action, method, params, deadline).await
    }

    /// Calls the other side as [`Peer::call`] does, on a lane: a call on `Control` overtakes what waits on the others, one
    /// on `Event` lets them pass. Calls are never dropped, whatever the lane.
    ///
    /// Calls on `Control` have [places of their own](CONTROL_PLACES) and need no room in the outbox, so that a question
    /// about health does not wait behind what the other side is too slow to take. They should be short.
    ///
    /// # Errors
    /// The other side's error, or the reason why there is no answer.
    pub async fn call_on(
        &self,
        lane: Lane,
        method: &str,
        params: Option<&RawValue>,
        deadline: Deadline,
    ) -> Result<Box<RawValue>, CallError> {
        self.begin_call(lane, method, params, deadline).await?.await
    }

    /// Sends a call as [`Peer::call_on`] does and returns when it waits to be written, before it is answered: calls that are
    /// begun one after the other on one lane arrive in that order.
    ///
    /// # Errors
    /// When it cannot be sent.
    pub async fn begin_call(
        &self,
        lane: Lane,
        method: &str,
        params: Option<&RawValue>,
        deadline: Deadline,
    ) -> Result<Answering, CallError> {
        let shared = &*self.owner.shared;
        let deadline = match deadline {
            Deadline::After(after) => Some((Instant::now() + after, after)),
            Deadline::Never => None,
        };
        let length = method.len() + params.map_or(0, |params| params.get().len()) + CALL_OVERHEAD;
        let entry = self.enter(lane, length);
        let (place, cost) = match deadline {
            None => entry.await,
            Some((at, after)) => match timeout_at(at, entry).await {
                Ok(entry) => entry,
                Err(_) => return Err(CallError::Deadline { method: method.to_owned(), after }),
            },
        }
        .ok_or_else(|| CallError::Ended { method: method.to_owned(), end: shared.end_reason() })?;
        let answering = self.send_call(lane, method, params, deadline, cost)?;
        // It gives the place back itself.
        place.forget();
        Ok(answering)
    }

    /// Sends a notification. On the lanes `Control` and `Action` it waits for room in the outbox; on the lane `Event` it
    /// never waits, and may displace older events.
    ///
    /// # Errors
    /// When the conversation is over or the notification is too long.
    pub async fn notify(
        &self,
        lane: Lane,
        method: &str,
        params: Option<&RawValue>,
    ) -> Result<(), NotifyError> {
        if lane == Lane::Event {
            return self.offer(method, params).map(|_| ());
        }
        let shared = &*self.owner.shared;
        let line = self.encode_note(method, params)?;
        let cost = shared.cost(line.len());
        let ended = || NotifyError::Ended { method: method.to_owned(), end: shared.end_reason() };
        let permit = shared.room.acquire_many(cost).await.map_err(|_| ended())?;
        permit.forget();
        let mut state = shared.state();
        if let Phase::Ended(_) = state.phase {
            drop(state);
            return Err(ended());
        }
        state.outbox.push_paid(lane, line, cost);
        drop(state);
        shared.wake_writer.notify_one();
        Ok(())
    }

    /// Sends notifications that are written already: whole lines, each with its newline. They cost one wait for room and
    /// one wake of the writer together, and arrive one after the other. `method` is only what errors call them.
    ///
    /// Cancel safe: `lines` is taken when there is room, and is empty then; before that, dropping the future changes nothing.
    ///
    /// # Errors
    /// When the conversation is over, or one of the lines is too long; then none is sent.
    pub async fn notify_lines(
        &self,
        lane: Lane,
        method: &str,
        lines: &mut Vec<u8>,
    ) -> Result<(), NotifyError> {
        let shared = &*self.owner.shared;
        if lines.is_empty() {
            return Ok(());
        }
        let limit = shared.config.max_line_out;
        if lines.len() > limit
            && let Some(line) = lines.split(|byte| *byte == b'\n').find(|line| line.len() > limit)
        {
            return Err(NotifyError::TooLong { method: method.to_owned(), length: line.len(), limit });
        }
        let cost = shared.cost(lines.len());
        let ended = || NotifyError::Ended { method: method.to_owned(), end: shared.end_reason() };
        let permit = shared.room.acquire_many(cost).await.map_err(|_| ended())?;
        permit.forget();
        let mut lines = std::mem::take(lines);
        if lines.last() == Some(&b'\n') {
            lines.pop();
        }
        let mut state = shared.state();
        if let Phase::Ended(_) = state.phase {
            drop(state);
            return Err(ended());
        }
        state.outbox.push_paid(lane, lines, cost);
        drop(state);
        shared.wake_writer.notify_one();
        Ok(())
    }

    /// Waits until everything that was sent on `lane` before has been written, and with it what is more urgent.
    ///
    /// # Errors
    /// When the conversation ended before that; why.
    pub async fn written(&self, lane: Lane) -> Result<(), End> {
        let shared = &*self.owner.shared;
        let (receipt, written) = oneshot::channel();
        {
            let mut state = shared.state();
            if let Phase::Ended(end) = &state.phase {
                return Err(end.clone());
            }
            state.outbox.push_mark(lane, receipt);
        }
        shared.wake_writer.notify_one();
        written.await.map_err(|_| shared.end_reason())
    }

    /// Sends an event if there is room, dropping older events if there is not. Never waits.
    ///
    /// # Errors
    /// When the conversation is over or the event is too long for a line.
    pub fn offer(&self, method: &str, params: Option<&RawValue>) -> Result<Offered, NotifyError> {
        let shared = &*self.owner.shared;
        let line = self.encode_note(method, params)?;
        let mut state = shared.state();
        if let Phase::Ended(end) = &state.phase {
            return Err(NotifyError::Ended { method: method.to_owned(), end: end.clone() });
        }
        let dropped = state.outbox.push_event(line);
        drop(state);
        shared.wake_writer.notify_one();
        Ok(if dropped == 0 { Offered::Queued } else { Offered::Displaced(dropped) })
    }

    /// Closes in good order: stops reading, fails own calls, lets handlers finish and writes what waits, for as long as
    /// the configured drain; then ends.
    pub async fn close(&self) -> End {
        self.begin_close();
        self.ended().await
    }

    /// Begins to close as [`Peer::close`] does, and does not wait. Within a handler, no further line is taken after the one
    /// that it answers.
    pub fn begin_close(&self) {
        self.owner.shared.begin_drain(End::Closed);
    }

    /// Waits for the end of the conversation and says why it ended.
    pub async fn ended(&self) -> End {
        let mut end = self.owner.shared.watch_end();
        match end.wait_for(Option::is_some).await {
            Ok(end) => end.clone().unwrap_or(End::Dropped),
            // The sender lives in `shared`, which this handle holds.
            Err(_) => End::Dropped,
        }
    }

    /// What happened so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.owner.shared.counts()
    }

    /// Waits for a place among the calls and for room in the outbox; `None` when the conversation is over.
    async fn enter(&self, lane: Lane, length: usize) -> Option<(SemaphorePermit<'_>, u32)> {
        let shared = &*self.owner.shared;
        if lane == Lane::Control {
            return Some((shared.control_places.acquire().await.ok()?, 0));
        }
        let place = shared.places.acquire().await.ok()?;
        let cost = shared.cost(length);
        shared.room.acquire_many(cost).await.ok()?.forget();
        Some((place, cost))
    }

    fn send_call(
        &self,
        lane: Lane,
        method: &str,
        params: Option<&RawValue>,
        deadline: Option<(Instant, std::time::Duration)>,
        cost: u32,
    ) -> Result<Answering, CallError> {
        let shared = &self.owner.shared;
        let mut line = Vec::with_capacity(method.len() + params.map_or(0, |p| p.get().len()) + CALL_OVERHEAD);
        let mut state = shared.state();
        if let Phase::Draining(end) | Phase::Ended(end) = &state.phase {
            let end = end.clone();
            drop(state);
            shared.room.add_permits(cost as usize);
            return Err(CallError::Ended { method: method.to_owned(), end });
        }
        let (id, answer) = state.calls.open(method, deadline);
        // Encoded under the lock so that ids go out in order; it is a copy of the params and little more.
        rpc::encode_request(&mut line, &shared.wire_id(id), method, params);
        let limit = shared.config.max_line_out;
        if line.len() > limit {
            state.calls.forget(id);
            drop(state);
            shared.room.add_permits(cost as usize);
            return Err(CallError::TooLong { method: method.to_owned(), length: line.len(), limit });
        }
        state.outbox.push_call(lane, line, cost);
        let is_next = deadline.is_some_and(|(at, _)| state.planned.is_none_or(|planned| at < planned));
        let is_alone = state.calls.len() == 1;
        drop(state);
        // A call that is alone gains by being written at once; many gain by being written together.
        if is_alone {
            shared.write_now();
        } else {
            shared.wake_writer.notify_one();
        }
        if is_next {
            shared.wake_driver.notify_one();
        }
        Ok(Answering { shared: Arc::clone(shared), lane, id, answer })
    }

    fn encode_note(&self, method: &str, params: Option<&RawValue>) -> Result<Vec<u8>, NotifyError> {
        let mut line = Vec::with_capacity(method.len() + params.map_or(0, |p| p.get().len()) + CALL_OVERHEAD);
        rpc::encode_notification(&mut line, method, params);
        let limit = self.owner.shared.config.max_line_out;
        if line.len() > limit {
            return Err(NotifyError::TooLong { method: method.to_owned(), length: line.len(), limit });
        }
        Ok(line)
    }
}

/// How many calls on the lane `Control` may await their answers; further ones wait.
pub const CONTROL_PLACES: usize = 32;

/// What the envelope adds to method and params, rounded up.
const CALL_OVERHEAD: usize = 64;

/// The answer to a call that was sent. Dropping it gives the call up and tells the other side, if the dialect has a word for
/// it.
pub struct Answering {
    shared: Arc<Shared>,
    lane: Lane,
    id: CallId,
    answer: Receiver,
}

impl Future for Answering {
    type Output = Result<Box<RawValue>, CallError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let answer = std::task::ready!(Pin::new(&mut self.answer).poll(context));
        // Whatever removes a call says why, so the default is never taken.
        Poll::Ready(answer.unwrap_or_else(|_| {
            Err(CallError::Ended { method: String::new(), end: self.shared.end_reason() })
        }))
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        let mut state = self.shared.state();
        let given_up = state.calls.forget(self.id);
        if given_up {
            self.shared.send_cancels(&mut state, &[self.id]);
        }
        drop(state);
        let places = match self.lane {
            Lane::Control => &self.shared.control_places,
            Lane::Action | Lane::Event => &self.shared.places,
        };
        places.add_permits(1);
        if given_up {
            self.shared.wake_writer.notify_one();
        }
    }
}

impl fmt::Debug for Answering {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Answering").field("id", &self.id).finish_non_exhaustive()
    }
}

impl fmt::Debug for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Peer").field("counts", &self.counts()).finish_non_exhaustive()
    }
}

impl fmt::Debug for Wiring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wiring").field("tape", &self.tape).finish_non_exhaustive()
    }
}
