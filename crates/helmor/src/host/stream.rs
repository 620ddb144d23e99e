//! A stream, for the one who reads it.

use std::fmt;
use std::sync::{Arc, Weak};

use super::connection::Connection;
use super::event::{StreamEnd, StreamEvent};
use super::hub::ToStop;
use super::queue::Queue;
use crate::protocol::ProviderName;

/// A turn: what it says in the order in which it came, then exactly one end.
///
/// A reader may take its time. What comes meanwhile waits, up to [`Terms::stream_bytes`](super::Terms::stream_bytes), and other
/// streams do not notice; beyond it the stream ends with [`StreamEnd::Overflow`], after everything that had waited. Dropping a
/// stream stops its turn.
pub struct Stream {
    id: String,
    session: String,
    provider: ProviderName,
    queue: Arc<Queue>,
    connection: Weak<Connection>,
}

impl Stream {
    pub(super) fn new(
        id: String,
        (session, provider): (String, ProviderName),
        queue: Arc<Queue>,
        connection: Weak<Connection>,
    ) -> Self {
        Self { id, session, provider, queue, connection }
    }

    /// The id of its request.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The session it belongs to.
    #[must_use]
    pub fn session(&self) -> &str {
        &self.session
    }

    /// Who does the work.
    #[must_use]
    pub fn provider(&self) -> &ProviderName {
        &self.provider
    }

    /// The next event; `None` after the end. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<StreamEvent> {
        self.queue.next().await
    }

    /// Reads to the end, past everything else.
    pub async fn end(mut self) -> Option<StreamEnd> {
        while let Some(event) = self.next().await {
            if let StreamEvent::End(end) = event {
                return Some(end);
            }
        }
        None
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.queue.abandon();
        if self.queue.is_open()
            && let Some(connection) = self.connection.upgrade()
        {
            connection.stop_unattended(ToStop::of(self.session.clone(), self.provider.clone()));
        }
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream").field("id", &self.id).field("session", &self.session).finish_non_exhaustive()
    }
}
