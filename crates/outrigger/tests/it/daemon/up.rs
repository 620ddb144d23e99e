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
    assert_eq!(
        said.iter().filter_map(words).collect::<Vec<_>>(),
        ["before", "after R-7"],
        "each effect once"
    );
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
    assert_eq!(daemon.show(&run)["approvals"][0]["given"]["by"], "cli");
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

#[test]
fn a_reader_of_a_run_goes_on_after_the_daemon_was_killed_and_sees_every_record_once() {
    let mut daemon = Daemon::start("");
    let run = daemon.submit(&asking());
    daemon.until(&run, "waiting");
    let path = format!("/v1/runs/{run}/events");
    let mut stream = daemon.door.stream(&path, None).unwrap();
    let mut seen = Vec::new();
    while seen.last().is_none_or(|(_, name)| name != "asked") {
        let sent = stream.next().unwrap();
        seen.push((sent.id.unwrap(), sent.name));
    }
    daemon.kill();
    assert!(stream.next().is_none(), "the stream ends with the daemon");
    daemon.again();
    let mut stream = daemon.door.stream(&path, seen.last().map(|(id, _)| *id)).unwrap();
    daemon.door.post(&format!("/v1/runs/{run}/approve"), &json!({})).expect(422);
    let answer = json!({"choice": "answer", "value": 7});
    daemon.door.post(&format!("/v1/runs/{run}/approvals/a1"), &answer).expect(200);
    loop {
        let sent = stream.next().unwrap();
        if sent.name == "end" {
            break;
        }
        let record: Value = serde_json::from_str(&sent.data).unwrap();
        assert_eq!(record["seq"], sent.id.unwrap());
        seen.push((sent.id.unwrap(), sent.name));
    }
    let ids: Vec<u64> = seen.iter().map(|(id, _)| *id).collect();
    assert_eq!(ids, (1..=ids.len() as u64).collect::<Vec<_>>(), "{seen:?}");
    assert_eq!(seen.last().unwrap().1, "finished");
}

#[test]
fn fork_replay_and_forget_work_from_the_log() {
    let daemon = Daemon::start("");
    let script =
        "const a = ask('first'); const b = Math.random(); const c = ask('second'); [a, b, c, Date.now()];";
    let run = daemon.submit(&json!({"script": script, "tools": {"ask": "person"}}));
    let answer = |run: &str, approval: &str, value: Value| {
        daemon.wait_for(run, |state| {
            state["approvals"].as_array().unwrap().iter().any(|one| one["id"] == approval)
        });
        let body = json!({"choice": "answer", "value": value});
        daemon.door.post(&format!("/v1/runs/{run}/approvals/{approval}"), &body).expect(200);
    };
    answer(&run, "a1", json!("one"));
    answer(&run, "a2", json!("two"));
    let first = daemon.until(&run, "completed");
    let replayed = daemon.door.post(&format!("/v1/runs/{run}/replay"), &json!({})).expect(201).json();
    let replayed = daemon.until_over(replayed["id"].as_str().unwrap());
    assert_eq!(
        (&replayed["phase"], &replayed["result"]),
        (&json!("completed"), &first["result"]),
        "{replayed:#}"
    );
    let suspensions: Vec<u64> = daemon
        .log(&run)
        .iter()
        .filter(|record| record["kind"] == "suspended")
        .map(|record| record["seq"].as_u64().unwrap())
        .collect();
    let forked =
        daemon.door.post(&format!("/v1/runs/{run}/fork"), &json!({"at": suspensions[1]})).expect(201).json();
    let forked = forked["id"].as_str().unwrap().to_owned();
    answer(&forked, "a1", json!("other"));
    let state = daemon.until(&forked, "completed");
    let (old, new): (Value, Value) = (
        serde_json::from_str(first["result"].as_str().unwrap()).unwrap(),
        serde_json::from_str(state["result"].as_str().unwrap()).unwrap(),
    );
    assert_eq!(
        (&new[0], &new[1], &new[2]),
        (&old[0], &old[1], &json!("other")),
        "it goes on from the second call"
    );
    daemon.door.delete(&format!("/v1/runs/{run}")).expect(204);
    daemon.door.get(&format!("/v1/runs/{run}")).expect(404);
    assert!(daemon.receipts().join(first["receipt"]["file"].as_str().unwrap()).exists(), "receipts stay");
}

#[test]
fn a_command_of_the_configuration_answers_a_script_and_an_agent_waits_over_a_kill() {
    let home = Home::new();
    let config = "[tools.double]\ncommand = \"python3 -c 'import json,sys; print(json.load(sys.stdin)[0]*2)'\"\nrepeat = \"safe\"\n\n[backends.careful]\ntype = \"mock\"\nscript = \"careful.json\"\n";
    std::fs::write(home.folder.path().join("outrigger.toml"), config).unwrap();
    let script = r#"{"steps":[{"do":"tool","tool_name":"Bash","input":{"command":"ls"},"output":"a"},{"do":"message","text":"done"}]}"#;
    std::fs::write(home.folder.path().join("careful.json"), script).unwrap();
    let mut daemon = Daemon::start_in(home, &["--no-example"]);
    let doubled =
        daemon.submit(&json!({"script": "double(double(3))", "tools": {"double": {"tool": "double"}}}));
    assert_eq!(daemon.until_over(&doubled)["result"], "12");

    let policy = json!({"require_approval_for": ["Bash"]});
    let run = daemon.submit(&json!({"task": "be careful", "backend": "careful", "policy": policy}));
    let asked = daemon.until(&run, "waiting");
    assert_eq!(asked["approvals"][0]["tool"], "Bash");
    daemon.kill();
    daemon.again();
    // The child is gone, and the question is still there.
    let asked = daemon.wait_for(&run, |state| state["underway"] == false);
    assert_eq!(asked["phase"], "waiting", "{asked:#}");
    daemon.door.post(&format!("/v1/runs/{run}/approve"), &json!({})).expect(200);
    let state = daemon.until_over(&run);
    assert_eq!((&state["phase"], &state["attempt"]), (&json!("completed"), &json!(2)), "{state:#}");
    assert_eq!(state["approvals"].as_array().unwrap().len(), 1, "it is not asked twice: {state:#}");
    for receipt in state["earlier"].as_array().unwrap().iter().chain([&state["receipt"]]) {
        verify(&daemon.receipts().join(receipt["file"].as_str().unwrap()));
    }
}
