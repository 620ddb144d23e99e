//! Who may call what: each method against each voice that is missing.

use serde_json::json;

use super::{Trial, everything, limits, notification, request, right_params};
use crate::host::gate::decide::{Decision, decide};
use crate::host::gate::grants::{GrantLayers, GrantSet, OperatorGrant, Reason};
use crate::host::gate::ports::Offence;
use crate::protocol::{ExtensionId, Fault, Form, HostMethod, METHODS, Permission, V1_0, V1_1};

/// Everything is granted but `missing`, for each reason that it can be missing.
fn without(missing: Permission) -> Vec<(GrantLayers, Reason)> {
    let others = || Permission::ALL.iter().copied().filter(|known| *known != missing).collect::<Vec<_>>();
    let unreadable = OperatorGrant::Unreadable { why: "torn".into() };
    vec![
        (GrantLayers { declared: others(), ..everything() }, Reason::NotDeclared),
        (GrantLayers { operator: OperatorGrant::These(others()), ..everything() }, Reason::NotGranted),
        (GrantLayers { operator: unreadable, ..everything() }, Reason::NotGranted),
        (GrantLayers { revoked: vec![missing], ..everything() }, Reason::Revoked),
        (GrantLayers { ceiling: others(), ..everything() }, Reason::TrustCeiling),
        (GrantLayers { profile: others(), ..everything() }, Reason::ProfileForbidden),
    ]
}

#[tokio::test(start_paused = true)]
async fn a_method_without_its_permission_is_denied_with_the_reason_and_recorded() {
    for row in METHODS {
        let Some(permission) = row.permission else { continue };
        for (layers, reason) in without(permission) {
            let mut trial = Trial::at(V1_1, limits(), layers);
            let answer = trial.call(row.method, right_params(row.method)).await;
            let data = json!({
                "sep": "permission_denied",
                "permission": permission,
                "method": row.method,
                "reason": reason,
            });
            assert_eq!(answer, Err(json!({ "code": -32010, "data": data })), "{}", row.method);
            assert_eq!(trial.witness.seen(), [(Some(row.method), Some(permission), reason)]);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn with_its_permission_alone_a_method_works_and_the_permission_is_recorded() {
    for row in METHODS {
        let (Some(permission), Form::Request) = (row.permission, row.form) else { continue };
        let mut trial = Trial::at(V1_1, limits(), GrantLayers::all_of(vec![permission]));
        let answer = trial.call(row.method, right_params(row.method)).await;
        let allowed = match row.method {
            // There is no such panel yet, which only who may have panels is told.
            HostMethod::UpdatePanel | HostMethod::UnregisterPanel => {
                answer.expect_err("no panel")["data"]["sep"] == "not_found"
            }
            _ => answer.is_ok(),
        };
        assert!(allowed, "{}", row.method);
        assert_eq!(trial.witness.seen(), [(Some(row.method), Some(permission), Reason::Granted)]);
    }
}

#[tokio::test(start_paused = true)]
async fn what_needs_no_permission_works_without_any_and_is_not_recorded() {
    let mut trial = Trial::at(V1_1, limits(), GrantLayers::all_of(Vec::new()));
    let told = trial.call(HostMethod::GetCapabilities, json!({})).await.expect("everybody may ask");
    assert_eq!(told["permissions"]["granted"], json!([]));
    assert_eq!(told["methods"], json!(["host.get_capabilities", "host.log"]));
    assert_eq!(trial.witness.seen(), []);
}

#[tokio::test(start_paused = true)]
async fn a_permission_that_is_taken_back_is_gone_with_the_next_frame_and_what_it_was_used_for_too() {
    let mut trial = Trial::open();
    trial.call(HostMethod::RegisterPanel, right_params(HostMethod::RegisterPanel)).await.expect("granted");
    let told = trial.call(HostMethod::GetCapabilities, json!({})).await.expect("told");
    assert_eq!(told["permissions"]["denied"], json!([]));
    trial.stage.gate.revoke(Permission::ToolsRegister).expect("recorded");
    let update = trial.call(HostMethod::UpdatePanel, right_params(HostMethod::UpdatePanel)).await;
    assert_eq!(update.expect_err("taken back")["data"]["reason"], "revoked");
    assert!(!serde_json::to_string(&*trial.stage.panels.snapshot()).expect("JSON").contains("Stats"));
    let told = trial.call(HostMethod::GetCapabilities, json!({})).await.expect("told");
    let denied = json!([{ "permission": "tools.register", "reason": "revoked" }]);
    assert_eq!(told["permissions"]["denied"], denied);
    trial.stage.gate.grant(Permission::ToolsRegister).expect("recorded");
    let toast = trial.call(HostMethod::UpdatePanel, right_params(HostMethod::UpdatePanel)).await;
    assert_eq!(toast.expect_err("the panel is gone")["data"]["sep"], "not_found");
    let changes: Vec<_> = trial.witness.seen().into_iter().filter(|(method, ..)| method.is_none()).collect();
    let tools = Some(Permission::ToolsRegister);
    assert_eq!(changes, [(None, tools, Reason::Revoked), (None, tools, Reason::Granted)]);
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_recorded_does_not_happen_and_what_needs_no_record_does() {
    let mut trial = Trial::open();
    trial.witness.set_down(true);
    for row in METHODS.iter().filter(|row| row.permission.is_some()) {
        let answer = trial.call(row.method, right_params(row.method)).await;
        let data = json!({ "sep": "unavailable", "component": "audit" });
        assert_eq!(answer, Err(json!({ "code": -32033, "data": data })), "{}", row.method);
    }
    assert!(trial.stage.mesh.sent.lock().expect("whole").is_empty());
    assert!(trial.stage.notices.after(0).is_empty());
    assert!(trial.call(HostMethod::GetCapabilities, json!({})).await.is_ok());
    assert!(trial.stage.gate.grant(Permission::MessagesRead).is_err());
    assert!(trial.stage.gate.revoke(Permission::MessagesRead).is_err());
    assert_eq!(
        trial.stage.grants.decide(Permission::MessagesRead),
        Reason::Revoked,
        "taken back all the same"
    );
    trial.witness.set_down(false);
    assert!(trial.call(HostMethod::Toast, right_params(HostMethod::Toast)).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_privileged_method_as_a_notification_is_not_done_not_answered_and_recorded() {
    let mut trial = Trial::open();
    for row in METHODS.iter().filter(|row| row.form == Form::Request) {
        trial.send(&notification(row.method.as_str(), right_params(row.method))).await;
    }
    trial.send(&notification("no.such.method", json!({}))).await;
    let answer = trial.exchange(&request(&json!(1), "host.get_capabilities", None)).await;
    assert_eq!(answer["id"], 1, "nothing was answered before");
    // Notifications are heard beside requests; the last one has a trace of its own.
    trial.send(&notification("host.log", right_params(HostMethod::Log))).await;
    while trial.pages.0.lock().expect("whole").is_empty() {
        tokio::task::yield_now().await;
    }
    let requests: Vec<_> = METHODS.iter().filter(|row| row.form == Form::Request).collect();
    let seen: Vec<_> =
        requests.iter().map(|row| (Some(row.method), row.permission, Reason::NotificationForm)).collect();
    assert_eq!(trial.witness.seen(), seen);
    let offences = trial.numbers.offences.lock().expect("whole").clone();
    assert_eq!(offences, vec![Offence::ProtocolViolation; requests.len()]);
    assert!(trial.stage.mesh.sent.lock().expect("whole").is_empty());
    assert!(trial.stage.notices.after(0).is_empty());
}

#[test]
fn a_method_that_the_table_does_not_have_is_denied_whatever_is_granted() {
    let grants = GrantSet::new(&ExtensionId::new("org.example").expect("an id"), everything());
    for method in HostMethod::ALL {
        let table: Vec<_> = METHODS.iter().copied().filter(|row| row.method != *method).collect();
        let decision = decide(&table, *method, V1_1, &grants);
        assert_eq!(
            decision,
            Decision { method: *method, permission: None, since: V1_0, reason: Reason::Unmapped }
        );
        assert!(decision.is_privileged() && !decision.is_allowed());
        let fault = Fault::PermissionDenied { permission: None, method: method.as_str(), reason: "unmapped" };
        assert_eq!(decision.fault(), fault);
    }
}
