//! The conversation with one process: calls go out, notifications and reverse calls come in.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use outrigger_supervise::driver::Output;
use outrigger_supervise::state::Incarnation;
use outrigger_supervise::tree::Pid;
use outrigger_wire::line::dialect;
use outrigger_wire::peer::{
    Answer, BoxFuture, Call, CallError as WireError, CancelWire, Complaint, Crowded, Deadline, DuplicateIds,
    End, Handler, IncomingLimits, Note, OutboxLimits, Peer, PeerConfig, Reaction, Wiring,
};
use outrigger_wire::rpc::EnvelopePolicy;
use serde_json::json;
use serde_json::value::RawValue;
use tokio::net::unix::pipe;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::end::Lost;
use super::error::CallError;
use super::hub::Hub;
use super::reverse::{self, Reverse};
use super::stream::StreamId;
use super::terms::Terms;
use crate::protocol::{Kind, Ready};

/// One process, spoken to.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) incarnation: Incarnation,
    pub(super) pid: Pid,
    pub(super) peer: Peer,
    pub(super) hub: Arc<Hub>,
    /// What `lifecycle.ready` said, once it was heard.
    pub(super) ready: watch::Receiver<Option<Result<Ready, String>>>,
    /// Gives reverse calls up: there is nobody left to answer.
    gone: CancellationToken,
    lost: watch::Sender<Option<Lost>>,
    noise: Arc<AtomicU64>,
    goodbye: Mutex<Goodbye>,
    control_within: Duration,
}

/// How it is asked to leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Goodbye {
    /// When its streams have ended.
    Drain,
    /// At once.
    Now,
}

/// Between the end of a conversation and the report on the process are the last lines of its log and the kernel.
const LAST_WORDS: Duration = Duration::from_secs(5);

const MIB: usize = 1 << 20;

/// The limits of a conversation.
const CONFIG: PeerConfig = PeerConfig {
    lines: dialect::STEERABLE,
    envelope: EnvelopePolicy::STEERABLE_HOST,
    max_line_out: 16 * MIB,
    max_calls: 1024,
    // Notifications that wait here are besides what waits in the streams; few, because each may have 16 MiB.
    incoming: IncomingLimits { running: 64, waiting: 256, notifications: 64, crowded: Crowded::Pause },
    outbox: OutboxLimits { bytes: 16 * MIB, reply_bytes: 16 * MIB, events: 16, event_bytes: MIB },
    // A sidecar that reads nothing answers no ping either, and that is noticed much earlier. This is long because a sidecar may
    // stop reading while we do not read from it, and that is our fault.
    write_stall: Duration::from_secs(600),
    // What was said before the end is still read; whoever does not read is hurried after a shorter time than this.
    drain: Duration::from_secs(10),
    cancel: CancelWire::Silent,
    duplicate_ids: DuplicateIds::Serve,
};

impl Connection {
    pub(super) fn open(
        (incarnation, pid): (Incarnation, Pid),
        (stdin, stdout): (pipe::Sender, Output),
        reverse: Arc<dyn Reverse>,
        terms: &Terms,
    ) -> Arc<Self> {
        let hub = Arc::new(Hub::new(terms.stream));
        let (heard, ready) = watch::channel(None);
        let gone = CancellationToken::new();
        let noise = Arc::new(AtomicU64::new(0));
        let router = Router {
            hub: Arc::clone(&hub),
            reverse,
            ready: heard,
            gone: gone.clone(),
            noise: Arc::clone(&noise),
        };
        let peer = Peer::start(Wiring::new(stdout, stdin), Arc::new(router), CONFIG);
        Arc::new(Self {
            incarnation,
            pid,
            peer,
            hub,
            ready,
            gone,
            lost: watch::Sender::new(None),
            noise,
            goodbye: Mutex::new(Goodbye::Drain),
            control_within: terms.control_within,
        })
    }

    /// Calls it.
    pub(super) async fn call(
        &self,
        method: &str,
        params: Option<&RawValue>,
        within: Duration,
    ) -> Result<Box<RawValue>, CallError> {
        match self.peer.call(method, params, Deadline::After(within)).await {
            Ok(answer) => Ok(answer),
            Err(WireError::Remote { method, error }) => {
                Err(CallError::Remote { method, error: error.into() })
            }
            Err(WireError::Deadline { method, after }) => Err(CallError::Late { method, after }),
            Err(WireError::Malformed { method, defect }) => {
                Err(CallError::Unreadable { method, what: defect.to_string() })
            }
            Err(WireError::Ended { method, end }) => {
                Err(CallError::Lost { method, lost: self.last_words(&end).await })
            }
            Err(WireError::TooLong { method, length, limit }) => {
                Err(CallError::NotSent { method, what: format!("{length} bytes are more than {limit}") })
            }
        }
    }

    /// Why it is gone; waits a moment for the report.
    async fn last_words(&self, end: &End) -> Lost {
        let mut lost = self.lost.subscribe();
        let known = tokio::time::timeout(LAST_WORDS, lost.wait_for(Option::is_some)).await;
        let known = known.ok().and_then(Result::ok).and_then(|known| known.clone());
        known.unwrap_or_else(|| Lost { what: meaning(end), report: None })
    }

    /// Cancels a stream whose reader is gone, as far as there is anything left to do that with.
    pub(super) fn cancel_unattended(self: &Arc<Self>, id: StreamId) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let connection = Arc::clone(self);
        runtime.spawn(async move {
            // Nobody is left who would want to know that it failed.
            let _ = connection.cancel(&id).await;
        });
    }

    pub(super) async fn cancel(&self, id: &StreamId) -> Result<(), CallError> {
        // Its answer comes after the chunks that were sent before, so nobody may wait for room among them.
        self.hub.hurry(id);
        let params = raw(&json!({ "streamId": id.as_str() }));
        self.call("agent.chat.cancel", Some(&params), self.control_within).await.map(drop)
    }

    /// Asks it to leave; says whether it heard.
    pub(super) async fn say_goodbye(&self, within: Duration) -> bool {
        // A reader that takes its time must not keep us from hearing its last words.
        self.hub.hurry_all();
        let method = match *self.goodbye.lock().unwrap_or_else(PoisonError::into_inner) {
            Goodbye::Drain => "system.shutdown",
            Goodbye::Now => "system.shutdown_now",
        };
        match self.call(method, None, within).await {
            // One that takes its time gets its time, and one that is gone already is fine.
            Ok(_) | Err(CallError::Late { .. } | CallError::Lost { .. }) => true,
            Err(_) => false,
        }
    }

    pub(super) fn set_goodbye(&self, goodbye: Goodbye) {
        *self.goodbye.lock().unwrap_or_else(PoisonError::into_inner) = goodbye;
    }

    /// It is gone: nobody needs an answer any more.
    pub(super) fn give_up_reverse_calls(&self) {
        self.gone.cancel();
    }

    /// It is gone, and everything that it said was heard: what is open ends.
    pub(super) fn lose(&self, lost: &Lost) {
        self.gone.cancel();
        self.hub.lose(lost);
        self.lost.send_if_modified(|known| {
            let is_first = known.is_none();
            known.get_or_insert_with(|| lost.clone());
            is_first
        });
    }

    /// Lines that were no messages.
    pub(super) fn noise(&self) -> u64 {
        self.noise.load(Ordering::Relaxed)
    }
}

/// What the end of a conversation means, where nothing better is known.
fn meaning(end: &End) -> String {
    match end {
        End::RemoteClosed => "the sidecar is gone".to_owned(),
        End::Closed | End::Dropped => "the host let go of the sidecar".to_owned(),
        other => format!("the sidecar is lost: {other}"),
    }
}

pub(super) fn raw(value: &impl serde::Serialize) -> Box<RawValue> {
    // Our own params have string keys and no failing members.
    serde_json::value::to_raw_value(value).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

/// Hears what a sidecar says by itself.
struct Router {
    hub: Arc<Hub>,
    reverse: Arc<dyn Reverse>,
    ready: watch::Sender<Option<Result<Ready, String>>>,
    gone: CancellationToken,
    noise: Arc<AtomicU64>,
}

impl Handler for Router {
    fn request(&self, call: Call) -> Answer {
        let (reverse, gone) = (Arc::clone(&self.reverse), self.gone.clone());
        let Call { method, params, .. } = call;
        Answer::Later(Box::pin(async move {
            tokio::select! {
                biased;
                answer = reverse::answer(&*reverse, &method, params.as_deref()) => answer,
                () = gone.cancelled() => Err(Kind::TransportClosed.error("the host has given this call up")),
            }
        }))
    }

    fn notification(&self, note: Note) -> Option<BoxFuture<()>> {
        let Note { method, params, .. } = note;
        match (method.as_str(), params) {
            ("stream.chunk" | "stream.done" | "stream.error", Some(params)) => {
                self.hub.route(&method, &params)
            }
            (_, params) => {
                if method == "lifecycle.ready" {
                    let text = params.as_deref().map_or("null", RawValue::get);
                    let ready = serde_json::from_str::<Ready>(text).map_err(|error| error.to_string());
                    self.ready.send_if_modified(|known| {
                        let is_first = known.is_none();
                        known.get_or_insert(ready);
                        is_first
                    });
                }
                self.reverse.notified(&method, params.as_deref());
                None
            }
        }
    }

    /// A sidecar is not told about its own mistakes: it would take the error for one of its own.
    fn complain(&self, complaint: &Complaint<'_>) -> Reaction {
        match complaint {
            Complaint::Refused(_)
            | Complaint::Defective(_)
            | Complaint::TooLong { .. }
            | Complaint::OrphanError(_) => {
                self.noise.fetch_add(1, Ordering::Relaxed);
                Reaction::Ignore
            }
            Complaint::Blank
            | Complaint::Busy { .. }
            | Complaint::NotificationDropped
            | Complaint::Cancelled
            | Complaint::Panicked
            | Complaint::ReplyTooLong { .. }
            | Complaint::UnknownReply
            | Complaint::LateReply => Reaction::Ignore,
        }
    }
}
