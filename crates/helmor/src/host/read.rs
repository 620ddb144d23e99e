//! What a line of the sidecar means to a stream.

use serde_json::Value;

use super::error::Refusal;
use super::event::{Passed, StreamEnd, StreamEvent};
use crate::protocol::{Event, Said};

/// What a line means to a stream.
#[derive(Debug)]
pub(super) enum Meaning {
    /// Only that the stream lives.
    Alive,
    /// An event for the reader.
    Event(Box<StreamEvent>),
    /// The end.
    End(Box<StreamEnd>),
}

/// Reads a line of a stream. An event of ours whose members are not as they should be is passed on as it came, and an end is one
/// whatever else it says.
pub(super) fn meaning(event: &Event<'_>) -> Meaning {
    if event.is_terminal() {
        return terminal(event);
    }
    let own = match event.said() {
        Ok(Said::Heartbeat) => return Meaning::Alive,
        Ok(Said::PermissionRequest(ask)) if !ask.id.is_empty() => StreamEvent::Permission(ask),
        Ok(Said::UserInputRequest(ask)) if !ask.id.is_empty() => StreamEvent::Input(ask),
        Ok(Said::PermissionCancelled { permission_id }) => StreamEvent::PermissionCancelled { permission_id },
        Ok(Said::UserInputCancelled { user_input_id }) => StreamEvent::InputCancelled { user_input_id },
        Ok(Said::PermissionModeChanged { permission_mode }) => StreamEvent::PermissionMode(permission_mode),
        Ok(Said::UserPrompt(steer)) => StreamEvent::Steered(steer),
        Ok(Said::PlanCaptured { tool_use_id, plan }) => StreamEvent::Plan { tool_use_id, plan },
        Ok(Said::ContextUsageUpdated { meta, .. }) => StreamEvent::ContextUsage(meta),
        Ok(Said::CodexGoalUpdated { goal, .. }) => StreamEvent::Goal(goal),
        Ok(Said::ContextReset { resume, reason, .. }) => StreamEvent::ContextReset { resume, reason },
        // What an agent says, what is for no stream, and what is not as it should be.
        Ok(_) | Err(_) => passed(event),
    };
    Meaning::Event(Box::new(own))
}

/// What an `error` says.
pub(super) fn refusal(line: &str) -> Refusal {
    let members: Value = serde_json::from_str(line).unwrap_or_default();
    let text = |name: &str| members[name].as_str().map(str::to_owned);
    Refusal {
        message: text("message").unwrap_or_else(|| "it does not say why".to_owned()),
        code: text("code"),
        internal: members["internal"] == true,
    }
}

fn terminal(event: &Event<'_>) -> Meaning {
    let members: Value = serde_json::from_str(event.raw).unwrap_or_default();
    let text = |name: &str| members[name].as_str().map(str::to_owned);
    let end = match &*event.kind {
        "end" if members["isError"] == true => StreamEnd::EndedBadly { message: text("message") },
        "end" => StreamEnd::Ended,
        "aborted" => StreamEnd::Aborted { reason: text("reason").unwrap_or_else(|| "unknown".to_owned()) },
        // Sidecars of the original tell so that Codex tries again by itself.
        _ if members["willRetry"] == true || members["will_retry"] == true => {
            return Meaning::Event(Box::new(passed(event)));
        }
        _ => StreamEnd::Failed(refusal(event.raw)),
    };
    Meaning::End(Box::new(end))
}

fn passed(event: &Event<'_>) -> StreamEvent {
    StreamEvent::Passed(Passed { kind: event.kind.clone().into_owned(), line: event.raw.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Meaning {
        meaning(&Event::read(line).unwrap())
    }

    #[test]
    fn each_end_is_its_own_and_an_error_that_is_tried_again_is_none() {
        let code = |line: &str| match read(line) {
            Meaning::End(end) => end.code().to_owned(),
            other => format!("{other:?}"),
        };
        assert_eq!(code(r#"{"type":"end"}"#), "ended");
        assert_eq!(code(r#"{"type":"end","isError":true}"#), "ended_badly");
        assert_eq!(code(r#"{"type":"aborted","reason":"user_requested"}"#), "aborted");
        assert_eq!(code(r#"{"type":"error","message":"m"}"#), "failed");
        assert_eq!(code(r#"{"type":"error","message":7}"#), "failed");
        assert_eq!(code(r#"{"type":"error","message":"m","code":"auth"}"#), "auth");
        for name in ["willRetry", "will_retry"] {
            let line = format!(r#"{{"type":"error","message":"m","{name}":true}}"#);
            assert!(matches!(read(&line), Meaning::Event(_)), "{line}");
        }
        assert!(matches!(read(r#"{"type":"heartbeat"}"#), Meaning::Alive));
    }

    #[test]
    fn an_event_without_its_members_is_passed_on_as_it_came() {
        for line in [r#"{"type":"permissionRequest","id":"r1"}"#, r#"{"type":"planCaptured","plan":7}"#] {
            let Meaning::Event(event) = read(line) else { panic!("an event") };
            let StreamEvent::Passed(passed) = *event else { panic!("passed on") };
            assert_eq!(passed.line, line);
        }
    }

    #[test]
    fn a_question_is_read_with_everything_it_has() {
        let line = r#"{"type":"permissionRequest","permissionId":"p","toolName":"Bash","toolInput":{"command":"ls"},"title":"t","suggestions":[{"type":"setMode"}],"id":"r1"}"#;
        let Meaning::Event(event) = read(line) else { panic!("an event") };
        let StreamEvent::Permission(ask) = *event else { panic!("a question") };
        assert_eq!((ask.id.as_str(), ask.tool_name.as_str()), ("p", "Bash"));
        assert_eq!(ask.tool_input["command"], "ls");
        assert_eq!((ask.title.as_deref(), ask.description), (Some("t"), None));
        assert_eq!(ask.suggestions.len(), 1);
    }
}
