//! A thousand scripts that wait, fifty agents that stream, a hundred readers that do not read: the daemon stays quick and small, and
//! loses nothing. How quick it is when it is built for speed, `cargo xtask bench daemon` says.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::door::Stream;
use super::{Daemon, Home};
use crate::process::{quiet, wait_until};

const WAITING: usize = 1000;
const STREAMING: usize = 50;
const SLEEPING: usize = 100;
/// Words of an agent that streams, and of the one that floods.
const WORDS: usize = 100;
const FLOOD: usize = 5000;

/// How long something may take that many do at once.
const WITHIN: Duration = Duration::from_secs(60);
/// What 99 of 100 requests may take here: this program was not built for speed, and other tests have the processors too.
const SLOWEST: Duration = Duration::from_millis(250);
/// What the daemon may have of the memory, with all of that.
const MEMORY: u64 = 200_000_000;
/// What it may grow by when readers that sleep come and go, because the allocator keeps some of what is free.
const BOUTS_MORE: u64 = 30_000_000;

/// A number of the daemon.
fn metric(daemon: &Daemon, name: &str) -> u64 {
    let text = daemon.door.get("/metrics").expect(200).text();
    let line = text.lines().find_map(|line| line.strip_prefix(&format!("{name} ")));
    line.unwrap_or_else(|| panic!("no {name} in {text}")).parse::<f64>().unwrap() as u64
}

fn in_phase(daemon: &Daemon, phase: &str) -> usize {
    metric(daemon, &format!("outrigger_runs{{phase=\"{phase}\"}}")) as usize
}

/// A daemon with an agent that streams slowly and one that floods.
fn loaded() -> Daemon {
    let home = Home::new();
    let config = "[server]\nrequests_per_second = 100000\n[backends.stream]\ntype = \"mock\"\nscript = \"stream.json\"\nat_once = 64\n[backends.flood]\ntype = \"mock\"\nscript = \"flood.json\"\n";
    std::fs::write(home.folder.path().join("outrigger.toml"), config).unwrap();
    let words: Vec<Value> = (0..WORDS)
        .flat_map(|_| [json!({"do": "delta", "text": "word "}), json!({"do": "wait", "ms": 20})])
        .collect();
    std::fs::write(home.folder.path().join("stream.json"), json!({ "steps": words }).to_string()).unwrap();
    let flood =
        json!({"steps": [{"do": "delta", "text": "a piece", "times": FLOOD}, {"do": "wait", "ms": 200}]});
    std::fs::write(home.folder.path().join("flood.json"), flood.to_string()).unwrap();
    Daemon::start_in(home, &["--no-example"])
}

/// A run that says much, and those who listen to it and do not read.
fn flooded(daemon: &mut Daemon) -> (String, Vec<Stream>) {
    let run = daemon.submit(&json!({"task": "flood", "backend": "flood"}));
    let path = format!("/v1/runs/{run}/events");
    let sleeping = (0..SLEEPING).map(|_| daemon.door.stream(&path, None).unwrap()).collect();
    assert_eq!(daemon.until_over(&run)["phase"], "completed");
    (run, sleeping)
}

#[test]
fn readers_that_sleep_and_leave_take_no_memory_along() {
    let _quiet = quiet();
    let mut daemon = loaded();
    let mut memory = Vec::new();
    for _ in 0..12 {
        flooded(&mut daemon);
        memory.push(metric(&daemon, "process_resident_memory_bytes"));
    }
    assert!(memory[11] < memory[1] + BOUTS_MORE, "{memory:?}");
}

#[test]
fn many_that_wait_and_many_that_stream_and_readers_that_sleep_slow_nobody() {
    let _quiet = quiet();
    let mut daemon = loaded();

    // A script that waits is a row in a file.
    let script = json!({"script": "const answer = ask('may I?'); ({ answer });", "tools": {"ask": "person"}});
    let waiting: Vec<String> = (0..WAITING).map(|_| daemon.submit(&script)).collect();
    wait_until(WITHIN, || in_phase(&daemon, "waiting") == WAITING).expect("all of them wait");
    let sidecars = daemon.door.get("/v1/sidecars").expect(200).json();
    assert!(
        sidecars["sidecars"].as_array().unwrap().len() <= 4,
        "those that wait are no processes: {sidecars:#}"
    );

    // Fifty agents talk, each to somebody who listens.
    let streaming: Vec<String> =
        (0..STREAMING).map(|_| daemon.submit(&json!({"task": "talk", "backend": "stream"}))).collect();
    let heard: Vec<_> = streaming
        .iter()
        .map(|run| {
            let (door, run) = (daemon.door.clone(), run.clone());
            std::thread::spawn(move || {
                let mut stream = door.stream(&format!("/v1/runs/{run}/events"), None).unwrap();
                let mut ids = Vec::new();
                while let Some(sent) = stream.next() {
                    ids.extend(sent.id);
                }
                ids
            })
        })
        .collect();
    let mut took = Vec::new();
    while in_phase(&daemon, "completed") < STREAMING {
        let began = Instant::now();
        daemon.door.get("/v1/runs").expect(200);
        took.push(began.elapsed());
        assert!(took.iter().sum::<Duration>() < WITHIN, "they never end");
    }
    took.sort();
    assert!(took[took.len() * 99 / 100] < SLOWEST, "{:?} of {}", took[took.len() * 99 / 100], took.len());
    for (run, ids) in streaming.iter().zip(heard) {
        let (ids, log) = (ids.join().unwrap(), daemon.log(run));
        assert_eq!(ids, (1..=log.len() as u64).collect::<Vec<_>>(), "each event once, in order");
        assert!(log.len() > WORDS, "{}", log.len());
    }

    // A run that says much ends, whoever sleeps over it; who wakes up finds everything.
    let (run, mut sleeping) = flooded(&mut daemon);
    let length = daemon.log(&run).len() as u64;
    let mut last = 0;
    while let Some(sent) = sleeping[0].next() {
        if let Some(id) = sent.id {
            assert_eq!(id, last + 1);
            last = id;
        }
    }
    assert_eq!(last, length);
    let memory = metric(&daemon, "process_resident_memory_bytes");
    assert!(memory < MEMORY, "{memory} bytes");
    drop(sleeping);

    // All that waited is there after a kill, and goes on.
    daemon.kill();
    daemon.again();
    assert_eq!(in_phase(&daemon, "waiting"), WAITING);
    for run in &waiting[..20] {
        daemon
            .door
            .post(&format!("/v1/runs/{run}/approvals/a1"), &json!({"choice": "answer", "value": "yes"}))
            .expect(200);
    }
    for run in &waiting[..20] {
        assert_eq!(daemon.until_over(run)["phase"], "completed");
    }
}
