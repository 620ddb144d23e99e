//! The gate of one extension: what outlives its processes.

use std::sync::{Arc, Mutex, PoisonError};

use outrigger_policy::{Bucket, Limited, Millis, Rate};
use tokio::time::Instant;

use super::desk::Desk;
use super::grants::{GrantSet, Reason};
use super::ports::{NotRecorded, Recorded, Services};
use crate::manifest::Admission;
use crate::protocol::{ExtensionId, Fault, Permission, Program, Quota, SessionId};

/// What a gate is made of.
#[derive(Debug)]
pub struct GateParts {
    /// Whose gate it is.
    pub extension: ExtensionId,
    /// What people call it.
    pub name: String,
    /// Its version.
    pub version: String,
    /// What was decided about it.
    pub admission: Admission,
    /// What it may do.
    pub grants: Arc<GrantSet>,
    /// What it can reach.
    pub services: Services,
    /// What it is told about the host.
    pub about: About,
}

/// What an extension is told about its host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct About {
    /// Who the host is.
    pub host: Program,
    /// Its operating system.
    pub os: String,
    /// Its processor.
    pub arch: String,
    /// How tight the box of the extension is: `off`, `basic` or `strict`.
    pub sandbox: String,
    /// What it can do beyond the contract, sorted.
    pub features: Vec<String>,
}

/// The gate of one extension.
#[derive(Debug)]
pub struct Gate {
    pub(super) parts: GateParts,
    /// Quotas that a restart does not fill up again.
    sends: Mutex<Bucket>,
    toasts: Mutex<Bucket>,
    started: Instant,
}

const MINUTE_MS: u32 = 60_000;

impl Gate {
    /// The gate of an extension.
    #[must_use]
    pub fn new(parts: GateParts) -> Arc<Self> {
        let limits = &parts.admission.limits;
        let bucket =
            |tokens, burst| Mutex::new(Bucket::new(Rate { tokens, period_millis: MINUTE_MS, burst }));
        Arc::new(Self {
            sends: bucket(limits.sends_per_minute, limits.send_burst),
            toasts: bucket(limits.toasts_per_minute, limits.toast_burst),
            started: Instant::now(),
            parts,
        })
    }

    /// The desk of a new session. It takes no requests until it is [opened](Desk::opened).
    #[must_use]
    pub fn desk(self: &Arc<Self>, session: SessionId) -> Arc<Desk> {
        Arc::new(Desk::new(Arc::clone(self), session))
    }

    /// Grants a permission, from the next frame on. Recorded first.
    ///
    /// # Errors
    /// When it cannot be recorded. Nothing has changed then.
    pub fn grant(&self, permission: Permission) -> Result<(), NotRecorded> {
        self.record_change(permission, Reason::Granted)?;
        self.parts.grants.grant(permission);
        self.parts.services.subscription.regrant(&self.parts.grants);
        Ok(())
    }

    /// Takes a permission back, from the next frame on, and takes away what it was used for. A permission is taken back even
    /// if that cannot be recorded: who wants something to stop must not be kept waiting by a full disk.
    ///
    /// # Errors
    /// When it could not be recorded. It is taken back all the same.
    pub fn revoke(&self, permission: Permission) -> Result<(), NotRecorded> {
        let recorded = self.record_change(permission, Reason::Revoked);
        let GateParts { extension, grants, services, .. } = &self.parts;
        grants.revoke(permission);
        services.subscription.regrant(grants);
        if permission == Permission::ToolsRegister {
            services.panels.withdraw(extension);
        }
        recorded
    }

    /// What it may do.
    #[must_use]
    pub fn grants(&self) -> &Arc<GrantSet> {
        &self.parts.grants
    }

    /// What was decided about the extension.
    #[must_use]
    pub fn admission(&self) -> &Admission {
        &self.parts.admission
    }

    pub(super) fn take_send(&self) -> Result<(), Fault> {
        let limit = self.parts.admission.limits.sends_per_minute;
        self.take(&self.sends, Quota::MessagesPerMinute, limit)
    }

    pub(super) fn take_toast(&self) -> Result<(), Fault> {
        let limit = self.parts.admission.limits.toasts_per_minute;
        self.take(&self.toasts, Quota::ToastsPerMinute, limit)
    }

    /// The time, by the clock that never jumps.
    pub(super) fn now(&self) -> Millis {
        Millis(u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX))
    }

    fn take(&self, bucket: &Mutex<Bucket>, quota: Quota, limit: u32) -> Result<(), Fault> {
        let taken = bucket.lock().unwrap_or_else(PoisonError::into_inner).take(self.now(), 1);
        taken.map_err(|_: Limited| Fault::QuotaExceeded { quota, limit: u64::from(limit) })
    }

    fn record_change(&self, permission: Permission, reason: Reason) -> Result<(), NotRecorded> {
        self.parts.services.audit.record(&Recorded {
            extension: &self.parts.extension,
            session: None,
            method: None,
            permission: Some(permission),
            reason,
            request: None,
            params: None,
        })
    }
}
