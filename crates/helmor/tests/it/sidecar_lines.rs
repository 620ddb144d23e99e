//! Lines of every kind: what is answered, with which words, and that nothing of it disturbs a stream.

use std::collections::HashMap;
use std::io::Write as _;

use serde_json::{Value, json};

use crate::sidecar_kit::{Host, assert_one_end};

pub(crate) fn trials() -> Vec<libtest_mimic::Trial> {
    trials![
        every_line_that_is_no_request_is_answered_and_changes_nothing,
        parameters_are_judged_as_the_contract_says,
        questions_to_providers_are_answered,
        titles_come_from_the_first_who_has_one,
        ten_thousand_bad_lines_do_not_disturb_a_stream,
        a_line_of_sixty_four_mebibytes_is_read_and_one_byte_more_is_not,
        at_most_so_many_requests_are_in_flight,
        an_id_is_free_again_after_the_end,
    ]
}

fn every_line_that_is_no_request_is_answered_and_changes_nothing() {
    let mut host = Host::start();
    host.send("live", "s", "hang");
    host.until("live", "hanging");
    let long = "é".repeat(150);
    for (line, message, id) in [
        (
            "nonsense".to_owned(),
            "Invalid request: not JSON: expected ident at line 1 column 2 (nonsense)".to_owned(),
            None,
        ),
        ("[1]".to_owned(), "Invalid request: a request is an object ([1])".to_owned(), None),
        (
            r#"{"method":"ping","params":{}}"#.to_owned(),
            r#"Invalid request: id must be a string ({"method":"ping","params":{}})"#.to_owned(),
            None,
        ),
        (
            r#"{"id":"x","params":{}}"#.to_owned(),
            r#"Invalid request: method must be a string ({"id":"x","params":{}})"#.to_owned(),
            Some("x"),
        ),
        (
            r#"{"id":"live","params":{}}"#.to_owned(),
            r#"Invalid request: method must be a string ({"id":"live","params":{}})"#.to_owned(),
            None,
        ),
        (
            r#"{"id":"live","method":"ping","params":{}}"#.to_owned(),
            r#"Invalid request: a request in flight has this id ({"id":"live","method":"ping","params":{}})"#
                .to_owned(),
            None,
        ),
        (
            format!("{{{long}"),
            format!(
                "Invalid request: not JSON: key must be a string at line 1 column 2 ({{{})",
                "é".repeat(99)
            ),
            None,
        ),
    ] {
        host.write(&line);
        let mut expected = json!({ "type": "error", "message": message });
        if let Some(id) = id {
            expected["id"] = json!(id);
        }
        assert_eq!(host.next(), expected, "{line}");
    }
    host.input.write_all(b"\xFF{}\n").unwrap();
    let error = host.next();
    assert!(error["message"].as_str().unwrap().contains("not UTF-8"), "{error}");
    host.request("u", "runTriageTick", json!({}));
    let unknown =
        json!({"id":"u","type":"error","message":"Unknown method: runTriageTick","code":"unknown_method"});
    assert_eq!(host.next(), unknown);
    // Blank lines, CRLF and answers to nothing are nothing; a last line without a newline is one.
    host.input.write_all(b"\n  \r\n{\"type\":\"hostResponse\",\"callbackId\":\"x\"}\r\n").unwrap();
    host.input.write_all(b"{\"id\":\"p\",\"method\":\"ping\",\"params\":{}}").unwrap();
    let (_, rest) = host.finish();
    let expected =
        [json!({"id":"p","type":"pong"}), json!({"id":"live","type":"aborted","reason":"stdin_closed"})];
    assert_eq!(rest, expected);
}

fn parameters_are_judged_as_the_contract_says() {
    let mut host = Host::start();
    let turn = json!({ "sessionId": "s", "prompt": "say 0", "provider": "claude" });
    let with = |more: Value| {
        let mut params = turn.clone();
        params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        params
    };
    let proxy = r#"params.agentProxy must be {"mode":"system"} or {"mode":"custom","customUrl":string}"#;
    for (method, params, message) in [
        ("sendMessage", json!({}), "params.sessionId must be a string"),
        ("sendMessage", json!({"sessionId":""}), "params.prompt must be a string"),
        ("sendMessage", json!({"sessionId":"","prompt":""}), "params.provider must be a string"),
        ("sendMessage", with(json!({"provider":"nobody"})), "unknown provider: nobody"),
        ("sendMessage", with(json!({"provider":"acp:"})), "unknown provider: acp:"),
        ("sendMessage", with(json!({"provider":"acp:nobody"})), "unknown provider: acp:nobody"),
        (
            "sendMessage",
            with(json!({"claudeEnvironment":{"A":1}})),
            "params.claudeEnvironment.A must be a string",
        ),
        (
            "sendMessage",
            with(json!({"claudeEnvironment":[]})),
            "params.claudeEnvironment must be an object of strings",
        ),
        (
            "sendMessage",
            with(json!({"claudeEnvironment":{"A=":"x"}})),
            "params.claudeEnvironment.A= must be a variable that a program can have",
        ),
        ("sendMessage", with(json!({"agentProxy":{"mode":"other"}})), proxy),
        ("sendMessage", with(json!({"agentProxy":{"mode":"custom"}})), proxy),
        (
            "sendMessage",
            with(json!({"additionalDirectories":"x"})),
            "params.additionalDirectories must be an array of strings",
        ),
        (
            "sendMessage",
            with(json!({"additionalDirectories":[1]})),
            "params.additionalDirectories must be an array of strings",
        ),
        ("generateTitle", json!({}), "params.userMessage must be a string"),
        ("listModels", json!({"provider":7}), "params.provider must be a string"),
        (
            "listSlashCommands",
            json!({"provider":"claude","additionalDirectories":{}}),
            "params.additionalDirectories must be an array of strings",
        ),
        ("getContextUsage", json!({"sessionId":"s"}), "params.model must be a string"),
        ("stopSession", json!({"sessionId":"s"}), "params.provider must be a string"),
        (
            "mutateCodexGoal",
            json!({"sessionId":"s","action":"x"}),
            r#"params.action must be "pause" or "clear""#,
        ),
        (
            "permissionResponse",
            json!({"permissionId":"p","behavior":"x"}),
            r#"params.behavior must be "allow" or "deny""#,
        ),
        (
            "permissionResponse",
            json!({"permissionId":"p","behavior":"allow","updatedPermissions":{}}),
            "params.updatedPermissions must be an array",
        ),
        (
            "userInputResponse",
            json!({"userInputId":"p","action":"x"}),
            r#"params.action must be "submit", "decline" or "cancel""#,
        ),
    ] {
        host.request("r", method, params.clone());
        let expected = json!({"id":"r","type":"error","message":message,"code":"invalid_params"});
        assert_eq!(host.next(), expected, "{method} {params}");
    }
    // What is optional and wrong is absent; images are taken as far as they go.
    let lenient = json!({"model":7,"cwd":null,"resume":[],"permissionMode":1,"effortLevel":{},"fastMode":"yes",
        "claudeThinkingDisplay":"x","images":{"no":1},"agentProxy":null,"claudeEnvironment":null,"additionalDirectories":null});
    host.request("r", "sendMessage", with(lenient));
    assert_eq!(host.next(), json!({"id":"r","type":"end"}));
    // A missing program is said at once.
    host.request("r", "sendMessage", with(json!({"provider":"cursor"})));
    let missing = json!({"id":"r","type":"error","message":"there is no Cursor","code":"not_installed"});
    assert_eq!(host.next(), missing);
}

fn questions_to_providers_are_answered() {
    let mut host = Host::start();
    host.request("m", "listModels", json!({"provider":"codex","apiKey":"once"}));
    let models = json!({"id":"m","type":"modelsListed","provider":"codex","models":[{"id":"m","label":"codex","cliModel":"once"}]});
    assert_eq!(host.next(), models);
    host.request(
        "c",
        "listSlashCommands",
        json!({"provider":"claude","cwd":"/w","additionalDirectories":[" /a ",""]}),
    );
    let commands = json!({"id":"c","type":"slashCommandsListed","commands":[{"name":"1","description":"Some(\"/w\")","source":"builtin"}]});
    assert_eq!(host.next(), commands);
    host.request("u", "getContextUsage", json!({"sessionId":"s","model":"opus"}));
    let usage =
        json!({"id":"u","type":"contextUsageResult","meta":"{\"modelId\":\"opus\",\"session\":\"s\"}"});
    assert_eq!(host.next(), usage);
    host.request("g", "mutateCodexGoal", json!({"sessionId":"s","action":"pause"}));
    assert_eq!(host.next(), json!({"id":"g","type":"pong"}));
}

fn titles_come_from_the_first_who_has_one() {
    let mut host = Host::start();
    host.request("1", "generateTitle", json!({"userMessage":"fix the test"}));
    assert_eq!(
        host.next(),
        json!({"id":"1","type":"titleGenerated","title":"From Claude","branchName":"from-claude"})
    );
    host.request(
        "2",
        "generateTitle",
        json!({"userMessage":"codex knows","generateBranch":false,"claudeModel":"own"}),
    );
    assert_eq!(host.next(), json!({"id":"2","type":"titleGenerated","title":"From Codex"}));
    let asked = ["claude None", "claude Some(\"own\")", "claude None", "codex None"];
    assert_eq!(host.seen.remarks(), asked);
    host.request("3", "generateTitle", json!({"userMessage":"codex knows","provider":"claude"}));
    let error =
        json!({"id":"3","type":"error","message":"no title: claude: nobody is logged in","code":"auth"});
    assert_eq!(host.next(), error);
    host.request("4", "generateTitle", json!({"userMessage":"x","provider":"cursor"}));
    let error = json!({"id":"4","type":"error","message":"no title: cursor: there is no Cursor","code":"not_installed"});
    assert_eq!(host.next(), error);
}

fn ten_thousand_bad_lines_do_not_disturb_a_stream() {
    let mut host = Host::start();
    host.send("live", "s", "chatter");
    host.until("live", "assistant");
    let lines = 10_000;
    let mut writer = host.input.try_clone().unwrap();
    let written = std::thread::spawn(move || {
        for at in 0..lines {
            writer.write_all(&bad_line(at)).unwrap();
        }
        writer.write_all(b"{\"id\":\"done\",\"method\":\"stopSession\",\"params\":{\"sessionId\":\"s\",\"provider\":\"claude\"}}\n").unwrap();
    });
    let mut events = host.until("done", "stopped");
    written.join().unwrap();
    // What takes its time may be answered after the last line.
    events.extend(host.finish().1);
    let (mut nameless, mut named, mut next) = (0, HashMap::new(), 1);
    for event in events {
        match event["id"].as_str() {
            Some("live") if event["type"] == "aborted" => {}
            Some("live") => {
                assert_eq!(event["at"], next, "the stream goes on in order");
                next += 1;
            }
            Some("done") => {}
            Some(id) => *named.entry(id.to_owned()).or_insert(0) += 1,
            None => {
                assert_eq!(event["type"], "error", "{event}");
                nameless += 1;
            }
        }
    }
    let kinds = (0..lines).map(|at| at % KINDS);
    let without_id = kinds.clone().filter(|kind| *kind < 5).count();
    assert_eq!(nameless, without_id);
    let with_id: Vec<usize> = (0..lines).filter(|at| (5..11).contains(&(at % KINDS))).collect();
    assert_eq!(named.len(), with_id.len());
    assert!(with_id.iter().all(|at| named[&format!("b{at}")] == 1), "every one was answered once");
}

const KINDS: usize = 13;

/// The first five kinds are answered without an id, the next six with it, the others not at all.
fn bad_line(at: usize) -> Vec<u8> {
    let id = format!("b{at}");
    let line = match at % KINDS {
        0 => "{\"id\":".to_owned(),
        1 => "\u{7f}\u{0}binary".to_owned(),
        2 => r#"{"id":"live","method":"sendMessage","params":{}}"#.to_owned(),
        3 => r#"[{"id":"a","method":"ping","params":{}}]"#.to_owned(),
        4 => return b"{\"id\":\"\xC3\x28\"}\n".to_vec(),
        5 => format!(r#"{{"id":"{id}","method":7,"params":{{}}}}"#),
        6 => format!(r#"{{"id":"{id}","method":"noSuchThing","params":{{}}}}"#),
        7 => json!({"id":id,"method":"sendMessage","params":{"sessionId":"s","prompt":"say 1","provider":"claude"}}).to_string(),
        8 => json!({"id":id,"method":"permissionResponse","params":{"permissionId":"p","behavior":"allow"}}).to_string(),
        9 => json!({"id":id,"method":"steerSession","params":{"sessionId":"none","provider":"codex","prompt":"x"}}).to_string(),
        10 => json!({"id":id,"method":"stopSession","params":{"sessionId":"none","provider":"claude"}}).to_string(),
        11 => r#"{"type":"hostResponse","callbackId":"none","ok":1}"#.to_owned(),
        _ => "   ".to_owned(),
    };
    format!("{line}\n").into_bytes()
}

fn a_line_of_sixty_four_mebibytes_is_read_and_one_byte_more_is_not() {
    let mut host = Host::start();
    let frame = r#"{"id":"big","method":"ping","params":{"x":""}}"#.len();
    for (length, answer) in [(64 << 20, "pong"), ((64 << 20) + 1, "error")] {
        let line =
            format!(r#"{{"id":"big","method":"ping","params":{{"x":"{}"}}}}"#, "x".repeat(length - frame));
        assert_eq!(line.len(), length);
        host.write(&line);
        let event = host.next();
        assert_eq!(event["type"], answer);
        if answer == "error" {
            let message = event["message"].as_str().unwrap();
            assert!(
                message.starts_with("Invalid request: line is longer than 67108864 bytes ({\"id\":\"big\""),
                "{message}"
            );
        }
    }
    host.request("p", "ping", json!({}));
    host.until("p", "pong");
}

fn at_most_so_many_requests_are_in_flight() {
    let mut host = Host::start();
    for at in 0..1024 {
        host.send(&format!("r{at}"), &format!("s{at}"), "hang");
    }
    for _ in 0..1024 {
        assert_eq!(host.next()["type"], "hanging");
    }
    host.send("more", "more", "say 1");
    let expected =
        json!({"id":"more","type":"error","message":"too many requests are in flight","code":"overloaded"});
    assert_eq!(host.next(), expected);
    // What takes no time is never too much: this is how a host gets out of it.
    host.stop("stop", "s7");
    host.until("stop", "stopped");
    host.send("more", "more", "say 1");
    host.until("more", "end");
    let (_, rest) = host.finish();
    assert_eq!(assert_one_end(&rest).len(), 1023);
}

fn an_id_is_free_again_after_the_end() {
    let mut host = Host::start();
    host.send("a", "s", "talk");
    host.until("a", "talking");
    host.stop("stop", "s");
    host.until("stop", "stopped");
    // The old stream of that name still talks, and none of it comes under the new one.
    host.send("a", "other", "say 2");
    let events = host.until("a", "end");
    assert_eq!(events.len(), 3, "{events:?}");
}
