//! What came of a turn, in the words of the contract.

use outrigger_abp::govern::EndReason;
use outrigger_abp::protocol::Outcome;
use outrigger_abp::receipt::Ending;
use outrigger_steerable::host::{CallError, Done, StartError, StartErrorKind, StreamEnd, StreamFailure};

use crate::backends::order::attend::GOING_DOWN;
use crate::runs::Phase;
use crate::runs::backend::Again;

/// Why a turn was told to stop.
#[derive(Clone, Debug)]
pub(super) enum Stop {
    /// Somebody cancelled it.
    Cancelled(String),
    /// It did what it may not, or used up what it was given.
    Governed(EndReason),
    /// The daemon leaves.
    Leaving,
}

/// How a turn ended.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct End {
    pub(super) ending: Ending,
    pub(super) outcome: Outcome,
    pub(super) phase: Phase,
    pub(super) again: Again,
    pub(super) error: Option<String>,
}

impl End {
    fn new(ending: Ending, outcome: Outcome, again: Again, error: impl Into<String>) -> Self {
        let phase = match ending {
            Ending::Cancelled => Phase::Cancelled,
            _ => Phase::Failed,
        };
        Self { ending, outcome, phase, again, error: Some(error.into()) }
    }

    /// The end of a stream, which may have been wanted. What was complete before anybody was heard is complete.
    pub(super) fn of(end: &StreamEnd, stop: Option<&Stop>) -> Self {
        match (end, stop) {
            (StreamEnd::Done(Done { ok: true, .. }), None | Some(Stop::Cancelled(_) | Stop::Leaving)) => {
                Self {
                    ending: Ending::Final,
                    outcome: Outcome::Complete,
                    phase: Phase::Completed,
                    again: Again::Nobody,
                    error: None,
                }
            }
            (_, Some(stop)) => Self::stopped(stop),
            (StreamEnd::Done(done), None) => Self::done(done),
            (StreamEnd::Failed(failure), None) => Self::failed(failure),
            (StreamEnd::Lost(lost), None) => {
                Self::new(Ending::Exited, Outcome::Failed, Again::Same, lost.to_string())
            }
        }
    }

    /// It was told to stop.
    pub(super) fn stopped(stop: &Stop) -> Self {
        match stop {
            Stop::Cancelled(why) => {
                Self::new(Ending::Cancelled, Outcome::Partial, Again::Nobody, why.as_str())
            }
            Stop::Leaving => Self::new(Ending::Cancelled, Outcome::Partial, Again::Nobody, GOING_DOWN),
            Stop::Governed(reason @ EndReason::Policy(_)) => {
                Self::new(Ending::Policy, Outcome::Failed, Again::Nobody, reason.to_string())
            }
            Stop::Governed(reason @ EndReason::Budget(_)) => {
                Self::new(Ending::Budget, Outcome::Partial, Again::Nobody, reason.to_string())
            }
        }
    }

    fn done(done: &Done) -> Self {
        let status = done.status.as_deref().unwrap_or("incomplete");
        let error = done.reason.clone().unwrap_or_else(|| status.to_owned());
        match status {
            _ if done.cancelled => Self::new(Ending::Cancelled, Outcome::Partial, Again::Nobody, error),
            "budget_exhausted" => {
                let error = format!("the budget is used up: {error}");
                Self::new(Ending::Budget, Outcome::Partial, Again::Nobody, error)
            }
            _ => Self::new(Ending::Final, Outcome::Partial, Again::Nobody, error),
        }
    }

    fn failed(failure: &StreamFailure) -> Self {
        let again = match failure.retryable {
            Some(true) => Again::Same,
            Some(false) | None => Again::Other,
        };
        let hint = match failure.kind.as_str() {
            "auth" => "; is the key right? It comes from the environment that the daemon was started in",
            "context_overflow" => "; the conversation is too long for this model",
            _ => "",
        };
        let error = format!("{} ({}){hint}", failure.message, failure.kind);
        Self::new(Ending::Fatal, Outcome::Failed, again, error)
    }

    /// The runtime did not become ready.
    pub(super) fn unstarted(error: &StartError) -> Self {
        let (ending, again) = match error.kind {
            StartErrorKind::Spawn | StartErrorKind::Late | StartErrorKind::Exited => {
                (Ending::Exited, Again::Same)
            }
            StartErrorKind::Garbled | StartErrorKind::Incompatible => (Ending::Protocol, Again::Other),
        };
        Self::new(ending, Outcome::Failed, again, error.to_string())
    }

    /// The runtime did not take the turn.
    pub(super) fn refused(error: &CallError) -> Self {
        let (ending, again) = match error {
            CallError::Remote { .. } | CallError::NotSent { .. } | CallError::StreamExists(_) => {
                (Ending::Fatal, Again::Other)
            }
            CallError::Late { .. } => (Ending::Stalled, Again::Same),
            CallError::Lost { .. } | CallError::Down { .. } => (Ending::Exited, Again::Same),
            CallError::Unreadable { .. } => (Ending::Protocol, Again::Other),
        };
        Self::new(ending, Outcome::Failed, again, error.to_string())
    }

    /// It could not even be begun.
    pub(super) fn impossible(why: impl Into<String>) -> Self {
        Self::new(Ending::Fatal, Outcome::Failed, Again::Nobody, why)
    }
}

#[cfg(test)]
mod tests {
    use outrigger_steerable::host::Lost;

    use super::*;

    fn done(ok: bool, cancelled: bool, status: &str, reason: Option<&str>) -> StreamEnd {
        let (status, reason) = (Some(status.to_owned()), reason.map(str::to_owned));
        StreamEnd::Done(Done { ok, cancelled, status, reason, ..Done::default() })
    }

    fn failed(kind: &str, retryable: Option<bool>) -> StreamEnd {
        let (kind, message) = (kind.to_owned(), "503".to_owned());
        StreamEnd::Failed(StreamFailure { kind, message, retryable, ..StreamFailure::default() })
    }

    #[test]
    fn every_end_of_a_turn_is_one_of_the_contract() {
        let lost = StreamEnd::Lost(Lost { what: "it is gone".to_owned(), report: None });
        let cancelled = Stop::Cancelled("enough".to_owned());
        let cases = [
            (done(true, false, "completed", None), None, "final", Phase::Completed, Again::Nobody, None),
            // It was done before it heard.
            (
                done(true, false, "completed", None),
                Some(&cancelled),
                "final",
                Phase::Completed,
                Again::Nobody,
                None,
            ),
            (
                done(false, true, "cancelled", None),
                Some(&cancelled),
                "cancelled",
                Phase::Cancelled,
                Again::Nobody,
                Some("enough"),
            ),
            (
                done(false, true, "cancelled", Some("abort")),
                None,
                "cancelled",
                Phase::Cancelled,
                Again::Nobody,
                Some("abort"),
            ),
            (
                done(false, true, "cancelled", None),
                Some(&Stop::Leaving),
                "cancelled",
                Phase::Cancelled,
                Again::Nobody,
                Some(GOING_DOWN),
            ),
            (
                done(false, false, "budget_exhausted", Some("rounds")),
                None,
                "budget",
                Phase::Failed,
                Again::Nobody,
                Some("the budget is used up: rounds"),
            ),
            (done(false, false, "odd", None), None, "final", Phase::Failed, Again::Nobody, Some("odd")),
            (failed("server", Some(true)), None, "fatal", Phase::Failed, Again::Same, Some("503 (server)")),
            (failed("unknown", None), None, "fatal", Phase::Failed, Again::Other, Some("503 (unknown)")),
            (lost.clone(), None, "exited", Phase::Failed, Again::Same, Some("it is gone")),
            // A runtime that had to be killed because it was cancelled was cancelled.
            (lost, Some(&cancelled), "cancelled", Phase::Cancelled, Again::Nobody, Some("enough")),
        ];
        for (end, stop, ending, phase, again, error) in cases {
            let got = End::of(&end, stop);
            assert_eq!(
                (got.ending.as_str(), got.phase, got.again, got.error.as_deref()),
                (ending, phase, again, error),
                "{end:?} {stop:?}"
            );
        }
    }

    #[test]
    fn a_wrong_key_is_said_to_be_one() {
        let error = End::of(&failed("auth", Some(false)), None).error.unwrap();
        assert!(error.starts_with("503 (auth); is the key right?"), "{error}");
    }
}
