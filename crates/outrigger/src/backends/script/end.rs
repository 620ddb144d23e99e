//! How a script ended: the word of the contract, the sentence for people, and the last event, from which a later daemon knows it all.

use std::fmt::Write as _;
use std::time::Duration;

use outrigger_abp::protocol::{AgentEvent, ErrorCode, EventKind, Raw};
use outrigger_abp::receipt::Ending;
use outrigger_mustard::host::{CompileError, Plain, RunError, ScriptError};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::outcome;
use crate::js::show::{Origin, error_text};
use crate::runs::Phase;
use crate::runs::backend::Again;

/// What a script is called in its own errors.
const NAME: &str = "script";

/// The longest sentence.
const LONGEST: usize = 16 << 10;

/// How a script ended.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct End {
    pub(super) phase: Phase,
    pub(super) ending: Ending,
    /// Why, if it did not end well.
    pub(super) error: Option<String>,
    /// What it gave.
    pub(super) value: Option<Value>,
    pub(super) again: Again,
}

/// The member `end` of what is beside the last event.
#[derive(Serialize, Deserialize)]
struct Written {
    phase: Phase,
    ending: String,
    #[serde(default)]
    value: Option<Value>,
    /// Whether the same could go better another time.
    #[serde(default)]
    again: bool,
}

#[derive(Deserialize)]
struct Beside {
    end: Option<Written>,
}

impl End {
    /// The script is done, and this is what it gave.
    pub(super) fn completed(value: &Plain) -> Self {
        match outcome::kept(value) {
            Ok(value) => Self {
                phase: Phase::Completed,
                ending: Ending::Final,
                error: None,
                value: Some(value),
                again: Again::Nobody,
            },
            Err(why) => Self::failed(Ending::Budget, format!("what the script gave {why}")),
        }
    }

    pub(super) fn failed(ending: Ending, error: impl Into<String>) -> Self {
        let error = Some(cut(error.into()));
        Self { phase: Phase::Failed, ending, error, value: None, again: Again::Nobody }
    }

    pub(super) fn cancelled(why: &str) -> Self {
        let error = Some(cut(format!("cancelled: {why}")));
        Self { phase: Phase::Cancelled, ending: Ending::Cancelled, error, value: None, again: Again::Nobody }
    }

    /// Something that is nobody's fault, and may be gone the next time.
    fn passing(ending: Ending, error: impl Into<String>) -> Self {
        Self { again: Again::Same, ..Self::failed(ending, error) }
    }

    pub(super) fn not_compiled(error: &CompileError) -> Self {
        match error {
            CompileError::Script(script) => Self::of_script(script),
            CompileError::NoChild(error) => Self::passing(Ending::Exited, error.to_string()),
            CompileError::Sidecar(error) => Self::passing(Ending::Exited, error.to_string()),
        }
    }

    /// Why a step was the last.
    pub(super) fn of_run(error: &RunError) -> Self {
        match error {
            RunError::Script(script) => Self::of_script(script),
            RunError::KeepsDying { .. } | RunError::NoChild(_) => {
                Self::passing(Ending::Exited, error.to_string())
            }
            RunError::Deadline { .. } => Self::failed(Ending::Timeout, error.to_string()),
            RunError::Cancelled => Self::cancelled("its step was stopped"),
            RunError::TooLarge { .. }
            | RunError::Journal(_)
            | RunError::TooDeep { .. }
            | RunError::NoSuchCall { .. } => Self::failed(Ending::Fatal, error.to_string()),
        }
    }

    fn of_script(error: &ScriptError) -> Self {
        let ending = match (error.kind.as_str(), error.code.as_deref()) {
            (_, Some("limit_deadline")) => Ending::Timeout,
            ("Limit", _) => Ending::Budget,
            _ => Ending::Fatal,
        };
        let origin = Origin { name: NAME.to_owned() };
        let coloured = error_text(error, &origin);
        Self::failed(ending, anstream::adapter::strip_str(&coloured).to_string().trim_end().to_owned())
    }

    /// More host calls than it may make.
    pub(super) fn too_many_calls(limit: u64) -> Self {
        Self::failed(Ending::Budget, format!("the script made more than {limit} host calls"))
    }

    /// The last event of the attempt.
    pub(super) fn event(&self) -> AgentEvent<'static> {
        let written = Written {
            phase: self.phase,
            ending: self.ending.as_str().to_owned(),
            value: self.value.clone(),
            again: self.again == Again::Same,
        };
        let kind = match &self.error {
            None => EventKind::RunCompleted { message: "the script is done".into() },
            Some(error) => EventKind::Error { message: error.clone().into(), error_code: self.code() },
        };
        // What a script gave was checked not to be too deep.
        let ext = Raw::of(&json!({ "end": written })).ok();
        AgentEvent { ext, ..AgentEvent::now(kind) }
    }

    fn code(&self) -> Option<ErrorCode> {
        match self.ending {
            Ending::Timeout => Some(ErrorCode::BackendTimeout),
            Ending::Exited => Some(ErrorCode::BackendCrashed),
            _ => None,
        }
    }

    /// The end that an event tells, if it is the last one.
    pub(super) fn of_event(event: &AgentEvent<'_>) -> Option<Self> {
        let error = match &event.kind {
            EventKind::RunCompleted { .. } => None,
            EventKind::Error { message, .. } => Some(message.clone().into_owned()),
            _ => return None,
        };
        let Beside { end } = event.ext.as_ref()?.parse().ok()?;
        let Written { phase, ending, value, again } = end?;
        let again = if again { Again::Same } else { Again::Nobody };
        // What is written as null is nothing where there is no value, and null where there is one.
        let value = match phase {
            Phase::Completed => Some(value.unwrap_or_default()),
            Phase::Queued | Phase::Running | Phase::Waiting | Phase::Failed | Phase::Cancelled => None,
        };
        Some(Self { phase, ending: Ending::from(ending.as_str()), error, value, again })
    }
}

fn cut(mut text: String) -> String {
    if text.len() > LONGEST {
        text.truncate(text.floor_char_boundary(LONGEST));
        // Writing to a string cannot fail.
        let _ = write!(text, "…");
    }
    text
}

/// How long a script may compute between two host calls if nobody says.
pub(super) const STEP_WITHIN: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_later_daemon_reads_from_the_last_event_how_a_script_ended() {
        let ends = [
            End::completed(&Plain::Array(vec![Plain::Number(1.0), Plain::Null])),
            End::completed(&Plain::Undefined),
            End::failed(Ending::Budget, "too much"),
            End::passing(Ending::Exited, "gone"),
            End::cancelled("because"),
        ];
        for end in ends {
            let mut text = Vec::new();
            end.event().write(&mut text);
            let text = String::from_utf8(text).unwrap();
            assert_eq!(End::of_event(&AgentEvent::read(&text).unwrap()).as_ref(), Some(&end), "{text}");
        }
        let other = AgentEvent::now(EventKind::Error { message: "x".into(), error_code: None });
        assert_eq!(End::of_event(&other), None, "an error on the way is not the end");
    }

    #[test]
    fn the_sentence_of_a_script_error_has_its_line_and_a_mark_under_the_place() {
        let error = ScriptError {
            kind: "Runtime".into(),
            code: Some("runtime".into()),
            message: "TypeError: x is not a function".into(),
            name: Some("TypeError".into()),
            line: Some(2),
            column: Some(5),
            source_line: Some("    x();".into()),
            frames: Vec::new(),
            error_code: None,
            details: None,
            text: String::new(),
        };
        let end = End::of_script(&error);
        assert_eq!((end.phase, end.ending, end.again), (Phase::Failed, Ending::Fatal, Again::Nobody));
        let expected =
            "Runtime: TypeError: x is not a function\n --> script:2:5\n  |\n2 |     x();\n  |     ^";
        assert_eq!(end.error.as_deref(), Some(expected));
        let limit = |code: &str| {
            let error = ScriptError { kind: "Limit".into(), code: Some(code.into()), ..error.clone() };
            End::of_script(&error).ending
        };
        assert_eq!(limit("limit_instructions"), Ending::Budget);
        assert_eq!(limit("limit_heap"), Ending::Budget);
        assert_eq!(limit("limit_deadline"), Ending::Timeout);
    }
}
