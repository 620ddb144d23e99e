//! What servers say about themselves, their tools, and what came of calls.

use base64::Engine as _;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::chat::ToolResult;
use crate::tools::tool::{Mode, mode_of};

/// The protocol that we speak; a server may answer with an older one.
pub(super) const PROTOCOL: &str = "2025-06-18";

/// The notification that says that a server has other tools now.
pub(super) const LIST_CHANGED: &str = "notifications/tools/list_changed";

/// The longest description of a tool that a model is told, in characters.
const MAX_DESCRIPTION: usize = 4096;

/// The longest schema of a tool, in bytes.
const MAX_SCHEMA: usize = 256 << 10;

/// Bytes of text of one result.
const MAX_TEXT: usize = 256 << 10;

/// Bytes of pictures of one result.
const MAX_IMAGES: usize = 8 << 20;

/// What we say first.
pub(super) fn introduction() -> Value {
    json!({
        "protocolVersion": PROTOCOL,
        "capabilities": {},
        "clientInfo": { "name": "steerable-sidecar", "version": env!("CARGO_PKG_VERSION") },
    })
}

/// What a server says first.
#[derive(Debug, Deserialize)]
pub(super) struct Introduced {
    #[serde(rename = "protocolVersion")]
    pub(super) protocol: String,
    #[serde(default)]
    pub(super) capabilities: Capabilities,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Capabilities {
    /// There if the server has tools; what it can do with them does not matter to us.
    pub(super) tools: Option<Box<RawValue>>,
}

/// A page of a server's tools.
#[derive(Debug, Deserialize)]
pub(super) struct ToolPage {
    pub(super) tools: Vec<Listed>,
    #[serde(rename = "nextCursor")]
    pub(super) next_cursor: Option<String>,
}

/// A tool of a server.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Listed {
    pub(super) name: String,
    #[serde(default)]
    description: Option<String>,
    #[serde(rename = "inputSchema")]
    schema: Option<Box<RawValue>>,
    #[serde(default)]
    annotations: Option<Annotations>,
}

/// What a server says about a tool's effects. It is believed as far as the server is: whoever configured it chose it.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
struct Annotations {
    #[serde(rename = "readOnlyHint")]
    read_only: Option<bool>,
    #[serde(rename = "destructiveHint")]
    destructive: Option<bool>,
}

impl Listed {
    pub(super) fn mode(&self) -> Mode {
        let hints = self.annotations.unwrap_or_default();
        match (hints.read_only, hints.destructive) {
            (Some(true), _) => Mode::Read,
            (_, Some(true)) => Mode::Destructive,
            (Some(false) | None, Some(false) | None) => mode_of(&self.name),
        }
    }

    pub(super) fn description(&self) -> String {
        let text = self.description.as_deref().unwrap_or_default();
        cut(text, MAX_DESCRIPTION).to_owned()
    }

    /// The schema of its arguments; one that is none or too long describes any object.
    pub(super) fn schema(&self) -> Box<RawValue> {
        let usable = |schema: &RawValue| schema.get().starts_with('{') && schema.get().len() <= MAX_SCHEMA;
        match &self.schema {
            Some(schema) if usable(schema) => schema.clone(),
            Some(_) | None => any_object(),
        }
    }
}

fn any_object() -> Box<RawValue> {
    RawValue::from_string(r#"{"type":"object"}"#.to_owned()).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

/// A page of tools, of which those that are none are left out.
pub(super) fn read_page(page: &RawValue) -> Result<ToolPage, String> {
    serde_json::from_str(page.get()).map_err(|error| format!("its list of tools cannot be read: {error}"))
}

#[derive(Deserialize)]
struct Called {
    #[serde(default)]
    content: Vec<Map<String, Value>>,
    #[serde(rename = "structuredContent")]
    structured: Option<Value>,
    #[serde(rename = "isError", default)]
    is_error: bool,
}

/// What came of a call.
pub(super) fn read_result(result: &RawValue) -> Result<ToolResult, String> {
    let called: Called =
        serde_json::from_str(result.get()).map_err(|error| format!("its result cannot be read: {error}"))?;
    let mut texts: Vec<String> = Vec::new();
    let mut images: Vec<Value> = Vec::new();
    let mut image_bytes = 0;
    for part in &called.content {
        let member = |name: &str| part.get(name).and_then(Value::as_str);
        match member("type") {
            Some("text") => texts.push(member("text").unwrap_or_default().to_owned()),
            Some("image") => {
                let (data, kind) =
                    (member("data").unwrap_or_default(), member("mimeType").unwrap_or("image/png"));
                image_bytes += data.len();
                if image_bytes > MAX_IMAGES || base64::engine::general_purpose::STANDARD.decode(data).is_err()
                {
                    texts.push(format!("({kind}, not shown: it is too large or not base64)"));
                } else {
                    images.push(json!({"mediaType": kind, "data": data}));
                }
            }
            Some("resource") => {
                let resource = part.get("resource");
                let inner =
                    |name: &str| resource.and_then(|resource| resource.get(name)).and_then(Value::as_str);
                let address = inner("uri").unwrap_or_default();
                match inner("text") {
                    Some(text) => texts.push(format!("{address}\n{text}")),
                    None => texts.push(format!("({address}, not shown: it is no text)")),
                }
            }
            Some("resource_link") => texts.push(format!(
                "({} {})",
                member("name").unwrap_or("link"),
                member("uri").unwrap_or_default()
            )),
            Some(other) => texts.push(format!("({other}, not shown)")),
            None => {}
        }
    }
    let whole = texts.join("\n");
    let text = cut(&whole, MAX_TEXT);
    let was_cut = text.len() < whole.len();
    let mut outcome = match called.is_error {
        true => {
            ToolResult::failure(if text.is_empty() { "the tool failed and did not say why" } else { text })
        }
        false => ToolResult::success(Map::new()),
    };
    if !called.is_error && !text.is_empty() {
        outcome = outcome.with("text", text);
    }
    if was_cut {
        outcome = outcome.with("cutBytes", whole.len() - text.len());
    }
    if !images.is_empty() {
        outcome = outcome.with("images", images);
    }
    if let Some(structured) = called.structured {
        outcome = outcome.with("structured", structured);
    }
    Ok(outcome)
}

/// At most so many bytes of a text.
fn cut(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::value::to_raw_value;

    fn raw(value: Value) -> Box<RawValue> {
        to_raw_value(&value).unwrap()
    }

    #[test]
    fn hints_and_otherwise_the_name_say_how_dangerous_a_tool_is() {
        let table = [
            (json!({"name": "delete_all", "annotations": {"readOnlyHint": true}}), Mode::Read),
            (json!({"name": "get_x", "annotations": {"destructiveHint": true}}), Mode::Destructive),
            (json!({"name": "get_x", "annotations": {"destructiveHint": false}}), Mode::Read),
            (json!({"name": "get_x"}), Mode::Read),
            (json!({"name": "do_x", "annotations": {"title": "x"}}), Mode::Other),
        ];
        for (tool, mode) in table {
            let listed: Listed = serde_json::from_value(tool.clone()).unwrap();
            assert_eq!(listed.mode(), mode, "{tool}");
        }
    }

    #[test]
    fn a_schema_is_kept_word_by_word_and_a_missing_one_is_any_object() {
        let schema = |text: &str| {
            let page = RawValue::from_string(format!(r#"{{"tools":[{text}]}}"#)).unwrap();
            read_page(&page).unwrap().tools[0].schema().get().to_owned()
        };
        assert_eq!(schema(r#"{"name":"a","inputSchema":{"b": 1.0,"a":2}}"#), r#"{"b": 1.0,"a":2}"#);
        assert_eq!(schema(r#"{"name":"a"}"#), r#"{"type":"object"}"#);
        assert_eq!(schema(r#"{"name":"a","inputSchema":[]}"#), r#"{"type":"object"}"#);
        assert!(read_page(&raw(json!({"tools": 1}))).is_err());
    }

    #[test]
    fn results_are_texts_pictures_values_and_failures() {
        let read = |value: Value| read_result(&raw(value));
        let text =
            read(json!({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]})).unwrap();
        assert_eq!(text, ToolResult::success(Map::new()).with("text", "a\nb"));
        let structured = read(json!({"structuredContent": {"n": 1}})).unwrap();
        assert_eq!(structured, ToolResult::success(Map::new()).with("structured", json!({"n": 1})));
        let image =
            read(json!({"content": [{"type": "image", "mimeType": "image/gif", "data": "AAAA"}]})).unwrap();
        let expected = json!([{"mediaType": "image/gif", "data": "AAAA"}]);
        assert_eq!(image, ToolResult::success(Map::new()).with("images", expected));
        let failed = read(json!({"content": [{"type": "text", "text": "no"}], "isError": true})).unwrap();
        assert_eq!(failed, ToolResult::failure("no"));
        assert!(read(json!([])).is_err());
        let long = read(json!({"content": [{"type": "text", "text": "ä".repeat(MAX_TEXT)}]})).unwrap();
        assert_eq!(long.data.unwrap()["cutBytes"], json!(MAX_TEXT));
    }
}
