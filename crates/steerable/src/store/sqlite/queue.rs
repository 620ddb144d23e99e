//! What waits for the writing thread: work that somebody waits for, and changes of traces that nobody waits for. Both are
//! bounded. Without either the thread sleeps and costs nothing.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Semaphore;

use super::Writer;
use crate::store::tracer::TraceOp;

/// How much work may wait; who has more waits with it.
const WORK: usize = 256;

/// How many changes of traces may wait, and how many bytes they may have together; more are left out.
const OPS: usize = 16_384;
const OP_BYTES: usize = 32 << 20;

/// How long changes of traces are gathered before they are written.
const GATHER: Duration = Duration::from_millis(50);

pub(super) type Work = Box<dyn FnOnce(&mut Writer) + Send>;

/// What the thread does next.
pub(super) enum Next {
    Work(Work),
    Ops(Vec<TraceOp>),
    End,
}

pub(super) struct Queue {
    waiting: Mutex<Waiting>,
    wake: Condvar,
    room: Semaphore,
}

struct Waiting {
    work: VecDeque<Work>,
    ops: Vec<TraceOp>,
    op_bytes: usize,
    /// When the oldest of the changes came.
    since: Option<Instant>,
    phase: Phase,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Open,
    Closed,
}

impl Queue {
    pub(super) fn new() -> Self {
        let waiting =
            Waiting { work: VecDeque::new(), ops: Vec::new(), op_bytes: 0, since: None, phase: Phase::Open };
        Self { waiting: Mutex::new(waiting), wake: Condvar::new(), room: Semaphore::new(WORK) }
    }

    /// Has work done, when there is room for it; `false` if it never will be.
    pub(super) async fn ask(&self, work: Work) -> bool {
        let Ok(permit) = self.room.acquire().await else { return false };
        // The thread gives it back when it takes the work.
        permit.forget();
        let mut waiting = self.waiting();
        if waiting.phase == Phase::Closed {
            return false;
        }
        waiting.work.push_back(work);
        self.wake.notify_one();
        true
    }

    /// Takes a change of a trace, if there is room.
    pub(super) fn record(&self, op: TraceOp, bytes: usize) -> bool {
        let mut waiting = self.waiting();
        if waiting.phase == Phase::Closed || waiting.ops.len() >= OPS || waiting.op_bytes + bytes > OP_BYTES {
            return false;
        }
        waiting.ops.push(op);
        waiting.op_bytes += bytes;
        if waiting.since.is_none() {
            waiting.since = Some(Instant::now());
            self.wake.notify_one();
        } else if waiting.ops.len() == OPS / 2 {
            self.wake.notify_one();
        }
        true
    }

    /// All changes that wait.
    pub(super) fn take_ops(&self) -> Vec<TraceOp> {
        self.waiting().take_ops()
    }

    /// No more comes; what is there is still done.
    pub(super) fn close(&self) {
        self.waiting().phase = Phase::Closed;
        self.room.close();
        self.wake.notify_one();
    }

    /// What to do next; waits until there is something.
    pub(super) fn next(&self) -> Next {
        let mut waiting = self.waiting();
        loop {
            let closed = waiting.phase == Phase::Closed;
            let age = waiting.since.map(|since| since.elapsed());
            if age.is_some_and(|age| closed || age >= GATHER || waiting.ops.len() >= OPS / 2) {
                return Next::Ops(waiting.take_ops());
            }
            if let Some(work) = waiting.work.pop_front() {
                self.room.add_permits(1);
                return Next::Work(work);
            }
            if closed {
                return Next::End;
            }
            waiting = match age {
                None => self.wake.wait(waiting).unwrap_or_else(PoisonError::into_inner),
                Some(age) => {
                    let waited = self.wake.wait_timeout(waiting, GATHER.saturating_sub(age));
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiting {
    fn take_ops(&mut self) -> Vec<TraceOp> {
        self.since = None;
        self.op_bytes = 0;
        std::mem::take(&mut self.ops)
    }
}

impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let waiting = self.waiting();
        f.debug_struct("Queue").field("work", &waiting.work.len()).field("ops", &waiting.ops.len()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{EventKind, TraceEvent};

    fn op(sequence: u64) -> TraceOp {
        let event = TraceEvent {
            id: None,
            trace_id: "t".to_owned(),
            kind: EventKind::Log,
            name: "x".to_owned(),
            sequence,
            timestamp_ms: 0,
            duration_ms: None,
            status: None,
            payload: None,
            created_at: None,
        };
        TraceOp::Event { number: 1, event }
    }

    #[test]
    fn changes_are_taken_up_to_the_limit_and_not_one_more() {
        let queue = Queue::new();
        for sequence in 0..OPS as u64 {
            assert!(queue.record(op(sequence), 1));
        }
        assert!(!queue.record(op(0), 1));
        assert_eq!(queue.take_ops().len(), OPS);
        assert!(queue.record(op(0), OP_BYTES));
        assert!(!queue.record(op(1), 1));
    }

    #[test]
    fn what_waits_is_done_before_the_end() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let queue = Queue::new();
        assert!(runtime.block_on(queue.ask(Box::new(|_| {}))));
        assert!(queue.record(op(7), 1));
        queue.close();
        assert!(!queue.record(op(8), 1));
        assert!(!runtime.block_on(queue.ask(Box::new(|_| {}))));
        assert!(matches!(queue.next(), Next::Ops(ops) if ops == [op(7)]));
        assert!(matches!(queue.next(), Next::Work(_)));
        assert!(matches!(queue.next(), Next::End));
    }

    #[test]
    fn who_asks_too_much_waits_until_there_is_room() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let queue = Queue::new();
            for _ in 0..WORK {
                assert!(queue.ask(Box::new(|_| {})).await);
            }
            let mut late = std::pin::pin!(queue.ask(Box::new(|_| {})));
            let waits = std::future::poll_fn(|context| {
                std::task::Poll::Ready(late.as_mut().poll(context).is_pending())
            });
            assert!(waits.await);
            assert!(matches!(queue.next(), Next::Work(_)));
            assert!(late.await);
        });
    }
}
