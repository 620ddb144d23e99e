//! The end of a job: what changed, the receipt, and what becomes of the copy.

use std::path::{Path, PathBuf};
use std::time::Duration;

use outrigger_supervise::sandbox::Enforced;

use super::job::{Afterwards, Audience, Job};
use super::watch::Watched;
use super::{ConductError, Unstarted};
use crate::govern::{Account, BoxPlan, Boxed, EndReason, Governor};
use crate::host::{Command, Ended, Failure, FailureKind, How, Stopped};
use crate::protocol::{
    Artifact, BackendIdentity, ContractVersion, Hello, Manifest, Mode, Negotiation, Outcome, Raw,
    ReceivedReceipt, Timestamp, Usage, WorkOrder,
};
use crate::receipt::{Closing, Ending, Recorder, Sealed};
use crate::workspace::{Applied, ApplyError, Changes, FileChange, Prepared};

/// How a job ended.
#[derive(Debug)]
pub struct Concluded {
    /// In which way the run ended.
    pub ending: Ending,
    /// How well.
    pub outcome: Outcome,
    /// What went wrong with the child, if something did.
    pub failure: Option<Failure>,
    /// Why the governor ended it, if it did.
    pub governed: Option<EndReason>,
    /// The receipt.
    pub sealed: Sealed,
    /// How many events there were.
    pub events: u64,
    /// How long it took.
    pub took: Duration,
    /// What was counted.
    pub usage: Usage,
    /// What changed in the workspace, if that could be found out.
    pub changes: Option<Changes>,
    /// The patch, beside the receipt.
    pub patch: Option<PathBuf>,
    /// The copy, if it stays.
    pub stage: Option<PathBuf>,
    /// What came of applying the changes, if that was wanted and there were any.
    pub applied: Option<Result<Applied, ApplyError>>,
}

impl Concluded {
    /// Why it did not end well, as a person should read it.
    #[must_use]
    pub fn error(&self) -> Option<String> {
        if let Some(reason) = &self.governed {
            return Some(reason.to_string());
        }
        if let Some(failure) = &self.failure {
            return Some(failure.to_string());
        }
        match &self.applied {
            Some(Err(error)) => Some(format!("the changes were not applied: {error}")),
            Some(Ok(_)) | None => None,
        }
    }

    /// The files that changed.
    pub fn files(&self) -> impl Iterator<Item = &FileChange> {
        self.changes.iter().flat_map(|changes| &changes.files)
    }
}

/// What happened between the child's start and its end.
pub(super) struct Performance {
    recorder: Recorder,
    cast: Cast,
    started_at: Timestamp,
    took: Duration,
    failure: Option<Failure>,
    received: Option<Box<ReceivedReceipt<'static>>>,
    negotiation: Negotiation,
    governor: Option<Governor>,
    governed: Option<EndReason>,
    enforced: Option<Enforced>,
}

/// Who performed, as far as that is known.
struct Cast {
    backend: BackendIdentity,
    contract_version: ContractVersion,
    capabilities: Manifest,
    mode: Mode,
}

impl Performance {
    /// There never was a child to speak with.
    pub(super) fn unstarted(why: Unstarted, recorder: Recorder, started_at: Timestamp, name: &str) -> Self {
        let failure = match why {
            Unstarted::Failed(failure) => failure,
            Unstarted::Stopped(command) => Failure {
                kind: FailureKind::Cancelled,
                name: name.to_owned(),
                what: match command {
                    Command::Cancel { why } | Command::Kill { why } => format!("was not started: {why}"),
                    Command::Answer(_) | Command::Steer { .. } => "was not started".to_owned(),
                },
                fatal: None,
                stderr: Vec::new(),
                report: None,
            },
        };
        let took = Timestamp::now().since(started_at);
        Self {
            recorder,
            cast: Cast::unknown(name),
            started_at,
            took,
            failure: Some(failure),
            received: None,
            negotiation: Negotiation::default(),
            governor: None,
            governed: None,
            enforced: None,
        }
    }

    /// A child that said hello was given the order.
    pub(super) fn of_run(
        hello: Hello,
        enforced: Option<Enforced>,
        ended: Ended,
        stopped: Stopped,
        watched: Watched,
    ) -> Self {
        let Ended { how, receipt, negotiation, warnings: _, observed } = ended;
        let failure = match how {
            How::Final => None,
            // The end of the process may only be known now.
            How::Failed(failure) => {
                let report = failure.report.clone().or(stopped.report);
                Some(Failure { report, ..*failure })
            }
        };
        Self {
            recorder: watched.recorder,
            cast: Cast::of(hello),
            started_at: observed.started_at,
            took: observed.took,
            failure,
            received: receipt,
            negotiation,
            governor: Some(watched.governor),
            governed: watched.ended,
            enforced,
        }
    }

    /// In which way it ended.
    fn ending(&self) -> Ending {
        if let Some(reason) = &self.governed {
            return match reason {
                EndReason::Policy(_) => Ending::Policy,
                EndReason::Budget(_) => Ending::Budget,
            };
        }
        match self.failure.as_ref().map(|failure| failure.kind) {
            None => Ending::Final,
            Some(FailureKind::Fatal) => Ending::Fatal,
            Some(FailureKind::Cancelled) => Ending::Cancelled,
            Some(FailureKind::Timeout) => Ending::Timeout,
            Some(FailureKind::Stalled | FailureKind::Silent | FailureKind::Write) => Ending::Stalled,
            Some(FailureKind::Exited | FailureKind::Spawn) => Ending::Exited,
            Some(
                FailureKind::HelloTimeout
                | FailureKind::Handshake
                | FailureKind::Version
                | FailureKind::Requirements
                | FailureKind::Protocol
                | FailureKind::Correlation,
            ) => Ending::Protocol,
        }
    }
}

impl Cast {
    fn of(hello: Hello) -> Self {
        let Hello { contract_version, backend, capabilities, mode, outrigger: _ } = hello;
        Self { backend, contract_version, capabilities, mode }
    }

    /// It never introduced itself.
    fn unknown(name: &str) -> Self {
        Self {
            backend: BackendIdentity { id: name.to_owned(), backend_version: None, adapter_version: None },
            contract_version: ContractVersion::ours(),
            capabilities: Manifest::default(),
            mode: Mode::Mapped,
        }
    }
}

/// Looks what changed, seals the receipt, and clears up.
pub(super) async fn close(
    job: Job,
    order: WorkOrder,
    prepared: Prepared,
    plan: Option<BoxPlan>,
    performance: Performance,
    audience: &mut dyn Audience,
) -> Result<Concluded, ConductError> {
    let ending = performance.ending();
    let changes = match prepared.finish().await {
        Ok(changes) => Some(changes),
        Err(error) => {
            audience.remark(&format!("what changed in the workspace is not known: {error}"));
            None
        }
    };
    let patch = keep_patch(&job, changes.as_ref(), audience);
    let boxed = match (&plan, &performance.enforced) {
        (Some(plan), Some(enforced)) => Some(Boxed { plan, enforced }),
        (_, _) => None,
    };
    let account = performance.governor.as_ref().map(|governor| governor.account(boxed));
    let usage = performance.governor.as_ref().map(Governor::usage).unwrap_or_default();
    let error = performance.governed.as_ref().map(ToString::to_string);
    let error = error.or_else(|| performance.failure.as_ref().map(sentence));
    let outcome = outcome(&ending, performance.received.as_deref());
    let Performance { recorder, cast, started_at, took, failure, received, negotiation, governed, .. } =
        performance;
    let closing = Closing {
        order: &order,
        backend: cast.backend,
        contract_version: cast.contract_version,
        capabilities: cast.capabilities,
        mode: cast.mode,
        started_at,
        duration: took,
        ending: ending.clone(),
        error,
        outcome,
        received: received.as_deref(),
        usage,
        artifacts: patch.as_deref().and_then(artifact).into_iter().collect(),
        git_diff: changes.as_ref().and_then(|changes| changes.diff.as_ref()).map(|diff| diff.text.clone()),
        git_status: changes
            .as_ref()
            .and_then(|changes| changes.status.as_ref())
            .map(|status| status.text.clone()),
        negotiation,
        account: account_text(account.as_ref()),
        sign: job.sign.as_ref(),
    };
    let events = recorder.events();
    let sealed = recorder.seal(&closing)?;
    let outcome = sealed.receipt.outcome.clone();
    let usage = sealed.receipt.usage;
    let applied = match (job.afterwards, &changes, &outcome) {
        (Afterwards::Apply, Some(changes), Outcome::Complete) if !changes.files.is_empty() => {
            Some(changes.apply(prepared.source()).await)
        }
        _ => None,
    };
    let well = outcome == Outcome::Complete && changes.is_some() && !matches!(applied, Some(Err(_)));
    let untouched = changes.as_ref().is_some_and(is_untouched);
    let stage = leave(prepared, job.afterwards, well || untouched, &ending, audience);
    Ok(Concluded {
        ending,
        outcome,
        failure,
        governed,
        sealed,
        events,
        took,
        usage,
        changes,
        patch,
        stage,
        applied,
    })
}

/// What the receipt says; none to believe the child.
fn outcome(ending: &Ending, received: Option<&ReceivedReceipt<'_>>) -> Option<Outcome> {
    let claimed = received.and_then(|receipt| receipt.outcome.clone());
    match ending {
        Ending::Final => None,
        // What was done until then counts, unless the child says that it is worth nothing.
        Ending::Cancelled | Ending::Budget | Ending::Timeout => match claimed {
            Some(Outcome::Failed) => Some(Outcome::Failed),
            _ => Some(Outcome::Partial),
        },
        Ending::Fatal
        | Ending::Policy
        | Ending::Stalled
        | Ending::Exited
        | Ending::Protocol
        | Ending::Other(_) => Some(Outcome::Failed),
    }
}

/// Puts the patch beside the receipt, where it stays when the copy goes.
fn keep_patch(job: &Job, changes: Option<&Changes>, audience: &mut dyn Audience) -> Option<PathBuf> {
    let patch = changes?.patch.as_ref()?;
    let path = job.receipts.beside(&job.run, "patch");
    match std::fs::copy(&patch.path, &path) {
        Ok(_) => Some(path),
        Err(error) => {
            audience.remark(&format!("the patch stays at {}: {error}", patch.path.display()));
            Some(patch.path.clone())
        }
    }
}

fn artifact(path: &Path) -> Option<Artifact> {
    let name = path.file_name()?.to_str()?;
    Some(Artifact { kind: "patch".to_owned(), path: name.to_owned() })
}

/// A failure in one sentence; the evidence is for people who are there.
fn sentence(failure: &Failure) -> String {
    let Failure { name, what, fatal, .. } = failure;
    match fatal {
        Some(fatal) => format!("`{name}` {what}: {}", fatal.error),
        None => format!("`{name}` {what}"),
    }
}

/// A run that was never governed has nothing to account for.
fn account_text(account: Option<&Account>) -> Raw<'static> {
    let text = account.and_then(|account| Raw::of(account).ok());
    text.unwrap_or_else(|| Raw::of(&serde_json::Map::new()).unwrap_or(Raw::NULL))
}

/// Whether there is no work in a copy that could be lost.
fn is_untouched(changes: &Changes) -> bool {
    changes.files.is_empty() && changes.ignored_new == 0 && changes.unrecorded.is_empty()
}

/// A copy with work in it that nobody has taken over stays.
fn leave(
    prepared: Prepared,
    afterwards: Afterwards,
    well: bool,
    ending: &Ending,
    audience: &mut dyn Audience,
) -> Option<PathBuf> {
    let left = match (well, afterwards) {
        (true, Afterwards::Discard | Afterwards::Apply) => prepared.discard().map(|()| None),
        (true, Afterwards::Keep) => prepared.keep("kept as asked"),
        (false, _) => prepared.keep(&format!("the run ended: {ending}")),
    };
    left.unwrap_or_else(|error| {
        audience.remark(&error.to_string());
        None
    })
}
