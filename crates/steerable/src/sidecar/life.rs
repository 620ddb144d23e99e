//! How a sidecar ends: what is under way is stopped and told, then the conversation is closed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use outrigger_wire::peer::{End, Lane, Peer};
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::sync::CancellationToken;

use super::runtime::Runtime;
use super::streams::Live;
use crate::chat::Usage;
use crate::protocol::{Terminal, TurnEnd, write_terminal};

/// How long a host that reads slowly has for the last lines, whatever else is said.
pub(super) const LAST_WORDS: Duration = Duration::from_millis(250);

/// How a sidecar ends. Shared by the requests that end it and by whoever waits for that.
#[derive(Debug, Default)]
pub(super) struct Life {
    closing: CancellationToken,
    at_once: AtomicBool,
    eof: AtomicBool,
}

/// How a conversation is to be closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Closing {
    /// Everything has ended and was told.
    InGoodOrder,
    /// Nothing is waited for.
    Now,
}

impl Life {
    /// Everything that is under way ends: no new streams, live ones end as cancelled, tools and questions to the host
    /// abort. Returns when the host has read that, or when the time is over.
    pub(super) async fn drain(&self, runtime: &Runtime, peer: &Peer, grace: Duration) {
        let deadline = Instant::now() + grace;
        let live = runtime.streams.close();
        runtime.stop.cancel();
        let ending = async { tokio::join!(runtime.streams.none_live(), runtime.close_servers()) };
        if timeout_at(deadline, ending).await.is_err() {
            force(&live, peer).await;
        }
        let rest = deadline.saturating_duration_since(Instant::now()).max(LAST_WORDS);
        // What the host does not read in time is lost with the conversation.
        let _ = timeout(rest, peer.written(Lane::Action)).await;
    }

    /// Everything ends now.
    pub(super) fn now(&self, runtime: &Runtime) {
        runtime.streams.close();
        runtime.stop.cancel();
        self.at_once.store(true, Ordering::Relaxed);
        self.close();
    }

    /// The conversation may be closed.
    pub(super) fn close(&self) {
        self.closing.cancel();
    }

    /// Waits until the conversation may be closed.
    pub(super) async fn closing(&self) -> Closing {
        self.closing.cancelled().await;
        if self.at_once.load(Ordering::Relaxed) { Closing::Now } else { Closing::InGoodOrder }
    }

    /// The host closed its end.
    pub(super) fn hung_up(&self) {
        self.eof.store(true, Ordering::Relaxed);
    }

    /// What `lifecycle.shutdown` says.
    pub(super) fn reason(&self, end: &End) -> &'static str {
        match end {
            End::RemoteClosed => "eof",
            _ if self.eof.load(Ordering::Relaxed) => "eof",
            _ => "normal",
        }
    }
}

/// Tells the end of streams that do not end by themselves in time.
async fn force(live: &[Arc<Live>], peer: &Peer) {
    let mut lines = Vec::new();
    for live in live {
        if !live.may_tell_end() {
            continue;
        }
        let terminal = match &live.turn {
            None => Terminal::Cancelled,
            Some(names) => Terminal::Turn(TurnEnd {
                status: "cancelled",
                reason: Some("the runtime is shutting down"),
                trace_id: &names.trace_id,
                record_id: &names.record_id,
                usage: Usage::default(),
                output: None,
            }),
        };
        write_terminal(&mut lines, &live.id, &terminal);
    }
    // Nobody reads: then nobody is told.
    let _ = timeout(LAST_WORDS, peer.notify_lines(Lane::Action, "stream.done", &mut lines)).await;
}
