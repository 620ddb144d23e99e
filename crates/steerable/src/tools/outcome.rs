//! What calls come to, beyond success and failure: a denial that a host can tell from a failure, and the text for a model.

use serde_json::{Map, Value};

use super::tool::Mode;
use crate::chat::ToolResult;

/// The word in `data.kind` of a result that is a denial.
const POLICY_DENIED: &str = "policy_denied";

/// A call that reached beyond its grants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denial {
    /// The tool.
    pub tool: String,
    /// Its mode.
    pub mode: Mode,
    /// What is missing, and what would grant it.
    pub reason: String,
}

/// The result of a call that is denied.
#[must_use]
pub fn denied(tool: &str, mode: Mode, reason: impl Into<String>) -> ToolResult {
    let reason = reason.into();
    ToolResult::failure(format!("{POLICY_DENIED}: {reason}"))
        .with("kind", POLICY_DENIED)
        .with("tool", tool)
        .with("mode", mode.word())
        .with("reason", reason)
}

/// What was denied, if the result is a denial.
#[must_use]
pub fn denial(result: &ToolResult) -> Option<Denial> {
    let data = result.data.as_ref()?;
    let text = |name: &str| data.get(name).and_then(Value::as_str);
    if result.success || text("kind") != Some(POLICY_DENIED) {
        return None;
    }
    let mode = text("mode").and_then(Mode::from_word).unwrap_or(Mode::Other);
    Some(Denial { tool: text("tool")?.to_owned(), mode, reason: text("reason")?.to_owned() })
}

/// The result as the model reads it: its text as text, everything else as JSON. A model reads a file better without
/// the escapes of JSON in it.
#[must_use]
pub fn for_model(result: &ToolResult) -> String {
    let mut rest = result.data.clone().unwrap_or_default();
    rest.remove("durationMs");
    let text = match rest.remove("text") {
        Some(Value::String(text)) => Some(text),
        Some(other) => {
            rest.insert("text".into(), other);
            None
        }
        None => None,
    };
    // Whoever sends both a text and a value says the same twice.
    if text.is_some() {
        rest.remove("structured");
    }
    // Pictures go to the model as pictures, or not at all; their base64 says nothing to it.
    rest.remove("images");
    let mut pieces = Vec::new();
    if let Some(error) = &result.error {
        pieces.push(format!("error: {error}"));
        for repeated in ["kind", "tool", "mode", "reason"] {
            rest.remove(repeated);
        }
    } else if !result.success {
        pieces.push("error: the tool failed and did not say why".to_owned());
    }
    pieces.extend(result.message.clone());
    pieces.extend(text);
    if !rest.is_empty() {
        pieces.push(Value::Object(rest).to_string());
    }
    if pieces.is_empty() { "done".to_owned() } else { pieces.join("\n") }
}

/// A success of a text and some members beside it.
pub(super) fn text(text: impl Into<String>) -> ToolResult {
    let mut data = Map::new();
    data.insert("text".into(), Value::String(text.into()));
    ToolResult::success(data)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_denial_is_a_failure_that_a_program_can_tell_apart() {
        let result = denied("run_command", Mode::Destructive, "no commands");
        assert!(!result.success);
        assert_eq!(result.error.as_deref(), Some("policy_denied: no commands"));
        let expected =
            Denial { tool: "run_command".into(), mode: Mode::Destructive, reason: "no commands".into() };
        assert_eq!(denial(&result), Some(expected));
        assert_eq!(denial(&ToolResult::failure("policy_denied: no")), None);
        assert_eq!(for_model(&result), "error: policy_denied: no commands");
    }

    #[test]
    fn a_model_reads_text_as_text_and_the_rest_as_json() {
        assert_eq!(for_model(&text("a\nb").with("durationMs", 3)), "a\nb");
        assert_eq!(for_model(&text("a").with("cut", true)), "a\n{\"cut\":true}");
        assert_eq!(for_model(&ToolResult::success(Map::new())), "done");
        assert_eq!(for_model(&ToolResult::failure("no").with("n", json!([1]))), "error: no\n{\"n\":[1]}");
    }
}
