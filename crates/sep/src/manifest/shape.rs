//! From a value that obeys the schema to a manifest.

use std::time::Duration;

use serde_json::Value;

use super::model::{
    Android, Compatibility, Entrypoint, Health, Manifest, PanelClaim, RequestLimits, RuntimeMode, Signing,
};
use crate::protocol::{ExtensionId, Permission, Profile, Slot, TrustLevel, Version};

/// The manifest; none if the value does not obey the schema.
pub(super) fn manifest(value: &Value) -> Option<Manifest> {
    let mut permissions: Vec<Permission> = texts(&value["permissions"])?
        .iter()
        .map(|word| Permission::parse(word).ok())
        .collect::<Option<_>>()?;
    permissions.sort();
    Some(Manifest {
        schema_version: Version::parse(value["schemaVersion"].as_str()?).ok()?,
        id: ExtensionId::new(value["id"].as_str()?).ok()?,
        name: text(&value["name"])?,
        description: text(&value["description"]),
        version: text(&value["version"])?,
        api_version: Version::parse(value["apiVersion"].as_str()?).ok()?,
        claimed_trust: TrustLevel::parse(value["trustLevel"].as_str()?).ok()?,
        profile: match value["platformProfile"].as_str() {
            Some(word) => Profile::parse(word).ok()?,
            None => Profile::Desktop,
        },
        entrypoint: entrypoint(&value["entrypoint"])?,
        permissions,
        events: optional(&value["events"]["subscribe"], texts)?.unwrap_or_default(),
        health: health(&value["health"])?,
        limits: RequestLimits {
            max_request_bytes: integer(&value["limits"]["maxRequestBytes"])?,
            max_requests_per_second: integer(&value["limits"]["maxRequestsPerSecond"])?,
            max_concurrent_requests: integer(&value["limits"]["maxConcurrentRequests"])?,
        },
        panels: optional(&value["ui"]["toolPanels"], panels)?.unwrap_or_default(),
        compatibility: Compatibility {
            host: text(&value["compatibility"]["meshchatx"]),
            platforms: optional(&value["compatibility"]["platforms"], texts)?.unwrap_or_default(),
        },
        android: optional(&value["android"], android)?,
        signing: optional(&value["signing"], signing)?,
    })
}

fn entrypoint(value: &Value) -> Option<Entrypoint> {
    let environment = value["environment"].as_object().into_iter().flatten();
    Some(Entrypoint {
        command: text(&value["command"])?,
        args: texts(&value["args"])?,
        working_directory: text(&value["workingDirectory"]).unwrap_or_else(|| ".".to_owned()),
        environment: environment
            .map(|(name, value)| Some((name.clone(), text(value)?)))
            .collect::<Option<_>>()?,
    })
}

fn health(value: &Value) -> Option<Health> {
    Some(Health {
        startup: millis(&value["startupTimeoutMs"])?,
        heartbeat: millis(&value["heartbeatIntervalMs"])?,
        missed: integer(&value["unhealthyAfterMissedHeartbeats"])?,
    })
}

fn panels(value: &Value) -> Option<Vec<PanelClaim>> {
    let panel = |value: &Value| {
        Some(PanelClaim {
            id: text(&value["id"])?,
            title: text(&value["title"])?,
            slot: Slot::parse(value["slot"].as_str()?).ok()?,
        })
    };
    value.as_array()?.iter().map(panel).collect()
}

fn android(value: &Value) -> Option<Android> {
    Some(Android {
        runtime: match value["runtimeMode"].as_str()? {
            "packaged_module" => RuntimeMode::PackagedModule,
            "approved_runtime" => RuntimeMode::ApprovedRuntime,
            _ => return None,
        },
        background: value["allowBackgroundExecution"].as_bool()?,
        max_startup: optional(&value["maxStartupTimeMs"], millis)?,
        max_memory_mb: optional(&value["maxMemoryMb"], integer)?,
    })
}

fn signing(value: &Value) -> Option<Signing> {
    Some(Signing {
        required: value["required"].as_bool()?,
        key_id: text(&value["keyId"])?,
        signature: text(&value["signature"])?,
    })
}

/// What is absent is fine, what is there must be right.
fn optional<T>(value: &Value, read: impl Fn(&Value) -> Option<T>) -> Option<Option<T>> {
    match value {
        Value::Null => Some(None),
        value => read(value).map(Some),
    }
}

fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

fn texts(value: &Value) -> Option<Vec<String>> {
    value.as_array()?.iter().map(text).collect()
}

fn millis(value: &Value) -> Option<Duration> {
    integer(value).map(|ms| Duration::from_millis(ms.into()))
}

/// An integer, also if it is spelled 1000.0 or 1e4.
fn integer(value: &Value) -> Option<u32> {
    let number = value.as_f64().filter(|number| number.fract() == 0.0)?;
    let in_range = (0.0..=f64::from(u32::MAX)).contains(&number);
    // In range and whole, so that nothing is lost.
    in_range.then_some(number as u32)
}
