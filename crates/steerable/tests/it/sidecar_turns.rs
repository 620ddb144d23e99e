//! Turns over the real process: their ends, what they ask the host, how they are steered, and how they become streams.

use libtest_mimic::Trial;
use serde_json::{Value, json};

use crate::sidecar_kit::{Raw, script, scripted, with};

pub(crate) fn trials() -> Vec<Trial> {
    trials![
        a_turn_ends_with_its_names_and_its_cost,
        a_transcript_has_one_turn_at_a_time,
        a_turn_calls_the_hosts_tools_with_ids_of_ours,
        a_turn_asks_for_approval_and_hears_no,
        a_turn_that_is_cancelled_says_so,
        the_environment_can_make_every_stream_a_turn,
        a_turn_refuses_members_that_do_not_fit,
        a_steering_message_of_32000_characters_is_taken_and_a_longer_one_is_not,
    ]
}

fn a_turn_ends_with_its_names_and_its_cost() {
    let mut raw = Raw::start(&[]);
    let usage = json!({"promptTokens": 3, "completionTokens": 4, "totalTokens": 7});
    let (_folder, path) =
        script(&[json!({"chunks": [{"delta": "a"}, {"usage": usage}, {"finishReason": "stop"}]})]);
    let (chunks, terminal) = raw.stream(with(scripted(&path), json!({"useCoreLoop": true, "chatId": "c"})));
    assert!(chunks.iter().all(|chunk| chunk.get("usage").is_none() && chunk.get("finishReason").is_none()));
    let params = &terminal["params"];
    assert_eq!((params["ok"].as_bool(), params["status"].as_str()), (Some(true), Some("completed")));
    assert_eq!(
        params["usage"],
        json!({"promptTokens": 3, "completionTokens": 4, "totalTokens": 7, "cachedPromptTokens": 0})
    );
    assert!(params["recordId"].as_str().unwrap().starts_with("rec_"));
    let tree = raw.result("trace.fetch", json!({"traceId": params["traceId"]}));
    assert_eq!((&tree["trace"]["status"], &tree["trace"]["chatId"]), (&json!("completed"), &json!("c")));
    assert_eq!(tree["spans"][0]["name"], "agent.run", "{tree}");
}

fn a_transcript_has_one_turn_at_a_time() {
    let mut raw = Raw::start(&[]);
    let (_folder, slow) = script(&[json!({"chunks": [{"delta": "a"}, {"sleepMs": 600_000}]})]);
    let (_other, quick) = script(&[json!({"chunks": [{"delta": "b"}]})]);
    let turn = json!({"useCoreLoop": true, "recordId": "r", "streamId": "first"});
    raw.result("agent.chat.stream", with(scripted(&slow), turn));
    let second = with(scripted(&quick), json!({"useCoreLoop": true, "recordId": "r"}));
    let (code, kind, message) = raw.error("agent.chat.stream", second.clone());
    assert_eq!((code, kind.as_str()), (-32602, "invalid_params"));
    assert!(message.contains("recordId"), "{message}");
    raw.result("agent.chat.cancel", json!({"streamId": "first"}));
    raw.notification("stream.done");
    // As soon as the end was told, and again and again.
    for _ in 0..20 {
        let (_, terminal) = raw.stream(second.clone());
        assert_eq!(terminal["params"]["status"], "completed", "{terminal}");
    }
}

/// A model that calls a tool of the host's once and then says what it heard.
fn calling() -> (tempfile::TempDir, std::path::PathBuf) {
    script(&[
        json!({"chunks": [{"toolCall": {"id": "c1", "name": "delete_row", "arguments": {"row": 1}}}]}),
        json!({"chunks": [{"delta": "done"}]}),
    ])
}

fn host_tool() -> Value {
    json!({"useCoreLoop": true, "toolContext": {"tenant": "t"}, "chatId": "c", "tools": [{"type": "function", "function": {"name": "delete_row"}}]})
}

fn a_turn_calls_the_hosts_tools_with_ids_of_ours() {
    let mut raw = Raw::start(&[]);
    let (_folder, path) = calling();
    raw.result(
        "agent.chat.stream",
        with(with(scripted(&path), host_tool()), json!({"streamId": "s", "approval": {"mode": "auto"}})),
    );
    let call = loop {
        let message = raw.hear();
        if message.get("id").is_some() {
            break message;
        }
        raw.heard.push_back(message);
    };
    assert_eq!(
        call,
        json!({"jsonrpc": "2.0", "id": "srv_1", "method": "tool.invoke", "params": {
            "id": "c1", "name": "delete_row", "arguments": {"row": 1}, "context": {"tenant": "t", "chatId": "c"}}})
    );
    raw.say(r#"{"jsonrpc":"2.0","id":"srv_1","result":{"success":true,"data":{"gone":1}}}"#);
    let (chunks, terminal) = raw.rest("s");
    let result = chunks.iter().find_map(|chunk| chunk.get("toolResult")).expect("a result");
    assert_eq!(
        (&result["id"], &result["name"], &result["success"]),
        (&json!("c1"), &json!("delete_row"), &json!(true))
    );
    assert!(result["durationMs"].is_u64());
    assert_eq!(terminal["params"]["status"], "completed", "{terminal}");
}

fn a_turn_asks_for_approval_and_hears_no() {
    let mut raw = Raw::start(&[]);
    let (_folder, path) = calling();
    raw.result(
        "agent.chat.stream",
        with(with(scripted(&path), host_tool()), json!({"streamId": "s", "approval": {"mode": "host"}})),
    );
    let ask = loop {
        let message = raw.hear();
        if message.get("id").is_some() {
            break message;
        }
        raw.heard.push_back(message);
    };
    assert_eq!((ask["id"].as_str(), ask["method"].as_str()), (Some("srv_1"), Some("approval.request")));
    assert_eq!(
        (&ask["params"]["toolName"], &ask["params"]["mode"]),
        (&json!("delete_row"), &json!("destructive"))
    );
    raw.say(r#"{"jsonrpc":"2.0","id":"srv_1","result":{"kind":"deny_once"}}"#);
    let (chunks, terminal) = raw.rest("s");
    let result = chunks.iter().find_map(|chunk| chunk.get("toolResult")).expect("a result");
    assert_eq!(result["success"], false);
    assert!(chunks.iter().any(|chunk| chunk["notice"]["kind"] == "approval"), "{chunks:?}");
    assert_eq!(terminal["params"]["status"], "completed", "{terminal}");
}

fn a_turn_that_is_cancelled_says_so() {
    let mut raw = Raw::start(&[]);
    let (_folder, path) = script(&[json!({"chunks": [{"delta": "a"}, {"sleepMs": 600_000}]})]);
    raw.result("agent.chat.stream", with(scripted(&path), json!({"streamId": "s", "useCoreLoop": true})));
    raw.notification("stream.chunk");
    raw.result("agent.chat.cancel", json!({"streamId": "s"}));
    let (_, terminal) = raw.rest("s");
    let params = &terminal["params"];
    assert_eq!(terminal["method"], "stream.done");
    assert_eq!(
        (params["ok"].as_bool(), params["status"].as_str(), params["cancelled"].as_bool()),
        (Some(false), Some("cancelled"), Some(true))
    );
    assert!(params["traceId"].is_string() && params["recordId"].is_string());
}

fn the_environment_can_make_every_stream_a_turn() {
    let mut raw = Raw::spawn(&[], &[("STEERABLE_SIDECAR_CORELOOP", "1")]);
    raw.hear();
    let (_folder, path) = script(&[json!({"chunks": [{"delta": "a"}]})]);
    let (_, terminal) = raw.stream(scripted(&path));
    assert_eq!(terminal["params"]["status"], "completed");
    let (_, terminal) = raw.stream(with(scripted(&path), json!({"useCoreLoop": false})));
    assert_eq!(terminal["params"].get("status"), None);
}

fn a_turn_refuses_members_that_do_not_fit() {
    let mut raw = Raw::start(&[]);
    let (_folder, path) = script(&[json!({"chunks": [{"delta": "a"}]})]);
    let turn = with(scripted(&path), json!({"useCoreLoop": true}));
    for (more, member) in [
        (json!({"mcp": 1}), "mcp"),
        (json!({"mcp": [{}]}), "mcp"),
        (json!({"approval": {"mode": "maybe"}}), "approval.mode"),
        (json!({"readRoots": ["relative"]}), "readRoots"),
        (json!({"allowedHosts": ["["]}), "allowedHosts"),
        (json!({"budgetTokens": -1}), "budgetTokens"),
        (json!({"contentMode": "none"}), "contentMode"),
    ] {
        let (code, kind, message) = raw.error("agent.chat.stream", with(turn.clone(), more));
        assert_eq!((code, kind.as_str()), (-32602, "invalid_params"));
        assert!(message.contains(member), "{message}");
    }
}

fn a_steering_message_of_32000_characters_is_taken_and_a_longer_one_is_not() {
    let mut raw = Raw::start(&[]);
    let (_folder, path) = script(&[
        json!({"chunks": [{"delta": "a"}, {"sleepMs": 600_000}]}),
        json!({"chunks": [{"delta": "b"}]}),
    ]);
    raw.result("agent.chat.stream", with(scripted(&path), json!({"streamId": "s", "useCoreLoop": true})));
    raw.notification("stream.chunk");
    let steer = |length: usize| json!({"streamId": "s", "content": "ü".repeat(length), "mode": "interrupt"});
    assert_eq!(raw.error("agent.chat.steer", steer(32_001)).0, -32602);
    assert_eq!(raw.result("agent.chat.steer", steer(32_000)), json!({"ok": true}));
    let (chunks, terminal) = raw.rest("s");
    let heard = chunks.iter().find(|chunk| chunk["notice"]["kind"] == "steer").expect("a notice");
    assert_eq!(heard["notice"]["content"].as_str().unwrap().chars().count(), 32_000);
    assert_eq!(terminal["params"]["status"], "completed", "{terminal}");
}
