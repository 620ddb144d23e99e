//! What the governor is told, what it says, and why it ends a run.

use std::fmt;
use std::time::{Duration, Instant};

use outrigger_policy::{Action, Decision};
use serde::Serialize;

use super::approvals::{ApprovalId, ApprovalRequest, Choice, MAX_SHOWN_TEXT, cut};
use super::tally::{Crossed, Limits};
use crate::protocol::{Answer, AskAction, RunId, Timestamp};

/// What is to be done about what a child did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing.
    Go,
    /// Somebody should know, and the run goes on.
    Warn(String),
    /// A person should be asked. Whatever the answer is comes back through the governor.
    Raise(Box<ApprovalRequest>),
    /// The child asked, and this is the answer to send.
    Answer(Answer),
    /// The run must end.
    End(EndReason),
}

/// Why a run must end.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EndReason {
    /// It did what it may not do.
    #[error("{0}")]
    Policy(Denial),
    /// It used up what it was given.
    #[error("{0}")]
    Budget(Crossed),
}

impl EndReason {
    /// The word of the receipt's `ending`.
    #[must_use]
    pub fn ending(&self) -> &'static str {
        match self {
            EndReason::Policy(_) => "policy",
            EndReason::Budget(_) => "budget",
        }
    }
}

/// Something that was denied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Denial {
    /// When.
    pub at: Timestamp,
    /// Whether the child asked before or told afterwards.
    pub how: How,
    /// What it wanted to do.
    pub action: Action,
    /// On what: the tool, path or host, cut for showing.
    pub object: String,
    /// The stable code of the reason.
    pub code: &'static str,
    /// The sentence.
    pub reason: String,
}

/// How the host came to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum How {
    /// The child asked and waits.
    Asked,
    /// The child told, and may have done it.
    Reported,
}

impl Denial {
    /// The denial that a decision is.
    #[must_use]
    pub fn of(decision: &Decision, at: Timestamp, how: How) -> Denial {
        let reason = decision.explain();
        Denial {
            at,
            how,
            action: decision.action,
            object: decision.object.clone(),
            code: decision.reason.code(),
            reason,
        }
    }
}

impl Denial {
    /// The denial of a call for a reason that is not the policy's.
    pub(super) fn call(tool: &str, code: &'static str, reason: String, at: Timestamp, how: How) -> Denial {
        Denial { at, how, action: Action::Call, object: cut(tool, MAX_SHOWN_TEXT), code, reason }
    }
}

impl fmt::Display for Denial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

/// What the operator decided about a run, beyond what its work order says.
#[derive(Clone, Debug)]
pub struct Rules {
    /// The run.
    pub run_id: RunId,
    /// Who acts: the backend's id.
    pub subject: String,
    /// What the child promised in its hello to ask for.
    pub asks: Vec<AskAction>,
    /// What it may spend; the work order's limits hold as well.
    pub limits: Limits,
    /// What follows when a child did something that it may not do.
    pub on_denied: OnDenied,
    /// Who decides where the policy wants a person.
    pub approver: Approver,
}

/// What follows when a child that did not ask did something that it may not do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnDenied {
    /// The run ends.
    End,
    /// Somebody is told, and the run goes on.
    Warn,
}

/// Who decides where the policy wants a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Approver {
    /// A person, within a time.
    Person {
        /// How long an answer is waited for.
        within: Duration,
        /// What applies when none comes.
        default: Choice,
    },
    /// Nobody is asked: everything is approved, and written down.
    Everything,
    /// Nobody is there: what needs approval is denied.
    Nobody,
}

/// A point in a run, by both clocks: the one that only goes forward measures, the other one is written down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Since the run began.
    pub since_start: Duration,
    /// What the calendar says.
    pub at: Timestamp,
}

/// Tells the time, only when somebody wants to know: most events do not matter to any clock.
pub trait Clock {
    /// Now.
    fn now(&self) -> Moment;
}

impl Clock for Moment {
    fn now(&self) -> Moment {
        *self
    }
}

/// The clock of this machine, from the start of a run.
#[derive(Clone, Copy, Debug)]
pub struct RunClock {
    start: Instant,
}

impl RunClock {
    /// The run begins at `start`.
    #[must_use]
    pub fn since(start: Instant) -> RunClock {
        RunClock { start }
    }
}

impl Clock for RunClock {
    fn now(&self) -> Moment {
        Moment { since_start: self.start.elapsed(), at: Timestamp::now() }
    }
}

/// An approval as the receipt has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Approval {
    /// Which request.
    pub id: ApprovalId,
    /// For which tool.
    pub tool_name: String,
    /// What was decided.
    pub decision: Choice,
    /// By whom.
    pub by: String,
    /// When.
    pub at: Timestamp,
}
