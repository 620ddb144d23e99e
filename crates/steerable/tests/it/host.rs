//! The host against a fake sidecar: how it becomes ready, its methods, what it asks of the host, how it is stopped.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use libtest_mimic::Trial;
use outrigger_steerable::chat::{BoxFuture, ToolResult};
use outrigger_steerable::host::{
    Answers, ApprovalRequest, CallError, Consent, Decision, Invocation, NewSession, Nobody, Questions,
    ReadyBy, Reverse, SessionFilter, Sidecar, StartErrorKind, SteerBy, Steered, StreamEnd, StreamEvent,
    StreamId, Terms, ToolAnswer, ToolInvocation, TraceOf, Verdict,
};
use outrigger_supervise::launch::Status;
use outrigger_supervise::state::Ladder;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::host_kit::{fake, gone, millis, quick, read, script, start, supervisor, trial};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("a_sidecar_is_ready_by_its_marker_or_by_its_notification", ready),
        trial("a_sidecar_that_is_never_ready_is_an_error_with_its_last_lines", never_ready),
        trial("a_marker_that_is_no_health_is_an_error_that_shows_it", bad_marker),
        trial("a_sidecar_that_ends_before_it_is_ready_is_an_error_with_its_exit_code", dies_before_ready),
        trial("a_program_that_is_not_there_is_an_error_that_names_it", not_there),
        trial("a_sidecar_of_another_protocol_is_refused", other_version),
        trial("every_method_has_its_types", methods),
        trial("results_that_the_original_leaves_out_are_successes", null_dropping),
        trial("what_a_sidecar_refuses_comes_with_its_code_its_kind_and_its_data", refusals),
        trial("lines_that_are_no_messages_are_skipped_and_counted", noise),
        trial("what_a_sidecar_asks_of_its_host_is_answered", reverse_calls),
        trial("a_reverse_call_is_given_up_when_the_sidecar_is_gone", reverse_given_up),
        trial("a_shutdown_lets_streams_end_and_the_sidecar_leave_by_itself", shutdown),
        trial("a_shutdown_now_waits_for_nothing", shutdown_now),
        trial("a_sidecar_that_ignores_a_shutdown_gets_sigterm_and_one_that_ignores_that_is_killed", ladder),
        trial("a_sidecar_that_its_host_drops_is_killed_and_its_streams_end", dropped),
        trial("a_call_that_is_not_answered_fails_in_time", late),
    ]
}

async fn ready() {
    for (by, quirks, has_health) in [
        (ReadyBy::Marker, &[][..], true),
        (ReadyBy::Marker, &["no-ready"], true),
        (ReadyBy::Notification, &[], false),
        (ReadyBy::Notification, &["--quiet-ready"], false),
        (ReadyBy::Either, &["--quiet-ready"], false),
        (ReadyBy::Either, &["no-ready"], true),
    ] {
        let sidecar = start(quirks, Terms { ready: by, ..quick() }).await;
        let hello = sidecar.hello().expect("a hello");
        assert_eq!((hello.version.as_str(), hello.protocol_version.as_str()), ("1.2.3", "0.1.0"), "{by:?}");
        assert_eq!(hello.health.is_some(), has_health, "{by:?} {quirks:?}");
        assert_eq!(sidecar.ping().await.expect("a health").status, "ok");
        assert!(sidecar.pid().is_some());
    }
}

async fn never_ready() {
    let terms = || Terms { ready_within: millis(300), ..quick() };
    // One that is quiet is never ready for a host that waits for the marker.
    for (by, quirks) in [(ReadyBy::Either, ["never-ready"]), (ReadyBy::Marker, ["--quiet-ready"])] {
        let terms = Terms { ready: by, ..terms() };
        let error = Sidecar::start(&supervisor(), &fake(&quirks), terms, Arc::new(Nobody))
            .await
            .expect_err("an error");
        assert_eq!(error.kind, StartErrorKind::Late);
        let text = error.to_string();
        assert!(
            text.starts_with("sidecar `child` was not ready within 300ms") && text.contains("| booting"),
            "{text}"
        );
    }
}

async fn bad_marker() {
    for by in [ReadyBy::Marker, ReadyBy::Either] {
        let terms = Terms { ready: by, ..quick() };
        // Without its notification, which would otherwise win the race.
        let spec = fake(&["bad-marker", "no-ready"]);
        let error =
            Sidecar::start(&supervisor(), &spec, terms, Arc::new(Nobody)).await.expect_err("an error");
        assert_eq!(error.kind, StartErrorKind::Garbled);
        assert!(error.to_string().contains("soon"), "{error}");
        gone(error.report.expect("a report").pid.expect("a process").get()).await;
    }
}

async fn dies_before_ready() {
    let started =
        Sidecar::start(&supervisor(), &fake(&["dies-before-ready"]), quick(), Arc::new(Nobody)).await;
    let error = started.expect_err("an error");
    assert_eq!(error.kind, StartErrorKind::Exited);
    assert_eq!(error.report.as_ref().expect("a report").status, Some(Status::Code(3)));
    assert!(error.to_string().contains("| out of cheese"), "{error}");
}

async fn not_there() {
    let mut spec = fake(&[]);
    spec.program = "/nowhere/steerable-sidecar".into();
    let error = Sidecar::start(&supervisor(), &spec, quick(), Arc::new(Nobody)).await.expect_err("an error");
    assert_eq!(error.kind, StartErrorKind::Spawn);
    assert!(error.to_string().contains("/nowhere/steerable-sidecar"), "{error}");
}

async fn other_version() {
    for by in [ReadyBy::Marker, ReadyBy::Notification] {
        let terms = Terms { ready: by, ..quick() };
        let started = Sidecar::start(&supervisor(), &fake(&["version-9"]), terms, Arc::new(Nobody)).await;
        let error = started.expect_err("an error");
        assert_eq!(error.kind, StartErrorKind::Incompatible);
        assert!(error.to_string().contains("9.0.0"), "{error}");
    }
}

async fn methods() {
    let sidecar = start(&[], quick()).await;
    let health = sidecar.ping().await.expect("a health");
    assert_eq!((health.status.as_str(), health.loaded_tools), ("ok", 1));

    let first = NewSession { session_id: Some("sess_a".into()), ..NewSession::of_chat("chat") };
    let first = sidecar.create_session(&first).await.expect("a session");
    assert_eq!(
        (first.session_id.as_str(), first.user_id.as_str(), first.current_stage.as_str()),
        ("sess_a", "local", "plan")
    );
    let second = sidecar.create_session(&NewSession::of_chat("other")).await.expect("a session");
    assert_eq!(sidecar.resume_session("sess_a").await.expect("a session").chat_id, "chat");
    let all = sidecar.sessions(&SessionFilter::default()).await.expect("sessions");
    assert_eq!(
        all.iter().map(|session| &*session.session_id).collect::<Vec<_>>(),
        [&*second.session_id, "sess_a"]
    );
    let some = SessionFilter { chat_id: Some("chat".into()), ..SessionFilter::default() };
    assert_eq!(sidecar.sessions(&some).await.expect("sessions").len(), 1);

    let tools = sidecar.tools().await.expect("tools");
    assert_eq!(tools.iter().map(|tool| &*tool.name).collect::<Vec<_>>(), ["get_time"]);
    let call = |name: &str, consent| Invocation {
        name: name.into(),
        arguments: Map::new(),
        id: None,
        consent,
        context: Map::new(),
    };
    let result = sidecar.invoke_tool(&call("get_time", Consent::None)).await.expect("a result");
    assert_eq!((result.success, &result.data.expect("data")["value"]), (true, &json!("noon")));
    let unknown = sidecar.invoke_tool(&call("fly", Consent::None)).await.expect("a result");
    assert_eq!(unknown, ToolResult::unknown("fly"));
    let denied = sidecar.invoke_tool(&call("drop_all", Consent::None)).await.expect_err("a denial");
    assert_eq!(denied.kind(), Some("policy_denied"));
    assert!(sidecar.invoke_tool(&call("drop_all", Consent::Granted)).await.is_ok());

    let level = json!({"logLevel":"DEBUG"});
    sidecar.set_config(level.as_object().expect("an object")).await.expect("a success");
    assert_eq!(sidecar.config().await.expect("settings")["logLevel"], "DEBUG");
    let nobody = StreamId::new("nobody");
    sidecar.cancel(&nobody).await.expect("a success");
    let steered = sidecar.steer(&nobody, "left", SteerBy::Boundary).await.expect("an answer");
    assert_eq!(steered, Steered::Refused("stream_not_active".into()));
    let fetched = sidecar.trace(&TraceOf::Trace("trace_x".into())).await.expect_err("none");
    assert_eq!(fetched.kind(), Some("invalid_request"));
    // A method that this host does not know goes through as it is.
    let odd = RawValue::from_string(r#"{"z":1.50,"a":[null]}"#.to_owned()).expect("JSON");
    let echo = sidecar.call("fake.echo", Some(&odd), millis(20_000)).await.expect("an answer");
    assert_eq!(serde_json::from_str::<Value>(echo.get()).expect("JSON"), json!({"z":1.5,"a":[null]}));
}

async fn null_dropping() {
    let sidecar = start(&["null-dropping"], quick()).await;
    sidecar.cancel(&StreamId::new("nobody")).await.expect("a success");
    sidecar.set_config(&Map::new()).await.expect("a success");
    let answer = sidecar.call("agent.chat.cancel", Some(&raw(r#"{"streamId":"x"}"#)), millis(20_000)).await;
    assert_eq!(answer.expect("a success").get(), "null");
}

async fn refusals() {
    let sidecar = start(&[], quick()).await;
    let error = sidecar.call("no.such", None, millis(20_000)).await.expect_err("an error");
    let CallError::Remote { method, error } = error else { panic!("{error:?}") };
    assert_eq!(
        (method.as_str(), error.code.0, error.kind.as_deref()),
        ("no.such", -32601, Some("method_not_found"))
    );
    assert_eq!(error.data.expect("data").get(), r#"{"method":"no.such"}"#);
    let error = sidecar.resume_session("nobody").await.expect_err("an error");
    assert_eq!(
        error.to_string(),
        "`agent.session.resume` failed: session not found: nobody (code -32004, invalid_request)"
    );
    let error = sidecar.stream(&json!([1])).await.expect_err("an error");
    assert!(matches!(error, CallError::NotSent { .. }), "{error}");
    let long = json!({"x":"y".repeat(17 << 20)});
    let error = sidecar.stream(&long).await.expect_err("an error");
    assert!(matches!(error, CallError::NotSent { .. }), "{error}");
    assert!(sidecar.ping().await.is_ok());
}

async fn noise() {
    let sidecar = start(&["banner"], quick()).await;
    let steps = json!([{"say":"{\"jsonrpc\":\"2.0\",\"error\":{\"code\":-32700,\"message\":\"what?\"}}"}, "a", {"say":"debug: on"}, "b"]);
    let (deltas, _, end) = read(sidecar.stream(&script(&steps)).await.expect("a stream")).await;
    assert_eq!(deltas, ["a", "b"]);
    assert!(matches!(end, StreamEnd::Done(done) if done.ok));
    assert_eq!(sidecar.irregular().noise, 3);
}

/// Answers, and remembers what it was asked and told.
struct Host {
    heard: Arc<Mutex<Vec<String>>>,
}

impl Reverse for Host {
    fn invoke(&self, call: ToolInvocation) -> BoxFuture<'_, ToolAnswer> {
        Box::pin(async move {
            match call.name.as_str() {
                "add" => ToolAnswer::Value(json!(call.arguments["a"].as_i64().unwrap_or(0) + 1)),
                "forever" => std::future::pending().await,
                name => ToolAnswer::Result(ToolResult::unknown(name)),
            }
        })
    }

    fn approve(&self, ask: ApprovalRequest) -> BoxFuture<'_, Decision> {
        Box::pin(async move {
            let amended = json!({"command":"ls"}).as_object().cloned();
            Decision {
                amended_arguments: amended,
                ..Decision::new(Verdict::AllowForSession).because(format!("{} {}", ask.tool_name, ask.mode))
            }
        })
    }

    fn ask(&self, questions: Questions) -> BoxFuture<'_, Result<Answers, String>> {
        Box::pin(async move {
            let answers =
                questions.questions.iter().map(|question| (question.id.clone(), question.options[0].clone()));
            Ok(answers.collect())
        })
    }

    fn notified(&self, method: &str, _: Option<&RawValue>) {
        self.heard.lock().expect("a lock").push(method.to_owned());
    }
}

async fn reverse_calls() {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let host = Arc::new(Host { heard: Arc::clone(&heard) });
    let sidecar = Sidecar::start(&supervisor(), &fake(&[]), quick(), host).await.expect("a sidecar");
    let steps = json!([
        {"ask":"tool.invoke","params":{"id":"c1","name":"add","arguments":{"a":41},"context":{"chatId":"x"}}},
        {"ask":"tool.invoke","params":{"id":"c2","name":"fly","arguments":null}},
        {"ask":"approval.request","params":{"toolName":"run_command","arguments":{"command":"rm"},"mode":"destructive","round":1}},
        {"ask":"ask_user.request","params":{"questions":[{"id":"q","question":"Which?","options":["this","that"]}]}},
        {"ask":"tool.invoke","params":{"arguments":{}}},
        {"ask":"read_state.seed","params":{}},
        {"notify":"agent.child","params":{}},
    ]);
    let (answers, _, _) = read(sidecar.stream(&script(&steps)).await.expect("a stream")).await;
    let answers: Vec<Value> =
        answers.iter().map(|answer| serde_json::from_str(answer).expect("JSON")).collect();
    assert_eq!(answers[0], json!(42));
    assert_eq!(
        answers[1],
        json!({"success":false,"terminal":false,"needsFollowup":false,"error":"Unknown tool: fly"})
    );
    assert_eq!(
        answers[2],
        json!({"kind":"allow_for_session","reason":"run_command destructive","amendment":{"arguments":{"command":"ls"}}})
    );
    assert_eq!(answers[3], json!({"answers":{"q":"this"}}));
    assert_eq!((&answers[4]["code"], &answers[4]["kind"]), (&json!(-32602), &json!("invalid_params")));
    assert_eq!(
        (&answers[5]["code"], &answers[5]["data"]),
        (&json!(-32601), &json!({"method":"read_state.seed"}))
    );
    assert_eq!(*heard.lock().expect("a lock"), ["lifecycle.ready", "agent.child"]);
}

async fn reverse_given_up() {
    let host = Arc::new(Host { heard: Arc::default() });
    let weak = Arc::downgrade(&host);
    let sidecar = Sidecar::start(&supervisor(), &fake(&[]), quick(), host).await.expect("a sidecar");
    let asks = json!([{"ask":"tool.invoke","params":{"name":"forever"}}]);
    let waiting = sidecar.stream(&script(&asks)).await.expect("a stream");
    let dies = sidecar.stream(&script(&json!([{"die":4}]))).await.expect("a stream");
    let began = Instant::now();
    assert!(matches!(read(dies).await.2, StreamEnd::Lost(_)));
    assert!(matches!(read(waiting).await.2, StreamEnd::Lost(_)));
    assert!(began.elapsed() < Duration::from_secs(8), "nobody waits for an answer that nobody needs");
    drop(sidecar);
    // What answered is let go of, so the call is too.
    while weak.upgrade().is_some() {
        tokio::task::yield_now().await;
    }
}

async fn shutdown() {
    let sidecar = start(&[], quick()).await;
    let mut stream = sidecar.stream(&script(&json!(["a", {"hang":true}]))).await.expect("a stream");
    assert!(matches!(stream.next().await, Some(StreamEvent::Chunk(_))), "it is live");
    let report = sidecar.shutdown().await.expect("a report");
    assert_eq!(report.status, Some(Status::Code(0)));
    let (_, _, end) = read(stream).await;
    assert!(matches!(&end, StreamEnd::Done(done) if done.cancelled && !done.ok), "{end:?}");
    let error = sidecar.ping().await.expect_err("an error");
    assert!(matches!(&error, CallError::Lost { .. }) && error.to_string().contains("was stopped"), "{error}");
    assert!(sidecar.ready().await.is_err());
    assert!(sidecar.shutdown().await.is_some(), "a second shutdown is fine");
}

async fn shutdown_now() {
    let sidecar = start(&["ignores-shutdown"], quick()).await;
    let report = sidecar.shutdown_now().await.expect("a report");
    assert_eq!(report.status, Some(Status::Code(0)));
}

async fn ladder() {
    let terms = || Terms { ladder: Ladder { ask: millis(100), term: millis(5000) }, ..quick() };
    let sidecar = start(&["ignores-shutdown"], terms()).await;
    let stream = sidecar.stream(&script(&json!([{"hang":true}]))).await.expect("a stream");
    assert_eq!(sidecar.shutdown().await.expect("a report").status, Some(Status::Code(0)));
    assert!(matches!(read(stream).await.2, StreamEnd::Done(done) if done.cancelled));

    let terms = Terms { ladder: Ladder { ask: millis(100), term: millis(100) }, ..quick() };
    let sidecar = start(&["ignores-shutdown", "ignores-term"], terms).await;
    let stream = sidecar.stream(&script(&json!([{"hang":true}]))).await.expect("a stream");
    assert_eq!(sidecar.shutdown().await.expect("a report").status, Some(Status::Signal(9)));
    let (_, _, end) = read(stream).await;
    let StreamEnd::Lost(lost) = end else { panic!("{end:?}") };
    assert!(lost.what.contains("was stopped") && lost.report.is_some(), "{lost}");
}

async fn dropped() {
    let sidecar = start(&["ignores-shutdown", "ignores-term"], quick()).await;
    let pid = sidecar.pid().expect("a process");
    let stream = sidecar.stream(&script(&json!(["a", {"hang":true}]))).await.expect("a stream");
    let other = sidecar.clone();
    drop(sidecar);
    assert!(other.ping().await.is_ok(), "a clone keeps it");
    drop(other);
    let (_, _, end) = read(stream).await;
    assert!(matches!(&end, StreamEnd::Lost(lost) if lost.what.contains("let go")), "{end:?}");
    gone(pid).await;
}

async fn late() {
    let sidecar = start(&["ignores-ping"], Terms { call_within: millis(50), ..quick() }).await;
    let error = sidecar.ping().await.expect_err("an error");
    assert_eq!(error.to_string(), "`system.ping` was not answered within 50ms");
    assert!(sidecar.config().await.is_ok(), "others are answered");
}

fn raw(json: &str) -> Box<RawValue> {
    RawValue::from_string(json.to_owned()).expect("JSON")
}
