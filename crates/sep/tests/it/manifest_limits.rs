//! The schema of manifests, word by word: what is at a limit is accepted, what is one past it is told.

use libtest_mimic::Trial;
use outrigger_sep::manifest::{Checked, Finding, Severity, check_bytes};
use outrigger_sep::protocol::Permission;
use serde_json::{Value, json};

use crate::manifest_fixture::{android, codes, desktop, set, with, without};

pub(crate) fn trials() -> Vec<Trial> {
    trials![
        what_is_at_a_limit_is_accepted,
        what_is_one_past_a_limit_is_told_with_its_place_and_its_word,
        everything_that_is_missing_is_told,
        nothing_unknown_is_accepted_anywhere,
    ]
}

fn check(manifest: &Value) -> Checked {
    check_bytes(manifest.to_string().as_bytes())
}

fn text(length: usize) -> Value {
    json!("x".repeat(length))
}

fn what_is_at_a_limit_is_accepted() {
    let variables = |count: usize| (0..count).map(|i| (format!("V{i}"), json!(""))).collect::<Value>();
    let topics = |count: usize| (0..count).map(|i| json!(format!("a.b{i}"))).collect::<Value>();
    let panel = |id: String, title: &str| json!({"id": id, "title": title, "slot": "tools.page.advanced"});
    let panels = |count: usize| (0..count).map(|i| panel(format!("p{i}"), "t")).collect::<Value>();
    let platforms = json!([
        "linux-x64",
        "linux-arm64",
        "windows-x64",
        "windows-arm64",
        "macos-x64",
        "macos-arm64",
        "android-arm64"
    ]);
    let phone = |key: &str, value: Value| {
        let mut phone = android()["android"].take();
        phone[key] = value;
        phone
    };
    let table = [
        ("/schemaVersion", json!("1.0.9")),
        ("/schemaVersion", json!("01.0.0")),
        ("/id", json!("a.b")),
        ("/id", json!(format!("a.{}", "b".repeat(126)))),
        ("/id", json!("1-2_3.four")),
        ("/name", json!("x")),
        ("/name", json!("🌦".repeat(80))),
        ("/description", json!("")),
        ("/description", json!("é".repeat(512))),
        ("/description", json!("two\nlines\tand a tab")),
        ("/version", json!("1.0.0-rc.1")),
        ("/version", json!("1.0.0+5")),
        ("/version", json!("01.0.0")),
        ("/version", json!("1.0.0-a..b")),
        ("/apiVersion", json!("1.0.7")),
        ("/apiVersion", json!("1.1.0")),
        ("/trustLevel", json!("first_party")),
        ("/trustLevel", json!("untrusted_local")),
        ("/entrypoint/command", json!("x")),
        ("/entrypoint/command", text(256)),
        ("/entrypoint/command", json!("./bin/../bin/weather")),
        ("/entrypoint/args", json!(vec![""; 64])),
        ("/entrypoint/args", json!(["🌦".repeat(2048)])),
        ("/entrypoint/workingDirectory", text(512)),
        ("/entrypoint/workingDirectory", json!("")),
        ("/entrypoint/environment", variables(64)),
        ("/entrypoint/environment", json!({"_": "x".repeat(4096), "A1_": "\u{1F326}\n"})),
        ("/permissions", json!(Permission::ALL)),
        ("/events/subscribe", topics(256)),
        ("/events/subscribe/1", json!(format!("a.{}", "b".repeat(126)))),
        ("/events", json!({})),
        ("/health/startupTimeoutMs", json!(1000)),
        ("/health/startupTimeoutMs", json!(120_000)),
        ("/health/startupTimeoutMs", json!(1000.0)),
        ("/health/heartbeatIntervalMs", json!(1e4)),
        ("/health/heartbeatIntervalMs", json!(1000)),
        ("/health/heartbeatIntervalMs", json!(120_000)),
        ("/health/unhealthyAfterMissedHeartbeats", json!(1)),
        ("/health/unhealthyAfterMissedHeartbeats", json!(20)),
        ("/limits/maxRequestBytes", json!(1024)),
        ("/limits/maxRequestBytes", json!(4_194_304)),
        ("/limits/maxRequestsPerSecond", json!(1)),
        ("/limits/maxRequestsPerSecond", json!(10_000)),
        ("/limits/maxConcurrentRequests", json!(1)),
        ("/limits/maxConcurrentRequests", json!(1024)),
        ("/ui", json!({})),
        ("/ui/toolPanels", json!([])),
        ("/ui/toolPanels", panels(32)),
        ("/ui/toolPanels/0", panel("p".repeat(128), &"🌦".repeat(80))),
        ("/ui/toolPanels/0/slot", json!("tools.page.secondary")),
        ("/compatibility", json!({})),
        ("/compatibility/meshchatx", json!("*")),
        ("/compatibility/meshchatx", json!(format!(">=4.5.0{}", " ".repeat(57)))),
        ("/compatibility/platforms", platforms),
        ("/compatibility/platforms", json!([])),
        ("/android", phone("maxMemoryMb", json!(16))),
        ("/android", phone("maxMemoryMb", json!(2048.0))),
        ("/android", phone("maxStartupTimeMs", json!(1000))),
        ("/android", phone("maxStartupTimeMs", json!(120_000))),
        ("/android", phone("runtimeMode", json!("approved_runtime"))),
        ("/signing", json!({"required": false, "keyId": "k".repeat(256), "signature": "s".repeat(8192)})),
    ];
    for (pointer, value) in table {
        let checked = check(&with(pointer, value.clone()));
        let wrong = checked.findings.iter().find(|finding| finding.severity != Severity::Warning);
        assert_eq!(wrong, None, "{pointer} {value}");
        assert!(checked.manifest.is_some(), "{pointer} {value}");
    }
    // Without permissions nothing is heard or shown, but the manifest is right.
    let checked = check(&with("/permissions", json!([])));
    assert_eq!(codes(&checked.findings), ["M-event-perm", "M-panel-perm"]);
    assert!(checked.manifest.is_some());
    // Numbers are read, however they are spelled.
    let spelled = desktop().to_string().replace("8000", "8e3").replace("10000", "10000.000");
    let manifest = check_bytes(spelled.as_bytes()).manifest.expect("it is right");
    assert_eq!((manifest.health.startup.as_millis(), manifest.health.heartbeat.as_millis()), (8000, 10_000));
}

fn what_is_one_past_a_limit_is_told_with_its_place_and_its_word() {
    let variables = |count: usize| (0..count).map(|i| (format!("V{i}"), json!(""))).collect::<Value>();
    let many = |count: usize| (0..count).map(|i| json!(format!("a.b{i}"))).collect::<Value>();
    let panel = |i: usize| json!({"id": format!("p{i}"), "title": "t", "slot": "tools.page.primary"});
    let panels = |count: usize| (0..count).map(panel).collect::<Value>();
    let phone = |value: Value| {
        let mut phone = android()["android"].take();
        for (key, value) in value.as_object().expect("members") {
            phone[key] = value.clone();
        }
        phone
    };
    // Where it is set, to what, where the finding is, and which word of the schema it names.
    let table = [
        ("/schemaVersion", json!(1), "/schemaVersion", "type"),
        ("/schemaVersion", json!("1.0"), "/schemaVersion", "pattern"),
        ("/schemaVersion", json!("１.０.０"), "/schemaVersion", "pattern"),
        ("/schemaVersion", json!("1.0.0\n"), "/schemaVersion", "pattern"),
        ("/id", json!("ab"), "/id", "minLength"),
        ("/id", json!("abc"), "/id", "pattern"),
        ("/id", json!("A.b"), "/id", "pattern"),
        ("/id", json!("a.b."), "/id", "pattern"),
        ("/id", json!(format!("a.{}", "b".repeat(127))), "/id", "maxLength"),
        ("/name", json!(""), "/name", "minLength"),
        ("/name", json!("🌦".repeat(81)), "/name", "maxLength"),
        ("/name", Value::Null, "/name", "type"),
        ("/description", text(513), "/description", "maxLength"),
        ("/description", Value::Null, "/description", "type"),
        ("/version", json!("1.0.0-rc.1+5"), "/version", "pattern"),
        ("/version", json!("1.0.0-"), "/version", "pattern"),
        ("/version", json!("1.0.0\n"), "/version", "pattern"),
        ("/version", json!("１.２.３"), "/version", "pattern"),
        ("/apiVersion", json!("1.0.0-rc"), "/apiVersion", "pattern"),
        ("/trustLevel", json!("root"), "/trustLevel", "enum"),
        ("/trustLevel", json!(["first_party"]), "/trustLevel", "type"),
        ("/platformProfile", json!("ios"), "/platformProfile", "enum"),
        ("/entrypoint", json!([]), "/entrypoint", "type"),
        ("/entrypoint/command", json!(""), "/entrypoint/command", "minLength"),
        ("/entrypoint/command", text(257), "/entrypoint/command", "maxLength"),
        ("/entrypoint/args", json!(vec![""; 65]), "/entrypoint/args", "maxItems"),
        ("/entrypoint/args", json!("main.py"), "/entrypoint/args", "type"),
        ("/entrypoint/args", json!(["ok", "x".repeat(2049)]), "/entrypoint/args/1", "maxLength"),
        ("/entrypoint/args", json!([1]), "/entrypoint/args/0", "type"),
        ("/entrypoint/workingDirectory", text(513), "/entrypoint/workingDirectory", "maxLength"),
        ("/entrypoint/environment", variables(65), "/entrypoint/environment", "maxProperties"),
        ("/entrypoint/environment", json!({"a": ""}), "/entrypoint/environment/a", "propertyNames"),
        ("/entrypoint/environment", json!({"A/~": ""}), "/entrypoint/environment/A~1~0", "propertyNames"),
        ("/entrypoint/environment", json!({"": ""}), "/entrypoint/environment/", "propertyNames"),
        ("/entrypoint/environment", json!({"A": 1}), "/entrypoint/environment/A", "type"),
        ("/entrypoint/environment", json!({"A": "x".repeat(4097)}), "/entrypoint/environment/A", "maxLength"),
        ("/permissions", json!(["messages.delete"]), "/permissions/0", "enum"),
        ("/permissions", json!(["messages.read", "messages.read"]), "/permissions", "uniqueItems"),
        ("/permissions", json!(vec!["messages.read"; 65]), "/permissions", "maxItems"),
        ("/permissions", json!({}), "/permissions", "type"),
        ("/events/subscribe", many(257), "/events/subscribe", "maxItems"),
        ("/events/subscribe", json!(["a.b", "a.b"]), "/events/subscribe", "uniqueItems"),
        ("/events/subscribe", json!(["message"]), "/events/subscribe/0", "pattern"),
        ("/events/subscribe", json!([format!("a.{}", "b".repeat(127))]), "/events/subscribe/0", "maxLength"),
        ("/health/startupTimeoutMs", json!(999), "/health/startupTimeoutMs", "minimum"),
        ("/health/startupTimeoutMs", json!(120_001), "/health/startupTimeoutMs", "maximum"),
        ("/health/startupTimeoutMs", json!(1000.5), "/health/startupTimeoutMs", "type"),
        ("/health/startupTimeoutMs", json!("1000"), "/health/startupTimeoutMs", "type"),
        ("/health/startupTimeoutMs", json!(1e300), "/health/startupTimeoutMs", "maximum"),
        ("/health/startupTimeoutMs", json!(-1), "/health/startupTimeoutMs", "minimum"),
        ("/health/heartbeatIntervalMs", json!(999), "/health/heartbeatIntervalMs", "minimum"),
        ("/health/heartbeatIntervalMs", json!(120_001), "/health/heartbeatIntervalMs", "maximum"),
        (
            "/health/unhealthyAfterMissedHeartbeats",
            json!(0),
            "/health/unhealthyAfterMissedHeartbeats",
            "minimum",
        ),
        (
            "/health/unhealthyAfterMissedHeartbeats",
            json!(21),
            "/health/unhealthyAfterMissedHeartbeats",
            "maximum",
        ),
        ("/limits/maxRequestBytes", json!(1023), "/limits/maxRequestBytes", "minimum"),
        ("/limits/maxRequestBytes", json!(4_194_305), "/limits/maxRequestBytes", "maximum"),
        ("/limits/maxRequestsPerSecond", json!(0), "/limits/maxRequestsPerSecond", "minimum"),
        ("/limits/maxRequestsPerSecond", json!(10_001), "/limits/maxRequestsPerSecond", "maximum"),
        ("/limits/maxConcurrentRequests", json!(0), "/limits/maxConcurrentRequests", "minimum"),
        ("/limits/maxConcurrentRequests", json!(1025), "/limits/maxConcurrentRequests", "maximum"),
        ("/ui/toolPanels", panels(33), "/ui/toolPanels", "maxItems"),
        ("/ui/toolPanels/0/id", json!(""), "/ui/toolPanels/0/id", "pattern"),
        ("/ui/toolPanels/0/id", text(129), "/ui/toolPanels/0/id", "maxLength"),
        ("/ui/toolPanels/0/title", json!(""), "/ui/toolPanels/0/title", "minLength"),
        ("/ui/toolPanels/0/title", text(81), "/ui/toolPanels/0/title", "maxLength"),
        ("/ui/toolPanels/0/slot", json!("tools.page"), "/ui/toolPanels/0/slot", "enum"),
        ("/compatibility/meshchatx", json!(""), "/compatibility/meshchatx", "minLength"),
        ("/compatibility/meshchatx", json!("*".repeat(65)), "/compatibility/meshchatx", "maxLength"),
        ("/compatibility/platforms", json!(["linux"]), "/compatibility/platforms/0", "enum"),
        ("/compatibility/platforms", json!(vec!["linux-x64"; 17]), "/compatibility/platforms", "maxItems"),
        (
            "/compatibility/platforms",
            json!(["linux-x64", "linux-x64"]),
            "/compatibility/platforms",
            "uniqueItems",
        ),
        ("/android", phone(json!({"maxMemoryMb": 15})), "/android/maxMemoryMb", "minimum"),
        ("/android", phone(json!({"maxMemoryMb": 2049})), "/android/maxMemoryMb", "maximum"),
        ("/android", phone(json!({"maxStartupTimeMs": 999})), "/android/maxStartupTimeMs", "minimum"),
        ("/android", phone(json!({"maxStartupTimeMs": 120_001})), "/android/maxStartupTimeMs", "maximum"),
        ("/android", phone(json!({"runtimeMode": "any"})), "/android/runtimeMode", "enum"),
        (
            "/android",
            phone(json!({"allowBackgroundExecution": "true"})),
            "/android/allowBackgroundExecution",
            "type",
        ),
        ("/signing/required", json!(1), "/signing/required", "type"),
        ("/signing/keyId", text(257), "/signing/keyId", "maxLength"),
        ("/signing/signature", text(8193), "/signing/signature", "maxLength"),
    ];
    for (pointer, value, path, keyword) in table {
        let checked = check(&with(pointer, value.clone()));
        let told = |finding: &Finding| {
            finding.code == "M-schema"
                && finding.severity == Severity::Error
                && finding.path == path
                && finding.keyword == Some(keyword)
        };
        assert!(checked.findings.iter().any(told), "{pointer} {keyword}: {:#?}", checked.findings);
        assert!(checked.manifest.is_none(), "{pointer} {keyword}");
    }
}

fn everything_that_is_missing_is_told() {
    let required = [
        ("", vec!["schemaVersion", "id", "name", "version", "apiVersion", "trustLevel", "entrypoint"]),
        ("", vec!["permissions", "health", "limits"]),
        ("/entrypoint", vec!["command", "args"]),
        ("/health", vec!["startupTimeoutMs", "heartbeatIntervalMs", "unhealthyAfterMissedHeartbeats"]),
        ("/limits", vec!["maxRequestBytes", "maxRequestsPerSecond", "maxConcurrentRequests"]),
        ("/signing", vec!["required", "keyId", "signature"]),
    ];
    for (path, keys) in required {
        for key in keys {
            let checked = check(&without(&format!("{path}/{key}")));
            let finding = checked.findings.iter().find(|finding| finding.keyword == Some("required"));
            let finding = finding.unwrap_or_else(|| panic!("{path}/{key}: {:#?}", checked.findings));
            assert_eq!((finding.path.as_str(), finding.code), (path, "M-schema"));
            assert!(finding.message.contains(&format!("`{key}` is missing")), "{}", finding.message);
        }
    }
    for key in ["id", "title", "slot"] {
        let mut manifest = desktop();
        manifest["ui"]["toolPanels"][0].as_object_mut().expect("an object").remove(key);
        let finding = check(&manifest).findings.remove(0);
        assert_eq!((finding.path.as_str(), finding.keyword), ("/ui/toolPanels/0", Some("required")));
    }
    let missing = check(&json!({})).findings.iter().filter(|it| it.keyword == Some("required")).count();
    assert_eq!(missing, 10);
}

fn nothing_unknown_is_accepted_anywhere() {
    let places = [
        "",
        "/entrypoint",
        "/events",
        "/health",
        "/limits",
        "/ui",
        "/ui/toolPanels/0",
        "/compatibility",
        "/signing",
        "/android",
    ];
    for place in places {
        let mut manifest = android();
        set(&mut manifest, &format!("{place}/zzz"), json!(1));
        let checked = check(&manifest);
        let finding = checked.findings.iter().find(|finding| finding.keyword == Some("additionalProperties"));
        assert_eq!(finding.map(|finding| finding.path.clone()), Some(format!("{place}/zzz")));
    }
}
