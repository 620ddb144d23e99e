//! `todo_write`: the model's own list of things to do, which keeps it on track and shows people where it is.

use std::sync::{Arc, Mutex, PoisonError};

use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::arguments::Arguments;
use super::tool::{Mode, Place, Tool, Turns};
use crate::chat::{BoxFuture, ToolResult, ToolSpec};

/// The most items of a list.
const MAX_ITEMS: usize = 200;

/// The most characters of an item.
const MAX_ITEM_CHARS: usize = 2000;

/// A list that tools and whoever shows it share.
#[derive(Clone, Debug, Default)]
pub struct TodoList(Arc<Mutex<Vec<TodoItem>>>);

/// One thing to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TodoItem {
    /// What.
    pub content: String,
    /// How far it is.
    pub status: TodoStatus,
}

/// How far a thing is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TodoStatus {
    /// Not begun.
    Pending,
    /// Begun.
    InProgress,
    /// Done.
    Completed,
}

impl TodoStatus {
    /// The word in arguments and results.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::InProgress => "in_progress",
            Self::Completed => "completed",
        }
    }

    fn from_word(word: &str) -> Option<Self> {
        [Self::Pending, Self::InProgress, Self::Completed].into_iter().find(|status| status.word() == word)
    }
}

impl TodoList {
    /// What is on it now.
    #[must_use]
    pub fn items(&self) -> Vec<TodoItem> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn replace(&self, items: Vec<TodoItem>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = items;
    }
}

pub(super) struct TodoWrite {
    spec: ToolSpec,
}

impl TodoWrite {
    pub(super) fn new() -> Self {
        let parameters = json!({
            "type": "object",
            "properties": {
                "items": {
                    "type": "array",
                    "maxItems": MAX_ITEMS,
                    "description": "The complete list; it replaces the one before.",
                    "items": {
                        "type": "object",
                        "properties": {
                            "content": {"type": "string", "minLength": 1, "maxLength": MAX_ITEM_CHARS},
                            "status": {"type": "string", "enum": ["pending", "in_progress", "completed"]},
                        },
                        "required": ["content", "status"],
                        "additionalProperties": false,
                    },
                },
            },
            "required": ["items"],
            "additionalProperties": false,
        });
        let description = "Writes down the things to do in this task and how far each is. Use it for work of several \
                           steps: write the whole list at the start, and again whenever a status changes.";
        Self { spec: super::toolbox::spec("todo_write", description, &parameters) }
    }
}

impl Tool for TodoWrite {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    /// The list is the model's own notes: nobody needs to be asked about them.
    fn mode(&self) -> Mode {
        Mode::Read
    }

    fn turns(&self) -> Turns {
        Turns::Alone
    }

    fn invoke<'a>(&'a self, arguments: &'a RawValue, at: &'a Place) -> BoxFuture<'a, ToolResult> {
        Box::pin(async move {
            match Arguments::read(&self.spec, arguments) {
                Ok(arguments) => write(&arguments, &at.todo),
                Err(refused) => refused,
            }
        })
    }
}

fn write(arguments: &Arguments, list: &TodoList) -> ToolResult {
    let given = arguments.array("items");
    let items: Vec<TodoItem> = given.iter().filter_map(item).collect();
    let left = items.iter().filter(|item| item.status != TodoStatus::Completed).count();
    let count = items.len();
    list.replace(items);
    let mut data = Map::new();
    data.insert("items".into(), Value::from(given));
    ToolResult::success(data).with("total", count).with("left", left)
}

fn item(value: &Value) -> Option<TodoItem> {
    let content = value.get("content")?.as_str()?.to_owned();
    let status = TodoStatus::from_word(value.get("status")?.as_str()?)?;
    Some(TodoItem { content, status })
}
