//! Healths, written once and then only filled in: a host may ask for thousands of them.

use std::fmt::Write as _;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use serde_json::value::RawValue;

use crate::model::NAMES;
use crate::protocol::{Check, PROTOCOL_VERSION, platform};

/// Writes healths.
pub(super) struct Pulse {
    started: Instant,
    /// From the version to the number before `uptimeMs`.
    head: String,
    /// From `pid` to the number before `loadedTools`.
    middle: String,
    /// The last one, which is good for the rest of its millisecond.
    last: Mutex<Option<Beat>>,
}

/// Where a runtime is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Serving,
    Closing,
}

struct Beat {
    key: Key,
    health: Box<RawValue>,
}

#[derive(PartialEq, Eq)]
struct Key {
    uptime_ms: u128,
    phase: Phase,
    tools: usize,
    active: u64,
    checks: Vec<(String, Check)>,
}

impl Pulse {
    pub(super) fn new(version: &str, started: Instant) -> Self {
        let quoted = |text: &str| serde_json::Value::from(text).to_string();
        let providers = serde_json::Value::from(NAMES.as_slice()).to_string();
        let head =
            format!(r#","version":{},"protocolVersion":"{PROTOCOL_VERSION}","uptimeMs":"#, quoted(version));
        let middle = format!(
            r#","pid":{},"platform":{},"loadedProviders":{providers},"loadedTools":"#,
            std::process::id(),
            quoted(&platform())
        );
        Self { started, head, middle, last: Mutex::new(None) }
    }

    /// A health, now.
    pub(super) fn health(
        &self,
        phase: Phase,
        tools: usize,
        active: u64,
        checks: &[(String, Check)],
    ) -> Box<RawValue> {
        let uptime_ms = self.started.elapsed().as_millis();
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(Beat { key, health }) = &*last
            && (key.uptime_ms, key.phase, key.tools, key.active) == (uptime_ms, phase, tools, active)
            && key.checks == checks
        {
            return health.clone();
        }
        let key = Key { uptime_ms, phase, tools, active, checks: checks.to_vec() };
        let health = self.write(&key);
        *last = Some(Beat { key, health: health.clone() });
        health
    }

    fn write(&self, key: &Key) -> Box<RawValue> {
        let status = match key.phase {
            Phase::Closing => "shutting_down",
            Phase::Serving if key.checks.iter().all(|(_, check)| check.is_ok()) => "ok",
            Phase::Serving => "degraded",
        };
        let mut json = String::with_capacity(512);
        let Key { uptime_ms, tools, active, .. } = key;
        // Writing to a string cannot fail.
        let _ = write!(json, r#"{{"status":"{status}"{}{uptime_ms}{}{tools}"#, self.head, self.middle);
        let _ = write!(json, r#","activeTraces":{active},"checks":{{"#);
        for (at, (name, check)) in key.checks.iter().enumerate() {
            let comma = if at == 0 { "" } else { "," };
            let name = serde_json::Value::from(name.as_str());
            let check = serde_json::to_string(check).unwrap_or_default();
            let _ = write!(json, "{comma}{name}:{check}");
        }
        json.push_str("}}");
        // It is put together from JSON, so it is JSON.
        RawValue::from_string(json).unwrap_or_else(|_| RawValue::NULL.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Health;

    #[test]
    fn a_health_says_what_hosts_expect() {
        let pulse = Pulse::new("1.2.3 \"x\"", Instant::now());
        let warn = Check { status: "warn".into(), message: Some("slow".into()), latency_ms: Some(7) };
        let checks = [("storage".to_owned(), Check::ok()), ("mcp:a\"b".to_owned(), warn.clone())];
        let health: Health = serde_json::from_str(pulse.health(Phase::Serving, 3, 2, &checks).get()).unwrap();
        assert_eq!(health.status, "degraded");
        assert_eq!((&*health.version, &*health.protocol_version), ("1.2.3 \"x\"", "0.1.0"));
        assert_eq!((health.loaded_tools, health.active_traces), (3, 2));
        assert_eq!(health.checks.get("mcp:a\"b"), Some(&warn));
        assert_eq!(health.pid, std::process::id());
        let closing: Health =
            serde_json::from_str(pulse.health(Phase::Closing, 3, 2, &checks).get()).unwrap();
        assert_eq!(closing.status, "shutting_down");
        let well: Health =
            serde_json::from_str(pulse.health(Phase::Serving, 3, 2, &checks[..1]).get()).unwrap();
        assert_eq!(well.status, "ok");
    }
}
