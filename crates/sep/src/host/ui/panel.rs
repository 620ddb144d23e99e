//! What an extension says about a panel: title, place, actions. Declared by the extension, checked here, drawn by the host.

use serde::{Deserialize, Serialize};

use super::node::{Node, check_content};
use super::text::{Flaw, Flaws, TextRule};
use crate::protocol::Slot;
use crate::protocol::words::words;

/// The icons that a panel may name. The host has a picture for each.
pub const ICONS: [&str; 24] = [
    "alert", "bell", "book", "bot", "box", "calendar", "chart", "chat", "clock", "code", "contact", "file",
    "gear", "globe", "heart", "info", "list", "lock", "mail", "map", "puzzle", "radio", "search", "star",
];

/// The most actions that any panel may have; trust may allow fewer.
pub const MAX_ACTIONS: usize = 16;
/// The longest text that an action may ask for, in code points.
pub const MAX_INPUT_TEXT: u32 = 2048;
/// The highest `order`.
pub const MAX_ORDER: u32 = 1000;
/// The `order` of a panel that names none.
pub const USUAL_ORDER: u32 = 500;

words! {
    /// How an action's button looks.
    ActionStyle ("style") {
        /// The one that is meant to be used.
        Primary = "primary",
        /// Any other.
        Secondary = "secondary",
        /// It destroys something.
        Danger = "danger",
    }
}

words! {
    /// What an action asks for before it runs.
    InputKind ("kind of input") {
        /// Nothing.
        None = "none",
        /// A text.
        Text = "text",
        /// One of a few words.
        Select = "select",
    }
}

/// A panel as an extension registers it (`host.ui.register_tool_panel`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PanelDraft {
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
    /// Lower comes first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<u32>,
    /// What can be done with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actions: Option<Vec<Action>>,
}

/// What changes about a panel (`host.ui.update_tool_panel`, or what an action returned). Absent means unchanged.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PanelPatch {
    /// What people see.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// What can be done with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actions: Option<Vec<Action>>,
    /// What it shows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<Vec<Node>>,
}

/// Something that people can do with a panel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Action {
    /// Its name within the panel.
    pub id: String,
    /// What the button says.
    pub label: String,
    /// How the button looks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub style: Option<ActionStyle>,
    /// A question to be answered before it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirm: Option<String>,
    /// What it asks for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Input>,
}

/// What an action asks for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Input {
    /// What sort of thing.
    pub kind: InputKind,
    /// What stands beside the field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// The longest text, in code points.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_length: Option<u32>,
    /// What can be chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub options: Option<Vec<String>>,
}

const TITLE: TextRule = TextRule::line(1, 80);
const DESCRIPTION: TextRule = TextRule::lines(0, 256);
const LABEL: TextRule = TextRule::line(1, 40);
const CONFIRM: TextRule = TextRule::line(0, 160);
const OPTION: TextRule = TextRule::line(1, 80);
const MAX_OPTIONS: usize = 32;
const MAX_PANEL_ID: usize = 128;
const MAX_ACTION_ID: usize = 64;

impl PanelDraft {
    /// Checks all that does not depend on what else there is.
    pub fn check(&self) -> Result<(), Vec<Flaw>> {
        let mut flaws = Flaws::default();
        if !is_panel_id(&self.id) {
            flaws.add("/id", "not lower-case words joined by `.`, `_` or `-`, 1 to 128 bytes");
        }
        flaws.text("/title", &self.title, TITLE);
        if let Some(description) = &self.description {
            flaws.text("/description", description, DESCRIPTION);
        }
        if self.icon.as_deref().is_some_and(|icon| !ICONS.contains(&icon)) {
            flaws.add("/icon", format!("not one of {}", ICONS.join(", ")));
        }
        if self.order.is_some_and(|order| order > MAX_ORDER) {
            flaws.add("/order", format!("more than {MAX_ORDER}"));
        }
        check_actions(&mut flaws, self.actions.as_deref().unwrap_or_default());
        flaws.into_result()
    }
}

impl PanelPatch {
    /// Checks all that does not depend on what else there is.
    pub fn check(&self) -> Result<(), Vec<Flaw>> {
        let mut flaws = Flaws::default();
        if let Some(title) = &self.title {
            flaws.text("/title", title, TITLE);
        }
        if let Some(description) = &self.description {
            flaws.text("/description", description, DESCRIPTION);
        }
        check_actions(&mut flaws, self.actions.as_deref().unwrap_or_default());
        if let Some(content) = &self.content {
            check_content(&mut flaws, "/content", content);
        }
        flaws.into_result()
    }
}

fn check_actions(flaws: &mut Flaws, actions: &[Action]) {
    if actions.len() > MAX_ACTIONS {
        flaws.add("/actions", format!("more than {MAX_ACTIONS}"));
        return;
    }
    for (index, action) in actions.iter().enumerate() {
        let path = format!("/actions/{index}");
        if !is_action_id(&action.id) {
            flaws.add(format!("{path}/id"), "not 1 to 64 of a-z, 0-9, `.`, `_`, `-`");
        } else if actions[..index].iter().any(|earlier| earlier.id == action.id) {
            flaws.add(format!("{path}/id"), "another action has it");
        }
        flaws.text(&format!("{path}/label"), &action.label, LABEL);
        if let Some(confirm) = &action.confirm {
            flaws.text(&format!("{path}/confirm"), confirm, CONFIRM);
        }
        if let Some(input) = &action.input {
            check_input(flaws, &format!("{path}/input"), input);
        }
    }
}

fn check_input(flaws: &mut Flaws, path: &str, input: &Input) {
    if let Some(label) = &input.label {
        flaws.text(&format!("{path}/label"), label, TextRule::line(0, 40));
    }
    if input.max_length.is_some_and(|length| length > MAX_INPUT_TEXT) {
        flaws.add(format!("{path}/maxLength"), format!("more than {MAX_INPUT_TEXT}"));
    }
    let options = input.options.as_deref().unwrap_or_default();
    match input.kind {
        InputKind::Select if options.is_empty() => flaws.add(format!("{path}/options"), "there are none"),
        InputKind::Select => {}
        InputKind::None | InputKind::Text if !options.is_empty() => {
            flaws.add(format!("{path}/options"), "only a `select` has options");
        }
        InputKind::None | InputKind::Text => {}
    }
    if options.len() > MAX_OPTIONS {
        flaws.add(format!("{path}/options"), format!("more than {MAX_OPTIONS}"));
        return;
    }
    for (index, option) in options.iter().enumerate() {
        flaws.text(&format!("{path}/options/{index}"), option, OPTION);
    }
}

/// Whether `id` can name a panel, in a manifest or later.
#[must_use]
pub fn is_panel_id(id: &str) -> bool {
    let is_word = |part: &str| {
        !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    };
    id.len() <= MAX_PANEL_ID && id.split(['.', '_', '-']).all(is_word)
}

fn is_action_id(id: &str) -> bool {
    let is_right =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'.' | b'_' | b'-');
    (1..=MAX_ACTION_ID).contains(&id.len()) && id.bytes().all(is_right)
}
