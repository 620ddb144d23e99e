//! How a trace is exported to OpenTelemetry.

use libtest_mimic::Trial;
use outrigger_steerable::chat::Usage;
use outrigger_steerable::protocol::{Privacy, TraceStatus};
use outrigger_steerable::store::{MemoryLimits, Store, TraceHead, TraceKey, TraceTree, otlp};
use serde_json::json;

use crate::store_kit::trial;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("a_trace_is_exported_in_the_words_of_opentelemetry", exported),
        trial("metadata_leaves_out_what_was_said", exported_metadata),
        trial("a_run_without_spans_is_exported_as_one", exported_run),
    ]
}

/// A trace of fixed times.
fn sample() -> TraceTree {
    serde_json::from_value(json!({
        "trace": {
            "traceId": "trace_0123456789abcdef0123456789abcdef", "userId": "local", "sessionId": "s1",
            "status": "completed", "durationMs": 30, "hadError": true, "eventCount": 1, "spanCount": 4,
            "totalTokens": 12, "modelId": "gpt-x", "startedAtMs": 1_790_000_000_000_u64,
            "createdAt": "2026-09-21T13:33:20.000000+00:00", "updatedAt": "2026-09-21T13:33:20.030000+00:00",
        },
        "spans": [
            {"spanId": "span_1", "name": "agent.run", "kind": "custom", "startMs": 1_790_000_000_000_u64,
             "endMs": 1_790_000_000_030_u64, "status": "ok", "attrs": {"provider": "google", "model": "gpt-x"}},
            {"spanId": "span_2", "parentSpanId": "span_1", "name": "llm.request", "kind": "llm",
             "startMs": 1_790_000_000_001_u64, "endMs": 1_790_000_000_010_u64, "status": "ok",
             "attrs": {"provider": "openai-responses", "model": "gpt-x", "maxTokens": 100, "temperature": 1,
                       "finishReason": "stop", "promptTokens": 9, "completionTokens": 3, "totalTokens": 12,
                       "cachedPromptTokens": 4, "round": 1, "firstTokenMs": 2.5}},
            {"spanId": "span_3", "parentSpanId": "span_1", "name": "tool.read_file", "kind": "tool",
             "startMs": 1_790_000_000_011_u64, "endMs": 1_790_000_000_020_u64, "status": "error",
             "attrs": {"tool": "read_file", "callId": "call_1", "mode": "read", "success": false,
                       "error": "the file of Ada is missing", "arguments": {"path": "/home/ada"}}},
            {"spanId": "span_4", "parentSpanId": "span_1", "name": "approval.wait", "kind": "policy",
             "startMs": 1_790_000_000_021_u64, "status": "cancelled"},
        ],
        "events": [
            {"traceId": "trace_0123456789abcdef0123456789abcdef", "kind": "tool_call", "name": "read_file",
             "sequence": 0, "timestampMs": 1_790_000_000_011_u64, "status": "ok",
             "payload": {"callId": "call_1", "arguments": {"path": "/home/ada"}, "note": null}},
        ],
    }))
    .expect("a trace")
}

async fn exported() {
    let tree = sample();
    let body = otlp::body(&tree, Privacy::Full, "my-service");
    assert_eq!(body, otlp::body(&tree, Privacy::Full, "my-service"), "the same ids each time");
    let text = serde_json::to_string_pretty(&body).expect("text");
    let own = format!("\"{}\"", env!("CARGO_PKG_VERSION"));
    insta::assert_snapshot!("otlp_full", text.replace(&own, "\"[version]\""));
}

async fn exported_metadata() {
    let body = otlp::body(&sample(), Privacy::Metadata, "my-service");
    let text = body.to_string();
    assert!(!text.contains("ada") && !text.contains("Ada"), "{text}");
    for kept in ["gen_ai.usage.input_tokens", "execute_tool read_file", "call_1", "error.type"] {
        assert!(text.contains(kept), "{kept}");
    }
}

async fn exported_run() {
    let store = Store::memory(MemoryLimits::STANDARD);
    let tracer = store.begin_trace(TraceHead::default());
    tracer.finish(TraceStatus::Error, Some("why".to_owned()), Usage::default()).await;
    let tree = store.trace(TraceKey::Trace(tracer.id())).await.expect("a store").expect("the trace");
    for (privacy, status) in
        [(Privacy::Metadata, json!({"code": 2})), (Privacy::Full, json!({"code": 2, "message": "why"}))]
    {
        let body = otlp::body(&tree, privacy, "x");
        let spans = &body["resourceSpans"][0]["scopeSpans"][0]["spans"];
        assert_eq!(spans.as_array().map(Vec::len), Some(1));
        assert_eq!(spans[0]["status"], status);
        assert_eq!(spans[0]["traceId"], tracer.id()[6..]);
    }
}
