//! Panels, notices and topics through the gate.

use serde_json::{Value, json};

use super::{Trial, everything, limits, right_params};
use crate::protocol::{HostMethod, Limits, V1_0, V1_1};

const REGISTER: HostMethod = HostMethod::RegisterPanel;
const UPDATE: HostMethod = HostMethod::UpdatePanel;
const TOAST: HostMethod = HostMethod::Toast;

fn panel(id: &str, more: Value) -> Value {
    let mut params = json!({ "id": id, "title": "Title", "slot": "tools.page.primary" });
    for (name, value) in more.as_object().expect("members") {
        params[name] = value.clone();
    }
    params
}

fn quota(name: &str, limit: u64) -> Result<Value, Value> {
    let data = json!({ "sep": "quota_exceeded", "quota": name, "limit": limit });
    Err(json!({ "code": -32032, "data": data }))
}

#[tokio::test(start_paused = true)]
async fn a_panel_is_registered_changed_and_taken_away() {
    let mut trial = Trial::open();
    let registered = trial.call(REGISTER, panel("stats", json!({ "icon": "chart" }))).await;
    assert_eq!(registered, Ok(json!({ "panelKey": "org.example.trial/stats" })));
    let data = json!({ "sep": "conflict", "kind": "panel" });
    let again = trial.call(REGISTER, panel("stats", json!({}))).await;
    assert_eq!(again, Err(json!({ "code": -32031, "data": data })));
    let content = json!([{ "type": "text", "text": "42 messages" }]);
    let changed = trial.call(UPDATE, json!({ "id": "stats", "content": content })).await;
    assert_eq!(changed, Ok(json!({})));
    assert!(serde_json::to_string(&*trial.stage.panels.snapshot()).expect("JSON").contains("42 messages"));
    assert_eq!(trial.call(HostMethod::UnregisterPanel, json!({ "id": "stats" })).await, Ok(json!({})));
    let data = json!({ "sep": "not_found", "kind": "panel" });
    let gone = trial.call(HostMethod::UnregisterPanel, json!({ "id": "stats" })).await;
    assert_eq!(gone, Err(json!({ "code": -32030, "data": data })));
}

#[tokio::test(start_paused = true)]
async fn no_more_panels_and_actions_than_the_trust_allows() {
    let mut trial = Trial::at(V1_1, Limits { panels: 2, actions_per_panel: 1, ..limits() }, everything());
    let action = |id: &str| json!({ "id": id, "label": "Do it" });
    trial.call(REGISTER, panel("a", json!({ "actions": [action("x")] }))).await.expect("one action");
    let two = json!({ "actions": [action("x"), action("y")] });
    assert_eq!(trial.call(REGISTER, panel("b", two.clone())).await, quota("actions_per_panel", 1));
    trial.call(REGISTER, panel("b", json!({}))).await.expect("the second panel");
    assert_eq!(trial.call(REGISTER, panel("c", json!({}))).await, quota("panels", 2));
    let update = json!({ "id": "a", "actions": two["actions"] });
    assert_eq!(trial.call(UPDATE, update).await, quota("actions_per_panel", 1));
}

#[tokio::test(start_paused = true)]
async fn what_is_wrong_about_a_panel_is_said_with_its_place() {
    let mut trial = Trial::open();
    let cases = [
        (REGISTER, panel("Bad Id", json!({})), "/id"),
        (REGISTER, panel("a", json!({ "title": "x".repeat(81) })), "/title"),
        (REGISTER, panel("a", json!({ "title": "a\u{202e}b" })), "/title"),
        (REGISTER, panel("a", json!({ "slot": "tools.page.elsewhere" })), "/slot"),
        (REGISTER, panel("a", json!({ "icon": "no-such-icon" })), "/icon"),
        (REGISTER, panel("a", json!({ "order": 1001 })), "/order"),
        (REGISTER, panel("a", json!({ "html": "<b>" })), "/html"),
        (
            REGISTER,
            panel("a", json!({ "actions": [{ "id": "x", "label": "X", "href": "y" }] })),
            "/actions/0",
        ),
        (REGISTER, panel("a", json!({ "actions": [{ "id": "X", "label": "X" }] })), "/actions/0/id"),
        (REGISTER, panel("a", json!({ "actions": vec![json!({}); 17] })), "/actions"),
        (UPDATE, json!({ "id": "a", "content": [{ "type": "html", "text": "<b>" }] }), "/content/0"),
        (UPDATE, json!({ "id": "a", "content": vec![json!({ "type": "separator" }); 101] }), "/content"),
        (UPDATE, json!({ "id": "a", "slot": "tools.page.primary" }), "/slot"),
        (UPDATE, json!({}), "/id"),
    ];
    for (method, params, path) in cases {
        let error = trial.call(method, params.clone()).await.expect_err("wrong");
        assert_eq!(
            (&error["code"], &error["data"]["errors"][0]["path"]),
            (&json!(-32602), &json!(path)),
            "{error}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_notice_names_its_extension_and_there_are_no_more_than_the_quota_allows() {
    let limits = Limits { toasts_per_minute: 60, toast_burst: 3, ..limits() };
    let mut trial = Trial::at(V1_1, limits, everything());
    let shown = trial.call(TOAST, json!({ "message": "hello", "level": "info", "key": "k" })).await;
    assert_eq!(shown, Ok(json!({ "shown": true })));
    let shown = trial.call(TOAST, json!({ "message": "again", "level": "error", "key": "k" })).await;
    assert_eq!(shown, Ok(json!({ "shown": true, "reason": "coalesced" })));
    let texts: Vec<String> = trial.stage.notices.after(0).into_iter().map(|notice| notice.text).collect();
    assert_eq!(texts, ["Trial: again"]);
    for wrong in [
        json!({ "message": "a\nb", "level": "info" }),
        json!({ "message": "", "level": "info" }),
        json!({ "message": "x".repeat(281), "level": "info" }),
        json!({ "message": "x", "level": "debug" }),
        json!({ "message": "x" }),
        json!({ "message": "x", "level": "info", "durationMs": 999 }),
        json!({ "message": "x", "level": "info", "durationMs": 15_001 }),
        json!({ "message": "x", "level": "info", "key": "k".repeat(65) }),
    ] {
        let error = trial.call(TOAST, wrong.clone()).await.expect_err("wrong");
        assert_eq!(error["code"], -32602, "{wrong}");
    }
    trial.call(TOAST, right_params(TOAST)).await.expect("mistakes cost nothing");
    assert_eq!(trial.call(TOAST, right_params(TOAST)).await, quota("toasts_per_minute", 60));
}

#[tokio::test(start_paused = true)]
async fn topics_are_heard_about_as_far_as_they_exist_and_may_be() {
    let mut layers = everything();
    layers.declared.retain(|permission| *permission != crate::protocol::Permission::ContactsRead);
    let mut trial = Trial::at(V1_1, limits(), layers);
    let topics = json!({ "topics": ["message.state", "contact.changed", "no.such", "lifecycle.pausing"] });
    let answer = trial.call(HostMethod::Subscribe, topics).await.expect("an answer");
    let denied = json!([
        { "topic": "contact.changed", "reason": "not_declared" },
        { "topic": "lifecycle.pausing", "reason": "unknown_topic" },
        { "topic": "no.such", "reason": "unknown_topic" },
    ]);
    let subscribed = json!(["message.received", "message.state", "peer.online"]);
    assert_eq!(answer, json!({ "subscribed": subscribed, "denied": denied }));
    let answer = trial.call(HostMethod::Unsubscribe, json!({ "topics": ["message.received"] })).await;
    assert_eq!(answer, Ok(json!({ "subscribed": ["message.state", "peer.online"], "denied": [] })));
    let many = json!({ "topics": vec!["peer.online"; 65] });
    assert_eq!(trial.call(HostMethod::Subscribe, many).await.expect_err("too many")["code"], -32602);
    let told = trial.call(HostMethod::GetCapabilities, json!({})).await.expect("told");
    assert_eq!(told["events"]["subscribed"], json!(["message.state", "peer.online"]));
}

#[tokio::test(start_paused = true)]
async fn who_asks_about_a_capability_that_does_not_exist_is_told_so() {
    let mut trial = Trial::at(V1_0, limits(), everything());
    let known = json!({ "names": ["messages.read", "host.messages.send", "peer.online"] });
    assert!(trial.call(HostMethod::GetCapabilities, known).await.is_ok());
    for unknown in ["network.open", "peer.offline"] {
        let data = json!({ "sep": "unknown_capability", "name": unknown });
        let answer = trial.call(HostMethod::GetCapabilities, json!({ "names": [unknown] })).await;
        assert_eq!(answer, Err(json!({ "code": -32011, "data": data })));
    }
}
