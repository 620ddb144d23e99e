//! Which panels there are, whose they are and whether they can be used.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use super::books::{Books, Origin, Registered, Standing};
use super::invoke::{Busy, InvokeError, check_input};
use super::panel::{PanelDraft, PanelPatch};
use super::snapshot::{PanelKey, PanelState, UiSnapshot};
use super::text::{Flaw, clean};
use crate::manifest::PanelClaim;
use crate::protocol::{ExtensionId, Limits, TrustLevel};

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
    /// The extension may have no panels: it was not admitted.
    #[error("the extension may have no panels")]
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

impl Panels {
    /// No panels.
    #[must_use]
    pub fn new() -> Self {
        Self { books: Mutex::new(Books::default()), revision: watch::Sender::new(0) }
    }

    /// Lets an extension have panels; those of its manifest appear at once, dormant. A second time (a changed manifest, other
    /// permissions) what the running session registered stays.
    pub fn admit(&self, owner: &Owner<'_>) {
        self.change(|books| books.admit(owner));
    }

    /// Takes all panels of an extension away: it was disabled or removed, or may no longer have panels.
    pub fn withdraw(&self, extension: &ExtensionId) {
        self.change(|books| {
            books.owners.remove(extension);
        });
    }

    /// A new session of the extension begins: what an earlier one registered is unavailable until it is registered again.
    pub fn start(&self, extension: &ExtensionId) {
        self.change(|books| {
            if let Some(entry) = books.owners.get_mut(extension) {
                entry.end_session();
            }
        });
    }

    /// The session is ready: its panels can be used. It may have registered some before the host came to say so.
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

    /// The panels of an extension cannot be used for a while; its session goes on.
    pub fn suspend(&self, extension: &ExtensionId, reason: &str) {
        let standing = Standing::Suspended(clean(reason, 160));
        self.change(|books| {
            let entry = books.owners.get_mut(extension);
            if let Some(entry) = entry.filter(|entry| entry.standing == Standing::Active) {
                entry.standing = standing;
            }
        });
    }

    /// The panels of an extension that was suspended can be used again, as they were.
    pub fn resume(&self, extension: &ExtensionId) {
        self.change(|books| {
            let entry = books.owners.get_mut(extension);
            if let Some(entry) = entry.filter(|entry| matches!(entry.standing, Standing::Suspended(_))) {
                entry.standing = Standing::Active;
            }
        });
    }

    /// Registers a panel of the running session.
    pub fn register(&self, extension: &ExtensionId, draft: PanelDraft) -> Result<PanelKey, RegisterError> {
        draft.check().map_err(RegisterError::Invalid)?;
        let key = PanelKey::new(extension, &draft.id);
        self.try_change(|books| {
            let entry = books.owners.get_mut(extension).ok_or(RegisterError::NoOwner)?;
            entry.register(draft)
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
