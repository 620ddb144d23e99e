//! What a host asks of a sidecar: how long things may take, how much may wait to be read, how often it may die.

use std::num::NonZeroU32;
use std::time::Duration;

use outrigger_supervise::state::{Backoff, CrashLimit, Ladder};

/// The terms of a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Terms {
    /// From spawn to `ready`.
    pub ready_within: Duration,
    /// A stream on whose id nothing at all comes for this long, not even a heartbeat, is over.
    pub silence: Duration,
    /// How long the answers to the other requests may take.
    pub waits: Waits,
    /// How it is stopped: `shutdown`, SIGTERM, SIGKILL.
    pub ladder: Ladder,
    /// How many bytes of one stream may wait for its reader. A stream that is read more slowly than that ends, and its turn is
    /// stopped; the other streams do not notice. One event is always admitted, however long.
    pub stream_bytes: usize,
    /// How the sidecar may ask us.
    pub reverse: ReverseLimits,
    /// How long it may leave unread what we write before it counts as hung.
    pub write_stall: Duration,
    /// Requests that come right after it died wait so long; each further death in a row doubles it.
    pub backoff: Backoff,
    /// Deaths that are too many: requests are refused until the oldest of them has left the window, or until
    /// [`Bridge::restart`](super::Bridge::restart).
    pub crashes: CrashLimit,
    /// How many sessions are remembered with what can be resumed. Beyond it the one that was longest not used is forgotten.
    pub sessions: usize,
}

/// How long the answers may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waits {
    /// `ping`, `updateConfig`, and that an answer to a question was heard.
    pub control: Duration,
    /// `stopSession`.
    pub stop: Duration,
    /// `steerSession`.
    pub steer: Duration,
    /// `mutateCodexGoal`.
    pub goal: Duration,
    /// `listSlashCommands`.
    pub slash_commands: Duration,
    /// `listModels`.
    pub models: Duration,
    /// `getContextUsage`.
    pub context: Duration,
    /// `generateTitle`.
    pub title: Duration,
}

/// How a sidecar may ask its host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReverseLimits {
    /// How many of its questions are answered side by side. One more is answered with an error at once.
    pub at_once: usize,
    /// How long an answer may take. The sidecar waits 60 s.
    pub within: Duration,
}

impl Terms {
    /// What hosts of the original do, with an end to every wait: 10 s to become ready, 45 s of silence, 10 s for a steer, 25 s for
    /// slash commands, 30 s for models, 32 s for the context, 95 s for a title; 2 s to leave when asked and 5 s after SIGTERM.
    /// 64 MiB of a stream may wait. A sidecar that died is started again by the next request, after 250 ms, 500 ms, …, at most
    /// 10 s if it dies again and again; after the fifth death within two minutes requests are refused. 4,096 sessions are
    /// remembered.
    #[must_use]
    pub fn usual() -> Self {
        let (secs, millis) = (Duration::from_secs, Duration::from_millis);
        Self {
            ready_within: secs(10),
            silence: secs(45),
            waits: Waits {
                control: secs(10),
                stop: secs(10),
                steer: secs(10),
                goal: secs(20),
                slash_commands: secs(25),
                models: secs(30),
                context: secs(32),
                title: secs(95),
            },
            ladder: Ladder { ask: secs(2), term: secs(5) },
            stream_bytes: 64 << 20,
            reverse: ReverseLimits { at_once: 16, within: secs(60) },
            write_stall: secs(30),
            backoff: Backoff { first: millis(250), cap: secs(10), jitter_percent: 0 },
            crashes: CrashLimit { crashes: FIVE, within: secs(120) },
            sessions: 4096,
        }
    }
}

const FIVE: NonZeroU32 = NonZeroU32::MIN.saturating_add(4);
