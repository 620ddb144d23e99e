//! The request map: own calls that await their answers. Pure; time is told to it.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use serde_json::value::RawValue;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::end::{CallError, End};
use crate::rpc::{Defect, ErrorObject};

/// The number of an own call, which is its id on the wire. They count up from 1 and are never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct CallId(pub(super) u64);

/// The calls in flight, with their deadlines.
#[derive(Debug)]
pub(super) struct Calls {
    next: u64,
    pending: HashMap<CallId, Pending>,
    deadlines: BTreeSet<(Instant, CallId)>,
}

#[derive(Debug)]
struct Pending {
    method: String,
    deadline: Option<(Instant, Duration)>,
    answer: oneshot::Sender<Result<Box<RawValue>, CallError>>,
}

/// What became of a reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Settled {
    /// It was given to the caller of this method.
    Delivered(String),
    /// The call was made and has been given up.
    Late,
    /// No such call was ever made.
    Unknown,
}

/// What a reply says.
pub(super) enum Reply<'a> {
    Result(Option<&'a RawValue>),
    Error(ErrorObject),
    Malformed(Defect),
}

pub(super) type Receiver = oneshot::Receiver<Result<Box<RawValue>, CallError>>;

impl Calls {
    pub(super) fn new() -> Self {
        Self { next: 1, pending: HashMap::new(), deadlines: BTreeSet::new() }
    }

    /// Opens a call. The answer, or the reason why there is none, arrives at the receiver.
    pub(super) fn open(&mut self, method: &str, deadline: Option<(Instant, Duration)>) -> (CallId, Receiver) {
        let id = CallId(self.next);
        self.next += 1;
        let (answer, receiver) = oneshot::channel();
        if let Some((at, _)) = deadline {
            self.deadlines.insert((at, id));
        }
        self.pending.insert(id, Pending { method: method.to_owned(), deadline, answer });
        (id, receiver)
    }

    /// Gives an answer to whoever awaits it.
    pub(super) fn settle(&mut self, id: CallId, reply: Reply<'_>) -> Settled {
        let Some(pending) = self.remove(id) else {
            return if (1..self.next).contains(&id.0) { Settled::Late } else { Settled::Unknown };
        };
        let method = pending.method;
        let answer = match reply {
            Reply::Result(Some(result)) => Ok(result.to_owned()),
            Reply::Result(None) => Ok(RawValue::NULL.to_owned()),
            Reply::Error(error) => Err(CallError::Remote { method: method.clone(), error }),
            Reply::Malformed(defect) => Err(CallError::Malformed { method: method.clone(), defect }),
        };
        // The caller may have gone meanwhile; then nobody wants the answer.
        let _ = pending.answer.send(answer);
        Settled::Delivered(method)
    }

    /// Gives a call up. `false` if it had been settled already.
    pub(super) fn forget(&mut self, id: CallId) -> bool {
        self.remove(id).is_some()
    }

    /// Fails the calls whose time is over and says which they were.
    pub(super) fn expire(&mut self, now: Instant) -> Vec<CallId> {
        let mut expired = Vec::new();
        while let Some(&(at, id)) = self.deadlines.first()
            && at <= now
        {
            if let Some(Pending { method, deadline: Some((_, after)), answer }) = self.remove(id) {
                let _ = answer.send(Err(CallError::Deadline { method, after }));
            }
            expired.push(id);
        }
        expired
    }

    /// When the next call expires.
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.deadlines.first().map(|(at, _)| *at)
    }

    /// Fails every call, because the conversation is over.
    pub(super) fn fail_all(&mut self, end: &End) {
        self.deadlines.clear();
        for (_, pending) in self.pending.drain() {
            let error = CallError::Ended { method: pending.method, end: end.clone() };
            let _ = pending.answer.send(Err(error));
        }
    }

    pub(super) fn len(&self) -> usize {
        self.pending.len()
    }

    fn remove(&mut self, id: CallId) -> Option<Pending> {
        let pending = self.pending.remove(&id)?;
        if let Some((at, _)) = pending.deadline {
            self.deadlines.remove(&(at, id));
        }
        Some(pending)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(now: Instant, millis: u64) -> Option<(Instant, Duration)> {
        let after = Duration::from_millis(millis);
        Some((now + after, after))
    }

    #[test]
    fn an_answer_reaches_its_caller_whatever_the_order() {
        let mut calls = Calls::new();
        let (first, mut first_answer) = calls.open("a", None);
        let (second, mut second_answer) = calls.open("b", None);
        assert_eq!((first, second), (CallId(1), CallId(2)));
        let two = RawValue::from_string("2".into()).unwrap();
        assert_eq!(calls.settle(second, Reply::Result(Some(&two))), Settled::Delivered("b".into()));
        assert_eq!(calls.settle(first, Reply::Result(None)), Settled::Delivered("a".into()));
        assert_eq!(first_answer.try_recv().unwrap().unwrap().get(), "null");
        assert_eq!(second_answer.try_recv().unwrap().unwrap().get(), "2");
        assert_eq!(calls.len(), 0);
    }

    #[test]
    fn a_late_answer_is_told_from_one_that_nobody_asked_for() {
        let mut calls = Calls::new();
        let (id, _answer) = calls.open("a", None);
        assert!(calls.forget(id));
        assert!(!calls.forget(id));
        assert_eq!(calls.settle(id, Reply::Result(None)), Settled::Late);
        assert_eq!(calls.settle(CallId(0), Reply::Result(None)), Settled::Unknown);
        assert_eq!(calls.settle(CallId(2), Reply::Result(None)), Settled::Unknown);
    }

    #[test]
    fn calls_expire_in_order_of_their_deadlines_and_not_a_moment_early() {
        let now = Instant::now();
        let mut calls = Calls::new();
        let (slow, _slow_answer) = calls.open("slow", after(now, 20));
        let (quick, mut quick_answer) = calls.open("quick", after(now, 10));
        let (settled, _settled_answer) = calls.open("settled", after(now, 5));
        calls.settle(settled, Reply::Result(None));
        assert_eq!(calls.next_deadline(), after(now, 10).map(|(at, _)| at));
        assert_eq!(calls.expire(now + Duration::from_millis(9)), []);
        assert_eq!(calls.expire(now + Duration::from_millis(10)), [quick]);
        assert_eq!(
            quick_answer.try_recv().unwrap().unwrap_err(),
            CallError::Deadline { method: "quick".into(), after: Duration::from_millis(10) }
        );
        assert_eq!(calls.expire(now + Duration::from_secs(9)), [slow]);
        assert_eq!(calls.next_deadline(), None);
    }

    #[test]
    fn the_end_of_the_conversation_fails_every_call_with_the_reason() {
        let mut calls = Calls::new();
        let (_, mut answer) = calls.open("a", after(Instant::now(), 10));
        calls.fail_all(&End::RemoteClosed);
        assert_eq!(
            answer.try_recv().unwrap().unwrap_err(),
            CallError::Ended { method: "a".into(), end: End::RemoteClosed }
        );
        assert_eq!((calls.len(), calls.next_deadline()), (0, None));
    }
}
