//! Messages and contacts through the gate.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::advance;

use super::{Trial, everything, limits, right_params};
use crate::host::gate::trial::Behaviour;
use crate::mesh::Refused;
use crate::protocol::{HostMethod, Limits, V1_0, V1_1};

const SEND: HostMethod = HostMethod::MessagesSend;
const LIST: HostMethod = HostMethod::MessagesList;

fn send(more: Value) -> Value {
    let mut params = right_params(SEND);
    for (name, value) in more.as_object().expect("members") {
        params[name] = value.clone();
    }
    params
}

fn sent(trial: &Trial) -> usize {
    trial.stage.mesh.sent.lock().expect("whole").len()
}

#[tokio::test(start_paused = true)]
async fn a_message_with_a_key_is_sent_once_also_in_the_next_session_and_another_with_the_same_key_never() {
    let mut trial = Trial::open();
    let first = trial.call(SEND, send(json!({ "clientMessageId": "k" }))).await.expect("sent");
    assert_eq!(first, json!({ "messageHash": "01".repeat(32), "state": "outbound", "deduplicated": false }));
    let again = trial.call(SEND, send(json!({ "clientMessageId": "k" }))).await.expect("known");
    assert_eq!(again, json!({ "messageHash": "01".repeat(32), "state": "outbound", "deduplicated": true }));
    let other = trial.call(SEND, send(json!({ "clientMessageId": "k", "content": "other" }))).await;
    let data = json!({ "sep": "conflict", "kind": "client_message_id" });
    assert_eq!(other, Err(json!({ "code": -32031, "data": data })));
    assert_eq!(sent(&trial), 1);
    trial.call(SEND, send(json!({}))).await.expect("sent");
    trial.call(SEND, send(json!({}))).await.expect("without a key every one is sent");
    assert_eq!(sent(&trial), 3);
}

#[tokio::test(start_paused = true)]
async fn a_message_that_took_too_long_is_not_sent_twice_when_it_is_asked_for_again() {
    let mut trial = Trial::open();
    trial.stage.mesh.behave(Behaviour::Never);
    let keyed = || send(json!({ "clientMessageId": "k" }));
    assert_eq!(trial.call(SEND, keyed()).await.expect_err("late")["code"], -32022);
    trial.stage.mesh.behave(Behaviour::Take);
    assert_eq!(trial.call(SEND, keyed()).await.expect_err("still on its way")["code"], -32022);
    assert_eq!(sent(&trial), 1);
}

#[tokio::test(start_paused = true)]
async fn what_the_network_says_no_to_is_told_with_its_reason_and_without_secrets() {
    let mut trial = Trial::open();
    for reason in Refused::ALL {
        trial.stage.mesh.behave(Behaviour::Refuse(*reason));
        let data = json!({ "sep": "send_rejected", "reason": reason });
        assert_eq!(trial.call(SEND, send(json!({}))).await, Err(json!({ "code": -32035, "data": data })));
    }
    trial.stage.mesh.behave(Behaviour::Fail);
    for (method, component) in
        [(SEND, "messaging"), (LIST, "messaging"), (HostMethod::ContactsList, "contacts")]
    {
        let data = json!({ "sep": "unavailable", "component": component });
        let answer = trial.call(method, right_params(method)).await;
        assert_eq!(answer, Err(json!({ "code": -32033, "data": data })));
    }
    // What was refused can be tried again under the same key.
    let keyed = || send(json!({ "clientMessageId": "k" }));
    assert_eq!(trial.call(SEND, keyed()).await.expect_err("broken")["code"], -32033);
    trial.stage.mesh.behave(Behaviour::Take);
    assert_eq!(trial.call(SEND, keyed()).await.expect("sent")["deduplicated"], false);
}

#[tokio::test(start_paused = true)]
async fn as_many_messages_as_the_quota_allows_and_not_one_more() {
    let mut trial = Trial::at(V1_1, Limits { sends_per_minute: 60, send_burst: 2, ..limits() }, everything());
    for _ in 0..2 {
        trial.call(SEND, send(json!({}))).await.expect("within the burst");
    }
    let data = json!({ "sep": "quota_exceeded", "quota": "messages_per_minute", "limit": 60 });
    assert_eq!(trial.call(SEND, send(json!({}))).await, Err(json!({ "code": -32032, "data": data })));
    advance(Duration::from_secs(1)).await;
    trial.call(SEND, send(json!({}))).await.expect("one a second");
    assert_eq!(sent(&trial), 3);
}

#[tokio::test(start_paused = true)]
async fn params_of_a_message_are_right_at_their_limits_and_wrong_one_past_them() {
    let mut trial =
        Trial::at(V1_1, Limits { sends_per_minute: 600, send_burst: 600, ..limits() }, everything());
    let right = [
        json!({ "content": "x".repeat(16_384) }),
        json!({ "content": "a\nb\t\u{1}" }),
        json!({ "title": "é".repeat(256) }),
        json!({ "title": "" }),
        json!({ "method": "propagated", "replyTo": "ab".repeat(32), "clientMessageId": "aZ09._-".repeat(9) }),
    ];
    for params in right {
        assert!(trial.call(SEND, send(params.clone())).await.is_ok(), "{params}");
    }
    let wrong = [
        (json!({ "content": "x".repeat(16_385) }), "/content"),
        (json!({ "content": "é".repeat(8_193) }), "/content"),
        (json!({ "content": "" }), "/content"),
        (json!({ "content": "a\u{0}" }), "/content"),
        (json!({ "content": 1 }), "/content"),
        (json!({ "destinationHash": "AA".repeat(16) }), "/destinationHash"),
        (json!({ "destinationHash": "aa".repeat(15) }), "/destinationHash"),
        (json!({ "title": "x".repeat(257) }), "/title"),
        (json!({ "title": "a\nb" }), "/title"),
        (json!({ "method": "paper" }), "/method"),
        (json!({ "replyTo": "ab".repeat(16) }), "/replyTo"),
        (json!({ "clientMessageId": "x".repeat(65) }), "/clientMessageId"),
        (json!({ "clientMessageId": "" }), "/clientMessageId"),
        (json!({ "clientMessageId": "a b" }), "/clientMessageId"),
        (json!({ "attachments": [] }), "/attachments"),
    ];
    for (params, path) in wrong {
        let error = trial.call(SEND, send(params.clone())).await.expect_err("wrong");
        assert_eq!(error["code"], -32602, "{params}");
        assert_eq!(error["data"]["errors"][0]["path"], path, "{error}");
    }
    assert_eq!(sent(&trial), 5);
}

/// All messages, page by page; how many each page had.
async fn pages(trial: &mut Trial, limit: u32) -> (Vec<String>, Vec<usize>) {
    let (mut hashes, mut sizes) = (Vec::new(), Vec::new());
    let mut params = json!({ "limit": limit });
    loop {
        let page = trial.call(LIST, params.clone()).await.expect("a page");
        let messages = page["messages"].as_array().expect("a list");
        hashes
            .extend(messages.iter().map(|message| message["hash"].as_str().expect("a hash")[..2].to_owned()));
        sizes.push(messages.len());
        match &page["nextCursor"] {
            Value::Null => return (hashes, sizes),
            cursor => params["cursor"] = cursor.clone(),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn messages_come_newest_first_page_by_page_and_none_is_lost_or_told_twice() {
    let mut trial = Trial::open();
    let all = ["04", "03", "02", "01", "00"];
    for (limit, sizes) in [(1, vec![1; 5]), (2, vec![2, 2, 1]), (5, vec![5]), (200, vec![5])] {
        let (hashes, found) = pages(&mut trial, limit).await;
        assert_eq!((hashes, found), (all.map(str::to_owned).to_vec(), sizes));
    }
    let page = trial.call(LIST, json!({ "direction": "incoming", "limit": 1 })).await.expect("a page");
    let foreign = json!({ "direction": "outgoing", "cursor": page["nextCursor"] });
    let error = trial.call(LIST, foreign).await.expect_err("another filter");
    assert_eq!((&error["code"], &error["data"]["errors"][0]["path"]), (&json!(-32602), &json!("/cursor")));
    for wrong in [json!({ "limit": 0 }), json!({ "limit": 201 }), json!({ "cursor": "x".repeat(257) })] {
        assert_eq!(trial.call(LIST, wrong).await.expect_err("wrong")["code"], -32602);
    }
}

#[tokio::test(start_paused = true)]
async fn a_page_is_shortened_to_fit_its_frame_and_has_one_message_always() {
    let limits = Limits { max_frame_bytes: 4096, ..limits() };
    let mut trial = Trial::at(V1_0, limits, everything());
    for message in &mut *trial.stage.mesh.messages.lock().expect("whole") {
        message.content = "\"".repeat(900);
    }
    let (hashes, sizes) = pages(&mut trial, 200).await;
    assert_eq!((hashes.len(), sizes), (5, vec![1; 5]), "two of them do not fit into 4096 bytes");
    for message in &mut *trial.stage.mesh.messages.lock().expect("whole") {
        message.content = "\u{1}".repeat(16_384);
    }
    let page = trial.call(LIST, json!({})).await.expect("a page");
    let message = &page["messages"][0];
    assert_eq!(message["contentTruncated"], true);
    assert!(message["content"].as_str().expect("a text").len() > 400, "no more is cut than must be");
    assert_eq!(pages(&mut trial, 200).await.0.len(), 5);
}

#[tokio::test(start_paused = true)]
async fn contacts_come_by_id_page_by_page() {
    let mut trial = Trial::open();
    let list = HostMethod::ContactsList;
    let page = trial.call(list, json!({ "limit": 2 })).await.expect("a page");
    assert_eq!(page["contacts"].as_array().expect("a list").len(), 2);
    let next = trial.call(list, json!({ "limit": 2, "cursor": page["nextCursor"] })).await.expect("a page");
    let contact = json!({
        "id": 3,
        "name": "Contact 3",
        "identityHash": "03".repeat(16),
        "lxmfAddress": "03".repeat(16),
        "lxstAddress": null,
        "createdAtMs": 1_700_000_000_000_u64,
        "updatedAtMs": 1_700_000_000_003_u64,
    });
    assert_eq!(next, json!({ "contacts": [contact], "nextCursor": null }));
    let foreign = json!({ "query": "x", "cursor": page["nextCursor"] });
    assert_eq!(trial.call(list, foreign).await.expect_err("another filter")["code"], -32602);
    let none = trial.call(list, json!({ "query": "nobody" })).await.expect("a page");
    assert_eq!(none, json!({ "contacts": [], "nextCursor": null }));
}
