//! The installed `helmor-sidecar` and `outrigger sidecar helmor`: the same child, as hosts and people start it.

use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::process::{Finished, Running, outrigger};

/// A script with a turn for each prompt that `outrigger check` uses.
const SCRIPT: &str = r#"{"turns": [
    {"when": "check-short", "steps": [{"say": "hello"}]},
    {"when": "check-long", "steps": [{"say": "hello"}, {"hang": true}]},
    {"when": "edit", "steps": [{"permission": {"tool": "Edit", "input": {"file_path": "a.txt"}}}, {"say": "edited"}]},
    {"steps": [{"say": "what?"}]}
]}"#;

fn sidecar() -> Command {
    Command::new(env!("CARGO_BIN_EXE_helmor-sidecar"))
}

fn script() -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("script.json");
    std::fs::write(&path, SCRIPT).unwrap();
    let path = path.to_str().unwrap().to_owned();
    (folder, path)
}

/// What a sidecar says to these lines and the end of its input.
fn told(command: &mut Command, lines: &[Value]) -> Finished {
    use std::io::Write;
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    for line in lines {
        writeln!(input, "{line}").unwrap();
    }
    let output = std::io::BufReader::new(child.stdout.take().unwrap());
    let mut stdout = String::new();
    // The input ends when the last request has been answered.
    let last = lines.last().map(|line| line["id"].clone()).unwrap_or_default();
    for line in std::io::BufRead::lines(output) {
        let line = line.unwrap();
        let event: Value = serde_json::from_str(&line).unwrap();
        stdout.push_str(&line);
        stdout.push('\n');
        if event["id"] == last
            && matches!(event["type"].as_str(), Some("end" | "pong" | "error" | "modelsListed"))
        {
            break;
        }
    }
    drop(input);
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    Finished { stdout, stderr, status: output.status, peak_rss: 0 }
}

fn send(id: &str, session: &str, prompt: &str) -> Value {
    json!({"id": id, "method": "sendMessage", "params": {"sessionId": session, "prompt": prompt, "provider": "scripted"}})
}

#[test]
fn both_names_of_the_bridge_are_the_same_child() {
    let (_folder, script) = script();
    let mut answers = Vec::new();
    for mut command in [sidecar(), outrigger(["sidecar", "helmor"])] {
        let finished = told(command.args(["--script", &script]), &[send("1", "s", "check-short")]);
        assert_eq!(finished.code(), 0, "{}", finished.stderr);
        let events = finished.events();
        assert_eq!(events[0], json!({"type": "ready", "version": 1}));
        assert_eq!(events.last().unwrap(), &json!({"id": "1", "type": "end"}));
        answers.push(events.len());
    }
    assert_eq!(answers[0], answers[1]);
}

#[test]
fn a_wrong_flag_and_a_missing_file_are_said_before_anything_is_served() {
    for (args, expected) in [
        (vec!["--cluade", "x"], "--claude"),
        (vec!["--acp", "mine"], "NAME=COMMAND"),
        (vec!["--heartbeat", "15"], "no unit"),
        (vec!["--record", "a", "--replay", "b"], "cannot be used with"),
    ] {
        let finished = told(sidecar().args(&args), &[]);
        assert_eq!((finished.code(), finished.stdout.as_str()), (2, ""), "{args:?}: {}", finished.stderr);
        assert!(finished.stderr.contains(expected), "{args:?}: {}", finished.stderr);
    }
    let missing = told(sidecar().args(["--replay", "/nowhere/talk.jsonl"]), &[]);
    assert_ne!(missing.code(), 0);
    assert!(missing.stderr.contains("/nowhere/talk.jsonl"), "{}", missing.stderr);
    let script = told(sidecar().args(["--script", "/nowhere/script.json"]), &[send("1", "s", "x")]);
    assert!(script.stdout.contains("/nowhere/script.json"), "{}", script.stdout);
}

#[test]
fn what_was_recorded_is_played_back_without_the_agent() {
    let (folder, script) = script();
    let tape = folder.path().join("talk.jsonl");
    let recorded =
        told(sidecar().args(["--script", &script, "--record"]).arg(&tape), &[send("a", "s", "check-short")]);
    assert_eq!(recorded.code(), 0, "{}", recorded.stderr);
    let replayed = told(sidecar().arg("--replay").arg(&tape), &[send("z", "s", "check-short")]);
    assert_eq!(replayed.code(), 0, "{}", replayed.stderr);
    let mut expected = recorded.events();
    for event in &mut expected {
        if event["id"] == "a" {
            event["id"] = "z".into();
        }
    }
    assert_eq!(replayed.events(), expected);
}

#[test]
fn the_bridge_keeps_its_own_contract() {
    let (_folder, script) = script();
    let bridge = env!("CARGO_BIN_EXE_helmor-sidecar");
    let args = ["check", "helmor", "--json", "--heartbeat-within", "3s", "--", bridge, "--script", &script];
    let mut command = outrigger(args.into_iter().chain(["--heartbeat", "1s"]));
    let finished = Running::start(&mut command).finish();
    assert_eq!(finished.code(), 0, "{}{}", finished.stdout, finished.stderr);
    let summary = finished.event("summary");
    assert_eq!(
        (&summary["failed"], &summary["warned"], &summary["skipped"]),
        (&json!(0), &json!(0), &json!(0)),
        "{}",
        finished.stdout
    );
    assert!(summary["passed"].as_u64().unwrap() > 20, "{summary}");
}

#[test]
fn a_program_that_is_no_bridge_fails_the_check_with_what_it_said() {
    let finished =
        Running::start(&mut outrigger(["check", "helmor", "--ready-within", "1s", "--", "echo", "hi"]))
            .finish();
    assert_eq!(finished.code(), 1, "{}", finished.stdout);
    assert!(finished.stdout.contains("FAIL"), "{}", finished.stdout);
}

#[test]
fn an_agent_behind_the_bridge_keeps_the_contract_of_backends() {
    let (_folder, script) = script();
    let outrigger_path = env!("CARGO_BIN_EXE_outrigger");
    let agent = [outrigger_path, "sidecar", "abp-agent", "scripted", "--", &script];
    let mut command = outrigger(["check", "abp", "--json", "--"].into_iter().chain(agent));
    let finished = Running::start(&mut command).finish();
    assert_eq!(finished.code(), 0, "{}{}", finished.stdout, finished.stderr);
    let summary = finished.event("summary");
    assert_eq!((&summary["failed"], &summary["warned"]), (&json!(0), &json!(0)), "{}", finished.stdout);
}

#[test]
fn any_agent_that_speaks_acp_takes_work_orders() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.txt"), "before\n").unwrap();
    std::fs::create_dir(folder.path().join("sessions")).unwrap();
    let agent = format!("python3 {}/../../fakes/acp.py --sessions sessions", env!("CARGO_MANIFEST_DIR"));
    let backend = format!("acp:{agent}");
    let run = |task: &str, more: &[&str]| {
        let words = ["run", task, "--backend", &backend, "--in-place"];
        let mut command = outrigger(words.into_iter().chain(more.iter().copied()));
        command.current_dir(folder.path()).env("XDG_DATA_HOME", folder.path().join("data"));
        Running::start(command.stdin(Stdio::null())).finish()
    };
    let allowed = run(r#"{{permit {"title":"x"}}}"#, &["--approve", "all"]);
    assert_eq!(allowed.code(), 0, "{}", allowed.stderr);
    assert!(allowed.stdout.contains("allow-once"), "{}", allowed.stdout);
    let denied = run(r#"{{permit {"title":"x"}}}"#, &["--approve", "none"]);
    assert_eq!(denied.code(), 0, "{}", denied.stderr);
    assert!(denied.stdout.contains("reject-once"), "{}", denied.stdout);
    let (_, session) = allowed.stderr.split_once("--resume ").expect("it can be gone on with");
    let again = run("{{history}}", &["--resume", session.lines().next().unwrap().trim()]);
    assert_eq!(again.code(), 0, "{}", again.stderr);
    assert!(again.stdout.contains("permit"), "it knows what was said: {}", again.stdout);
    assert!(allowed.stderr.contains(&format!("--backend '{backend}'")), "{}", allowed.stderr);
}
