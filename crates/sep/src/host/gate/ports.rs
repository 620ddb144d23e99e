//! What the gate needs of its neighbours, and no more: where decisions are recorded and counted, where lines are logged,
//! who hears about what.

use std::sync::Arc;
use std::time::Duration;

use outrigger_wire::rpc::Id;
use serde_json::value::RawValue;

use super::grants::{GrantSet, Reason};
use crate::host::ui::{Notices, Panels};
use crate::mesh::Messaging;
use crate::protocol::{DeniedTopic, ExtensionId, HostMethod, LogLevel, Permission, SessionId, Version};

use super::cursor::CursorKey;
use super::memory::SendMemory;

/// Everything a request can reach. Nothing else of the host is visible from here.
#[derive(Clone)]
pub struct Services {
    /// The network.
    pub messaging: Arc<dyn Messaging>,
    /// The panels.
    pub panels: Arc<Panels>,
    /// The notices.
    pub notices: Arc<Notices>,
    /// Where decisions are recorded.
    pub audit: Arc<dyn Recorder>,
    /// Where everything is counted.
    pub metrics: Arc<dyn Meter>,
    /// The log of this extension.
    pub logs: Arc<dyn Log>,
    /// What this extension hears about.
    pub subscription: Arc<dyn Listening>,
    /// What was sent under which key.
    pub dedup: Arc<SendMemory>,
    /// The secret that cursors are made with.
    pub cursor_key: CursorKey,
}

impl std::fmt::Debug for Services {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Services").finish_non_exhaustive()
    }
}

/// Records decisions.
pub trait Recorder: Send + Sync + 'static {
    /// Records a decision before it takes effect.
    ///
    /// # Errors
    /// When it cannot be recorded. Then nothing privileged may happen.
    fn record(&self, decision: &Recorded<'_>) -> Result<(), NotRecorded>;
}

/// A decision to be recorded.
#[derive(Clone, Copy, Debug)]
pub struct Recorded<'a> {
    /// About whom.
    pub extension: &'a ExtensionId,
    /// In which session; none for what the operator does.
    pub session: Option<&'a SessionId>,
    /// What was called; none for what the operator does.
    pub method: Option<HostMethod>,
    /// What it needs.
    pub permission: Option<Permission>,
    /// Why it is allowed or not; [`Reason::Granted`] allows.
    pub reason: Reason,
    /// The id of the request.
    pub request: Option<&'a Id>,
    /// The params of the request. Only their digest may be kept.
    pub params: Option<&'a RawValue>,
}

/// A decision could not be recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the decision could not be recorded")]
pub struct NotRecorded;

/// Something that is counted and has no further label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offence {
    /// A request came too soon after others.
    RateLimited,
    /// A frame was too long.
    FrameOversize,
    /// A frame broke the protocol.
    ProtocolViolation,
}

/// Counts.
pub trait Meter: Send + Sync + 'static {
    /// A request was answered; with this code if it failed.
    fn rpc(&self, method: &str, took: Duration, code: Option<i64>);
    /// A permission was missing.
    fn denied(&self, method: &str, permission: Permission);
    /// Something that should not be.
    fn offence(&self, offence: Offence);
    /// A request is being worked on.
    fn entered(&self);
    /// It is not any more.
    fn left(&self);
}

/// The log of one extension.
pub trait Log: Send + Sync + 'static {
    /// A line that the extension wants to have logged.
    fn extension_says(&self, level: LogLevel, line: &str);
    /// A line that the host logs about the extension.
    fn host_says(&self, level: LogLevel, line: &str);
}

/// What one extension hears about.
pub trait Listening: Send + Sync + 'static {
    /// All topics that a session of this version can hear about, sorted.
    fn known(&self, version: Version) -> Vec<String>;
    /// Those it hears about, sorted.
    fn subscribed(&self, version: Version) -> Vec<String>;
    /// Those it wants to hear about and does not, sorted.
    fn denied(&self, version: Version) -> Vec<DeniedTopic>;
    /// Wants to hear about topics. Returns those of them that it may not hear about.
    fn subscribe(&self, version: Version, topics: &[String]) -> Vec<DeniedTopic>;
    /// Does not want to hear about topics any more.
    fn unsubscribe(&self, topics: &[String]);
    /// The grants have changed: what it may no longer hear about is gone at once.
    fn regrant(&self, grants: &GrantSet);
    /// Counts the changes.
    fn epoch(&self) -> u64;
}
