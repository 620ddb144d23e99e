//! A manifest after it has been read and found right. What a manifest says is a wish, never a permission.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::protocol::{ExtensionId, Permission, Profile, Slot, TrustLevel, Version};

/// A manifest, as its author wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    /// The format of the manifest.
    pub schema_version: Version,
    /// Who it is.
    pub id: ExtensionId,
    /// What people call it.
    pub name: String,
    /// What it does.
    pub description: Option<String>,
    /// Its own version: a label, compared for equality only.
    pub version: String,
    /// The lowest protocol it can work with.
    pub api_version: Version,
    /// How far it wants to be trusted.
    pub claimed_trust: TrustLevel,
    /// The platform it is made for.
    pub profile: Profile,
    /// What is run.
    pub entrypoint: Entrypoint,
    /// What it wants to be allowed to do, sorted.
    pub permissions: Vec<Permission>,
    /// The topics it wants to hear about, in its own order.
    pub events: Vec<String>,
    /// How it is watched.
    pub health: Health,
    /// What it wants to use.
    pub limits: RequestLimits,
    /// The panels that are there before it runs.
    pub panels: Vec<PanelClaim>,
    /// Where it can run.
    pub compatibility: Compatibility,
    /// What it needs on a phone.
    pub android: Option<Android>,
    /// Who vouches for it.
    pub signing: Option<Signing>,
}

/// What is run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entrypoint {
    /// A path inside the extension, or the name of a runtime.
    pub command: String,
    /// The arguments, passed as they are.
    pub args: Vec<String>,
    /// Inside the extension.
    pub working_directory: String,
    /// Variables beside those of the host.
    pub environment: BTreeMap<String, String>,
}

/// How an extension is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Health {
    /// From the start of the process to its being ready.
    pub startup: Duration,
    /// How often it is asked.
    pub heartbeat: Duration,
    /// How often in a row it may fail to answer.
    pub missed: u32,
}

/// What an extension wants to use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestLimits {
    /// The longest frame.
    pub max_request_bytes: u32,
    /// Requests a second.
    pub max_requests_per_second: u32,
    /// Requests at the same time.
    pub max_concurrent_requests: u32,
}

/// A panel that is there before the extension runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PanelClaim {
    /// Its name within the extension.
    pub id: String,
    /// What people see.
    pub title: String,
    /// Where.
    pub slot: Slot,
}

/// Where an extension can run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Compatibility {
    /// The hosts it works with, as a requirement on their version.
    pub host: Option<String>,
    /// The platforms it works on; none means any.
    pub platforms: Vec<String>,
}

/// What an extension needs on a phone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Android {
    /// Who runs it.
    pub runtime: RuntimeMode,
    /// Whether it wants to run in the background.
    pub background: bool,
    /// From the start to ready.
    pub max_startup: Option<Duration>,
    /// Memory, in MiB.
    pub max_memory_mb: Option<u32>,
}

/// Who runs an extension on a phone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuntimeMode {
    /// The runtime that is packaged with the host.
    PackagedModule,
    /// A runtime that the operator approved.
    ApprovedRuntime,
}

/// Who vouches for an extension.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signing {
    /// Whether it must not run without a valid signature.
    pub required: bool,
    /// The name of the key.
    pub key_id: String,
    /// The signature, base64.
    pub signature: String,
}
