//! Everything that is in the slots at one moment, in the order in which it is shown.

use std::fmt;

use serde::{Serialize, Serializer, ser::SerializeMap};

use super::node::Node;
use super::panel::{Action, is_panel_id};
use crate::protocol::words::words;
use crate::protocol::{ExtensionId, Slot, TrustLevel};

words! {
    /// What can be done with a panel now.
    PanelState ("state of a panel") {
        /// Its extension does not run; the panel comes from the manifest.
        Dormant = "dormant",
        /// It can be used.
        Active = "active",
        /// One of its actions runs.
        Busy = "busy",
        /// Its extension is gone, and may come back.
        Unavailable = "unavailable",
    }
}

/// The name of a panel among all panels: `<extension>/<panel>`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PanelKey {
    extension: ExtensionId,
    panel: Box<str>,
}

/// Why a text is not the name of a panel.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}` is not the name of a panel: an extension and a panel are needed, as in `org.example.notes/main`"
)]
pub struct BadPanelKey {
    /// The text, cut and escaped.
    pub text: String,
}

impl PanelKey {
    /// The key of a panel.
    #[must_use]
    pub fn new(extension: &ExtensionId, panel: &str) -> Self {
        Self { extension: extension.clone(), panel: panel.into() }
    }

    /// Reads `<extension>/<panel>`.
    pub fn parse(text: &str) -> Result<Self, BadPanelKey> {
        let bad = || BadPanelKey { text: text.escape_debug().take(300).collect() };
        let (extension, panel) = text.split_once('/').ok_or_else(bad)?;
        let extension = ExtensionId::new(extension).map_err(|_| bad())?;
        if is_panel_id(panel) { Ok(Self { extension, panel: panel.into() }) } else { Err(bad()) }
    }

    /// Whose panel it is.
    #[must_use]
    pub fn extension(&self) -> &ExtensionId {
        &self.extension
    }

    /// Its name within the extension.
    #[must_use]
    pub fn panel(&self) -> &str {
        &self.panel
    }
}

impl fmt::Display for PanelKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.extension, self.panel)
    }
}

impl fmt::Debug for PanelKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PanelKey({self})")
    }
}

impl Serialize for PanelKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// All panels at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct UiSnapshot {
    /// The panels by slot; every slot is there.
    pub slots: Slots,
    /// Grows with every change that can be seen.
    pub revision: u64,
}

/// The panels of each slot, sorted by order, extension and panel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Slots {
    /// The main column.
    pub primary: Vec<PanelView>,
    /// The side column.
    pub secondary: Vec<PanelView>,
    /// Behind "advanced".
    pub advanced: Vec<PanelView>,
}

impl Slots {
    /// The panels of one slot.
    #[must_use]
    pub fn of(&self, slot: Slot) -> &[PanelView] {
        match slot {
            Slot::Primary => &self.primary,
            Slot::Secondary => &self.secondary,
            Slot::Advanced => &self.advanced,
        }
    }

    /// All panels, slot by slot.
    pub fn iter(&self) -> impl Iterator<Item = (Slot, &PanelView)> {
        Slot::ALL.iter().flat_map(|slot| self.of(*slot).iter().map(|panel| (*slot, panel)))
    }

    pub(super) fn of_mut(&mut self, slot: Slot) -> &mut Vec<PanelView> {
        match slot {
            Slot::Primary => &mut self.primary,
            Slot::Secondary => &mut self.secondary,
            Slot::Advanced => &mut self.advanced,
        }
    }
}

impl Serialize for Slots {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(Slot::ALL.len()))?;
        for slot in Slot::ALL {
            map.serialize_entry(slot, self.of(*slot))?;
        }
        map.end()
    }
}

/// One panel as it is shown. Name and trust of its extension are always part of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PanelView {
    /// Its name among all panels.
    pub panel_key: PanelKey,
    /// Whose it is.
    pub extension_id: ExtensionId,
    /// What people call that extension.
    pub extension_name: String,
    /// How far it is trusted.
    pub trust_level: TrustLevel,
    /// What people see.
    pub title: String,
    /// What it is for.
    pub description: Option<String>,
    /// Its picture.
    pub icon: Option<String>,
    /// Lower comes first.
    pub order: u32,
    /// What can be done with it now.
    pub state: PanelState,
    /// Why it cannot be used, when it cannot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What can be done with it.
    pub actions: Vec<Action>,
    /// What it shows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<Vec<Node>>,
}

impl PanelView {
    pub(super) fn rank(&self) -> (u32, &ExtensionId, &str) {
        (self.order, &self.extension_id, self.panel_key.panel())
    }
}
