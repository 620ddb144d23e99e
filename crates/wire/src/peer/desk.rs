//! The other side's requests: which run, which wait, which ids are taken, which batch an answer belongs to. Pure.

use std::collections::{HashMap, VecDeque};

use serde_json::value::RawValue;
use tokio::task::AbortHandle;

use super::config::{Crowded, DuplicateIds, IncomingLimits};
use super::outbox::Reply;
use crate::rpc::{Id, IdKind};

/// A request that was admitted. Ids can be null or repeated; tickets are unique.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Ticket(u64);

/// A batch whose answers are being collected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct BatchKey(u64);

/// What there is to do.
#[derive(Debug)]
pub(super) struct Work {
    pub(super) id: Id,
    pub(super) method: String,
    pub(super) params: Option<Box<RawValue>>,
    pub(super) batch: Option<BatchKey>,
}

/// A request that is no longer on the desk and must now be answered, exactly once.
#[derive(Debug)]
pub(super) struct Released {
    pub(super) id: Id,
    pub(super) batch: Option<BatchKey>,
    /// Stops the handler, if it runs as a task.
    pub(super) abort: Option<AbortHandle>,
}

/// Why a request was not admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rejected {
    DuplicateId,
    Busy,
}

/// The requests of the other side that are not answered yet.
#[derive(Debug)]
pub(super) struct Desk {
    limits: IncomingLimits,
    duplicate_ids: DuplicateIds,
    /// The longest line a collected batch may become.
    max_line: usize,
    next: u64,
    seats: HashMap<Ticket, Seat>,
    by_id: HashMap<Id, Ticket>,
    waiting: VecDeque<(Ticket, Work)>,
    running: usize,
    batches: HashMap<BatchKey, Batch>,
}

#[derive(Debug)]
struct Seat {
    id: Id,
    batch: Option<BatchKey>,
    stage: Stage,
}

#[derive(Debug)]
enum Stage {
    Waiting,
    Running { abort: Option<AbortHandle> },
}

#[derive(Debug)]
struct Batch {
    missing: usize,
    reply: Reply,
}

impl Desk {
    pub(super) fn new(limits: IncomingLimits, duplicate_ids: DuplicateIds, max_line: usize) -> Self {
        Self {
            limits,
            duplicate_ids,
            max_line,
            next: 0,
            seats: HashMap::new(),
            by_id: HashMap::new(),
            waiting: VecDeque::new(),
            running: 0,
            batches: HashMap::new(),
        }
    }

    /// Takes a request in. It waits until [`Desk::next_ready`] hands it out.
    pub(super) fn admit(&mut self, work: Work) -> Result<(), Rejected> {
        let named = work.id.kind() != IdKind::Null;
        if named && self.duplicate_ids == DuplicateIds::Refuse && self.by_id.contains_key(&work.id) {
            return Err(Rejected::DuplicateId);
        }
        if self.limits.crowded == Crowded::Refuse && self.seats.len() >= self.places() {
            return Err(Rejected::Busy);
        }
        let ticket = Ticket(self.fresh());
        if named {
            self.by_id.insert(work.id.clone(), ticket);
        }
        let seat = Seat { id: work.id.clone(), batch: work.batch, stage: Stage::Waiting };
        self.seats.insert(ticket, seat);
        self.waiting.push_back((ticket, work));
        Ok(())
    }

    /// The next request to start, in order of arrival, if another one may run.
    pub(super) fn next_ready(&mut self) -> Option<(Ticket, Work)> {
        if self.running >= self.limits.running {
            return None;
        }
        let (ticket, work) = self.waiting.pop_front()?;
        if let Some(seat) = self.seats.get_mut(&ticket) {
            seat.stage = Stage::Running { abort: None };
            self.running += 1;
        }
        Some((ticket, work))
    }

    /// Remembers how to stop a running request. If it is gone already, it is stopped now.
    pub(super) fn attach(&mut self, ticket: Ticket, handle: AbortHandle) {
        match self.seats.get_mut(&ticket) {
            Some(Seat { stage: Stage::Running { abort }, .. }) => *abort = Some(handle),
            Some(Seat { stage: Stage::Waiting, .. }) | None => handle.abort(),
        }
    }

    /// Releases a request to be answered; `None` if somebody else has released it.
    pub(super) fn finish(&mut self, ticket: Ticket) -> Option<Released> {
        let Seat { id, batch, stage } = self.seats.remove(&ticket)?;
        if self.by_id.get(&id) == Some(&ticket) {
            self.by_id.remove(&id);
        }
        let abort = match stage {
            Stage::Waiting => {
                self.waiting.retain(|(waiting, _)| *waiting != ticket);
                None
            }
            Stage::Running { abort } => {
                self.running -= 1;
                abort
            }
        };
        Some(Released { id, batch, abort })
    }

    /// Releases the request with this id, because its caller cancelled it.
    pub(super) fn cancel(&mut self, id: &Id) -> Option<Released> {
        let ticket = *self.by_id.get(id)?;
        self.finish(ticket)
    }

    /// Opens a batch that will be answered by `answers` answers.
    pub(super) fn open_batch(&mut self, answers: usize) -> Option<BatchKey> {
        if answers == 0 {
            return None;
        }
        let key = BatchKey(self.fresh());
        self.batches
            .insert(key, Batch { missing: answers, reply: Reply { line: Vec::new(), receipts: Vec::new() } });
        Some(key)
    }

    /// Takes an answer and gives `send` what can be written now.
    ///
    /// Answers of a batch are collected into one array. Should that outgrow a line, what there is goes out as an array
    /// of its own: the caller matches by id, and nothing is lost.
    pub(super) fn collect(
        &mut self,
        batch: Option<BatchKey>,
        mut answer: Reply,
        mut send: impl FnMut(Reply),
    ) {
        let Some((key, batch)) = batch.and_then(|key| Some((key, self.batches.get_mut(&key)?))) else {
            return send(answer);
        };
        let whole = |reply: &mut Reply| {
            reply.line.push(b']');
            Reply { line: std::mem::take(&mut reply.line), receipts: std::mem::take(&mut reply.receipts) }
        };
        let reply = &mut batch.reply;
        if !reply.line.is_empty() && reply.line.len() + answer.line.len() + 2 > self.max_line {
            send(whole(reply));
        }
        reply.line.push(if reply.line.is_empty() { b'[' } else { b',' });
        reply.line.extend_from_slice(&answer.line);
        reply.receipts.append(&mut answer.receipts);
        batch.missing -= 1;
        if batch.missing == 0 {
            send(whole(&mut batch.reply));
            self.batches.remove(&key);
        }
    }

    /// Whether reading should pause because no further request has a place.
    pub(super) fn is_full(&self) -> bool {
        self.limits.crowded == Crowded::Pause && self.seats.len() >= self.places()
    }

    pub(super) fn is_idle(&self) -> bool {
        self.seats.is_empty()
    }

    pub(super) fn running(&self) -> usize {
        self.running
    }

    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// How many requests may be here at once.
    pub(super) fn places(&self) -> usize {
        self.limits.running.saturating_add(self.limits.waiting)
    }

    /// Stops everything without answers, because nobody is there to hear them.
    pub(super) fn abandon(&mut self) {
        for (_, seat) in self.seats.drain() {
            if let Stage::Running { abort: Some(abort) } = seat.stage {
                abort.abort();
            }
        }
        self.by_id.clear();
        self.waiting.clear();
        self.batches.clear();
        self.running = 0;
    }

    fn fresh(&mut self) -> u64 {
        self.next += 1;
        self.next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn desk(running: usize, waiting: usize, crowded: Crowded) -> Desk {
        let limits = IncomingLimits { running, waiting, notifications: 1, crowded };
        Desk::new(limits, DuplicateIds::Refuse, 20)
    }

    fn work(id: Id) -> Work {
        Work { id, method: "m".into(), params: None, batch: None }
    }

    fn started(desk: &mut Desk) -> Vec<(Ticket, String)> {
        std::iter::from_fn(|| desk.next_ready()).map(|(ticket, work)| (ticket, work.id.to_string())).collect()
    }

    #[test]
    fn requests_start_in_order_of_arrival_and_no_more_than_may_run() {
        let mut desk = desk(2, 2, Crowded::Refuse);
        for id in 1..=4 {
            assert_eq!(desk.admit(work(Id::from(id))), Ok(()));
        }
        assert_eq!(desk.admit(work(Id::from(5))), Err(Rejected::Busy), "one past the places");
        let first = started(&mut desk);
        assert_eq!(first.iter().map(|(_, id)| id.as_str()).collect::<Vec<_>>(), ["1", "2"]);
        assert!(desk.finish(first[1].0).is_some());
        assert_eq!(started(&mut desk)[0].1, "3");
        assert_eq!((desk.running(), desk.waiting()), (2, 1));
    }

    #[test]
    fn a_desk_that_pauses_is_full_at_its_places_and_not_before() {
        let mut desk = desk(1, 1, Crowded::Pause);
        assert_eq!(desk.admit(work(Id::from(1))), Ok(()));
        assert!(!desk.is_full());
        assert_eq!(desk.admit(work(Id::from(2))), Ok(()));
        assert!(desk.is_full());
        let (ticket, _) = desk.next_ready().unwrap();
        assert!(desk.is_full());
        desk.finish(ticket);
        assert!(!desk.is_full());
    }

    #[test]
    fn an_id_in_flight_is_taken_and_free_again_after_its_answer() {
        let mut desk = desk(9, 9, Crowded::Refuse);
        assert_eq!(desk.admit(work(Id::text("a"))), Ok(()));
        assert_eq!(desk.admit(work(Id::text("a"))), Err(Rejected::DuplicateId));
        assert_eq!(desk.admit(work(Id::null())), Ok(()));
        assert_eq!(desk.admit(work(Id::null())), Ok(()), "null names nothing, so it cannot be taken");
        let (ticket, _) = desk.next_ready().unwrap();
        assert!(desk.finish(ticket).is_some());
        assert!(desk.finish(ticket).is_none(), "an answer is due once");
        assert_eq!(desk.admit(work(Id::text("a"))), Ok(()));
    }

    #[test]
    fn a_waiting_request_can_be_cancelled_and_never_starts() {
        let mut desk = desk(1, 9, Crowded::Refuse);
        for id in 1..=3 {
            desk.admit(work(Id::from(id))).unwrap();
        }
        assert!(desk.cancel(&Id::from(2)).is_some());
        assert!(desk.cancel(&Id::from(2)).is_none());
        let (ticket, _) = desk.next_ready().unwrap();
        desk.finish(ticket);
        assert_eq!(started(&mut desk)[0].1, "3");
        assert!(desk.cancel(&Id::from(3)).is_some());
        assert!(desk.is_idle());
    }

    #[test]
    fn answers_of_a_batch_leave_together_or_in_lines_that_fit() {
        let mut desk = desk(1, 9, Crowded::Refuse);
        assert_eq!(desk.open_batch(0), None);
        assert_eq!(collected(&mut desk, None, "1"), ["1"]);
        let batch = desk.open_batch(2);
        assert!(collected(&mut desk, batch, "1").is_empty());
        assert_eq!(collected(&mut desk, batch, "2"), ["[1,2]"]);
        let batch = desk.open_batch(2);
        assert!(collected(&mut desk, batch, &"1".repeat(18)).is_empty());
        assert_eq!(collected(&mut desk, batch, "2"), ["[111111111111111111]", "[2]"]);
    }

    fn collected(desk: &mut Desk, batch: Option<BatchKey>, answer: &str) -> Vec<String> {
        let mut lines = Vec::new();
        let answer = Reply { line: answer.into(), receipts: Vec::new() };
        desk.collect(batch, answer, |reply| lines.push(String::from_utf8(reply.line).unwrap()));
        lines
    }
}
