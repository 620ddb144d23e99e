//! What a host knows about its extensions after a restart: who is switched off, who crashed when, who was allowed what.
//!
//! [`Ledger`] is a value; [`StateFile`] is the file that it is kept in. What cannot be read is moved aside, and then nobody
//! has agreed to anything: forgetting never gives permissions away.

mod file;

pub use file::{LedgerError, StateFile};

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use outrigger_supervise::state::Moment;
use serde::{Deserialize, Serialize};

use crate::protocol::{DisabledReason, ExtensionId, Permission, TrustLevel};

/// Crashes older than this are forgotten.
const REMEMBERED: Duration = Duration::from_secs(24 * 60 * 60);
/// As many crashes as the rule for a day needs.
const MOST_CRASHES: usize = 20;

/// What is written down about all extensions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    entries: BTreeMap<ExtensionId, Entry>,
    moved_aside: Option<PathBuf>,
}

/// What is written down about one extension.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// Why it is switched off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disabled: Option<DisabledReason>,
    /// When it crashed, in milliseconds since the epoch, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub crashes_ms: Vec<u64>,
    /// What somebody looked at and agreed to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consent: Option<Consent>,
    /// What it was given: by that consent, or one by one.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub granted: BTreeSet<Permission>,
    /// What was taken back, also from those who need no consent.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub revoked: BTreeSet<Permission>,
}

/// An agreement to what one version asks for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Consent {
    /// The version that was looked at last.
    pub version: String,
    /// What it asked for, granted or not. What a later version asks for beyond this takes another consent.
    pub asked: BTreeSet<Permission>,
}

/// Whether an extension may be started as far as consent goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Agreement {
    /// It may, with these.
    Given(BTreeSet<Permission>),
    /// Somebody has to agree to these first. None are named when nobody has looked at it at all and it asks for nothing.
    Needed(BTreeSet<Permission>),
}

/// One instant on both clocks: the one that never jumps, and the one that survives a restart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clocks {
    /// The host's own.
    pub now: Moment,
    /// Milliseconds since the epoch.
    pub wall_ms: u64,
}

/// The manifest side of a question about consent.
#[derive(Clone, Copy, Debug)]
pub struct Asking<'a> {
    /// The version of the extension.
    pub version: &'a str,
    /// What its manifest asks for.
    pub declared: &'a [Permission],
    /// How far it is trusted, as the policy decided it.
    pub trust: TrustLevel,
}

impl Ledger {
    /// Where the unreadable file is now, if this ledger had to begin anew.
    #[must_use]
    pub fn moved_aside(&self) -> Option<&Path> {
        self.moved_aside.as_deref()
    }

    /// What is written about one extension.
    #[must_use]
    pub fn entry(&self, id: &ExtensionId) -> Option<&Entry> {
        self.entries.get(id)
    }

    /// Everything that is written, by id.
    pub fn entries(&self) -> impl Iterator<Item = (&ExtensionId, &Entry)> {
        self.entries.iter()
    }

    /// Whether what this version asks for was agreed to, and what it may have.
    #[must_use]
    pub fn agreement(&self, id: &ExtensionId, asking: Asking<'_>) -> Agreement {
        let declared: BTreeSet<Permission> = asking.declared.iter().copied().collect();
        let entry = self.entries.get(id);
        match (asking.trust, entry, entry.and_then(|entry| entry.consent.as_ref())) {
            (TrustLevel::FirstParty, entry, _) => {
                let revoked = entry.map(|entry| entry.revoked.clone()).unwrap_or_default();
                Agreement::Given(&declared - &revoked)
            }
            (_, Some(entry), Some(consent)) if declared.is_subset(&consent.asked) => {
                Agreement::Given(&(&entry.granted & &declared) - &entry.revoked)
            }
            (_, _, Some(consent)) => Agreement::Needed(&declared - &consent.asked),
            (_, _, None) => Agreement::Needed(declared),
        }
    }

    /// This version was found. What it no longer asks for is forgotten, so that asking for it again takes a new consent.
    ///
    /// Says whether anything changed that should be written.
    pub fn found(&mut self, id: &ExtensionId, asking: Asking<'_>) -> bool {
        let Some(entry) = self.entries.get_mut(id) else { return false };
        let Some(consent) = &mut entry.consent else { return false };
        let declared: BTreeSet<Permission> = asking.declared.iter().copied().collect();
        if consent.version == asking.version || !declared.is_subset(&consent.asked) {
            return false;
        }
        asking.version.clone_into(&mut consent.version);
        entry.granted = &entry.granted & &declared;
        consent.asked = declared;
        true
    }

    /// Somebody looked at what this version asks for and gives it these.
    pub fn consent(&mut self, id: &ExtensionId, asking: Asking<'_>, granted: &[Permission]) {
        let asked: BTreeSet<Permission> = asking.declared.iter().copied().collect();
        let entry = self.entries.entry(id.clone()).or_default();
        entry.granted = granted.iter().copied().filter(|permission| asked.contains(permission)).collect();
        entry.revoked = &entry.revoked - &entry.granted;
        entry.consent = Some(Consent { version: asking.version.to_owned(), asked });
    }

    /// Gives one more permission to an extension that somebody has agreed to.
    pub fn grant(&mut self, id: &ExtensionId, permission: Permission) {
        let entry = self.entries.entry(id.clone()).or_default();
        entry.granted.insert(permission);
        entry.revoked.remove(&permission);
    }

    /// Takes a permission back.
    pub fn revoke(&mut self, id: &ExtensionId, permission: Permission) {
        let entry = self.entries.entry(id.clone()).or_default();
        entry.granted.remove(&permission);
        entry.revoked.insert(permission);
    }

    /// Writes down what must survive the host, after [`Effect::Persist`](super::Effect::Persist).
    pub fn note(
        &mut self,
        id: &ExtensionId,
        disabled: Option<DisabledReason>,
        crashes: impl IntoIterator<Item = Moment>,
        clocks: Clocks,
    ) {
        let wall = |at: Moment| {
            let ago = u64::try_from(clocks.now.since(at).as_millis()).unwrap_or(u64::MAX);
            clocks.wall_ms.saturating_sub(ago)
        };
        let crashes_ms = crashes.into_iter().map(wall).collect();
        let entry = self.entries.entry(id.clone()).or_default();
        entry.disabled = disabled;
        entry.crashes_ms = recent(crashes_ms, clocks.wall_ms);
    }

    /// What [`Life::restore`](super::Life::restore) takes up: the reason and the crashes, on the host's clock.
    #[must_use]
    pub fn recall(&self, id: &ExtensionId, clocks: Clocks) -> (Option<DisabledReason>, Vec<Moment>) {
        let Some(entry) = self.entries.get(id) else { return (None, Vec::new()) };
        let moment = |ms: u64| clocks.now.before(Duration::from_millis(clocks.wall_ms.saturating_sub(ms)));
        let crashes = recent(entry.crashes_ms.clone(), clocks.wall_ms);
        (entry.disabled, crashes.into_iter().map(moment).collect())
    }

    /// Forgets an extension altogether.
    pub fn forget(&mut self, id: &ExtensionId) {
        self.entries.remove(id);
    }
}

/// Drops what is too old and what a clock that jumped has put into the future; the rest in order.
fn recent(mut crashes_ms: Vec<u64>, wall_ms: u64) -> Vec<u64> {
    let oldest = wall_ms.saturating_sub(REMEMBERED.as_millis() as u64);
    crashes_ms.retain(|at| (oldest..=wall_ms).contains(at));
    crashes_ms.sort_unstable();
    let too_many = crashes_ms.len().saturating_sub(MOST_CRASHES);
    crashes_ms.split_off(too_many)
}

#[cfg(test)]
mod tests;
