//! What must never change: payloads and errors of both versions, as they are on the wire.

use outrigger_wire::rpc::code;
use serde_json::{Value, json};

use super::{Trial, everything, limits, outcome, request, right_params};
use crate::mesh::Refused;
use crate::protocol::{
    BadParam, Component, DisabledReason, ExitKind, Fault, HostMethod, METHODS, Outcome, ParseFault,
    Permission, Profile, Quota, RequestFault, State, Thing, V1_0, V1_1, Version,
};

#[test]
fn every_error_is_what_was_agreed_on() {
    let faults = [
        Fault::Parse(ParseFault::InvalidUtf8),
        Fault::Request(RequestFault::BatchUnsupported),
        Fault::UnknownMethod,
        Fault::VersionGated { since: V1_1 },
        Fault::Params(vec![BadParam { path: "/limit".into(), reason: "must be …".into() }]),
        Fault::Internal { reference: "01J-1".into() },
        Fault::TooLarge { limit: 1024 },
        Fault::NotInitialized,
        Fault::AlreadyInitialized,
        Fault::VersionUnsupported { requested: "2.0.0".into(), supported: vec![V1_1, V1_0] },
        Fault::ShuttingDown,
        Fault::AuthFailed,
        Fault::PermissionDenied {
            permission: Some(Permission::ContactsRead),
            method: "host.contacts.list",
            reason: "not_declared",
        },
        Fault::UnknownCapability { name: "x.y".into() },
        Fault::RateLimited { retry_after_ms: 12, limit: 20 },
        Fault::TooManyInFlight { limit: 8 },
        Fault::Timeout { timeout_ms: 15_000, outcome: Outcome::Unknown },
        Fault::Timeout { timeout_ms: 10_000, outcome: Outcome::Nothing },
        Fault::Cancelled,
        Fault::NotFound(Thing::Panel),
        Fault::Conflict(Thing::ClientMessageId),
        Fault::QuotaExceeded { quota: Quota::ToastsPerMinute, limit: 20 },
        Fault::Unavailable(Component::Audit),
        Fault::SendRejected(Refused::NoPath),
        Fault::ProfileUnsupported { profile: Profile::Android, reason: "no runtime".into() },
        Fault::Suspended { state: State::Suspended },
        Fault::NotRunning { state: State::Backoff },
        Fault::Crashed { exit: ExitKind::Crash },
        Fault::Disabled { reason: DisabledReason::CrashLoop },
    ];
    let line = |fault: &Fault| {
        let error = fault.to_error();
        format!("{} {}", error.code, error.data.expect("every error has details"))
    };
    insta::assert_snapshot!(faults.iter().map(line).collect::<Vec<_>>().join("\n"));
    for row in code::STANDARD.iter().chain(code::sep::TABLE) {
        assert!(
            faults.iter().any(|fault| fault.code() == row.code && fault.slug() == row.slug),
            "{}",
            row.slug
        );
    }
    let words = |all: &[&str]| all.join(" ");
    let spelled = [
        words(&ParseFault::ALL.iter().map(|word| word.as_str()).collect::<Vec<_>>()),
        words(&RequestFault::ALL.iter().map(|word| word.as_str()).collect::<Vec<_>>()),
        words(&Thing::ALL.iter().map(|word| word.as_str()).collect::<Vec<_>>()),
        words(&Quota::ALL.iter().map(|word| word.as_str()).collect::<Vec<_>>()),
        words(&Component::ALL.iter().map(|word| word.as_str()).collect::<Vec<_>>()),
        words(&super::super::grants::Reason::ALL.iter().map(|word| word.as_str()).collect::<Vec<_>>()),
    ];
    insta::assert_snapshot!(spelled.join("\n"), @r"
    invalid_utf8 invalid_json depth duplicate_key
    batch_unsupported duplicate_id bad_id bad_envelope
    panel slot action client_message_id
    messages_per_minute toasts_per_minute panels actions_per_panel
    messaging contacts ui audit
    granted not_declared not_granted revoked trust_ceiling profile_forbidden version_gated session_state notification_form unmapped
    ");
}

/// Every method once, with everything granted, and what came back.
async fn conversation(version: Version) -> String {
    let mut trial = Trial::at(version, limits(), everything());
    let mut lines = Vec::new();
    for row in METHODS {
        let params = right_params(row.method);
        let frame = request(&json!(row.method.as_str()), row.method.as_str(), Some(params));
        lines.push(format!("> {frame}"));
        let answer = trial.exchange(&frame).await;
        let shown = match outcome(answer) {
            Ok(result) => json!({ "result": result }),
            Err(error) => json!({ "error": error }),
        };
        lines.push(format!("< {}", serde_json::to_string_pretty(&shown).expect("JSON")));
    }
    lines.join("\n")
}

#[tokio::test(start_paused = true)]
async fn every_payload_of_1_1_is_what_was_agreed_on() {
    insta::assert_snapshot!(conversation(V1_1).await);
}

#[tokio::test(start_paused = true)]
async fn every_payload_of_1_0_is_what_was_agreed_on() {
    insta::assert_snapshot!(conversation(V1_0).await);
}

#[tokio::test(start_paused = true)]
async fn at_1_0_what_is_new_in_1_1_does_not_exist() {
    let mut trial = Trial::at(V1_0, limits(), everything());
    for row in METHODS.iter().filter(|row| row.since == V1_1) {
        let answer = trial.call(row.method, json!([])).await;
        let data = json!({ "sep": "method_not_found", "reason": "version_gated", "since": "1.1.0" });
        assert_eq!(answer, Err(json!({ "code": -32601, "data": data })), "{}", row.method);
    }
    let gated = METHODS.iter().filter(|row| row.since == V1_1 && row.permission.is_some()).count();
    let seen = trial.witness.seen();
    assert_eq!(seen.iter().filter(|(_, _, reason)| reason.as_str() == "version_gated").count(), gated);
    let told = trial.call(HostMethod::GetCapabilities, json!({})).await.expect("told");
    assert_eq!(told["protocolVersion"], "1.0.0");
    let new = |list: &Value| {
        let names = list.as_array().expect("a list").iter().filter_map(Value::as_str);
        names
            .filter(|name| METHODS.iter().any(|row| row.method.as_str() == *name && row.since == V1_1))
            .count()
    };
    assert_eq!(new(&told["methods"]), 0, "{told}");
    assert_eq!(told["events"]["known"], json!(["message.received", "message.sent", "peer.online"]));
}
