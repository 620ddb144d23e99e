//! What a host asks of an extension, and what it gets back. Both ends use these types.
//!
//! Extensions ignore members that they do not know, so that a newer host can say more.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::words::words;
use super::{
    ExtensionId, LaunchReason, PanelPatch, Permission, Profile, SessionId, ShutdownReason, ToastLevel,
    TrustLevel, Version,
};

/// The params of `sep.initialize`, the first frame of the host after the attach.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Initialize {
    /// The highest version that is offered.
    pub protocol_version: Version,
    /// All that are offered, highest first.
    pub supported_versions: Vec<Version>,
    /// Who the host is.
    pub host: Program,
    /// Who the extension is, as the host knows it.
    pub extension: InitializeExtension,
    /// Which session.
    pub session: SessionId,
    /// Why it was started.
    pub launch_reason: LaunchReason,
    /// How far it is trusted.
    pub trust_level: TrustLevel,
    /// What it may do, sorted.
    pub permissions: Vec<Permission>,
    /// What it will hear about.
    pub events: InitializeEvents,
    /// What it may use.
    pub limits: LimitsJson,
    /// Where it runs.
    pub platform: InitializePlatform,
    /// The time of the host, since the epoch.
    pub now_ms: u64,
}

/// A program and its version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Program {
    /// What it is called.
    pub name: String,
    /// Which version of it.
    pub version: String,
}

/// Who the extension is, as the host knows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InitializeExtension {
    /// Its id.
    pub id: ExtensionId,
    /// Its version.
    pub version: String,
    /// The folder it may write to.
    pub data_dir: String,
}

/// What an extension will hear about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InitializeEvents {
    /// These topics, sorted.
    pub subscribed: Vec<String>,
    /// Not these, although it wants to.
    pub denied: Vec<DeniedTopic>,
    /// Not these, because there are no such topics.
    pub ignored: Vec<String>,
}

/// A topic that an extension does not hear about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct DeniedTopic {
    /// Which.
    pub topic: String,
    /// Why: a reason of the gate.
    pub reason: String,
}

/// Where an extension runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InitializePlatform {
    /// On what kind of machine.
    pub profile: Profile,
    /// Whether a person looks at it.
    pub state: PlatformState,
}

words! {
    /// Whether a person looks at the host.
    PlatformState ("state of the platform") {
        /// Yes.
        Foreground = "foreground",
        /// No.
        Background = "background",
    }
}

/// What an extension may use, as it is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LimitsJson {
    /// Bytes of a frame before its newline.
    pub max_frame_bytes: usize,
    /// Its requests a second.
    pub max_requests_per_second: u32,
    /// Its requests at the same time.
    pub max_concurrent_requests: usize,
    /// Events that may wait for it.
    pub event_queue: usize,
    /// Events on their way.
    pub event_window: usize,
    /// Its panels.
    pub max_panels: usize,
    /// Its notices a minute.
    pub toasts_per_minute: u32,
}

impl From<&super::Limits> for LimitsJson {
    fn from(limits: &super::Limits) -> Self {
        Self {
            max_frame_bytes: limits.max_frame_bytes,
            max_requests_per_second: limits.requests_per_second,
            max_concurrent_requests: limits.concurrent_requests,
            event_queue: limits.event_queue,
            event_window: limits.event_window,
            max_panels: limits.panels,
            toasts_per_minute: limits.toasts_per_minute,
        }
    }
}

/// The result of `sep.initialize`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Initialized {
    /// The version of this session.
    pub protocol_version: Version,
    /// Who the extension says it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extension: Option<SelfDescription>,
    /// What it can do beyond the contract.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub features: Vec<String>,
}

/// Who an extension says it is. Shown, never believed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SelfDescription {
    /// What it is called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Which version of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

/// The params of `sep.event`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EventCall<'a> {
    /// Counts every event that there was for this session, also those that were dropped.
    pub seq: u64,
    /// What it is about.
    pub topic: Cow<'a, str>,
    /// When it happened, since the epoch.
    pub time_ms: u64,
    /// What happened.
    pub data: Cow<'a, RawValue>,
    /// What was dropped since the event before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dropped: Option<Dropped>,
}

/// Events that were dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Dropped {
    /// How many.
    pub count: u64,
    /// The first of them.
    pub from_seq: u64,
    /// The last of them.
    pub to_seq: u64,
}

/// The params of `sep.health`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HealthCall {
    /// Which ping.
    pub seq: u64,
    /// When it was sent, since the epoch.
    pub sent_ms: u64,
}

/// The result of `sep.health`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HealthAnswer {
    /// How it is.
    pub status: HealthStatus,
    /// In words, up to 256 code points.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// Which ping this answers.
    pub seq: u64,
}

words! {
    /// How an extension is.
    HealthStatus ("health status") {
        /// Well.
        Ok = "ok",
        /// It works, but not well. Never a reason to restart it.
        Degraded = "degraded",
        /// It is about to leave by itself.
        Stopping = "stopping",
    }
}

/// The params of `sep.action`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ActionCall {
    /// Which panel.
    pub panel_id: String,
    /// Which action of it.
    pub action_id: String,
    /// What the person entered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<String>,
    /// Names this invocation.
    pub invocation: String,
}

/// The result of `sep.action`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ActionResult {
    /// Whether it worked.
    pub outcome: ActionOutcome,
    /// A notice to show.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub toast: Option<ActionToast>,
    /// What changes in the panel (since 1.1).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub panel: Option<PanelPatch>,
}

words! {
    /// Whether an action worked.
    ActionOutcome ("outcome of an action") {
        /// Yes.
        Ok = "ok",
        /// No.
        Error = "error",
    }
}

/// A notice that an action shows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActionToast {
    /// What it says.
    pub message: String,
    /// How it is meant.
    pub level: ToastLevel,
}

/// The params of `sep.shutdown`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ShutdownCall {
    /// Why.
    pub reason: ShutdownReason,
    /// How long it has.
    pub deadline_ms: u64,
}
