//! Extensions as people write them, in whole hosts: both kits at both versions of the protocol, across restarts and crashes.

use std::path::Path;
use std::sync::Arc;

use libtest_mimic::Trial;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use outrigger_sep::mesh::embedded::Line;
use outrigger_sep::mesh::{
    Address, Change, Direction, Embedded, EmbeddedOptions, MeshEvent, Message, MessageHash, MessageQuery,
    Messaging,
};
use outrigger_sep::protocol::State;
use outrigger_sep::reference::{Draft, Program};
use serde_json::{Value, json};

use crate::fleet_kit::{Host, Site, first_party, put, steps, trial};
use crate::phone_kit::{Phone, packaged, said, site, write};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("a_session_at_1_0_has_nothing_that_came_later", downgraded),
        trial("the_auto_reply_works_with_a_host_of_1_0", old_autoreply),
        trial("the_auto_reply_answers_counts_and_remembers", rust_kit),
        trial("the_auto_reply_in_python_answers_counts_and_remembers", python_kit),
        trial("a_message_is_sent_once_whoever_crashes_in_between", sent_once),
    ]
}

const ID: &str = "org.example.fault";
const AUTOREPLY: &str = "org.outrigger.autoreply";

async fn downgraded() {
    let site = site();
    let mut draft = Draft::fault(
        ID,
        &steps(json!([
            {"do":"attach"}, {"do":"manners","version":"1.0.0"}, {"do":"serve","until":"sep.initialize"},
            {"do":"call","method":"host.ui.update_tool_panel","params":{"id":"work"}},
            {"do":"call","method":"host.ui.unregister_tool_panel","params":{"id":"work"}},
            {"do":"call","method":"host.events.subscribe","params":{"topics":["peer.offline"]}},
            {"do":"call","method":"host.events.unsubscribe","params":{"topics":["peer.online"]}},
            {"do":"call","method":"host.get_capabilities"},
            {"do":"serve"}
        ])),
    );
    draft.events =
        ["peer.online", "peer.offline", "message.state", "contact.changed"].map(str::to_owned).to_vec();
    write(&packaged(draft), &site.builtin());
    let phone = Phone::start(site).await;
    phone.host.until(ID, State::Ready).await;
    let session = phone.host.fleet.show(ID).await.expect("there").session.expect("a session");
    assert_eq!(session.protocol_version.map(|version| version.to_string()).as_deref(), Some("1.0.0"));

    let calls = || phone.said(ID).into_iter().filter(|line| line["do"] == "call").collect::<Vec<_>>();
    phone.host.until_so("it was answered", async || calls().len() == 5).await;
    let gated = json!({"sep": "method_not_found", "reason": "version_gated", "since": "1.1.0"});
    let calls = calls();
    for call in &calls[..4] {
        assert_eq!((&call["error"]["code"], &call["error"]["data"]), (&json!(-32601), &gated), "{call}");
    }
    let capabilities = &calls[4]["result"];
    assert_eq!(capabilities["protocolVersion"], "1.0.0");
    assert_eq!(capabilities["events"]["subscribed"], json!(["peer.online"]), "{capabilities:#}");
    let methods = capabilities["methods"].as_array().expect("a list");
    assert!(!methods.is_empty() && !methods.contains(&json!("host.events.subscribe")), "{methods:?}");

    phone.net.happens(&MeshEvent::Offline { address: Address([1; 16]) });
    phone.net.happens(&MeshEvent::Contact { id: 1, change: Change::Added });
    phone.net.online(1, 1);
    phone.host.until_so("it heard", async || !phone.heard(ID).is_empty()).await;
    let heard = phone.heard(ID);
    assert_eq!((heard.len(), &heard[0]["topic"], &heard[0]["seq"]), (1, &json!("peer.online"), &json!(1)));
    phone.end().await;
}

async fn old_autoreply() {
    let site = Site::new();
    let mut draft = first_party(Draft::autoreply());
    draft.args = ["--protocol", "1.0.0"].map(str::to_owned).to_vec();
    put(&draft, &site.builtin(), "autoreply");
    let host = site.start().await;
    host.until(AUTOREPLY, State::Ready).await;
    let session = host.fleet.show(AUTOREPLY).await.expect("there").session.expect("a session");
    assert_eq!(session.protocol_version.map(|version| version.to_string()).as_deref(), Some("1.0.0"));
    let asked = speak(&host, "ada").await;
    let reply = reply_to(&host, asked).await;
    assert_eq!(reply.content, "Hello there, I am away. I will read this later.");
    let key = format!("{AUTOREPLY}/stats");
    let acted = host.fleet.call(&key, "pause", None).await.expect("an answer");
    assert_eq!(acted.message.as_deref(), Some("paused; 1 received, 1 answered"));
    assert_eq!(panel(&host)["content"], Value::Null, "panels have no content at 1.0");
    host.end().await;
}

async fn rust_kit() {
    let site = Site::new();
    put(&first_party(Draft::autoreply()), &site.builtin(), "autoreply");
    answers_counts_and_remembers(site, AUTOREPLY).await;
}

async fn python_kit() {
    let site = Site::new();
    let mut draft = first_party(Draft::autoreply_python());
    draft.startup_ms = 60_000;
    draft.install(&site.builtin(), Program::PYTHON).expect("an extension");
    answers_counts_and_remembers(site, "org.outrigger.autoreply-python").await;
}

/// What is promised of the auto-reply, in whatever language.
async fn answers_counts_and_remembers(site: Site, id: &str) {
    let host = site.start().await;
    host.until(id, State::Ready).await;
    counts(&host, "0", "0").await;
    let asked = speak(&host, "ada").await;
    let reply = reply_to(&host, asked).await;
    assert_eq!(reply.title, "Auto-reply");
    assert_eq!(reply.content, "Hello there, I am away. I will read this later.");
    counts(&host, "1", "1").await;
    let notices: Vec<String> = host.fleet.notices().after(0).into_iter().map(|notice| notice.text).collect();
    assert_eq!(notices.len(), 1, "{notices:?}");
    assert!(notices[0].contains(&format!("first message from {}", reply.destination)), "{notices:?}");

    let key = format!("{id}/stats");
    let acted = host.fleet.call(&key, "set-reply", Some("gone fishing, {name}")).await.expect("an answer");
    assert_eq!(acted.message.as_deref(), Some("the reply is set"));
    let latest = host.fleet.notices().after(1);
    assert!(latest.iter().any(|notice| notice.text.contains("the reply is set")), "{latest:?}");
    let wrong = host.fleet.call(&key, "set-reply", None).await.expect_err("it takes a text");
    assert!(!wrong.to_string().is_empty());

    // What it knew it knows again.
    host.fleet.restart_one(id).await.expect("restarted");
    host.until(id, State::Ready).await;
    counts(&host, "1", "1").await;
    let asked = speak(&host, "bob").await;
    assert_eq!(reply_to(&host, asked).await.content, "gone fishing, there");
    counts(&host, "2", "2").await;

    // A crash loses what was not written down, and answers nobody twice.
    let pid = host.fleet.show(id).await.expect("there").summary.pid.expect("a process");
    killpg(Pid::from_raw(pid.try_into().expect("a pid")), Signal::SIGKILL).expect("it is there");
    host.until_detail(id, |detail| detail.summary.restarts == 1 && detail.summary.state == State::Ready)
        .await;
    counts(&host, "1", "1").await;
    let asked = speak(&host, "carol").await;
    reply_to(&host, asked).await;
    let mut answered: Vec<MessageHash> =
        outgoing(&host).await.iter().filter_map(|one| one.reply_to).collect();
    answered.sort_unstable();
    answered.dedup();
    assert_eq!((answered.len(), outgoing(&host).await.len()), (3, 3), "each was answered once");

    counts(&host, "2", "2").await;
    host.fleet.call(&key, "reset", None).await.expect("an answer");
    counts(&host, "0", "0").await;
    host.end().await;
}

async fn sent_once() {
    let site = Site::new();
    let ada = acquaintance(&site.place.path().join("mesh.sqlite")).await;
    let send = |content: &str| {
        let params =
            json!({"destinationHash": ada.to_string(), "content": content, "clientMessageId": "once"});
        json!({"do": "call", "method": "host.messages.send", "params": params})
    };
    let begin = [json!({"do":"attach"}), json!({"do":"serve","until":"sep.initialize"})];
    let [attach, serve] = begin;
    let script = json!([
        {"do":"first","times":1,"steps":[attach, serve, send("hello"), {"do":"abort"}]},
        attach, serve, send("hello"), send("something else"), {"do":"serve"}
    ]);
    site.fault(ID, &steps(script));
    let host = site.start().await;
    let sent =
        |host: &Host| said(host, ID).into_iter().filter(|line| line["do"] == "call").collect::<Vec<_>>();
    host.until_so("both have sent", async || sent(&host).len() == 3).await;
    let site = host.end().await;
    // What was sent is remembered for a new host, too.
    let host = site.start().await;
    host.until_so("a third has sent", async || sent(&host).len() == 5).await;
    let lines = sent(&host);
    assert_eq!(lines[0]["result"]["deduplicated"], false, "{lines:#?}");
    for again in [&lines[1], &lines[3]] {
        assert_eq!(again["result"]["deduplicated"], true, "{lines:#?}");
        assert_eq!(again["result"]["messageHash"], lines[0]["result"]["messageHash"]);
    }
    for other in [&lines[2], &lines[4]] {
        assert_eq!(other["error"]["code"], -32031, "{lines:#?}");
    }
    assert_eq!(outgoing(&host).await.len(), 1);
    host.end().await;
}

/// Somebody who can be written to, in a network that no host uses yet.
async fn acquaintance(path: &Path) -> Address {
    let mesh = Arc::new(Embedded::open(path, EmbeddedOptions::named("host")).expect("a mesh"));
    let line = Line { title: String::new(), content: "hello".to_owned(), reply_to: None };
    mesh.incoming("ada", line).await.expect("heard");
    mesh.messages(query(Direction::Incoming)).await.expect("messages")[0].source
}

async fn speak(host: &Host, name: &str) -> MessageHash {
    let line = Line { title: String::new(), content: "anybody home?".to_owned(), reply_to: None };
    host.mesh.incoming(name, line).await.expect("heard").hash
}

/// Waits for the answer to a message.
async fn reply_to(host: &Host, asked: MessageHash) -> Message {
    let answer = async || outgoing(host).await.into_iter().find(|one| one.reply_to == Some(asked));
    host.until_so("it is answered", async || answer().await.is_some()).await;
    answer().await.expect("it was there")
}

async fn outgoing(host: &Host) -> Vec<Message> {
    host.mesh.messages(query(Direction::Outgoing)).await.expect("messages")
}

fn query(direction: Direction) -> MessageQuery {
    let direction = Some(direction);
    MessageQuery { peer: None, direction, since_ms: None, until_ms: None, after: None, limit: 100 }
}

/// Waits until the panel shows these numbers.
async fn counts(host: &Host, received: &str, answered: &str) {
    let expected =
        [json!({"key": "Received", "value": received}), json!({"key": "Answered", "value": answered})];
    host.until_so(&format!("{received} received, {answered} answered"), async || {
        let panel = panel(host);
        let rows = panel["content"][1]["items"].as_array();
        panel["state"] == "active" && rows.is_some_and(|rows| rows[..2] == expected)
    })
    .await;
}

fn panel(host: &Host) -> Value {
    let snapshot = serde_json::to_value(&*host.fleet.panels().snapshot()).expect("JSON");
    snapshot["slots"]["tools.page.primary"][0].clone()
}
