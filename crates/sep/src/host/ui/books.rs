//! The books of the registry: every panel with where it comes from, and what the life of its extension makes of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::node::Node;
use super::panel::{Action, PanelDraft, PanelPatch, USUAL_ORDER};
use super::registry::{Owner, RegisterError, Waking};
use super::snapshot::{PanelKey, PanelState, PanelView, Slots, UiSnapshot};
use super::text::{Flaw, clean};
use crate::manifest::PanelClaim;
use crate::protocol::{ExtensionId, Slot, TrustLevel};

#[derive(Debug, Default)]
pub(super) struct Books {
    pub(super) owners: BTreeMap<ExtensionId, Entry>,
    pub(super) revision: u64,
    /// The last snapshot, while it is still right.
    pub(super) snapshot: Option<Arc<UiSnapshot>>,
}

#[derive(Debug)]
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) trust: TrustLevel,
    pub(super) max_panels: usize,
    pub(super) max_actions: usize,
    pub(super) waking: Waking,
    pub(super) standing: Standing,
    pub(super) panels: BTreeMap<String, Panel>,
}

/// What the extension itself does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    Dormant,
    Active,
    /// Its session goes on, and nobody can use it.
    Suspended(String),
    Unavailable(String),
}

#[derive(Debug)]
pub(super) struct Panel {
    pub(super) title: String,
    pub(super) slot: Slot,
    pub(super) description: Option<String>,
    pub(super) icon: Option<String>,
    pub(super) order: u32,
    pub(super) actions: Vec<Action>,
    pub(super) content: Option<Vec<Node>>,
    pub(super) origin: Origin,
    pub(super) registered: Registered,
    /// The action that runs, by the number of its invocation.
    pub(super) running: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// It is there before the extension runs; this is its title then.
    Manifest(String),
    Session,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Registered {
    ThisSession,
    Earlier,
    Never,
}

impl Books {
    pub(super) fn admit(&mut self, owner: &Owner<'_>) {
        let known = self.owners.remove(owner.id);
        let (standing, mut old) = match known {
            Some(entry) => (entry.standing, entry.panels),
            None => (Standing::Dormant, BTreeMap::new()),
        };
        let mut panels = BTreeMap::new();
        for claim in owner.claims.iter().take(owner.limits.panels) {
            let kept = old.remove(&claim.id).filter(|panel| panel.slot == claim.slot);
            let mut panel = kept.unwrap_or_else(|| Panel::of_manifest(claim));
            let title = clean(&claim.title, 80);
            if panel.registered == Registered::Never {
                panel.title.clone_from(&title);
            }
            panel.origin = Origin::Manifest(title);
            panels.insert(claim.id.clone(), panel);
        }
        for (id, panel) in old {
            if panel.origin == Origin::Session && panels.len() < owner.limits.panels {
                panels.insert(id, panel);
            }
        }
        let entry = Entry {
            name: clean(owner.name, 80),
            trust: owner.trust,
            max_panels: owner.limits.panels,
            max_actions: owner.limits.actions_per_panel,
            waking: owner.waking,
            standing,
            panels,
        };
        self.owners.insert(owner.id.clone(), entry);
    }

    pub(super) fn draw(&self) -> UiSnapshot {
        let mut slots = Slots::default();
        for (id, entry) in &self.owners {
            for (panel_id, panel) in &entry.panels {
                let Some((state, reason)) = entry.state(panel_id) else { continue };
                slots.of_mut(panel.slot).push(PanelView {
                    panel_key: PanelKey::new(id, panel_id),
                    extension_id: id.clone(),
                    extension_name: entry.name.clone(),
                    trust_level: entry.trust,
                    title: panel.title.clone(),
                    description: panel.description.clone(),
                    icon: panel.icon.clone(),
                    order: panel.order,
                    state,
                    reason: (!reason.is_empty()).then_some(reason),
                    actions: panel.actions.clone(),
                    content: panel.content.clone(),
                });
            }
        }
        for slot in Slot::ALL {
            slots.of_mut(*slot).sort_by(|one, other| one.rank().cmp(&other.rank()));
        }
        UiSnapshot { slots, revision: self.revision }
    }
}

impl Entry {
    /// A new standing of the extension. All but being ready end its session.
    pub(super) fn stand(&mut self, standing: Standing) {
        let had_session = matches!(self.standing, Standing::Active | Standing::Suspended(_));
        match &standing {
            Standing::Active | Standing::Suspended(_) => {}
            Standing::Dormant => {
                self.panels.retain(|_, panel| panel.origin != Origin::Session);
                self.end_session();
            }
            Standing::Unavailable(_) => {
                // What the session that ends did not register is what an earlier one left behind.
                if had_session {
                    self.panels.retain(|_, panel| !panel.is_left_over());
                }
                self.end_session();
            }
        }
        self.standing = standing;
    }

    /// What was registered and what runs belongs to a session that is over.
    pub(super) fn end_session(&mut self) {
        for panel in self.panels.values_mut() {
            panel.running = None;
            if panel.registered == Registered::ThisSession {
                panel.registered = Registered::Earlier;
            }
        }
    }

    pub(super) fn state(&self, id: &str) -> Option<(PanelState, String)> {
        let panel = self.panels.get(id)?;
        Some(match &self.standing {
            Standing::Dormant if panel.origin == Origin::Session => {
                (PanelState::Unavailable, "its extension is starting".to_owned())
            }
            Standing::Dormant => (PanelState::Dormant, String::new()),
            Standing::Suspended(reason) | Standing::Unavailable(reason) => {
                (PanelState::Unavailable, reason.clone())
            }
            Standing::Active if panel.is_left_over() => {
                (PanelState::Unavailable, "its extension was started again".to_owned())
            }
            Standing::Active if panel.running.is_some() => (PanelState::Busy, String::new()),
            Standing::Active => (PanelState::Active, String::new()),
        })
    }

    /// The panel, if the session may change it: its own, or one of the manifest.
    pub(super) fn live(&mut self, id: &str) -> Option<&mut Panel> {
        self.panels.get_mut(id).filter(|panel| {
            panel.registered == Registered::ThisSession || matches!(panel.origin, Origin::Manifest(_))
        })
    }

    pub(super) fn register(&mut self, draft: PanelDraft) -> Result<(), RegisterError> {
        let actions = draft.actions.unwrap_or_default();
        if actions.len() > self.max_actions {
            return Err(RegisterError::Quota { quota: "actions", limit: self.max_actions });
        }
        let known = self.panels.get(&draft.id);
        match known {
            Some(panel) if panel.registered == Registered::ThisSession => {
                return Err(RegisterError::Conflict { id: draft.id });
            }
            Some(panel) if matches!(panel.origin, Origin::Manifest(_)) && panel.slot != draft.slot => {
                let reason = format!("the manifest puts this panel into `{}`", panel.slot);
                return Err(RegisterError::Invalid(vec![Flaw { path: "/slot".to_owned(), reason }]));
            }
            Some(_) => {}
            None if self.panels.len() >= self.max_panels => {
                // One that an earlier session left behind makes room for one of this session.
                let left_over = |(id, panel): (&String, &Panel)| panel.is_left_over().then(|| id.clone());
                let Some(room) = self.panels.iter().find_map(left_over) else {
                    return Err(RegisterError::Quota { quota: "panels", limit: self.max_panels });
                };
                self.panels.remove(&room);
            }
            None => {}
        }
        let origin = self.panels.get(&draft.id).map_or(Origin::Session, |panel| panel.origin.clone());
        let panel = Panel {
            title: draft.title,
            slot: draft.slot,
            description: draft.description,
            icon: draft.icon,
            order: draft.order.unwrap_or(USUAL_ORDER),
            actions,
            content: None,
            origin,
            registered: Registered::ThisSession,
            running: None,
        };
        self.panels.insert(draft.id, panel);
        Ok(())
    }
}

impl Panel {
    fn of_manifest(claim: &PanelClaim) -> Self {
        let title = clean(&claim.title, 80);
        Self {
            title: title.clone(),
            slot: claim.slot,
            description: None,
            icon: None,
            order: USUAL_ORDER,
            actions: Vec::new(),
            content: None,
            origin: Origin::Manifest(title),
            registered: Registered::Never,
            running: None,
        }
    }

    /// Whether an earlier session registered it, and this one has not.
    fn is_left_over(&self) -> bool {
        self.origin == Origin::Session && self.registered != Registered::ThisSession
    }

    pub(super) fn patch(&mut self, patch: PanelPatch) {
        let PanelPatch { title, description, actions, content } = patch;
        if let Some(title) = title {
            self.title = title;
        }
        if let Some(description) = description {
            self.description = Some(description);
        }
        if let Some(actions) = actions {
            self.actions = actions;
        }
        if let Some(content) = content {
            self.content = Some(content);
        }
    }

    pub(super) fn reset(&mut self, title: String) {
        self.title = title;
        self.description = None;
        self.icon = None;
        self.order = USUAL_ORDER;
        self.actions = Vec::new();
        self.content = None;
        self.registered = Registered::Never;
        self.running = None;
    }
}
