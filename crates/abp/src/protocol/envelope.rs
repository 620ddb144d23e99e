//! One line of the conversation.
//!
//! Larger variants are boxed, so that the one that comes by the hundred thousand moves cheaply.

use std::borrow::Cow;

use super::ask::{Answer, Ask, Offer, owned};
use super::code::ErrorCode;
use super::event::{AgentEvent, Slots};
use super::fields::{EnvelopeError, Fields, Place};
use super::hello::Hello;
use super::id::RunId;
use super::json::{Cursor, Piece};
use super::order::WorkOrder;
use super::received::ReceivedReceipt;

/// A message, in either direction.
#[derive(Clone, Debug, PartialEq)]
pub enum Envelope<'a> {
    /// A child introduces itself.
    Hello(Box<Hello>),
    /// A host wants work done.
    Run(Box<Run>),
    /// A child reports.
    Event {
        /// The run.
        ref_id: Cow<'a, str>,
        /// What happened.
        event: AgentEvent<'a>,
    },
    /// A child is done.
    Final {
        /// The run.
        ref_id: Cow<'a, str>,
        /// What it says about it.
        receipt: Box<ReceivedReceipt<'a>>,
    },
    /// A child cannot go on.
    Fatal {
        /// The run, if there is one.
        ref_id: Option<Cow<'a, str>>,
        /// Why, in words.
        error: Cow<'a, str>,
        /// What sort of error.
        error_code: Option<ErrorCode>,
    },
    /// A host wants the run to end.
    Cancel {
        /// The run.
        ref_id: Cow<'a, str>,
        /// Why.
        reason: Option<Cow<'a, str>>,
    },
    /// The user says something while the child works.
    Steer {
        /// The run.
        ref_id: Cow<'a, str>,
        /// What.
        text: Cow<'a, str>,
    },
    /// A host wants to know whether the child is there.
    Ping {
        /// To be echoed.
        seq: u64,
    },
    /// It is.
    Pong {
        /// The echo.
        seq: u64,
    },
    /// A child asks before it acts.
    Ask(Box<Ask<'a>>),
    /// What it may do.
    Answer(Answer),
    /// A message that we do not know.
    Other {
        /// Its `t`.
        t: Cow<'a, str>,
    },
}

/// `run`.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// The name of the run; what `ref_id` must be.
    pub id: RunId,
    /// What is to be done.
    pub order: WorkOrder,
    /// Which extensions the child may use.
    pub outrigger: Option<Offer>,
}

/// Reads one line, without its newline. The members may be in any order.
///
/// # Errors
/// When it is not JSON, no object, or a member is missing or not what it must be.
pub fn read(line: &str) -> Result<Envelope<'_>, EnvelopeError> {
    let root = Place::ROOT;
    let mut cursor = Cursor::new(line);
    if cursor.peek()? != b'{' {
        return Err(root.wrong(&Piece::read(line)?, "an object"));
    }
    let (mut t, mut ref_id) = (Piece::ABSENT, Piece::ABSENT);
    // The member `event`: its members if it is an object, what it is if not.
    let (mut event, mut other) = (Slots::empty(), Some(Piece::ABSENT));
    let start = cursor.at();
    cursor.enter(b'{')?;
    let mut first = true;
    while let Some(key) = cursor.key(&mut first)? {
        match &*key {
            "t" => t = cursor.value()?,
            "ref_id" => ref_id = cursor.value()?,
            "event" if cursor.peek()? == b'{' => {
                event.fill(&mut cursor)?;
                other = None;
            }
            "event" => other = Some(cursor.value()?),
            _ => _ = cursor.value()?,
        }
    }
    let whole = cursor.since(start);
    cursor.end()?;
    let t = t.string().ok_or_else(|| root.member("t").wrong(&t, "a string"))?;
    if t != "event" {
        return read_other(t, &Piece::read(whole)?);
    }
    let ref_id = ref_id.string().ok_or_else(|| root.member("ref_id").wrong(&ref_id, "a string"))?;
    match other {
        None => Ok(Envelope::Event { ref_id, event: event.event(&root.member("event"))? }),
        Some(piece) => Err(root.member("event").wrong(&piece, "an object")),
    }
}

/// Everything but events; a second walk over the line does not matter here.
fn read_other<'a>(t: Cow<'a, str>, line: &Piece<'a>) -> Result<Envelope<'a>, EnvelopeError> {
    let root = Place::ROOT;
    let names = [
        "ref_id",
        "id",
        "work_order",
        "outrigger",
        "receipt",
        "error",
        "error_code",
        "reason",
        "seq",
        "text",
    ];
    let fields = Fields::required(line, &root, names)?;
    let seq =
        || fields.opt_u64("seq")?.ok_or_else(|| root.member("seq").wrong(&fields.piece("seq"), "a number"));
    Ok(match &*t {
        "hello" => Envelope::Hello(Box::new(Hello::of_piece(line)?)),
        "run" => Envelope::Run(Box::new(Run {
            id: RunId::new(fields.text("id")?),
            order: WorkOrder::of_piece(&fields.piece("work_order"), &root.member("work_order"))?,
            outrigger: Offer::of_piece(&fields.piece("outrigger")),
        })),
        "final" => Envelope::Final {
            ref_id: fields.text("ref_id")?,
            receipt: Box::new(ReceivedReceipt::of_piece(&fields.piece("receipt"), &root.member("receipt"))?),
        },
        "fatal" => Envelope::Fatal {
            ref_id: fields.opt_text("ref_id")?,
            error: fields.text("error")?,
            error_code: fields.opt_text("error_code")?.map(|code| ErrorCode::from(&*code)),
        },
        "cancel" => Envelope::Cancel { ref_id: fields.text("ref_id")?, reason: fields.opt_text("reason")? },
        "steer" => Envelope::Steer { ref_id: fields.text("ref_id")?, text: fields.text("text")? },
        "ping" => Envelope::Ping { seq: seq()? },
        "pong" => Envelope::Pong { seq: seq()? },
        "ask" => Envelope::Ask(Box::new(Ask::of_piece(line)?)),
        "answer" => Envelope::Answer(Answer::of_piece(line)?),
        _ => Envelope::Other { t },
    })
}

impl Envelope<'_> {
    /// Its `t`.
    #[must_use]
    pub fn t(&self) -> &str {
        match self {
            Self::Hello(_) => "hello",
            Self::Run(_) => "run",
            Self::Event { .. } => "event",
            Self::Final { .. } => "final",
            Self::Fatal { .. } => "fatal",
            Self::Cancel { .. } => "cancel",
            Self::Steer { .. } => "steer",
            Self::Ping { .. } => "ping",
            Self::Pong { .. } => "pong",
            Self::Ask(_) => "ask",
            Self::Answer(_) => "answer",
            Self::Other { t } => t,
        }
    }

    /// The same, owned.
    #[must_use]
    pub fn into_owned(self) -> Envelope<'static> {
        match self {
            Self::Hello(hello) => Envelope::Hello(hello),
            Self::Run(run) => Envelope::Run(run),
            Self::Event { ref_id, event } => {
                Envelope::Event { ref_id: owned(ref_id), event: event.into_owned() }
            }
            Self::Final { ref_id, receipt } => {
                Envelope::Final { ref_id: owned(ref_id), receipt: Box::new(receipt.into_owned()) }
            }
            Self::Fatal { ref_id, error, error_code } => {
                Envelope::Fatal { ref_id: ref_id.map(owned), error: owned(error), error_code }
            }
            Self::Cancel { ref_id, reason } => {
                Envelope::Cancel { ref_id: owned(ref_id), reason: reason.map(owned) }
            }
            Self::Steer { ref_id, text } => Envelope::Steer { ref_id: owned(ref_id), text: owned(text) },
            Self::Ping { seq } => Envelope::Ping { seq },
            Self::Pong { seq } => Envelope::Pong { seq },
            Self::Ask(ask) => Envelope::Ask(Box::new(ask.into_owned())),
            Self::Answer(answer) => Envelope::Answer(answer),
            Self::Other { t } => Envelope::Other { t: owned(t) },
        }
    }
}
