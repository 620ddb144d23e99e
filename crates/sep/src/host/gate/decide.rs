//! May this extension call this method now? One table, one set of grants, one answer with its reason.

use super::grants::{GrantSet, Reason};
use crate::protocol::{Entry, Fault, HostMethod, Permission, V1_0, Version};

/// The answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// What was called.
    pub method: HostMethod,
    /// What it needs.
    pub permission: Option<Permission>,
    /// The first version that has it.
    pub since: Version,
    /// Why it is allowed or not.
    pub reason: Reason,
}

/// Decides about a call of `method` in a session of `version`. Pure: the same question has the same answer.
#[must_use]
pub fn decide(table: &[Entry], method: HostMethod, version: Version, grants: &GrantSet) -> Decision {
    let Some(row) = table.iter().find(|row| row.method == method) else {
        return Decision { method, permission: None, since: V1_0, reason: Reason::Unmapped };
    };
    let reason = match row.permission {
        _ if !version.serves(row.since) => Reason::VersionGated,
        None => Reason::Granted,
        Some(permission) => grants.decide(permission),
    };
    Decision { method, permission: row.permission, since: row.since, reason }
}

impl Decision {
    /// Whether it may be done.
    #[must_use]
    pub fn is_allowed(&self) -> bool {
        self.reason == Reason::Granted
    }

    /// Whether it is recorded: everything that needs a permission, and what nobody knows the permission of.
    #[must_use]
    pub fn is_privileged(&self) -> bool {
        self.permission.is_some() || self.reason == Reason::Unmapped
    }

    /// The error that answers a call that is not allowed.
    #[must_use]
    pub fn fault(&self) -> Fault {
        match self.reason {
            Reason::VersionGated => Fault::VersionGated { since: self.since },
            reason => Fault::PermissionDenied {
                permission: self.permission,
                method: self.method.as_str(),
                reason: reason.as_str(),
            },
        }
    }
}
