//! The life of a sidecar: how it begins, what ends it, and what is told before.

use std::time::{Duration, Instant};

use libtest_mimic::Trial;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::sidecar_kit::{Raw, script, scripted, with};

pub(crate) fn trials() -> Vec<Trial> {
    trials![
        a_sidecar_says_that_it_is_ready_on_both_streams_before_it_reads,
        a_quiet_sidecar_says_it_on_standard_output_only,
        requests_that_came_before_it_was_ready_are_answered_after_it_is,
        a_shutdown_ends_streams_then_answers_then_says_goodbye,
        a_shutdown_without_streams_answers_null_and_says_goodbye,
        a_shutdown_aborts_a_tool_that_runs,
        while_it_shuts_down_nothing_new_begins_and_pings_say_so,
        a_frame_behind_shutdown_now_is_not_answered,
        shutdown_now_does_not_wait_for_streams,
        the_end_of_input_ends_streams_and_then_the_sidecar,
        a_last_line_without_a_newline_is_answered_at_the_end_of_input,
        sigterm_tells_the_end_of_every_stream_and_leaves_promptly,
        sigint_does_the_same,
        a_host_that_reads_nothing_does_not_keep_it_after_sigterm,
        when_nobody_reads_any_more_everything_stops,
        a_storage_that_cannot_be_opened_is_a_sentence_and_no_marker,
        a_storage_of_a_newer_program_ends_with_75,
        two_sidecars_do_not_share_a_storage,
        the_log_has_four_fields_and_never_a_key,
        the_log_level_can_be_changed_while_it_runs,
    ]
}

/// A stream that has begun to speak and then hangs.
fn hanging(raw: &mut Raw, id: &str) -> tempfile::TempDir {
    let (folder, path) = script(&[json!({"chunks": [{"delta": "a"}, {"sleepMs": 600_000}]})]);
    raw.result("agent.chat.stream", with(scripted(&path), json!({"streamId": id})));
    assert_eq!(raw.notification("stream.chunk"), json!({"streamId": id, "delta": "a"}));
    folder
}

fn cancelled(id: &str) -> Value {
    json!({"jsonrpc": "2.0", "method": "stream.done", "params": {"streamId": id, "ok": false, "cancelled": true}})
}

fn a_sidecar_says_that_it_is_ready_on_both_streams_before_it_reads() {
    let mut raw = Raw::spawn(&[], &[]);
    let pid = raw.pid();
    assert_eq!(
        raw.line().unwrap(),
        format!(
            "{{\"jsonrpc\":\"2.0\",\"method\":\"lifecycle.ready\",\"params\":{{\"version\":\"9.8.7\",\"protocolVersion\":\"0.1.0\",\"pid\":{pid},\"listenInfo\":{{\"transport\":\"stdio\"}}}}}}"
        )
    );
    raw.wait_for_error("\n");
    let errors = raw.errors();
    let marker =
        errors.lines().next().unwrap().strip_prefix("__SIDECAR_READY__:").expect("the marker comes first");
    let health: Value = serde_json::from_str(marker).unwrap();
    assert_health(&health, pid);
    raw.shut_down().assert(0, "normal");
}

/// The members of a health, all of them and no others.
pub(crate) fn assert_health(health: &Value, pid: u32) {
    let members: Vec<&str> = health.as_object().unwrap().keys().map(String::as_str).collect();
    let mut expected = [
        "status",
        "version",
        "protocolVersion",
        "uptimeMs",
        "pid",
        "platform",
        "loadedProviders",
        "loadedTools",
        "activeTraces",
        "checks",
    ];
    expected.sort_unstable();
    let mut seen = members.clone();
    seen.sort_unstable();
    assert_eq!(seen, expected);
    assert_eq!((health["status"].as_str(), health["version"].as_str()), (Some("ok"), Some("9.8.7")));
    assert_eq!(health["protocolVersion"], "0.1.0");
    assert_eq!(health["pid"], pid);
    assert!(health["uptimeMs"].is_u64() && health["loadedTools"].is_u64() && health["activeTraces"].is_u64());
    assert!(health["platform"].as_str().unwrap().contains('-'));
    assert!(health["loadedProviders"].as_array().unwrap().contains(&json!("scripted")));
    assert_eq!(health["checks"]["storage"]["status"], "ok");
}

fn a_quiet_sidecar_says_it_on_standard_output_only() {
    let raw = Raw::start(&["--quiet-ready", "--log-level", "ERROR"]);
    let ended = raw.shut_down();
    ended.assert(0, "normal");
    assert_eq!(ended.errors, "");
}

fn requests_that_came_before_it_was_ready_are_answered_after_it_is() {
    let mut raw = Raw::spawn(&[], &[]);
    raw.ask("system.ping", Value::Null);
    assert_eq!(raw.hear()["method"], "lifecycle.ready");
    assert_eq!(raw.hear()["id"], 1);
}

fn a_shutdown_ends_streams_then_answers_then_says_goodbye() {
    let mut raw = Raw::start(&[]);
    let _first = hanging(&mut raw, "one");
    let _second = hanging(&mut raw, "two");
    let id = raw.ask("system.shutdown", json!({}));
    let ended = raw.end();
    ended.assert(0, "normal");
    let [first, second, answer, _goodbye] = &ended.lines[..] else { panic!("{:?}", ended.lines) };
    let mut streams = [first.clone(), second.clone()];
    streams.sort_by_key(ToString::to_string);
    assert_eq!(streams, [cancelled("one"), cancelled("two")]);
    assert_eq!(*answer, json!({"jsonrpc": "2.0", "id": id, "result": null}));
}

fn a_shutdown_without_streams_answers_null_and_says_goodbye() {
    let mut raw = Raw::start(&[]);
    raw.say(r#"{"jsonrpc":"2.0","id":"x","method":"system.shutdown"}"#);
    assert_eq!(raw.line().unwrap(), r#"{"jsonrpc":"2.0","id":"x","result":null}"#);
    assert_eq!(
        raw.line().unwrap(),
        r#"{"jsonrpc":"2.0","method":"lifecycle.shutdown","params":{"reason":"normal"}}"#
    );
    assert_eq!(raw.line(), None);
    assert_eq!(raw.end().status.code(), Some(0));
}

fn a_shutdown_aborts_a_tool_that_runs() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().to_str().unwrap();
    let mut raw = Raw::start(&["--read-root", root, "--write-root", root, "--commands", "allow"]);
    let arguments = json!({"command": "sh", "args": ["-c", "touch begun; sleep 600"], "cwd": root});
    let invoked = raw
        .ask("tool.invoke", json!({"name": "run_command", "arguments": arguments, "consentGranted": true}));
    let until = Instant::now() + Duration::from_secs(30);
    while !folder.path().join("begun").exists() {
        assert!(Instant::now() < until, "the command never began: {}", raw.errors());
        std::thread::yield_now();
    }
    let asked = raw.ask("system.shutdown", json!({}));
    let answer = raw.answer(&json!(invoked));
    assert_eq!(
        (answer["error"]["code"].as_i64(), answer["error"]["kind"].as_str()),
        (Some(-32005), Some("transport_closed"))
    );
    assert_eq!(raw.answer(&json!(asked))["result"], Value::Null);
    raw.end().assert(0, "normal");
}

fn while_it_shuts_down_nothing_new_begins_and_pings_say_so() {
    let mut raw = Raw::start(&[]);
    let (_folder, path) = script(&[json!({"chunks": [{"delta": "a"}]})]);
    // All of it in one write, so that the shutdown is still under way when the rest is read.
    let stream =
        json!({"jsonrpc": "2.0", "id": "c", "method": "agent.chat.stream", "params": scripted(&path)});
    raw.write(
        format!(
            "{}\n{}\n{stream}\n",
            r#"{"jsonrpc":"2.0","id":"a","method":"system.shutdown"}"#,
            r#"{"jsonrpc":"2.0","id":"b","method":"system.ping"}"#
        )
        .as_bytes(),
    );
    assert_eq!(raw.answer(&json!("b"))["result"]["status"], "shutting_down");
    let refused = raw.answer(&json!("c"));
    assert_eq!(
        (refused["error"]["code"].as_i64(), refused["error"]["kind"].as_str()),
        (Some(-32005), Some("transport_closed"))
    );
    raw.end().assert(0, "normal");
}

fn a_frame_behind_shutdown_now_is_not_answered() {
    let mut raw = Raw::start(&[]);
    raw.write(
        concat!(
            r#"{"jsonrpc":"2.0","id":1,"method":"system.ping"}"#,
            "\n",
            r#"{"jsonrpc":"2.0","id":2,"method":"system.shutdown_now"}"#,
            "\n",
            r#"{"jsonrpc":"2.0","id":3,"method":"system.ping"}"#,
            "\n",
        )
        .as_bytes(),
    );
    let ended = raw.end();
    ended.assert(0, "normal");
    let ids: Vec<&Value> = ended.lines.iter().map(|line| &line["id"]).collect();
    assert_eq!(ids, [&json!(1), &json!(2), &Value::Null]);
    assert_eq!(ended.lines[1]["result"], Value::Null);
    assert!(ended.lines[1].as_object().unwrap().contains_key("result"));
}

fn shutdown_now_does_not_wait_for_streams() {
    let mut raw = Raw::start(&[]);
    let _folder = hanging(&mut raw, "one");
    let began = Instant::now();
    raw.ask("system.shutdown_now", json!({}));
    raw.end().assert(0, "normal");
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
}

fn the_end_of_input_ends_streams_and_then_the_sidecar() {
    let mut raw = Raw::start(&[]);
    let _folder = hanging(&mut raw, "one");
    raw.hang_up();
    let ended = raw.end();
    ended.assert(0, "eof");
    assert_eq!(ended.lines[0], cancelled("one"));
    assert_eq!(ended.lines.len(), 2, "{:?}", ended.lines);
}

fn a_last_line_without_a_newline_is_answered_at_the_end_of_input() {
    let mut raw = Raw::start(&[]);
    raw.write(br#"{"jsonrpc":"2.0","id":7,"method":"agent.session.list"}"#);
    raw.hang_up();
    let ended = raw.end();
    ended.assert(0, "eof");
    assert_eq!(ended.lines[0], json!({"jsonrpc": "2.0", "id": 7, "result": []}));
}

fn ends_at(signal: Signal) {
    let mut raw = Raw::start(&[]);
    let _first = hanging(&mut raw, "one");
    let _second = hanging(&mut raw, "two");
    let began = Instant::now();
    raw.signal(signal);
    let ended = raw.end();
    ended.assert(0, "normal");
    let mut streams = ended.lines[..2].to_vec();
    streams.sort_by_key(ToString::to_string);
    assert_eq!(streams, [cancelled("one"), cancelled("two")]);
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
}

fn sigterm_tells_the_end_of_every_stream_and_leaves_promptly() {
    ends_at(Signal::TERM);
}

fn sigint_does_the_same() {
    ends_at(Signal::INT);
}

fn a_host_that_reads_nothing_does_not_keep_it_after_sigterm() {
    let mut raw = Raw::start(&["--quiet-ready"]);
    let chunks: Vec<Value> = vec![json!({"delta": "x".repeat(1000)}); 4000];
    let (_folder, path) = script(&[json!({"chunks": chunks})]);
    let id = raw.ask("agent.chat.stream", scripted(&path));
    raw.answer(&json!(id));
    raw.wait_until_full();
    let began = Instant::now();
    raw.signal(Signal::TERM);
    let (mut child, input) = raw.stop_reading();
    let status = child.wait().unwrap();
    drop(input);
    assert_eq!(status.code(), Some(0));
    assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
}

fn when_nobody_reads_any_more_everything_stops() {
    let mut raw = Raw::start(&[]);
    let _folder = hanging(&mut raw, "one");
    raw.ask("system.ping", Value::Null);
    let (mut child, input) = raw.stop_listening();
    // Whatever it says next cannot be written; its input is still open.
    use std::io::Write;
    let mut input = input.unwrap();
    while child.try_wait().unwrap().is_none() {
        let _ = input.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"system.ping\"}\n");
    }
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

fn a_storage_that_cannot_be_opened_is_a_sentence_and_no_marker() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("none").join("x.db");
    let ended = Raw::spawn(&["--storage-path", path.to_str().unwrap()], &[]).end();
    assert_eq!(ended.status.code(), Some(1));
    assert!(ended.lines.is_empty());
    assert!(
        ended.errors.starts_with("steerable-sidecar: ") && ended.errors.contains("none"),
        "{}",
        ended.errors
    );
}

fn a_storage_of_a_newer_program_ends_with_75() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.db");
    let shown = path.to_str().unwrap();
    Raw::start(&["--storage-path", shown]).shut_down().assert(0, "normal");
    let file = rusqlite::Connection::open(&path).unwrap();
    file.pragma_update(None, "user_version", 1_000_000).unwrap();
    drop(file);
    let ended = Raw::spawn(&["--storage-path", shown], &[]).end();
    assert_eq!(ended.status.code(), Some(75), "{}", ended.errors);
    assert!(!ended.errors.contains("__SIDECAR_READY__"));
}

fn two_sidecars_do_not_share_a_storage() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.db");
    let shown = path.to_str().unwrap();
    let first = Raw::start(&["--storage-path", shown]);
    let second = Raw::spawn(&["--storage-path", shown], &[]).end();
    assert_eq!(second.status.code(), Some(1));
    assert!(second.errors.contains(&first.pid().to_string()), "{}", second.errors);
    first.shut_down().assert(0, "normal");
    Raw::start(&["--storage-path", shown]).shut_down().assert(0, "normal");
}

fn the_log_has_four_fields_and_never_a_key() {
    let mut raw = Raw::start(&["--log-level", "DEBUG"]);
    let params = json!({
        "provider": "openai", "model": "m", "apiKey": "sk-verysecretkey123456", "retryMaxAttempts": 1,
        "baseUrl": "http://127.0.0.1:9/", "messages": [{"role": "user", "content": "hi"}],
    });
    let (_, terminal) = raw.stream(params);
    assert_eq!(terminal["method"], "stream.error");
    let ended = raw.shut_down();
    let log: Vec<&str> = ended.errors.lines().filter(|line| !line.starts_with("__SIDECAR")).collect();
    assert!(log.len() >= 2, "{}", ended.errors);
    for line in log {
        let fields: Vec<&str> = line.splitn(4, " | ").collect();
        assert_eq!(fields.len(), 4, "{line}");
        assert!(["DEBUG", "INFO", "WARNING", "ERROR"].contains(&fields[1]), "{line}");
    }
    assert!(!ended.errors.contains("verysecret"), "{}", ended.errors);
}

fn the_log_level_can_be_changed_while_it_runs() {
    let mut raw = Raw::start(&["--log-level", "ERROR"]);
    raw.call("said.quietly", Value::Null);
    raw.result("config.set", json!({"logLevel": "DEBUG"}));
    raw.call("said.loudly", Value::Null);
    raw.wait_for_error("said.loudly");
    assert!(!raw.errors().contains("said.quietly"));
}
