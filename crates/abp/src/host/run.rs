//! One run from `run` to `final` or `fatal`: reading, writing and the clocks in one loop, and one end.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use outrigger_supervise::driver::{Outcome, Output};
use outrigger_supervise::report::Report;
use outrigger_supervise::state::{Cause, Fault, Ladder};
use outrigger_wire::line::{Head, LineReader};
use tokio::time::Instant;

use super::control::RunControl;
use super::ended::{Ended, How, Observed};
use super::failure::{Failure, FailureKind};
use super::hear::{broken_line, broken_stream};
use super::process::Process;
use super::sidecar::{DRAIN, Link, Sidecar, Standing};
use super::talk::{Cancelled, Deed, End, Stage, Talk};
use super::terms::Foreign;
use super::warning::Warnings;
use super::watch::Watcher;
use crate::protocol::{Envelope, Negotiation, ReceivedReceipt, Run, RunId, Timestamp, WorkOrder, negotiate};

/// What is said of a child that is asked for one run too many.
const SPENT: &str = "broke the protocol: it said more after its last run had ended, or left unread what it was told; \
                     it gets no other run";

impl Sidecar {
    /// Gives it a work order and stays until the run has ended. Dropping this kills the child.
    ///
    /// The watcher sees every event as it is read; the control is how others interfere. After a run that ended with `final` or
    /// `fatal` the child can be given another one, if [`Sidecar::is_reusable`] says so.
    pub async fn run(
        &mut self,
        id: &RunId,
        order: &WorkOrder,
        watcher: &mut dyn Watcher,
        mut control: RunControl,
    ) -> Ended {
        let negotiation = negotiate(&order.requirements, &self.hello.capabilities);
        let began = Instant::now();
        let observed = nothing_yet();
        // Whoever drops this future drops the link, and that kills the child.
        let Some(link) = self.link.take() else {
            return over(Some(self.lost()), None, negotiation, Warnings::none(), observed, began);
        };
        let mut warnings = Warnings::none();
        if let Some((kind, what)) = self.unfit(&negotiation) {
            let failure = link.process.failure(kind, what, None, None);
            let report = link.stop(self.terms.ladder, &mut warnings).await;
            self.report.clone_from(&report);
            return over(Some(Failure { report, ..failure }), None, negotiation, warnings, observed, began);
        }
        let previous = self.last_run.replace(id.clone());
        let Link { process, mut reader, outbox } = link;
        let run = Run { id: id.clone(), order: order.clone(), outrigger: self.terms.offer.clone() };
        let run = Envelope::Run(Box::new(run));
        let mut talk = Talk::begin(
            id,
            previous.as_ref(),
            (&self.terms, self.hello.outrigger.as_ref().map_or(&[], |powers| &powers.takes)),
            outbox,
            &run,
            watcher,
            observed,
        );
        drop(run);
        let end = converse(&mut talk, &mut reader, &process, &mut control, self.terms.ladder).await;
        let Talk { outbox, mut warnings, observed, cancelled, stage, .. } = talk;
        let Concluded { failure, receipt, report, left } = conclude(&process, cancelled, stage, end).await;
        let mut link = Link { process, reader, outbox };
        let before = warnings.total();
        link.note_late(&mut warnings);
        let kept_to_the_rules = warnings.total() == before || self.terms.foreign == Foreign::DropAndCount;
        if left == Presence::Here {
            let listens = link.outbox.is_open() && link.outbox.waiting() == 0;
            self.standing = if kept_to_the_rules && listens { Standing::Good } else { Standing::Spent };
            self.link = Some(link);
        } else {
            self.report = report;
        }
        over(failure, receipt, negotiation, warnings, observed, began)
    }

    /// Why this child cannot be given this run.
    fn unfit(&self, negotiation: &Negotiation) -> Option<(FailureKind, String)> {
        if !negotiation.is_satisfied() {
            let missing: Vec<_> = negotiation
                .missing
                .iter()
                .map(|missing| format!("{}: {}", missing.capability, missing.reason))
                .collect();
            let what = format!("cannot do what the work order requires: {}", missing.join("; "));
            return Some((FailureKind::Requirements, what));
        }
        match self.standing {
            Standing::Good => None,
            Standing::Spent => Some((FailureKind::Protocol, SPENT.to_owned())),
        }
    }

    /// There is no child to give a run to.
    fn lost(&self) -> Failure {
        Failure {
            kind: FailureKind::Exited,
            name: self.name().to_owned(),
            what: "was lost in an earlier run and cannot be given another".to_owned(),
            fatal: None,
            stderr: self.stderr_tail(),
            report: self.report.clone(),
        }
    }
}

/// Whether the child is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Presence {
    Here,
    Gone,
}

/// Reads, writes and looks at the clocks until the conversation has ended.
async fn converse(
    talk: &mut Talk<'_>,
    reader: &mut LineReader<Output>,
    process: &Process,
    control: &mut RunControl,
    ladder: Ladder,
) -> End {
    let mut gone: Pin<Box<dyn Future<Output = Outcome> + Send + '_>> = Box::pin(process.child.wait());
    let mut there = Presence::Here;
    loop {
        // Before more is read, so that a flood cannot outrun the clocks.
        match talk.due(Instant::now()) {
            Some(Deed::End(end)) => return end,
            Some(Deed::Stop) => gone = Box::pin(process.child.stop(ladder)),
            None => {}
        }
        let deadline = talk.deadline();
        tokio::select! {
            biased;
            command = control.next() => {
                if let Some(end) = talk.command(command, Instant::now()) {
                    return end;
                }
            }
            _ = &mut gone, if there == Presence::Here => {
                there = Presence::Gone;
                talk.timers.gone(DRAIN, Instant::now());
            }
            wrote = talk.outbox.advance(), if talk.outbox.waiting() > 0 => {
                talk.wrote(wrote, Instant::now());
            }
            next = reader.next() => {
                let item = match next {
                    Ok(Some(item)) => item,
                    Ok(None) => return End::Closed { torn: None },
                    Err(error) => return broken_stream(error).map_or(End::Closed { torn: None }, End::bad_line),
                };
                if let Some(end) = talk.hear(item) {
                    return end;
                }
                // The rest of what was read in one go: no wait, no clock, no channel between two events.
                loop {
                    match reader.next_buffered() {
                        Ok(Some(item)) => {
                            if let Some(end) = talk.hear(item) {
                                return end;
                            }
                        }
                        Ok(None) => break,
                        Err(error) => return End::bad_line(broken_line(error)),
                    }
                }
                talk.timers.heard(Instant::now());
            }
            () = until(deadline) => {}
        }
    }
}

/// What is left to say when the conversation has ended.
struct Concluded {
    failure: Option<Failure>,
    receipt: Option<Box<ReceivedReceipt<'static>>>,
    /// The end of the process, if it ended.
    report: Option<Arc<Report>>,
    /// Whether there may be a process that can be given another run.
    left: Presence,
}

/// Sees to the process as the end demands, and says what happened.
async fn conclude(process: &Process, cancelled: Option<Cancelled>, stage: Stage, end: End) -> Concluded {
    let report = match &end {
        // A child that is being stopped is on a ladder, which ends.
        End::Final(_) | End::Fatal(_) if stage == Stage::Stopping => process.child.wait().await.report,
        End::Final(_) => None,
        End::Fatal(_) => process.part().await,
        End::Broken { fault, what, .. } => process.lose(*fault, what).await,
        End::Closed { .. } => {
            process.lose(Fault::ChannelLost, "it closed its standard output during a run").await
        }
        End::Kill { .. } => process.child.kill().await.report,
    };
    let left = match &end {
        End::Final(_) | End::Fatal(_) if report.is_none() && stage != Stage::Stopping => Presence::Here,
        End::Final(_) | End::Fatal(_) | End::Broken { .. } | End::Closed { .. } | End::Kill { .. } => {
            Presence::Gone
        }
    };
    let (kind, what, fatal, receipt) = match end {
        End::Final(receipt) => match &cancelled {
            None => return Concluded { failure: None, receipt: Some(receipt), report, left },
            Some(_) => {
                (FailureKind::Cancelled, "it ended the run with its receipt".to_owned(), None, Some(receipt))
            }
        },
        End::Fatal(fatal) => (FailureKind::Fatal, "gave up".to_owned(), Some(fatal), None),
        End::Broken { kind, what, .. } => (kind, what, None, None),
        End::Closed { torn } => {
            let (kind, what) = closed(report.as_deref(), torn.as_ref());
            (kind, what, None, None)
        }
        End::Kill { why } => (FailureKind::Cancelled, format!("was killed: {why}"), None, None),
    };
    // Whatever a cancelled child does next, that it was cancelled is what happened.
    let (kind, what) = match &cancelled {
        None => (kind, what),
        Some(cancelled) => (cancelled.kind, format!("{}; {what}", cancelled.what)),
    };
    Concluded { failure: Some(process.failure(kind, what, fatal, report.clone())), receipt, report, left }
}

/// What it means that the output of a child ended during a run.
fn closed(report: Option<&Report>, torn: Option<&Head>) -> (FailureKind, String) {
    if report.is_some_and(|report| report.cause == Cause::ChannelLost) {
        let what = "broke the protocol: it closed its standard output during a run and kept running";
        return (FailureKind::Protocol, what.to_owned());
    }
    let status = report.and_then(|report| report.status);
    let with = status.map(|status| format!(" with {status}")).unwrap_or_default();
    let what = match torn {
        Some(head) => format!("exited{with} in the middle of a line: {head}"),
        None => format!("exited{with} before it sent `final` or `fatal`"),
    };
    (FailureKind::Exited, what)
}

fn over(
    failure: Option<Failure>,
    receipt: Option<Box<ReceivedReceipt<'static>>>,
    negotiation: Negotiation,
    warnings: Warnings,
    observed: Observed,
    began: Instant,
) -> Ended {
    let how = failure.map_or(How::Final, |failure| How::Failed(Box::new(failure)));
    let observed = Observed { finished_at: Timestamp::now(), took: began.elapsed(), ..observed };
    Ended { how, receipt, negotiation, warnings, observed }
}

fn nothing_yet() -> Observed {
    let now = Timestamp::now();
    Observed {
        started_at: now,
        finished_at: now,
        took: Duration::ZERO,
        events: 0,
        event_bytes: 0,
        asks: 0,
        foreign: 0,
        noise: 0,
        pings: 0,
        pongs: 0,
    }
}

/// Waits for a moment that may never come.
async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
