//! Our peer against somebody else's: the npm package `json-rpc-2.0` in a real node process, both sides calling at once.
#![expect(clippy::disallowed_methods, reason = "the other implementation runs in a process of its own")]

use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use outrigger_wire::peer::{CallError, Deadline, Lane, Peer, Wiring};
use outrigger_wire::rpc::code;
use tokio::net::unix::pipe;

use super::{CONFIG, Script, raw};

/// Doubles numbers, fails on request, and calls back whoever calls it.
const NODE: &str = r#"
const { JSONRPCClient, JSONRPCServer, JSONRPCServerAndClient } = require("json-rpc-2.0");
const peer = new JSONRPCServerAndClient(
  new JSONRPCServer(),
  new JSONRPCClient((message) => { process.stdout.write(JSON.stringify(message) + "\n"); }),
);
peer.addMethod("double", ({ n }) => n * 2);
peer.addMethod("fail", () => { throw new Error("as requested"); });
peer.addMethod("ask_back", async ({ n }) => 1 + await peer.request("triple", { n }));
peer.addMethod("note", ({ n }) => { peer.notify("noted", { n }); });
require("readline").createInterface({ input: process.stdin })
  .on("line", (line) => peer.receiveAndSend(JSON.parse(line)))
  .on("close", () => process.exit(0));
"#;

#[tokio::test]
async fn our_peer_and_another_implementation_call_each_other_at_once() {
    let modules = std::env::var_os("OUTRIGGER_NPM_JSON_RPC_2_0").expect(
        "the npm package is not installed: run `cargo xtask test`, or eval \"$(cargo xtask needs --print-env)\" first",
    );
    let mut node = Command::new("node")
        .args(["-e", NODE])
        .current_dir(modules)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        // It prints the error that it is asked to throw.
        .stderr(Stdio::null())
        .spawn()
        .expect("node starts");
    let input = pipe::Receiver::from_owned_fd(node.stdout.take().expect("piped").into()).expect("a pipe");
    let output = pipe::Sender::from_owned_fd(node.stdin.take().expect("piped").into()).expect("a pipe");

    let (noted, mut notes) = tokio::sync::mpsc::channel(1);
    let script = Script::new()
        .now("triple", |call| {
            let params: serde_json::Value =
                serde_json::from_str(call.params.as_deref().expect("it has params").get())
                    .expect("they are JSON");
            Ok(raw(&(params["n"].as_i64().expect("a number") * 3).to_string()))
        })
        .on_note(move |note| {
            let noted = noted.clone();
            Some(Box::pin(async move {
                let _ = noted.send(note.method).await;
            }))
        });
    let peer = Peer::start(Wiring::new(input, output), Arc::new(script), CONFIG);
    let soon = Deadline::After(Duration::from_secs(20));

    let mut calls = tokio::task::JoinSet::new();
    for n in 0..100 {
        let peer = peer.clone();
        calls.spawn(async move {
            let params = raw(&format!(r#"{{"n":{n}}}"#));
            let doubled = peer.call("double", Some(&params), soon).await.expect("it answers");
            let asked_back = peer.call("ask_back", Some(&params), soon).await.expect("it answers");
            assert_eq!(doubled.get(), (n * 2).to_string());
            assert_eq!(asked_back.get(), (n * 3 + 1).to_string());
        });
    }
    while let Some(call) = calls.join_next().await {
        call.expect("every call is answered rightly");
    }

    let unknown = peer.call("no_such_method", None, soon).await;
    assert!(
        matches!(&unknown, Err(CallError::Remote { error, .. }) if error.code == code::METHOD_NOT_FOUND),
        "{unknown:?}"
    );
    let failed = peer.call("fail", Some(&raw("{}")), soon).await;
    assert!(
        matches!(&failed, Err(CallError::Remote { error, .. }) if error.message == "as requested"),
        "{failed:?}"
    );
    peer.notify(Lane::Event, "note", Some(&raw(r#"{"n":1}"#))).await.expect("it is sent");
    assert_eq!(notes.recv().await.as_deref(), Some("noted"));

    peer.close().await;
    assert!(node.wait().expect("node ends").success(), "the end of its input is the end of node");
}
