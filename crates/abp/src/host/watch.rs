//! Whoever watches a run: sees every event as it is read and may end the run for it.

use tokio::time::Instant;

use super::warning::Warning;
use crate::protocol::{AgentEvent, Answer, Ask};

/// Watches one run. Everything is called in the task that reads, for every line: a watcher that takes its time makes the
/// child wait, and nothing else.
pub trait Watcher: Send {
    /// The child reported this. `line` is the whole message as it came.
    fn event(&mut self, event: &AgentEvent<'_>, line: &str) -> Wish;

    /// The child asks before it acts and waits for the answer, which may also come later through the
    /// [`Remote`](super::Remote). Only called when the terms offer it.
    fn ask(&mut self, ask: &Ask<'_>) -> Wish {
        let _ = ask;
        Wish::GoOn
    }

    /// Something is not as it should be, and the run goes on.
    fn warning(&mut self, warning: &Warning) {
        let _ = warning;
    }

    /// When [`Watcher::tick`] should be called next, asked after everything that happens.
    fn wake_at(&self) -> Option<Instant> {
        None
    }

    /// The time that [`Watcher::wake_at`] named has come. Called again at once if it answers something and still names
    /// such a time, and a little later otherwise.
    fn tick(&mut self, now: Instant) -> Wish {
        let _ = now;
        Wish::GoOn
    }
}

/// What a watcher wants next.
#[derive(Clone, Debug)]
pub enum Wish {
    /// Nothing.
    GoOn,
    /// That this answer is sent.
    Answer(Answer),
    /// That the run ends soon, with a receipt if possible.
    Cancel {
        /// Said to the child and in the failure.
        why: String,
    },
    /// That the run ends now.
    Kill {
        /// Said in the failure.
        why: String,
    },
}

/// A watcher that lets everything pass.
#[derive(Clone, Copy, Debug)]
pub struct Unwatched;

impl Watcher for Unwatched {
    fn event(&mut self, _event: &AgentEvent<'_>, _line: &str) -> Wish {
        Wish::GoOn
    }
}
