//! A stream, for the one who reads it.

use std::fmt;
use std::sync::{Arc, Weak};

use super::chunk::Chunk;
use super::connection::Connection;
use super::end::StreamEnd;
use super::queue::{Queue, WhenFull};

/// A stream: chunks in the order in which they came, then exactly one end.
///
/// A reader that takes its time makes the sidecar wait: when [`StreamLimits`](super::StreamLimits) are reached nothing more is
/// read from it, which holds up its other streams and answers too (not its pings, which are excused meanwhile). So read it,
/// [cancel](super::Sidecar::cancel) it, or drop it: dropping cancels.
pub struct Stream {
    id: StreamId,
    queue: Arc<Queue>,
    connection: Weak<Connection>,
}

/// The id of a stream.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(String);

/// What a reader gets.
#[derive(Clone, Debug)]
pub enum StreamEvent {
    /// The next piece.
    Chunk(Chunk),
    /// So many chunks found no room after the stream was cancelled or the sidecar was told to leave.
    Missed(u64),
    /// The end; nothing follows it.
    End(StreamEnd),
}

impl Stream {
    pub(super) fn new(id: StreamId, queue: Arc<Queue>, connection: Weak<Connection>) -> Self {
        Self { id, queue, connection }
    }

    /// Its id, for [`Sidecar::cancel`](super::Sidecar::cancel) and [`Sidecar::steer`](super::Sidecar::steer).
    #[must_use]
    pub fn id(&self) -> &StreamId {
        &self.id
    }

    /// The next event; `None` after the end. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<StreamEvent> {
        self.queue.next().await
    }

    /// It was refused: there is nothing to cancel.
    pub(super) fn never_was(mut self) {
        self.connection = Weak::new();
    }

    /// Reads to the end: the text of all deltas, and how it ended.
    pub async fn text(mut self) -> (String, Option<StreamEnd>) {
        let mut text = String::new();
        while let Some(event) = self.next().await {
            match event {
                StreamEvent::Chunk(chunk) => text.push_str(chunk.delta.as_deref().unwrap_or_default()),
                StreamEvent::Missed(_) => {}
                StreamEvent::End(end) => return (text, Some(end)),
            }
        }
        (text, None)
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        let was_open = self.queue.is_open();
        self.queue.when_full(WhenFull::Gone);
        if was_open && let Some(connection) = self.connection.upgrade() {
            connection.cancel_unattended(self.id.clone());
        }
    }
}

impl StreamId {
    /// `str_` and 32 hex digits; `None` where there is no randomness.
    pub(super) fn random() -> Option<Self> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).ok()?;
        Some(Self(bytes.iter().fold("str_".to_owned(), |id, byte| format!("{id}{byte:02x}"))))
    }

    /// An id of the caller's own choice.
    pub fn new(id: impl Into<String>) -> Self {
        Self(id.into())
    }

    /// As it goes over the wire.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for StreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream").field("id", &self.id).finish_non_exhaustive()
    }
}
