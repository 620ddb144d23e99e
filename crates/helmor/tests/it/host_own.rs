//! The bridge with our own sidecar and a script instead of an agent: the two ends of this crate, together.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use libtest_mimic::Trial;
use outrigger_helmor::host::{
    Bridge, BridgeError, Nobody, Steered, StoppedBy, StreamEnd, StreamEvent, Terms,
};
use outrigger_helmor::protocol::{ListModels, ProviderName, SendMessage, Steer, SteerSession};
use outrigger_helmor::provider::Verdict;
use outrigger_supervise::launch::Status;
use serde_json::{Value, json};

use crate::host::kill;
use crate::host_kit::{is_there, millis, of, own_child, passed, quick, read, supervisor, trial};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("a_turn_of_a_script_comes_through_whole_and_can_be_gone_on_with", whole),
        trial("a_permission_a_steer_and_a_stop_go_through_both_ends", conversation),
        trial("eight_sessions_of_our_sidecar_at_once_lose_nothing", parallel),
        trial("our_sidecar_beats_while_its_agent_is_silent", beats),
        trial("a_killed_sidecar_of_ours_takes_its_agents_along_and_the_session_goes_on", killed),
        trial("our_sidecar_leaves_when_asked_and_its_streams_are_told", leaves),
        trial("a_tape_drives_the_host_without_an_agent", replay),
    ]
}

fn script(folder: &Path, turns: &Value) -> String {
    let path = folder.join("script.json");
    std::fs::write(&path, json!({ "turns": turns }).to_string()).unwrap();
    path.to_str().unwrap().to_owned()
}

fn bridge(flags: &[&str], terms: Terms) -> Bridge {
    let spec = own_child("__sidecar").args(flags).args(["--log-level", "error"]).inherit_env();
    Bridge::new(supervisor(), spec, terms, Arc::new(Nobody))
}

fn turn(session: &str, prompt: &str) -> SendMessage {
    SendMessage { prompt: prompt.to_owned(), ..of(ProviderName::Scripted, session, &Value::Null) }
}

const INIT: &str = "script-session";

async fn whole() {
    let folder = tempfile::tempdir().unwrap();
    let init = json!({"type":"system","subtype":"init","session_id":INIT});
    let turns = json!([{"when":"hello","steps":[{"pass":init}, {"pass":{"type":"x","n":1.50,"id":"theirs"}}]},
        {"when":"fail","steps":[{"fail":"no luck"}]}]);
    let bridge = bridge(&["--script", &script(folder.path(), &turns)], quick());
    let mut stream = bridge.send(turn("s", "hello")).await.unwrap();
    passed(&mut stream).await;
    let said = passed(&mut stream).await;
    assert_eq!(said.value(), json!({"type":"x","n":1.50,"id":stream.id()}));
    let line = said.line;
    assert!(line.ends_with(&format!(r#""id":"{}"}}"#, stream.id())), "{line}");
    assert!(stream.end().await.unwrap().is_good());
    assert_eq!(bridge.resume_id("s"), Some((ProviderName::Scripted, INIT.to_owned())));
    match bridge.send(turn("s", "fail")).await.unwrap().end().await {
        Some(StreamEnd::Failed(refusal)) => assert!(refusal.message.contains("no luck"), "{refusal}"),
        other => panic!("{other:?}"),
    }
    let unknown = ListModels { provider: ProviderName::Acp("check-nobody".into()), api_key: None };
    assert!(matches!(bridge.models(&unknown).await, Err(BridgeError::Refused { .. })));
    bridge.shutdown().await;
}

async fn conversation() {
    let folder = tempfile::tempdir().unwrap();
    let ask = json!({"permission":{"tool":"Bash","input":{"command":"ls"}}});
    let turns = json!([{"steps":[ask, {"say":"go on"}, {"steer":true}, {"say":"steered"}, {"hang":true}]}]);
    let bridge = bridge(&["--script", &script(folder.path(), &turns)], quick());
    let mut stream = bridge.send(turn("s", "hello")).await.unwrap();
    let Some(StreamEvent::Permission(ask)) = stream.next().await else { panic!("a question") };
    assert_eq!((ask.tool_name.as_str(), &ask.tool_input["command"]), ("Bash", &json!("ls")));
    bridge.permission(&ask.id, Verdict::Allow { updated: Vec::new() }).await.unwrap();
    let late = bridge.permission(&ask.id, Verdict::Deny { message: None }).await.unwrap_err();
    assert_eq!(late.code(), "unknown_waiter");
    let next = loop {
        let next = passed(&mut stream).await;
        if next.line.contains("go on") {
            break next;
        }
    };
    assert_eq!(next.kind, "assistant");
    let steer = Steer { prompt: "faster".into(), files: Vec::new(), images: Vec::new() };
    let steer = SteerSession { session_id: "s".into(), provider: ProviderName::Scripted, steer };
    assert_eq!(bridge.steer(&steer).await.unwrap(), Steered::Accepted);
    match stream.next().await {
        Some(StreamEvent::Steered(heard)) => assert_eq!(heard.prompt, "faster"),
        other => panic!("{other:?}"),
    }
    loop {
        if passed(&mut stream).await.line.contains("steered") {
            break;
        }
    }
    bridge.stop("s", &ProviderName::Scripted).await.unwrap();
    assert!(matches!(stream.next().await, Some(StreamEvent::End(StreamEnd::Aborted { .. }))));
    bridge.shutdown().await;
}

async fn parallel() {
    let folder = tempfile::tempdir().unwrap();
    let event = json!({"pass":{"type":"chunk","pad":"x".repeat(1000)}});
    let turns = json!([{"steps":[{"repeat":2000,"steps":[event]}]}]);
    let bridge = bridge(&["--script", &script(folder.path(), &turns)], quick());
    let mut streams = Vec::new();
    for number in 0..8 {
        streams.push(bridge.send(turn(&format!("s{number}"), "hello")).await.unwrap());
    }
    // The first is read last: it waits whole while the others are read.
    for stream in streams.into_iter().rev() {
        let (said, end) = read(stream).await;
        assert!(end.is_good() && said.len() == 2000, "{} events, {end}", said.len());
    }
    bridge.shutdown().await;
}

async fn beats() {
    let folder = tempfile::tempdir().unwrap();
    let script = script(folder.path(), &json!([{"steps":[{"say":"hello"}, {"hang":true}]}]));
    let bridge =
        bridge(&["--script", &script, "--heartbeat", "50"], Terms { silence: millis(1000), ..quick() });
    let mut stream = bridge.send(turn("s", "hello")).await.unwrap();
    passed(&mut stream).await;
    let next = tokio::time::timeout(millis(2500), stream.next()).await;
    assert!(next.is_err(), "{next:?}");
    bridge.stop("s", &ProviderName::Scripted).await.unwrap();
    bridge.shutdown().await;
}

async fn killed() {
    let folder = tempfile::tempdir().unwrap();
    // Inside its box a process has another number, so it is known by a word that nobody else has.
    let mark = format!("{}-agent", folder.path().file_name().unwrap().to_str().unwrap());
    let init = json!({"type":"system","subtype":"init","session_id":INIT});
    let turns = json!([{"when":"work","steps":[{"pass":init}, {"run":["sh", "-c", "sleep 100; true", mark]}]},
        {"when":"more","steps":[{"say":"ok"}]}]);
    let bridge = bridge(&["--script", &script(folder.path(), &turns)], quick());
    let mut stream = bridge.send(turn("s", "work")).await.unwrap();
    passed(&mut stream).await;
    while !is_there(&mark) {
        tokio::time::sleep(millis(5)).await;
    }
    kill(bridge.pid().unwrap());
    let StreamEnd::Lost(lost) = stream.end().await.unwrap() else { panic!("it was killed") };
    assert_eq!(lost.report.unwrap().status, Some(Status::Signal(9)));
    let gone = async {
        while is_there(&mark) {
            tokio::time::sleep(millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(2), gone).await.expect("nothing is left running");
    let (said, end) = read(bridge.send(turn("s", "more")).await.unwrap()).await;
    assert!(end.is_good() && !said.is_empty());
    assert_eq!(bridge.resume_id("s"), Some((ProviderName::Scripted, INIT.to_owned())));
    bridge.shutdown().await;
}

async fn leaves() {
    let folder = tempfile::tempdir().unwrap();
    let script = script(folder.path(), &json!([{"steps":[{"say":"hello"}, {"hang":true}]}]));
    let bridge = bridge(&["--script", &script], quick());
    let mut stream = bridge.send(turn("s", "hello")).await.unwrap();
    passed(&mut stream).await;
    let stopped = bridge.shutdown().await;
    assert_eq!(stopped.by, StoppedBy::Request);
    assert_eq!(stopped.report.unwrap().status, Some(Status::Code(0)));
    assert!(matches!(stream.end().await, Some(StreamEnd::Aborted { reason }) if reason == "shutdown"));
}

async fn replay() {
    let folder = tempfile::tempdir().unwrap();
    let tape = folder.path().join("tape.jsonl");
    let init = json!({"type":"system","subtype":"init","session_id":INIT});
    let turns = json!([{"steps":[{"pass":init}, {"say":"one"}, {"say":"two"}]}]);
    let script = script(folder.path(), &turns);
    let without_id = |said: Vec<Value>| -> Vec<Value> {
        let bare = |mut said: Value| {
            said.as_object_mut().unwrap().remove("id");
            said
        };
        said.into_iter().map(bare).collect()
    };
    let first = bridge(&["--script", &script, "--record", tape.to_str().unwrap()], quick());
    let (recorded, end) = read(first.send(turn("s", "hello")).await.unwrap()).await;
    assert!(end.is_good() && recorded.len() == 3);
    first.shutdown().await;
    let second = bridge(&["--replay", tape.to_str().unwrap()], quick());
    let (played, end) = read(second.send(turn("s", "anything")).await.unwrap()).await;
    assert!(end.is_good());
    assert_eq!(without_id(played), without_id(recorded));
    assert_eq!(second.resume_id("s"), Some((ProviderName::Scripted, INIT.to_owned())));
    second.shutdown().await;
}
