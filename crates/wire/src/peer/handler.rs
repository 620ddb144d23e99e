//! What the owner of a peer provides: answers to requests, an ear for notifications, and a temper.

use std::fmt;
use std::pin::Pin;

use serde_json::value::RawValue;

use super::end::End;
use super::handle::Peer;
use crate::line::Defect as LineDefect;
use crate::rpc::{Code, ErrorObject, Id, Refusal, code};

/// A future without a name, so that peers do not multiply in the compiler.
pub type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// What a request comes to.
pub type Outcome = Result<Box<RawValue>, ErrorObject>;

/// Serves the other side. All methods are called from the peer's own tasks; none may block.
///
/// A handler must not keep a [`Peer`], which would keep the conversation alive for ever; every [`Call`] and
/// [`Note`] brings one along.
pub trait Handler: Send + Sync + 'static {
    /// Answers a request. Called once per request, in order of arrival; the futures then run side by side.
    ///
    /// The future is dropped when the caller cancels, and when the conversation ends.
    fn request(&self, call: Call) -> Answer;

    /// Hears a notification. Called one at a time, in order of arrival; the next one waits for the returned future.
    fn notification(&self, note: Note) -> Option<BoxFuture<()>>;

    /// A gate before anything is spent on a request: before its id is compared and before it takes a place.
    ///
    /// # Errors
    /// The error is the answer.
    fn admit(&self, method: &str, id: &Id) -> Result<(), ErrorObject> {
        let _ = (method, id);
        Ok(())
    }

    /// An own call of this method was answered. Called in the order of arrival: what the other side sent after its answer comes
    /// later, even if the caller has not looked at the answer yet.
    fn answered(&self, method: &str) {
        let _ = method;
    }

    /// Decides what to do about something irregular. The default answers what can be answered, and carries on.
    fn complain(&self, complaint: &Complaint<'_>) -> Reaction {
        Reaction::Answer(complaint.to_error())
    }

    /// A last notification, written after everything else, when the conversation ends in good order.
    fn farewell(&self, end: &End) -> Option<Farewell> {
        let _ = end;
        None
    }
}

/// A handler for a side that only calls: it knows no method and hears no notification.
#[derive(Clone, Copy, Debug)]
pub struct NoMethods;

impl Handler for NoMethods {
    fn request(&self, call: Call) -> Answer {
        Answer::Now(Err(ErrorObject::new(
            code::METHOD_NOT_FOUND,
            format!("unknown method '{}'", call.method),
        )))
    }

    fn notification(&self, _: Note) -> Option<BoxFuture<()>> {
        None
    }
}

/// A request to be answered.
#[derive(Debug)]
pub struct Call {
    /// The peer it came through, for calls in the other direction.
    pub peer: Peer,
    /// Its id, for logs; the answer gets it by itself.
    pub id: Id,
    /// What is called.
    pub method: String,
    /// The params as they were written.
    pub params: Option<Box<RawValue>>,
}

/// A notification.
#[derive(Debug)]
pub struct Note {
    /// The peer it came through.
    pub peer: Peer,
    /// What it is about.
    pub method: String,
    /// The params as they were written.
    pub params: Option<Box<RawValue>>,
}

/// The answer to a request.
pub enum Answer {
    /// It is known already. Cheaper than a future, and answered in order.
    Now(Outcome),
    /// It is known already, and `written` is told when it has been written: what is sent after that cannot arrive with
    /// the answer, let alone before it. If it never is written, the sender is dropped.
    Receipted {
        /// The answer.
        outcome: Outcome,
        /// Who is told.
        written: Receipt,
    },
    /// It will be known later.
    Later(BoxFuture<Outcome>),
}

/// Tells that something has been written.
pub type Receipt = tokio::sync::oneshot::Sender<()>;

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Now(outcome) => f.debug_tuple("Now").field(outcome).finish(),
            Self::Receipted { outcome, .. } => f.debug_tuple("Receipted").field(outcome).finish(),
            Self::Later(_) => f.write_str("Later"),
        }
    }
}

/// Something irregular that the handler may want to answer in its dialect's words, count, or end the conversation for.
#[derive(Debug)]
pub enum Complaint<'a> {
    /// A line is not a message. If it was a malformed reply, answers are not sent.
    Refused(&'a Refusal),
    /// A line has unacceptable content, for example is not UTF-8.
    Defective(LineDefect),
    /// A line was longer than the limit and was thrown away.
    TooLong {
        /// The limit.
        limit: usize,
        /// How many bytes were thrown away.
        dropped: u64,
    },
    /// A blank line, where the line policy keeps them. The default answer is silence.
    Blank,
    /// A request found no place ([`super::Crowded::Refuse`]).
    Busy {
        /// How many requests may run and wait.
        limit: usize,
    },
    /// A notification found no place and was dropped ([`super::Crowded::Refuse`]). Cannot be answered.
    NotificationDropped,
    /// A request was cancelled by its caller; this answers it.
    Cancelled,
    /// The handler of a request panicked; this answers it.
    Panicked,
    /// The answer to a request is longer than a line may be; this answers it instead.
    ReplyTooLong {
        /// The length of the answer.
        length: usize,
        /// The limit.
        limit: usize,
    },
    /// A reply came for a call that nobody made. Cannot be answered.
    UnknownReply,
    /// A reply came after its call had been given up. Cannot be answered.
    LateReply,
    /// An error came that answers to no call: the other side could not read something we sent. Cannot be answered.
    OrphanError(&'a ErrorObject),
}

impl Complaint<'_> {
    /// The error that the default reaction answers with.
    #[must_use]
    pub fn to_error(&self) -> ErrorObject {
        let error = |code: Code, message: String| ErrorObject::new(code, message);
        match self {
            Self::Refused(refusal) => refusal.to_error(),
            Self::Defective(defect) => error(code::PARSE_ERROR, defect.to_string()),
            Self::TooLong { limit, .. } => {
                error(code::INVALID_REQUEST, format!("line exceeds maximum size of {limit} bytes"))
            }
            Self::Busy { limit } => error(code::peer::BUSY, format!("more than {limit} requests at once")),
            Self::Cancelled => error(code::peer::CANCELLED, "request was cancelled".into()),
            Self::Panicked => error(code::INTERNAL_ERROR, "handler failed unexpectedly".into()),
            Self::ReplyTooLong { length, limit } => error(
                code::INTERNAL_ERROR,
                format!("response of {length} bytes exceeds maximum size of {limit} bytes"),
            ),
            Self::Blank
            | Self::NotificationDropped
            | Self::UnknownReply
            | Self::LateReply
            | Self::OrphanError(_) => error(code::INVALID_REQUEST, "unexpected message".into()),
        }
    }

    /// Whether there is anyone to answer.
    pub(super) fn can_be_answered(&self) -> bool {
        match self {
            Self::Refused(refusal) => refusal.shape == crate::rpc::Shape::Call,
            Self::Defective(_)
            | Self::TooLong { .. }
            | Self::Busy { .. }
            | Self::Cancelled
            | Self::Panicked
            | Self::ReplyTooLong { .. } => true,
            Self::Blank
            | Self::NotificationDropped
            | Self::UnknownReply
            | Self::LateReply
            | Self::OrphanError(_) => false,
        }
    }
}

/// What is done about a [`Complaint`].
#[derive(Clone, Debug, PartialEq)]
pub enum Reaction {
    /// This is the answer, if there is anyone to answer; the conversation goes on.
    Answer(ErrorObject),
    /// Nothing. A request must still be answered, so for those this is the default answer.
    Ignore,
    /// The conversation ends as [`End::Violation`] with this reason, after this answer if there is one.
    End {
        /// Why.
        reason: String,
        /// What the other side is told first.
        answer: Option<ErrorObject>,
    },
}

/// A last notification.
#[derive(Debug)]
pub struct Farewell {
    /// What it is about.
    pub method: String,
    /// Its params.
    pub params: Option<Box<RawValue>>,
}
