//! Using a panel: what is checked before the extension hears of it, and what may come back.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::notice::{ToastDraft, ToastLevel};
use super::panel::{Action, InputKind, MAX_INPUT_TEXT, PanelPatch};
use super::registry::{Panels, Waking};
use super::snapshot::PanelKey;
use super::text::Flaw;
use crate::protocol::words::words;

/// The largest result of an action, in bytes.
pub const MAX_RESULT_BYTES: usize = 256 * 1024;

/// Why an action was not begun. The extension has not heard of it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvokeError {
    /// There is no such panel.
    #[error("there is no panel `{panel}`")]
    NoPanel {
        /// Which.
        panel: PanelKey,
    },
    /// The panel has no such action.
    #[error("the panel has no action `{action}`")]
    NoAction {
        /// Which.
        action: String,
    },
    /// The input is not what the action asks for.
    #[error("the input is not what the action asks for: {why}")]
    BadInput {
        /// What is wrong with it.
        why: String,
    },
    /// Another action of the panel runs.
    #[error("another action of the panel is running")]
    Busy,
    /// The extension does not run.
    #[error("the extension is not running")]
    Dormant {
        /// Whether it is to be started now.
        waking: Waking,
    },
    /// The extension cannot be used now.
    #[error("the panel cannot be used: {reason}")]
    Unavailable {
        /// Why.
        reason: String,
    },
}

/// An action is running. The panel is free again when this goes.
#[derive(Debug)]
pub struct Busy {
    panels: Arc<Panels>,
    key: PanelKey,
    invocation: u64,
}

impl Busy {
    pub(super) fn new(panels: Arc<Panels>, key: PanelKey, invocation: u64) -> Self {
        Self { panels, key, invocation }
    }

    /// The panel.
    #[must_use]
    pub fn key(&self) -> &PanelKey {
        &self.key
    }

    /// A number that no other invocation of this host has.
    #[must_use]
    pub fn invocation(&self) -> u64 {
        self.invocation
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.panels.end(&self.key, self.invocation);
    }
}

pub(super) fn check_input(action: &Action, input: Option<&str>) -> Result<(), InvokeError> {
    let bad = |why: &str| Err(InvokeError::BadInput { why: why.to_owned() });
    let (kind, declared) = match &action.input {
        None => (InputKind::None, None),
        Some(declared) => (declared.kind, Some(declared)),
    };
    match (kind, input) {
        (InputKind::None, None) => Ok(()),
        (InputKind::None, Some(_)) => bad("it takes none"),
        (InputKind::Text | InputKind::Select, None) => bad("it needs one"),
        (InputKind::Text, Some(text)) => {
            let most = declared.and_then(|declared| declared.max_length).unwrap_or(MAX_INPUT_TEXT);
            if text.chars().count() > most as usize {
                return bad(&format!("it is longer than {most} characters"));
            }
            if text.contains('\0') {
                return bad("it contains NUL");
            }
            Ok(())
        }
        (InputKind::Select, Some(choice)) => {
            let options = declared.and_then(|declared| declared.options.as_deref()).unwrap_or_default();
            if options.iter().any(|option| option == choice) {
                return Ok(());
            }
            bad("it is none of the options")
        }
    }
}

words! {
    /// How an action went.
    Outcome ("outcome") {
        /// Well.
        Ok = "ok",
        /// Not well; a notice may say why.
        Error = "error",
    }
}

/// What an action returned, checked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ActionReport {
    /// How it went.
    pub outcome: Outcome,
    /// Something to show for a moment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub toast: Option<ToastDraft>,
    /// What changes about the panel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub panel: Option<PanelPatch>,
}

/// Why what an action returned cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadReport {
    /// More than [`MAX_RESULT_BYTES`].
    #[error("the result has {length} bytes; the limit is {MAX_RESULT_BYTES}")]
    TooLong {
        /// How many.
        length: usize,
    },
    /// It does not have the form of a result.
    #[error("the result does not have its form: {0}")]
    Shape(String),
    /// Something in it may not be shown.
    #[error("the result has a flaw at `{}`: {}", .0.path, .0.reason)]
    Flaw(Flaw),
}

#[derive(Deserialize)]
struct Wire {
    outcome: Outcome,
    #[serde(default)]
    toast: Option<WireToast>,
    #[serde(default)]
    panel: Option<PanelPatch>,
}

#[derive(Deserialize)]
struct WireToast {
    message: String,
    level: ToastLevel,
}

impl ActionReport {
    /// Reads and checks what an action returned. Members that are not known are ignored, as in every answer.
    pub fn read(result: &RawValue) -> Result<Self, BadReport> {
        let text = result.get();
        if text.len() > MAX_RESULT_BYTES {
            return Err(BadReport::TooLong { length: text.len() });
        }
        let wire: Wire = serde_json::from_str(text).map_err(|error| BadReport::Shape(error.to_string()))?;
        let first = |flaws: Vec<Flaw>, below: &str| match flaws.into_iter().next() {
            Some(flaw) => BadReport::Flaw(Flaw { path: format!("{below}{}", flaw.path), ..flaw }),
            None => BadReport::Shape(below.to_owned()),
        };
        let toast = wire.toast.map(|toast| ToastDraft::new(toast.message, toast.level));
        if let Some(toast) = &toast {
            toast.check().map_err(|flaws| first(flaws, "/toast"))?;
        }
        if let Some(panel) = &wire.panel {
            panel.check().map_err(|flaws| first(flaws, "/panel"))?;
        }
        Ok(Self { outcome: wire.outcome, toast, panel: wire.panel })
    }
}
