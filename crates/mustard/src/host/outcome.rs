//! How a run ends: with a value, parked, or with a reason that says what, who and why.

use std::fmt;
use std::time::Duration;

use outrigger_vm::boundary::Plain;

use super::pool::LendError;
use super::sidecar::{Lost, SidecarError};
use super::store::{CallId, HoldError, PeekError, PutError, Record, RunId, StoreError, TakeError, Ticket};
use crate::protocol::response::{Detail, Failure, Place};

/// A run that came to an end, or to a rest.
#[derive(Debug)]
pub enum Ending {
    /// The script is done.
    Finished(Finished),
    /// The script waits for somebody.
    Parked(Box<Parked>),
}

/// A script that is done.
#[derive(Debug)]
pub struct Finished {
    /// What it gave.
    pub value: Plain,
    /// What it took.
    pub statistics: Statistics,
}

/// A script that waits for somebody.
#[derive(Debug)]
pub struct Parked {
    /// Everything that is needed to go on.
    pub record: Record,
    /// The right to go on, if the run had a store to be parked in.
    pub ticket: Option<Ticket>,
    /// What it took so far.
    pub statistics: Statistics,
}

/// What a run took, over all its children and hosts as far as this one knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Statistics {
    /// Snapshots that were made.
    pub hops: u64,
    /// Handlers that were called.
    pub calls: u64,
    /// Answers that were found in the journal instead.
    pub remembered: u64,
    /// The largest snapshot.
    pub largest_snapshot: u64,
    /// Children that were used.
    pub children: u64,
    /// Steps that had to be repeated.
    pub repeats: u64,
}

impl Statistics {
    pub(super) const NONE: Self =
        Self { hops: 0, calls: 0, remembered: 0, largest_snapshot: 0, children: 0, repeats: 0 };
}

/// A run that did not come to its end, and what it took until then.
#[derive(Debug, thiserror::Error)]
#[error("{why}")]
pub struct Failed {
    /// Which run.
    pub run: RunId,
    /// Why.
    pub why: RunError,
    /// What it took.
    pub statistics: Statistics,
}

/// Why a run did not come to its end.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The script failed, or reached a limit. Trying again cannot help.
    #[error("{0}")]
    Script(Box<ScriptError>),
    /// A step was tried again and again, and each time its child was lost.
    #[error("step {step} cost {attempts} sidecars, and the last one says: {last}")]
    KeepsDying {
        /// Which step: 0 is the start.
        step: u64,
        /// How many children were lost with it.
        attempts: u32,
        /// How the last one was.
        last: Box<Lost>,
    },
    /// What had to be sent is larger than the child takes.
    #[error("step {step}: the request has {bytes} bytes, and the sidecar takes at most {limit}")]
    TooLarge {
        /// Which step: 0 is the start.
        step: u64,
        /// How large it would be.
        bytes: u64,
        /// How large it may be.
        limit: u64,
    },
    /// It took too long altogether.
    #[error("the run was not done within {} ms", within.as_millis())]
    Deadline {
        /// How long it had.
        within: Duration,
    },
    /// Somebody cancelled it.
    #[error("the run was cancelled")]
    Cancelled,
    /// There is no child.
    #[error(transparent)]
    NoChild(#[from] LendError),
    /// What has to be stored before going on cannot be stored.
    #[error("the run cannot be written down: {0}")]
    Journal(#[from] PutError),
    /// What was given to it cannot be sent.
    #[error("{what} is nested more deeply than a value may be")]
    TooDeep {
        /// Which input or answer.
        what: String,
    },
    /// An answer was given to a call that does not wait.
    #[error("call {call} does not wait for an answer")]
    NoSuchCall {
        /// The call.
        call: CallId,
    },
}

impl From<StoreError> for RunError {
    fn from(error: StoreError) -> Self {
        Self::Journal(error.into())
    }
}

/// Why a stored run cannot be continued.
#[derive(Debug, thiserror::Error)]
pub enum ResumeError {
    /// The ticket is not good.
    #[error(transparent)]
    Ticket(#[from] TakeError),
    /// Somebody else runs it.
    #[error(transparent)]
    Held(#[from] HoldError),
    /// It was already continued, by a host that did not live to see its end.
    #[error("run {run} was continued from this ticket and not finished; recover the run instead")]
    Unfinished {
        /// The run.
        run: RunId,
    },
    /// There is no such run.
    #[error("there is nothing to recover of run {run}")]
    NothingToRecover {
        /// The run.
        run: RunId,
    },
    /// It needs children of another kind.
    #[error("its snapshot is for sidecars that speak {needs}, and these speak {have}")]
    Dialect {
        /// What it needs.
        needs: &'static str,
        /// What there is.
        have: &'static str,
    },
    /// It could not be written down that it goes on.
    #[error(transparent)]
    Put(#[from] PutError),
}

impl From<StoreError> for ResumeError {
    fn from(error: StoreError) -> Self {
        Self::Put(error.into())
    }
}

impl From<PeekError> for ResumeError {
    fn from(error: PeekError) -> Self {
        Self::Ticket(error.into())
    }
}

/// A script that failed.
#[derive(Clone, Debug, PartialEq)]
pub struct ScriptError {
    /// `Parse`, `Validation`, `Runtime`, `Limit`, `Serialization` or `Protocol`.
    pub kind: String,
    /// A stable code for programs; children of version 2 give none.
    pub code: Option<String>,
    /// In words.
    pub message: String,
    /// The name of the error object that was thrown.
    pub name: Option<String>,
    /// The line, from 1.
    pub line: Option<u64>,
    /// The column, from 1, in UTF-16 units.
    pub column: Option<u64>,
    /// The text of that line.
    pub source_line: Option<String>,
    /// Where it happened, innermost first.
    pub frames: Vec<Place>,
    /// `code` of the error object that was thrown.
    pub error_code: Option<String>,
    /// `details` of the error object that was thrown.
    pub details: Option<Plain>,
    /// The whole of it as the sidecar says it.
    pub text: String,
}

impl fmt::Display for ScriptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for ScriptError {}

impl From<Failure> for ScriptError {
    fn from(failure: Failure) -> Self {
        match failure.detail {
            Some(detail) => {
                let Detail {
                    kind,
                    code,
                    message,
                    name,
                    line,
                    column,
                    source_line,
                    frames,
                    error_code,
                    details,
                } = *detail;
                Self {
                    kind: kind.as_str().to_owned(),
                    code: Some(code.as_str().to_owned()),
                    message,
                    name,
                    line,
                    column,
                    source_line,
                    frames,
                    error_code,
                    details,
                    text: failure.error,
                }
            }
            None => Self::from_text(failure.error),
        }
    }
}

impl ScriptError {
    /// What can be known from the text alone, which begins with the kind if the engine wrote it.
    fn from_text(text: String) -> Self {
        const KINDS: [&str; 5] = ["Parse", "Validation", "Runtime", "Limit", "Serialization"];
        let (kind, message) = match text.split_once(": ") {
            Some((kind, message)) if KINDS.contains(&kind) => (kind, message),
            Some(_) | None => ("Protocol", text.as_str()),
        };
        let message = message.lines().next().unwrap_or_default();
        Self {
            kind: kind.to_owned(),
            code: None,
            message: message.to_owned(),
            name: None,
            line: None,
            column: None,
            source_line: None,
            frames: Vec::new(),
            error_code: None,
            details: None,
            text,
        }
    }
}

/// Why a script could not be compiled.
#[derive(Debug, thiserror::Error)]
pub enum CompileError {
    /// It is not a script that may be run.
    #[error("{0}")]
    Script(Box<ScriptError>),
    /// There is no child.
    #[error(transparent)]
    NoChild(#[from] LendError),
    /// The child failed.
    #[error(transparent)]
    Sidecar(SidecarError),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kind_of_an_error_is_known_from_its_text_alone() {
        let parts = |text: &str| {
            let error = ScriptError::from(Failure { error: text.to_owned(), detail: None });
            assert_eq!(error.to_string(), text);
            (error.kind, error.message)
        };
        let both = |kind: &str, message: &str| (kind.to_owned(), message.to_owned());
        assert_eq!(parts("Runtime: boom [1..2]\n  at <script> [0..9]"), both("Runtime", "boom [1..2]"));
        assert_eq!(parts("Limit: heap limit exceeded"), both("Limit", "heap limit exceeded"));
        assert_eq!(parts("unknown program_id `x`"), both("Protocol", "unknown program_id `x`"));
        assert_eq!(parts("Other: thing"), both("Protocol", "Other: thing"));
    }
}
