//! What a stream said and nobody has read yet: bounded in bytes, with a place of its own for the end. Writing never waits, so that
//! one slow reader costs nobody else anything.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use tokio::sync::Notify;
use tokio::time::Instant;

use super::event::{StreamEnd, StreamEvent};

/// What an event costs beside its bytes, so that a million tiny ones count too.
const EACH: usize = 128;

/// The queue of one stream. One side writes, one side reads.
#[derive(Debug)]
pub(super) struct Queue {
    limit: usize,
    state: Mutex<State>,
    readable: Notify,
}

#[derive(Debug)]
struct State {
    events: VecDeque<(StreamEvent, usize)>,
    bytes: usize,
    last_heard: Instant,
    reader: Reader,
    end: End,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reader {
    There,
    Gone,
}

#[derive(Debug)]
enum End {
    Open,
    Came(Box<StreamEnd>),
    Told,
}

/// There is no room for an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Full;

impl Queue {
    pub(super) fn new(limit: usize) -> Self {
        let state = State {
            events: VecDeque::new(),
            bytes: 0,
            last_heard: Instant::now(),
            reader: Reader::There,
            end: End::Open,
        };
        Self { limit, state: Mutex::new(state), readable: Notify::new() }
    }

    /// Something came that the reader need not know.
    pub(super) fn heard(&self) {
        self.state().last_heard = Instant::now();
    }

    pub(super) fn last_heard(&self) -> Instant {
        self.state().last_heard
    }

    /// Adds an event that had so many bytes.
    pub(super) fn push(&self, event: StreamEvent, bytes: usize) -> Result<(), Full> {
        let cost = bytes.saturating_add(EACH);
        let mut state = self.state();
        state.last_heard = Instant::now();
        if !matches!(state.end, End::Open) || state.reader == Reader::Gone {
            return Ok(());
        }
        if !state.events.is_empty() && state.bytes.saturating_add(cost) > self.limit {
            return Err(Full);
        }
        state.bytes = state.bytes.saturating_add(cost);
        state.events.push_back((event, cost));
        drop(state);
        self.readable.notify_one();
        Ok(())
    }

    /// Ends the stream. Only the first end counts; says whether this was it.
    pub(super) fn finish(&self, end: StreamEnd) -> bool {
        let mut state = self.state();
        let is_first = matches!(state.end, End::Open);
        if is_first {
            state.end = End::Came(Box::new(end));
        }
        drop(state);
        self.readable.notify_one();
        is_first
    }

    /// Nobody will ever read it.
    pub(super) fn abandon(&self) {
        let mut state = self.state();
        state.reader = Reader::Gone;
        state.events = VecDeque::new();
        state.bytes = 0;
    }

    /// Whether the end is not yet there.
    pub(super) fn is_open(&self) -> bool {
        matches!(self.state().end, End::Open)
    }

    /// The next event, and after the last one the end; `None` after that.
    pub(super) async fn next(&self) -> Option<StreamEvent> {
        loop {
            let readable = self.readable.notified();
            match self.try_next() {
                Poll::Ready(event) => return event,
                Poll::Pending => readable.await,
            }
        }
    }

    fn try_next(&self) -> Poll<Option<StreamEvent>> {
        let mut state = self.state();
        if let Some((event, cost)) = state.events.pop_front() {
            state.bytes -= cost;
            if state.events.is_empty() {
                // What a burst needed is given back.
                state.events.shrink_to(64);
            }
            return Poll::Ready(Some(event));
        }
        match std::mem::replace(&mut state.end, End::Told) {
            End::Came(end) => Poll::Ready(Some(StreamEvent::End(*end))),
            End::Told => Poll::Ready(None),
            End::Open => {
                state.end = End::Open;
                Poll::Pending
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::event::Passed;
    use super::*;

    fn said(text: &str) -> StreamEvent {
        StreamEvent::Passed(Passed { kind: text.to_owned(), line: String::new() })
    }

    /// What is read, in a word each.
    async fn told(queue: &Queue) -> Vec<String> {
        let mut told = Vec::new();
        while let Some(event) = queue.next().await {
            told.push(match event {
                StreamEvent::Passed(passed) => passed.kind,
                StreamEvent::End(end) => end.code().to_owned(),
                other => format!("{other:?}"),
            });
        }
        told
    }

    #[tokio::test]
    async fn a_queue_takes_as_many_bytes_as_it_may_and_not_one_more() {
        let queue = Queue::new(2 * EACH + 10);
        assert_eq!(queue.push(said("a"), 4), Ok(()));
        assert_eq!(queue.push(said("b"), 6), Ok(()));
        assert_eq!(queue.push(said("c"), 0), Err(Full));
        assert!(queue.next().await.is_some());
        assert_eq!(queue.push(said("c"), 5), Err(Full));
        assert_eq!(queue.push(said("d"), 4), Ok(()));
        let alone = Queue::new(1);
        assert_eq!(alone.push(said("larger than the queue"), 1000), Ok(()));
        assert_eq!(alone.push(said("b"), 0), Err(Full));
    }

    #[tokio::test]
    async fn an_end_finds_its_place_in_a_full_queue_and_only_the_first_counts() {
        let queue = Queue::new(1);
        queue.push(said("a"), 1000).unwrap();
        assert!(queue.finish(StreamEnd::Overflow { limit: 1 }));
        assert!(!queue.finish(StreamEnd::Ended));
        queue.push(said("too late"), 1).unwrap();
        assert_eq!(told(&queue).await, ["a", "overflow"]);
        assert!(queue.next().await.is_none());
    }

    #[tokio::test]
    async fn a_reader_that_waits_is_woken_by_an_event_and_by_the_end() {
        let queue = Arc::new(Queue::new(1000));
        let reader = tokio::spawn({
            let queue = Arc::clone(&queue);
            async move { told(&queue).await }
        });
        tokio::task::yield_now().await;
        queue.push(said("a"), 1).unwrap();
        tokio::task::yield_now().await;
        queue.finish(StreamEnd::Ended);
        assert_eq!(reader.await.unwrap(), ["a", "ended"]);
    }

    #[tokio::test]
    async fn what_an_abandoned_stream_says_takes_no_room() {
        let queue = Queue::new(10);
        queue.push(said("a"), 10).unwrap();
        queue.abandon();
        for _ in 0..100 {
            assert_eq!(queue.push(said("b"), 10), Ok(()));
        }
        queue.finish(StreamEnd::Ended);
        assert_eq!(told(&queue).await, ["ended"]);
    }
}
