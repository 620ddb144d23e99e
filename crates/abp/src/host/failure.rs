//! Every way in which a child fails its control plane, as one structure: a stable code, a sentence, its last words, and what
//! to do.

use std::fmt;
use std::sync::Arc;

use outrigger_supervise::launch::Status;
use outrigger_supervise::logs::LogLine;
use outrigger_supervise::report::Report;
use outrigger_supervise::state::Cause;

use crate::protocol::ErrorCode;

/// Why there is no receipt, or why the one that is there is not the end that was wanted.
#[derive(Clone, Debug)]
pub struct Failure {
    /// What kind.
    pub kind: FailureKind,
    /// The name of the backend.
    pub name: String,
    /// What happened, as the rest of a sentence that begins with the name.
    pub what: String,
    /// What the child said itself, if it gave up with `fatal`.
    pub fatal: Option<Fatal>,
    /// Its last lines on standard error.
    pub stderr: Vec<LogLine>,
    /// How its process ended, if it did.
    pub report: Option<Arc<Report>>,
}

/// A child's own words about why it gives up.
#[derive(Clone, Debug, PartialEq)]
pub struct Fatal {
    /// The sentence.
    pub error: String,
    /// The code, if it gave one.
    pub error_code: Option<ErrorCode>,
}

/// The kinds of failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FailureKind {
    /// It could not be started.
    Spawn,
    /// Its hello did not come in time.
    HelloTimeout,
    /// What came first is not a hello.
    Handshake,
    /// It speaks another major version.
    Version,
    /// It cannot do what the work order requires.
    Requirements,
    /// It broke the protocol.
    Protocol,
    /// It spoke of another run.
    Correlation,
    /// It was gone before its run had ended.
    Exited,
    /// It gave up, and said so.
    Fatal,
    /// It missed too many pings.
    Stalled,
    /// It said nothing for too long.
    Silent,
    /// It took too long altogether.
    Timeout,
    /// The run was cancelled, by a person, a policy or a budget.
    Cancelled,
    /// It did not read what was written to it.
    Write,
}

impl FailureKind {
    /// The stable name.
    pub fn code(self) -> &'static str {
        match self {
            Self::Spawn => "spawn",
            Self::HelloTimeout => "hello_timeout",
            Self::Handshake => "handshake",
            Self::Version => "version",
            Self::Requirements => "requirements",
            Self::Protocol => "protocol",
            Self::Correlation => "correlation",
            Self::Exited => "exited",
            Self::Fatal => "fatal",
            Self::Stalled => "stalled",
            Self::Silent => "silent",
            Self::Timeout => "timeout",
            Self::Cancelled => "cancelled",
            Self::Write => "write",
        }
    }

    /// What a person can do about it.
    pub fn advice(self) -> &'static str {
        match self {
            Self::Spawn => "check the command, its PATH and its working directory",
            Self::HelloTimeout => {
                "see whether the program waits for input before it says `hello`, or allow it more time"
            }
            Self::Handshake => {
                "the first line on standard output must be `hello`; send banners and logs to standard error, or have such \
                 lines skipped"
            }
            Self::Version => "use a backend that speaks `abp/v0.*`",
            Self::Requirements => "choose another backend, or require less",
            Self::Protocol => "this is a defect of the backend; `outrigger check abp` shows what it must do",
            Self::Correlation => {
                "`ref_id` must be the `id` of `run`; messages of other runs can also be dropped and counted"
            }
            Self::Exited => "its last lines and its exit code say why, if anything does",
            Self::Fatal => "the backend itself says what it misses",
            Self::Stalled => "it does not answer pings; if it never does, run it without them",
            Self::Silent => "allow longer silence if the backend thinks for long",
            Self::Timeout => "allow more time, or give it a smaller task",
            Self::Cancelled => "nothing, it was asked to end",
            Self::Write => "the backend must read its standard input",
        }
    }
}

impl fmt::Display for FailureKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

impl Failure {
    /// The stable code.
    pub fn code(&self) -> &'static str {
        self.kind.code()
    }

    /// The exit code of the process, if it left with one.
    pub fn exit_code(&self) -> Option<i32> {
        match self.status() {
            Some(Status::Code(code)) => Some(code),
            Some(Status::Signal(_) | Status::Unknown) | None => None,
        }
    }

    /// The signal that ended the process, if one did. It is also ours when the process was killed for what it did.
    pub fn signal(&self) -> Option<i32> {
        match self.status() {
            Some(Status::Signal(signal)) => Some(signal),
            Some(Status::Code(_) | Status::Unknown) | None => None,
        }
    }

    /// Whether the same run may go better when it is tried again.
    pub fn is_retryable(&self) -> bool {
        match self.kind {
            FailureKind::Spawn => self
                .report
                .as_ref()
                .is_some_and(|report| matches!(report.cause, Cause::HostResource | Cause::LaunchFailed)),
            FailureKind::Fatal | FailureKind::Handshake => self
                .fatal
                .as_ref()
                .and_then(|fatal| fatal.error_code.as_ref())
                .is_some_and(ErrorCode::is_retryable),
            FailureKind::HelloTimeout
            | FailureKind::Exited
            | FailureKind::Stalled
            | FailureKind::Silent
            | FailureKind::Timeout
            | FailureKind::Write => true,
            FailureKind::Version
            | FailureKind::Requirements
            | FailureKind::Protocol
            | FailureKind::Correlation
            | FailureKind::Cancelled => false,
        }
    }

    fn status(&self) -> Option<Status> {
        self.report.as_ref().and_then(|report| report.status)
    }
}

impl std::error::Error for Failure {}

/// One sentence, then the evidence, then the advice.
impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "`{}` {}", self.name, Plain(&self.what))?;
        if let Some(Fatal { error, error_code }) = &self.fatal {
            match error_code {
                Some(code) => writeln!(f, "  it said: {} ({code})", Plain(error))?,
                None => writeln!(f, "  it said: {}", Plain(error))?,
            }
        }
        if let Some(report) = &self.report {
            match (report.status, &report.detail) {
                (Some(status), _) => writeln!(f, "  its process ended with {status}")?,
                (None, Some(detail)) => writeln!(f, "  why: {}", Plain(detail))?,
                (None, None) => {}
            }
            if report.leftovers > 0 {
                writeln!(f, "  processes that it left behind, killed: {}", report.leftovers)?;
            }
        }
        if !self.stderr.is_empty() {
            writeln!(f, "  last lines on stderr:")?;
        }
        for LogLine { text, cut_bytes } in &self.stderr {
            match cut_bytes {
                0 => writeln!(f, "    | {}", Plain(text))?,
                cut => writeln!(f, "    | {} … ({cut} more bytes)", Plain(text))?,
            }
        }
        write!(f, "  what to do: {}", self.kind.advice())
    }
}

/// Text of a stranger: nothing in it may move the cursor, change colours, turn the reading direction or begin a line.
struct Plain<'a>(&'a str);

impl fmt::Display for Plain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for character in self.0.chars() {
            match character {
                '\t' => f.write_str("\t")?,
                '\n' => f.write_str("\n      ")?,
                '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
                    write!(f, "{}", character.escape_unicode())?
                }
                control if control.is_control() => write!(f, "{}", control.escape_default())?,
                other => write!(f, "{other}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_a_sentence_with_evidence_and_advice() {
        let failure = Failure {
            kind: FailureKind::Fatal,
            name: "claude".to_owned(),
            what: "gave up".to_owned(),
            fatal: Some(Fatal { error: "no \u{1b}[31mkey".to_owned(), error_code: None }),
            stderr: vec![LogLine { text: "loading".to_owned(), cut_bytes: 7 }],
            report: None,
        };
        insta::assert_snapshot!(failure, @r"
        `claude` gave up
          it said: no \u{1b}[31mkey
          last lines on stderr:
            | loading … (7 more bytes)
          what to do: the backend itself says what it misses
        ");
        assert_eq!((failure.exit_code(), failure.signal(), failure.is_retryable()), (None, None, false));
    }
}
