//! The driver: reads, takes lines apart, starts handlers in order of arrival, watches deadlines. It waits for nobody.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak};

use serde_json::value::RawValue;
use tokio::io::AsyncRead;
use tokio::time::{Instant, sleep, sleep_until};

use super::calls::{Reply, Settled};
use super::config::{CancelWire, Crowded};
use super::desk::{BatchKey, Rejected, Ticket, Work};
use super::end::End;
use super::handle::{Owner, Peer};
use super::handler::{Answer, BoxFuture, Call, Complaint, Note, Outcome, Reaction};
use super::outbox::Reply as Queued;
use super::shared::{EndOnDrop, Phase, QueuedNote, Shared};
use crate::line::{Item, LineReadError, LineReader};
use crate::rpc::{self, Defect, Id, Incoming, Message, Refusal, Shape};

pub(super) async fn drive(shared: Arc<Shared>, owner: Weak<Owner>, input: Box<dyn AsyncRead + Send + Unpin>) {
    let _end = EndOnDrop(Arc::clone(&shared));
    let driver = Driver { shared, owner };
    let mut reader = LineReader::new(input, driver.shared.config.lines);
    if let Some(tape) = driver.shared.tape.clone() {
        reader = reader.taped(tape);
    }
    if let Some(end) = driver.read_until_end(&mut reader).await {
        driver.shared.begin_drain(end);
    }
    drop(reader);
    driver.drain().await;
}

/// Runs notification handlers one after the other.
pub(super) async fn listen(shared: Arc<Shared>, owner: Weak<Owner>) {
    let _end = EndOnDrop(Arc::clone(&shared));
    let mut ended = shared.watch_end();
    loop {
        let note = {
            let mut state = shared.state();
            let note = state.notes.pop_front();
            state.note_bytes -= note.as_ref().map_or(0, QueuedNote::bytes);
            state.listening = note.is_some();
            let (paused, draining) = (state.paused, matches!(state.phase, Phase::Draining(_)));
            if let Phase::Ended(_) = state.phase {
                return;
            }
            drop(state);
            if paused {
                shared.wake_driver.notify_one();
            }
            if draining && note.is_none() {
                shared.wake_writer.notify_one();
            }
            note
        };
        let Some(QueuedNote { method, params }) = note else {
            shared.wake_listener.notified().await;
            continue;
        };
        let Some(owner) = owner.upgrade() else { return };
        let note = Note { peer: Peer::from_owner(owner), method, params };
        // A panic in one notification is not a reason to stop hearing the others.
        let work = catch_unwind(AssertUnwindSafe(|| shared.handler.notification(note))).unwrap_or(None);
        if let Some(work) = work {
            // In a task of its own, so that its panics stay there.
            let mut task = tokio::spawn(work);
            tokio::select! {
                biased;
                _ = ended.wait_for(Option::is_some) => return task.abort(),
                _ = &mut task => {}
            }
        }
    }
}

struct Driver {
    shared: Arc<Shared>,
    owner: Weak<Owner>,
}

/// Whether the next line may be read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Flow {
    Read,
    Pause,
}

impl Driver {
    /// `None` when the conversation was closed or ended from elsewhere.
    async fn read_until_end(
        &self,
        reader: &mut LineReader<Box<dyn AsyncRead + Send + Unpin>>,
    ) -> Option<End> {
        loop {
            self.start_ready();
            self.write_answers();
            let (flow, deadline) = self.plan()?;
            let item = tokio::select! {
                biased;
                () = self.shared.wake_driver.notified() => continue,
                () = until(deadline) => {
                    self.expire();
                    continue;
                }
                item = reader.next(), if flow == Flow::Read => item,
            };
            match item {
                Ok(Some(item)) => self.take(item),
                Ok(None) => return Some(End::RemoteClosed),
                Err(LineReadError::Line(error)) => return Some(End::Line(error)),
                Err(LineReadError::Io(error)) => return Some(End::Read { message: error.to_string() }),
            }
            // Everything that arrived together is taken at once, as long as there is room for it, and what could be answered
            // at once is written together.
            let broken = loop {
                if !self.may_read_on() {
                    break None;
                }
                match reader.next_buffered() {
                    Ok(Some(item)) => self.take(item),
                    Ok(None) => break None,
                    Err(error) => break Some(End::Line(error)),
                }
            };
            if broken.is_some() {
                self.write_answers();
                return broken;
            }
        }
    }

    /// Nothing is read any more: start what waits, until everything is done or the time is over.
    async fn drain(&self) {
        let time = sleep(self.shared.config.drain);
        tokio::pin!(time);
        loop {
            self.start_ready();
            self.write_answers();
            let end = match &self.shared.state().phase {
                Phase::Draining(end) => end.clone(),
                Phase::Open | Phase::Ended(_) => return,
            };
            tokio::select! {
                biased;
                () = self.shared.wake_driver.notified() => {}
                () = &mut time => return self.shared.finish(end),
            }
        }
    }

    /// Has the answers written that wait, now if the pipe takes them.
    fn write_answers(&self) {
        let (any, open) = {
            let state = self.shared.state();
            (!state.outbox.is_empty(), matches!(state.phase, Phase::Open))
        };
        match (any, open) {
            (true, true) => self.shared.write_now(),
            // In a drain the writer must have the last word, because it is the writer who sees that all is done.
            (_, false) => self.shared.wake_writer.notify_one(),
            (false, true) => {}
        }
    }

    fn plan(&self) -> Option<(Flow, Option<Instant>)> {
        let mut state = self.shared.state();
        if !matches!(state.phase, Phase::Open) {
            return None;
        }
        state.paused = state.must_pause(&self.shared.config);
        let flow = if state.paused { Flow::Pause } else { Flow::Read };
        // A plan that has become too early stays: waking up once for nothing is cheaper than being woken for every call.
        state.planned = state.calls.next_deadline().or(state.planned);
        Some((flow, state.planned))
    }

    fn may_read_on(&self) -> bool {
        let state = self.shared.state();
        matches!(state.phase, Phase::Open) && !state.must_pause(&self.shared.config)
    }

    fn expire(&self) {
        let mut state = self.shared.state();
        state.planned = None;
        let expired = state.calls.expire(Instant::now());
        self.shared.send_cancels(&mut state, &expired);
        drop(state);
        self.shared.wake_writer.notify_one();
    }

    fn take(&self, item: Item<'_>) {
        self.shared.state().counts.lines_in += 1;
        match item {
            Item::Line(line) if line.is_blank() => self.complain(&Complaint::Blank, None, None),
            Item::Line(line) => match line.text() {
                Ok(text) => self.take_text(text),
                Err(_) => self.refuse(&Defect::NotUtf8.into(), None),
            },
            Item::TooLong(report) => {
                let complaint = Complaint::TooLong { limit: report.limit, dropped: report.dropped };
                self.complain(&complaint, None, None);
            }
            Item::Defective(report) => self.complain(&Complaint::Defective(report.defect), None, None),
        }
    }

    fn take_text(&self, text: &str) {
        match rpc::parse(text, &self.shared.config.envelope) {
            Ok(Incoming::One(message)) => self.take_message(message, None),
            Ok(Incoming::Batch(messages)) => {
                let answers = messages.iter().filter(|message| wants_answer(message)).count();
                let batch = self.shared.state().desk.open_batch(answers);
                for message in messages {
                    match message {
                        Ok(message) => self.take_message(message, batch),
                        Err(refusal) => self.refuse(&refusal, batch),
                    }
                }
            }
            Err(refusal) => self.refuse(&refusal, None),
        }
    }

    fn take_message(&self, message: Message<'_>, batch: Option<BatchKey>) {
        match message {
            Message::Request { id, method, params, .. } => {
                let work =
                    Work { id, method: method.into_owned(), params: params.map(ToOwned::to_owned), batch };
                self.take_request(work);
            }
            Message::Notification { method, params, .. } => self.take_notification(&method, params),
            Message::Response { id, result, .. } => self.settle(&id, Reply::Result(result)),
            Message::Error { id: Some(id), error, .. } if self.shared.call_of(&id).is_some() => {
                self.settle(&id, Reply::Error(error));
            }
            Message::Error { error, .. } => self.complain(&Complaint::OrphanError(&error), None, None),
        }
    }

    fn take_request(&self, work: Work) {
        let (id, batch) = (work.id.clone(), work.batch);
        if let Err(error) = self.shared.handler.admit(&work.method, &id) {
            return self.reply(&id, batch, &Err(error));
        }
        let mut state = self.shared.state();
        let admitted = state.desk.admit(work);
        let limit = state.desk.places();
        drop(state);
        match admitted {
            Ok(()) => self.start_ready(),
            Err(Rejected::Busy) => self.complain(&Complaint::Busy { limit }, Some(id), batch),
            Err(Rejected::DuplicateId) => {
                // The answer carries no id, or the caller would take it for the answer to its first request.
                let refusal = Refusal { defect: Defect::DuplicateId, id: None, shape: Shape::Call };
                self.refuse(&refusal, batch);
            }
        }
    }

    fn take_notification(&self, method: &str, params: Option<&RawValue>) {
        match self.shared.config.cancel {
            CancelWire::Notify(name) if name == method => return self.cancel(params),
            CancelWire::Notify(_) | CancelWire::Tell { .. } | CancelWire::Silent => {}
        }
        let mut state = self.shared.state();
        let full = state.notes_are_full(&self.shared.config);
        if full && self.shared.config.incoming.crowded == Crowded::Refuse {
            state.counts.notifications_dropped += 1;
            drop(state);
            return self.complain(&Complaint::NotificationDropped, None, None);
        }
        let note = QueuedNote { method: method.to_owned(), params: params.map(ToOwned::to_owned) };
        state.note_bytes += note.bytes();
        state.notes.push_back(note);
        drop(state);
        self.shared.wake_listener.notify_one();
    }

    fn cancel(&self, params: Option<&RawValue>) {
        let Some(id) = params.and_then(rpc::id_member) else { return };
        let Some(released) = self.shared.state().desk.cancel(&id) else { return };
        if let Some(abort) = released.abort {
            abort.abort();
        }
        let error = self.shared.error_for(&Complaint::Cancelled);
        self.reply(&released.id, released.batch, &Err(error));
    }

    fn settle(&self, id: &Id, reply: Reply<'_>) {
        let settled = {
            let mut state = self.shared.state();
            let settled = match self.shared.call_of(id) {
                Some(id) => state.calls.settle(id, reply),
                None => Settled::Unknown,
            };
            match &settled {
                Settled::Delivered(_) => {}
                Settled::Late => state.counts.late_replies += 1,
                Settled::Unknown => state.counts.unknown_replies += 1,
            }
            settled
        };
        match settled {
            Settled::Delivered(method) => self.shared.handler.answered(&method),
            Settled::Late => self.complain(&Complaint::LateReply, None, None),
            Settled::Unknown => self.complain(&Complaint::UnknownReply, None, None),
        }
    }

    fn refuse(&self, refusal: &Refusal, batch: Option<BatchKey>) {
        self.shared.state().counts.refused += 1;
        match (refusal.shape, &refusal.id) {
            (Shape::Reply, Some(id)) => self.settle(id, Reply::Malformed(refusal.defect)),
            (Shape::Reply, None) | (Shape::Call, _) => {
                self.complain(&Complaint::Refused(refusal), refusal.id.clone(), batch);
            }
        }
    }

    /// Lets the handler decide about something irregular, and does what it decides.
    fn complain(&self, complaint: &Complaint<'_>, id: Option<Id>, batch: Option<BatchKey>) {
        let is_request = match complaint {
            Complaint::Busy { .. } => true,
            Complaint::Refused(refusal) => refusal.defect == Defect::DuplicateId,
            _ => false,
        };
        let must_answer = is_request || batch.is_some();
        let (answer, end) = match self.shared.handler.complain(complaint) {
            Reaction::Answer(error) => (Some(error), None),
            Reaction::Ignore if must_answer => (Some(complaint.to_error()), None),
            Reaction::Ignore => (None, None),
            Reaction::End { reason, answer } => (answer, Some(reason)),
        };
        if let Some(error) = answer.filter(|_| complaint.can_be_answered()) {
            self.reply(&id.unwrap_or_else(Id::null), batch, &Err(error));
        }
        if let Some(reason) = end {
            self.shared.begin_drain(End::Violation(reason));
        }
    }

    /// Answers something that has no place on the desk, or no longer.
    fn reply(&self, id: &Id, batch: Option<BatchKey>, outcome: &Outcome) {
        let line = self.shared.encode_answer(id, outcome);
        let mut state = self.shared.state();
        state.reply(batch, Queued { line, receipts: Vec::new() });
        drop(state);
        self.shared.wake_writer.notify_one();
    }

    /// Starts requests in order of arrival, as many as may run.
    fn start_ready(&self) {
        loop {
            let mut state = self.shared.state();
            if state.outbox.replies_are_full() || matches!(state.phase, Phase::Ended(_)) {
                return;
            }
            let Some((ticket, work)) = state.desk.next_ready() else { return };
            drop(state);
            let Some(owner) = self.owner.upgrade() else { return };
            self.start(ticket, work, Peer::from_owner(owner));
        }
    }

    fn start(&self, ticket: Ticket, work: Work, peer: Peer) {
        let Work { id, method, params, .. } = work;
        let call = Call { peer, id: id.clone(), method, params };
        match catch_unwind(AssertUnwindSafe(|| self.shared.handler.request(call))) {
            Ok(Answer::Now(outcome)) => self.shared.answer_with_others(ticket, &id, &outcome, None),
            Ok(Answer::Receipted { outcome, written }) => {
                self.shared.answer_with_others(ticket, &id, &outcome, Some(written));
            }
            Ok(Answer::Later(future)) => {
                let task = tokio::spawn(run(Arc::clone(&self.shared), ticket, id, future));
                self.shared.state().desk.attach(ticket, task.abort_handle());
            }
            Err(_) => self.shared.answer(ticket, &id, &Err(self.shared.error_for(&Complaint::Panicked))),
        }
    }
}

async fn run(shared: Arc<Shared>, ticket: Ticket, id: Id, future: BoxFuture<Outcome>) {
    let mut panicked = AnswerPanic { shared: &shared, ticket, id: &id, armed: true };
    let outcome = future.await;
    panicked.armed = false;
    shared.answer(ticket, &id, &outcome);
}

/// Answers a request whose handler panicked.
struct AnswerPanic<'a> {
    shared: &'a Shared,
    ticket: Ticket,
    id: &'a Id,
    armed: bool,
}

impl Drop for AnswerPanic<'_> {
    fn drop(&mut self) {
        if self.armed && std::thread::panicking() {
            let error = self.shared.error_for(&Complaint::Panicked);
            self.shared.answer(self.ticket, self.id, &Err(error));
        }
    }
}

fn wants_answer(message: &Result<Message<'_>, Refusal>) -> bool {
    match message {
        Ok(Message::Request { .. }) => true,
        Ok(Message::Notification { .. } | Message::Response { .. } | Message::Error { .. }) => false,
        Err(refusal) => refusal.shape == Shape::Call,
    }
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(at) => sleep_until(at).await,
        None => std::future::pending().await,
    }
}
