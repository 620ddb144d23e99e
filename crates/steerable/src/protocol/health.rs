//! How a runtime is: the answer to `system.ping`, and what follows the ready marker.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A health, in both directions. Members that releases of other runtimes leave out have defaults.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Health {
    /// `ok`, `degraded`, `starting` or `shutting_down`.
    pub status: String,
    /// The program's version.
    pub version: String,
    /// The protocol's version.
    #[serde(default)]
    pub protocol_version: String,
    /// For how long it has run.
    #[serde(default)]
    pub uptime_ms: u64,
    /// Its process.
    #[serde(default)]
    pub pid: u32,
    /// Written by runtimes in that language.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub python_version: Option<String>,
    /// `linux-x86_64` and the like.
    #[serde(default)]
    pub platform: String,
    /// The providers it knows.
    #[serde(default)]
    pub loaded_providers: Vec<String>,
    /// How many tools it has.
    #[serde(default)]
    pub loaded_tools: u64,
    /// How many traces are being written.
    #[serde(default)]
    pub active_traces: u64,
    /// What was looked at, by name.
    #[serde(default)]
    pub checks: BTreeMap<String, Check>,
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Check {
    /// `ok`, `warn` or `error`.
    pub status: String,
    /// What is wrong, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// How long looking took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_ms: Option<u64>,
}

impl Check {
    /// A check that is well.
    #[must_use]
    pub fn ok() -> Self {
        Self { status: "ok".into(), message: None, latency_ms: None }
    }

    /// Whether it is well.
    #[must_use]
    pub fn is_ok(&self) -> bool {
        self.status == "ok"
    }
}

/// What `lifecycle.ready` says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Ready {
    /// The program's version.
    pub version: String,
    /// The protocol's version.
    #[serde(default)]
    pub protocol_version: String,
    /// Its process.
    #[serde(default)]
    pub pid: u32,
    /// How it is reached.
    #[serde(default)]
    pub listen_info: ListenInfo,
}

/// How a runtime is reached.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListenInfo {
    /// Always `stdio`.
    #[serde(default)]
    pub transport: String,
}

/// What this machine is called in a health.
#[must_use]
pub fn platform() -> String {
    let os = match std::env::consts::OS {
        "macos" => "darwin",
        other => other,
    };
    let machine = match (os, std::env::consts::ARCH) {
        ("darwin", "aarch64") => "arm64",
        (_, other) => other,
    };
    format!("{os}-{machine}")
}
