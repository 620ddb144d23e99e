//! Questions of drivers and what the host says to them: permissions, inputs, calls; and what it says unasked.

use serde_json::json;

use crate::sidecar_kit::{Host, kinds};

pub(crate) fn trials() -> Vec<libtest_mimic::Trial> {
    trials![
        a_permission_is_asked_answered_and_withdrawn,
        a_late_answer_is_an_error_of_its_own,
        an_input_is_answered_as_the_host_said_it,
        steers_are_taken_refused_or_too_late,
        a_steer_that_nobody_takes_is_answered_when_the_turn_is_stopped,
        the_host_answers_what_a_driver_asks_it,
    ]
}

fn a_permission_is_asked_answered_and_withdrawn() {
    let mut host = Host::start();
    host.send("a", "s", "ask p1");
    let asked = host.next();
    let suggestion = json!({"type":"setMode","mode":"acceptEdits","destination":"session"});
    let expected = json!({"id":"a","type":"permissionRequest","permissionId":"p1","toolName":"Bash",
        "toolInput":{"command":"ls"},"description":"lists","suggestions":[suggestion]});
    assert_eq!(asked, expected);
    let params = json!({"permissionId":"p1","behavior":"allow","updatedPermissions":[suggestion]});
    host.request("y", "permissionResponse", params);
    let judged = host.next();
    assert!(judged["verdict"].as_str().unwrap().contains("acceptEdits"), "{judged}");
    host.until("a", "end");

    host.send("b", "s", "ask p2");
    host.until("b", "permissionRequest");
    let params = json!({"permissionId":"p2","behavior":"deny","message":"no"});
    host.request("n", "permissionResponse", params);
    assert_eq!(host.next()["verdict"], r#"Deny { message: Some("no") }"#);
    host.until("b", "end");

    host.send("c", "s", "withdraw p3");
    let events = host.until("c", "end");
    assert_eq!(events[1], json!({"id":"c","type":"permissionCancelled","permissionId":"p3"}));

    host.send("d", "s", "ask p4");
    host.until("d", "permissionRequest");
    host.stop("stop", "s");
    let events = host.until("stop", "stopped");
    assert_eq!(kinds(&events), [("d", "permissionCancelled"), ("d", "aborted"), ("stop", "stopped")]);
}

fn a_late_answer_is_an_error_of_its_own() {
    let mut host = Host::start();
    host.send("a", "s", "ask p");
    host.until("a", "permissionRequest");
    host.stop("stop", "s");
    host.until("stop", "stopped");
    for (id, name, params) in [
        ("late", "permissionResponse", json!({"permissionId":"p","behavior":"allow"})),
        ("never", "permissionResponse", json!({"permissionId":"q","behavior":"deny"})),
    ] {
        host.request(id, name, params);
        let error = host.next();
        assert_eq!((&error["id"], &error["code"]), (&json!(id), &json!("unknown_waiter")));
    }
    host.request("i", "userInputResponse", json!({"userInputId":"p","action":"submit"}));
    let expected = json!({"id":"i","type":"error","message":"No active waiter for userInputId=p","code":"unknown_waiter"});
    assert_eq!(host.next(), expected);
}

fn an_input_is_answered_as_the_host_said_it() {
    let mut host = Host::start();
    host.send("a", "s", "input i1");
    let expected = json!({"id":"a","type":"userInputRequest","userInputId":"i1","source":"Puppet","message":"which?",
        "payload":{"kind":"url","url":"https://example.com"}});
    assert_eq!(host.next(), expected);
    // The name of a permission is another name.
    host.request("x", "permissionResponse", json!({"permissionId":"i1","behavior":"allow"}));
    assert_eq!(host.next()["code"], "unknown_waiter");
    let params = json!({"userInputId":"i1","action":"submit","content":{"a":[1]},"meta":null});
    host.request("y", "userInputResponse", params);
    let answered = host.next();
    assert_eq!(
        answered["answer"],
        r#"Some(Answer { action: Submit, content: Some({"a": Array [Number(1)]}), meta: None })"#
    );
    host.until("a", "end");
    host.send("b", "s", "input i2");
    host.until("b", "userInputRequest");
    host.stop("stop", "s");
    let events = host.until("stop", "stopped");
    assert_eq!(kinds(&events), [("b", "userInputCancelled"), ("b", "aborted"), ("stop", "stopped")]);
}

fn steers_are_taken_refused_or_too_late() {
    let mut host = Host::start();
    let steer = |prompt: &str| json!({"sessionId":"s","provider":"claude","prompt":prompt,"files":[" a ",""],"images":[1,"/i"]});
    host.request("early", "steerSession", steer("x"));
    let no =
        json!({"id":"early","type":"steered","sessionId":"s","accepted":false,"reason":"no_active_turn"});
    assert_eq!(host.next(), no);
    host.send("a", "s", "steer 2");
    host.until("a", "steerable");
    host.request("1", "steerSession", steer("more"));
    let prompt =
        json!({"id":"a","type":"user_prompt","text":"more","steer":true,"files":["a"],"images":["/i"]});
    assert_eq!(host.next(), prompt);
    assert_eq!(host.next(), json!({"id":"1","type":"steered","sessionId":"s","accepted":true}));
    host.request("2", "steerSession", steer("refuse"));
    let mut events = host.until("2", "steered");
    events.retain(|event| event["id"] == "2");
    assert_eq!(
        events,
        [json!({"id":"2","type":"steered","sessionId":"s","accepted":false,"reason":"not now"})]
    );
    host.request("3", "steerSession", json!({"sessionId":"s","provider":"nobody","prompt":"x"}));
    let events = host.until("3", "steered");
    assert_eq!(events.last().unwrap()["reason"], "unknown provider: nobody");
}

fn a_steer_that_nobody_takes_is_answered_when_the_turn_is_stopped() {
    let mut host = Host::start();
    host.send("a", "s", "deaf");
    host.until("a", "deaf");
    for at in 0..65 {
        let params = json!({"sessionId":"s","provider":"claude","prompt":"x"});
        host.request(&format!("s{at}"), "steerSession", params);
    }
    let full = host.next();
    assert_eq!((&full["id"], &full["reason"]), (&json!("s64"), &json!("too many steers wait")));
    host.stop("stop", "s");
    let mut answered = 0;
    while answered < 64 {
        let event = host.next();
        if event["type"] == "steered" {
            assert_eq!(event["reason"], "no_active_turn");
            answered += 1;
        }
    }
}

fn the_host_answers_what_a_driver_asks_it() {
    let mut host = Host::start();
    for (answer, expected) in [
        (json!({"ok":{"a":1}}), json!({"Ok":{"a":1}})),
        (json!({}), json!({"Ok":null})),
        (json!({"error":"no"}), json!({"Err":"no"})),
    ] {
        host.send("a", "s", "host");
        let call = host.next();
        assert_eq!((&call["type"], &call["method"]), (&json!("hostRequest"), &json!("test.call")));
        assert!(call.get("id").is_none(), "{call}");
        host.write(r#"{"type":"hostResponse","callbackId":"nobody's","ok":1}"#);
        let mut line = json!({"type":"hostResponse","callbackId":call["callbackId"]});
        line.as_object_mut().unwrap().extend(answer.as_object().unwrap().clone());
        host.write(&line.to_string());
        assert_eq!(host.next()["answer"], expected);
        host.until("a", "end");
    }
    host.send("b", "s", "host");
    host.next();
    host.stop("stop", "s");
    host.until("stop", "stopped");
    host.send("c", "s", "say 1");
    host.until("c", "end");
}
