//! What the control plane asks of a child: how long it waits, how much it reads, and what it forgives.

use std::num::NonZeroU32;
use std::time::Duration;

use outrigger_supervise::state::Ladder;

use crate::protocol::Offer;

/// The terms of a conversation.
#[derive(Clone, Debug)]
pub struct Terms {
    /// From spawn to a hello that was understood.
    pub hello_within: Duration,
    /// The longest time without any line during a run; not counted while the child waits for an answer of ours.
    pub silence: Option<Duration>,
    /// The longest a run may take. Then it is cancelled, as if somebody had asked for it.
    pub total: Option<Duration>,
    /// From `cancel` to `final` or `fatal`.
    pub cancel_grace: Duration,
    /// What follows when that was not enough, and how a child is stopped: its input is closed, SIGTERM, SIGKILL.
    pub ladder: Ladder,
    /// How long a child may leave unread what we write.
    pub write_stall: Duration,
    /// The longest line that is read; a longer one ends the run.
    pub max_line_bytes: usize,
    /// Lines that are no messages.
    pub noise: Noise,
    /// Messages that belong to another run.
    pub foreign: Foreign,
    /// Whether we ask for signs of life.
    pub pulse: Pulse,
    /// The extensions that `run` names.
    pub offer: Option<Offer>,
}

impl Terms {
    /// Ten seconds for hello, no limit for silence and the whole, five seconds for a cancelled run, lines of 64 MiB, nothing
    /// forgiven, no pings (children in the wild answer them only between runs), no extensions.
    pub fn usual() -> Self {
        let secs = Duration::from_secs;
        Self {
            hello_within: secs(10),
            silence: None,
            total: None,
            cancel_grace: secs(5),
            ladder: Ladder { ask: secs(2), term: secs(3) },
            write_stall: secs(30),
            max_line_bytes: 64 << 20,
            noise: Noise::Fail,
            foreign: Foreign::Fail,
            pulse: Pulse::None,
            offer: None,
        }
    }
}

/// What becomes of a line on standard output that is no message: a banner, a debug print, a stack trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Noise {
    /// It ends the run, and is shown.
    Fail,
    /// It is skipped, with a warning that shows it.
    SkipAndWarn,
}

/// What becomes of a message whose `ref_id` is not the run's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Foreign {
    /// It ends the run.
    Fail,
    /// It is dropped and counted, as other control planes do.
    DropAndCount,
}

/// Whether a child is asked for signs of life during a run. Whatever it says is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pulse {
    /// It is not asked.
    None,
    /// It is sent a `ping` every so often.
    Ping {
        /// How often.
        every: Duration,
        /// How many intervals in a row may pass without any line before it counts as stalled.
        missed: NonZeroU32,
    },
}
