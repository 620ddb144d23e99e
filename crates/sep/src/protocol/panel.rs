//! Panels and what is in them. Text only: the host draws it, and nothing in it is markup or a link.

use serde::{Deserialize, Serialize};

use super::Slot;
use super::words::words;

/// The most actions that any panel may have.
pub const MAX_ACTIONS: usize = 16;
/// The most nodes of one panel, those inside of lists counted.
pub const MAX_NODES: usize = 100;
/// How deep lists may nest; a node that is not in a list is one deep.
pub const MAX_NODE_DEPTH: usize = 3;
/// The longest text of a node, in code points.
pub const MAX_NODE_TEXT: usize = 1024;

/// The names of the pictures that a host can draw.
pub const ICONS: &[&str] = &[
    "bell", "book", "calendar", "chart", "chat", "check", "clock", "cloud", "code", "cog", "compass",
    "contact", "database", "download", "file", "filter", "flag", "folder", "globe", "heart", "home", "image",
    "info", "key", "link", "list", "lock", "mail", "map", "message", "mesh", "moon", "music", "network",
    "note", "pause", "play", "plug", "power", "puzzle", "radio", "refresh", "robot", "search", "send",
    "shield", "signal", "star", "sun", "tag", "terminal", "tool", "trash", "upload", "user", "users",
    "warning", "wifi",
];

words! {
    /// How an action looks.
    ActionStyle ("style of an action") {
        /// The one that is meant.
        Primary = "primary",
        /// One of several.
        Secondary = "secondary",
        /// One that cannot be undone.
        Danger = "danger",
    }
}

words! {
    /// What a person enters with an action.
    InputKind ("kind of input") {
        /// Nothing.
        None = "none",
        /// A line of text.
        Text = "text",
        /// One of several options.
        Select = "select",
    }
}

words! {
    /// How a badge or a notice is meant.
    Level ("level") {
        /// Neither good nor bad.
        Info = "info",
        /// Good.
        Success = "success",
        /// To be looked at.
        Warning = "warning",
        /// Bad.
        Error = "error",
    }
}

/// A panel, as an extension registers it: the params of `host.ui.register_tool_panel`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PanelSpec {
    /// Its name within the extension.
    pub id: String,
    /// What people see.
    pub title: String,
    /// Where.
    pub slot: Slot,
    /// What it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// One of [`ICONS`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub icon: Option<String>,
    /// Its place among others, 0 to 1000.
    #[serde(default = "PanelSpec::usual_order")]
    pub order: u16,
    /// What can be done with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub actions: Vec<ActionSpec>,
}

impl PanelSpec {
    /// The place of a panel that has no wish.
    #[must_use]
    pub const fn usual_order() -> u16 {
        500
    }
}

/// Something that can be done with a panel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActionSpec {
    /// Its name within the panel.
    pub id: String,
    /// What people see.
    pub label: String,
    /// How it looks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub style: Option<ActionStyle>,
    /// What people are asked before it happens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirm: Option<String>,
    /// What people enter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<InputSpec>,
}

/// What a person enters with an action.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InputSpec {
    /// What sort.
    pub kind: InputKind,
    /// What people see beside it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// How long a text may be, in code points.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_length: Option<u32>,
    /// What can be chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub options: Option<Vec<String>>,
}

/// What changes in a panel: the params of `host.ui.update_tool_panel`, and the `panel` of the result of an action. What is
/// absent stays as it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PanelUpdate {
    /// Which panel of the extension.
    pub id: String,
    /// A new title.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// A new description.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// All actions, anew.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actions: Option<Vec<ActionSpec>>,
    /// The whole content, anew.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<Vec<Node>>,
}

/// A piece of the content of a panel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum Node {
    /// A paragraph.
    Text {
        /// The text.
        text: String,
    },
    /// A name and its value.
    Kv {
        /// The name.
        key: String,
        /// The value.
        value: String,
    },
    /// A word that stands out.
    Badge {
        /// The word.
        text: String,
        /// How it is meant.
        level: Level,
    },
    /// Nodes below each other.
    List {
        /// The nodes.
        items: Vec<Node>,
    },
    /// How far something has come.
    Progress {
        /// What.
        label: String,
        /// From 0 to 100.
        percent: f64,
    },
    /// A line between others.
    Separator,
}
