//! From the end of a child to our exit code, and to the words that explain it.

use outrigger_supervise::driver::Outcome;
use outrigger_supervise::launch::Status;
use outrigger_supervise::report::Report;
use outrigger_supervise::state::{Cause, Final};

use super::Ended;
use crate::args::SandboxArg;

/// It took too long: to become ready, to say something, to finish.
const TIMED_OUT: u8 = 124;
/// We failed ourselves.
pub(crate) const OWN_FAILURE: u8 = 125;
/// It is there, but it is not a program.
const NOT_EXECUTABLE: u8 = 126;
/// It is not there.
const NOT_FOUND: u8 = 127;
/// To this the number of the signal is added.
const SIGNALLED: i32 = 128;

/// The exit code of `exec`, as its help explains it.
pub(crate) fn exit_code(outcome: &Outcome, why: Ended) -> u8 {
    let Some(report) = &outcome.report else {
        // It never had a process: it was stopped before there was one.
        return OWN_FAILURE;
    };
    if why == Ended::TimedOut {
        return TIMED_OUT;
    }
    match report.cause {
        Cause::StartupTimeout | Cause::Unhealthy | Cause::WriteStall => TIMED_OUT,
        Cause::SpawnFailed | Cause::HostResource | Cause::LaunchFailed | Cause::Sandbox => {
            match report.launch_error {
                Some("program_not_found") => NOT_FOUND,
                Some("not_executable" | "bad_interpreter" | "text_file_busy") => NOT_EXECUTABLE,
                Some(_) | None => OWN_FAILURE,
            }
        }
        Cause::Requested
        | Cause::Restarted
        | Cause::Voluntary
        | Cause::Crash
        | Cause::ExitBeforeReady
        | Cause::ChannelLost
        | Cause::ProtocolViolation
        | Cause::Incompatible => own_code(report),
    }
}

/// A stable word for why it is over.
pub(crate) fn reason(outcome: &Outcome, why: Ended) -> &'static str {
    match why {
        Ended::TimedOut => "timeout",
        Ended::ReaderGone => "reader_gone",
        Ended::ByItself | Ended::ByRequest => outcome.why.code(),
    }
}

/// What a person should know at the end; nothing, when all went well.
pub(crate) fn conclusion(outcome: &Outcome, why: Ended, sandbox: SandboxArg) -> Option<String> {
    let text = said(outcome, why)?;
    let failed = outcome.report.as_ref().is_some_and(|report| {
        matches!(report.cause, Cause::Crash | Cause::ExitBeforeReady) && report.status.is_some()
    });
    match sandbox {
        SandboxArg::Strict | SandboxArg::Auto | SandboxArg::Required if failed => {
            Some(format!("{text}\n{HINT}"))
        }
        SandboxArg::Off
        | SandboxArg::Basic
        | SandboxArg::Strict
        | SandboxArg::Auto
        | SandboxArg::Required => Some(text),
    }
}

/// Most failures in a strict box are something that the box did not allow.
const HINT: &str = "  box: strict; --read PATH and --write PATH open files to it, --net allow the network";

fn said(outcome: &Outcome, why: Ended) -> Option<String> {
    let report = outcome.report.as_ref();
    let headline = match why {
        Ended::TimedOut => Some("it ran past --timeout and was stopped"),
        Ended::ReaderGone => Some("nobody reads its output any more, so it was stopped"),
        Ended::ByItself | Ended::ByRequest => None,
    };
    let quiet = match outcome.why {
        Final::Voluntary => report.is_none_or(|report| report.leftovers == 0),
        Final::Requested => report.is_none_or(|report| exited_with_zero(report)),
        Final::NotRestarted(_)
        | Final::Failed(_)
        | Final::AttemptsExhausted(_)
        | Final::CrashLoop(_)
        | Final::SlowCrash(_) => false,
    };
    match (headline, report) {
        (None, _) if quiet => None,
        (None, None) => None,
        (None, Some(report)) => Some(brief(report).to_string()),
        (Some(headline), None) => Some(headline.to_owned()),
        (Some(headline), Some(report)) => Some(format!("{headline}\n{}", brief(report))),
    }
}

/// The report without the last lines, which a person has just seen go by.
pub(crate) fn brief(report: &Report) -> Report {
    Report { stdout: Vec::new(), stderr: Vec::new(), ..report.clone() }
}

fn own_code(report: &Report) -> u8 {
    match report.status {
        Some(Status::Code(code)) => u8::try_from(code & 0xff).unwrap_or(OWN_FAILURE),
        Some(Status::Signal(signal)) => u8::try_from(SIGNALLED + signal).unwrap_or(OWN_FAILURE),
        Some(Status::Unknown) | None => OWN_FAILURE,
    }
}

fn exited_with_zero(report: &Report) -> bool {
    report.status == Some(Status::Code(0))
}
