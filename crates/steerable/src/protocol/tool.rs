//! Tools, calls and results as they are written: descriptors in OpenAI's form, and `ToolResult`.

use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::fields::{Fields, ParamError};
use crate::chat::{ToolResult, ToolSpec};

/// The schema of a tool that says nothing about its arguments.
const ANY_ARGUMENTS: &str = r#"{"type":"object","properties":{}}"#;

/// Reads the member `tools`: OpenAI's tool objects, or those of other providers with the name outside.
pub(super) fn read_tools(fields: &Fields<'_>) -> Result<Vec<ToolSpec>, ParamError> {
    let tools = fields.list("tools")?.unwrap_or_default();
    let tool = |(at, raw): (usize, &&RawValue)| read_tool(&format!("tools[{at}]"), raw);
    tools.iter().enumerate().map(tool).collect()
}

/// Reads one tool, which is called `place` in errors. A tool without a name is a provider's own, which is only passed on.
///
/// # Errors
/// When it is no object, or a member of it is wrong.
pub fn read_tool(place: &str, raw: &RawValue) -> Result<ToolSpec, ParamError> {
    let outer = Fields::within(place.to_owned(), raw)?;
    let inner = match outer.raw("function") {
        Some(raw) => Fields::within(outer.path("function"), raw)?,
        None => outer,
    };
    let parameters = match inner.raw("parameters").or_else(|| inner.raw("input_schema")) {
        None => RawValue::from_string(ANY_ARGUMENTS.to_owned())
            .map_err(|_| inner.wrong("parameters", "an object"))?,
        Some(raw) if raw.get().starts_with('{') => raw.to_owned(),
        Some(_) => return Err(inner.wrong("parameters", "an object")),
    };
    Ok(ToolSpec {
        name: inner.text("name")?.unwrap_or_default(),
        description: inner.text("description")?.unwrap_or_default(),
        parameters,
        as_given: Some(raw.to_owned()),
    })
}

/// A tool as `tool.list` shows it.
#[must_use]
pub fn descriptor(spec: &ToolSpec) -> Value {
    let parameters: Value = serde_json::from_str(spec.parameters.get())
        .unwrap_or_else(|_| json!({"type":"object","properties":{}}));
    let function = json!({"name": spec.name, "description": spec.description, "parameters": parameters});
    json!({"type": "function", "function": function})
}

/// A result as it is written; what is `None` is left out.
#[must_use]
pub fn result_value(result: &ToolResult) -> Value {
    let mut members = Map::new();
    members.insert("success".into(), result.success.into());
    for (name, flag) in [("terminal", result.terminal), ("needsFollowup", result.needs_followup)] {
        if let Some(flag) = flag {
            members.insert(name.into(), flag.into());
        }
    }
    let texts = [("nextAction", &result.next_action), ("message", &result.message), ("error", &result.error)];
    for (name, text) in texts {
        if let Some(text) = text {
            members.insert(name.into(), text.as_str().into());
        }
    }
    if let Some(data) = &result.data {
        members.insert("data".into(), Value::Object(data.clone()));
    }
    Value::Object(members)
}

/// What a host answered to `tool.invoke`: a `ToolResult`, or any value, which is then a success that carries it.
#[must_use]
pub fn read_result(answer: &RawValue) -> ToolResult {
    let value: Value = serde_json::from_str(answer.get()).unwrap_or(Value::Null);
    let Value::Object(mut members) = value else { return carrying(value) };
    let Some(success) = members.get("success").and_then(Value::as_bool) else {
        return carrying(Value::Object(members));
    };
    let mut text = |name: &str| match members.remove(name) {
        Some(Value::String(text)) => Some(text),
        Some(Value::Null) | None => None,
        // An error that is no text is still worth showing.
        Some(other) => Some(other.to_string()),
    };
    let (next_action, message, error) = (text("nextAction"), text("message"), text("error"));
    let data = match members.remove("data") {
        Some(Value::Object(data)) => Some(data),
        Some(Value::Null) | None => None,
        Some(other) => Some(Map::from_iter([("value".to_owned(), other)])),
    };
    ToolResult {
        success,
        terminal: members.get("terminal").and_then(Value::as_bool),
        needs_followup: members.get("needsFollowup").and_then(Value::as_bool),
        next_action,
        message,
        error,
        data,
    }
}

fn carrying(value: Value) -> ToolResult {
    ToolResult::success(Map::from_iter([("value".to_owned(), value)]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(json: &str) -> Box<RawValue> {
        RawValue::from_string(json.to_owned()).unwrap()
    }

    #[test]
    fn a_tool_is_read_in_every_providers_form_and_passed_on_as_it_was() {
        let forms = [
            r#"{"type":"function","function":{"name":"f","description":"d","parameters":{"type":"object"}}}"#,
            r#"{"name":"f","description":"d","input_schema":{"type":"object"}}"#,
            r#"{"type":"function","name":"f","description":"d","parameters":{"type":"object"}}"#,
        ];
        for form in forms {
            let spec = read_tool("tools[0]", &raw(form)).unwrap();
            assert_eq!(
                (&*spec.name, &*spec.description, spec.parameters.get()),
                ("f", "d", r#"{"type":"object"}"#)
            );
            assert_eq!(spec.as_given.unwrap().get(), form);
        }
        let bare = read_tool("tools[0]", &raw(r#"{"type":"function","function":{"name":"echo"}}"#)).unwrap();
        assert_eq!(bare.parameters.get(), ANY_ARGUMENTS);
    }

    #[test]
    fn a_host_answers_with_a_result_or_with_any_value() {
        let result = read_result(&raw(r#"{"success":false,"error":"no","needsFollowup":true,"data":null}"#));
        assert_eq!(result_value(&result), json!({"success":false,"needsFollowup":true,"error":"no"}));
        for value in ["1", "null", r#"{"a":1}"#, r#"{"success":"yes"}"#] {
            let result = read_result(&raw(value));
            let carried: Value = serde_json::from_str(value).unwrap();
            assert_eq!(result_value(&result), json!({"success":true,"data":{"value":carried}}));
        }
    }
}
