//! The daemon's life: up, found, told to leave, killed, and up again with everything that was accepted.

use std::time::Duration;

use serde_json::{Value, json};

use super::{Daemon, Home, asking, verify};

#[test]
fn a_fresh_daemon_shows_a_finished_example_and_one_that_waits() {
    let daemon = Daemon::start_in(Home::new(), &[]);
    let report = daemon.until("example-report", "completed");
    let result: Value = serde_json::from_str(report["result"].as_str().unwrap()).unwrap();
    assert_eq!(result, json!({"count": 3, "total": 420, "largest": "Grace"}));
    verify(&daemon.receipts().join(report["receipt"]["file"].as_str().unwrap()));
    let refund = daemon.until("example-refund", "waiting");
    assert_eq!(refund["approvals"][0]["tool"], "refund");
    // A daemon that is not new makes no example.
    let mut daemon = daemon;
    daemon.stop();
    daemon.door.clone();
    daemon.again();
    assert_eq!(daemon.door.get("/v1/runs").expect(200).json()["runs"].as_array().unwrap().len(), 2);
}

#[test]
fn a_script_that_waits_survives_kill_and_restart_and_goes_on_from_that_very_call() {
    let mut daemon = Daemon::start("");
    let run = daemon.submit(&json!({
        "script": "print('before'); const paid = refund(1042, 129.5); print('after ' + paid.reference); paid;",
        "tools": {"refund": "person", "print": {"tool": "print"}},
    }));
    daemon.until(&run, "waiting");
    daemon.kill();
    daemon.home.tag.must_be_gone(Duration::from_secs(2), "a daemon that was killed");
    daemon.again();
    let waiting = daemon.until(&run, "waiting");
    assert_eq!(waiting["approvals"].as_array().unwrap().len(), 1, "it is asked once: {waiting:#}");
    daemon.stop();
    daemon.again();
    let answer = json!({"choice": "answer", "value": {"reference": "R-7"}});
    daemon.door.post(&format!("/v1/runs/{run}/approvals/a1"), &answer).expect(200);
    let state = daemon.until_over(&run);
    assert_eq!(state["phase"], "completed", "{state:#}");
    assert_eq!(state["result"], r#"{"reference":"R-7"}"#);
    let said: Vec<Value> = daemon.log(&run).into_iter().filter(|record| record["kind"] == "event").collect();
    let words = |record: &Value| record["data"]["event"]["text"].as_str().map(str::to_owned);
    assert_eq!(said.iter().filter_map(words).collect::<Vec<_>>(), ["before", "after R-7"], "each effect once");
    let numbers: Vec<u64> = said.iter().map(|record| record["data"]["number"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>());
    verify(&daemon.receipts().join(state["receipt"]["file"].as_str().unwrap()));
}

#[test]
fn a_second_daemon_is_told_where_the_first_one_is() {
    let daemon = Daemon::start("");
    let second = daemon.home.said(&["up", "--no-open"]);
    assert_ne!(second.code(), 0);
    assert!(second.stderr.contains(&format!("process {}", daemon.pid())), "{}", second.stderr);
    assert!(second.stderr.contains(&daemon.door.address), "{}", second.stderr);
    assert!(second.stderr.contains("/login?code="), "{}", second.stderr);
    let link = daemon.home.said(&["up", "--link"]);
    assert!(link.stdout.contains("/login?code="), "{}", link.stdout);
}

#[test]
fn outrigger_down_ends_the_daemon_and_says_when_there_is_none() {
    let mut daemon = Daemon::start("");
    let down = daemon.home.said(&["down"]);
    assert_eq!(down.code(), 0, "{}", down.stderr);
    let ended = daemon.running.take().unwrap().finish();
    assert_eq!(ended.code(), 0, "{}", ended.stderr);
    let none = daemon.home.said(&["down"]);
    assert_ne!(none.code(), 0);
    assert!(none.stderr.contains("no daemon is up"), "{}", none.stderr);
    let runs = daemon.home.said(&["runs"]);
    assert!(runs.stderr.contains("`outrigger up` starts one"), "{}", runs.stderr);
}

#[test]
fn a_daemon_that_is_told_to_leave_lets_nothing_be_lost_and_leaves_nothing_running() {
    let mut daemon = Daemon::start("");
    let waits = daemon.submit(&asking());
    daemon.until(&waits, "waiting");
    let ended = daemon.stop();
    assert_eq!(ended.code(), 0, "{}", ended.stderr);
    daemon.home.tag.must_be_gone(Duration::from_secs(1), "a daemon that left");
    daemon.again();
    assert_eq!(daemon.show(&waits)["phase"], "waiting");
}

#[test]
fn what_is_wrong_is_said_before_anything_is_started() {
    let home = Home::new();
    let config = home.folder.path().join("outrigger.toml");
    for (text, expected) in [
        ("[server]\nprot = 1\n", "did you mean `port`?"),
        ("[server]\naddress = \"0.0.0.0\"\n", "behind_tls_proxy"),
        ("[tools.x]\n", "command"),
    ] {
        std::fs::write(&config, text).unwrap();
        let up = home.said(&["up", "--no-open"]);
        assert_ne!(up.code(), 0, "{text}");
        assert!(up.stderr.contains(expected), "{text}: {}", up.stderr);
        assert!(!home.state().join("runs.sqlite").exists(), "{text}: something was started");
    }
    std::fs::remove_file(&config).unwrap();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let up = home.said(&["up", "--no-open", "--port", &port]);
    assert_ne!(up.code(), 0);
    assert!(up.stderr.contains(&format!("127.0.0.1:{port} cannot be listened on")), "{}", up.stderr);
    let wrong = home.said(&["up", "--prot", "1"]);
    assert!(wrong.stderr.contains("--port"), "{}", wrong.stderr);
}

#[test]
fn the_command_line_does_what_the_api_does() {
    let daemon = Daemon::start("");
    let script = daemon.home.folder.path().join("s.js");
    std::fs::write(&script, "const a = ask('name?'); `hello ${a}`;").unwrap();
    let submitted = daemon.home.said(&["runs", "submit", "--script", "s.js", "--tool", "ask=person"]);
    assert_eq!(submitted.code(), 0, "{}", submitted.stderr);
    let run = submitted.stdout.trim().to_owned();
    daemon.until(&run, "waiting");
    let waiting = daemon.home.said(&["runs", "waiting"]);
    assert!(waiting.stdout.contains("ask") && waiting.stdout.contains(&run), "{}", waiting.stdout);
    let beginning = &run[..13];
    let answered = daemon.home.said(&["runs", "answer", beginning, "--value", "\"Ada\""]);
    assert_eq!(answered.code(), 0, "{}", answered.stderr);
    let watched = daemon.home.said(&["runs", "watch", "last"]);
    assert_eq!(watched.code(), 0, "{}", watched.stderr);
    assert!(watched.stdout.contains("\"hello Ada\""), "{}", watched.stdout);
    let shown = daemon.home.said(&["--json", "runs", "show", &run]);
    let state: Value = serde_json::from_str(&shown.stdout).unwrap();
    assert_eq!(state["phase"], "completed");
    let checked = daemon.home.said(&["runs", "receipt", &run, "--check"]);
    assert_eq!(checked.code(), 0, "{}{}", checked.stdout, checked.stderr);
    let none = daemon.home.said(&["runs", "show", "nothing"]);
    assert_ne!(none.code(), 0);
    assert!(none.stderr.contains("there is no run `nothing`"), "{}", none.stderr);
    let wrong = daemon.home.said(&["runs", "submit", "--script", "no.js"]);
    assert!(wrong.stderr.contains("no.js cannot be opened"), "{}", wrong.stderr);
}
