//! Panels on the wire. Their parts are the types of the room that draws them, so that there is one definition of each.

use serde::{Deserialize, Serialize};

pub use crate::host::ui::{
    Action, ActionStyle, ICONS, Input, InputKind, Node, PanelDraft, PanelPatch, Row, ToastFate, ToastLevel,
    Tone,
};

/// The params of `host.ui.update_tool_panel`. What is absent stays as it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UpdatePanel {
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
    pub actions: Option<Vec<Action>>,
    /// The whole content, anew.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<Vec<Node>>,
}

impl UpdatePanel {
    /// The change of the panel `id`.
    #[must_use]
    pub fn new(id: &str, patch: PanelPatch) -> Self {
        let PanelPatch { title, description, actions, content } = patch;
        Self { id: id.to_owned(), title, description, actions, content }
    }
}
