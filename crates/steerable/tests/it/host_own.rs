//! The host with our own sidecar: every method, scripted streams, a turn that asks the host, and a sidecar that is killed.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use libtest_mimic::Trial;
use outrigger_steerable::chat::{BoxFuture, ToolResult};
use outrigger_steerable::host::{
    Answers, ApprovalRequest, Consent, Decision, Done, Fork, Invocation, NewSession, Nobody, Questions,
    Reverse, SessionFilter, Sidecar, SidecarSpec, SteerBy, Steered, StreamEnd, StreamEvent, StreamId,
    StreamLimits, Terms, ToolAnswer, ToolInvocation, TraceOf, Until, Verdict,
};
use outrigger_supervise::launch::Status;
use serde_json::{Map, Value, json};
use tempfile::TempDir;

use crate::host_kit::{again, own_child, quick, read, supervisor, trial};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("our_own_sidecar_answers_every_method_of_the_host", methods),
        trial("our_own_sidecar_streams_to_the_host_and_is_cancelled", streams),
        trial("twenty_streams_of_our_own_sidecar_lose_nothing_with_slow_readers", twenty),
        trial("a_turn_of_our_own_sidecar_calls_tools_and_asks_the_person_through_the_host", turn),
        trial("our_own_sidecar_drains_when_the_host_stops_it", shutdown),
        trial("our_own_sidecar_is_killed_and_its_sessions_are_resumed", killed),
    ]
}

/// A folder with a script of the model in it.
struct Script {
    folder: TempDir,
}

impl Script {
    fn new(answers: &[Value]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let lines: Vec<String> = answers.iter().map(Value::to_string).collect();
        std::fs::write(folder.path().join("script.jsonl"), lines.join("\n")).expect("a script");
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn stream(&self) -> Value {
        let file = self.path("script.jsonl");
        json!({"provider":"scripted","model":"m","baseUrl":file,"messages":[{"role":"user","content":"Go."}]})
    }
}

fn own() -> SidecarSpec {
    own_child("__sidecar")
}

async fn start(terms: Terms) -> Sidecar {
    Sidecar::start(&supervisor(), &own(), terms, Arc::new(Nobody)).await.expect("our sidecar")
}

async fn methods() {
    let sidecar = start(quick()).await;
    let health = sidecar.ping().await.expect("a health");
    assert_eq!((health.status.as_str(), health.protocol_version.as_str()), ("ok", "0.1.0"));
    assert!(sidecar.hello().expect("a hello").version == health.version);

    let made = sidecar.create_session(&NewSession::of_chat("chat")).await.expect("a session");
    assert_eq!(sidecar.resume_session(&made.session_id).await.expect("a session").chat_id, "chat");
    let listed = sidecar.sessions(&SessionFilter::default()).await.expect("sessions");
    assert_eq!(listed.len(), 1);
    let fork =
        Fork { record_id: made.session_id.clone(), until: Until::End, new_record_id: None, label: None };
    let forked = sidecar.fork(&fork).await.expect("a copy");
    assert_eq!(forked.source_record_id.as_deref(), Some(&*made.session_id));
    assert_eq!(sidecar.messages(&forked.record_id).await.expect("a transcript").messages.len(), 0);

    let level = json!({"logLevel":"ERROR","retryMaxAttempts":2});
    sidecar.set_config(level.as_object().expect("an object")).await.expect("a success");
    assert_eq!(sidecar.config().await.expect("settings")["retryMaxAttempts"], 2);
    let wrong = json!({"colour":"red"});
    let error = sidecar.set_config(wrong.as_object().expect("an object")).await.expect_err("an error");
    assert!(error.kind() == Some("invalid_params") && error.to_string().contains("colour"), "{error}");

    let tools = sidecar.tools().await.expect("tools");
    assert!(tools.iter().any(|tool| tool.name == "todo_write"), "{tools:?}");
    let call = Invocation {
        name: "fly".into(),
        arguments: Map::new(),
        id: None,
        consent: Consent::None,
        context: Map::new(),
    };
    assert!(!sidecar.invoke_tool(&call).await.expect("a result").success);
    let nobody = StreamId::new("nobody");
    sidecar.cancel(&nobody).await.expect("a success");
    let steered = sidecar.steer(&nobody, "left", SteerBy::Boundary).await.expect("an answer");
    assert_eq!(steered, Steered::Refused("stream_not_active".into()));
    let error = sidecar.trace(&TraceOf::Trace("trace_nobody".into())).await.expect_err("an error");
    assert_eq!(error.kind(), Some("invalid_request"));
    assert_eq!(sidecar.irregular().noise, 0);
}

async fn streams() {
    let script = Script::new(&[json!({"chunks":[
        {"reasoningDelta":"hm"}, {"delta":"Grüße, "}, {"delta":"世界"},
        {"toolCall":{"id":"c","name":"f","arguments":{"a":1}}},
        {"usage":{"promptTokens":7,"completionTokens":5,"totalTokens":12}}, {"finishReason":"stop"},
    ]})]);
    let sidecar = start(quick()).await;
    let mut stream = sidecar.stream(&script.stream()).await.expect("a stream");
    let id = stream.id().clone();
    let (mut text, mut thought, mut calls, mut usage, mut finish) =
        (String::new(), String::new(), 0, None, None);
    let end = loop {
        match stream.next().await.expect("an end") {
            StreamEvent::Chunk(chunk) => {
                text.push_str(chunk.delta.as_deref().unwrap_or_default());
                thought.push_str(chunk.reasoning_delta.as_deref().unwrap_or_default());
                calls += usize::from(chunk.tool_call.is_some());
                usage = usage.or(chunk.usage);
                finish = finish.or(chunk.finish_reason);
                assert!(chunk.other.is_empty(), "{:?}", chunk.other);
            }
            StreamEvent::Missed(missed) => panic!("{missed} missed"),
            StreamEvent::End(end) => break end,
        }
    };
    assert!(matches!(&end, StreamEnd::Done(done) if done.ok), "{end:?}");
    assert_eq!(
        (text.as_str(), thought.as_str(), calls, finish.as_deref()),
        ("Grüße, 世界", "hm", 1, Some("stop"))
    );
    assert_eq!(usage.expect("usage").total_tokens, 12);
    let traced = sidecar.trace(&TraceOf::Stream(id)).await.expect("a trace");
    assert!(traced.spans.iter().any(|span| span.name == "llm.request"), "{traced:?}");

    let slow = Script::new(&[json!({"chunks":[{"delta":"a"},{"sleepMs":600_000},{"delta":"b"}]})]);
    let mut stream = sidecar.stream(&slow.stream()).await.expect("a stream");
    assert!(
        matches!(stream.next().await, Some(StreamEvent::Chunk(chunk)) if chunk.delta.as_deref() == Some("a"))
    );
    sidecar.cancel(stream.id()).await.expect("a success");
    assert!(matches!(read(stream).await, (_, 0, StreamEnd::Done(Done { ok: false, cancelled: true, .. }))));
    let dead = Script::new(&[json!({"error":{"kind":"auth","message":"wrong key","status":401}})]);
    let (_, _, end) = read(sidecar.stream(&dead.stream()).await.expect("a stream")).await;
    let StreamEnd::Failed(failure) = end else { panic!("{end:?}") };
    assert_eq!((failure.kind.as_str(), failure.retryable), ("auth", Some(false)));
}

async fn twenty() {
    let chunks: Vec<Value> = (0..500).map(|number| json!({"delta":format!("{number} ")})).collect();
    let script = Script::new(&[json!({"chunks":chunks})]);
    let sidecar = start(Terms { stream: StreamLimits { chunks: 4, bytes: 1 << 16 }, ..quick() }).await;
    let expected: String = (0..500).map(|number| format!("{number} ")).collect();
    let mut readers = tokio::task::JoinSet::new();
    // Nobody may wait for the answer to one stream without reading the others, so they are opened side by side too.
    for _ in 0..20 {
        let (sidecar, params) = (sidecar.clone(), script.stream());
        readers.spawn(async move {
            let mut stream = sidecar.stream(&params).await.expect("a stream");
            let mut text = String::new();
            loop {
                match stream.next().await.expect("an end") {
                    StreamEvent::Chunk(chunk) => text.push_str(chunk.delta.as_deref().unwrap_or_default()),
                    StreamEvent::Missed(missed) => panic!("{missed} missed"),
                    StreamEvent::End(end) => return (text, end),
                }
                tokio::task::yield_now().await;
            }
        });
    }
    let mut complete = 0;
    while let Some(read) = readers.join_next().await {
        let (text, end) = read.expect("a reader");
        assert_eq!(text == expected, matches!(end, StreamEnd::Done(done) if done.ok));
        complete += usize::from(text == expected);
    }
    assert_eq!(complete, 20);
}

/// A host with a tool and a person.
struct Host {
    asked: Arc<Mutex<Vec<String>>>,
}

impl Host {
    fn note(&self, what: String) {
        self.asked.lock().expect("a lock").push(what);
    }
}

impl Reverse for Host {
    fn invoke(&self, call: ToolInvocation) -> BoxFuture<'_, ToolAnswer> {
        Box::pin(async move {
            self.note(format!("invoke {} {}", call.name, Value::from(call.arguments)));
            ToolAnswer::Result(ToolResult::success(Map::new()).with("sum", 42))
        })
    }

    fn approve(&self, ask: ApprovalRequest) -> BoxFuture<'_, Decision> {
        Box::pin(async move {
            self.note(format!("approve {} {}", ask.tool_name, ask.mode));
            Decision::new(Verdict::AllowOnce)
        })
    }

    fn ask(&self, questions: Questions) -> BoxFuture<'_, Result<Answers, String>> {
        Box::pin(async move {
            self.note(format!("ask {}", questions.questions[0].question));
            Ok(questions.questions.into_iter().map(|question| (question.id, "blue".into())).collect())
        })
    }
}

async fn turn() {
    let call = |id: &str, name: &str, arguments: Value| json!({"toolCall":{"id":id,"name":name,"arguments":arguments}});
    let script = Script::new(&[
        json!({"chunks":[call("c1", "add_up", json!({"a":40,"b":2})), {"finishReason":"tool_calls"}]}),
        json!({"chunks":[call("c2", "ask_user", json!({"questions":[{"id":"q","question":"Which colour?"}]})), {"finishReason":"tool_calls"}]}),
        json!({"chunks":[{"delta":"It is 42 and blue."},{"finishReason":"stop"}]}),
    ]);
    let asked = Arc::new(Mutex::new(Vec::new()));
    let host = Arc::new(Host { asked: Arc::clone(&asked) });
    let sidecar = Sidecar::start(&supervisor(), &own(), quick(), host).await.expect("our sidecar");
    let mut params = script.stream();
    params["useCoreLoop"] = true.into();
    params["askUser"] = true.into();
    params["recordId"] = "rec_turn".into();
    params["approval"] = json!({"mode":"host"});
    params["tools"] = json!([{"type":"function","function":{"name":"add_up","description":"Adds.","parameters":{"type":"object","properties":{}}}}]);
    let mut stream = sidecar.stream(&params).await.expect("a stream");
    let (mut text, mut results) = (String::new(), Vec::new());
    let end = loop {
        match stream.next().await.expect("an end") {
            StreamEvent::Chunk(chunk) => {
                text.push_str(chunk.delta.as_deref().unwrap_or_default());
                results.extend(chunk.tool_result.map(|result| (result.name, result.success)));
            }
            StreamEvent::Missed(missed) => panic!("{missed} missed"),
            StreamEvent::End(end) => break end,
        }
    };
    let StreamEnd::Done(done) = end else { panic!("{end:?}") };
    assert_eq!(
        (done.ok, done.status.as_deref(), done.record_id.as_deref()),
        (true, Some("completed"), Some("rec_turn"))
    );
    assert_eq!(text, "It is 42 and blue.");
    assert_eq!(results, [("add_up".to_owned(), true), ("ask_user".to_owned(), true)]);
    let asked = asked.lock().expect("a lock").clone();
    assert_eq!(asked[..2], ["approve add_up other", r#"invoke add_up {"a":40,"b":2}"#], "{asked:?}");
    assert_eq!(asked.last().map(String::as_str), Some("ask Which colour?"), "{asked:?}");
    let transcript = sidecar.messages("rec_turn").await.expect("a transcript");
    let roles: Vec<&str> =
        transcript.messages.iter().filter_map(|message| message["role"].as_str()).collect();
    assert_eq!(roles, ["user", "assistant", "tool", "assistant", "tool", "assistant"]);
    let traced = sidecar.trace(&TraceOf::Trace(done.trace_id.expect("a trace"))).await.expect("a trace");
    assert!(traced.spans.iter().any(|span| span.name == "agent.run"), "{traced:?}");
}

async fn shutdown() {
    let slow = Script::new(&[json!({"chunks":[{"delta":"a"},{"sleepMs":600_000}]})]);
    let sidecar = start(quick()).await;
    let mut stream = sidecar.stream(&slow.stream()).await.expect("a stream");
    assert!(matches!(stream.next().await, Some(StreamEvent::Chunk(_))));
    let report = sidecar.shutdown().await.expect("a report");
    assert_eq!(report.status, Some(Status::Code(0)));
    assert!(matches!(read(stream).await.2, StreamEnd::Done(done) if done.cancelled));

    let sidecar = start(quick()).await;
    assert_eq!(sidecar.shutdown_now().await.expect("a report").status, Some(Status::Code(0)));
}

async fn killed() {
    let script = Script::new(&[
        json!({"chunks":[{"delta":"first"}]}),
        json!({"chunks":[{"delta":"second"},{"sleepMs":600_000}]}),
    ]);
    let storage = script.path("store.sqlite");
    let spec = own().args(["--storage-path".as_ref(), storage.as_os_str()]);
    let terms = Terms { restart: again(), ..quick() };
    let sidecar = Sidecar::start(&supervisor(), &spec, terms, Arc::new(Nobody)).await.expect("our sidecar");
    let session = NewSession { session_id: Some("sess_kept".into()), ..NewSession::of_chat("chat") };
    sidecar.create_session(&session).await.expect("a session");
    let mut params = script.stream();
    params["useCoreLoop"] = true.into();
    params["sessionId"] = "sess_kept".into();
    let (text, end) = sidecar.stream(&params).await.expect("a stream").text().await;
    assert!(text == "first" && matches!(end, Some(StreamEnd::Done(done)) if done.ok));

    params["resume"] = true.into();
    let mut stream = sidecar.stream(&params).await.expect("a stream");
    assert!(
        matches!(stream.next().await, Some(StreamEvent::Chunk(chunk)) if chunk.delta.as_deref() == Some("second"))
    );
    let pid = i32::try_from(sidecar.pid().expect("a process")).expect("a small number");
    let pid = rustix::process::Pid::from_raw(pid).expect("a process");
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).expect("a signal");
    let (_, _, end) = read(stream).await;
    let StreamEnd::Lost(lost) = end else { panic!("{end:?}") };
    assert!(lost.report.is_some(), "{lost}");
    sidecar.lost().await;
    sidecar.ready().await.expect("another process");
    assert_eq!(sidecar.resume_session("sess_kept").await.expect("the session").chat_id, "chat");
    let transcript = sidecar.messages("sess_kept").await.expect("a transcript");
    let contents: Vec<&str> =
        transcript.messages.iter().filter_map(|message| message["content"].as_str()).collect();
    assert_eq!(contents[..2], ["Go.", "first"], "{contents:?}");
}
