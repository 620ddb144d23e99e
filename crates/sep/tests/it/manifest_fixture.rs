//! Manifests and folders for the tests of what is on disk.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use outrigger_sep::config::HostPolicy;
use outrigger_sep::manifest::{FILE_NAME, Finding, Found, HostFacts, Standing};
use outrigger_sep::protocol::Profile;
use serde_json::{Value, json};

/// A right manifest for a computer.
pub(crate) fn desktop() -> Value {
    json!({
        "schemaVersion": "1.0.0",
        "id": "org.example.weather",
        "name": "Weather notes",
        "description": "Answers questions about the weather",
        "version": "0.3.1",
        "apiVersion": "1.0.0",
        "trustLevel": "trusted_third_party",
        "platformProfile": "desktop",
        "entrypoint": {
            "command": "bin/weather",
            "args": ["--quiet"],
            "workingDirectory": ".",
            "environment": {"WEATHER_UNITS": "metric"}
        },
        "permissions": ["events.subscribe", "messages.read", "messages.send", "tools.register"],
        "events": {"subscribe": ["message.received", "peer.online"]},
        "health": {
            "startupTimeoutMs": 8000,
            "heartbeatIntervalMs": 10000,
            "unhealthyAfterMissedHeartbeats": 3
        },
        "limits": {"maxRequestBytes": 65536, "maxRequestsPerSecond": 40, "maxConcurrentRequests": 8},
        "ui": {"toolPanels": [{"id": "today", "title": "Today", "slot": "tools.page.primary"}]},
        "compatibility": {"meshchatx": ">=4.5.0"},
        "signing": {"required": false, "keyId": "", "signature": ""}
    })
}

/// A right manifest for a phone, not signed although it says that it must be.
pub(crate) fn android() -> Value {
    let mut manifest = desktop();
    set(&mut manifest, "/trustLevel", json!("first_party"));
    set(&mut manifest, "/platformProfile", json!("android"));
    set(&mut manifest, "/entrypoint/command", json!("meshchatx-android-extension-runtime"));
    set(&mut manifest, "/entrypoint/args", json!(["weather"]));
    set(
        &mut manifest,
        "/android",
        json!({
            "runtimeMode": "packaged_module",
            "allowBackgroundExecution": false,
            "maxStartupTimeMs": 12000,
            "maxMemoryMb": 128
        }),
    );
    set(&mut manifest, "/compatibility/platforms", json!(["android-arm64"]));
    set(&mut manifest, "/signing", json!({"required": true, "keyId": "makers", "signature": ""}));
    manifest
}

/// Puts a value where the pointer says; objects on the way are made.
pub(crate) fn set(manifest: &mut Value, pointer: &str, value: Value) {
    let mut place = manifest;
    for key in pointer.split('/').skip(1) {
        let key = key.replace("~1", "/").replace("~0", "~");
        place = match place {
            Value::Array(items) => &mut items[key.parse::<usize>().expect("an index")],
            other => &mut other[key.as_str()],
        };
    }
    *place = value;
}

/// The manifest with one thing changed.
pub(crate) fn with(pointer: &str, value: Value) -> Value {
    let mut manifest = desktop();
    set(&mut manifest, pointer, value);
    manifest
}

/// The manifest without one thing.
pub(crate) fn without(pointer: &str) -> Value {
    let mut manifest = desktop();
    let (parent, key) = pointer.rsplit_once('/').expect("a pointer to a member");
    let members = manifest.pointer_mut(parent).and_then(Value::as_object_mut).expect("an object");
    members.remove(key).expect("it is there");
    manifest
}

/// A folder with extensions, and the policy of somebody who has it.
pub(crate) struct Site {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) policy: HostPolicy,
    pub(crate) facts: HostFacts,
}

impl Site {
    pub(crate) fn new(profile: Profile) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path().canonicalize().expect("it exists");
        let policy = HostPolicy::new(root.join("state"), vec![root.join("ext")]);
        fs::create_dir_all(root.join("ext")).expect("a folder");
        let facts = HostFacts::here("0.1.0", profile);
        Self { folder, policy, facts }
    }

    /// Where extensions are.
    pub(crate) fn root(&self) -> PathBuf {
        self.policy.extensions_dirs[0].clone()
    }

    /// Writes an extension with a program, and says where it is.
    pub(crate) fn install(&self, manifest: &Value) -> PathBuf {
        let dir = self.root().join(manifest["id"].as_str().expect("an id"));
        install_into(&dir, manifest);
        dir
    }

    pub(crate) fn discover(&self) -> Vec<Found> {
        outrigger_sep::manifest::discover(&self.policy, &self.facts)
    }

    /// The only one there is.
    pub(crate) fn only(&self) -> Found {
        let mut all = self.discover();
        assert_eq!(all.len(), 1, "{all:?}");
        all.remove(0)
    }
}

/// Writes an extension with a program into `dir`.
pub(crate) fn install_into(dir: &Path, manifest: &Value) {
    fs::create_dir_all(dir.join("bin")).expect("a folder");
    let text = serde_json::to_string_pretty(manifest).expect("JSON");
    write(&dir.join(FILE_NAME), text.as_bytes(), 0o644);
    write(&dir.join("bin/weather"), b"#!/bin/sh\nexit 0\n", 0o755);
    for folder in [dir, &dir.join("bin")] {
        fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).expect("it is ours");
    }
}

pub(crate) fn write(path: &Path, bytes: &[u8], mode: u32) {
    fs::write(path, bytes).expect("a file");
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("it is ours");
}

/// The codes of the findings, in their order, each once.
pub(crate) fn codes(findings: &[Finding]) -> Vec<&'static str> {
    let mut codes: Vec<&str> = findings.iter().map(|finding| finding.code).collect();
    codes.dedup();
    codes
}

#[track_caller]
pub(crate) fn assert_standing(found: &Found, standing: Standing, expected: &[&str]) {
    assert_eq!(found.standing, standing, "{:#?}", found.findings);
    for code in expected {
        assert!(codes(&found.findings).contains(code), "{code} is not among {:#?}", found.findings);
    }
    let decided = matches!(standing, Standing::Admitted | Standing::Unavailable);
    assert_eq!(found.admission.is_some(), decided);
}
