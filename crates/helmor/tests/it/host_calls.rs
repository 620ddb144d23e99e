//! Everything else that is said to a sidecar, and what it asks of its host.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use libtest_mimic::Trial;
use outrigger_helmor::BoxFuture;
use outrigger_helmor::host::{
    Bridge, Irregular, ModelChoice, Notice, Reverse, ReverseLimits, Steered, StreamEvent, Terms, Title, Waits,
};
use outrigger_helmor::protocol::{
    ContextQuery, GenerateTitle, GetContextUsage, ListModels, ListSlashCommands, ProviderName, SlashQuery,
    Steer, SteerSession,
};
use outrigger_helmor::provider::{Answer, InputAction, Verdict};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::host_kit::{bridge, fake, millis, passed, quick, read, supervisor, trial, turn};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("questions_of_the_agent_are_answered_and_late_answers_are_refused", questions),
        trial("a_steer_reaches_the_turn_and_without_one_is_refused", steer),
        trial("the_sidecar_may_ask_its_host_and_not_too_much_at_once", reverse),
        trial("an_answer_of_the_host_that_takes_too_long_is_an_error_for_the_sidecar", reverse_late),
        trial("garbage_and_events_for_nobody_are_counted_and_do_no_harm", irregular),
        trial("requests_with_one_answer_have_types", typed),
        trial("each_request_that_is_not_answered_ends_with_its_own_name", late),
        trial("a_prompt_that_is_longer_than_a_line_is_refused_and_the_session_is_free", too_long),
    ]
}

fn claude() -> ProviderName {
    ProviderName::Claude
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
