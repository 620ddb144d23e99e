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
const PARTING: Duration = Duration::from_millis(500);

/// A child may give up with more words than anybody reads.
const MOST_WORDS: usize = 16 * 1024;

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
        let fatal = fatal.map(|Fatal { error, error_code }| Fatal { error: cut(error), error_code });
        Failure { kind, name: self.child.name().to_owned(), what: cut(what.into()), fatal, stderr, report }
    }
}

fn cut(mut text: String) -> String {
    let total = text.len();
    if total > MOST_WORDS {
        text.truncate(text.floor_char_boundary(MOST_WORDS));
        text.push_str(&format!(" … ({} more bytes)", total - text.len()));
        text.shrink_to_fit();
    }
    text
}

/// A duration for people.
pub(super) fn span(duration: Duration) -> String {
    match duration.as_millis() {
        millis if millis < 1000 => format!("{millis} ms"),
        millis if millis < 60_000 => format!("{}.{} s", millis / 1000, millis % 1000 / 100),
        millis => format!("{} min {} s", millis / 60_000, millis / 1000 % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_kept_up_to_their_limit_and_cut_between_characters_beyond_it() {
        let most = "é".repeat(MOST_WORDS / 2);
        assert_eq!(cut(most.clone()), most);
        assert_eq!(cut(format!("{most}é")), format!("{most} … (2 more bytes)"));
        let odd = format!("x{most}");
        assert_eq!(cut(odd.clone()), format!("{} … (2 more bytes)", &odd[..MOST_WORDS - 1]));
    }

    #[test]
    fn spans_are_short() {
        let spans =
            [0, 999, 1000, 59_999, 60_000, 3_661_000].map(|millis| span(Duration::from_millis(millis)));
        assert_eq!(spans, ["0 ms", "999 ms", "1.0 s", "59.9 s", "1 min 0 s", "61 min 1 s"]);
    }
}
