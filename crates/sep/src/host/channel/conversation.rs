//! The conversation with an extension: every question of the host as a call with its deadline.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use outrigger_supervise::state::PingSeq;
use outrigger_wire::line::dialect;
use outrigger_wire::peer::{
    CallError, CancelWire, Counts, Crowded, Deadline, DuplicateIds, Handler, IncomingLimits, Lane,
    OutboxLimits, Peer, PeerConfig, Wiring,
};
use outrigger_wire::rpc::{EnvelopePolicy, ErrorObject};
use outrigger_wire::tape::{Listener, Tape};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::{RawValue, to_raw_value};
use tokio::sync::watch;

use super::attach::Attached;
use super::end::ChannelEnd;
use super::negotiate::{self, Disagreement, Mismatch, Offer};
use super::patience::{self, Overdue, Patience};
use crate::host::life::LifecycleTopic;
use crate::protocol::{
    ActionCall, ActionResult, CANCEL, EventCall, ExtensionMethod, HealthAnswer, HealthCall, Initialize,
    Initialized, Limits, SessionId, ShutdownCall, ShutdownReason, Version,
};

/// How long an action may take.
pub const ACTION_TIME: Duration = Duration::from_secs(30);
/// How long an extension may read nothing while something waits for it.
pub const WRITE_STALL: Duration = Duration::from_secs(10);
/// How long what was begun may take once the channel is being closed.
const DRAIN: Duration = Duration::from_secs(2);
/// What fits into the outbox beside two frames.
const OUTBOX_EXTRA: usize = 64 * 1024;
/// Calls in flight beside the events: actions that people invoke.
const MAX_ACTIONS: usize = 64;
/// The longest word on its health, in code points.
const MAX_DETAIL: usize = 256;
/// What the first frame needs around its params.
const INITIALIZE_BYTES: usize = r#"{"jsonrpc":"2.0","id":1,"method":"sep.initialize","params":}"#.len();
/// Notifications of the extension that wait for their turn.
const MAX_NOTES: usize = 64;

/// Hears every frame of a conversation, both ways, after the attach.
pub type TraceTap = Arc<dyn Listener>;

/// A conversation with an attached extension. Clones are the same one; it ends when the last is dropped.
#[derive(Clone)]
pub struct Conversation {
    peer: Peer,
    session: SessionId,
    patience: Patience,
    max_frame_bytes: usize,
}

/// Why a call has no result.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum CallFailure {
    /// The extension answered with an error.
    #[error("the extension answered `{method}` with an error: {error}")]
    Refused {
        /// What was called.
        method: ExtensionMethod,
        /// What it answered.
        error: ErrorObject,
    },
    /// The extension answered with something that is no result of this call.
    #[error("the extension answered `{method}` with something else: {why}")]
    Garbage {
        /// What was called.
        method: ExtensionMethod,
        /// What is wrong with it.
        why: String,
    },
    /// No answer came in time. The extension was told that nobody waits any more.
    #[error("the extension did not answer `{method}` within {after:?}")]
    Late {
        /// What was called.
        method: ExtensionMethod,
        /// How long was waited.
        after: Duration,
    },
    /// The conversation is over.
    #[error("`{method}` cannot be answered: {}", .end.detail)]
    Ended {
        /// What was called.
        method: ExtensionMethod,
        /// How it ended.
        end: ChannelEnd,
    },
    /// The call is longer than a frame may be. It was not sent.
    #[error("`{method}` has {length} bytes, and a frame may have {limit}")]
    TooLong {
        /// What was called.
        method: ExtensionMethod,
        /// How long it is.
        length: usize,
        /// How long it may be.
        limit: usize,
    },
}

/// Why a session did not begin.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum InitializeError {
    /// There is no version to speak: tell it so ([`ShutdownReason::VersionUnsupported`]) and do not start it again.
    #[error("no common version: {detail}, the extension said {said}")]
    Incompatible {
        /// What is wrong.
        detail: Mismatch,
        /// What the extension said, cut.
        said: String,
    },
    /// The extension answered with an error. It counts as an exit before it was ready.
    #[error("the extension refused to begin: {0}")]
    Refused(ErrorObject),
    /// There is no answer.
    #[error(transparent)]
    Unanswered(CallFailure),
}

impl Conversation {
    /// Begins to speak with whoever attached. `desk` serves its requests. Must be called within a tokio runtime.
    pub fn start(attached: Attached, desk: Arc<dyn Handler>, limits: &Limits, tap: Option<TraceTap>) -> Self {
        let Attached { session, input, output, .. } = attached;
        let wiring = Wiring::new(input, output);
        let wiring = match tap {
            Some(tap) => wiring.taped(Tape::heard_by(tap)),
            None => wiring,
        };
        let peer = Peer::start(wiring, desk, config(limits));
        Self { peer, session, patience: Patience::new(), max_frame_bytes: limits.max_frame_bytes }
    }

    /// Which session this is.
    #[must_use]
    pub fn session(&self) -> &SessionId {
        &self.session
    }

    /// Offers the versions of `initialize` and learns which one the extension speaks; `needed` is what its manifest needs.
    /// There is no deadline but the caller's, which is that of the whole start. Where not everything fits into a frame, the
    /// lists of topics are left out, which the extension can ask for later.
    ///
    /// # Errors
    /// When there is no session to be had.
    pub async fn initialize(
        &self,
        initialize: &Initialize,
        needed: Version,
    ) -> Result<Initialized, InitializeError> {
        let method = ExtensionMethod::Initialize;
        let params = introduction(initialize, self.max_frame_bytes.saturating_sub(INITIALIZE_BYTES))?;
        let answer = match self.ask(Lane::Control, method, &params, None).await {
            Ok(answer) => Ok(answer),
            Err(CallFailure::Refused { error, .. }) => Err(error),
            // An answer that is not a response names no version either.
            Err(CallFailure::Garbage { why, .. }) => {
                return Err(InitializeError::Incompatible { detail: Mismatch::Missing, said: why });
            }
            Err(failure) => return Err(InitializeError::Unanswered(failure)),
        };
        let offer =
            Offer { highest: initialize.protocol_version, supported: &initialize.supported_versions, needed };
        negotiate::agree(&offer, answer.as_deref().map_err(Clone::clone)).map_err(|why| match why {
            Disagreement::Incompatible { detail, said } => InitializeError::Incompatible { detail, said },
            Disagreement::Refused(error) => InitializeError::Refused(error),
        })
    }

    /// Asks whether it lives. Waits as long as the conversation lasts, since a late answer is still worth knowing about.
    ///
    /// # Errors
    /// When there is no answer, or not one to this ping.
    pub async fn health(&self, seq: PingSeq) -> Result<HealthAnswer, CallFailure> {
        let method = ExtensionMethod::Health;
        let call = HealthCall { seq: seq.0, sent_ms: now_ms() };
        let mut answer: HealthAnswer = self.call(Lane::Control, method, &call, None).await?;
        answer.detail = answer.detail.map(|detail| detail.chars().take(MAX_DETAIL).collect());
        match answer.seq == seq.0 {
            true => Ok(answer),
            false => {
                let why = format!("ping {} was answered with the number {}", seq.0, answer.seq);
                Err(CallFailure::Garbage { method, why })
            }
        }
    }

    /// Invokes an action of a panel, for at most [`ACTION_TIME`].
    ///
    /// # Errors
    /// When there is no result.
    pub async fn action(&self, call: &ActionCall) -> Result<ActionResult, CallFailure> {
        self.call(Lane::Action, ExtensionMethod::Action, call, Some(ACTION_TIME)).await
    }

    /// Asks it to leave, and waits for its word that it will.
    ///
    /// # Errors
    /// When it does not give its word in time; it may leave all the same.
    pub async fn shutdown(&self, reason: ShutdownReason, within: Duration) -> Result<(), CallFailure> {
        let method = ExtensionMethod::Shutdown;
        let deadline_ms = u64::try_from(within.as_millis()).unwrap_or(u64::MAX);
        let params = encode(method, &ShutdownCall { reason, deadline_ms })?;
        self.ask(Lane::Control, method, &params, Some(within)).await.map(drop)
    }

    /// Tells it about its own life, at once and past all events. These events have no number (0): they belong to no queue,
    /// and none of them is ever dropped. An error is an acknowledgement too. The caller decides how long it waits.
    ///
    /// # Errors
    /// When it cannot be told.
    pub async fn lifecycle(&self, topic: LifecycleTopic, data: &RawValue) -> Result<(), CallFailure> {
        let method = ExtensionMethod::Event;
        let call = EventCall {
            seq: 0,
            topic: Cow::Borrowed(topic.as_str()),
            time_ms: now_ms(),
            data: Cow::Borrowed(data),
            dropped: None,
        };
        let params = encode(method, &call)?;
        acknowledgement(self.ask(Lane::Control, method, &params, None).await)
    }

    /// Sends an event. What is returned waits for its acknowledgement, as long as the conversation lasts: while there is none,
    /// there is no room for another. An error is an acknowledgement too, because the extension has dealt with it.
    ///
    /// # Errors
    /// When the event cannot be sent.
    pub(crate) async fn begin_event(
        &self,
        params: &RawValue,
    ) -> Result<impl Future<Output = Result<(), CallFailure>> + use<>, CallFailure> {
        let method = ExtensionMethod::Event;
        let call = self.peer.begin_call(Lane::Event, method.as_str(), Some(params), Deadline::Never);
        let answer = call.await.map_err(|error| failure(method, error))?;
        let patience = self.patience.clone();
        Ok(async move {
            match patience.bear(answer, None).await {
                Ok(answer) => acknowledgement(answer.map_err(|error| failure(method, error))),
                Err(patience::RanOut { after }) => Err(CallFailure::Late { method, after }),
            }
        })
    }

    /// How many calls of the host have waited for their answers for more than three seconds.
    #[must_use]
    pub fn overdue(&self) -> watch::Receiver<Overdue> {
        self.patience.overdue()
    }

    /// Stops all deadlines, because the extension cannot run.
    pub fn freeze(&self) {
        self.patience.freeze();
    }

    /// Lets the deadlines go on.
    pub fn thaw(&self) {
        self.patience.thaw();
    }

    /// Waits for the end of the conversation and says what it was.
    pub async fn ended(&self) -> ChannelEnd {
        ChannelEnd::of(&self.peer.ended().await)
    }

    /// Closes the channel: what was begun is finished first, within two seconds.
    pub async fn close(&self) -> ChannelEnd {
        ChannelEnd::of(&self.peer.close().await)
    }

    /// What happened so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.peer.counts()
    }

    async fn call<R: DeserializeOwned>(
        &self,
        lane: Lane,
        method: ExtensionMethod,
        params: &impl Serialize,
        within: Option<Duration>,
    ) -> Result<R, CallFailure> {
        let answer = self.ask(lane, method, &encode(method, params)?, within).await?;
        serde_json::from_str(answer.get())
            .map_err(|error| CallFailure::Garbage { method, why: error.to_string() })
    }

    async fn ask(
        &self,
        lane: Lane,
        method: ExtensionMethod,
        params: &RawValue,
        within: Option<Duration>,
    ) -> Result<Box<RawValue>, CallFailure> {
        let call = self.peer.call_on(lane, method.as_str(), Some(params), Deadline::Never);
        match self.patience.bear(call, within).await {
            Ok(answer) => answer.map_err(|error| failure(method, error)),
            Err(patience::RanOut { after }) => Err(CallFailure::Late { method, after }),
        }
    }
}

fn acknowledgement(answer: Result<Box<RawValue>, CallFailure>) -> Result<(), CallFailure> {
    match answer {
        Ok(_) | Err(CallFailure::Refused { .. } | CallFailure::Garbage { .. }) => Ok(()),
        Err(failure) => Err(failure),
    }
}

/// The params of the first frame, without lists if they do not fit: first what is ignored, then what is denied, and at last
/// what it will hear about.
fn introduction(initialize: &Initialize, most: usize) -> Result<Box<RawValue>, CallFailure> {
    let method = ExtensionMethod::Initialize;
    let whole = encode(method, initialize)?;
    if whole.get().len() <= most {
        return Ok(whole);
    }
    let mut shorter = initialize.clone();
    shorter.events.ignored.clear();
    let without_ignored = encode(method, &shorter)?;
    if without_ignored.get().len() <= most {
        return Ok(without_ignored);
    }
    shorter.events.denied.clear();
    let without_denied = encode(method, &shorter)?;
    if without_denied.get().len() <= most {
        return Ok(without_denied);
    }
    shorter.events.subscribed.clear();
    encode(method, &shorter)
}

fn encode(method: ExtensionMethod, params: &impl Serialize) -> Result<Box<RawValue>, CallFailure> {
    to_raw_value(params).map_err(|error| CallFailure::Garbage { method, why: error.to_string() })
}

impl From<CallFailure> for InitializeError {
    fn from(failure: CallFailure) -> Self {
        Self::Unanswered(failure)
    }
}

fn failure(method: ExtensionMethod, error: CallError) -> CallFailure {
    match error {
        CallError::Remote { error, .. } => CallFailure::Refused { method, error },
        CallError::Malformed { defect, .. } => CallFailure::Garbage { method, why: defect.to_string() },
        CallError::Deadline { after, .. } => CallFailure::Late { method, after },
        CallError::Ended { end, .. } => CallFailure::Ended { method, end: ChannelEnd::of(&end) },
        CallError::TooLong { length, limit, .. } => CallFailure::TooLong { method, length, limit },
    }
}

fn config(limits: &Limits) -> PeerConfig {
    let frame = limits.max_frame_bytes;
    let room = frame.saturating_mul(2).saturating_add(OUTBOX_EXTRA);
    PeerConfig {
        lines: dialect::sep(frame),
        envelope: EnvelopePolicy::SEP,
        max_line_out: frame,
        max_calls: limits.event_window.saturating_add(MAX_ACTIONS),
        incoming: IncomingLimits {
            running: limits.concurrent_requests,
            // One more than may be in flight is refused, not kept waiting.
            waiting: 0,
            notifications: MAX_NOTES,
            crowded: Crowded::Refuse,
        },
        // Events are calls here, so the peer's own queue of events stays empty.
        outbox: OutboxLimits { bytes: room, reply_bytes: room, events: 1, event_bytes: 1 },
        write_stall: WRITE_STALL,
        drain: DRAIN,
        cancel: CancelWire::Notify(CANCEL),
        duplicate_ids: DuplicateIds::Refuse,
    }
}

pub(crate) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

impl fmt::Debug for Conversation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Conversation").field("session", &self.session).finish_non_exhaustive()
    }
}

#[cfg(test)]
#[path = "conversation_tests.rs"]
pub(crate) mod tests;
