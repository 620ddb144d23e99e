//! What a host asks of a sidecar: how it says that it is ready, how long things may take, how much may wait to be read.

use std::num::NonZeroU32;
use std::time::Duration;

use outrigger_supervise::state::{Backoff, CrashLimit, Ladder, Restart, Retry};

/// The terms of a conversation.
#[derive(Clone, Debug)]
pub struct Terms {
    /// What makes it ready.
    pub ready: ReadyBy,
    /// From spawn to ready.
    pub ready_within: Duration,
    /// Whether we ask for signs of life.
    pub pulse: Pulse,
    /// What happens when it ends without being asked to. Streams are over then; sessions can be resumed in the next process.
    pub restart: Restart,
    /// A call without a time of its own.
    pub call_within: Duration,
    /// From asking for a stream to its id.
    pub stream_within: Duration,
    /// A cancel and a steer.
    pub control_within: Duration,
    /// How it is stopped: `system.shutdown`, SIGTERM, SIGKILL.
    pub ladder: Ladder,
    /// How much of a stream may wait for its reader.
    pub stream: StreamLimits,
}

impl Terms {
    /// What hosts of the original do: 15 s to become ready, a ping every 5 s of which 3 may be missed, 60 s for a call, 30 s for
    /// the start of a stream, 2 s for a cancel, 2 s and 2 s to leave. A sidecar that fails is started again after 250 ms,
    /// 500 ms, …, at most 10 s; the fifth failure within two minutes is the last, and so is an exit code which says that
    /// trying again cannot help. 1,024 chunks or 1 MiB of a stream may wait.
    #[must_use]
    pub fn usual() -> Self {
        let (secs, millis) = (Duration::from_secs, Duration::from_millis);
        let retry = Retry {
            backoff: Backoff { first: millis(250), cap: secs(10), jitter_percent: 20 },
            stable_after: secs(60),
            max_attempts: None,
            crash_loop: CrashLimit { crashes: FIVE, within: secs(120) },
            slow_crash: None,
            permanent_codes: vec![BAD_FLAGS, STORAGE_TOO_NEW],
        };
        Self {
            ready: ReadyBy::Either,
            ready_within: secs(15),
            pulse: Pulse::Ping { every: secs(5), missed: THREE },
            restart: Restart::OnFailure(retry),
            call_within: secs(60),
            stream_within: secs(30),
            control_within: secs(2),
            ladder: Ladder { ask: secs(2), term: secs(2) },
            stream: StreamLimits { chunks: 1024, bytes: 1 << 20 },
        }
    }
}

const THREE: NonZeroU32 = NonZeroU32::MIN.saturating_add(2);
const FIVE: NonZeroU32 = NonZeroU32::MIN.saturating_add(4);

/// The exit code of a sidecar whose flags are wrong.
const BAD_FLAGS: i32 = 2;
/// The exit code of a sidecar whose storage was written by a newer program.
const STORAGE_TOO_NEW: i32 = 75;

/// What makes a sidecar ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadyBy {
    /// The marker on standard error.
    Marker,
    /// The notification `lifecycle.ready`; a sidecar that is started with `--quiet-ready` has only this.
    Notification,
    /// Whichever comes first.
    Either,
}

/// Whether a sidecar is asked for signs of life. Only a ping counts: a stream that flows does not show that requests are
/// answered. Pings are excused while it is we who do not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pulse {
    /// It is not asked.
    None,
    /// It is pinged every so often.
    Ping {
        /// How often, and how long an answer may take.
        every: Duration,
        /// How many in a row may go unanswered before it is killed.
        missed: NonZeroU32,
    },
}

/// How much of a stream may wait for its reader. Beyond either, nothing more is read from the sidecar until there is room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamLimits {
    /// Chunks.
    pub chunks: usize,
    /// The bytes that they had on the wire. One chunk is always admitted, however long.
    pub bytes: usize,
}
