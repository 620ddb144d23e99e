//! What a tool looks like to a model, a call of it, and what came of the call.

use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// What a model is told about a tool.
#[derive(Clone, Debug)]
pub struct ToolSpec {
    /// What it is called by.
    pub name: String,
    /// What it does, for the model.
    pub description: String,
    /// The JSON Schema of its arguments; always an object.
    pub parameters: Box<RawValue>,
    /// The tool as the host wrote it, which an OpenAI-compatible provider gets word by word.
    pub as_given: Option<Box<RawValue>>,
}

/// A call that a model or a host made.
#[derive(Clone, Debug)]
pub struct ToolCall {
    /// The caller's id of the call.
    pub id: String,
    /// Which tool.
    pub name: String,
    /// Its arguments; always a JSON object.
    pub arguments: Box<RawValue>,
}

/// What came of a call. Members that are `None` are not written.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolResult {
    /// Whether the tool did what it was asked for.
    pub success: bool,
    /// Whether the turn ends with this result.
    pub terminal: Option<bool>,
    /// Whether the model should do something about it.
    pub needs_followup: Option<bool>,
    /// A word for what the host should do next.
    pub next_action: Option<String>,
    /// A sentence for people.
    pub message: Option<String>,
    /// What went wrong.
    pub error: Option<String>,
    /// What the tool found or made.
    pub data: Option<Map<String, Value>>,
}

impl ToolResult {
    /// A success that carries `data`.
    #[must_use]
    pub fn success(data: Map<String, Value>) -> Self {
        Self { success: true, data: Some(data), ..Self::empty() }
    }

    /// A failure that the model may do something about.
    #[must_use]
    pub fn failure(error: impl Into<String>) -> Self {
        Self { terminal: Some(false), needs_followup: Some(true), error: Some(error.into()), ..Self::empty() }
    }

    /// A failure of a name that no tool has.
    #[must_use]
    pub fn unknown(name: &str) -> Self {
        Self {
            terminal: Some(false),
            needs_followup: Some(false),
            error: Some(format!("Unknown tool: {name}")),
            ..Self::empty()
        }
    }

    /// The same with a member more in its data.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.data.get_or_insert_with(Map::new).insert(key.to_owned(), value.into());
        self
    }

    fn empty() -> Self {
        Self {
            success: false,
            terminal: None,
            needs_followup: None,
            next_action: None,
            message: None,
            error: None,
            data: None,
        }
    }
}
