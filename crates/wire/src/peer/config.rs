//! The limits and habits of a peer. There is no default: who opens a conversation decides how much it may cost.

use std::time::Duration;

use crate::line::LinePolicy;
use crate::rpc::EnvelopePolicy;

/// Everything a peer must be told before it starts.
#[derive(Clone, Copy, Debug)]
pub struct PeerConfig {
    /// How bytes become lines.
    pub lines: LinePolicy,
    /// How lines become messages.
    pub envelope: EnvelopePolicy,
    /// The longest line that is sent, in bytes before the newline.
    pub max_line_out: usize,
    /// How many own calls may await their answers; further callers wait.
    pub max_calls: usize,
    /// What the other side may ask for at once.
    pub incoming: IncomingLimits,
    /// What may wait to be written.
    pub outbox: OutboxLimits,
    /// How long the other side may read nothing while something waits, before the conversation is given up.
    pub write_stall: Duration,
    /// How long handlers and the outbox get to finish once nothing more is read.
    pub drain: Duration,
    /// How a call is cancelled.
    pub cancel: CancelWire,
    /// What becomes of a request whose id is still in flight.
    pub duplicate_ids: DuplicateIds,
}

/// What the other side may ask for at once.
#[derive(Clone, Copy, Debug)]
pub struct IncomingLimits {
    /// How many requests are handled at the same time.
    pub running: usize,
    /// How many more may wait for their turn.
    pub waiting: usize,
    /// How many notifications may wait for their turn; they are handled one after the other, in order. Together they have at
    /// most as many bytes as two lines may have.
    pub notifications: usize,
    /// What happens when that is not enough.
    pub crowded: Crowded,
}

/// What happens when the other side asks for more than the limits allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crowded {
    /// A request is answered with an error, a notification is dropped and counted.
    Refuse,
    /// Nothing more is read until there is room, so the other side has to wait. Nothing is lost, but answers to own
    /// calls wait too: a handler that calls back should have a deadline.
    Pause,
}

/// What may wait to be written. Beyond it, senders wait, except that events are dropped, oldest first.
#[derive(Clone, Copy, Debug)]
pub struct OutboxLimits {
    /// Bytes of calls, actions and control notifications. One message is always admitted, however long.
    pub bytes: usize,
    /// Bytes of answers that may wait before no further request is started and nothing more is read. Two peers that flood
    /// each other and both stop reading wait until [`PeerConfig::write_stall`]; room for the answers to every call that
    /// the other side may have in flight rules that out.
    pub reply_bytes: usize,
    /// How many events may wait.
    pub events: usize,
    /// Bytes of events that may wait.
    pub event_bytes: usize,
}

/// How a call is cancelled, in both directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CancelWire {
    /// The other side is not told, and cannot tell.
    Silent,
    /// By the notification of this name with params `{"id": …}`, for example `$/cancel`.
    Notify(&'static str),
    /// The other side is told by the notification of this name, whose params have the id under this name, for example
    /// `notifications/cancelled` and `requestId`. What it says itself is a notification like any other.
    Tell {
        /// The notification.
        method: &'static str,
        /// The member of its params.
        member: &'static str,
    },
}

/// What becomes of a request whose id equals one still in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DuplicateIds {
    /// It is answered with an error that carries the id `null`, so that the first request is unaffected.
    Refuse,
    /// It is served like any other. The last one with that id is the one that can be cancelled.
    Serve,
}

/// Which messages go first when several wait. Within a lane, first come, first served.
///
/// Answers travel with `Control`, so an answer may overtake an action or an event that its handler sent before it. What
/// must arrive before the answer, such as progress, is sent on `Control` too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lane {
    /// Health, shutdown, cancellation.
    Control,
    /// Calls, and notifications that must arrive.
    Action,
    /// Notifications that may be dropped when the other side is slow.
    Event,
}

/// What the ids of own calls look like on the wire. They count up from 1 and are never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallIds {
    /// Numbers: `1`, `2`, …
    Numbers,
    /// Texts that begin with this, for example `srv_1`, `srv_2`, …, so that they cannot be taken for the other side's.
    Prefixed(&'static str),
}

/// How long a call may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deadline {
    /// This long, from the moment the call is made.
    After(Duration),
    /// As long as the conversation lasts.
    Never,
}
