//! What the handles and the tasks of a peer share: the three cores behind one lock, and who to wake when they change.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::value::RawValue;
use tokio::sync::{Notify, Semaphore, watch};
use tokio::time::Instant;

use super::calls::{CallId, Calls};
use super::config::{CallIds, CancelWire, Crowded, Lane, PeerConfig};
use super::desk::{BatchKey, Desk, Ticket};
use super::end::End;
use super::handle::CONTROL_PLACES;
use super::handler::{Complaint, Handler, Outcome, Reaction, Receipt};
use super::outbox::{Outbox, Reply};
use super::write::Pen;
use crate::rpc::{self, ErrorObject, Id};
use crate::tape::Tape;

/// What happened in a conversation so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Lines read, blank and refused ones included.
    pub lines_in: u64,
    /// Lines written.
    pub lines_out: u64,
    /// Own calls that await their answers.
    pub calls_open: usize,
    /// Own calls that were given up: by deadline or by dropping them.
    pub calls_given_up: u64,
    /// Requests of the other side that are being handled.
    pub requests_running: usize,
    /// Requests of the other side that wait for their turn.
    pub requests_waiting: usize,
    /// Lines that were not messages, and requests that found no place.
    pub refused: u64,
    /// Replies to calls that had been given up.
    pub late_replies: u64,
    /// Replies to calls that nobody made.
    pub unknown_replies: u64,
    /// Own events that were dropped because the other side reads too slowly.
    pub events_dropped: u64,
    /// Notifications of the other side that were dropped because they came too fast.
    pub notifications_dropped: u64,
    /// Bytes that wait to be written.
    pub outbox_bytes: usize,
}

pub(super) struct Shared {
    pub(super) config: PeerConfig,
    pub(super) handler: Arc<dyn Handler>,
    pub(super) tape: Option<Tape>,
    call_ids: CallIds,
    state: Mutex<State>,
    pub(super) pen: Mutex<Pen>,
    /// Room in the outbox, in bytes; senders pay, the writer refunds.
    pub(super) room: Semaphore,
    /// Places for own calls.
    pub(super) places: Semaphore,
    /// Places for own calls on the lane of control.
    pub(super) control_places: Semaphore,
    pub(super) wake_driver: Notify,
    pub(super) wake_writer: Notify,
    pub(super) wake_listener: Notify,
    ended: watch::Sender<Option<End>>,
}

pub(super) struct State {
    pub(super) phase: Phase,
    pub(super) calls: Calls,
    pub(super) desk: Desk,
    pub(super) outbox: Outbox,
    pub(super) notes: VecDeque<QueuedNote>,
    /// The bytes of their params.
    pub(super) note_bytes: usize,
    /// A notification is being handled.
    pub(super) listening: bool,
    /// The driver found no room and waits to be woken when there is some.
    pub(super) paused: bool,
    /// When the driver will look at the deadlines next. It may be too early, because a call was settled meanwhile.
    pub(super) planned: Option<Instant>,
    pub(super) counts: Counts,
}

pub(super) struct QueuedNote {
    pub(super) method: String,
    pub(super) params: Option<Box<RawValue>>,
}

impl QueuedNote {
    pub(super) fn bytes(&self) -> usize {
        self.method.len() + self.params.as_ref().map_or(0, |params| params.get().len())
    }
}

#[derive(Clone, Debug)]
pub(super) enum Phase {
    Open,
    /// Nothing more is read; what was begun is finished.
    Draining(End),
    Ended(End),
}

impl Shared {
    pub(super) fn new(
        config: PeerConfig,
        handler: Arc<dyn Handler>,
        tape: Option<Tape>,
        call_ids: CallIds,
        pen: Pen,
    ) -> Self {
        let state = State {
            phase: Phase::Open,
            calls: Calls::new(),
            desk: Desk::new(config.incoming, config.duplicate_ids, config.max_line_out),
            outbox: Outbox::new(config.outbox),
            notes: VecDeque::new(),
            note_bytes: 0,
            listening: false,
            paused: false,
            planned: None,
            counts: Counts::default(),
        };
        Self {
            config,
            handler,
            tape,
            call_ids,
            state: Mutex::new(state),
            pen: Mutex::new(pen),
            room: Semaphore::new(config.outbox.bytes.clamp(1, Semaphore::MAX_PERMITS)),
            places: Semaphore::new(config.max_calls.clamp(1, Semaphore::MAX_PERMITS)),
            control_places: Semaphore::new(CONTROL_PLACES),
            wake_driver: Notify::new(),
            wake_writer: Notify::new(),
            wake_listener: Notify::new(),
            ended: watch::Sender::new(None),
        }
    }

    /// The cores. No handler is called and nothing is awaited while they are held.
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn watch_end(&self) -> watch::Receiver<Option<End>> {
        self.ended.subscribe()
    }

    /// What a line of this length costs its sender: never more than there is, so that a long line passes alone.
    pub(super) fn cost(&self, length: usize) -> u32 {
        let most = self.config.outbox.bytes.clamp(1, Semaphore::MAX_PERMITS);
        u32::try_from(length.min(most)).unwrap_or(u32::MAX)
    }

    /// What an own call is called on the wire.
    pub(super) fn wire_id(&self, CallId(number): CallId) -> Id {
        match self.call_ids {
            CallIds::Numbers => Id::from(number),
            CallIds::Prefixed(prefix) => Id::text(&format!("{prefix}{number}")),
        }
    }

    /// The own call that an id on the wire is for, if it looks like one of ours.
    pub(super) fn call_of(&self, id: &Id) -> Option<CallId> {
        let number = match self.call_ids {
            CallIds::Numbers => id.as_u64()?,
            CallIds::Prefixed(prefix) => {
                let text = id.as_text()?;
                let digits = text.strip_prefix(prefix)?;
                let number: u64 = digits.parse().ok()?;
                // `01` and `+1` would parse, and are not what was sent.
                (number.to_string() == digits).then_some(number)?
            }
        };
        Some(CallId(number))
    }

    /// Puts an answer that was known at once with the others that wait; the driver writes them together.
    pub(super) fn answer_with_others(
        &self,
        ticket: Ticket,
        id: &Id,
        outcome: &Outcome,
        receipt: Option<Receipt>,
    ) {
        let line = self.encode_answer(id, outcome);
        let mut state = self.state();
        let Some(released) = state.desk.finish(ticket) else { return };
        let reply = Reply { line, receipts: receipt.into_iter().collect() };
        state.reply(released.batch, reply);
    }

    /// Answers a request, once; later answers to the same ticket are dropped.
    pub(super) fn answer(&self, ticket: Ticket, id: &Id, outcome: &Outcome) {
        let line = self.encode_answer(id, outcome);
        let mut state = self.state();
        let Some(released) = state.desk.finish(ticket) else { return };
        state.reply(released.batch, Reply { line, receipts: Vec::new() });
        let driver_waits = state.paused || state.desk.waiting() > 0;
        // In a drain the writer must have the last word, because it is the writer who sees that all is done.
        let is_alone = state.desk.is_idle() && matches!(state.phase, Phase::Open);
        drop(state);
        // An answer that is alone gains by being written at once; many gain by being written together.
        if is_alone {
            self.write_now();
        } else {
            self.wake_writer.notify_one();
        }
        if driver_waits {
            self.wake_driver.notify_one();
        }
    }

    /// Writes an answer down; one that is too long becomes an error that says so.
    pub(super) fn encode_answer(&self, id: &Id, outcome: &Outcome) -> Vec<u8> {
        let mut line = Vec::with_capacity(96 + outcome.as_ref().map_or(128, |result| result.get().len()));
        match outcome {
            Ok(result) => rpc::encode_result(&mut line, id, result),
            Err(error) => rpc::encode_error(&mut line, id, error),
        }
        let limit = self.config.max_line_out;
        if line.len() > limit {
            let error = self.error_for(&Complaint::ReplyTooLong { length: line.len(), limit });
            line.clear();
            rpc::encode_error(&mut line, id, &error);
        }
        line
    }

    /// The error that answers a request which cannot go unanswered.
    pub(super) fn error_for(&self, complaint: &Complaint<'_>) -> ErrorObject {
        match self.handler.complain(complaint) {
            Reaction::Answer(error) => error,
            Reaction::Ignore => complaint.to_error(),
            Reaction::End { reason, answer } => {
                self.begin_drain(End::Violation(reason));
                answer.unwrap_or_else(|| complaint.to_error())
            }
        }
    }

    /// Tells the other side that calls were given up, where the dialect has a word for it.
    pub(super) fn send_cancels(&self, state: &mut State, given_up: &[CallId]) {
        state.counts.calls_given_up += given_up.len() as u64;
        let (method, member) = match self.config.cancel {
            CancelWire::Silent => return,
            CancelWire::Notify(method) => (method, "id"),
            CancelWire::Tell { method, member } => (method, member),
        };
        for id in given_up {
            let id = self.wire_id(*id);
            let line = format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{{"{member}":{id}}}}}"#);
            // Not paid for, but bounded all the same: there is one per call, and calls are paid for.
            state.outbox.push_paid(Lane::Control, line.into_bytes(), 0);
        }
    }

    /// Stops reading; what was begun is finished and written. The first reason counts.
    pub(super) fn begin_drain(&self, end: End) {
        let mut state = self.state();
        if let Phase::Open = state.phase {
            state.calls.fail_all(&end);
            state.phase = Phase::Draining(end);
        }
        drop(state);
        self.places.close();
        self.control_places.close();
        self.wake_everyone();
    }

    /// Ends the conversation now. The first reason counts.
    pub(super) fn finish(&self, end: End) {
        let mut state = self.state();
        let end = match &state.phase {
            Phase::Open => end,
            // A drain that completes keeps its reason; one that breaks down has a better one.
            Phase::Draining(first) => match end {
                End::Dropped => first.clone(),
                better => better,
            },
            Phase::Ended(_) => return,
        };
        state.phase = Phase::Ended(end.clone());
        state.calls.fail_all(&end);
        state.desk.abandon();
        state.outbox.clear();
        state.notes.clear();
        state.note_bytes = 0;
        drop(state);
        self.places.close();
        self.control_places.close();
        self.room.close();
        self.ended.send_replace(Some(end));
        self.wake_everyone();
    }

    /// Why nothing can be sent any more.
    pub(super) fn end_reason(&self) -> End {
        match &self.state().phase {
            Phase::Open => End::Closed,
            Phase::Draining(end) | Phase::Ended(end) => end.clone(),
        }
    }

    pub(super) fn counts(&self) -> Counts {
        let state = self.state();
        Counts {
            calls_open: state.calls.len(),
            requests_running: state.desk.running(),
            requests_waiting: state.desk.waiting(),
            events_dropped: state.outbox.events_dropped(),
            outbox_bytes: state.outbox.bytes(),
            ..state.counts
        }
    }

    fn wake_everyone(&self) {
        self.wake_driver.notify_one();
        self.wake_writer.notify_one();
        self.wake_listener.notify_one();
    }
}

impl State {
    /// Puts an answer into the outbox, or into its batch until that is complete.
    pub(super) fn reply(&mut self, batch: Option<BatchKey>, reply: Reply) {
        let Self { desk, outbox, .. } = self;
        desk.collect(batch, reply, |reply| outbox.push_reply(reply));
    }

    /// Whether no further notification finds a place. Those that wait have no more bytes than one line may have, or one of
    /// them is that long: few long ones cost as much as many short ones.
    pub(super) fn notes_are_full(&self, config: &PeerConfig) -> bool {
        self.notes.len() >= config.incoming.notifications.max(1)
            || (!self.notes.is_empty() && self.note_bytes >= config.lines.limit.payload())
    }

    /// Whether reading must wait until something has been worked off.
    pub(super) fn must_pause(&self, config: &PeerConfig) -> bool {
        let notes_full = config.incoming.crowded == Crowded::Pause && self.notes_are_full(config);
        notes_full || self.desk.is_full() || self.outbox.replies_are_full()
    }

    /// Whether a drain has nothing left to do.
    pub(super) fn is_drained(&self) -> bool {
        self.desk.is_idle() && self.notes.is_empty() && !self.listening && self.outbox.is_empty()
    }
}

/// Ends the conversation when a task of it goes away, even by a panic, so that nobody waits for ever.
pub(super) struct EndOnDrop(pub(super) Arc<Shared>);

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        self.0.finish(End::Dropped);
    }
}
