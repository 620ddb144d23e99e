//! Traces: what is recorded, what is left out and counted, and that it fits the schemas.

use libtest_mimic::Trial;
use outrigger_steerable::chat::Usage;
use outrigger_steerable::protocol::{
    EventKind, EventStatus, Session, Span, SpanKind, SpanStatus, TraceEvent, TraceStatus,
};
use outrigger_steerable::store::{
    MemoryLimits, NewSession, PAYLOAD_LIMIT, RECORD_LIMIT, Store, TEXT_LIMIT, TraceHead, TraceKey, TraceTree,
    Tracer,
};
use outrigger_steerable::tools::schema;
use serde_json::{Map, Value, json};

use crate::store_kit::{both, sql, trial};

const SESSION: &str = include_str!("../../schemas/AgentSession.schema.json");
const TRACE: &str = include_str!("../../schemas/HarnessTrace.schema.json");
const SPAN: &str = include_str!("../../schemas/TraceSpan.schema.json");
const EVENT: &str = include_str!("../../schemas/TraceEvent.schema.json");

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("a_run_is_recorded_as_it_happened", recorded),
        trial("a_trace_fits_the_schemas_with_all_its_kinds_and_words", fits_schemas),
        trial("a_stream_of_the_same_name_has_the_trace_of_the_last", by_stream),
        trial("a_run_that_is_dropped_was_cancelled", dropped),
        trial("many_threads_record_one_run_and_every_event_has_its_place", many_threads),
        trial("a_trace_takes_ten_thousand_records_and_counts_the_rest", record_limit),
        trial("texts_and_payloads_are_cut_at_their_limits", cut),
        trial("secrets_never_reach_a_trace", secrets),
        trial("memory_keeps_the_newest_traces", newest),
        trial("a_file_keeps_the_last_ten_thousand_traces", kept),
        trial("memory_for_traces_is_bounded_and_runs_go_on", bounded),
    ]
}

fn members(value: Value) -> Map<String, Value> {
    value.as_object().expect("an object").clone()
}

fn head() -> TraceHead {
    TraceHead {
        stream_id: Some("str_1".to_owned()),
        user_id: Some("local".to_owned()),
        chat_id: Some("c1".to_owned()),
        session_id: Some("s1".to_owned()),
        model_id: Some("m".to_owned()),
    }
}

const USAGE: Usage =
    Usage { prompt_tokens: 7, completion_tokens: 3, total_tokens: 10, cached_prompt_tokens: 0 };

async fn fetch(store: &Store, tracer: &Tracer) -> TraceTree {
    store.trace(TraceKey::Trace(tracer.id())).await.expect("a store").expect("the trace")
}

async fn recorded() {
    let (_folder, stores) = both();
    for store in stores {
        let tracer = store.begin_trace(head());
        assert!(tracer.id().starts_with("trace_") && tracer.id().len() == 38, "{}", tracer.id());
        assert_eq!(store.active_traces(), 1);
        let run = tracer.span("agent.run", SpanKind::Custom, None, Map::new());
        let model =
            tracer.span("llm.request", SpanKind::Llm, Some(run), members(json!({"model": "m", "round": 1})));
        tracer.event(EventKind::LlmRequest, "llm.request", None, Map::new());

        let live = fetch(&store, &tracer).await;
        assert_eq!(live.trace.status, TraceStatus::Running);
        assert_eq!((live.trace.span_count, live.trace.event_count), (2, 1));
        assert_eq!(live.spans[1].status, SpanStatus::Running);

        tracer.end_span(model, SpanStatus::Error, members(json!({"status": 500, "round": 2})));
        tracer.end_span(model, SpanStatus::Ok, Map::new());
        tracer.event(
            EventKind::Error,
            "llm.error",
            Some(EventStatus::Error),
            members(json!({"kind": "server"})),
        );
        tracer.end_span(run, SpanStatus::Ok, Map::new());
        tracer.finish(TraceStatus::Completed, None, USAGE).await;
        tracer.finish(TraceStatus::Error, Some("too late".to_owned()), USAGE).await;
        tracer.event(EventKind::Log, "too late", None, Map::new());
        assert_eq!(store.active_traces(), 0);

        let tree = fetch(&store, &tracer).await;
        let trace = &tree.trace;
        assert_eq!(
            (&trace.status, trace.had_error, &trace.error_message),
            (&TraceStatus::Completed, true, &None)
        );
        assert_eq!((trace.span_count, trace.event_count, trace.total_tokens), (2, 2, Some(10)));
        assert_eq!((trace.user_id.as_deref(), trace.chat_id.as_deref()), (Some("local"), Some("c1")));
        assert_eq!((trace.session_id.as_deref(), trace.model_id.as_deref()), (Some("s1"), Some("m")));
        assert!(trace.updated_at >= trace.created_at);
        let [run, model] = &tree.spans[..] else { panic!("{:?}", tree.spans) };
        assert_eq!((run.span_id.as_str(), &run.parent_span_id), ("span_1", &None));
        assert_eq!(model.parent_span_id.as_deref(), Some("span_1"));
        assert_eq!(model.status, SpanStatus::Error, "the first end counts");
        assert_eq!(Value::Object(model.attrs.clone()), json!({"model": "m", "round": 2, "status": 500}));
        assert!(model.start_ms >= run.start_ms && model.end_ms >= Some(model.start_ms));
        let sequences: Vec<u64> = tree.events.iter().map(|event| event.sequence).collect();
        assert_eq!(sequences, [0, 1]);
        assert_eq!(tree.events[1].payload, Some(members(json!({"kind": "server"}))));
    }
}

fn assert_fits(schema: &str, value: &impl serde::Serialize) {
    let schema: Value = serde_json::from_str(schema).expect("a schema");
    let value = serde_json::to_value(value).expect("a value");
    assert_eq!(schema::check_value(&schema, &value), Ok(()), "{value}");
}

async fn fits_schemas() {
    let kinds = ["llm", "tool", "policy", "budget", "retry", "completion", "transport", "storage", "custom"];
    let ends = [SpanStatus::Ok, SpanStatus::Error, SpanStatus::Timeout, SpanStatus::Cancelled];
    let events = [
        "lifecycle",
        "policy",
        "budget",
        "retry",
        "tool_call",
        "tool_result",
        "llm_request",
        "llm_response",
        "completion",
        "error",
        "log",
        "custom",
    ];
    let (_folder, stores) = both();
    for store in stores {
        for status in ["running", "completed", "error", "cancelled", "budget_exhausted"] {
            let tracer = store.begin_trace(if status == "error" { TraceHead::default() } else { head() });
            for (kind, end) in kinds.iter().zip(ends.iter().cycle()) {
                let span =
                    tracer.span("x", SpanKind::from_word(kind), None, members(json!({"a": [1, null]})));
                tracer.end_span(span, end.clone(), Map::new());
            }
            tracer.span("open", SpanKind::Custom, None, Map::new());
            for kind in events {
                tracer.event(EventKind::from_word(kind), "x", Some(EventStatus::Ok), Map::new());
                tracer.event(EventKind::from_word(kind), "x", None, members(json!({"a": {"b": 1}})));
            }
            if status != "running" {
                let error = (status == "error").then(|| "é".repeat(3000));
                tracer.finish(TraceStatus::from_word(status), error, USAGE).await;
            }
            let tree = fetch(&store, &tracer).await;
            assert_eq!((tree.spans.len(), tree.events.len()), (10, 24));
            assert_fits(TRACE, &tree.trace);
            tree.spans.iter().for_each(|span: &Span| assert_fits(SPAN, span));
            tree.events.iter().for_each(|event: &TraceEvent| assert_fits(EVENT, event));
        }
        let session: Session = store.create_session(NewSession::of_chat("c")).await.expect("a session");
        assert_fits(SESSION, &session);
    }
    // The schemas can say no.
    let schema: Value = serde_json::from_str(EVENT).expect("a schema");
    let strange =
        json!({"traceId": "t", "kind": "stage_start", "name": "x", "sequence": 0, "timestampMs": 0});
    assert!(schema::check_value(&schema, &strange).is_err());
}

async fn by_stream() {
    let (_folder, stores) = both();
    for store in stores {
        let first = store.begin_trace(head());
        first.finish(TraceStatus::Completed, None, USAGE).await;
        let second = store.begin_trace(head());
        let found = store.trace(TraceKey::Stream("str_1")).await.unwrap().expect("a trace");
        assert_eq!(found.trace.trace_id, second.id());
        assert!(store.trace(TraceKey::Stream("str_2")).await.unwrap().is_none());
        assert!(store.trace(TraceKey::Trace("str_1")).await.unwrap().is_none());
    }
}

async fn dropped() {
    let (_folder, stores) = both();
    for store in stores {
        let tracer = store.begin_trace(head());
        let copy = tracer.clone();
        tracer.span("agent.run", SpanKind::Custom, None, Map::new());
        drop(tracer);
        assert_eq!(store.active_traces(), 1);
        drop(copy);
        assert_eq!(store.active_traces(), 0);
        let tree = store.trace(TraceKey::Stream("str_1")).await.unwrap().expect("the trace");
        assert_eq!(tree.trace.status, TraceStatus::Cancelled);
        assert_eq!(tree.trace.error_message.as_deref(), Some("the run was dropped before it ended"));
        assert_eq!(tree.spans[0].status, SpanStatus::Cancelled);
    }
}

async fn many_threads() {
    let (_folder, stores) = both();
    for store in stores {
        let tracer = store.begin_trace(head());
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..200 {
                        let span = tracer.span("x", SpanKind::Custom, None, Map::new());
                        tracer.event(EventKind::Log, "x", None, Map::new());
                        tracer.end_span(span, SpanStatus::Ok, Map::new());
                    }
                });
            }
        });
        tracer.finish(TraceStatus::Completed, None, USAGE).await;
        let tree = fetch(&store, &tracer).await;
        let sequences: Vec<u64> = tree.events.iter().map(|event| event.sequence).collect();
        assert_eq!(sequences, (0..1600).collect::<Vec<u64>>());
        assert!(tree.spans.iter().all(|span| span.status == SpanStatus::Ok));
        let names: std::collections::HashSet<&str> =
            tree.spans.iter().map(|span| span.span_id.as_str()).collect();
        assert_eq!(names.len(), 1600);
    }
}

async fn record_limit() {
    let (_folder, stores) = both();
    for store in stores {
        for beyond in [0, 1, 500] {
            let tracer = store.begin_trace(head());
            let run = tracer.span("agent.run", SpanKind::Custom, None, Map::new());
            for number in 1..RECORD_LIMIT {
                tracer.event(EventKind::Log, "x", None, Map::new());
                if number % 4000 == 0 {
                    // Reading writes what waits, so that the queue is not what limits here.
                    fetch(&store, &tracer).await;
                }
            }
            for _ in 0..beyond {
                tracer.event(EventKind::Log, "x", None, Map::new());
            }
            if beyond > 0 {
                let lost = tracer.span("lost", SpanKind::Custom, Some(run), Map::new());
                tracer.end_span(lost, SpanStatus::Ok, Map::new());
            }
            tracer.end_span(run, SpanStatus::Ok, Map::new());
            tracer.finish(TraceStatus::Completed, None, USAGE).await;
            let tree = fetch(&store, &tracer).await;
            assert_eq!(tree.spans.len(), 1);
            assert_eq!(tree.spans[0].status, SpanStatus::Ok, "an end always fits");
            assert_eq!(tree.trace.event_count, tree.events.len() as u64);
            let last = tree.events.last().expect("events");
            if beyond == 0 {
                assert_eq!((tree.events.len(), last.name.as_str()), (RECORD_LIMIT - 1, "x"));
            } else {
                assert_eq!((tree.events.len(), last.name.as_str()), (RECORD_LIMIT, "trace.dropped"));
                assert_eq!(last.payload, Some(members(json!({"events": beyond, "spans": 1}))));
                assert_eq!(last.sequence, RECORD_LIMIT as u64 - 1);
            }
        }
    }
}

async fn cut() {
    let (_folder, stores) = both();
    for store in stores {
        let tracer = store.begin_trace(head());
        let text = |length: usize| members(json!({"text": "x".repeat(length)}));
        tracer.event(EventKind::Log, "fits", None, text(TEXT_LIMIT));
        tracer.event(EventKind::Log, "one more", None, text(TEXT_LIMIT + 1));
        // A letter of two bytes across the limit, and a secret that begins before it.
        let across = format!("{}é", "x".repeat(TEXT_LIMIT - 1));
        tracer.event(EventKind::Log, "across", None, members(json!({"text": across})));
        let secret = format!("{} sk-proj-0123456789abcdef", "x".repeat(TEXT_LIMIT - 10));
        tracer.event(EventKind::Log, "secret", None, members(json!({"text": secret})));
        let wide: Map<String, Value> =
            (0..20).map(|n| (format!("m{n:02}"), "x".repeat(TEXT_LIMIT).into())).collect();
        tracer.event(EventKind::Log, "wide", None, wide);
        tracer.event(EventKind::Log, &"n".repeat(1000), None, Map::new());
        tracer.finish(TraceStatus::Completed, None, USAGE).await;
        let tree = fetch(&store, &tracer).await;
        let payload = |number: usize| tree.events[number].payload.clone().expect("a payload");
        assert_eq!(payload(0), text(TEXT_LIMIT));
        assert_eq!(payload(1)["text"], format!("{}… (8193 bytes)", "x".repeat(TEXT_LIMIT)));
        assert_eq!(payload(2)["text"], format!("{}… (8193 bytes)", "x".repeat(TEXT_LIMIT - 1)));
        let kept = payload(3)["text"].as_str().expect("a text").to_owned();
        assert!(kept.contains(" ***") && !kept.contains("sk-"), "{}", &kept[TEXT_LIMIT - 20..]);
        assert_eq!(payload(4)["cutMembers"], 13);
        assert!(Value::Object(payload(4)).to_string().len() <= PAYLOAD_LIMIT + 64);
        assert_eq!(tree.events[5].name.len(), 256);
    }
}

async fn secrets() {
    let (folder, stores) = both();
    let key = "sk-proj-abcdefghij0123456789";
    for store in stores {
        let tracer = store.begin_trace(head());
        let attrs = members(json!({"headers": {"Authorization": key}, "url": format!("https://x/?k={key}")}));
        let span = tracer.span("llm.request", SpanKind::Llm, None, attrs);
        tracer.end_span(
            span,
            SpanStatus::Error,
            members(json!({"error": format!("bad key {key}"), "promptTokens": 5})),
        );
        tracer.event(
            EventKind::Log,
            "x",
            None,
            members(json!({"argv": ["curl", "-H", format!("Bearer {key}")]})),
        );
        tracer.finish(TraceStatus::Error, Some(format!("401 for {key}")), USAGE).await;
        let tree = fetch(&store, &tracer).await;
        let text = serde_json::to_string(&tree).unwrap();
        assert!(!text.contains("abcdefghij"), "{text}");
        assert_eq!(tree.trace.error_message.as_deref(), Some("401 for ***"));
        assert_eq!(
            Value::Object(tree.spans[0].attrs.clone()),
            json!({"headers": {"Authorization": "***"}, "url": "https://x/?k=***", "error": "bad key ***", "promptTokens": 5})
        );
    }
    for entry in std::fs::read_dir(folder.path()).unwrap() {
        let bytes = std::fs::read(entry.unwrap().path()).unwrap();
        assert!(!bytes.windows(10).any(|window| window == b"abcdefghij"), "in the file");
    }
}

async fn newest() {
    let store = Store::memory(MemoryLimits { traces: 3, ..MemoryLimits::STANDARD });
    let mut ids = Vec::new();
    for number in 0..4 {
        let head = TraceHead { stream_id: Some(format!("str_{number}")), ..head() };
        let tracer = store.begin_trace(head);
        tracer.finish(TraceStatus::Completed, None, USAGE).await;
        ids.push(tracer.id().to_owned());
        // At the limit everything is there; one past it the oldest goes.
        assert!(store.trace(TraceKey::Trace(&ids[0])).await.unwrap().is_some() || number == 3);
    }
    assert!(store.trace(TraceKey::Trace(&ids[0])).await.unwrap().is_none());
    assert!(store.trace(TraceKey::Stream("str_0")).await.unwrap().is_none());
    for (number, id) in ids.iter().enumerate().skip(1) {
        assert!(store.trace(TraceKey::Trace(id)).await.unwrap().is_some(), "{number}");
    }
}

async fn kept() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store.db");
    let store = Store::open(&path).expect("a store");
    let mut ids = Vec::new();
    for _ in 0..3 {
        let tracer = store.begin_trace(head());
        tracer.span("x", SpanKind::Custom, None, Map::new());
        tracer.finish(TraceStatus::Completed, None, USAGE).await;
        ids.push(tracer.id().to_owned());
    }
    drop(store);
    // As if ten thousand others had come between them.
    sql(
        &path,
        "UPDATE traces SET number = number + 498 WHERE number < 3; UPDATE spans SET trace = trace + 498 WHERE trace < 3;
         UPDATE traces SET number = 10499 WHERE number = 3; UPDATE spans SET trace = 10499 WHERE trace = 3;
         UPDATE traces SET number = 501 WHERE number = 500; UPDATE spans SET trace = 501 WHERE trace = 500;
         UPDATE traces SET number = 500 WHERE number = 499; UPDATE spans SET trace = 500 WHERE trace = 499;",
    );
    let store = Store::open(&path).expect("a store");
    let tracer = store.begin_trace(head());
    tracer.finish(TraceStatus::Completed, None, USAGE).await;
    assert!(store.trace(TraceKey::Trace(&ids[0])).await.unwrap().is_none(), "ten thousand are newer");
    for id in &ids[1..] {
        let tree = store.trace(TraceKey::Trace(id)).await.unwrap().expect("the trace");
        assert_eq!(tree.spans.len(), 1);
    }
}

async fn bounded() {
    let store = Store::memory(MemoryLimits { trace_bytes: 100_000, ..MemoryLimits::STANDARD });
    let text = members(json!({"text": "x".repeat(TEXT_LIMIT)}));
    let old = store.begin_trace(head());
    for _ in 0..10 {
        old.event(EventKind::Log, "x", None, text.clone());
    }
    old.finish(TraceStatus::Completed, None, USAGE).await;
    let tracer = store.begin_trace(head());
    for _ in 0..20 {
        tracer.event(EventKind::Log, "x", None, text.clone());
    }
    tracer.finish(TraceStatus::Completed, None, USAGE).await;
    assert!(store.trace(TraceKey::Trace(old.id())).await.unwrap().is_none(), "what is over makes room");
    let tree = fetch(&store, &tracer).await;
    let last = tree.events.last().expect("events");
    assert_eq!((tree.events.len(), last.name.as_str()), (12, "trace.dropped"));
    assert_eq!(last.payload, Some(members(json!({"events": 9, "spans": 0}))));
}
