//! Which panels there are, whose they are and whether they can be used.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use super::invoke::{Busy, InvokeError, check_input};
use super::node::Node;
use super::panel::{Action, PanelDraft, PanelPatch, USUAL_ORDER};
use super::snapshot::{PanelKey, PanelState, PanelView, Slots, UiSnapshot};
use super::text::{Flaw, clean};
use crate::manifest::PanelClaim;
use crate::protocol::{ExtensionId, Limits, Slot, TrustLevel};

/// All panels of all extensions.
#[derive(Debug)]
pub struct Panels {
    books: Mutex<Books>,
    revision: watch::Sender<u64>,
}

/// An extension that may have panels.
#[derive(Clone, Debug)]
pub struct Owner<'a> {
    /// Who.
    pub id: &'a ExtensionId,
    /// What people call it.
    pub name: &'a str,
    /// How far it is trusted.
    pub trust: TrustLevel,
    /// The panels of its manifest.
    pub claims: &'a [PanelClaim],
    /// How many panels and actions it may have.
    pub limits: &'a Limits,
    /// What becomes of an action of a panel while the extension does not run.
    pub waking: Waking,
}

/// Whether using a dormant panel starts its extension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waking {
    /// It does.
    OnAction,
    /// It does not.
    Never,
}

/// Why a panel was not registered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RegisterError {
    /// The declaration is wrong.
    #[error("the panel is not declared as it must be")]
    Invalid(Vec<Flaw>),
    /// It is registered already, in this session.
    #[error("the panel `{id}` is registered already")]
    Conflict {
        /// Which.
        id: String,
    },
    /// The extension may have no more panels, or the panel no more actions.
    #[error("no more than {limit} {quota}")]
    Quota {
        /// `panels` or `actions`.
        quota: &'static str,
        /// How many there may be.
        limit: usize,
    },
    /// The extension may have no panels now: it was not admitted, or no session of it is ready.
    #[error("the extension may have no panels now")]
    NoOwner,
}

/// Why a panel was not changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UpdateError {
    /// There is none of that name.
    #[error("there is no panel `{id}`")]
    NotFound {
        /// Which.
        id: String,
    },
    /// The change is wrong.
    #[error("the change is not declared as it must be")]
    Invalid(Vec<Flaw>),
    /// The panel may have no more actions.
    #[error("no more than {limit} actions")]
    Quota {
        /// How many there may be.
        limit: usize,
    },
}

#[derive(Debug, Default)]
struct Books {
    owners: BTreeMap<ExtensionId, Entry>,
    revision: u64,
    /// The last snapshot, while it is still right.
    snapshot: Option<Arc<UiSnapshot>>,
}

#[derive(Debug)]
struct Entry {
    name: String,
    trust: TrustLevel,
    max_panels: usize,
    max_actions: usize,
    waking: Waking,
    standing: Standing,
    panels: BTreeMap<String, Panel>,
}

/// What the extension itself does.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Standing {
    Dormant,
    Active,
    /// Its session goes on, and nobody can use it.
    Suspended(String),
    Unavailable(String),
}

impl Standing {
    /// Whether there is a session that panels can belong to.
    fn has_session(&self) -> bool {
        match self {
            Self::Active | Self::Suspended(_) => true,
            Self::Dormant | Self::Unavailable(_) => false,
        }
    }
}

#[derive(Debug)]
struct Panel {
    title: String,
    slot: Slot,
    description: Option<String>,
    icon: Option<String>,
    order: u32,
    actions: Vec<Action>,
    content: Option<Vec<Node>>,
    origin: Origin,
    registered: Registered,
    /// The action that runs, by the number of its invocation.
    running: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Origin {
    /// It is there before the extension runs; this is its title then.
    Manifest(String),
    Session,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Registered {
    ThisSession,
    Earlier,
    Never,
}

impl Panels {
    /// No panels.
    #[must_use]
    pub fn new() -> Self {
        Self { books: Mutex::new(Books::default()), revision: watch::Sender::new(0) }
    }

    /// Lets an extension have panels; those of its manifest appear at once, dormant. A second time (a changed manifest, a
    /// permission that was given back) replaces what was known.
    pub fn admit(&self, owner: &Owner<'_>) {
        let claim = |claim: &PanelClaim| {
            let title = clean(&claim.title, 80);
            let panel = Panel {
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
            };
            (claim.id.clone(), panel)
        };
        let entry = Entry {
            name: clean(owner.name, 80),
            trust: owner.trust,
            max_panels: owner.limits.panels,
            max_actions: owner.limits.actions_per_panel,
            waking: owner.waking,
            standing: Standing::Dormant,
            panels: owner.claims.iter().take(owner.limits.panels).map(claim).collect(),
        };
        self.change(|books| {
            books.owners.insert(owner.id.clone(), entry);
        });
    }

    /// Takes all panels of an extension away: it was disabled or removed, or may no longer have panels.
    pub fn withdraw(&self, extension: &ExtensionId) {
        self.change(|books| {
            books.owners.remove(extension);
        });
    }

    /// A new session of the extension is ready: its panels can be used, and it may register more. To be called before the
    /// session can ask for anything, and once for each; what an earlier one registered is unavailable until it is registered
    /// again.
    pub fn activate(&self, extension: &ExtensionId) {
        self.stand(extension, Standing::Active);
    }

    /// The extension was stopped or left: the panels of its manifest sleep, the others go.
    pub fn sleep(&self, extension: &ExtensionId) {
        self.stand(extension, Standing::Dormant);
    }

    /// The extension crashed, is suspended, or has no runtime: its panels stay and cannot be used.
    pub fn fail(&self, extension: &ExtensionId, reason: &str) {
        self.stand(extension, Standing::Unavailable(clean(reason, 160)));
    }

    /// The panels of an extension that was suspended can be used again, as they were.
    pub fn resume(&self, extension: &ExtensionId) {
        self.change(|books| {
            let entry = books.owners.get_mut(extension);
            if let Some(entry) = entry.filter(|entry| entry.standing.has_session()) {
                entry.standing = Standing::Active;
            }
        });
    }

    /// The panels of an extension cannot be used for a while; its session goes on.
    pub fn suspend(&self, extension: &ExtensionId, reason: &str) {
        self.change(|books| {
            let entry = books.owners.get_mut(extension);
            if let Some(entry) = entry.filter(|entry| entry.standing.has_session()) {
                entry.standing = Standing::Suspended(clean(reason, 160));
            }
        });
    }

    /// Registers a panel of the running session.
    pub fn register(&self, extension: &ExtensionId, draft: PanelDraft) -> Result<PanelKey, RegisterError> {
        draft.check().map_err(RegisterError::Invalid)?;
        let key = PanelKey::new(extension, &draft.id);
        self.try_change(|books| {
            let entry = books.owners.get_mut(extension).filter(|entry| entry.standing.has_session());
            entry.ok_or(RegisterError::NoOwner)?.register(draft)
        })?;
        Ok(key)
    }

    /// Changes a panel that was registered, or one of the manifest.
    pub fn update(&self, extension: &ExtensionId, id: &str, patch: PanelPatch) -> Result<(), UpdateError> {
        patch.check().map_err(UpdateError::Invalid)?;
        let missing = || UpdateError::NotFound { id: clean(id, 128) };
        self.try_change(|books| {
            let entry = books.owners.get_mut(extension).ok_or_else(missing)?;
            let max_actions = entry.max_actions;
            let panel = entry.live(id).ok_or_else(missing)?;
            if patch.actions.as_ref().is_some_and(|actions| actions.len() > max_actions) {
                return Err(UpdateError::Quota { limit: max_actions });
            }
            panel.patch(patch);
            Ok(())
        })
    }

    /// Takes back a panel that was registered. One of the manifest loses what was attached to it.
    pub fn unregister(&self, extension: &ExtensionId, id: &str) -> Result<(), UpdateError> {
        let missing = || UpdateError::NotFound { id: clean(id, 128) };
        self.try_change(|books| {
            let entry = books.owners.get_mut(extension).ok_or_else(missing)?;
            let panel = entry.live(id).ok_or_else(missing)?;
            if panel.registered != Registered::ThisSession {
                return Err(missing());
            }
            match panel.origin.clone() {
                Origin::Manifest(title) => panel.reset(title),
                Origin::Session => {
                    entry.panels.remove(id);
                }
            }
            Ok(())
        })
    }

    /// Begins an action, if the panel has it and `input` is what it asks for. The panel is busy until the guard goes.
    pub fn begin(
        self: &Arc<Self>,
        key: &PanelKey,
        action: &str,
        input: Option<&str>,
    ) -> Result<Busy, InvokeError> {
        let invocation = self.try_change(|books| {
            // The revision is new for every change, so it is a number that no other invocation has.
            let invocation = books.revision + 1;
            let no_panel = || InvokeError::NoPanel { panel: key.clone() };
            let entry = books.owners.get_mut(key.extension()).ok_or_else(no_panel)?;
            let (state, reason) = entry.state(key.panel()).ok_or_else(no_panel)?;
            let waking = entry.waking;
            let panel = entry.panels.get_mut(key.panel()).ok_or_else(no_panel)?;
            match state {
                PanelState::Active => {}
                PanelState::Busy => return Err(InvokeError::Busy),
                PanelState::Dormant => return Err(InvokeError::Dormant { waking }),
                PanelState::Unavailable => return Err(InvokeError::Unavailable { reason }),
            }
            let known = panel.actions.iter().find(|known| known.id == action);
            let known = known.ok_or_else(|| InvokeError::NoAction { action: clean(action, 64) })?;
            check_input(known, input)?;
            panel.running = Some(invocation);
            Ok(invocation)
        })?;
        Ok(Busy::new(Arc::clone(self), key.clone(), invocation))
    }

    pub(super) fn end(&self, key: &PanelKey, invocation: u64) {
        self.change(|books| {
            let panel =
                books.owners.get_mut(key.extension()).and_then(|entry| entry.panels.get_mut(key.panel()));
            if let Some(panel) = panel
                && panel.running == Some(invocation)
            {
                panel.running = None;
            }
        });
    }

    /// All panels as they are now.
    #[must_use]
    pub fn snapshot(&self) -> Arc<UiSnapshot> {
        let mut books = self.lock();
        if let Some(snapshot) = &books.snapshot {
            return Arc::clone(snapshot);
        }
        let snapshot = Arc::new(books.draw());
        books.snapshot = Some(Arc::clone(&snapshot));
        snapshot
    }

    /// Tells the revision, now and whenever it changes.
    #[must_use]
    pub fn watch(&self) -> watch::Receiver<u64> {
        self.revision.subscribe()
    }

    /// How many panels an extension has.
    #[must_use]
    pub fn count(&self, extension: &ExtensionId) -> usize {
        self.lock().owners.get(extension).map_or(0, |entry| entry.panels.len())
    }

    fn stand(&self, extension: &ExtensionId, standing: Standing) {
        self.change(|books| {
            if let Some(entry) = books.owners.get_mut(extension) {
                entry.stand(standing);
            }
        });
    }

    fn change(&self, change: impl FnOnce(&mut Books)) {
        let changed: Result<(), std::convert::Infallible> = self.try_change(|books| {
            change(books);
            Ok(())
        });
        let Ok(()) = changed;
    }

    /// Changes the books; only a change that succeeds makes a new revision.
    fn try_change<T, E>(&self, change: impl FnOnce(&mut Books) -> Result<T, E>) -> Result<T, E> {
        let mut books = self.lock();
        let done = change(&mut books)?;
        books.revision += 1;
        books.snapshot = None;
        // Sent under the lock, so that watchers never see an older revision after a newer one.
        self.revision.send_replace(books.revision);
        Ok(done)
    }

    fn lock(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for Panels {
    fn default() -> Self {
        Self::new()
    }
}

impl Books {
    fn draw(&self) -> UiSnapshot {
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
    /// A new standing of the extension, which ends or begins a session.
    fn stand(&mut self, standing: Standing) {
        // What the session that ends did not register is what an earlier one left behind.
        if self.standing.has_session() && !standing.has_session() {
            self.panels.retain(|_, panel| {
                panel.origin != Origin::Session || panel.registered == Registered::ThisSession
            });
        }
        if standing == Standing::Dormant {
            self.panels.retain(|_, panel| panel.origin != Origin::Session);
        }
        for panel in self.panels.values_mut() {
            panel.running = None;
            if panel.registered == Registered::ThisSession {
                panel.registered = Registered::Earlier;
            }
        }
        self.standing = standing;
    }

    fn state(&self, id: &str) -> Option<(PanelState, String)> {
        let panel = self.panels.get(id)?;
        let left_over = panel.origin == Origin::Session && panel.registered != Registered::ThisSession;
        Some(match &self.standing {
            Standing::Dormant => (PanelState::Dormant, String::new()),
            Standing::Suspended(reason) | Standing::Unavailable(reason) => {
                (PanelState::Unavailable, reason.clone())
            }
            Standing::Active if left_over => {
                (PanelState::Unavailable, "its extension was started again".to_owned())
            }
            Standing::Active if panel.running.is_some() => (PanelState::Busy, String::new()),
            Standing::Active => (PanelState::Active, String::new()),
        })
    }

    /// The panel, if there is a session and it may change it: its own, or one of the manifest.
    fn live(&mut self, id: &str) -> Option<&mut Panel> {
        if !self.standing.has_session() {
            return None;
        }
        self.panels.get_mut(id).filter(|panel| {
            panel.registered == Registered::ThisSession || matches!(panel.origin, Origin::Manifest(_))
        })
    }

    fn register(&mut self, draft: PanelDraft) -> Result<(), RegisterError> {
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
                let left_over = |(id, panel): (&String, &Panel)| {
                    let gone = panel.origin == Origin::Session && panel.registered != Registered::ThisSession;
                    gone.then(|| id.clone())
                };
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
    fn patch(&mut self, patch: PanelPatch) {
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

    fn reset(&mut self, title: String) {
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
