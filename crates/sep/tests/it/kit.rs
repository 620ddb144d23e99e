//! The kit in real processes, against a host written by hand.

use std::time::{Duration, Instant};

use libtest_mimic::Trial;
use serde_json::{Value, json};

use crate::kit_host::{Guest, PATIENCE, Way, command, hello};

const BOTH: &[&str] = &["1.1.0", "1.0.0"];
const AUTOREPLY: &[&str] = &["__extension", "autoreply"];
const STUBBORN: &[&str] = &["__extension", "stubborn"];

/// All of them.
pub(crate) fn trials() -> Vec<Trial> {
    trials![
        an_extension_attaches_over_every_kind_of_channel,
        a_message_is_answered_and_the_panel_shows_it,
        with_a_host_that_offers_1_0_nothing_newer_is_asked_for,
        without_a_common_version_the_process_leaves_with_76,
        health_is_answered_while_handlers_block,
        a_process_whose_host_has_gone_ends_within_two_seconds,
        a_shutdown_ends_the_process_in_time_whatever_its_handler_does,
        a_cancelled_action_is_answered_and_its_own_calls_are_given_up,
        an_extension_that_cannot_work_like_this_leaves_with_78,
        a_program_started_by_hand_says_what_it_is,
        a_refused_attach_and_a_closed_channel_have_their_own_codes,
        unknown_methods_are_answered_and_broken_lines_do_no_harm,
        the_fault_extension_attaches_and_serves_without_a_script,
        the_fault_extension_follows_its_script,
        the_kit_for_python_keeps_its_promises,
    ]
}

fn shutdown(guest: &mut Guest, ms: u64) {
    let id = guest.ask("sep.shutdown", &json!({"reason": "stop", "deadlineMs": ms}));
    assert_eq!(guest.answer(id)["result"], json!({}));
}

/// The data of an event: a message came in.
pub(crate) fn message(hash: &str) -> Value {
    json!({"message": {
        "hash": hash.repeat(32), "sourceHash": "aa".repeat(16), "destinationHash": "bb".repeat(16),
        "peerHash": "aa".repeat(16), "incoming": true, "state": "delivered", "method": "direct", "title": "",
        "content": "are you there?", "contentTruncated": false, "contentLossy": false, "attachments": [],
        "replyTo": null, "timestampMs": 1, "rssi": null, "snr": null, "quality": null,
    }})
}

fn an_extension_attaches_over_every_kind_of_channel() {
    for way in [Way::Unix, Way::Fd, Way::Tcp] {
        let (mut guest, answer) = Guest::ready(way, AUTOREPLY, BOTH);
        assert_eq!(answer["result"]["protocolVersion"], "1.1.0", "{way:?}");
        assert_eq!(answer["result"]["extension"]["name"], "Auto-reply");
        shutdown(&mut guest, 3000);
        assert_eq!(guest.ended(PATIENCE).code(), Some(0), "{way:?}: {}", guest.stderr());
    }
}

fn a_message_is_answered_and_the_panel_shows_it() {
    let (mut guest, _) = Guest::ready(Way::Unix, AUTOREPLY, BOTH);
    let ready = guest.called("host.log");
    assert_eq!(ready["params"]["message"], "ready; 0 messages came in before");
    let event = json!({"seq": 1, "topic": "message.received", "timeMs": 1, "data": message("01")});
    let id = guest.ask("sep.event", &event);
    let toast = guest.called("host.notifications.toast");
    assert_eq!(toast["params"]["message"], format!("first message from {}", "aa".repeat(16)));
    guest.grant(&toast, &json!({"shown": true}));
    let sent = guest.called("host.messages.send");
    assert_eq!(sent["params"]["destinationHash"], "aa".repeat(16));
    assert_eq!(sent["params"]["replyTo"], "01".repeat(32));
    assert_eq!(sent["params"]["clientMessageId"], format!("re-{}", "01".repeat(24)));
    let result = json!({"messageHash": "cc".repeat(32), "state": "outbound", "deduplicated": false});
    guest.grant(&sent, &result);
    let update = guest.called("host.ui.update_tool_panel");
    let rows = update["params"]["content"][1]["items"].to_string();
    assert!(rows.contains(r#"{"key":"Answered","value":"1"}"#), "{rows}");
    guest.grant(&update, &json!({}));
    assert_eq!(guest.answer(id)["result"], json!({}));
}

fn with_a_host_that_offers_1_0_nothing_newer_is_asked_for() {
    let (mut guest, answer) = Guest::ready(Way::Unix, AUTOREPLY, &["1.0.0"]);
    assert_eq!(answer["result"]["protocolVersion"], "1.0.0");
    let event = json!({"seq": 1, "topic": "message.received", "timeMs": 1, "data": message("01")});
    let id = guest.ask("sep.event", &event);
    let mut asked = Vec::new();
    loop {
        let line = guest.hear();
        let Some(method) = line["method"].as_str() else {
            assert_eq!(line, json!({"jsonrpc": "2.0", "id": id, "result": {}}));
            break;
        };
        asked.push(method.to_owned());
        let result = match method {
            "host.messages.send" => {
                json!({"messageHash": "cc".repeat(32), "state": "outbound", "deduplicated": false})
            }
            "host.messages.list" => json!({"messages": [], "nextCursor": null}),
            "host.contacts.list" => json!({"contacts": [], "nextCursor": null}),
            "host.notifications.toast" => json!({"shown": true}),
            _ => json!({"panelKey": "x/stats"}),
        };
        guest.grant(&line, &result);
    }
    assert_eq!(
        asked,
        [
            "host.ui.register_tool_panel",
            "host.contacts.list",
            "host.messages.list",
            "host.notifications.toast",
            "host.messages.send",
        ]
    );
    let action = json!({"panelId": "stats", "actionId": "pause", "invocation": "1"});
    let id = guest.ask("sep.action", &action);
    let answer = guest.answer(id);
    assert_eq!(answer["result"]["outcome"], "ok");
    assert!(answer["result"].get("panel").is_none(), "{answer}");
}

fn without_a_common_version_the_process_leaves_with_76() {
    let (mut guest, answer) = Guest::ready(Way::Unix, AUTOREPLY, &["2.0.0"]);
    assert_eq!(answer["error"]["code"], -32004);
    let data = json!({"sep": "version_unsupported", "requested": "2.0.0", "supported": ["1.1.0", "1.0.0"]});
    assert_eq!(answer["error"]["data"], data);
    assert_eq!(guest.ended(PATIENCE).code(), Some(76));
}

fn health_is_answered_while_handlers_block() {
    let (mut guest, _) = Guest::ready(Way::Unix, STUBBORN, BOTH);
    for seq in 1..=3 {
        guest.ask("sep.event", &json!({"seq": seq, "topic": "message.received", "timeMs": 1, "data": {}}));
    }
    guest.ask("sep.action", &json!({"panelId": "p", "actionId": "ask", "invocation": "1"}));
    guest.called("host.messages.list");
    for seq in 1..=20 {
        let id = guest.ask("sep.health", &json!({"seq": seq, "sentMs": 0}));
        assert_eq!(guest.answer(id)["result"], json!({"status": "ok", "seq": seq}));
    }
}

fn a_process_whose_host_has_gone_ends_within_two_seconds() {
    let (mut guest, _) = Guest::ready(Way::Unix, STUBBORN, BOTH);
    guest.ask("sep.event", &json!({"seq": 1, "topic": "message.received", "timeMs": 1, "data": {}}));
    let begin = Instant::now();
    guest.vanish();
    assert_eq!(guest.ended(Duration::from_secs(2)).code(), Some(0));
    assert!(begin.elapsed() < Duration::from_secs(2));
}

fn a_shutdown_ends_the_process_in_time_whatever_its_handler_does() {
    let (mut guest, _) = Guest::ready(Way::Unix, STUBBORN, BOTH);
    shutdown(&mut guest, 1000);
    let id = guest.ask("sep.health", &json!({"seq": 9, "sentMs": 0}));
    assert_eq!(guest.answer(id)["result"], json!({"status": "stopping", "seq": 9}));
    assert_eq!(guest.ended(Duration::from_secs(1)).code(), Some(0));
}

fn a_cancelled_action_is_answered_and_its_own_calls_are_given_up() {
    let (mut guest, _) = Guest::ready(Way::Unix, STUBBORN, BOTH);
    let id = guest.ask("sep.action", &json!({"panelId": "p", "actionId": "ask", "invocation": "1"}));
    let call = guest.called("host.messages.list");
    guest.say(&json!({"jsonrpc": "2.0", "method": "$/cancel", "params": {"id": id}}));
    // The handler notices by itself, so its last word may come before or after the kit's two.
    let said = [guest.hear(), guest.hear(), guest.hear()];
    let find = |what: &dyn Fn(&Value) -> bool| said.iter().find(|line| what(line)).expect("it was said");
    let answer = find(&|line| line["id"] == id && line.get("method").is_none());
    assert_eq!(answer["error"]["code"], -32023);
    assert_eq!(answer["error"]["data"]["sep"], "cancelled");
    assert_eq!(find(&|line| line["method"] == "$/cancel")["params"]["id"], call["id"]);
    assert_eq!(find(&|line| line["method"] == "host.log")["params"]["message"], "given up");
    // A late answer is let pass, and a cancel for nothing is ignored.
    guest.grant(&call, &json!({"messages": [], "nextCursor": null}));
    guest.say(&json!({"jsonrpc": "2.0", "method": "$/cancel", "params": {"id": "nothing"}}));
    let id = guest.ask("sep.health", &json!({"seq": 1, "sentMs": 0}));
    assert_eq!(guest.hear()["id"], id);
}

fn an_extension_that_cannot_work_like_this_leaves_with_78() {
    let (mut guest, attach) = Guest::start(Way::Unix, STUBBORN);
    guest.grant(&attach, &json!({"session": "s"}));
    let id = guest.ask("sep.initialize", &hello(BOTH, "unbearable"));
    assert_eq!(guest.answer(id)["result"]["protocolVersion"], "1.1.0");
    assert_eq!(guest.ended(PATIENCE).code(), Some(78));
    assert!(guest.stderr().contains("this host is unbearable"));
}

fn a_program_started_by_hand_says_what_it_is() {
    let program = std::env::current_exe().expect("this binary");
    let mut command = command(program.to_str().expect("a path in UTF-8"));
    let output = command.env_remove("SEP_HOST").args(AUTOREPLY).output().expect("a process");
    assert_eq!(output.status.code(), Some(64));
    assert!(String::from_utf8_lossy(&output.stderr).contains("is started by its host"));
}

fn a_refused_attach_and_a_closed_channel_have_their_own_codes() {
    let (mut guest, attach) = Guest::start(Way::Unix, AUTOREPLY);
    let error = json!({"code": -32006, "message": "no", "data": {"sep": "auth_failed"}});
    guest.say(&json!({"jsonrpc": "2.0", "id": attach["id"], "error": error}));
    assert_eq!(guest.ended(PATIENCE).code(), Some(69));
    let stderr = guest.stderr();
    assert!(stderr.contains("auth_failed") && !stderr.contains("4f4f"), "{stderr}");

    let (mut guest, _) = Guest::ready(Way::Unix, STUBBORN, BOTH);
    guest.hang_up();
    assert_eq!(guest.ended(PATIENCE).code(), Some(74));
}

fn unknown_methods_are_answered_and_broken_lines_do_no_harm() {
    let (mut guest, _) = Guest::ready(Way::Unix, STUBBORN, BOTH);
    let id = guest.ask("sep.teleport", &json!({}));
    assert_eq!(guest.answer(id)["error"]["code"], -32601);
    let id = guest.ask("sep.initialize", &hello(BOTH, "again"));
    assert_eq!(guest.answer(id)["error"]["code"], -32003);
    guest.say(&json!("not a message"));
    assert_eq!(guest.hear()["error"]["code"], -32600);
    let id = guest.ask("sep.action", &json!({"panelId": 7}));
    assert_eq!(guest.answer(id)["error"]["code"], -32602);
    let id = guest.ask("sep.event", &json!({"seq": 1, "topic": "peer.offline"}));
    assert_eq!(guest.answer(id)["result"], json!({}));
}

fn the_fault_extension_attaches_and_serves_without_a_script() {
    for way in [Way::Unix, Way::Fd, Way::Tcp] {
        let (mut guest, answer) = Guest::ready(way, &["__extension", "fault"], BOTH);
        assert_eq!(answer["result"], json!({"protocolVersion": "1.1.0"}));
        let id = guest.ask("sep.health", &json!({"seq": 4, "sentMs": 0}));
        assert_eq!(guest.answer(id)["result"], json!({"status": "ok", "seq": 4}));
        shutdown(&mut guest, 3000);
        assert_eq!(guest.ended(PATIENCE).code(), Some(0));
    }
}

fn the_fault_extension_follows_its_script() {
    let script = json!([
        {"do": "attach"},
        {"do": "manners", "version": "7.7.7", "health": "never", "event": {"error": -32603}},
        {"do": "serve", "until": "sep.event"},
        {"do": "call", "method": "host.get_capabilities", "params": {}},
        {"do": "open", "path": "/nowhere"},
        {"do": "exit", "code": 41},
    ]);
    let script = script.to_string();
    let (mut guest, answer) = Guest::ready(Way::Unix, &["__extension", "fault", &script], BOTH);
    assert_eq!(answer["result"]["protocolVersion"], "7.7.7");
    guest.ask("sep.health", &json!({"seq": 4, "sentMs": 0}));
    let id = guest.ask("sep.event", &json!({"seq": 1, "topic": "x.y", "timeMs": 1, "data": {}}));
    let answer = guest.hear();
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(id), &json!(-32603)));
    let call = guest.called("host.get_capabilities");
    guest.grant(&call, &json!({"fine": true}));
    assert_eq!(guest.ended(PATIENCE).code(), Some(41));
    let found = guest.stdout();
    assert_eq!(found[0]["ok"], true);
    assert_eq!(found[1]["method"], "sep.event");
    assert_eq!((&found[2]["do"], &found[2]["result"]), (&json!("call"), &json!({"fine": true})));
    assert_eq!((&found[3]["do"], &found[3]["os"]), (&json!("open"), &json!(2)));
}

fn the_kit_for_python_keeps_its_promises() {
    let tests = concat!(env!("CARGO_MANIFEST_DIR"), "/../../sdk/python/test_outrigger_sep.py");
    let mut python = command("python3");
    // It starts extensions itself, and has to find the interpreter as a person would.
    python.env("PATH", std::env::var_os("PATH").unwrap_or_default()).env_remove("SEP_HOST");
    let output = python.args(["-B", tests]).output().expect("python3 is installed");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
