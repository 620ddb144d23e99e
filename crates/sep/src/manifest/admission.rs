//! What an extension may be and use once its manifest, the operator's policy and the platform have all had their say.

use crate::protocol::words::words;
use crate::protocol::{Limits, Permission, Profile, TrustLevel};

/// What the host decided about an extension that may run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Admission {
    /// How far it is trusted: the smaller of what it claims and what can be proved.
    pub trust: TrustLevel,
    /// Why it is trusted less than it claims to be.
    pub clamped: Option<String>,
    /// What it may use.
    pub limits: Limits,
    /// The kind of machine it runs on.
    pub profile: Profile,
    /// What somebody may allow it, sorted. What is not here is above its trust or not for this platform.
    pub grantable: Vec<Permission>,
    /// Those of `grantable` that need a grant that names this extension and this permission, sorted.
    pub explicit_only: Vec<Permission>,
    /// How tight its box must be.
    pub sandbox: SandboxLevel,
    /// Which events it can hear.
    pub events: EventPlan,
}

words! {
    /// How tight the box of an extension must be.
    SandboxLevel ("sandbox level") {
        /// No box beyond what every child has.
        Off = "off",
        /// The tightest that works here.
        Auto = "auto",
        /// A strict one, or it does not run.
        Strict = "strict",
    }
}

/// Which of the events in a manifest are delivered. Live grants may still take some away.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventPlan {
    /// These, in the order of the manifest.
    pub subscribed: Vec<String>,
    /// Not these.
    pub denied: Vec<DeniedTopic>,
    /// These do not exist.
    pub ignored: Vec<String>,
}

/// An event that is not delivered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeniedTopic {
    /// Which.
    pub topic: String,
    /// The permission that is missing.
    pub permission: Permission,
    /// Why, as a stable word: `not_declared` or `trust_ceiling`.
    pub reason: &'static str,
}
