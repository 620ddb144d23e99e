//! An extension as people and programs see it from outside: what `list` and `show` answer.

use std::collections::VecDeque;
use std::path::PathBuf;

use serde::Serialize;

use super::life::{ExitRecord, View};
use crate::manifest::{Finding, Found};
use crate::protocol::{
    DeniedTopic, DisabledReason, ExitKind, ExtensionId, FailedReason, LimitsJson, Permission, PermissionList,
    SessionId, State, TrustLevel, Version,
};

/// How many ends of processes are remembered.
pub(super) const KEPT_EXITS: usize = 10;

/// One line about an extension.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    /// Who it is; none if its manifest does not say.
    pub id: Option<ExtensionId>,
    /// What people call it.
    pub name: Option<String>,
    /// Its own version.
    pub version: Option<String>,
    /// Where it is in its life.
    pub state: State,
    /// How far its start has come.
    pub phase: Option<&'static str>,
    /// Why it is switched off.
    pub disabled: Option<DisabledReason>,
    /// Why it cannot run.
    pub failed: Option<FailedReason>,
    /// What is known beyond the state.
    pub detail: Option<String>,
    /// How far it is trusted.
    pub trust: Option<TrustLevel>,
    /// Its process.
    pub pid: Option<u32>,
    /// How long it has been running.
    pub uptime_ms: Option<u64>,
    /// When it is started again.
    pub next_start_ms: Option<u64>,
    /// How many processes it has had.
    pub starts: u64,
    /// How many of them replaced one that ended by itself.
    pub restarts: u64,
    /// Its folder.
    pub dir: PathBuf,
}

/// Everything about an extension.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Detail {
    /// The one line.
    pub summary: Summary,
    /// What was noticed about its manifest and its files.
    pub findings: Vec<Finding>,
    /// How far it wants to be trusted.
    pub claimed_trust: Option<TrustLevel>,
    /// Why it is trusted less than that.
    pub clamped: Option<String>,
    /// What its files are; an operator who approves them writes this down.
    pub tree_sha256: Option<String>,
    /// What it asks for.
    pub declared: Vec<Permission>,
    /// What it may do, and what not and why.
    pub permissions: Option<PermissionList>,
    /// What it hears about.
    pub events: Option<HeardEvents>,
    /// What it may use.
    pub limits: Option<LimitsJson>,
    /// The session, while there is one.
    pub session: Option<SessionView>,
    /// How its last processes ended, the latest last.
    pub exits: VecDeque<Exit>,
}

/// What an extension hears about.
#[derive(Clone, Debug, Serialize)]
pub struct HeardEvents {
    /// These topics.
    pub subscribed: Vec<String>,
    /// Not these.
    pub denied: Vec<DeniedTopic>,
}

/// The session of an extension.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionView {
    /// Which.
    pub id: SessionId,
    /// What it speaks, once that is agreed.
    pub protocol_version: Option<Version>,
    /// The kit it is made with, as it says.
    pub sdk: Option<String>,
    /// How it is connected.
    pub transport: &'static str,
    /// What its box is made of.
    pub sandbox: serde_json::Value,
}

/// The end of a process.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Exit {
    /// How it ended.
    pub kind: ExitKind,
    /// Its exit code.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// When, since the epoch.
    pub time_ms: u64,
    /// How long it had been ready.
    pub ready_ms: u64,
    /// What is known beyond the kind.
    pub detail: Option<String>,
    /// Whether it counts towards the crash loop.
    pub counted: bool,
    /// What followed.
    pub next: State,
    /// The wait before the next start.
    pub restart_in_ms: Option<u64>,
    /// What it said last on standard error.
    pub last_words: Vec<String>,
}

impl Exit {
    pub(super) fn new(record: &ExitRecord, time_ms: u64, last_words: Vec<String>) -> Self {
        let ExitRecord { kind, code, signal, ready_for, detail, counted, next, restart_in } = record;
        Self {
            kind: *kind,
            code: *code,
            signal: *signal,
            time_ms,
            ready_ms: millis(*ready_for),
            detail: detail.clone(),
            counted: *counted,
            next: *next,
            restart_in_ms: restart_in.map(millis),
            last_words,
        }
    }
}

impl Summary {
    /// What is known of an extension that has no life in this host.
    pub(super) fn of(found: &Found, state: State) -> Self {
        let manifest = found.manifest.as_deref();
        Self {
            id: found.id.clone(),
            name: manifest.map(|manifest| manifest.name.clone()),
            version: manifest.map(|manifest| manifest.version.clone()),
            state,
            phase: None,
            disabled: None,
            failed: None,
            detail: worst(found),
            trust: found.admission.as_ref().map(|admission| admission.trust),
            pid: None,
            uptime_ms: None,
            next_start_ms: None,
            starts: 0,
            restarts: 0,
            dir: found.dir.clone(),
        }
    }

    /// With what its life says.
    pub(super) fn living(self, view: &View) -> Self {
        Self {
            state: view.state,
            phase: view.phase.map(super::life::StartPhase::as_str),
            disabled: view.disabled,
            failed: view.failed,
            detail: view.detail.clone(),
            starts: view.starts,
            restarts: view.restarts,
            ..self
        }
    }
}

/// What stands most in the way of an extension.
pub(super) fn worst(found: &Found) -> Option<String> {
    let worst = found.findings.iter().min_by_key(|finding| finding.severity)?;
    let at = if worst.path.is_empty() { String::new() } else { format!(" at {}", worst.path) };
    Some(format!("{}{at}: {}", worst.code, worst.message))
}

pub(super) fn millis(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
