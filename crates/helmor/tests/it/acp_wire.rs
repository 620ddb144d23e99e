//! An agent over ACP behind the sidecar, as a host sees it; and what is left when the sidecar goes.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use outrigger_helmor::sidecar::{Exit, Providers, Settings};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::acp_kit::{fake, last_said, of, said};
use crate::claude_kit::processes;
use crate::sidecar_kit::{Host, assert_one_end};

pub(crate) fn trials() -> Vec<libtest_mimic::Trial> {
    trials![
        acp_over_the_wire_a_turn_asks_streams_and_ends_once,
        acp_over_the_wire_everything_beside_turns_is_answered,
        acp_over_the_wire_a_lost_session_is_told_and_a_steer_is_refused,
        acp_over_the_wire_stop_comes_first_and_nothing_after_it,
        acp_over_the_wire_no_tool_survives_the_end_of_input,
        acp_over_the_wire_no_tool_survives_the_death_of_the_sidecar
    ]
}

/// A sidecar with the fake agent, and the folder it works in.
fn host() -> (Host, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let command = fake(folder.path(), &[]);
    let host = Host::with(|options| {
        let acp = vec![("fake".to_owned(), command)];
        options.providers = Providers::real(Settings { acp, ..Settings::unsaid() });
    });
    (host, folder)
}

fn turn(folder: &TempDir, session: &str, mode: &str, prompt: &str) -> Value {
    json!({ "sessionId": session, "prompt": prompt, "provider": "acp:fake", "cwd": folder.path(), "permissionMode": mode })
}

fn acp_over_the_wire_a_turn_asks_streams_and_ends_once() {
    let (mut host, folder) = host();
    host.request(
        "1",
        "sendMessage",
        turn(&folder, "s", "default", r#"{{say a}}{{permit {"rawInput":{"id":"theirs"}}}}"#),
    );
    let mut events = host.until("1", "permissionRequest");
    let asked = events.last().unwrap().clone();
    let id = asked["permissionId"].as_str().unwrap();
    assert!(id.starts_with("acp-"), "{asked}");
    assert_eq!(asked["suggestions"][0]["optionId"], "allow-always");
    let updated = json!([asked["suggestions"][0]]);
    host.request(
        "2",
        "permissionResponse",
        json!({ "permissionId": id, "behavior": "allow", "updatedPermissions": updated }),
    );
    events.extend(host.until("1", "end"));
    assert_eq!(last_said(&events)["outcome"]["optionId"], "allow-always");
    host.request("3", "permissionResponse", json!({ "permissionId": id, "behavior": "allow" }));
    let late = host.until("3", "error");
    assert_eq!(late.last().unwrap()["code"], "unknown_waiter");
    events.extend(late);
    assert!(
        events
            .iter()
            .filter(|event| event["type"].as_str().unwrap().starts_with("acp/"))
            .all(|event| event["id"] == "1")
    );
    assert_one_end(&events);
    let (exit, _) = host.finish();
    assert!(matches!(exit, Exit::InGoodOrder), "{exit:?}");
}

fn acp_over_the_wire_everything_beside_turns_is_answered() {
    let (mut host, folder) = host();
    host.request("m", "listModels", json!({ "provider": "acp:fake" }));
    let models = host.until("m", "modelsListed").pop().unwrap();
    assert_eq!(models["models"][1], json!({ "id": "large", "label": "Large", "cliModel": "large" }));
    host.request("c", "listSlashCommands", json!({ "provider": "acp:fake", "cwd": folder.path() }));
    let commands = host.until("c", "slashCommandsListed").pop().unwrap();
    assert_eq!(commands["commands"][0]["name"], "review");
    host.request(
        "t",
        "generateTitle",
        json!({ "provider": "acp:fake", "userMessage": "{{say title: A good one}}" }),
    );
    assert_eq!(host.until("t", "titleGenerated").pop().unwrap()["title"], "A good one");
    let usage = r#"{{update {"sessionUpdate":"usage_update","used":1,"size":4}}}"#;
    host.request("1", "sendMessage", turn(&folder, "s", "bypassPermissions", usage));
    let events = host.until("1", "end");
    assert_eq!(of(&events, "contextUsageUpdated").len(), 1);
    host.request(
        "u",
        "getContextUsage",
        json!({ "provider": "acp:fake", "sessionId": "s", "model": "small" }),
    );
    let told = host.until("u", "contextUsageResult").pop().unwrap();
    assert_eq!(serde_json::from_str::<Value>(told["meta"].as_str().unwrap()).unwrap()["percentage"], 25.0);
    host.request("x", "listModels", json!({ "provider": "acp:nobody-knows" }));
    assert!(host.until("x", "error").pop().unwrap()["message"].as_str().unwrap().contains("nobody-knows"));
    host.finish();
}

fn acp_over_the_wire_a_lost_session_is_told_and_a_steer_is_refused() {
    let (mut host, folder) = host();
    let mut send = turn(&folder, "s", "bypassPermissions", "{{say anew}}{{hang}}");
    send["resume"] = json!("long gone");
    host.request("1", "sendMessage", send);
    let events = host.until("1", "acp/assistant");
    let lost = of(&events, "contextReset")[0];
    assert_eq!((&lost["resume"], &lost["sessionId"]), (&json!("long gone"), &json!("s")));
    host.request("2", "steerSession", json!({ "sessionId": "s", "provider": "acp:fake", "prompt": "left" }));
    let steered = host.until("2", "steered").pop().unwrap();
    assert_eq!((&steered["accepted"], &steered["reason"]), (&json!(false), &json!("unsupported")));
    host.finish();
}

fn acp_over_the_wire_stop_comes_first_and_nothing_after_it() {
    let (mut host, folder) = host();
    let mark = folder.path().join("survived");
    let mark = mark.to_str().unwrap();
    host.request(
        "1",
        "sendMessage",
        turn(&folder, "s", "bypassPermissions", &format!("{{{{leak sleep 25; touch {mark}}}}}")),
    );
    let mut events = host.until("1", "acp/tool_call_start");
    host.request("2", "stopSession", json!({ "sessionId": "s", "provider": "acp:fake" }));
    events.extend(host.until("2", "stopped"));
    let position = |kind: &str| events.iter().position(|event| event["type"] == kind);
    assert!(position("aborted") < position("stopped"));
    assert_eq!(events[position("aborted").unwrap()]["reason"], "user_requested");
    // A new turn waits until the old one has been cleared up, and goes on where it was.
    host.request("3", "sendMessage", turn(&folder, "s", "bypassPermissions", "{{history}}"));
    events.extend(host.until("3", "end"));
    assert_eq!(processes(mark), Vec::<u32>::new());
    assert!(said(&events).contains("{{leak"), "{}", said(&events));
    assert_eq!(of(&events, "contextReset"), Vec::<&Value>::new());
    assert_one_end(&events);
    host.finish();
}

fn acp_over_the_wire_no_tool_survives_the_end_of_input() {
    let (mut host, folder) = host();
    let mark = folder.path().join("survived");
    let mark = mark.to_str().unwrap();
    host.request(
        "1",
        "sendMessage",
        turn(&folder, "s", "bypassPermissions", &format!("{{{{leak sleep 25; touch {mark}}}}}")),
    );
    host.until("1", "acp/tool_call_start");
    let began = Instant::now();
    let (exit, rest) = host.finish();
    assert!(matches!(exit, Exit::InGoodOrder), "{exit:?}");
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    assert_eq!(rest.last().unwrap()["reason"], "stdin_closed");
    assert_eq!(processes(mark), Vec::<u32>::new());
}

fn acp_over_the_wire_no_tool_survives_the_death_of_the_sidecar() {
    let folder = tempfile::tempdir().unwrap();
    let mark = folder.path().join("survived");
    let mark = mark.to_str().unwrap();
    #[expect(clippy::disallowed_methods, reason = "a test is the host, and starts its sidecar as one does")]
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["__sidecar", "--acp"]).arg(format!("fake={}", fake(folder.path(), &[]).join(" ")));
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let params = turn(&folder, "s", "bypassPermissions", &format!("{{{{leak sleep 25; touch {mark}}}}}"));
    let request = json!({ "id": "1", "method": "sendMessage", "params": params });
    writeln!(child.stdin.as_mut().unwrap(), "{request}").unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let started = lines.map_while(Result::ok).find(|line| line.contains("acp/tool_call_start"));
    assert!(started.is_some());
    child.kill().unwrap();
    child.wait().unwrap();
    let end = Instant::now() + Duration::from_secs(5);
    while !processes(mark).is_empty() {
        assert!(Instant::now() < end, "the tool lives on");
        std::thread::yield_now();
    }
}
