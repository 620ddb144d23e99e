//! What a tool is, where it runs, and how dangerous it is: the words that every other file of this room uses.

use std::sync::Arc;

use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

use super::grants::Grants;
use super::todo::TodoList;
use crate::chat::{BoxFuture, ToolCall, ToolResult, ToolSpec};

/// Something that a model can call.
pub trait Tool: Send + Sync {
    /// What the model is told.
    fn spec(&self) -> &ToolSpec;

    /// How dangerous a call is.
    fn mode(&self) -> Mode;

    /// Whether several calls may run at the same time.
    fn turns(&self) -> Turns;

    /// Makes a call. Whatever goes wrong is told by the result; dropping the future stops the call and everything that it
    /// started.
    fn invoke<'a>(&'a self, arguments: &'a RawValue, at: &'a Place) -> BoxFuture<'a, ToolResult>;
}

/// How dangerous a call is, which decides whether somebody is asked first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mode {
    /// It only looks.
    Read,
    /// It changes something that can be changed back.
    SafeWrite,
    /// It can do what cannot be undone.
    Destructive,
    /// Nobody knows.
    Other,
}

impl Mode {
    /// The word on the wire.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::SafeWrite => "safe_write",
            Self::Destructive => "destructive",
            Self::Other => "other",
        }
    }

    /// The mode of a word.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        let all = [Self::Read, Self::SafeWrite, Self::Destructive, Self::Other];
        all.into_iter().find(|mode| mode.word() == word)
    }
}

/// Whether several calls may run at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turns {
    /// Beside other calls that say the same.
    Together,
    /// Alone, in the order in which the model wrote them.
    Alone,
}

/// The mode of a tool that does not state its own, by its name.
#[must_use]
pub fn mode_of(name: &str) -> Mode {
    let name = name.to_ascii_lowercase();
    let begins = |prefixes: &[&str]| prefixes.iter().any(|prefix| name.starts_with(prefix));
    match name.as_str() {
        "web_fetch" | "web_search" => Mode::Read,
        "run_command" => Mode::Destructive,
        _ if begins(&["get_", "list_", "read_", "search_"]) => Mode::Read,
        _ if begins(&["create_", "update_", "set_", "write_", "edit_", "apply_"]) => Mode::SafeWrite,
        _ if begins(&["delete_", "drop_", "remove_", "destroy_"]) => Mode::Destructive,
        _ => Mode::Other,
    }
}

/// Where a call is made: what it may touch, and whom it can turn to.
#[derive(Clone)]
pub struct Place {
    /// What it may touch.
    pub grants: Arc<Grants>,
    /// How a script calls other tools: judged, counted and traced like calls of the model.
    pub dispatch: Arc<dyn Dispatch>,
    /// Fires when the turn is cancelled. Dropping the future of the call does the same; tools that keep something alive
    /// beyond a call look at this.
    pub cancel: CancellationToken,
    /// The turn's list of things to do.
    pub todo: TodoList,
}

/// Calls tools on behalf of another one.
pub trait Dispatch: Send + Sync {
    /// The names that can be called.
    fn names(&self) -> Vec<String>;

    /// Makes a call.
    fn call(&self, call: ToolCall) -> BoxFuture<'_, ToolResult>;
}

/// A dispatch that knows no tool.
#[derive(Clone, Copy, Debug)]
pub struct NoDispatch;

impl Dispatch for NoDispatch {
    fn names(&self) -> Vec<String> {
        Vec::new()
    }

    fn call(&self, call: ToolCall) -> BoxFuture<'_, ToolResult> {
        Box::pin(async move { ToolResult::unknown(&call.name) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_how_dangerous_a_tool_is() {
        let table = [
            ("get_weather", Mode::Read),
            ("List_files", Mode::Read),
            ("search_files", Mode::Read),
            ("web_fetch", Mode::Read),
            ("web_fetch_all", Mode::Other),
            ("write_file", Mode::SafeWrite),
            ("edit_file", Mode::SafeWrite),
            ("apply_patch", Mode::SafeWrite),
            ("delete_file", Mode::Destructive),
            ("run_command", Mode::Destructive),
            ("run_script", Mode::Other),
            ("budget_get", Mode::Other),
            ("", Mode::Other),
        ];
        for (name, mode) in table {
            assert_eq!(mode_of(name), mode, "{name}");
            assert_eq!(Mode::from_word(mode.word()), Some(mode));
        }
        assert_eq!(Mode::from_word("Read"), None);
    }
}
