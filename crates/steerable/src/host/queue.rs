//! What a stream said and nobody has read yet: bounded in chunks and bytes, with a place of its own for the end.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use tokio::sync::Notify;

use super::chunk::Chunk;
use super::end::StreamEnd;
use super::stream::StreamEvent;
use super::terms::StreamLimits;

/// The queue of one stream. One side writes, one side reads.
#[derive(Debug)]
pub(super) struct Queue {
    limits: StreamLimits,
    state: Mutex<State>,
    readable: Notify,
    room: Notify,
}

#[derive(Debug)]
struct State {
    chunks: VecDeque<(Chunk, usize)>,
    bytes: usize,
    when_full: WhenFull,
    /// Chunks that found no room where nobody waits for any.
    missed: u64,
    end: End,
}

/// What becomes of a chunk that finds no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WhenFull {
    /// It waits, and so does the sidecar.
    Wait,
    /// It is dropped and counted: the stream is being cancelled, or the sidecar is leaving, and waiting would delay that.
    Drop,
    /// Everything is dropped, because nobody will ever read it.
    Gone,
}

#[derive(Debug)]
enum End {
    Open,
    Came(Box<StreamEnd>),
    Told,
}

/// A chunk that did not fit.
#[derive(Debug)]
pub(super) struct Full(pub(super) Box<Chunk>);

impl Queue {
    pub(super) fn new(limits: StreamLimits) -> Self {
        let state =
            State { chunks: VecDeque::new(), bytes: 0, when_full: WhenFull::Wait, missed: 0, end: End::Open };
        Self { limits, state: Mutex::new(state), readable: Notify::new(), room: Notify::new() }
    }

    /// Adds a chunk that had so many bytes, unless it has to wait for room.
    pub(super) fn try_push(&self, chunk: Chunk, bytes: usize) -> Result<(), Full> {
        let mut state = self.state();
        let fits = state.chunks.is_empty()
            || (state.chunks.len() < self.limits.chunks
                && state.bytes.saturating_add(bytes) <= self.limits.bytes);
        match (&state.end, state.when_full, fits) {
            // What follows the end belongs to nobody.
            (End::Came(_) | End::Told, _, _) | (End::Open, WhenFull::Gone, _) => {}
            (End::Open, WhenFull::Wait | WhenFull::Drop, true) => {
                state.bytes += bytes;
                state.chunks.push_back((chunk, bytes));
                drop(state);
                self.readable.notify_one();
            }
            (End::Open, WhenFull::Wait, false) => return Err(Full(Box::new(chunk))),
            (End::Open, WhenFull::Drop, false) => state.missed += 1,
        }
        Ok(())
    }

    /// Adds a chunk as soon as there is room.
    pub(super) async fn push(&self, mut chunk: Chunk, bytes: usize) {
        loop {
            let room = self.room.notified();
            match self.try_push(chunk, bytes) {
                Ok(()) => return,
                Err(Full(back)) => chunk = *back,
            }
            room.await;
        }
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
        self.room.notify_one();
        is_first
    }

    pub(super) fn when_full(&self, when_full: WhenFull) {
        let mut state = self.state();
        // A reader that is gone does not come back.
        if state.when_full != WhenFull::Gone {
            state.when_full = when_full;
        }
        if when_full == WhenFull::Gone {
            state.chunks = VecDeque::new();
            state.bytes = 0;
        }
        drop(state);
        self.room.notify_one();
    }

    /// Whether the end is not yet there.
    pub(super) fn is_open(&self) -> bool {
        matches!(self.state().end, End::Open)
    }

    /// The next chunk, and after the last one the end; `None` after that.
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
        if let Some((chunk, bytes)) = state.chunks.pop_front() {
            state.bytes -= bytes;
            drop(state);
            self.room.notify_one();
            return Poll::Ready(Some(StreamEvent::Chunk(chunk)));
        }
        if state.missed > 0 {
            return Poll::Ready(Some(StreamEvent::Missed(std::mem::take(&mut state.missed))));
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

    use super::super::end::Done;
    use super::*;

    fn chunk(text: &str) -> Chunk {
        Chunk { delta: Some(text.to_owned()), ..Chunk::default() }
    }

    fn done() -> StreamEnd {
        StreamEnd::Done(Done { ok: true, ..Done::default() })
    }

    fn queue(chunks: usize, bytes: usize) -> Arc<Queue> {
        Arc::new(Queue::new(StreamLimits { chunks, bytes }))
    }

    /// What is read, in a word each.
    async fn told(queue: &Queue) -> Vec<String> {
        let mut told = Vec::new();
        while let Some(event) = queue.next().await {
            told.push(match event {
                StreamEvent::Chunk(chunk) => chunk.delta.unwrap_or_default(),
                StreamEvent::Missed(missed) => format!("missed {missed}"),
                StreamEvent::End(_) => "end".to_owned(),
            });
        }
        told
    }

    #[test]
    fn a_queue_takes_as_many_chunks_and_bytes_as_it_may_and_not_one_more() {
        let by_count = queue(2, 100);
        assert!(by_count.try_push(chunk("a"), 1).is_ok() && by_count.try_push(chunk("b"), 1).is_ok());
        assert!(by_count.try_push(chunk("c"), 1).is_err());
        let by_bytes = queue(100, 10);
        assert!(by_bytes.try_push(chunk("a"), 4).is_ok() && by_bytes.try_push(chunk("b"), 6).is_ok());
        assert!(by_bytes.try_push(chunk("c"), 0).is_ok());
        assert!(by_bytes.try_push(chunk("d"), 1).is_err());
        let alone = queue(1, 1);
        assert!(alone.try_push(chunk("larger than the queue"), 1000).is_ok());
    }

    #[tokio::test]
    async fn who_waits_for_room_goes_on_when_something_was_read_and_nothing_is_lost() {
        let queue = queue(2, 100);
        let writer = tokio::spawn({
            let queue = Arc::clone(&queue);
            async move {
                for number in 0..100 {
                    queue.push(chunk(&number.to_string()), 1).await;
                }
                queue.finish(done());
            }
        });
        let mut expected: Vec<String> = (0..100).map(|number| number.to_string()).collect();
        expected.push("end".to_owned());
        assert_eq!(told(&queue).await, expected);
        writer.await.unwrap();
    }

    #[tokio::test]
    async fn an_end_finds_its_place_in_a_full_queue_and_only_the_first_counts() {
        let queue = queue(1, 10);
        queue.push(chunk("a"), 10).await;
        assert!(queue.finish(done()));
        assert!(!queue.finish(done()));
        queue.push(chunk("too late"), 1).await;
        assert_eq!(told(&queue).await, ["a", "end"]);
        assert!(queue.next().await.is_none());
    }

    #[tokio::test]
    async fn a_writer_that_waits_is_let_go_by_a_cancel_and_the_reader_is_told_what_it_missed() {
        let queue = queue(1, 10);
        queue.push(chunk("a"), 1).await;
        let writer = tokio::spawn({
            let queue = Arc::clone(&queue);
            async move {
                queue.push(chunk("b"), 1).await;
                queue.push(chunk("c"), 1).await;
                queue.finish(done());
            }
        });
        queue.when_full(WhenFull::Drop);
        writer.await.unwrap();
        assert_eq!(told(&queue).await, ["a", "missed 2", "end"]);
    }

    #[tokio::test]
    async fn a_reader_that_is_gone_makes_nobody_wait() {
        let queue = queue(1, 10);
        queue.push(chunk("a"), 1).await;
        queue.when_full(WhenFull::Gone);
        queue.when_full(WhenFull::Wait);
        queue.push(chunk("b"), 100).await;
        queue.push(chunk("c"), 100).await;
        assert!(queue.is_open());
        queue.finish(done());
        assert_eq!(told(&queue).await, ["end"]);
    }
}
