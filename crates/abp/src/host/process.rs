//! The process behind a conversation, as far as the conversation needs it: told of faults, stopped, and asked for its last
//! words.

use std::sync::Arc;
use std::time::Duration;

use outrigger_supervise::driver::{Child, Request, SessionHandle};
use outrigger_supervise::report::Report;
use outrigger_supervise::sandbox::Enforced;
use outrigger_supervise::state::Fault;
use outrigger_supervise::tree::Pid;
use tokio::sync::mpsc;

use super::failure::{Failure, FailureKind, Fatal};

/// How long a child that is lost may take to be reaped. Whoever takes longer is killed, which takes as long as it takes.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// A child that gives up usually leaves; it gets this long, so that the failure has its exit code and its last lines.
const PARTING: Duration = Duration::from_millis(100);

/// A child and what it is told through. Dropping it kills the child with everything it started.
#[derive(Debug)]
pub(super) struct Process {
    pub(super) child: Child,
    pub(super) handle: SessionHandle,
    pub(super) pid: Pid,
    pub(super) enforced: Enforced,
    /// Held so that a stop finds somebody to ask; the closed standard input is the answer.
    pub(super) _requests: mpsc::Receiver<Request>,
}

impl Process {
    /// Whether it still runs, as far as is known.
    pub(super) fn is_alive(&self) -> bool {
        self.child.status().ended.is_none()
    }

    /// Ends it for a fault and waits for its report.
    pub(super) async fn lose(&self, fault: Fault, what: &str) -> Option<Arc<Report>> {
        self.handle.fault(fault, what).await;
        match tokio::time::timeout(LAST_WORDS, self.child.wait()).await {
            Ok(outcome) => outcome.report,
            Err(_) => self.child.kill().await.report,
        }
    }

    /// Waits a moment for a child that probably leaves by itself.
    pub(super) async fn part(&self) -> Option<Arc<Report>> {
        tokio::time::timeout(PARTING, self.child.wait()).await.ok().and_then(|outcome| outcome.report)
    }

    /// A failure of this child, with whatever it said last.
    pub(super) fn failure(
        &self,
        kind: FailureKind,
        what: impl Into<String>,
        fatal: Option<Fatal>,
        report: Option<Arc<Report>>,
    ) -> Failure {
        let stderr = match &report {
            Some(report) => report.stderr.clone(),
            None => self.child.stderr_tail(),
        };
        Failure { kind, name: self.child.name().to_owned(), what: what.into(), fatal, stderr, report }
    }
}

/// A duration for people.
pub(super) fn span(duration: Duration) -> String {
    match duration.as_millis() {
        millis if millis < 1000 => format!("{millis} ms"),
        millis if millis < 60_000 => format!("{}.{} s", millis / 1000, millis % 1000 / 100),
        millis => format!("{} min {} s", millis / 60_000, millis / 1000 % 60),
    }
}
