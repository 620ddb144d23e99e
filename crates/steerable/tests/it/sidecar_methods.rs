//! The methods of the contract that are no streams: sessions, tools, settings, traces.

use libtest_mimic::Trial;
use serde_json::{Value, json};

use crate::server::{Answer, Server};
use crate::sidecar_kit::{Raw, script, scripted, with};

pub(crate) fn trials() -> Vec<Trial> {
    trials![
        a_session_is_created_resumed_and_listed,
        a_session_that_is_made_again_keeps_when_it_was_made,
        params_that_do_not_fit_are_named,
        sessions_are_filtered_and_the_last_updated_is_first,
        a_record_is_read_and_forked,
        tools_are_listed_in_the_form_that_hosts_read,
        a_tool_that_does_not_exist_is_a_result_and_no_error,
        a_tool_without_a_grant_says_what_would_grant_it,
        a_tool_that_can_destroy_needs_consent,
        calls_of_tools_have_a_budget,
        a_tool_reads_within_its_root_and_not_beyond,
        bad_arguments_are_a_result,
        only_the_tools_of_the_flag_are_listed,
        settings_are_shown_judged_and_set,
        settings_are_kept_with_a_storage,
        a_flag_says_the_level_for_this_time,
        a_trace_is_fetched_by_its_stream,
        a_trace_that_is_not_there_is_named,
        a_trace_is_exported_to_a_collector,
        quick_requests_are_answered_in_the_order_in_which_they_came,
        a_slow_tool_delays_nothing_else,
    ]
}

fn a_session_is_created_resumed_and_listed() {
    let mut raw = Raw::start(&[]);
    let session = raw.result("agent.session.create", json!({"chatId": "c1", "stageData": {"a": [1, null]}}));
    let id = session["sessionId"].as_str().unwrap();
    assert!(
        id.strip_prefix("sess_")
            .is_some_and(|hex| hex.len() == 32 && hex.bytes().all(|b| b.is_ascii_hexdigit())),
        "{id}"
    );
    let created = session["createdAt"].as_str().unwrap();
    assert!(
        created.len() == "2026-05-15T00:00:00.000000+00:00".len() && created.ends_with("+00:00"),
        "{created}"
    );
    assert_eq!(session["createdAt"], session["updatedAt"]);
    assert_eq!(
        session,
        json!({
            "sessionId": id, "userId": "local", "chatId": "c1", "currentStage": "plan", "scenario": "agent-entry",
            "stageData": {"a": [1, null]}, "isActive": true, "createdAt": created, "updatedAt": created,
        })
    );
    assert_eq!(raw.result("agent.session.resume", json!({"sessionId": id})), session);
    assert_eq!(raw.result("agent.session.list", Value::Null), json!([session]));
    assert_eq!(
        raw.error("agent.session.resume", json!({"sessionId": "none"})),
        (-32004, "invalid_request".into(), "session not found: none".into())
    );
}

fn a_session_that_is_made_again_keeps_when_it_was_made() {
    let mut raw = Raw::start(&[]);
    let first =
        raw.result("agent.session.create", json!({"chatId": "a", "sessionId": "s", "projectId": "p"}));
    let again =
        raw.result("agent.session.create", json!({"chatId": "b", "sessionId": "s", "currentStage": "do"}));
    assert_eq!(again["createdAt"], first["createdAt"]);
    assert_eq!((again["chatId"].as_str(), again["currentStage"].as_str()), (Some("b"), Some("do")));
    assert_eq!(again.get("projectId"), None);
    assert_eq!(raw.result("agent.session.list", json!({})).as_array().unwrap().len(), 1);
}

fn params_that_do_not_fit_are_named() {
    let mut raw = Raw::start(&[]);
    let table = [
        ("agent.session.create", json!([]), "params must be an object"),
        ("agent.session.create", Value::Null, "params must be an object"),
        ("agent.session.create", json!({}), "chatId must be a non-empty string"),
        ("agent.session.create", json!({"chatId": 1}), "chatId must be a non-empty string"),
        ("agent.session.create", json!({"chatId": "c", "stageData": 1}), "stageData must be an object"),
        ("agent.session.resume", json!({}), "sessionId must be a non-empty string"),
        ("agent.session.resume", json!({"sessionId": ""}), "sessionId must be a non-empty string"),
        ("agent.session.list", json!([]), "params must be an object"),
        ("agent.session.list", json!({"activeOnly": "yes"}), "activeOnly must be true or false"),
        ("agent.session.messages", json!({}), "recordId must be a non-empty string"),
        (
            "agent.session.fork",
            json!({"recordId": "r", "untilSeq": "x"}),
            "untilSeq must be a whole number of at least 0",
        ),
        ("tool.invoke", json!({}), "name must be a non-empty string"),
        ("tool.invoke", json!({"name": "x", "arguments": []}), "arguments must be an object"),
        ("tool.invoke", json!({"name": "x", "consentGranted": 1}), "consentGranted must be true or false"),
        ("trace.fetch", json!({}), "traceId must be a non-empty string"),
        ("trace.export", json!({"traceId": "t"}), "endpoint must be a non-empty string"),
        (
            "trace.export",
            json!({"traceId": "t", "endpoint": "x", "privacyMode": "some"}),
            "privacyMode must be \"full\" or \"metadata\"",
        ),
        ("agent.chat.cancel", json!({}), "streamId must be a non-empty string"),
        ("agent.chat.steer", json!({"streamId": "s"}), "content must be a non-empty string"),
        ("agent.chat.compact", json!({}), "streamId must be a non-empty string"),
    ];
    for (method, params, message) in table {
        let shown = format!("{method} {params}");
        assert_eq!(raw.error(method, params), (-32602, "invalid_params".into(), message.into()), "{shown}");
    }
}

fn sessions_are_filtered_and_the_last_updated_is_first() {
    let mut raw = Raw::start(&[]);
    for (id, user, chat) in [("1", "a", "x"), ("2", "b", "x"), ("3", "a", "y")] {
        raw.result("agent.session.create", json!({"sessionId": id, "userId": user, "chatId": chat}));
    }
    let mut ids = |params: Value| -> Vec<String> {
        let sessions = raw.result("agent.session.list", params);
        sessions
            .as_array()
            .unwrap()
            .iter()
            .map(|session| session["sessionId"].as_str().unwrap().into())
            .collect()
    };
    assert_eq!(ids(json!({})), ["3", "2", "1"]);
    assert_eq!(ids(json!({"userId": "a"})), ["3", "1"]);
    assert_eq!(ids(json!({"userId": "a", "chatId": "x", "activeOnly": true})), ["1"]);
    assert_eq!(ids(json!({"limit": 1})), ["3"]);
    assert_eq!(ids(json!({"limit": 0})), Vec::<String>::new());
}

fn a_record_is_read_and_forked() {
    let mut raw = Raw::start(&[]);
    let (_folder, path) = script(&[json!({"chunks": [{"delta": "hello"}]})]);
    raw.result("agent.session.create", json!({"chatId": "c", "sessionId": "s"}));
    let (_, terminal) = raw.stream(with(scripted(&path), json!({"useCoreLoop": true, "recordId": "s"})));
    assert_eq!(terminal["params"]["status"], "completed", "{terminal}");
    let record = raw.result("agent.session.messages", json!({"sessionId": "s"}));
    assert_eq!(
        record,
        json!({"recordId": "s", "messages": [
            {"seq": 1, "role": "user", "content": "hi"},
            {"seq": 2, "role": "assistant", "content": "hello"},
        ]})
    );
    let forked = raw.result(
        "agent.session.fork",
        json!({"recordId": "s", "untilSeq": 1, "newRecordId": "f", "label": "try"}),
    );
    assert_eq!(
        forked,
        json!({"recordId": "f", "sourceRecordId": "s", "sourceUntilSeq": 1, "label": "try", "seedMessages": 1})
    );
    assert_eq!(raw.result("agent.session.resume", json!({"sessionId": "f"}))["chatId"], "c");
    assert_eq!(
        raw.error("agent.session.messages", json!({"recordId": "none"})),
        (-32004, "invalid_request".into(), "record not found: none".into())
    );
    assert_eq!(raw.error("agent.session.fork", json!({"recordId": "none"})).0, -32004);
    assert_eq!(raw.error("agent.session.fork", json!({"recordId": "s", "newRecordId": "f"})).0, -32602);
}

fn tools_are_listed_in_the_form_that_hosts_read() {
    let mut raw = Raw::start(&[]);
    let tools = raw.result("tool.list", Value::Null);
    let names: Vec<&str> =
        tools.as_array().unwrap().iter().map(|tool| tool["function"]["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["todo_write"]);
    assert_eq!(
        (tools[0]["type"].as_str(), &tools[0]["function"]["parameters"]["type"]),
        (Some("function"), &json!("object"))
    );
    assert_eq!(raw.result("system.ping", Value::Null)["loadedTools"], 1);
}

fn a_tool_that_does_not_exist_is_a_result_and_no_error() {
    let mut raw = Raw::start(&[]);
    let result = raw.result("tool.invoke", json!({"name": "fly"}));
    assert_eq!((&result["success"], &result["error"]), (&json!(false), &json!("Unknown tool: fly")));
    assert_eq!((&result["terminal"], &result["needsFollowup"]), (&json!(false), &json!(false)));
    assert!(result["data"]["durationMs"].is_u64());
}

fn a_tool_without_a_grant_says_what_would_grant_it() {
    let mut raw = Raw::start(&[]);
    let answer = raw.call("tool.invoke", json!({"name": "read_file", "arguments": {"path": "/etc/passwd"}}));
    let error = &answer["error"];
    assert_eq!((error["code"].as_i64(), error["kind"].as_str()), (Some(-32002), Some("policy_denied")));
    assert_eq!(
        (error["data"]["tool"].as_str(), error["data"]["mode"].as_str()),
        (Some("read_file"), Some("read"))
    );
    assert!(error["data"]["reason"].as_str().unwrap().contains("--read-root"), "{answer}");
}

fn a_tool_that_can_destroy_needs_consent() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().to_str().unwrap();
    let mut raw = Raw::start(&["--write-root", root, "--commands", "allow"]);
    let call = json!({"name": "run_command", "arguments": {"command": "echo", "args": ["hi"], "cwd": root}});
    let answer = raw.call("tool.invoke", call.clone());
    let error = &answer["error"];
    assert_eq!((error["code"].as_i64(), error["kind"].as_str()), (Some(-32002), Some("policy_denied")));
    assert_eq!(
        (error["data"]["tool"].as_str(), error["data"]["mode"].as_str()),
        (Some("run_command"), Some("destructive"))
    );
    let result = raw.result("tool.invoke", with(call, json!({"consentGranted": true})));
    assert_eq!(result["success"], true, "{result}");
}

fn calls_of_tools_have_a_budget() {
    let mut raw = Raw::start(&[]);
    raw.result("config.set", json!({"maxToolCalls": 2}));
    let call = json!({"name": "todo_write", "arguments": {"items": []}});
    for _ in 0..2 {
        assert_eq!(raw.result("tool.invoke", call.clone())["success"], true);
    }
    let answer = raw.call("tool.invoke", call.clone());
    let error = &answer["error"];
    assert_eq!((error["code"].as_i64(), error["kind"].as_str()), (Some(-32001), Some("budget_exhausted")));
    assert_eq!(error["data"], json!({"budget": "toolCalls", "limit": 2, "used": 2}));
    raw.result("config.set", json!({"maxToolCalls": 3}));
    assert_eq!(raw.result("tool.invoke", call)["success"], true);
}

fn a_tool_reads_within_its_root_and_not_beyond() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().to_str().unwrap();
    std::fs::write(folder.path().join("a.txt"), "inside").unwrap();
    let mut raw = Raw::start(&["--read-root", root]);
    let result = raw.result("tool.invoke", json!({"name": "read_file", "arguments": {"path": "a.txt"}}));
    assert_eq!(result["success"], true, "{result}");
    assert!(result.to_string().contains("inside"), "{result}");
    let (code, kind, _) =
        raw.error("tool.invoke", json!({"name": "read_file", "arguments": {"path": "/etc/passwd"}}));
    assert_eq!((code, kind.as_str()), (-32002, "policy_denied"));
}

fn bad_arguments_are_a_result() {
    let mut raw = Raw::start(&[]);
    let result = raw.result("tool.invoke", json!({"name": "todo_write", "arguments": {"items": 1}}));
    assert_eq!((&result["success"], &result["needsFollowup"]), (&json!(false), &json!(true)), "{result}");
}

fn only_the_tools_of_the_flag_are_listed() {
    let folder = tempfile::tempdir().unwrap();
    let mut raw =
        Raw::start(&["--read-root", folder.path().to_str().unwrap(), "--tools", "list_files,write_file"]);
    let tools = raw.result("tool.list", json!({}));
    let names: Vec<&str> =
        tools.as_array().unwrap().iter().map(|tool| tool["function"]["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["list_files"], "the other one has no grant");
}

fn settings_are_shown_judged_and_set() {
    let mut raw = Raw::start(&[]);
    let settings = json!({
        "logLevel": "INFO", "gracePeriodSeconds": 5.0, "connectTimeoutSeconds": 30.0, "idleTimeoutSeconds": 300.0,
        "totalTimeoutSeconds": 1800.0, "toolTimeoutMs": 300_000, "retryMaxAttempts": 3, "maxToolCalls": 0, "version": "9.8.7",
        "protocolVersion": "0.1.0",
    });
    assert_eq!(raw.result("config.get", Value::Null), settings);
    for (params, named) in [
        (json!({"idleTimeoutSeconds": 1, "logLevel": "LOUD"}), "logLevel"),
        (json!({"idleTimeoutSeconds": 1, "colour": "red"}), "colour"),
        (json!({"idleTimeoutSeconds": 1, "protocolVersion": "2"}), "protocolVersion"),
        (json!({"idleTimeoutSeconds": 1, "retryMaxAttempts": 0}), "retryMaxAttempts"),
        (json!([]), "params"),
    ] {
        let (code, kind, message) = raw.error("config.set", params);
        assert_eq!((code, kind.as_str()), (-32602, "invalid_params"));
        assert!(message.starts_with(named), "{message}");
    }
    assert_eq!(raw.result("config.get", Value::Null), settings, "nothing was set");
    assert_eq!(
        raw.result("config.set", json!({"idleTimeoutSeconds": 1.5, "retryMaxAttempts": 1})),
        Value::Null
    );
    let expected = with(settings, json!({"idleTimeoutSeconds": 1.5, "retryMaxAttempts": 1}));
    assert_eq!(raw.result("config.get", Value::Null), expected);
}

fn settings_are_kept_with_a_storage() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.db");
    let flags = ["--storage-path", path.to_str().unwrap()];
    let mut raw = Raw::start(&flags);
    raw.result("config.set", json!({"toolTimeoutMs": 1234, "logLevel": "ERROR"}));
    raw.signal(rustix::process::Signal::KILL);
    let _ = raw.end();
    let mut raw = Raw::start(&flags);
    let settings = raw.result("config.get", Value::Null);
    assert_eq!((&settings["toolTimeoutMs"], &settings["logLevel"]), (&json!(1234), &json!("ERROR")));
}

fn a_flag_says_the_level_for_this_time() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.db");
    let path = path.to_str().unwrap();
    let mut raw = Raw::start(&["--storage-path", path]);
    raw.result("config.set", json!({"logLevel": "ERROR"}));
    raw.shut_down().assert(0, "normal");
    let mut raw = Raw::start(&["--storage-path", path, "--log-level", "DEBUG"]);
    assert_eq!(raw.result("config.get", Value::Null)["logLevel"], "DEBUG");
}

fn a_trace_is_fetched_by_its_stream() {
    let mut raw = Raw::start(&[]);
    let usage = json!({"promptTokens": 3, "completionTokens": 4, "totalTokens": 7});
    let (_folder, path) =
        script(&[json!({"chunks": [{"delta": "a"}, {"usage": usage}, {"finishReason": "stop"}]})]);
    raw.stream(with(scripted(&path), json!({"streamId": "s1"})));
    let tree = raw.result("trace.fetch", json!({"streamId": "s1"}));
    let trace = &tree["trace"];
    assert_eq!(
        (trace["status"].as_str(), trace["totalTokens"].as_u64()),
        (Some("completed"), Some(7)),
        "{tree}"
    );
    let spans: Vec<(&Value, &Value)> =
        tree["spans"].as_array().unwrap().iter().map(|span| (&span["name"], &span["status"])).collect();
    assert_eq!(spans, [(&json!("llm.request"), &json!("ok"))]);
    let kinds: Vec<&Value> = tree["events"].as_array().unwrap().iter().map(|event| &event["kind"]).collect();
    assert_eq!(kinds, [&json!("llm_request"), &json!("llm_response")]);
    assert_eq!(raw.result("trace.fetch", json!({"traceId": trace["traceId"]})), tree);
    assert_eq!(raw.result("system.ping", Value::Null)["activeTraces"], 0);
}

fn a_trace_that_is_not_there_is_named() {
    let mut raw = Raw::start(&[]);
    let expected = (-32004, "invalid_request".into(), "trace not found: t".into());
    assert_eq!(raw.error("trace.fetch", json!({"traceId": "t"})), expected);
    assert_eq!(
        raw.error("trace.export", json!({"traceId": "t", "endpoint": "http://127.0.0.1:9"})),
        expected
    );
}

fn a_trace_is_exported_to_a_collector() {
    let collector = Server::start(|_| Answer::json(202, &json!({})));
    let mut raw = Raw::start(&[]);
    let (_folder, path) = script(&[json!({"chunks": [{"delta": "a"}]})]);
    raw.stream(with(scripted(&path), json!({"streamId": "s1"})));
    let trace = raw.result("trace.fetch", json!({"streamId": "s1"}))["trace"]["traceId"].clone();
    let exported = raw.result(
        "trace.export",
        json!({"traceId": trace, "endpoint": collector.root(), "serviceName": "mine", "headers": {"x-key": "k"}}),
    );
    assert_eq!(exported, json!({"status": 202, "traceId": trace, "privacyMode": "metadata"}));
    let requests = collector.requests();
    assert_eq!((requests[0].path.as_str(), requests[0].header("x-key")), ("/v1/traces", Some("k")));
    let body = requests[0].json();
    assert_eq!(
        body["resourceSpans"][0]["resource"]["attributes"][0]["value"]["stringValue"], "mine",
        "{body}"
    );
    let (code, kind, _) =
        raw.error("trace.export", json!({"traceId": trace, "endpoint": "http://127.0.0.1:9"}));
    assert_eq!((code, kind.as_str()), (-32005, "transport_closed"));
    assert_eq!(raw.error("trace.export", json!({"traceId": trace, "endpoint": "nowhere"})).0, -32602);
}

fn quick_requests_are_answered_in_the_order_in_which_they_came() {
    let mut raw = Raw::start(&[]);
    let methods =
        ["system.ping", "agent.session.list", "config.get", "tool.list", "agent.session.create", "nope"];
    let mut lines = String::new();
    for id in 0..300 {
        let method = methods[id % methods.len()];
        lines += &format!(
            "{}\n",
            json!({"jsonrpc": "2.0", "id": id, "method": method, "params": {"chatId": "c"}})
        );
    }
    raw.write(lines.as_bytes());
    for id in 0..300 {
        assert_eq!(raw.hear()["id"], id);
    }
}

fn a_slow_tool_delays_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().to_str().unwrap();
    let mut raw = Raw::start(&["--write-root", root, "--commands", "allow"]);
    let slow = json!({"command": "sleep", "args": ["600"], "cwd": root});
    let invoked =
        raw.ask("tool.invoke", json!({"name": "run_command", "arguments": slow, "consentGranted": true}));
    for _ in 0..100 {
        raw.result("system.ping", Value::Null);
        raw.result("agent.session.list", Value::Null);
    }
    assert!(raw.heard.is_empty(), "the tool still runs: {:?}", raw.heard);
    raw.ask("system.shutdown", Value::Null);
    assert_eq!(raw.answer(&json!(invoked))["error"]["kind"], "transport_closed");
    raw.end().assert(0, "normal");
}
