//! The questions of an agent, in the words of the host, and the answers of the host, in the words of the agent. Pure.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::protocol::PermissionMode;
use crate::provider::{Answer, InputAction, InputAsk, PermissionAsk, Verdict};

/// `session/request_permission`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Permission {
    #[serde(default)]
    tool_call: Value,
    #[serde(default)]
    options: Vec<PermissionOption>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct PermissionOption {
    option_id: String,
    #[serde(default)]
    name: String,
    #[serde(default)]
    kind: String,
}

/// What a permission mode says to a question before anybody is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ruling {
    /// Allowed, this once.
    Allow,
    /// Denied.
    Deny,
    /// It is the plan of a turn that was only to plan. The plan is kept, and the agent is to stop.
    Plan,
    /// The host is asked.
    Ask,
}

impl Permission {
    /// The tool that it is about, for what is to be filled in.
    pub(super) fn tool_call_mut(&mut self) -> &mut Value {
        &mut self.tool_call
    }

    /// What the mode says.
    pub(super) fn ruling(&self, mode: PermissionMode) -> Ruling {
        let kind = self.tool_call.get("kind").and_then(Value::as_str).unwrap_or_default();
        match mode {
            PermissionMode::BypassPermissions => Ruling::Allow,
            PermissionMode::AcceptEdits if kind == "edit" => Ruling::Allow,
            PermissionMode::DontAsk => Ruling::Deny,
            PermissionMode::Plan if kind == "switch_mode" && self.plan().is_some() => Ruling::Plan,
            PermissionMode::Default
            | PermissionMode::Plan
            | PermissionMode::AcceptEdits
            | PermissionMode::Auto => Ruling::Ask,
        }
    }

    /// The plan that the agent wants to carry out, if the question is that.
    pub(super) fn plan(&self) -> Option<&str> {
        self.tool_call.pointer("/rawInput/plan").and_then(Value::as_str)
    }

    /// The name of the tool's use.
    pub(super) fn tool_call_id(&self) -> &str {
        self.tool_call.get("toolCallId").and_then(Value::as_str).unwrap_or_default()
    }

    /// The question as the host gets it.
    pub(super) fn ask(&self, id: String) -> PermissionAsk {
        let text = |pointer: &str| self.tool_call.pointer(pointer).and_then(Value::as_str);
        let title = text("/title").filter(|title| !title.is_empty());
        let kind = text("/kind").filter(|kind| *kind != "other");
        let name =
            text("/name").or_else(|| text("/_meta/claudeCode/toolName")).or(kind).or(title).unwrap_or("tool");
        let tool_input = match self.tool_call.get("rawInput") {
            Some(Value::Object(input)) => input.clone(),
            Some(Value::Null) | None => self.seen(),
            Some(other) => Map::from_iter([("input".to_owned(), other.clone())]),
        };
        let once = self.pick(&ALLOW);
        let suggestions = self.options.iter().filter(|option| option.kind.starts_with("allow"));
        let suggestions = suggestions.filter(|option| once != Some(option.option_id.as_str()));
        PermissionAsk {
            id,
            call_id: Some(self.tool_call_id().to_owned()).filter(|call| !call.is_empty()),
            tool_name: name.to_owned(),
            tool_input,
            title: title.map(ToOwned::to_owned),
            description: self.described(),
            suggestions: suggestions
                .map(|option| json!({ "type": "option", "optionId": option.option_id, "name": option.name, "kind": option.kind }))
                .collect(),
            required: true,
        }
    }

    /// What an agent shows instead of the input of its tool.
    fn seen(&self) -> Map<String, Value> {
        let shown = ["content", "locations"].into_iter();
        shown
            .filter_map(|name| {
                Some((name.to_owned(), self.tool_call.get(name).filter(|value| !value.is_null())?.clone()))
            })
            .collect()
    }

    /// The first text that the agent shows with its question.
    fn described(&self) -> Option<String> {
        let content = self.tool_call.get("content")?.as_array()?;
        content.iter().find_map(|item| Some(item.pointer("/content/text")?.as_str()?.to_owned()))
    }

    /// The answer that a verdict means. `None` for a verdict: nobody answers any more.
    pub(super) fn answer(&self, verdict: Option<&Verdict>) -> Value {
        let option = match verdict {
            Some(Verdict::Allow { updated }) => self.suggested(updated).or_else(|| self.pick(&ALLOW)),
            Some(Verdict::Deny { .. }) => self.pick(&REJECT),
            None => None,
        };
        match option {
            Some(option) => json!({ "outcome": { "outcome": "selected", "optionId": option } }),
            None => json!({ "outcome": { "outcome": "cancelled" } }),
        }
    }

    /// What the host chose beyond this once, if it is one of the things that were offered.
    fn suggested(&self, updated: &[Value]) -> Option<&str> {
        let wanted = updated.iter().filter_map(|entry| entry.get("optionId")?.as_str());
        let offered = |wanted: &str| {
            self.options.iter().find(|option| option.option_id == wanted && option.kind.starts_with("allow"))
        };
        wanted.filter_map(offered).map(|option| option.option_id.as_str()).next()
    }

    fn pick(&self, kinds: &[&str]) -> Option<&str> {
        let of_kind = |kind: &&str| self.options.iter().find(|option| option.kind == *kind);
        kinds.iter().find_map(of_kind).map(|option| option.option_id.as_str())
    }
}

/// Allow means this once; only an agent that knows no once is allowed more.
const ALLOW: [&str; 2] = ["allow_once", "allow_always"];
const REJECT: [&str; 2] = ["reject_once", "reject_always"];

/// `cursor/ask_question`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Questions {
    #[serde(default)]
    title: Option<String>,
    #[serde(default)]
    questions: Vec<Question>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Question {
    id: String,
    #[serde(default)]
    prompt: String,
    #[serde(default)]
    options: Vec<QuestionOption>,
    #[serde(default)]
    allow_multiple: bool,
}

#[derive(Debug, Deserialize)]
struct QuestionOption {
    id: String,
    #[serde(default)]
    label: String,
}

impl Questions {
    /// The questions as a form.
    pub(super) fn ask(&self, id: String) -> InputAsk {
        let properties: Map<String, Value> =
            self.questions.iter().map(|question| (question.id.clone(), question.property())).collect();
        let required: Vec<&str> = self.questions.iter().map(|question| question.id.as_str()).collect();
        let schema = json!({ "type": "object", "properties": properties, "required": required });
        InputAsk {
            id,
            source: "Cursor".to_owned(),
            message: self.title.clone().unwrap_or_else(|| "Cursor asks".to_owned()),
            payload: json!({ "kind": "form", "schema": schema }),
        }
    }

    /// The answer that the agent gets. `None`: nobody answers any more.
    pub(super) fn answer(&self, answer: Option<&Answer>) -> Value {
        let outcome = match answer.map(|answer| (answer.action, answer.content.as_ref())) {
            Some((InputAction::Submit, content)) => {
                let answers = self.questions.iter().map(|question| {
                    let chosen = content.and_then(|content| content.get(&question.id));
                    json!({ "questionId": question.id, "selectedOptionIds": question.chosen(chosen) })
                });
                json!({ "outcome": "answered", "answers": answers.collect::<Vec<Value>>() })
            }
            Some((InputAction::Decline, _)) => json!({ "outcome": "skipped", "reason": "User declined" }),
            Some((InputAction::Cancel, _)) | None => json!({ "outcome": "cancelled" }),
        };
        json!({ "outcome": outcome })
    }
}

impl Question {
    fn property(&self) -> Value {
        let choices: Vec<Value> = self
            .options
            .iter()
            .map(|option| json!({ "const": option.id, "title": if option.label.is_empty() { &option.id } else { &option.label } }))
            .collect();
        if self.allow_multiple {
            json!({ "type": "array", "title": self.prompt, "items": { "anyOf": choices } })
        } else {
            json!({ "type": "string", "title": self.prompt, "oneOf": choices })
        }
    }

    /// What was chosen, by id or by label; what is not offered is left out.
    fn chosen(&self, content: Option<&Value>) -> Vec<&str> {
        let several = match content {
            Some(Value::Array(several)) => several.as_slice(),
            Some(one) => std::slice::from_ref(one),
            None => &[],
        };
        let offered = |wanted: &str| {
            self.options
                .iter()
                .find(|option| option.id == wanted || option.label == wanted)
                .map(|option| option.id.as_str())
        };
        several.iter().filter_map(Value::as_str).filter_map(offered).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn permission() -> Permission {
        serde_json::from_value(json!({
            "sessionId": "s",
            "toolCall": { "toolCallId": "t", "title": "ls", "kind": "execute", "rawInput": { "command": "ls" },
                "content": [{ "type": "content", "content": { "type": "text", "text": "List files" } }] },
            "options": [
                { "optionId": "always", "name": "Always", "kind": "allow_always" },
                { "optionId": "once", "name": "Once", "kind": "allow_once" },
                { "optionId": "no", "name": "No", "kind": "reject_once" },
                { "optionId": "never", "name": "Never", "kind": "reject_always" },
            ],
        }))
        .unwrap()
    }

    fn selected(answer: &Value) -> &str {
        answer.pointer("/outcome/optionId").and_then(Value::as_str).unwrap_or("cancelled")
    }

    #[test]
    fn the_host_sees_what_is_asked_and_what_it_could_allow_beyond() {
        let ask = permission().ask("acp-1".to_owned());
        assert_eq!((ask.tool_name.as_str(), ask.title.as_deref()), ("execute", Some("ls")));
        assert_eq!(ask.description.as_deref(), Some("List files"));
        assert_eq!(Value::Object(ask.tool_input), json!({ "command": "ls" }));
        assert_eq!(
            ask.suggestions,
            [json!({ "type": "option", "optionId": "always", "name": "Always", "kind": "allow_always" })]
        );
    }

    #[test]
    fn allow_means_this_once_unless_the_host_passes_an_option_back() {
        let asked = permission();
        let allow = |updated: Vec<Value>| asked.answer(Some(&Verdict::Allow { updated }));
        assert_eq!(selected(&allow(vec![])), "once");
        assert_eq!(selected(&allow(vec![json!({ "type": "option", "optionId": "always" })])), "always");
        assert_eq!(selected(&allow(vec![json!({ "optionId": "never" })])), "once");
        assert_eq!(selected(&allow(vec![json!({ "optionId": "made-up" }), json!(7)])), "once");
        assert_eq!(selected(&asked.answer(Some(&Verdict::Deny { message: None }))), "no");
        assert_eq!(selected(&asked.answer(None)), "cancelled");
    }

    #[test]
    fn a_question_without_options_is_cancelled_whatever_is_said() {
        let asked: Permission = serde_json::from_value(json!({ "toolCall": 7 })).unwrap();
        assert_eq!(selected(&asked.answer(Some(&Verdict::Allow { updated: vec![] }))), "cancelled");
        assert_eq!(asked.ask("x".to_owned()).tool_name, "tool");
    }

    #[test]
    fn each_mode_has_its_ruling() {
        let of_kind = |kind: &str| -> Permission {
            serde_json::from_value(
                json!({ "toolCall": { "kind": kind, "rawInput": { "plan": "1. think" } } }),
            )
            .unwrap()
        };
        let cases = [
            (PermissionMode::BypassPermissions, "execute", Ruling::Allow),
            (PermissionMode::AcceptEdits, "edit", Ruling::Allow),
            (PermissionMode::AcceptEdits, "execute", Ruling::Ask),
            (PermissionMode::DontAsk, "edit", Ruling::Deny),
            (PermissionMode::Plan, "switch_mode", Ruling::Plan),
            (PermissionMode::Plan, "edit", Ruling::Ask),
            (PermissionMode::Default, "switch_mode", Ruling::Ask),
            (PermissionMode::Auto, "edit", Ruling::Ask),
        ];
        for (mode, kind, ruling) in cases {
            assert_eq!(of_kind(kind).ruling(mode), ruling, "{mode:?} {kind}");
        }
    }

    #[test]
    fn questions_become_a_form_and_its_content_their_answers() {
        let questions: Questions = serde_json::from_value(json!({ "toolCallId": "t", "title": "Pick", "questions": [
            { "id": "q1", "prompt": "Which?", "options": [{ "id": "a", "label": "A" }, { "id": "b", "label": "B" }] },
            { "id": "q2", "prompt": "Several?", "options": [{ "id": "c", "label": "C" }], "allowMultiple": true }] }))
        .unwrap();
        let ask = questions.ask("cursor-1".to_owned());
        assert_eq!(ask.message, "Pick");
        assert_eq!(
            ask.payload["schema"]["properties"]["q1"],
            json!({ "type": "string", "title": "Which?", "oneOf": [{ "const": "a", "title": "A" }, { "const": "b", "title": "B" }] })
        );
        let answer =
            |action, content: Value| Answer { action, content: content.as_object().cloned(), meta: None };
        let submit = answer(InputAction::Submit, json!({ "q1": "B", "q2": ["c", "zzz", 7] }));
        assert_eq!(
            questions.answer(Some(&submit)),
            json!({ "outcome": { "outcome": "answered", "answers": [
                { "questionId": "q1", "selectedOptionIds": ["b"] }, { "questionId": "q2", "selectedOptionIds": ["c"] }] } })
        );
        let declined = questions.answer(Some(&answer(InputAction::Decline, json!(null))));
        assert_eq!(declined["outcome"]["outcome"], "skipped");
        assert_eq!(questions.answer(None)["outcome"]["outcome"], "cancelled");
    }
}
