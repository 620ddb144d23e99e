//! What one extension may do now. Four voices must agree, and what was taken back is gone with the next frame.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use outrigger_policy as policy;
use outrigger_policy::{Capability, Grants, Layer, Subject, Voice};
use tokio::sync::watch;

use crate::protocol::words::words;
use crate::protocol::{DeniedPermission, ExtensionId, Permission, PermissionList};

words! {
    /// Why the gate decided as it did. Written into the audit and sent to extensions, so the spelling never changes.
    Reason ("reason of the gate") {
        /// Every voice agrees.
        Granted = "granted",
        /// The manifest does not ask for it.
        NotDeclared = "not_declared",
        /// The operator did not grant it, or nobody can tell whether they did.
        NotGranted = "not_granted",
        /// The operator took it back.
        Revoked = "revoked",
        /// Nobody who is trusted this little may have it.
        TrustCeiling = "trust_ceiling",
        /// The platform does not have it.
        ProfileForbidden = "profile_forbidden",
        /// The method is newer than the session.
        VersionGated = "version_gated",
        /// Not at this point of the session.
        SessionState = "session_state",
        /// It came in a form that expects no answer.
        NotificationForm = "notification_form",
        /// The table has no row for the method.
        Unmapped = "unmapped",
    }
}

/// What the voices say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrantLayers {
    /// What the manifest asks for.
    pub declared: Vec<Permission>,
    /// What the operator grants.
    pub operator: OperatorGrant,
    /// What the operator took back. It stays away even if it is granted in general.
    pub revoked: Vec<Permission>,
    /// What anybody may have who is trusted this much.
    pub ceiling: Vec<Permission>,
    /// What the platform has.
    pub profile: Vec<Permission>,
}

/// What the operator grants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OperatorGrant {
    /// These.
    These(Vec<Permission>),
    /// It cannot be read, so nothing is granted.
    Unreadable {
        /// Why, for people.
        why: String,
    },
}

/// What one extension may do now. Asking costs one atomic load; changes act on the next question.
#[derive(Debug)]
pub struct GrantSet {
    grants: Mutex<Voices>,
    /// One byte a permission: the index of its reason. Written under the lock.
    decided: AtomicU64,
    epoch: watch::Sender<u64>,
}

#[derive(Debug)]
struct Voices {
    grants: Grants,
    operator: OperatorGrant,
}

impl GrantSet {
    /// The permissions of `extension`.
    #[must_use]
    pub fn new(extension: &ExtensionId, layers: GrantLayers) -> Self {
        let GrantLayers { declared, operator, revoked, ceiling, profile } = layers;
        let mut grants = Grants::new(
            Subject::new(extension.as_str()),
            vec![
                only(Voice::Declared, &declared),
                operator_layer(&operator),
                only(Voice::Ceiling, &ceiling),
                only(Voice::Profile, &profile),
            ],
        );
        for permission in revoked {
            grants.revoke(capability(permission));
        }
        let set = Self {
            decided: AtomicU64::new(0),
            epoch: watch::Sender::new(0),
            grants: Mutex::new(Voices { grants, operator }),
        };
        set.change(|_| ());
        set
    }

    /// Whether `permission` is granted now, and why.
    #[must_use]
    pub fn decide(&self, permission: Permission) -> Reason {
        let index = (self.decided.load(Ordering::Acquire) >> (8 * permission as u64)) & 0xff;
        // Nothing but indices of `ALL` is stored; were it otherwise, nothing would be granted.
        Reason::ALL.get(index as usize).copied().unwrap_or(Reason::NotGranted)
    }

    /// Grants a permission and forgets that it was taken back. The manifest, the trust and the platform still have a say.
    pub fn grant(&self, permission: Permission) {
        self.change(|voices| {
            voices.grants.reinstate(&capability(permission));
            // What could not be read is not repaired by adding to it.
            if let OperatorGrant::These(these) = &mut voices.operator {
                if !these.contains(&permission) {
                    these.push(permission);
                }
                voices.grants.replace(operator_layer(&voices.operator));
            }
        });
    }

    /// Takes a permission back.
    pub fn revoke(&self, permission: Permission) {
        self.change(|voices| {
            voices.grants.revoke(capability(permission));
        });
    }

    /// Replaces what the operator grants. What was taken back stays away.
    pub fn set_operator(&self, operator: OperatorGrant) {
        self.change(|voices| {
            voices.grants.replace(operator_layer(&operator));
            voices.operator = operator;
        });
    }

    /// What is granted, sorted by name.
    #[must_use]
    pub fn granted(&self) -> Vec<Permission> {
        self.list().granted
    }

    /// What is granted and what is not, with reasons, sorted by name.
    #[must_use]
    pub fn list(&self) -> PermissionList {
        let mut all = Permission::ALL.to_vec();
        all.sort_by_key(|permission| permission.as_str());
        let mut list = PermissionList { granted: Vec::new(), denied: Vec::new() };
        for permission in all {
            match self.decide(permission) {
                Reason::Granted => list.granted.push(permission),
                reason => {
                    list.denied.push(DeniedPermission { permission, reason: reason.as_str().to_owned() });
                }
            }
        }
        list
    }

    /// Counts the changes; whoever keeps something that depends on the grants compares it.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        *self.epoch.borrow()
    }

    /// Wakes whoever wants to know about changes.
    #[must_use]
    pub fn watch(&self) -> watch::Receiver<u64> {
        self.epoch.subscribe()
    }

    fn change(&self, change: impl FnOnce(&mut Voices)) {
        let mut voices = self.voices();
        change(&mut voices);
        let mut decided = 0;
        for permission in Permission::ALL {
            let reason = reason_of(voices.grants.decide(&capability(*permission)).reason);
            decided |= (reason as u64) << (8 * *permission as u64);
        }
        self.decided.store(decided, Ordering::Release);
        drop(voices);
        self.epoch.send_modify(|epoch| *epoch += 1);
    }

    fn voices(&self) -> MutexGuard<'_, Voices> {
        self.grants.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn operator_layer(operator: &OperatorGrant) -> Layer {
    match operator {
        OperatorGrant::These(these) => only(Voice::Operator, these),
        OperatorGrant::Unreadable { why } => Layer::unreadable(Voice::Operator, why),
    }
}

fn only(voice: Voice, permissions: &[Permission]) -> Layer {
    let capabilities: Vec<Capability> = permissions.iter().copied().map(capability).collect();
    Layer::only(voice, &capabilities)
}

fn capability(permission: Permission) -> Capability {
    // Words of letters and dots are names of capabilities; a test makes all of them.
    Capability::new(permission.as_str()).expect("a permission is the name of a capability")
}

fn reason_of(reason: policy::Reason) -> Reason {
    match reason {
        policy::Reason::Granted => Reason::Granted,
        policy::Reason::NotDeclared => Reason::NotDeclared,
        policy::Reason::Revoked => Reason::Revoked,
        policy::Reason::TrustCeiling => Reason::TrustCeiling,
        policy::Reason::ProfileForbidden => Reason::ProfileForbidden,
        // What cannot be read grants nothing, and the layers made here have no other reasons.
        _ => Reason::NotGranted,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const READ: Permission = Permission::MessagesRead;

    fn all() -> Vec<Permission> {
        Permission::ALL.to_vec()
    }

    fn layers() -> GrantLayers {
        let operator = OperatorGrant::These(all());
        GrantLayers { declared: all(), operator, revoked: Vec::new(), ceiling: all(), profile: all() }
    }

    fn set(layers: GrantLayers) -> GrantSet {
        GrantSet::new(&ExtensionId::new("org.example").expect("an id"), layers)
    }

    #[test]
    fn a_permission_is_granted_only_where_every_voice_agrees_and_the_first_that_does_not_is_named() {
        let without = || all().into_iter().filter(|permission| *permission != READ).collect::<Vec<_>>();
        assert_eq!(set(layers()).decide(READ), Reason::Granted);
        let cases = [
            (GrantLayers { declared: without(), ..layers() }, Reason::NotDeclared),
            (GrantLayers { operator: OperatorGrant::These(without()), ..layers() }, Reason::NotGranted),
            (GrantLayers { revoked: vec![READ], ..layers() }, Reason::Revoked),
            (GrantLayers { ceiling: without(), ..layers() }, Reason::TrustCeiling),
            (GrantLayers { profile: without(), ..layers() }, Reason::ProfileForbidden),
            (GrantLayers { declared: without(), ceiling: without(), ..layers() }, Reason::NotDeclared),
        ];
        for (layers, reason) in cases {
            let set = set(layers);
            assert_eq!(set.decide(READ), reason);
            for other in without() {
                assert_eq!(set.decide(other), Reason::Granted, "{other} when {READ} is {reason}");
            }
        }
    }

    #[test]
    fn what_cannot_be_read_grants_nothing_and_granting_more_does_not_repair_it() {
        let set = set(GrantLayers { operator: OperatorGrant::Unreadable { why: "torn".into() }, ..layers() });
        set.grant(READ);
        for permission in Permission::ALL {
            assert_eq!(set.decide(*permission), Reason::NotGranted);
        }
        set.set_operator(OperatorGrant::These(vec![READ]));
        assert_eq!(set.granted(), [READ]);
    }

    #[test]
    fn taking_back_and_granting_again_act_at_once_and_are_noticed() {
        let set = set(layers());
        let before = set.epoch();
        set.revoke(READ);
        assert_eq!(set.decide(READ), Reason::Revoked);
        assert!(set.epoch() > before);
        set.set_operator(OperatorGrant::These(all()));
        assert_eq!(set.decide(READ), Reason::Revoked, "a general grant does not undo it");
        set.grant(READ);
        assert_eq!(set.decide(READ), Reason::Granted);
    }

    #[test]
    fn a_grant_beyond_the_ceiling_changes_nothing() {
        let set =
            set(GrantLayers { ceiling: Vec::new(), operator: OperatorGrant::These(Vec::new()), ..layers() });
        set.grant(READ);
        assert_eq!(set.decide(READ), Reason::TrustCeiling);
    }
}
