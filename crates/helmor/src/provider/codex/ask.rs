//! Approvals: a question of the server as one for the host, and the host's verdict as an answer for the server.

use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::provider::{PermissionAsk, Verdict};

/// A question whether something may be done, and how it is answered.
#[derive(Debug)]
pub(super) struct Approval {
    /// For the host.
    pub(super) ask: PermissionAsk,
    form: Form,
}

/// The form of the answer.
#[derive(Debug)]
enum Form {
    /// `{"decision": …}` with the words of today.
    Decision,
    /// The permissions that are granted, and for how long.
    Permissions(Value),
    /// `{"decision": …}` with the words of yesterday.
    Legacy,
}

impl Approval {
    /// The approval that `method` asks for; `None` if it asks for none. `changes` finds what the patch of an item changes, which
    /// the question does not say.
    pub(super) fn read<'a>(
        method: &str,
        params: &RawValue,
        id: String,
        changes: impl FnOnce(&str) -> Option<&'a RawValue>,
    ) -> Option<Self> {
        let params: Map<String, Value> = match method {
            "item/commandExecution/requestApproval"
            | "item/fileChange/requestApproval"
            | "item/permissions/requestApproval"
            | "execCommandApproval"
            | "applyPatchApproval" => serde_json::from_str(params.get()).unwrap_or_default(),
            _ => return None,
        };
        let text = |name: &str| params.get(name).and_then(Value::as_str).map(str::to_owned);
        let reason = text("reason");
        let call_id = text("itemId").or_else(|| text("callId"));
        let mut approval = match method {
            "item/commandExecution/requestApproval" => {
                let command = text("command").unwrap_or_default();
                let mut tool_input = pick(&params, &["command", "cwd", "kind", "networkApprovalContext"]);
                // Then it is what the server says of the command elsewhere, so that it can be recognised.
                if tool_input.get("kind").is_some_and(|kind| kind == "command") {
                    tool_input.remove("kind");
                }
                let suggestions = command_suggestions(&params);
                let ask = ask(id, "Bash", tool_input, reason, Some(command), suggestions);
                Self { ask, form: Form::Decision }
            }
            "item/fileChange/requestApproval" => {
                let item = text("itemId").unwrap_or_default();
                let mut tool_input = params.clone();
                let changed = changes(&item).and_then(|changes| serde_json::from_str(changes.get()).ok());
                let description = reason.unwrap_or_else(|| describe(changed.as_ref()));
                if let Some(changed) = changed {
                    tool_input.insert("changes".to_owned(), changed);
                }
                let ask = ask(id, "apply_patch", tool_input, None, Some(description), vec![for_session()]);
                Self { ask, form: Form::Decision }
            }
            "item/permissions/requestApproval" => {
                let wanted = params.get("permissions").cloned().unwrap_or_default();
                let tool_input = pick(&params, &["permissions", "cwd", "reason"]);
                let description = reason.or_else(|| Some("Codex wants more permissions".to_owned()));
                let ask = ask(id, "request_permissions", tool_input, None, description, vec![for_session()]);
                Self { ask, form: Form::Permissions(without_nulls(wanted)) }
            }
            "execCommandApproval" => {
                let words = params.get("command").and_then(Value::as_array).cloned().unwrap_or_default();
                let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
                let command = words.join(" ");
                let mut tool_input = pick(&params, &["cwd"]);
                tool_input.insert("command".to_owned(), json!(command));
                let ask = ask(id, "Bash", tool_input, reason, Some(command), vec![for_session()]);
                Self { ask, form: Form::Legacy }
            }
            _ => {
                let tool_input = pick(&params, &["fileChanges", "grantRoot", "reason"]);
                let description = reason.or_else(|| Some(describe(None)));
                let ask = ask(id, "apply_patch", tool_input, None, description, vec![for_session()]);
                Self { ask, form: Form::Legacy }
            }
        };
        approval.ask.call_id = call_id;
        Some(approval)
    }

    /// The answer for the server.
    pub(super) fn answer(&self, verdict: &Verdict) -> Value {
        match (&self.form, verdict) {
            (Form::Decision, Verdict::Allow { updated }) => json!({ "decision": decision(updated) }),
            (Form::Decision, Verdict::Deny { .. }) => json!({ "decision": "decline" }),
            (Form::Permissions(wanted), Verdict::Allow { updated }) => {
                let scope = if has(updated, "acceptForSession") { "session" } else { "turn" };
                json!({ "permissions": wanted, "scope": scope })
            }
            (Form::Permissions(_), Verdict::Deny { .. }) => json!({ "permissions": {}, "scope": "turn" }),
            (Form::Legacy, Verdict::Allow { updated }) => {
                let word = if has(updated, "acceptForSession") { "approved_for_session" } else { "approved" };
                json!({ "decision": word })
            }
            (Form::Legacy, Verdict::Deny { message }) => {
                let message = message.as_deref().unwrap_or("User denied");
                json!({ "decision": { "denied": { "rejection": message } } })
            }
        }
    }
}

fn ask(
    id: String,
    tool: &str,
    tool_input: Map<String, Value>,
    title: Option<String>,
    description: Option<String>,
    suggestions: Vec<Value>,
) -> PermissionAsk {
    PermissionAsk {
        id,
        call_id: None,
        tool_name: tool.to_owned(),
        tool_input,
        title,
        description,
        suggestions,
        required: true,
    }
}

/// The server takes it whether or not it lists it among the decisions that are available.
fn for_session() -> Value {
    json!({ "type": "acceptForSession" })
}

/// What can be allowed beyond this once: the session, and the rules that the server proposes.
fn command_suggestions(params: &Map<String, Value>) -> Vec<Value> {
    let mut suggestions = vec![for_session()];
    let available = params.get("availableDecisions").and_then(Value::as_array);
    match (available, params.get("proposedExecpolicyAmendment")) {
        (Some(decisions), _) => suggestions.extend(decisions.iter().filter_map(rule)),
        (None, Some(Value::Array(amendment))) => {
            suggestions.push(json!({ "type": WITH_RULE, "execpolicy_amendment": amendment }));
        }
        (None, Some(_) | None) => {}
    }
    suggestions
}

const WITH_RULE: &str = "acceptWithExecpolicyAmendment";
const WITH_NETWORK_RULE: &str = "applyNetworkPolicyAmendment";

/// `{NAME: {…}}`, the way the server writes a decision that carries something, as `{"type": NAME, …}`.
fn rule(decision: &Value) -> Option<Value> {
    let (name, inside) = decision.as_object()?.iter().next()?;
    let mut suggestion = Map::from_iter([("type".to_owned(), json!(name))]);
    suggestion.extend(inside.as_object()?.clone());
    Some(Value::Object(suggestion))
}

/// The decision that the host's additions make of an allowance. The server takes one, so the first that it can take counts; what
/// is of no known form adds nothing.
fn decision(updated: &[Value]) -> Value {
    let known = updated.iter().find_map(|entry| match entry["type"].as_str()? {
        "acceptForSession" => Some(json!("acceptForSession")),
        WITH_RULE => {
            let words = entry["execpolicy_amendment"].as_array()?;
            let whole = !words.is_empty() && words.iter().all(Value::is_string);
            whole.then(|| json!({ WITH_RULE: { "execpolicy_amendment": words } }))
        }
        WITH_NETWORK_RULE => {
            let amendment = entry["network_policy_amendment"].as_object()?;
            Some(json!({ WITH_NETWORK_RULE: { "network_policy_amendment": amendment } }))
        }
        _ => None,
    });
    known.unwrap_or_else(|| json!("accept"))
}

fn has(updated: &[Value], kind: &str) -> bool {
    updated.iter().any(|entry| entry["type"] == kind)
}

fn pick(params: &Map<String, Value>, names: &[&str]) -> Map<String, Value> {
    let present = names.iter().filter_map(|name| Some(((*name).to_owned(), params.get(*name)?.clone())));
    present.filter(|(_, value)| !value.is_null()).collect()
}

/// What a patch does, for a person.
fn describe(changes: Option<&Value>) -> String {
    let files: Vec<&str> = changes
        .and_then(Value::as_array)
        .map(|changes| changes.iter().filter_map(|change| change["path"].as_str()).collect())
        .unwrap_or_default();
    match files.as_slice() {
        [] => "Codex wants to change files".to_owned(),
        [one] => format!("Codex wants to change {one}"),
        [first, more @ ..] => format!("Codex wants to change {first} and {} more", more.len()),
    }
}

/// What was asked for as null was not asked for, and the answer has no null.
fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(map) => map
            .into_iter()
            .filter(|(_, value)| !value.is_null())
            .map(|(k, v)| (k, without_nulls(v)))
            .collect(),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(method: &str, params: &Value) -> Approval {
        let raw = RawValue::from_string(params.to_string()).unwrap();
        Approval::read(method, &raw, "codex-1".to_owned(), |_| None).unwrap()
    }

    fn command() -> Approval {
        let rule = json!({ WITH_RULE: { "execpolicy_amendment": ["/bin/bash", "-lc", "echo hi"] } });
        read(
            "item/commandExecution/requestApproval",
            &json!({
                "threadId": "T", "command": "/bin/bash -lc 'echo hi'", "cwd": "/w", "kind": "command", "reason": null,
                "availableDecisions": ["accept", rule, "cancel"],
            }),
        )
    }

    fn allow(updated: Vec<Value>) -> Verdict {
        Verdict::Allow { updated }
    }

    #[test]
    fn a_command_is_asked_for_with_what_may_be_allowed_beyond_this_once() {
        let ask = command().ask;
        assert_eq!(ask.tool_name, "Bash");
        assert_eq!(
            Value::Object(ask.tool_input),
            json!({ "command": "/bin/bash -lc 'echo hi'", "cwd": "/w" })
        );
        assert_eq!(ask.description.as_deref(), Some("/bin/bash -lc 'echo hi'"));
        let rule = json!({ "type": WITH_RULE, "execpolicy_amendment": ["/bin/bash", "-lc", "echo hi"] });
        assert_eq!(ask.suggestions, vec![for_session(), rule]);
    }

    #[test]
    fn allow_means_this_once_unless_the_host_passes_a_suggestion_back() {
        let approval = command();
        let suggestions = approval.ask.suggestions.clone();
        assert_eq!(approval.answer(&allow(vec![])), json!({ "decision": "accept" }));
        assert_eq!(
            approval.answer(&allow(vec![suggestions[0].clone()])),
            json!({ "decision": "acceptForSession" })
        );
        let rule = json!({ WITH_RULE: { "execpolicy_amendment": ["/bin/bash", "-lc", "echo hi"] } });
        assert_eq!(approval.answer(&allow(vec![suggestions[1].clone()])), json!({ "decision": rule }));
        assert_eq!(approval.answer(&Verdict::Deny { message: None }), json!({ "decision": "decline" }));
    }

    #[test]
    fn what_is_of_no_known_form_allows_nothing_more() {
        let approval = command();
        for odd in [
            json!({ "type": "addRules" }),
            json!({ "type": WITH_RULE }),
            json!({ "type": WITH_RULE, "execpolicy_amendment": [] }),
            json!({ "type": WITH_RULE, "execpolicy_amendment": [1] }),
            json!("acceptForSession"),
        ] {
            assert_eq!(approval.answer(&allow(vec![odd.clone()])), json!({ "decision": "accept" }), "{odd}");
        }
    }

    #[test]
    fn a_patch_is_asked_for_with_its_changes() {
        let params = json!({ "threadId": "T", "itemId": "call_1", "reason": null, "grantRoot": null });
        let raw = RawValue::from_string(params.to_string()).unwrap();
        let changes = RawValue::from_string(r#"[{"path":"/w/a"},{"path":"/w/b"}]"#.to_owned()).unwrap();
        let find = |item: &str| (item == "call_1").then_some(&*changes);
        let method = "item/fileChange/requestApproval";
        let ask = Approval::read(method, &raw, "codex-1".to_owned(), find).unwrap().ask;
        assert_eq!(ask.tool_name, "apply_patch");
        assert_eq!(ask.tool_input["changes"][1]["path"], json!("/w/b"));
        assert_eq!(ask.description.as_deref(), Some("Codex wants to change /w/a and 1 more"));
    }

    #[test]
    fn permissions_are_granted_for_the_turn_or_for_the_session_or_not() {
        let wanted = json!({ "network": { "enabled": true }, "fileSystem": null });
        let approval = read(
            "item/permissions/requestApproval",
            &json!({ "threadId": "T", "cwd": "/w", "reason": "to fetch", "permissions": wanted }),
        );
        let granted = json!({ "network": { "enabled": true } });
        assert_eq!(approval.answer(&allow(vec![])), json!({ "permissions": granted, "scope": "turn" }));
        assert_eq!(
            approval.answer(&allow(vec![for_session()])),
            json!({ "permissions": granted, "scope": "session" })
        );
        assert_eq!(
            approval.answer(&Verdict::Deny { message: None }),
            json!({ "permissions": {}, "scope": "turn" })
        );
    }

    #[test]
    fn the_questions_of_yesterday_are_answered_in_their_words() {
        let approval =
            read("execCommandApproval", &json!({ "command": ["ls", "-l"], "cwd": "/w", "reason": null }));
        assert_eq!(approval.ask.description.as_deref(), Some("ls -l"));
        assert_eq!(approval.answer(&allow(vec![])), json!({ "decision": "approved" }));
        assert_eq!(
            approval.answer(&allow(vec![for_session()])),
            json!({ "decision": "approved_for_session" })
        );
        let deny = Verdict::Deny { message: Some("no".to_owned()) };
        assert_eq!(approval.answer(&deny), json!({ "decision": { "denied": { "rejection": "no" } } }));
        let patch = read("applyPatchApproval", &json!({ "fileChanges": { "a": {} }, "reason": null }));
        assert_eq!(patch.ask.tool_name, "apply_patch");
        assert_eq!(
            patch.answer(&Verdict::Deny { message: None }),
            json!({ "decision": { "denied": { "rejection": "User denied" } } })
        );
    }

    #[test]
    fn an_approval_without_the_members_it_should_have_is_still_a_question() {
        let raw = RawValue::from_string("[]".to_owned()).unwrap();
        let method = "item/commandExecution/requestApproval";
        let ask = Approval::read(method, &raw, "codex-1".to_owned(), |_| None).unwrap().ask;
        assert_eq!((ask.tool_name.as_str(), ask.suggestions.len()), ("Bash", 1));
        assert!(Approval::read("item/tool/call", &raw, "codex-1".to_owned(), |_| None).is_none());
    }
}
