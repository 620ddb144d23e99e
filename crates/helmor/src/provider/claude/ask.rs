//! What Claude Code asks during a turn, and how the host's word becomes the answer: permissions, questions to the user, plans, and
//! the forms of MCP servers.

use std::io::Read;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};

use super::frame;
use crate::BoxFuture;
use crate::provider::{Answer, Desk, InputAction, InputAsk, PermissionAsk, Verdict};

/// A plan in a file is read up to here.
const MAX_PLAN: u64 = 1 << 20;

/// What a model is told whose plan was taken.
const PLAN_TAKEN: &str = "The plan has been handed to the user, who will decide what happens next. \
                          Stop here: do not start the work and do not present the plan again.";

/// What to do about a control request.
pub(super) enum Ask {
    /// Answer it at once.
    Now(Reply),
    /// Wait for the host; the future is dropped when nobody wants the answer any more, and the question is withdrawn by that.
    Wait(BoxFuture<'static, Option<Reply>>),
}

/// The answer to a control request.
#[derive(Debug)]
pub(super) struct Reply {
    /// The line to be written.
    pub(super) line: String,
    /// The mode that the session has from now on, if the answer changes it.
    pub(super) mode: Option<String>,
}

/// Asks the host, or answers. `plan` is the plan that the model handed over last, with the name of its tool use.
pub(super) fn about(line: &str, desk: &dyn Desk, plan: Option<&(String, String)>) -> Ask {
    let Ok(frame::Request { request_id: id, request }) = serde_json::from_str::<frame::Request<'_>>(line)
    else {
        // Without a name it cannot be answered.
        return Ask::Wait(Box::pin(async { None }));
    };
    let subtype = serde_json::from_str::<Subtype>(request.get()).map(|request| request.subtype);
    let asked = match subtype.as_deref() {
        Ok("can_use_tool") => {
            serde_json::from_str::<CanUseTool>(request.get()).map(|tool| use_of(tool, &id, desk, plan))
        }
        Ok("elicitation") => {
            serde_json::from_str::<Elicitation>(request.get()).map(|form| elicit(form, &id, desk))
        }
        Ok("hook_callback") => {
            serde_json::from_str::<Hook>(request.get()).map(|hook| before_tool(hook, &id, desk))
        }
        Ok(other) => return Ask::Now(refusal(&id, &format!("{other} is not supported"))),
        Err(_) => return Ask::Now(refusal(&id, "a control request needs a subtype")),
    };
    asked.unwrap_or_else(|error| Ask::Now(refusal(&id, &format!("not understood: {error}"))))
}

#[derive(Deserialize)]
struct Subtype {
    subtype: String,
}

#[derive(Deserialize)]
struct CanUseTool {
    tool_name: String,
    input: Box<RawValue>,
    tool_use_id: String,
    #[serde(default)]
    title: Option<String>,
    #[serde(default)]
    description: Option<String>,
    #[serde(default)]
    permission_suggestions: Option<Vec<Value>>,
}

/// What the hook is told that asks before every tool.
#[derive(Deserialize)]
struct Hook {
    input: HookInput,
    #[serde(default)]
    tool_use_id: Option<String>,
}

#[derive(Deserialize)]
struct HookInput {
    tool_name: String,
    #[serde(default)]
    tool_input: Map<String, Value>,
    #[serde(default)]
    tool_use_id: Option<String>,
}

#[derive(Deserialize)]
struct Elicitation {
    mcp_server_name: String,
    #[serde(default)]
    message: String,
    #[serde(default)]
    mode: Option<String>,
    #[serde(default)]
    url: Option<String>,
    #[serde(default)]
    elicitation_id: Option<String>,
    #[serde(default)]
    requested_schema: Option<Value>,
}

fn use_of(tool: CanUseTool, id: &str, desk: &dyn Desk, seen: Option<&(String, String)>) -> Ask {
    let input: Map<String, Value> = serde_json::from_str(tool.input.get()).unwrap_or_default();
    match &*tool.tool_name {
        "AskUserQuestion" => question(tool, input, id, desk),
        "ExitPlanMode" => {
            let seen = seen.filter(|(id, _)| *id == tool.tool_use_id).map(|(_, plan)| plan.clone());
            let plan = plan_of(&input).or(seen).map_or(Value::Null, Value::String);
            desk.tell("planCaptured", &[("toolUseId", tool.tool_use_id.clone().into()), ("plan", plan)]);
            Ask::Now(reply(id, &deny(PLAN_TAKEN, &tool.tool_use_id)))
        }
        _ => permission(tool, input, id, desk),
    }
}

/// The host wants to be asked before every tool. What it allows here may still be asked for by the program itself.
fn before_tool(hook: Hook, id: &str, desk: &dyn Desk) -> Ask {
    let Hook { input, tool_use_id } = hook;
    // These two are questions themselves.
    if ["AskUserQuestion", "ExitPlanMode"].contains(&&*input.tool_name) {
        return Ask::Now(reply(id, &json!({})));
    }
    let call_id = input.tool_use_id.or(tool_use_id);
    let mut asked = desk.ask_permission(PermissionAsk {
        id: call_id.clone().unwrap_or_else(frame::uuid),
        call_id,
        tool_name: input.tool_name,
        tool_input: input.tool_input,
        title: None,
        description: None,
        suggestions: Vec::new(),
        required: false,
    });
    let id = id.to_owned();
    Ask::Wait(Box::pin(async move {
        let answer = match asked.answer().await? {
            Verdict::Allow { .. } => json!({}),
            Verdict::Deny { message } => json!({"hookSpecificOutput": {
                "hookEventName": "PreToolUse",
                "permissionDecision": "deny",
                "permissionDecisionReason": message.as_deref().unwrap_or("User denied"),
            }}),
        };
        Some(reply(&id, &answer))
    }))
}

fn permission(tool: CanUseTool, input: Map<String, Value>, id: &str, desk: &dyn Desk) -> Ask {
    let mut asked = desk.ask_permission(PermissionAsk {
        id: tool.tool_use_id.clone(),
        call_id: Some(tool.tool_use_id.clone()),
        tool_name: tool.tool_name,
        tool_input: input,
        title: tool.title,
        description: tool.description,
        suggestions: tool.permission_suggestions.unwrap_or_default(),
        required: true,
    });
    let id = id.to_owned();
    Ask::Wait(Box::pin(async move {
        Some(match asked.answer().await? {
            Verdict::Allow { updated } => {
                let mode = updated.iter().rev().find_map(session_mode).map(str::to_owned);
                let updated = (!updated.is_empty()).then_some(updated);
                Reply { mode, ..reply(&id, &allow(&tool.input, updated, &tool.tool_use_id)) }
            }
            Verdict::Deny { message } => {
                reply(&id, &deny(message.as_deref().unwrap_or("User denied"), &tool.tool_use_id))
            }
        })
    }))
}

fn question(tool: CanUseTool, mut input: Map<String, Value>, id: &str, desk: &dyn Desk) -> Ask {
    let mut payload = json!({"kind": "ask-user-question", "questions": input.remove("questions")});
    if let Some(metadata) = input.remove("metadata") {
        payload["metadata"] = metadata;
    }
    let first = payload["questions"][0]["question"].as_str().unwrap_or("Claude has a question");
    let message = first.to_owned();
    let ask = InputAsk { id: tool.tool_use_id.clone(), source: "Claude".to_owned(), message, payload };
    let mut asked = desk.ask_input(ask);
    let id = id.to_owned();
    Ask::Wait(Box::pin(async move {
        let answer = asked.answer().await?;
        let input = match (answer.action, answer.content) {
            (InputAction::Submit, Some(content)) => to_raw_value(&content).ok(),
            (InputAction::Submit, None) => Some(tool.input),
            (InputAction::Decline | InputAction::Cancel, _) => None,
        };
        Some(match input {
            Some(input) => reply(&id, &allow(&input, None, &tool.tool_use_id)),
            None => reply(&id, &deny("User declined", &tool.tool_use_id)),
        })
    }))
}

fn elicit(form: Elicitation, id: &str, desk: &dyn Desk) -> Ask {
    let payload = match (form.mode.as_deref(), form.url) {
        (Some("url"), Some(url)) => json!({"kind": "url", "url": url}),
        (_, _) => json!({"kind": "form", "schema": form.requested_schema.unwrap_or_else(|| json!({}))}),
    };
    let mut asked = desk.ask_input(InputAsk {
        id: form.elicitation_id.unwrap_or_else(frame::uuid),
        source: form.mcp_server_name,
        message: form.message,
        payload,
    });
    let id = id.to_owned();
    Ask::Wait(Box::pin(async move { Some(reply(&id, &filled(asked.answer().await?))) }))
}

/// What the user made of a form. Values that no form can have cancel it.
fn filled(answer: Answer) -> Value {
    let simple = |value: &Value| match value {
        Value::String(_) | Value::Number(_) | Value::Bool(_) => true,
        Value::Array(items) => items.iter().all(Value::is_string),
        Value::Null | Value::Object(_) => false,
    };
    match answer.action {
        InputAction::Submit => {
            let content = answer.content.unwrap_or_default();
            if content.values().all(simple) {
                json!({"action": "accept", "content": content})
            } else {
                json!({"action": "cancel"})
            }
        }
        InputAction::Decline => json!({"action": "decline"}),
        InputAction::Cancel => json!({"action": "cancel"}),
    }
}

/// The mode that a permission update gives to the session.
fn session_mode(update: &Value) -> Option<&str> {
    (update["type"] == "setMode" && update["destination"] == "session").then(|| update["mode"].as_str())?
}

/// The plan itself, or what is in the file that the model wrote it to.
fn plan_of(input: &Map<String, Value>) -> Option<String> {
    if let Some(Value::String(plan)) = input.get("plan") {
        return Some(plan.clone());
    }
    let path = ["filePath", "planFilePath"].iter().find_map(|name| input.get(*name)?.as_str())?;
    if !Path::new(path).metadata().ok()?.is_file() {
        return None;
    }
    let mut plan = Vec::new();
    std::fs::File::open(path).ok()?.take(MAX_PLAN).read_to_end(&mut plan).ok()?;
    Some(String::from_utf8_lossy(&plan).into_owned())
}

/// `updatedInput` is what the model wrote, to the letter.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Allowed<'a> {
    behavior: &'static str,
    updated_input: &'a RawValue,
    #[serde(skip_serializing_if = "Option::is_none")]
    updated_permissions: Option<Vec<Value>>,
    #[serde(rename = "toolUseID")]
    tool_use_id: &'a str,
}

fn allow<'a>(input: &'a RawValue, updated: Option<Vec<Value>>, tool_use_id: &'a str) -> Allowed<'a> {
    Allowed { behavior: "allow", updated_input: input, updated_permissions: updated, tool_use_id }
}

fn deny(message: &str, tool_use_id: &str) -> Value {
    json!({"behavior": "deny", "message": message, "toolUseID": tool_use_id})
}

fn reply(id: &str, response: &impl Serialize) -> Reply {
    let line = match to_raw_value(response) {
        Ok(response) => frame::answer(id, Ok(&response)),
        Err(error) => frame::answer(id, Err(&error.to_string())),
    };
    Reply { line, mode: None }
}

fn refusal(id: &str, why: &str) -> Reply {
    Reply { line: frame::answer(id, Err(why)), mode: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_mode_for_the_session_changes_the_session() {
        assert_eq!(
            session_mode(&json!({"type": "setMode", "destination": "session", "mode": "plan"})),
            Some("plan")
        );
        for other in [
            json!({"type": "setMode", "destination": "userSettings", "mode": "plan"}),
            json!({"type": "addRules", "destination": "session"}),
            json!("setMode"),
        ] {
            assert_eq!(session_mode(&other), None, "{other}");
        }
    }

    #[test]
    fn an_allowed_tool_gets_its_input_to_the_letter_and_nothing_beyond_this_once() {
        let input = RawValue::from_string(r#"{"b":1.0,"a":2}"#.to_owned()).unwrap();
        let line = reply("r", &allow(&input, None, "t")).line;
        let expected = r#"{"type":"control_response","response":{"subtype":"success","request_id":"r","response":{"behavior":"allow","updatedInput":{"b":1.0,"a":2},"toolUseID":"t"}}}"#;
        assert_eq!(line, expected);
    }

    #[test]
    fn a_form_is_accepted_only_with_values_that_a_form_can_have() {
        let answer = |action, content: Value| {
            filled(Answer { action, content: content.as_object().cloned(), meta: None })
        };
        let good = json!({"a": "x", "b": 1, "c": true, "d": ["y"]});
        assert_eq!(answer(InputAction::Submit, good.clone()), json!({"action": "accept", "content": good}));
        for bad in [json!({"a": {}}), json!({"a": null}), json!({"a": [1]})] {
            assert_eq!(answer(InputAction::Submit, bad), json!({"action": "cancel"}));
        }
        assert_eq!(answer(InputAction::Decline, json!({})), json!({"action": "decline"}));
        assert_eq!(answer(InputAction::Cancel, json!({})), json!({"action": "cancel"}));
    }

    #[test]
    fn a_plan_is_in_the_request_or_in_the_file_that_it_names() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("plan.md");
        std::fs::write(&file, "from the file").unwrap();
        let of = |input: Value| plan_of(input.as_object().unwrap());
        assert_eq!(of(json!({"plan": "said", "filePath": file})).as_deref(), Some("said"));
        assert_eq!(of(json!({"planFilePath": file})).as_deref(), Some("from the file"));
        assert_eq!(of(json!({"filePath": folder.path()})), None);
        assert_eq!(of(json!({})), None);
    }
}
