//! Messages and contacts: sending within a quota and once per key, reading page by page.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use outrigger_wire::peer::BoxFuture;
use outrigger_wire::rpc::Id;
use serde::Serialize;
use serde_json::value::RawValue;

use super::cursor::MAX_CURSOR_BYTES;
use super::memory::{Claim, Delivery, SendMemory};
use super::page::{fit, room};
use super::params::{Params, Text};
use super::serve::{Later, Shared, Work};
use crate::mesh::{
    ContactQuery, Direction, MeshError, MessageQuery, Messaging, Method, Outgoing, Position, Sent,
};
use crate::protocol::{
    BadParam, Component, ContactJson, ContactPage, Fault, MessageJson, MessagePage, Outcome, SendResult,
};

/// Numbers in JSON that every language reads alike end here.
const MAX_TIME_MS: u64 = (1 << 53) - 1;

const METHODS: &[(&str, Method)] = &[
    ("direct", Method::Direct),
    ("opportunistic", Method::Opportunistic),
    ("propagated", Method::Propagated),
];

const DIRECTIONS: &[(&str, Direction)] =
    &[("incoming", Direction::Incoming), ("outgoing", Direction::Outgoing)];

impl Shared {
    /// `host.messages.send`.
    pub(super) fn send(self: &Arc<Self>, mut params: Params<'_>) -> Result<Work, Fault> {
        let destination = params.address("destinationHash");
        let destination = params.required("destinationHash", destination);
        let content = params.text("content", Text::bytes(1, 16_384));
        let content = params.required("content", content);
        let title = params.text("title", Text::line(0, 256));
        let method = params.word("method", METHODS);
        let reply_to = params.message("replyTo");
        let key = params.text("clientMessageId", Text::key(1, 64));
        let (destination, content) = params.finish(destination.zip(content))?;
        let message = Outgoing { destination, content, title, method, reply_to };

        self.gate.take_send()?;
        let messaging = Arc::clone(&self.gate.parts.services.messaging);
        let future: BoxFuture<_> = match key {
            None => Box::pin(async move { answer(messaging.send(message).await, false) }),
            Some(key) => self.send_once(&key, message, &*messaging)?,
        };
        let within = self.gate.parts.admission.limits.send_timeout;
        Ok(Work::Later(Later { future, within, afterwards: Outcome::Unknown }))
    }

    /// Sends a message that has a key. It goes on being sent when its caller gives up, so that its caller can ask again.
    fn send_once(
        &self,
        key: &str,
        message: Outgoing,
        messaging: &dyn Messaging,
    ) -> Result<BoxFuture<Result<Box<RawValue>, Fault>>, Fault> {
        let memory = &self.gate.parts.services.dedup;
        let claim = SendMemory::claim(memory, wall_clock_ms(), &self.gate.parts.extension, key, &message);
        let (mut outcome, deduplicated) = match claim {
            Claim::Conflict => return Err(Fault::Conflict(crate::protocol::Thing::ClientMessageId)),
            Claim::Done(sent) => return Ok(Box::pin(async move { answer(Ok(sent), true) })),
            Claim::Pending(outcome) => (outcome, true),
            Claim::New(ticket) => {
                let outcome = ticket.outcome();
                let sending = messaging.send(message);
                tokio::spawn(async move { ticket.settle(sending.await) });
                (outcome, false)
            }
        };
        Ok(Box::pin(async move {
            match outcome.wait_for(Option::is_some).await.map(|delivery| delivery.clone()) {
                Ok(Some(delivery)) => answer(delivery, deduplicated),
                // Whoever sends it always says what became of it.
                Ok(None) | Err(_) => Err(Fault::Unavailable(Component::Messaging)),
            }
        }))
    }

    /// `host.messages.list`.
    pub(super) fn list_messages(self: &Arc<Self>, mut params: Params<'_>, id: &Id) -> Result<Work, Fault> {
        let filter = MessageQuery {
            peer: params.address("peer"),
            direction: params.word("direction", DIRECTIONS),
            since_ms: params.number("sinceMs", 0, MAX_TIME_MS),
            until_ms: params.number("untilMs", 0, MAX_TIME_MS),
            after: None,
            limit: usize::try_from(params.number("limit", 1, 200).unwrap_or(50)).unwrap_or(50),
        };
        let cursor = params.text("cursor", Text::free(1, MAX_CURSOR_BYTES));
        params.finish(Some(()))?;
        let extension = self.gate.parts.extension.clone();
        let key = self.gate.parts.services.cursor_key.clone();
        let read = |cursor: String| key.read_messages(&extension, &filter, &cursor).ok_or_else(bad_cursor);
        let after = cursor.map(read).transpose()?;

        // One more than is wanted, to know whether there is a next page.
        let query = MessageQuery { after, limit: filter.limit + 1, ..filter };
        let found = self.gate.parts.services.messaging.messages(query);
        let room = room(self.gate.parts.admission.limits.max_frame_bytes, id.as_json().len());
        Ok(self.later(async move {
            let found = found.await.map_err(|error| unavailable(&error, Component::Messaging))?;
            let mut messages: Vec<MessageJson<'_>> =
                found.iter().take(filter.limit).map(MessageJson::from).collect();
            let count = fit(&mut messages, room);
            messages.truncate(count);
            let next_cursor = found[..count].last().filter(|_| found.len() > count).map(|last| {
                let at = Position { timestamp_ms: last.timestamp_ms, hash: last.hash };
                key.of_messages(&extension, &filter, at)
            });
            raw(&MessagePage { messages, next_cursor })
        }))
    }

    /// `host.contacts.list`.
    pub(super) fn list_contacts(self: &Arc<Self>, mut params: Params<'_>, id: &Id) -> Result<Work, Fault> {
        let filter = ContactQuery {
            text: params.text("query", Text::free(0, 128)).filter(|text| !text.is_empty()),
            after: None,
            limit: usize::try_from(params.number("limit", 1, 500).unwrap_or(100)).unwrap_or(100),
        };
        let cursor = params.text("cursor", Text::free(1, MAX_CURSOR_BYTES));
        params.finish(Some(()))?;
        let extension = self.gate.parts.extension.clone();
        let key = self.gate.parts.services.cursor_key.clone();
        let read = |cursor: String| key.read_contacts(&extension, &filter, &cursor).ok_or_else(bad_cursor);
        let after = cursor.map(read).transpose()?;

        let query = ContactQuery { after, limit: filter.limit + 1, ..filter.clone() };
        let found = self.gate.parts.services.messaging.contacts(query);
        let room = room(self.gate.parts.admission.limits.max_frame_bytes, id.as_json().len());
        Ok(self.later(async move {
            let found = found.await.map_err(|error| unavailable(&error, Component::Contacts))?;
            let mut contacts: Vec<ContactJson<'_>> =
                found.iter().take(filter.limit).map(ContactJson::from).collect();
            let count = fit(&mut contacts, room);
            contacts.truncate(count);
            let next_cursor = found[..count]
                .last()
                .filter(|_| found.len() > count)
                .map(|last| key.of_contacts(&extension, &filter, last.id));
            raw(&ContactPage { contacts, next_cursor })
        }))
    }

    fn later(&self, future: impl Future<Output = Result<Box<RawValue>, Fault>> + Send + 'static) -> Work {
        let within = self.gate.parts.admission.limits.request_timeout;
        Work::Later(Later { future: Box::pin(future), within, afterwards: Outcome::Nothing })
    }
}

fn answer(delivery: Delivery, deduplicated: bool) -> Result<Box<RawValue>, Fault> {
    let Sent { hash, state } = delivery.map_err(|error| unavailable(&error, Component::Messaging))?;
    raw(&SendResult { message_hash: hash, state, deduplicated })
}

fn unavailable(error: &MeshError, component: Component) -> Fault {
    match error {
        MeshError::Refused(reason) => Fault::SendRejected(*reason),
        // The reason is for the operator; it may name files of the host.
        MeshError::Unavailable { .. } => Fault::Unavailable(component),
    }
}

fn bad_cursor() -> Fault {
    let reason = "was not made by this host for this extension and this filter".to_owned();
    Fault::Params(vec![BadParam { path: "/cursor".to_owned(), reason }])
}

/// A result as it goes over the wire.
pub(super) fn raw(result: &impl Serialize) -> Result<Box<RawValue>, Fault> {
    // Results are texts, numbers and lists of them, which always serialise.
    serde_json::value::to_raw_value(result).map_err(|_| Fault::Internal { reference: "result".to_owned() })
}

fn wall_clock_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
