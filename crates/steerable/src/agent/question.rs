//! `ask_user`: the model asks the person, through the host.

use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use super::port::HostPort;
use crate::chat::{ToolResult, ToolSpec};
use crate::tools::schema;

/// What the tool is called by.
pub(super) const NAME: &str = "ask_user";

/// What the model is told.
pub(super) fn spec() -> ToolSpec {
    let parameters = json!({
        "type": "object",
        "properties": {
            "intro": {"type": "string", "description": "A sentence that says why you ask."},
            "questions": {
                "type": "array",
                "minItems": 1,
                "maxItems": 10,
                "items": {
                    "type": "object",
                    "properties": {
                        "id": {"type": "string", "minLength": 1, "description": "What the answer comes back under."},
                        "question": {"type": "string", "minLength": 1},
                        "options": {"type": "array", "items": {"type": "string"}, "description": "Answers to choose from, if there are such."},
                    },
                    "required": ["id", "question"],
                },
            },
        },
        "required": ["questions"],
    });
    ToolSpec {
        name: NAME.to_owned(),
        description:
            "Asks the person and waits for the answers. Use it only for what you cannot find out yourself \
                      and what changes what you do next."
                .to_owned(),
        // A value of ours has only string keys, so that it can always be written.
        parameters: to_raw_value(&parameters).unwrap_or_else(|_| RawValue::NULL.to_owned()),
        as_given: None,
    }
}

/// Puts the questions and brings the answers back.
pub(super) async fn put(host: &dyn HostPort, arguments: &RawValue, chat_id: Option<&str>) -> ToolResult {
    let mut asked: Value = match serde_json::from_str(arguments.get()) {
        Ok(asked) => asked,
        Err(error) => return ToolResult::failure(format!("the arguments of {NAME} are no JSON: {error}")),
    };
    if let Err(misfits) = schema::check(&spec().parameters, &asked) {
        let told: Vec<String> = misfits.iter().map(ToString::to_string).collect();
        return ToolResult::failure(format!("the arguments of {NAME} do not fit: {}", told.join("; ")));
    }
    if let (Some(members), Some(chat_id)) = (asked.as_object_mut(), chat_id) {
        members.insert("chatId".to_owned(), Value::from(chat_id));
    }
    match host.ask(&asked).await {
        Ok(Value::Object(data)) => ToolResult::success(data),
        Ok(other) => ToolResult::success(serde_json::Map::new()).with("answers", other),
        Err(gone) => ToolResult::failure(gone.to_string()),
    }
}
