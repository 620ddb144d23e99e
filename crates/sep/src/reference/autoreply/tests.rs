//! The auto-reply under the host for tests.

use serde_json::{Value, json};

use super::{AutoReply, Options};
use crate::extension::testing::{MockHost, MockSession, Scripted};
use crate::extension::{Contact, Ending};
use crate::mesh::Address;
use crate::protocol::{ActionOutcome, Permission, V1_0};

fn received(hash: &str) -> Value {
    json!({"message": {
        "hash": hash.repeat(32), "sourceHash": "aa".repeat(16), "destinationHash": "bb".repeat(16),
        "peerHash": "aa".repeat(16), "incoming": true, "state": "delivered", "method": "direct", "title": "",
        "content": "are you there?", "contentTruncated": false, "contentLossy": false, "attachments": [],
        "replyTo": null, "timestampMs": 1, "rssi": null, "snr": null, "quality": null,
    }})
}

fn ada() -> Contact {
    Contact {
        id: 1,
        name: "Ada".into(),
        identity_hash: Address([1; 16]),
        lxmf_address: Some(Address([0xaa; 16])),
        lxst_address: None,
        created_at_ms: 0,
        updated_at_ms: 0,
    }
}

fn eager() -> AutoReply {
    AutoReply::new(Options { quiet_ms: 0, ..Options::usual() })
}

fn say(session: &MockSession, action: &str, input: Option<&str>) -> (ActionOutcome, String) {
    let result = session.action("stats", action, input).expect("an answer");
    (result.outcome, result.toast.expect("a notice").message)
}

#[test]
fn all_six_permissions_are_used() {
    let session = MockHost::new().start(eager());
    session.event("message.received", received("01")).expect("an ack");
    let mut used: Vec<&str> = session
        .calls()
        .iter()
        .filter_map(|(method, _)| crate::protocol::METHODS.iter().find(|row| row.method.as_str() == method))
        .filter_map(|row| row.permission)
        .map(Permission::as_str)
        .collect();
    // The sixth is to hear of the message at all.
    used.push(Permission::EventsSubscribe.as_str());
    used.sort_unstable();
    used.dedup();
    let mut all: Vec<&str> = Permission::ALL.iter().map(|permission| permission.as_str()).collect();
    all.sort_unstable();
    assert_eq!(used, all);
    session.shutdown();
}

#[test]
fn a_contact_is_answered_by_name_and_is_no_stranger() {
    let session = MockHost::new().with_contacts(vec![ada()]).start(eager());
    session.event("message.received", received("01")).expect("an ack");
    let sent = &session.calls_of("host.messages.send")[0];
    assert_eq!(sent["content"], "Hello Ada, I am away. I will read this later.");
    assert!(session.calls_of("host.notifications.toast").is_empty());
    session.shutdown();
}

#[test]
fn the_actions_of_the_panel_do_what_they_say() {
    let session = MockHost::new().start(eager());
    session.event("message.received", received("01")).expect("an ack");
    let worked = |text: &str| (ActionOutcome::Ok, text.to_owned());
    assert_eq!(say(&session, "set-reply", Some(" later, {name} ")), worked("the reply is set"));
    assert_eq!(say(&session, "set-reply", Some("  ")).0, ActionOutcome::Error);
    assert_eq!(say(&session, "pause", None), worked("paused; 1 received, 1 answered"));
    session.event("message.received", received("02")).expect("an ack");
    assert_eq!(say(&session, "pause", None), worked("answering; 2 received, 1 answered"));
    session.event("message.received", received("03")).expect("an ack");
    assert_eq!(session.calls_of("host.messages.send")[1]["content"], "later, there");
    assert_eq!(say(&session, "reset", None), worked("the counters are at zero"));
    let shown = session.action("stats", "pause", None).expect("an answer").panel.expect("since 1.1");
    insta::assert_snapshot!(serde_json::to_string(&shown).expect("JSON"), @r#"{"content":[{"type":"badge","text":"paused","tone":"warning"},{"type":"kv","items":[{"key":"Received","value":"0"},{"key":"Answered","value":"0"},{"key":"Left alone","value":"0"},{"key":"Failed","value":"0"},{"key":"Contacts known","value":"0"}]},{"type":"separator"},{"type":"text","text":"later, {name}"}]}"#);
    assert_eq!(say(&session, "explode", None).0, ActionOutcome::Error);
    session.shutdown();
}

#[test]
fn what_was_set_is_there_after_a_restart() {
    let folder = tempfile::tempdir().expect("a folder");
    let session = MockHost::new().with_data_dir(folder.path()).start(eager());
    say(&session, "set-reply", Some("gone fishing"));
    assert_eq!(session.shutdown(), Ending::Asked);
    let session = MockHost::new().with_data_dir(folder.path()).start(eager());
    session.event("message.received", received("01")).expect("an ack");
    assert_eq!(session.calls_of("host.messages.send")[0]["content"], "gone fishing");
    session.shutdown();
    std::fs::write(folder.path().join("autoreply.json"), "{").expect("room");
    let session = MockHost::new().with_data_dir(folder.path()).start(eager());
    session.event("message.received", received("01")).expect("an ack");
    assert!(
        session.calls_of("host.log")[0]["message"]
            .as_str()
            .is_some_and(|said| said.contains("cannot be read"))
    );
    session.shutdown();
}

#[test]
fn a_busy_host_is_asked_again_and_a_refusal_is_counted() {
    let busy = json!({"sep": "rate_limited", "retryAfterMs": 1, "limit": 1});
    let host = MockHost::new()
        .answering("host.messages.send", Scripted::Fail { times: 2, code: -32020, data: busy });
    let session = host.start(eager());
    session.event("message.received", received("01")).expect("an ack");
    assert_eq!(session.calls_of("host.messages.send").len(), 3);
    session.shutdown();

    let blocked = json!({"sep": "send_rejected", "reason": "blocked_destination"});
    let host = MockHost::new()
        .answering("host.messages.send", Scripted::Fail { times: 1, code: -32035, data: blocked });
    let session = host.start(eager());
    let error = session.event("message.received", received("01")).expect_err("refused");
    assert!(error.message.contains("send_rejected"), "{error}");
    let shown = session.calls_of("host.ui.update_tool_panel").pop().expect("a panel").to_string();
    assert!(shown.contains(r#"{"key":"Failed","value":"1"}"#), "{shown}");
    session.shutdown();
}

#[test]
fn with_few_permissions_and_an_old_host_it_does_what_it_may() {
    let few = [Permission::MessagesRead, Permission::MessagesSend, Permission::EventsSubscribe];
    let session = MockHost::new().offering(&[V1_0]).granting(&few).start(eager());
    session.event("message.received", received("01")).expect("an ack");
    let asked: Vec<String> = session.calls().into_iter().map(|(method, _)| method).collect();
    assert_eq!(asked, ["host.attach", "host.messages.list", "host.messages.send"]);
    session.shutdown();
}
