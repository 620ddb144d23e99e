//! The sidecar and its streams: one end each, whatever drivers do; stop, steer, questions, and who waits for whom.

use std::time::{Duration, Instant};

use outrigger_helmor::sidecar::{ApiErrors, Exit, Warm};
use serde_json::{Value, json};

use crate::sidecar_kit::{Host, assert_one_end, kinds};

pub(crate) fn trials() -> Vec<libtest_mimic::Trial> {
    trials![
        a_turn_ends_once_and_its_session_is_free_before_the_host_hears_of_it,
        every_way_in_which_a_turn_ends_is_one_event,
        an_api_failure_can_be_an_end_for_hosts_of_the_original,
        a_driver_cannot_end_a_stream_by_its_words,
        a_driver_that_panics_is_an_internal_error_and_the_session_goes_on,
        a_session_that_cannot_be_made_costs_one_request,
        nothing_follows_the_end_of_a_stream_that_was_stopped,
        a_busy_session_takes_no_second_turn_and_the_first_goes_on,
        a_stopped_session_is_idle_for_the_host_and_its_next_turn_waits,
        a_turn_can_be_stopped_before_it_began,
        a_second_stop_and_a_stop_of_nobody_are_answered_too,
        a_driver_that_does_not_stop_is_dropped_and_the_session_goes_on,
        a_lost_context_is_told,
        heartbeats_come_whatever_the_driver_does,
        what_was_set_counts_for_the_turns_that_do_not_say,
        programs_are_kept_in_limits,
        sessions_side_by_side_do_not_mind_each_other,
    ]
}

fn a_turn_ends_once_and_its_session_is_free_before_the_host_hears_of_it() {
    let mut host = Host::start();
    for turn in 0..200 {
        let id = format!("r{turn}");
        host.send(&id, "s", "say 1");
        let events = host.until(&id, "end");
        assert_eq!(events, [json!({"type":"assistant","at":0,"id":id}), json!({"id":id,"type":"end"})]);
    }
    let (exit, rest) = host.finish();
    assert_eq!((exit, rest), (Exit::InGoodOrder, vec![]));
}

fn every_way_in_which_a_turn_ends_is_one_event() {
    let mut host = Host::start();
    for (prompt, expected) in [
        ("nothing", json!({"id":"r","type":"end"})),
        ("badly", json!({"id":"r","type":"end","isError":true,"message":"not well"})),
        ("fail", json!({"id":"r","type":"error","message":"too many","code":"rate_limit"})),
        ("abort", json!({"id":"r","type":"aborted","reason":"user_requested"})),
        (
            "panic",
            json!({"id":"r","type":"error","internal":true,"message":"Internal sidecar error: a driver panicked: a driver that panics"}),
        ),
        (
            "panic early",
            json!({"id":"r","type":"error","internal":true,"message":"Internal sidecar error: a driver panicked: before there is a future"}),
        ),
    ] {
        host.send("r", "s", prompt);
        assert_eq!(host.next(), expected, "{prompt}");
    }
    assert_eq!(host.finish().1, Vec::<Value>::new());
}

fn an_api_failure_can_be_an_end_for_hosts_of_the_original() {
    let mut host = Host::with(|options| options.api_errors = ApiErrors::End);
    host.send("r", "s", "fail");
    assert_eq!(host.next(), json!({"id":"r","type":"end","isError":true,"message":"too many"}));
    host.send("r", "s", "panic");
    assert_eq!(host.next()["type"], "error");
}

fn a_driver_cannot_end_a_stream_by_its_words() {
    let mut host = Host::start();
    host.send("r", "s", "tell");
    let events = host.until("r", "end");
    let words: Vec<_> = kinds(&events).into_iter().map(|(_, kind)| kind).collect();
    assert_eq!(words, ["agent/end", "agent/aborted", "agent/error", "end"]);
}

fn a_driver_that_panics_is_an_internal_error_and_the_session_goes_on() {
    let mut host = Host::start();
    host.send("a", "s", "panic");
    host.until("a", "error");
    host.send("b", "s", "say 2");
    assert_eq!(host.until("b", "end").len(), 3);
    host.request("m", "listModels", json!({ "provider": "claude", "apiKey": "panic" }));
    let error = host.next();
    assert_eq!((&error["internal"], &error["id"]), (&json!(true), &json!("m")));
}

fn a_session_that_cannot_be_made_costs_one_request() {
    let mut host = Host::start();
    host.send("a", "panics", "say 1");
    assert_eq!(host.next()["internal"], true);
    host.send("a", "s", "say 1");
    host.until("a", "end");
}

fn nothing_follows_the_end_of_a_stream_that_was_stopped() {
    let mut host = Host::start();
    host.send("a", "s", "talk");
    host.until("a", "talking");
    host.stop("stop", "s");
    // The next turn waits until the driver has said all that nobody hears.
    host.send("b", "s", "say 1");
    let events = host.until("b", "end");
    assert_eq!(kinds(&events), [("a", "aborted"), ("stop", "stopped"), ("b", "assistant"), ("b", "end")]);
    assert_eq!(host.seen.remarks(), ["talked on"]);
}

fn a_busy_session_takes_no_second_turn_and_the_first_goes_on() {
    let mut host = Host::start();
    host.send("a", "s", "ask p");
    host.until("a", "permissionRequest");
    host.send("b", "s", "say 1");
    let busy = host.next();
    assert_eq!((&busy["id"], &busy["code"]), (&json!("b"), &json!("session_busy")));
    assert!(busy["message"].as_str().unwrap().starts_with("session_busy: "), "{busy}");
    host.request("y", "permissionResponse", json!({ "permissionId": "p", "behavior": "allow" }));
    let events = host.until("a", "end");
    assert_eq!(kinds(&events), [("a", "judged"), ("a", "end")]);
}

fn a_stopped_session_is_idle_for_the_host_and_its_next_turn_waits() {
    let mut host = Host::start();
    host.send("a", "s", "slowly 300");
    host.until("a", "hanging");
    let started = Instant::now();
    host.stop("stop", "s");
    assert_eq!(host.next(), json!({"id":"a","type":"aborted","reason":"user_requested"}));
    assert_eq!(host.next(), json!({"id":"stop","type":"stopped","sessionId":"s"}));
    assert!(started.elapsed() < Duration::from_millis(250), "at once, not after {:?}", started.elapsed());
    host.send("b", "s", "say 1");
    host.until("b", "end");
    assert!(started.elapsed() >= Duration::from_millis(300), "the next turn came into the old one");
    assert_eq!(host.seen.remarks(), ["slowly stopped"]);
}

fn a_turn_can_be_stopped_before_it_began() {
    let mut host = Host::start();
    host.send("a", "s", "slowly 100");
    host.until("a", "hanging");
    host.stop("stop", "s");
    host.send("b", "s", "say 1");
    host.stop("again", "s");
    host.send("c", "s", "say 1");
    let events = host.until("c", "end");
    let expected = [
        ("a", "aborted"),
        ("stop", "stopped"),
        ("b", "aborted"),
        ("again", "stopped"),
        ("c", "assistant"),
        ("c", "end"),
    ];
    assert_eq!(kinds(&events), expected);
    assert_eq!(host.seen.turns.load(std::sync::atomic::Ordering::SeqCst), 2, "b never began");
}

fn a_second_stop_and_a_stop_of_nobody_are_answered_too() {
    let mut host = Host::start();
    host.send("a", "s", "hang");
    host.until("a", "hanging");
    host.stop("1", "s");
    host.stop("2", "s");
    host.stop("3", "nobody");
    let events = host.until("3", "stopped");
    assert_eq!(kinds(&events), [("a", "aborted"), ("1", "stopped"), ("2", "stopped"), ("3", "stopped")]);
}

fn a_driver_that_does_not_stop_is_dropped_and_the_session_goes_on() {
    let mut host = Host::start();
    host.send("a", "s", "never");
    host.until("a", "hanging");
    host.stop("stop", "s");
    host.send("b", "s", "say 1");
    let events = host.until("b", "end");
    assert_eq!(kinds(&events), [("a", "aborted"), ("stop", "stopped"), ("b", "assistant"), ("b", "end")]);
}

fn a_lost_context_is_told() {
    let mut host = Host::start();
    host.send("a", "s", "lost");
    let lost = json!({"id":"a","type":"contextReset","sessionId":"s","resume":"old","reason":"it is gone"});
    assert_eq!(host.next(), lost);
}

fn heartbeats_come_whatever_the_driver_does() {
    let mut host = Host::with(|options| options.heartbeat = Duration::from_millis(50));
    for (id, prompt) in [("a", "spin"), ("b", "spin"), ("c", "spin"), ("d", "hang"), ("e", "never")] {
        host.send(id, id, prompt);
    }
    let mut beats = std::collections::HashMap::new();
    let started = Instant::now();
    while beats.len() < 5 || beats.values().any(|beats| *beats < 4) {
        let event = host.next();
        if event["type"] == "heartbeat" {
            *beats.entry(event["id"].as_str().unwrap().to_owned()).or_insert(0) += 1;
        }
    }
    assert!(started.elapsed() >= Duration::from_millis(200), "four of them take four times as long");
    // Everything else works too, whoever spins.
    host.request("p", "ping", json!({}));
    host.until("p", "pong");
    for id in ["a", "b", "c"] {
        host.stop(&format!("stop {id}"), id);
    }
    host.until("stop c", "stopped");
    host.send("f", "f", "say 3");
    let events = host.until("f", "end");
    assert_one_end(&events);
}

fn what_was_set_counts_for_the_turns_that_do_not_say() {
    let mut host = Host::start();
    let echo = |host: &mut Host, model: Value, mode: &str| {
        host.send("e", "s", "echo");
        let echo = host.next();
        assert_eq!((&echo["model"], &echo["mode"]), (&model, &json!(mode)));
        host.until("e", "end");
    };
    echo(&mut host, Value::Null, "bypassPermissions");
    host.request("1", "updateConfig", json!({"model":"m1","permissionMode":"plan","cursorApiKey":"key"}));
    assert_eq!(host.next(), json!({"id":"1","type":"pong"}));
    echo(&mut host, json!("m1"), "plan");
    host.request("2", "updateConfig", json!({"model":"m2","sessionId":"s"}));
    assert_eq!(host.next(), json!({"id":"2","type":"pong"}));
    echo(&mut host, json!("m2"), "plan");
    host.request("3", "updateConfig", json!({"model":null,"sessionId":"s","cursorApiKey":7}));
    host.until("3", "pong");
    echo(&mut host, json!("m1"), "plan");
    let remarks = host.seen.remarks();
    let expected = [
        "claude configured Some(Some(\"key\"))",
        "s reconfigured Some(Some(\"m2\"))",
        "claude configured Some(None)",
        "s reconfigured Some(None)",
    ];
    assert_eq!(remarks, expected);
}

fn programs_are_kept_in_limits() {
    let mut host =
        Host::with(|options| options.warm = Warm { programs: 2, at_most: Duration::from_secs(600) });
    for session in ["1", "2", "3"] {
        host.send("r", session, "say 1");
        host.until("r", "end");
    }
    host.send("r", "2", "say 1");
    host.until("r", "end");
    host.send("r", "4", "say 1");
    host.until("r", "end");
    // The next turn of a session that is being closed waits for that.
    host.send("r", "3", "say 1");
    host.until("r", "end");
    let remarks = host.seen.remarks();
    assert_eq!(remarks[..2], ["1 closed", "3 closed"], "{remarks:?}");
    drop(host.finish());

    let mut host =
        Host::with(|options| options.warm = Warm { programs: 8, at_most: Duration::from_millis(50) });
    host.send("r", "s", "say 1");
    host.until("r", "end");
    let started = Instant::now();
    while !host.seen.remarks().contains(&"s closed".to_owned()) {
        assert!(started.elapsed() < Duration::from_secs(20), "it is kept for ever");
        std::thread::yield_now();
    }
}

fn sessions_side_by_side_do_not_mind_each_other() {
    let mut host = Host::start();
    for session in 0..8 {
        host.send(&format!("r{session}"), &format!("s{session}"), "say 1000");
    }
    let mut events = Vec::new();
    let mut ended = 0;
    while ended < 8 {
        let event = host.next();
        ended += usize::from(event["type"] == "end");
        events.push(event);
    }
    assert_eq!(assert_one_end(&events).len(), 8);
    assert_eq!(events.len(), 8 * 1001);
    for session in 0..8 {
        let id = format!("r{session}");
        let at: Vec<_> = events.iter().filter(|event| event["id"] == id.as_str()).collect();
        assert!(at[..1000].iter().enumerate().all(|(at, event)| event["at"] == at), "out of order");
    }
}
