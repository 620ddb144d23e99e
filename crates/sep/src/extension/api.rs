//! What an author writes: one trait, every method with a default that is right for an extension that does not care.

use std::time::Duration;

use serde_json::Value;

use super::client::HostClient;
use super::news::Event;
use super::welcome::Welcome;
use crate::protocol::{
    ActionCall, ActionOutcome, ActionResult, ActionToast, PanelPatch, ShutdownReason, ToastLevel, V1_0, V1_1,
    Version,
};

/// Why a handler failed. Any error becomes one with `?`.
pub type Trouble = Box<dyn std::error::Error + Send + Sync>;

/// An extension.
///
/// Handlers may block and may be slow: each sort has its own thread, and the host's question whether the process lives is
/// answered by the kit in any case. Events come one after the other, in order; actions may come side by side.
pub trait Extension: Send + Sync + 'static {
    /// Who this is, and which versions of the protocol it can work with.
    fn about(&self) -> About {
        About::default()
    }

    /// The session has begun: the host can be asked, panels can be registered. No event and no action is handed over before this
    /// returns.
    ///
    /// # Errors
    /// The extension cannot work like this; it leaves with the code for a wrong configuration, and is not started again.
    fn on_initialize(&self, host: &HostClient, welcome: &Welcome) -> Result<(), Trouble> {
        let _ = (host, welcome);
        Ok(())
    }

    /// Something happened. The host sends more once this returns.
    ///
    /// # Errors
    /// The host is told, and the next event comes.
    fn on_event(&self, host: &HostClient, event: &Event) -> Result<(), Trouble> {
        let _ = (host, event);
        Ok(())
    }

    /// Somebody invoked an action of a panel.
    ///
    /// # Errors
    /// The person sees the error as a notice.
    fn on_action(&self, host: &HostClient, action: &ActionCall) -> Result<ActionReply, Trouble> {
        let _ = host;
        Err(format!("there is no action `{}`", action.action_id).into())
    }

    /// How are you? If this takes longer than a second, the kit says that the extension is degraded.
    fn on_health(&self) -> Health {
        Health::Ok
    }

    /// The platform pauses, resumes or squeezes the process. What has to be saved is saved before this returns.
    ///
    /// # Errors
    /// The host is told.
    fn on_lifecycle(&self, host: &HostClient, change: &Lifecycle) -> Result<(), Trouble> {
        let _ = (host, change);
        Ok(())
    }

    /// The session ends. The host answers no more calls; the process leaves when this returns, or when the time is up.
    fn on_shutdown(&self, shutdown: &Shutdown) {
        let _ = shutdown;
    }
}

/// Who an extension is, and which versions of the protocol it can work with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct About {
    /// What it is called; the host knows the name in the manifest.
    pub name: Option<String>,
    /// Which version of it.
    pub version: Option<String>,
    /// The lowest protocol it can work with: the `apiVersion` of the manifest.
    pub lowest: Version,
    /// The highest protocol it wants.
    pub highest: Version,
}

/// Everything from 1.0 to the newest, under the name that the manifest has.
impl Default for About {
    fn default() -> Self {
        Self { name: None, version: None, lowest: V1_0, highest: V1_1 }
    }
}

/// How an extension is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Health {
    /// Well.
    Ok,
    /// It works, but not well, for this reason.
    Degraded(String),
    /// It is about to leave by itself.
    Stopping,
}

/// What the platform does with the process.
#[derive(Clone, Debug, PartialEq)]
pub enum Lifecycle {
    /// It will be suspended.
    Pausing,
    /// It was suspended and goes on.
    Resumed,
    /// Memory is short.
    Trim(Value),
    /// Nobody looks any more; it may go on.
    Background,
    /// Something newer than this kit.
    Other(String),
}

impl Lifecycle {
    pub(super) fn new(topic: &str, data: Value) -> Self {
        match topic {
            "lifecycle.pausing" => Self::Pausing,
            "lifecycle.resumed" => Self::Resumed,
            "lifecycle.trim" => Self::Trim(data),
            "lifecycle.background" => Self::Background,
            other => Self::Other(other.to_owned()),
        }
    }
}

/// Why and how soon the session ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shutdown {
    /// Why.
    pub reason: ShutdownReason,
    /// How much time there is.
    pub within: Duration,
}

/// What an action came to.
#[derive(Clone, Debug, PartialEq)]
pub struct ActionReply(ActionResult);

impl ActionReply {
    /// It worked.
    #[must_use]
    pub fn ok() -> Self {
        Self(ActionResult { outcome: ActionOutcome::Ok, toast: None, panel: None })
    }

    /// It did not work, and the person is told why.
    #[must_use]
    pub fn error(why: &str) -> Self {
        Self(ActionResult { outcome: ActionOutcome::Error, toast: None, panel: None })
            .say(ToastLevel::Error, why)
    }

    /// Shows a notice.
    #[must_use]
    pub fn say(mut self, level: ToastLevel, message: &str) -> Self {
        self.0.toast = Some(ActionToast { message: one_line(message, MAX_TOAST), level });
        self
    }

    /// Changes the panel. Where the session speaks 1.0 this is left out.
    #[must_use]
    pub fn show(mut self, panel: PanelPatch) -> Self {
        self.0.panel = Some(panel);
        self
    }

    /// As the session's version has it.
    pub(super) fn at(mut self, version: Version) -> ActionResult {
        if !version.serves(V1_1) {
            self.0.panel = None;
        }
        self.0
    }
}

/// The longest notice, in code points.
const MAX_TOAST: usize = 280;

/// Text on one line, cut to so many code points; the contract has no notices of more than one line.
pub(crate) fn one_line(text: &str, most: usize) -> String {
    let line: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(most).collect();
    if line.trim().is_empty() { "it failed without a word".into() } else { line }
}
