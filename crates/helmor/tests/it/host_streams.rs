//! Streams of the bridge: exactly one end, nothing lost, nobody held up by somebody else, and sessions that can be gone on with.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use libtest_mimic::Trial;
use outrigger_helmor::BoxFuture;
use outrigger_helmor::host::{
    Bridge, BridgeError, Irregular, ModelChoice, Notice, Reverse, ReverseLimits, Steered, StreamEnd,
    StreamEvent, Terms, Title, Waits,
};
use outrigger_helmor::protocol::{
    ContextQuery, GenerateTitle, GetContextUsage, ListModels, ListSlashCommands, ProviderName, SlashQuery,
    Steer, SteerSession,
};
use outrigger_helmor::provider::{Answer, InputAction, Verdict};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::host_kit::{bridge, fake, millis, of, passed, quick, read, supervisor, trial, turn};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("what_an_agent_says_is_passed_on_as_it_came_and_then_there_is_one_end", passed_on),
        trial("a_second_turn_of_a_busy_session_is_refused_before_it_is_sent", busy),
        trial("a_stream_that_is_dropped_stops_its_turn_and_frees_its_session", dropped_stream),
        trial("a_stop_ends_the_stream_as_aborted_before_it_returns", stop),
        trial("a_silent_stream_ends_and_can_be_gone_on_with", silence),
        trial("heartbeats_keep_a_stream_alive_for_ever", heartbeats),
        trial("a_sidecar_that_is_silent_altogether_is_killed", hung),
        trial("eight_streams_do_not_wait_for_the_slowest_reader_and_lose_nothing", slow_reader),
        trial("a_stream_that_is_never_read_ends_with_a_name_for_it_and_its_turn_is_stopped", overflow),
        trial("each_provider_says_in_its_own_way_what_can_be_resumed", adoption),
        trial("a_name_is_not_passed_to_another_provider_and_what_the_caller_says_counts", whose_resume),
        trial("a_lost_context_is_told_and_the_new_one_is_gone_on_with", context_reset),
        trial("questions_of_the_agent_are_answered_and_late_answers_are_refused", questions),
        trial("a_steer_reaches_the_turn_and_without_one_is_refused", steer),
        trial("the_sidecar_may_ask_its_host_and_not_too_much_at_once", reverse),
        trial("an_answer_of_the_host_that_takes_too_long_is_an_error_for_the_sidecar", reverse_late),
        trial("garbage_and_events_for_nobody_are_counted_and_do_no_harm", irregular),
        trial("requests_with_one_answer_have_types", typed),
        trial("each_request_that_is_not_answered_ends_with_its_own_name", late),
        trial("a_prompt_that_is_longer_than_a_line_is_refused_and_the_session_is_free", too_long),
        trial("the_last_words_of_a_sidecar_that_dies_are_heard", last_words),
    ]
}

fn claude() -> ProviderName {
    ProviderName::Claude
}

async fn passed_on() {
    let bridge = bridge(&[], quick());
    let steps = json!([
        "hello",
        {"pass":{"type":"stream_event","n":1.0e0,"id":"theirs"}},
        {"end":{"type":"end","isError":true,"message":"out of credit"}},
    ]);
    let (said, end) = read(bridge.send(turn("s", &steps)).await.unwrap()).await;
    assert_eq!(said.iter().map(|said| &said["type"]).collect::<Vec<_>>(), ["assistant", "stream_event"]);
    assert!(matches!(end, StreamEnd::EndedBadly { message: Some(message) } if message == "out of credit"));
    for (event, code) in [
        (json!({"type":"error","message":"no","code":"auth"}), "auth"),
        (json!({"type":"error","message":"no"}), "failed"),
        (json!({"type":"aborted","reason":"terminated"}), "aborted"),
        (json!({"type":"end"}), "ended"),
    ] {
        let stream = bridge.send(turn("s", &json!([{"end":event}]))).await.unwrap();
        assert_eq!(stream.end().await.unwrap().code(), code);
    }
    bridge.shutdown().await;
}

async fn busy() {
    let bridge = bridge(&["never-busy"], quick());
    let mut first = bridge.send(turn("s", &json!(["a", {"hang":true}]))).await.unwrap();
    let error = bridge.send(turn("s", &json!(["b"]))).await.unwrap_err();
    assert!(matches!(&error, BridgeError::Busy { session } if session == "s"));
    assert_eq!(error.code(), "session_busy");
    assert!(bridge.send(turn("other", &json!([]))).await.unwrap().end().await.unwrap().is_good());
    passed(&mut first).await;
    bridge.stop("s", &claude()).await.unwrap();
    assert!(matches!(first.end().await, Some(StreamEnd::Aborted { .. })));
    assert!(bridge.send(turn("s", &json!([]))).await.unwrap().end().await.unwrap().is_good());
    bridge.shutdown().await;
}

async fn dropped_stream() {
    let bridge = bridge(&[], quick());
    let mut first = bridge.send(turn("s", &json!(["a", {"hang":true}]))).await.unwrap();
    passed(&mut first).await;
    drop(first);
    // The session is free when the sidecar says that the turn has ended.
    let second = loop {
        match bridge.send(turn("s", &json!(["b"]))).await {
            Ok(stream) => break stream,
            Err(BridgeError::Busy { .. }) => tokio::task::yield_now().await,
            Err(error) => panic!("{error}"),
        }
    };
    assert!(second.end().await.unwrap().is_good());
    assert_eq!(bridge.irregular(), Irregular { noise: 0, strays: 0, complaints: 0 });
    bridge.shutdown().await;
}

async fn stop() {
    let bridge = bridge(&[], quick());
    let mut stream = bridge.send(turn("s", &json!(["a", {"hang":true}]))).await.unwrap();
    passed(&mut stream).await;
    bridge.stop("s", &claude()).await.unwrap();
    match stream.next().await {
        Some(StreamEvent::End(StreamEnd::Aborted { reason })) => assert_eq!(reason, "user_requested"),
        other => panic!("{other:?}"),
    }
    // A session that nobody knows is stopped already.
    bridge.stop("nobody", &claude()).await.unwrap();
    bridge.shutdown().await;
}

async fn silence() {
    let bridge = bridge(&[], Terms { silence: millis(200), ..quick() });
    let init = json!({"type":"system","subtype":"init","session_id":"claude-1"});
    let mut stream = bridge.send(turn("s", &json!([{"pass":init}, {"hang":true}]))).await.unwrap();
    passed(&mut stream).await;
    let asked = Instant::now();
    let end = stream.end().await.unwrap();
    assert!(matches!(end, StreamEnd::Silent { after } if after == millis(200)), "{end}");
    assert!(asked.elapsed() >= millis(150), "it was not silent for so long");
    assert!(end.to_string().contains("not even a heartbeat"), "{end}");
    let pid = bridge.pid();
    let (said, end) = read(bridge.send(turn("s", &json!([{"echo":true}]))).await.unwrap()).await;
    assert!(end.is_good(), "the turn was stopped, so the session is free in the sidecar too: {end}");
    assert_eq!(said[0]["params"]["resume"], "claude-1");
    assert_eq!(bridge.pid(), pid, "a sidecar that answers is not to blame");
    bridge.shutdown().await;
}

async fn heartbeats() {
    let bridge = bridge(&["beat=20"], Terms { silence: millis(400), ..quick() });
    let mut stream = bridge.send(turn("s", &json!(["a", {"hang":true}]))).await.unwrap();
    passed(&mut stream).await;
    // Nothing but heartbeats for much longer than the silence that is allowed, and the reader sees none of them.
    let next = tokio::time::timeout(millis(1200), stream.next()).await;
    assert!(next.is_err(), "{next:?}");
    bridge.stop("s", &claude()).await.unwrap();
    assert!(matches!(stream.next().await, Some(StreamEvent::End(StreamEnd::Aborted { .. }))));
    bridge.shutdown().await;
}

async fn hung() {
    let waits = Waits { stop: millis(200), ..quick().waits };
    let bridge = bridge(&["silent:stopSession"], Terms { silence: millis(200), waits, ..quick() });
    let mut stream = bridge.send(turn("s", &json!(["a", {"hang":true}]))).await.unwrap();
    passed(&mut stream).await;
    let first = bridge.pid().unwrap();
    assert!(matches!(stream.end().await, Some(StreamEnd::Silent { .. })));
    crate::host_kit::gone(first).await;
    assert!(bridge.send(turn("s", &json!(["b"]))).await.unwrap().end().await.unwrap().is_good());
    assert_ne!(bridge.pid(), Some(first));
    bridge.shutdown().await;
}

async fn slow_reader() {
    const EVENTS: u64 = 500;
    let bridge = bridge(&[], quick());
    // 4 MB of the slow one wait: far more than all pipes between us hold.
    let steps = json!([{"flood":EVENTS,"bytes":8000}]);
    let slow = bridge.send(turn("slow", &steps)).await.unwrap();
    let mut fast = Vec::new();
    for number in 0..7 {
        fast.push(bridge.send(turn(&format!("fast-{number}"), &steps)).await.unwrap());
    }
    let all = |said: &[Value]| said.iter().map(|said| said["n"].as_u64().unwrap()).eq(0..EVENTS);
    for stream in fast {
        let (said, end) = read(stream).await;
        assert!(end.is_good() && all(&said), "{} events, {end}", said.len());
    }
    // Nobody has read the slow one so far, and a request is answered all the same.
    bridge.ping().await.unwrap();
    let (said, end) = read(slow).await;
    assert!(end.is_good() && all(&said), "{} events, {end}", said.len());
    bridge.shutdown().await;
}

async fn overflow() {
    let bridge = bridge(&[], Terms { stream_bytes: 100_000, ..quick() });
    let init = json!({"type":"system","subtype":"init","session_id":"claude-1"});
    let steps = json!([{"pass":init}, {"flood":1000,"bytes":1000}, {"hang":true}]);
    let stream = bridge.send(turn("s", &steps)).await.unwrap();
    // Nobody reads it. Its turn is stopped when it has overflowed, and only then is its session free.
    let next = loop {
        match bridge.send(turn("s", &json!([{"echo":true}]))).await {
            Ok(stream) => break stream,
            Err(BridgeError::Busy { .. }) => tokio::task::yield_now().await,
            Err(error) => panic!("{error}"),
        }
    };
    let (echoed, end) = read(next).await;
    assert!(end.is_good(), "it is free in the sidecar too: {end}");
    assert_eq!(echoed[0]["params"]["resume"], "claude-1");
    let (said, end) = read(stream).await;
    assert!(matches!(end, StreamEnd::Overflow { limit: 100_000 }), "{end}");
    let numbers = said[1..].iter().map(|said| said["n"].as_u64().unwrap());
    assert!(
        numbers.eq(0..said.len() as u64 - 1),
        "what had waited was delivered, and nothing of it is missing"
    );
    assert!((80..100).contains(&said.len()), "100 of 1,000 bytes do not fit: {}", said.len());
    bridge.shutdown().await;
}

async fn adoption() {
    let bridge = bridge(&[], quick());
    let early = json!({"type":"system","subtype":"hook_started","session_id":"early"});
    let init = json!({"type":"system","subtype":"init","session_id":"id-claude"});
    let thread = json!({"type":"turn/started","session_id":"id-codex"});
    let cursor = json!({"type":"cursor/agent_init","session_id":"id-cursor"});
    let acp = json!({"type":"acp/agent_init","session_id":"id-acp:fake"});
    let cases = [
        (ProviderName::Claude, vec![early.clone(), init.clone()]),
        (ProviderName::Codex, vec![thread]),
        (ProviderName::Cursor, vec![early.clone(), cursor]),
        (ProviderName::Acp("fake".into()), vec![early, acp]),
        (ProviderName::Scripted, vec![json!({"type":"system","subtype":"init","session_id":"id-scripted"})]),
    ];
    for (provider, events) in cases {
        let session = format!("of-{provider}");
        let steps: Vec<Value> = events.into_iter().map(|event| json!({ "pass": event })).collect();
        read(bridge.send(of(provider.clone(), &session, &json!(steps))).await.unwrap()).await;
        let known = bridge.resume_id(&session).unwrap();
        assert_eq!(known, (provider.clone(), format!("id-{provider}")));
        let again = of(provider.clone(), &session, &json!([{"echo":true}]));
        let (said, _) = read(bridge.send(again).await.unwrap()).await;
        assert_eq!(said[0]["params"]["resume"], format!("id-{provider}"));
    }
    bridge.shutdown().await;
}

async fn whose_resume() {
    let bridge = bridge(&[], quick());
    bridge.remember("s", &ProviderName::Claude, "claude-1");
    let echo = json!([{"echo":true}]);
    let resume = |said: Vec<Value>| said[0]["params"]["resume"].clone();
    let other = of(ProviderName::Codex, "s", &echo);
    assert_eq!(resume(read(bridge.send(other).await.unwrap()).await.0), Value::Null);
    assert_eq!(resume(read(bridge.send(turn("s", &echo)).await.unwrap()).await.0), "claude-1");
    let mut said = turn("s", &echo);
    said.resume = Some("claude-2".to_owned());
    assert_eq!(resume(read(bridge.send(said).await.unwrap()).await.0), "claude-2");
    assert_eq!(resume(read(bridge.send(turn("s", &echo)).await.unwrap()).await.0), "claude-2");
    bridge.forget("s");
    assert_eq!(resume(read(bridge.send(turn("s", &echo)).await.unwrap()).await.0), Value::Null);
    bridge.shutdown().await;
}

async fn context_reset() {
    let bridge = bridge(&[], quick());
    bridge.remember("s", &ProviderName::Claude, "dead");
    let reset =
        json!({"type":"contextReset","sessionId":"s","resume":"dead","reason":"No conversation found"});
    let init = json!({"type":"system","subtype":"init","session_id":"fresh"});
    let mut stream =
        bridge.send(turn("s", &json!([{"pass":reset}, {"host":"wait"}, {"pass":init}]))).await.unwrap();
    match stream.next().await {
        Some(StreamEvent::ContextReset { resume, reason }) => {
            assert_eq!((resume.as_str(), reason.as_str()), ("dead", "No conversation found"));
        }
        other => panic!("{other:?}"),
    }
    assert!(stream.end().await.unwrap().is_good());
    assert_eq!(bridge.resume_id("s"), Some((ProviderName::Claude, "fresh".to_owned())));
    bridge.shutdown().await;
}

async fn questions() {
    let bridge = bridge(&[], quick());
    let mut stream = bridge.send(turn("s", &json!([{"permission":"p1"}, {"ask":"i1"}]))).await.unwrap();
    let Some(StreamEvent::Permission(ask)) = stream.next().await else { panic!("a question") };
    assert_eq!((ask.id.as_str(), ask.tool_name.as_str()), ("p1", "Bash"));
    let suggestion = json!({"type":"setMode","mode":"plan"});
    bridge.permission("p1", Verdict::Allow { updated: vec![suggestion.clone()] }).await.unwrap();
    let verdict = passed(&mut stream).await.value();
    assert_eq!(
        verdict["answer"],
        json!({"permissionId":"p1","behavior":"allow","updatedPermissions":[suggestion]})
    );
    let late = bridge.permission("p1", Verdict::Deny { message: None }).await.unwrap_err();
    assert_eq!(late.code(), "unknown_waiter");
    let Some(StreamEvent::Input(ask)) = stream.next().await else { panic!("a question") };
    let content = json!({"a":1}).as_object().cloned();
    let answer = Answer { action: InputAction::Submit, content, meta: None };
    bridge.input(&ask.id, answer.clone()).await.unwrap();
    let heard = passed(&mut stream).await.value();
    assert_eq!(heard["answer"], json!({"userInputId":"i1","action":"submit","content":{"a":1}}));
    assert_eq!(bridge.input("i1", answer).await.unwrap_err().code(), "unknown_waiter");
    assert!(stream.end().await.unwrap().is_good());
    bridge.shutdown().await;
    let gone = bridge.permission("p1", Verdict::Deny { message: None }).await.unwrap_err();
    assert_eq!(gone.code(), "not_running");
}

async fn steer() {
    let bridge = bridge(&[], quick());
    let steer = SteerSession {
        session_id: "s".to_owned(),
        provider: claude(),
        steer: Steer { prompt: "faster".to_owned(), files: Vec::new(), images: Vec::new() },
    };
    let refused = Steered::Refused { reason: "no_active_turn".to_owned() };
    assert_eq!(bridge.steer(&steer).await.unwrap(), refused);
    let mut stream = bridge.send(turn("s", &json!(["a", {"hang":true}]))).await.unwrap();
    passed(&mut stream).await;
    assert_eq!(bridge.steer(&steer).await.unwrap(), Steered::Accepted);
    match stream.next().await {
        Some(StreamEvent::Steered(heard)) => assert_eq!(heard, steer.steer),
        other => panic!("{other:?}"),
    }
    bridge.stop("s", &claude()).await.unwrap();
    assert_eq!(bridge.steer(&steer).await.unwrap(), refused);
    bridge.shutdown().await;
}

/// Answers when it is let, and counts how many wait at once.
struct Desk {
    gate: Semaphore,
    waiting: AtomicUsize,
    notices: Mutex<Vec<String>>,
}

impl Desk {
    fn new() -> Arc<Self> {
        let (waiting, notices) = (AtomicUsize::new(0), Mutex::default());
        Arc::new(Self { gate: Semaphore::new(0), waiting, notices })
    }
}

impl Reverse for Desk {
    fn call<'a>(&'a self, method: &'a str, params: &'a Value) -> BoxFuture<'a, Result<Value, String>> {
        Box::pin(async move {
            match method {
                "wait" => {
                    self.waiting.fetch_add(1, Ordering::SeqCst);
                    let _let = self.gate.acquire().await;
                    Ok(json!("waited"))
                }
                "double" => Ok(json!(params["n"].as_u64().unwrap() * 2)),
                other => Err(format!("no {other} here")),
            }
        })
    }

    fn noticed(&self, notice: Notice<'_>) {
        self.notices.lock().unwrap().push(format!("{notice:?}"));
    }
}

async fn reverse() {
    let desk = Desk::new();
    let limits = ReverseLimits { at_once: 2, within: Duration::from_secs(30) };
    let terms = Terms { reverse: limits, ..quick() };
    let bridge = Bridge::new(supervisor(), fake(&[]), terms, Arc::clone(&desk) as Arc<dyn Reverse>);
    let steps = json!([{"host":"double","params":{"n":21}}, {"host":"nothing"}]);
    let (said, _) = read(bridge.send(turn("s", &steps)).await.unwrap()).await;
    assert_eq!(said[0]["answer"]["ok"], 42);
    assert_eq!(said[1]["answer"]["error"], "no nothing here");
    let mut waiting = Vec::new();
    for session in ["a", "b"] {
        waiting.push(bridge.send(turn(session, &json!([{"host":"wait"}]))).await.unwrap());
    }
    while desk.waiting.load(Ordering::SeqCst) < 2 {
        tokio::task::yield_now().await;
    }
    // One more finds no place, and nothing else is held up by those that wait.
    let (said, _) = read(bridge.send(turn("c", &json!([{"host":"wait"}]))).await.unwrap()).await;
    assert_eq!(said[0]["answer"]["error"], "the host answers 2 questions at once");
    desk.gate.add_permits(2);
    for stream in waiting {
        assert_eq!(read(stream).await.0[0]["answer"]["ok"], "waited");
    }
    bridge.shutdown().await;
}

async fn reverse_late() {
    let desk = Desk::new();
    let limits = ReverseLimits { at_once: 2, within: millis(50) };
    let bridge = Bridge::new(supervisor(), fake(&[]), Terms { reverse: limits, ..quick() }, desk);
    let (said, _) = read(bridge.send(turn("s", &json!([{"host":"wait"}]))).await.unwrap()).await;
    assert_eq!(said[0]["answer"]["error"], "the host did not answer within 50ms");
    bridge.shutdown().await;
}

async fn irregular() {
    let desk = Desk::new();
    let bridge = Bridge::new(supervisor(), fake(&[]), quick(), Arc::clone(&desk) as Arc<dyn Reverse>);
    let steps = json!([
        {"raw":"not JSON"}, {"raw":"[1]"}, {"raw":"{\"no\":\"type\"}"},
        {"raw":"{\"type\":\"assistant\",\"id\":\"nobody\"}"}, {"raw":"{\"type\":\"end\",\"id\":\"nobody\"}"},
        {"raw":"{\"type\":\"error\",\"message\":\"Invalid request: what?\"}"}, {"raw":""},
        "still here",
    ]);
    let (said, end) = read(bridge.send(turn("s", &steps)).await.unwrap()).await;
    assert!(end.is_good());
    assert_eq!(said.len(), 1);
    assert_eq!(bridge.irregular(), Irregular { noise: 3, strays: 2, complaints: 1 });
    let notices = desk.notices.lock().unwrap().join("\n");
    assert!(notices.contains("not JSON") && notices.contains("Invalid request: what?"), "{notices}");
    bridge.shutdown().await;
}

async fn typed() {
    let bridge = bridge(&[], quick());
    let models = bridge.models(&ListModels { provider: claude(), api_key: None }).await.unwrap();
    let expected = ModelChoice {
        id: "m".into(),
        label: "Model".into(),
        cli_model: "model".into(),
        effort_levels: vec!["low".into()],
        supports_fast_mode: false,
        cursor_parameters: None,
    };
    assert_eq!(models, [expected]);
    let query = SlashQuery { cwd: None, additional_directories: Vec::new() };
    let commands = bridge.slash_commands(&ListSlashCommands { provider: claude(), query }).await.unwrap();
    assert_eq!(commands[0].name, "compact");
    let title = bridge.title(&title()).await.unwrap();
    assert_eq!(title, Title { title: "A title".into(), branch_name: Some("a-title".into()) });
    bridge.remember("s", &claude(), "claude-1");
    let meta = bridge.context_usage(usage()).await.unwrap();
    assert_eq!(serde_json::from_str::<Value>(&meta).unwrap(), json!({"usedTokens":1,"of":"claude-1"}));
    let unknown = ListModels { provider: ProviderName::Acp("nobody".into()), api_key: None };
    let refused = bridge.models(&unknown).await.unwrap_err();
    assert_eq!(refused.code(), "invalid_params");
    assert!(refused.to_string().contains("unknown provider: acp:nobody"), "{refused}");
    bridge.shutdown().await;
}

fn title() -> GenerateTitle {
    GenerateTitle {
        user_message: "hello".into(),
        branch_rename_prompt: None,
        generate_branch: true,
        claude_model: None,
        claude_environment: Vec::new(),
        agent_proxy: None,
        provider: None,
    }
}

fn usage() -> GetContextUsage {
    let query = ContextQuery {
        session_id: "s".into(),
        model: "m".into(),
        provider_session_id: None,
        cwd: None,
        agent_proxy: None,
    };
    GetContextUsage { provider: claude(), query }
}

async fn late() {
    let soon = millis(50);
    let waits = Waits {
        control: Duration::from_secs(20),
        stop: soon,
        steer: soon,
        goal: soon,
        slash_commands: soon,
        models: soon,
        context: soon,
        title: soon,
    };
    let silent = [
        "stopSession",
        "steerSession",
        "listSlashCommands",
        "listModels",
        "getContextUsage",
        "generateTitle",
    ];
    let quirks: Vec<String> = silent.iter().map(|method| format!("silent:{method}")).collect();
    let quirks: Vec<&str> = quirks.iter().map(String::as_str).collect();
    let bridge = bridge(&quirks, Terms { waits, ..quick() });
    bridge.ping().await.unwrap();
    let query = SlashQuery { cwd: None, additional_directories: Vec::new() };
    let steer = Steer { prompt: "p".into(), files: Vec::new(), images: Vec::new() };
    let steer = SteerSession { session_id: "s".into(), provider: claude(), steer };
    let errors = [
        bridge.stop("s", &claude()).await.unwrap_err(),
        bridge.steer(&steer).await.unwrap_err(),
        bridge.slash_commands(&ListSlashCommands { provider: claude(), query }).await.unwrap_err(),
        bridge.models(&ListModels { provider: claude(), api_key: None }).await.unwrap_err(),
        bridge.context_usage(usage()).await.unwrap_err(),
        bridge.title(&title()).await.unwrap_err(),
    ];
    for (error, method) in errors.into_iter().zip(silent) {
        assert_eq!(error.code(), "timeout");
        assert_eq!(error.to_string(), format!("`{method}` was not answered within 50ms"));
    }
    bridge.shutdown().await;
}

async fn too_long() {
    let bridge = bridge(&[], quick());
    let mut long = turn("s", &json!([]));
    long.prompt = "x".repeat(64 << 20);
    let error = bridge.send(long).await.unwrap_err();
    assert_eq!(error.code(), "too_long");
    assert!(bridge.send(turn("s", &json!([]))).await.unwrap().end().await.unwrap().is_good());
    bridge.shutdown().await;
}

async fn last_words() {
    let bridge = bridge(&[], quick());
    let steps = json!([{"flood":200,"bytes":1000}, {"die":0}]);
    let (said, end) = read(bridge.send(turn("s", &steps)).await.unwrap()).await;
    assert_eq!(said.len(), 200, "{end}");
    assert_eq!(end.code(), "sidecar_lost");
    bridge.shutdown().await;
}
