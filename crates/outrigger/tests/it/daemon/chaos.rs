//! Five hundred runs while the daemon is killed twenty times: each accepted run ends once, with everything in its log once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::door::Door;
use super::{Daemon, Home};
use crate::process::{outrigger, quiet};

const RUNS: usize = 500;
const KILLS: usize = 20;

/// How long everything may take to settle after the last kill.
const SETTLES_WITHIN: Duration = Duration::from_secs(240);

/// What a run is, by its number: scripts that compute, scripts that wait, agents of the daemon, children of abp.
fn request(number: usize) -> Value {
    let id = id(number);
    match number % 5 {
        0 => json!({"id": id, "backend": "mock", "task": format!("say {number}")}),
        1 => json!({"id": id, "backend": "child", "task": format!("work on {number}")}),
        2 => json!({
            "id": id,
            "script": format!("print('{number} a'); const answer = ask({number}); print('{number} b'); answer * 2;"),
            "tools": {"ask": "person", "print": {"tool": "print"}},
        }),
        _ => json!({
            "id": id,
            "script": format!("let sum = 0; for (let i = 0; i < 5; i++) {{ sum += step(i); print('{number} ' + i); }} sum;"),
            "tools": {"step": {"value": number}, "print": {"tool": "print"}},
        }),
    }
}

fn id(number: usize) -> String {
    format!("chaos-{number:03}")
}

/// Asks until the daemon has said yes, over as many of its lives as it takes.
fn submit_all(door: &Door) {
    for number in 0..RUNS {
        let body = request(number).to_string();
        let bearer = format!("Bearer {}", door.token);
        let headers = [
            ("host", door.address.as_str()),
            ("authorization", bearer.as_str()),
            ("content-type", "application/json"),
        ];
        let until = Instant::now() + SETTLES_WITHIN;
        loop {
            match door.raw("POST", "/v1/runs", &headers, body.as_bytes()) {
                Ok(response) if response.status == 201 || response.status == 200 => break,
                Ok(response) => assert!([429, 503].contains(&response.status), "{}", response.text()),
                // It is dead, or was killed before it answered; the same id again is the same run.
                Err(_) => {}
            }
            assert!(Instant::now() < until, "run {number} is never accepted");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// Answers whatever waits, with the argument of the call, until told to stop.
fn answer_all(door: &Door, stop: &AtomicBool) {
    let bearer = format!("Bearer {}", door.token);
    let headers = [
        ("host", door.address.as_str()),
        ("authorization", bearer.as_str()),
        ("content-type", "application/json"),
    ];
    while !stop.load(Ordering::Relaxed) {
        std::thread::sleep(Duration::from_millis(50));
        let Ok(waiting) = door.raw("GET", "/v1/approvals", &headers, b"") else { continue };
        if waiting.status != 200 {
            continue;
        }
        for one in waiting.json()["approvals"].as_array().unwrap() {
            let input: Value = serde_json::from_str(one["approval"]["input"].as_str().unwrap()).unwrap();
            let path = format!(
                "/v1/runs/{}/approvals/{}",
                one["run"].as_str().unwrap(),
                one["approval"]["id"].as_str().unwrap()
            );
            let body = json!({"choice": "answer", "value": input[0]}).to_string();
            // Killed in between: it is asked for again.
            let _ = door.raw("POST", &path, &headers, body.as_bytes());
        }
    }
}

#[test]
fn five_hundred_runs_survive_twenty_kills() {
    let _quiet = quiet();
    let home = Home::new();
    let script = r#"{"steps":[{"do":"started","message":"begun"},{"do":"delta","text":"word ","times":20},{"do":"tool","tool_name":"Read","input":{"file_path":"a"},"output":"b"},{"do":"message","text":"done: {task}"}]}"#;
    std::fs::write(home.folder.path().join("child.json"), script).unwrap();
    let config = format!(
        "[server]\nrequests_per_second = 10000\n\n[backends.mock]\nat_once = 8\n\n[backends.child]\ntype = \"sidecar\"\ncommand = {:?}\nargs = [\"sidecar\", \"abp-mock\", \"--script\", {:?}]\nat_once = 8\n",
        env!("CARGO_BIN_EXE_outrigger"),
        home.folder.path().join("child.json").to_str().unwrap(),
    );
    std::fs::write(home.folder.path().join("outrigger.toml"), config).unwrap();
    let mut daemon = Daemon::start_in(home, &["--no-example"]);
    let door = daemon.door.clone();
    let stop = Arc::new(AtomicBool::new(false));
    let submitting = std::thread::spawn({
        let door = door.clone();
        move || submit_all(&door)
    });
    let answering = std::thread::spawn({
        let (door, stop) = (door.clone(), Arc::clone(&stop));
        move || answer_all(&door, &stop)
    });
    // Not in step with anything that the daemon does.
    for kill in 0..KILLS {
        std::thread::sleep(Duration::from_millis(150 + (kill as u64 * 97) % 400));
        daemon.kill();
        daemon.again();
    }
    submitting.join().unwrap();
    let until = Instant::now() + SETTLES_WITHIN;
    let states = loop {
        let states: Vec<Value> = (0..RUNS).map(|number| daemon.show(&id(number))).collect();
        let open = states.iter().filter(|state| !is_over(state)).count();
        if open == 0 {
            break states;
        }
        assert!(Instant::now() < until, "{open} runs are not over");
        std::thread::sleep(Duration::from_millis(200));
    };
    stop.store(true, Ordering::Relaxed);
    answering.join().unwrap();

    let mut outcomes: BTreeMap<String, usize> = BTreeMap::new();
    for (number, state) in states.iter().enumerate() {
        check(number, state, &daemon.log(&id(number)), &daemon);
        *outcomes.entry(state["phase"].as_str().unwrap().to_owned()).or_default() += 1;
    }
    // Scripts always come to their end; agents may have been interrupted too often.
    assert!(outcomes.get("completed").copied().unwrap_or(0) >= RUNS * 9 / 10, "{outcomes:?}");
    // All of them are the daemon's, also those of attempts that died with it.
    let key = receipt_of(&daemon, &states[0])["signature"]["public_key"].as_str().unwrap().to_owned();
    let folder = daemon.receipts();
    let verify = ["receipts", "verify", folder.to_str().unwrap(), "--key", &key];
    let verified = crate::process::finish(&mut outrigger(verify));
    assert_eq!(verified.code(), 0, "{}{}", verified.stdout, verified.stderr);
    daemon.stop();
    daemon.home.tag.must_be_gone(Duration::from_secs(2), "after the last daemon");
}

fn is_over(state: &Value) -> bool {
    ["completed", "failed", "cancelled"].contains(&state["phase"].as_str().unwrap())
}

/// The receipt of a run that is over.
fn receipt_of(daemon: &Daemon, state: &Value) -> Value {
    let file = state["receipt"]["file"].as_str().unwrap_or_else(|| panic!("there is no receipt: {state:#}"));
    serde_json::from_str(&std::fs::read_to_string(daemon.receipts().join(file)).unwrap()).unwrap()
}

/// Everything that must hold for one run.
fn check(number: usize, state: &Value, log: &[Value], daemon: &Daemon) {
    let run = id(number);
    let seqs: Vec<u64> = log.iter().map(|record| record["seq"].as_u64().unwrap()).collect();
    assert_eq!(seqs, (1..=log.len() as u64).collect::<Vec<_>>(), "{run}: records are missing or doubled");
    let ends: Vec<usize> = (0..log.len()).filter(|at| log[*at]["kind"] == "finished").collect();
    assert_eq!(ends, [log.len() - 1], "{run}: one end, and nothing after it");
    let mut numbers: BTreeMap<u64, u64> = BTreeMap::new();
    for record in log.iter().filter(|record| record["kind"] == "event") {
        let last = numbers.entry(record["data"]["attempt"].as_u64().unwrap()).or_default();
        *last += 1;
        assert_eq!(record["data"]["number"], *last, "{run}: an event is missing or doubled");
    }
    let receipt = receipt_of(daemon, state);
    if state["phase"] == "completed" {
        let told = numbers.get(&state["attempt"].as_u64().unwrap()).copied().unwrap_or(0);
        assert_eq!(
            receipt["trace"].as_array().unwrap().len() as u64,
            told,
            "{run}: the receipt has every event"
        );
    }
    if state["script"] == true {
        assert_eq!(state["phase"], "completed", "{run}: {state:#}");
        let event =
            |record: &Value, kind: &str| record["kind"] == "event" && record["data"]["event"]["type"] == kind;
        let said: Vec<&str> = log
            .iter()
            .filter(|record| event(record, "assistant_message"))
            .map(|record| record["data"]["event"]["text"].as_str().unwrap())
            .collect();
        let expected: Vec<String> = match number % 5 {
            2 => vec![format!("{number} a"), format!("{number} b")],
            _ => (0..5).map(|i| format!("{number} {i}")).collect(),
        };
        assert_eq!(said, expected, "{run}: every effect once and in order");
        for kind in ["tool_call", "tool_result"] {
            let calls: Vec<&str> = log
                .iter()
                .filter(|record| event(record, kind))
                .map(|record| record["data"]["event"]["tool_use_id"].as_str().unwrap())
                .collect();
            let once: BTreeSet<&str> = calls.iter().copied().collect();
            assert_eq!(once.len(), calls.len(), "{run}: a {kind} is doubled");
        }
        let result: f64 = state["result"].as_str().unwrap().parse().unwrap();
        let expected = if number % 5 == 2 { number * 2 } else { number * 5 };
        assert_eq!(result, expected as f64, "{run}");
    }
}
