//! One answer for each request, whatever becomes of the session meanwhile.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{Instant, advance};

use super::{Trial, everything, host_calls, limits, notification, outcome, request, right_params};
use crate::host::gate::trial::Behaviour;
use crate::protocol::{HostMethod, Limits, V1_0, V1_1};

fn list(id: u32) -> String {
    request(&json!(id), "host.messages.list", None)
}

async fn code_of(trial: &mut Trial) -> (Value, Value) {
    let answer = trial.read().await.expect("an answer");
    (answer["id"].clone(), answer["error"]["code"].clone())
}

#[tokio::test(start_paused = true)]
async fn what_takes_too_long_is_answered_when_its_time_is_over() {
    let mut trial = Trial::open();
    trial.stage.mesh.behave(Behaviour::Never);
    let start = Instant::now();
    let late = trial.call(HostMethod::MessagesList, json!({})).await;
    let data = json!({ "sep": "timeout", "timeoutMs": 10_000 });
    assert_eq!(late, Err(json!({ "code": -32022, "data": data })));
    assert_eq!(start.elapsed(), Duration::from_secs(10));
    let start = Instant::now();
    let late = trial.call(HostMethod::MessagesSend, right_params(HostMethod::MessagesSend)).await;
    let data = json!({ "sep": "timeout", "timeoutMs": 15_000, "outcome": "unknown" });
    assert_eq!(late, Err(json!({ "code": -32022, "data": data })));
    assert_eq!(start.elapsed(), Duration::from_secs(15));
    let answered = trial.numbers.answered.lock().expect("whole").clone();
    assert_eq!(answered, [("host.messages.list".into(), -32022), ("host.messages.send".into(), -32022)]);
    assert_eq!(trial.numbers.inside.load(std::sync::atomic::Ordering::Relaxed), 0);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_is_cancelled_is_answered_once_and_counted_as_such() {
    let mut trial = Trial::open();
    trial.stage.mesh.behave(Behaviour::Never);
    trial.send(&list(1)).await;
    trial.send(&notification("$/cancel", json!({ "id": 7 }))).await;
    trial.send(&notification("$/cancel", json!({ "id": 1 }))).await;
    trial.send(&notification("$/cancel", json!({ "id": 1 }))).await;
    let answer = trial.read().await.expect("an answer");
    assert_eq!(outcome(answer), Err(json!({ "code": -32023, "data": { "sep": "cancelled" } })));
    trial.stage.mesh.behave(Behaviour::Take);
    assert!(trial.call(HostMethod::MessagesList, json!({})).await.is_ok(), "nothing came in between");
    let answered = trial.numbers.answered.lock().expect("whole").clone();
    assert_eq!(answered, [("host.messages.list".into(), -32023), ("host.messages.list".into(), 0)]);
}

#[tokio::test(start_paused = true)]
async fn a_suspended_session_refuses_what_comes_and_gives_what_was_begun_two_seconds() {
    let mut trial = Trial::open();
    trial.stage.mesh.behave(Behaviour::Never);
    trial.send(&list(1)).await;
    while trial.numbers.inside.load(std::sync::atomic::Ordering::Relaxed) == 0 {
        tokio::task::yield_now().await;
    }
    trial.desk.suspend();
    let start = Instant::now();
    let refused = trial.exchange(&list(2)).await;
    let data = json!({ "sep": "suspended", "state": "suspended" });
    assert_eq!(outcome(refused), Err(json!({ "code": -32041, "data": data })));
    assert_eq!(code_of(&mut trial).await, (json!(1), json!(-32041)));
    assert_eq!(start.elapsed(), Duration::from_secs(2));
    trial.desk.resume();
    trial.stage.mesh.behave(Behaviour::Take);
    assert!(trial.call(HostMethod::MessagesList, json!({})).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_session_that_resumes_in_time_finishes_what_it_had_begun() {
    let mut trial = Trial::open();
    trial.stage.mesh.behave(Behaviour::Never);
    trial.send(&list(1)).await;
    while trial.numbers.inside.load(std::sync::atomic::Ordering::Relaxed) == 0 {
        tokio::task::yield_now().await;
    }
    let start = Instant::now();
    trial.desk.suspend();
    advance(Duration::from_millis(1999)).await;
    trial.desk.resume();
    // Suspended again: the two seconds begin again.
    trial.desk.suspend();
    advance(Duration::from_millis(1999)).await;
    trial.desk.resume();
    assert_eq!(code_of(&mut trial).await, (json!(1), json!(-32022)), "its own time is what ended it");
    assert_eq!(start.elapsed(), Duration::from_secs(10));
}

#[tokio::test(start_paused = true)]
async fn a_session_that_leaves_finishes_what_it_had_begun_and_begins_nothing() {
    let mut trial = Trial::open();
    trial.stage.mesh.behave(Behaviour::Never);
    trial.send(&list(1)).await;
    while trial.numbers.inside.load(std::sync::atomic::Ordering::Relaxed) == 0 {
        tokio::task::yield_now().await;
    }
    trial.desk.leaving();
    trial.desk.resume();
    trial.desk.opened(V1_1);
    trial.send(&list(2)).await;
    assert_eq!(code_of(&mut trial).await, (json!(2), json!(-32005)));
    assert_eq!(code_of(&mut trial).await, (json!(1), json!(-32022)));
}

#[tokio::test(start_paused = true)]
async fn a_request_right_behind_the_answer_to_initialize_is_served_and_one_before_it_is_not() {
    let mut trial = Trial::attached(limits(), everything());
    let host = tokio::spawn(host_calls(trial.peer.clone(), "sep.initialize"));
    assert_eq!(trial.read().await.expect("a call")["method"], "sep.initialize");
    let answer = json!({ "jsonrpc": "2.0", "id": 1, "result": { "protocolVersion": "1.0.0" } });
    trial.send(&format!("{}\n{answer}\n{}\n{}", list(1), list(2), list(3))).await;
    assert_eq!(code_of(&mut trial).await, (json!(1), json!(-32002)));
    host.await.expect("the host has its answer");
    // The host looks at the answer, and only then knows the version.
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    assert_eq!(trial.numbers.answered.lock().expect("whole").len(), 1, "they wait");
    trial.desk.opened(V1_0);
    let mut ids = [code_of(&mut trial).await, code_of(&mut trial).await];
    ids.sort_by_key(|(id, _)| id.as_u64());
    assert_eq!(ids, [(json!(2), Value::Null), (json!(3), Value::Null)]);
    let seen: Vec<_> = trial.witness.seen().into_iter().map(|(_, _, reason)| reason.as_str()).collect();
    assert_eq!(seen, ["session_state", "granted", "granted"]);
}

#[tokio::test(start_paused = true)]
async fn what_waits_for_a_session_that_never_opens_is_refused() {
    let mut trial = Trial::attached(limits(), everything());
    let host = tokio::spawn(host_calls(trial.peer.clone(), "sep.initialize"));
    trial.read().await.expect("a call");
    let answer = json!({ "jsonrpc": "2.0", "id": 1, "result": { "protocolVersion": "9.0.0" } });
    trial.send(&format!("{answer}\n{}", list(1))).await;
    host.await.expect("the host has its answer");
    trial.desk.leaving();
    assert_eq!(code_of(&mut trial).await, (json!(1), json!(-32005)));
    assert_eq!(trial.witness.seen(), []);
}

#[tokio::test(start_paused = true)]
async fn one_request_more_than_may_be_in_flight_is_refused_and_the_others_go_on() {
    let mut trial = Trial::at(V1_1, Limits { concurrent_requests: 2, ..limits() }, everything());
    trial.stage.mesh.behave(Behaviour::Never);
    trial.send(&format!("{}\n{}\n{}", list(1), list(2), list(3))).await;
    let answer = trial.read().await.expect("an answer");
    assert_eq!(answer["id"], 3);
    let data = json!({ "sep": "too_many_inflight", "limit": 2 });
    assert_eq!(outcome(answer), Err(json!({ "code": -32021, "data": data })));
    let refused = trial.exchange(&list(2)).await;
    assert_eq!(refused["id"], Value::Null);
    assert_eq!(refused["error"]["data"], json!({ "sep": "invalid_request", "reason": "duplicate_id" }));
    assert_eq!(code_of(&mut trial).await, (json!(1), json!(-32022)));
    assert_eq!(code_of(&mut trial).await, (json!(2), json!(-32022)));
}
