//! The frozen order: a frame that breaks several rules is told about the first.

use serde_json::{Value, json};

use super::{Trial, limits, outcome, request};
use crate::host::gate::grants::GrantLayers;
use crate::host::gate::trial::Behaviour;
use crate::protocol::{HostMethod, Limits, Permission, V1_0};

/// What the session is like when the frame comes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scene {
    /// Not open yet.
    Closed,
    /// No token is left, and the one request that may be in flight is, with the id 1.
    Spent,
    /// The one request that may be in flight is, with the id 1.
    Busy,
    /// Open, at 1.0, with messages.read and messages.send granted, whose quota is used up.
    Calm,
}

async fn first_error(scene: Scene, frame: &str) -> String {
    let limits = Limits {
        max_frame_bytes: 1024,
        requests_per_second: if scene == Scene::Spent { 1 } else { 100 },
        concurrent_requests: 1,
        sends_per_minute: 0,
        ..limits()
    };
    let granted = GrantLayers::all_of(vec![Permission::MessagesSend, Permission::MessagesRead]);
    let mut trial = Trial::attached(limits, granted);
    if scene != Scene::Closed {
        trial.desk.opened(V1_0);
    }
    if matches!(scene, Scene::Spent | Scene::Busy) {
        trial.stage.mesh.behave(Behaviour::Never);
        trial.send(&request(&json!(1), "host.messages.list", None)).await;
    }
    let answer = trial.exchange(frame).await;
    let id = answer["id"].clone();
    match outcome(answer) {
        Ok(result) => format!("{id} ok {result}"),
        Err(error) => {
            let Value::Object(mut data) = error["data"].clone() else { panic!("details: {error}") };
            let slug = data.remove("sep").expect("a name");
            format!("{id} {} {} {}", error["code"], slug.as_str().expect("a text"), Value::Object(data))
        }
    }
}

#[tokio::test(start_paused = true)]
async fn each_rule_yields_to_the_one_before_it() {
    let long = "x".repeat(1100);
    let deep = format!("{}{}", "[".repeat(65), "]".repeat(65));
    // Every frame breaks the rule of its line and all that come after it, as far as one frame can.
    let cases: &[(&str, Scene, String)] = &[
        ("1 size", Scene::Closed, format!("{{not json {long}")),
        ("2 json", Scene::Closed, "{\"jsonrpc\":\"1.0\",\"id\":null,".into()),
        ("2 depth", Scene::Closed, format!("{{\"id\":null,\"x\":{deep}}}")),
        ("2 duplicate key", Scene::Closed, r#"{"jsonrpc":"1.0","id":null,"id":2}"#.into()),
        ("3 batch", Scene::Closed, r#"[{"jsonrpc":"2.0","id":1,"method":"x"}]"#.into()),
        ("3 id", Scene::Closed, r#"{"jsonrpc":"2.0","id":1.5,"method":"x"}"#.into()),
        ("3 envelope", Scene::Closed, r#"{"jsonrpc":"2.0","id":1,"method":"x","result":1}"#.into()),
        ("4 state", Scene::Closed, request(&json!(1), "no.such", Some(json!([])))),
        ("4 state, attach", Scene::Spent, request(&json!(1), "host.attach", Some(json!([])))),
        ("5 rate", Scene::Spent, request(&json!(1), "no.such", Some(json!([])))),
        ("6 duplicate id", Scene::Busy, request(&json!(1), "no.such", Some(json!([])))),
        ("6 in flight", Scene::Busy, request(&json!(2), "no.such", Some(json!([])))),
        ("7 method", Scene::Calm, request(&json!(1), "no.such", Some(json!([])))),
        ("8 version", Scene::Calm, request(&json!(1), "host.ui.update_tool_panel", Some(json!([])))),
        ("9 permission", Scene::Calm, request(&json!(1), "host.contacts.list", Some(json!([])))),
        ("10 params", Scene::Calm, request(&json!(1), "host.messages.send", Some(json!([])))),
        (
            "11 quota",
            Scene::Calm,
            request(
                &json!(1),
                "host.messages.send",
                Some(json!({ "destinationHash": "11".repeat(16), "content": "x" })),
            ),
        ),
        (
            "12 handler",
            Scene::Calm,
            request(&json!(1), "host.messages.list", Some(json!({ "sinceMs": 9e9 as u64 * 1000 }))),
        ),
    ];
    let mut table = Vec::new();
    for (rule, scene, frame) in cases {
        table.push(format!("{rule}: {}", first_error(*scene, frame).await));
    }
    insta::assert_snapshot!(table.join("\n"));
}

#[tokio::test(start_paused = true)]
async fn a_denied_call_costs_a_token_and_so_does_a_blank_line() {
    let limits = Limits { requests_per_second: 2, ..limits() };
    let mut trial = Trial::at(V1_0, limits, GrantLayers::all_of(Vec::new()));
    let contacts = request(&json!(1), "host.contacts.list", None);
    assert_eq!(trial.exchange(&contacts).await["error"]["code"], -32010);
    trial.send("").await;
    let limited = trial.exchange(&contacts).await;
    let data = json!({ "sep": "rate_limited", "retryAfterMs": 500, "limit": 2 });
    assert_eq!(outcome(limited), Err(json!({ "code": -32020, "data": data })));
    tokio::time::advance(std::time::Duration::from_millis(500)).await;
    assert_eq!(trial.exchange(&contacts).await["error"]["code"], -32010, "half a second is worth a token");
    assert_eq!(trial.exchange(&contacts).await["error"]["code"], -32020);
    assert_eq!(trial.witness.seen().len(), 2, "what came too fast was not decided about");
}

#[tokio::test(start_paused = true)]
async fn a_request_in_the_wrong_state_is_refused_and_a_privileged_one_or_an_attach_recorded() {
    let mut trial = Trial::attached(limits(), GrantLayers::all_of(Permission::ALL.to_vec()));
    for method in HostMethod::ALL {
        let answer = trial.exchange(&request(&json!(1), method.as_str(), None)).await;
        let code = if *method == HostMethod::Attach { -32003 } else { -32002 };
        assert_eq!(answer["error"]["code"], code, "{method}");
    }
    trial.desk.opened(V1_0);
    trial.desk.leaving();
    for method in HostMethod::ALL {
        let answer = trial.exchange(&request(&json!(1), method.as_str(), None)).await;
        assert_eq!(answer["error"]["code"], -32005, "{method}");
    }
    let seen = trial.witness.seen();
    assert_eq!(seen.len(), 2 * 10, "nine methods need a permission, and a second attach is seen too");
    assert_eq!(
        seen.iter().filter(|(_, permission, _)| permission.is_none()).count(),
        2,
        "the attach has none"
    );
    assert!(seen.iter().all(|(_, _, reason)| reason.as_str() == "session_state"));
}
