//! Questions for the user: Codex's own as a form, those of MCP servers as they are, and the answers to both.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::provider::{Answer, InputAction, InputAsk};

/// A question for the user, and how it is answered.
#[derive(Debug)]
pub(super) struct Question {
    /// For the host.
    pub(super) ask: InputAsk,
    form: Form,
}

/// The form of the answer.
#[derive(Debug)]
enum Form {
    /// `{"answers": …}`.
    Answers,
    /// `{"action", "content", "_meta"}`.
    Elicitation,
}

/// What becomes of a request of the server that may be a question.
#[derive(Debug)]
pub(super) enum Reading {
    /// It is one.
    Ask(Question),
    /// It has its answer already.
    Known(Value),
    /// It is none.
    None,
}

impl Question {
    /// The question that `method` asks. `uuid` makes its name.
    pub(super) fn read(method: &str, params: &RawValue, uuid: &str) -> Reading {
        match method {
            "item/tool/requestUserInput" => {
                let asked: Asked = serde_json::from_str(params.get()).unwrap_or_default();
                Reading::Ask(Self { ask: asked.ask(format!("codex-input-{uuid}")), form: Form::Answers })
            }
            "mcpServer/elicitation/request" => {
                let Ok(asked) = serde_json::from_str::<Elicitation>(params.get()) else {
                    return Reading::Known(refused("cancel"));
                };
                match asked.ask(format!("codex-mcp-elicit-{uuid}")) {
                    Some(ask) => Reading::Ask(Self { ask, form: Form::Elicitation }),
                    // A way of asking that nobody here knows cannot be shown to a person.
                    None => Reading::Known(refused("decline")),
                }
            }
            _ => Reading::None,
        }
    }

    /// The answer for the server.
    pub(super) fn answer(&self, answer: Answer) -> Value {
        match (&self.form, answer.action) {
            (Form::Answers, InputAction::Submit) => {
                let content = answer.content.unwrap_or_default();
                let answers: Map<String, Value> = content
                    .into_iter()
                    .map(|(key, value)| (key, json!({ "answers": words(value) })))
                    .collect();
                json!({ "answers": answers })
            }
            (Form::Answers, InputAction::Decline | InputAction::Cancel) => json!({ "answers": {} }),
            (Form::Elicitation, InputAction::Submit) => {
                json!({ "action": "accept", "content": answer.content.unwrap_or_default(), "_meta": answer.meta })
            }
            (Form::Elicitation, InputAction::Decline) => refused("decline"),
            (Form::Elicitation, InputAction::Cancel) => refused("cancel"),
        }
    }
}

/// Whether an MCP server only asks whether one of its tools may be called, which who allows everything has answered already.
pub(super) fn is_tool_approval(method: &str, params: &RawValue) -> bool {
    method == "mcpServer/elicitation/request"
        && serde_json::from_str::<Elicitation>(params.get())
            .is_ok_and(|asked| asked.meta["codex_approval_kind"] == "mcp_tool_call")
}

/// The answer to that.
pub(super) fn tool_approved() -> Value {
    json!({ "action": "accept", "content": {}, "_meta": null })
}

fn refused(action: &str) -> Value {
    json!({ "action": action, "content": null, "_meta": null })
}

/// A value of a form as the words that Codex wants.
fn words(value: Value) -> Vec<String> {
    match value {
        Value::String(word) => vec![word],
        Value::Array(values) => values.into_iter().flat_map(words).collect(),
        Value::Null => Vec::new(),
        other => vec![other.to_string()],
    }
}

#[derive(Default, Deserialize)]
struct Asked {
    #[serde(default)]
    questions: Vec<One>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct One {
    #[serde(default)]
    id: String,
    #[serde(default)]
    header: String,
    #[serde(default)]
    question: String,
    #[serde(default)]
    is_other: bool,
    #[serde(default)]
    is_secret: bool,
    #[serde(default)]
    options: Option<Vec<Choice>>,
}

#[derive(Deserialize)]
struct Choice {
    label: String,
    #[serde(default)]
    description: String,
}

impl Asked {
    fn ask(self, id: String) -> InputAsk {
        let message = match self.questions.as_slice() {
            [one] => one.question.clone(),
            many => format!("Codex has {} questions", many.len()),
        };
        let properties: Vec<(String, Value)> = self
            .questions
            .into_iter()
            .enumerate()
            .map(|(at, one)| {
                let key = if one.id.is_empty() { format!("q{at}") } else { one.id.clone() };
                (key, one.property())
            })
            .collect();
        let required: Vec<&str> = properties.iter().map(|(key, _)| key.as_str()).collect();
        let required = json!(required);
        let properties: Map<String, Value> = properties.into_iter().collect();
        let schema = json!({ "type": "object", "properties": properties, "required": required });
        let payload = json!({ "kind": "form", "schema": schema });
        InputAsk { id, source: "Codex".to_owned(), message, payload }
    }
}

impl One {
    fn property(self) -> Value {
        let (title, description) = if self.header.is_empty() {
            (self.question, String::new())
        } else {
            (self.header, self.question)
        };
        let mut property = Map::from_iter([
            ("type".to_owned(), json!("string")),
            ("title".to_owned(), json!(title)),
            ("description".to_owned(), json!(description)),
        ]);
        let choices: Vec<Value> = match self.options {
            Some(options) if !options.is_empty() => options
                .into_iter()
                .map(|choice| json!({ "const": choice.label, "title": choice.label, "description": choice.description }))
                .collect(),
            Some(_) | None if self.is_other => Vec::new(),
            // A question without choices that is not open either can only be one of yes and no.
            Some(_) | None => ["Yes", "No"].map(|word| json!({ "const": word, "title": word, "description": "" })).into(),
        };
        if !choices.is_empty() {
            property.insert("oneOf".to_owned(), json!(choices));
        }
        if self.is_other {
            property.insert("x-allow-other".to_owned(), json!(true));
        }
        if self.is_secret {
            property.insert("format".to_owned(), json!("password"));
        }
        Value::Object(property)
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Elicitation {
    #[serde(default)]
    server_name: String,
    #[serde(default)]
    mode: String,
    #[serde(default)]
    message: String,
    #[serde(default)]
    requested_schema: Value,
    #[serde(default)]
    url: Option<String>,
    #[serde(default, rename = "_meta")]
    meta: Value,
}

impl Elicitation {
    fn ask(self, id: String) -> Option<InputAsk> {
        let payload = match (self.mode.as_str(), self.url) {
            ("form" | "openai/form" | "openaiForm" | "", _) if self.requested_schema.is_object() => {
                let mut payload = json!({ "kind": "form", "schema": self.requested_schema });
                if !self.meta.is_null() {
                    payload["meta"] = self.meta;
                }
                payload
            }
            ("url", Some(url)) => json!({ "kind": "url", "url": url }),
            _ => return None,
        };
        Some(InputAsk { id, source: self.server_name, message: self.message, payload })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(method: &str, params: &Value) -> Reading {
        Question::read(method, &RawValue::from_string(params.to_string()).unwrap(), "1")
    }

    fn question(method: &str, params: &Value) -> Question {
        let Reading::Ask(question) = read(method, params) else { panic!("no question: {params}") };
        question
    }

    fn submit(content: Value) -> Answer {
        let Value::Object(content) = content else { panic!("no object") };
        Answer { action: InputAction::Submit, content: Some(content), meta: None }
    }

    fn without(action: InputAction) -> Answer {
        Answer { action, content: None, meta: None }
    }

    #[test]
    fn the_questions_of_codex_become_the_properties_of_a_form() {
        let options = json!([{ "label": "Red", "description": "warm" }, { "label": "Blue" }]);
        let params = json!({ "threadId": "T", "questions": [
            { "id": "colour", "header": "Colour", "question": "Which?", "isOther": true, "isSecret": false, "options": options },
            { "header": "", "question": "Sure?", "isOther": false, "options": null },
            { "id": "key", "header": "Key", "question": "Your key?", "isOther": true, "isSecret": true, "options": [] },
        ] });
        let question = question("item/tool/requestUserInput", &params);
        assert_eq!(question.ask.id, "codex-input-1");
        assert_eq!(question.ask.message, "Codex has 3 questions");
        let no = |word: &str| json!({ "const": word, "title": word, "description": "" });
        let properties = json!({
            "colour": { "type": "string", "title": "Colour", "description": "Which?", "x-allow-other": true,
                "oneOf": [{ "const": "Red", "title": "Red", "description": "warm" }, no("Blue")] },
            "q1": { "type": "string", "title": "Sure?", "description": "", "oneOf": [no("Yes"), no("No")] },
            "key": { "type": "string", "title": "Key", "description": "Your key?", "x-allow-other": true, "format": "password" },
        });
        let schema =
            json!({ "type": "object", "properties": properties, "required": ["colour", "q1", "key"] });
        assert_eq!(question.ask.payload, json!({ "kind": "form", "schema": schema }));
    }

    #[test]
    fn an_answer_goes_back_as_lists_of_words() {
        let question = question("item/tool/requestUserInput", &json!({ "questions": [] }));
        let answer = question.answer(submit(json!({ "a": "x", "b": ["y", "z"], "c": 3, "d": null })));
        let expected = json!({ "a": { "answers": ["x"] }, "b": { "answers": ["y", "z"] }, "c": { "answers": ["3"] }, "d": { "answers": [] } });
        assert_eq!(answer, json!({ "answers": expected }));
        for action in [InputAction::Decline, InputAction::Cancel] {
            assert_eq!(question.answer(without(action)), json!({ "answers": {} }));
        }
    }

    #[test]
    fn what_an_mcp_server_asks_is_passed_on_with_its_schema() {
        let schema = json!({ "type": "object", "properties": { "n": { "type": "number" } } });
        let params = json!({ "serverName": "db", "mode": "form", "message": "How many?", "requestedSchema": schema, "_meta": { "a": 1 } });
        let question = question("mcpServer/elicitation/request", &params);
        assert_eq!((question.ask.source.as_str(), question.ask.message.as_str()), ("db", "How many?"));
        assert_eq!(question.ask.payload, json!({ "kind": "form", "schema": schema, "meta": { "a": 1 } }));
        let accepted = json!({ "action": "accept", "content": { "n": 2 }, "_meta": null });
        assert_eq!(question.answer(submit(json!({ "n": 2 }))), accepted);
        assert_eq!(question.answer(without(InputAction::Decline)), refused("decline"));
        assert_eq!(question.answer(without(InputAction::Cancel)), refused("cancel"));
    }

    #[test]
    fn an_address_is_passed_on_and_an_unknown_way_of_asking_is_declined() {
        let params = json!({ "serverName": "db", "mode": "url", "message": "Log in", "url": "https://x", "_meta": null });
        let payload = question("mcpServer/elicitation/request", &params).ask.payload;
        assert_eq!(payload, json!({ "kind": "url", "url": "https://x" }));
        let odd = [
            json!({ "mode": "openai/userVerification" }),
            json!({ "mode": "url" }),
            json!({ "mode": "form", "requestedSchema": null }),
            json!([]),
        ];
        for odd in odd {
            let reading = read("mcpServer/elicitation/request", &odd);
            assert!(
                matches!(&reading, Reading::Known(answer) if *answer == refused("decline")),
                "{reading:?}"
            );
        }
        let unreadable = read("mcpServer/elicitation/request", &json!({ "message": 7 }));
        assert!(
            matches!(&unreadable, Reading::Known(answer) if *answer == refused("cancel")),
            "{unreadable:?}"
        );
        assert!(matches!(read("item/tool/call", &json!({})), Reading::None));
    }

    #[test]
    fn only_the_approval_of_a_tool_is_known_as_one() {
        let raw = |params: Value| RawValue::from_string(params.to_string()).unwrap();
        let method = "mcpServer/elicitation/request";
        let approval = json!({ "serverName": "db", "_meta": { "codex_approval_kind": "mcp_tool_call" } });
        assert!(is_tool_approval(method, &raw(approval)));
        assert!(!is_tool_approval(method, &raw(json!({ "serverName": "db", "_meta": null }))));
        assert!(!is_tool_approval("item/tool/call", &raw(json!({}))));
    }
}
