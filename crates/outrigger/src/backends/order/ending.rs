//! What came of an attempt: how the run stands, and whether somebody should try again.

use std::path::Path;

use outrigger_abp::conduct::{self, ConductError};
use outrigger_abp::host::Failure;
use outrigger_abp::protocol::{ErrorCode, Outcome, Usage};
use outrigger_abp::receipt::{Ending, Sealed};

use super::attend::Leaving;
use super::onlooker::Seen;
use crate::runs::backend::Again;
use crate::runs::state::{Receipt, Spent};
use crate::runs::{Concluded, Ended, Phase};

/// The end of an attempt, as the run's log has it.
pub(super) fn conclude(
    concluded: Result<conduct::Concluded, ConductError>,
    seen: Seen,
    before: Spent,
    leaving: Leaving,
) -> Concluded {
    match (concluded, leaving) {
        // What had ended by itself before it was told that the daemon leaves has ended.
        (Ok(concluded), Leaving::Yes) if concluded.ending == Ending::Cancelled => Concluded::Drained,
        (Err(ConductError::Stopped), Leaving::Yes) => Concluded::Drained,
        (Ok(concluded), _) => Concluded::Ended(Box::new(ended(&concluded, &seen, before))),
        (Err(error), _) => Concluded::Ended(Box::new(unrecorded(&error))),
    }
}

fn ended(concluded: &conduct::Concluded, seen: &Seen, before: Spent) -> Ended {
    let failure = concluded.failure.as_ref();
    let retry = match (failure, &seen.error) {
        (Some(failure), _) => Retry::of(failure.is_retryable()),
        (None, Some((_, code))) => Retry::of(code.as_ref().is_some_and(ErrorCode::is_retryable)),
        (None, None) => Retry::Useless,
    };
    let applied = concluded.applied.as_ref().is_none_or(Result::is_ok);
    let (phase, again) = match applied {
        true => verdict(&concluded.ending, &concluded.outcome, retry),
        false => (Phase::Failed, Again::Nobody),
    };
    Ended {
        phase,
        error: why(concluded.error(), phase, &concluded.outcome, seen),
        ending: concluded.ending.as_str().to_owned(),
        receipt: Some(receipt(&concluded.sealed)),
        value: None,
        patch: concluded.patch.as_deref().and_then(name),
        again,
        spent: Some(spent(before, concluded.usage, seen)),
    }
}

/// Whether the same backend may do better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Retry {
    Helps,
    Useless,
}

impl Retry {
    fn of(retryable: bool) -> Self {
        if retryable { Self::Helps } else { Self::Useless }
    }
}

/// How a run stands after an attempt that ended like this, and who could do better.
pub(super) fn verdict(ending: &Ending, outcome: &Outcome, retry: Retry) -> (Phase, Again) {
    let by_retry = match retry {
        Retry::Helps => Again::Same,
        Retry::Useless => Again::Other,
    };
    match ending {
        Ending::Final => match outcome {
            Outcome::Complete => (Phase::Completed, Again::Nobody),
            // Half of the work is there; doing it again is for people to decide.
            Outcome::Partial => (Phase::Failed, Again::Nobody),
            Outcome::Failed | Outcome::Other(_) => (Phase::Failed, by_retry),
        },
        Ending::Cancelled => (Phase::Cancelled, Again::Nobody),
        Ending::Policy | Ending::Budget => (Phase::Failed, Again::Nobody),
        Ending::Timeout | Ending::Stalled => (Phase::Failed, Again::Same),
        // A program that is not there will not be there in a second.
        Ending::Exited | Ending::Fatal | Ending::Protocol | Ending::Other(_) => (Phase::Failed, by_retry),
    }
}

/// Why it did not end well, in the child's words if nobody else has any.
fn why(error: Option<String>, phase: Phase, outcome: &Outcome, seen: &Seen) -> Option<String> {
    if error.is_some() || phase == Phase::Completed {
        return error;
    }
    let told = seen.error.as_ref().map(|(message, _)| message.clone());
    Some(told.unwrap_or_else(|| match outcome {
        Outcome::Partial => "the backend says that the work is only partly done".to_owned(),
        outcome => format!("the backend says that the work is {outcome}"),
    }))
}

/// An attempt without a receipt.
pub(super) fn unrecorded(error: &ConductError) -> Ended {
    let (ending, again) = match error {
        ConductError::Stopped => {
            let mut ended = Ended::failed("cancelled", error.to_string(), Again::Nobody);
            ended.phase = Phase::Cancelled;
            return ended;
        }
        // Nobody can do what is asked for.
        ConductError::Govern(_)
        | ConductError::Policy(_)
        | ConductError::Mode(_)
        | ConductError::Workspace(_) => ("fatal", Again::Nobody),
        // A disk that is full now may not be later.
        ConductError::Ledger(_) | ConductError::Order { .. } | ConductError::Receipt(_) => {
            ("fatal", Again::Same)
        }
    };
    Ended::failed(ending, error.to_string(), again)
}

/// What the run used in all: earlier attempts, what the receipt counts, what was seen.
pub(super) fn spent(before: Spent, usage: Usage, seen: &Seen) -> Spent {
    Spent {
        input_tokens: before.input_tokens + usage.input_tokens.unwrap_or(0),
        output_tokens: before.output_tokens + usage.output_tokens.unwrap_or(0),
        cost_usd: before.cost_usd + usage.estimated_cost_usd.unwrap_or(0.0),
        tool_calls: before.tool_calls + seen.tool_calls,
        model_calls: before.model_calls + seen.model_calls,
    }
}

/// A sealed receipt, as the state has it.
pub(super) fn receipt(sealed: &Sealed) -> Receipt {
    Receipt { file: name(&sealed.path).unwrap_or_default(), sha256: sealed.sha256 }
}

/// The name of a file beside the receipts.
fn name(path: &Path) -> Option<String> {
    Some(path.file_name()?.to_string_lossy().into_owned())
}

/// A failure of a child that was only looked at, in one line.
pub(super) fn sentence(failure: &Failure) -> String {
    let Failure { name, what, fatal, stderr, .. } = failure;
    let said = fatal.as_ref().map(|fatal| format!(": {}", fatal.error));
    let last = || stderr.last().map(|line| format!(": {}", line.text));
    format!("`{name}` {what}{}", said.or_else(last).unwrap_or_default())
}
