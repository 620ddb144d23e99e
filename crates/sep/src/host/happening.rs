//! What happens in a fleet, for whoever listens.

use serde::Serialize;

use super::channel::now_ms;
use super::life::{Transition, View};
use super::view::Exit;
use crate::protocol::{ExtensionId, State};

/// Something that happened in the fleet.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase", tag = "event")]
pub enum Happening {
    /// An extension came from one state to another.
    #[serde(rename_all = "camelCase")]
    Changed {
        /// When, since the epoch.
        time_ms: u64,
        /// Which.
        ext: Option<ExtensionId>,
        /// The state that ended.
        from: State,
        /// The state that began.
        to: State,
        /// What made it so.
        cause: String,
        /// What is known beyond that.
        detail: Option<String>,
    },
    /// A process of an extension ended.
    #[serde(rename_all = "camelCase")]
    Ended {
        /// Which.
        ext: Option<ExtensionId>,
        /// How.
        exit: Exit,
    },
    /// Folders were looked at.
    #[serde(rename_all = "camelCase")]
    Scanned {
        /// When, since the epoch.
        time_ms: u64,
        /// How many there are.
        found: usize,
        /// Those that are new or different.
        changed: Vec<ExtensionId>,
        /// Those that are gone.
        removed: Vec<ExtensionId>,
    },
}

impl Happening {
    pub(super) fn changed(ext: Option<&ExtensionId>, transition: &Transition, view: &View) -> Self {
        let Transition { from, to, cause } = transition.clone();
        Self::Changed { time_ms: now_ms(), ext: ext.cloned(), from, to, cause, detail: view.detail.clone() }
    }

    pub(super) fn ended(ext: Option<&ExtensionId>, exit: &Exit) -> Self {
        Self::Ended { ext: ext.cloned(), exit: exit.clone() }
    }
}

/// What a look at the folders found.
#[derive(Clone, Debug, Serialize)]
pub struct Scan {
    /// How many there are.
    pub found: usize,
    /// Those that are new or different.
    pub changed: Vec<ExtensionId>,
    /// Those that are gone.
    pub removed: Vec<ExtensionId>,
}
