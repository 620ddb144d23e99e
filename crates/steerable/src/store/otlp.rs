//! A trace in the words of OpenTelemetry: the body of one OTLP/HTTP JSON request, with the GenAI names of the semantic
//! conventions (1.37 and later: `gen_ai.provider.name`, not `gen_ai.system`).
//!
//! The same trace always has the same ids, so that exporting it twice shows it once.

use serde_json::{Map, Value, json};

use super::TraceTree;
use crate::protocol::{EventStatus, Privacy, Span, SpanKind, SpanStatus, Trace, TraceStatus};

/// The body of a request to `/v1/traces`.
#[must_use]
pub fn body(tree: &TraceTree, privacy: Privacy, service_name: &str) -> Value {
    let exporter = Exporter { tree, privacy, trace_id: trace_id(&tree.trace.trace_id) };
    let mut spans: Vec<Value> = tree.spans.iter().map(|span| exporter.span(span)).collect();
    if spans.is_empty() {
        spans.push(exporter.run());
    }
    json!({"resourceSpans": [{
        "resource": {"attributes": [
            attribute("service.name", service_name.into()),
            attribute("service.version", env!("CARGO_PKG_VERSION").into()),
        ]},
        "scopeSpans": [{
            "scope": {"name": "outrigger.steerable", "version": env!("CARGO_PKG_VERSION")},
            "spans": spans,
        }],
    }]})
}

struct Exporter<'a> {
    tree: &'a TraceTree,
    privacy: Privacy,
    trace_id: String,
}

impl Exporter<'_> {
    fn span(&self, span: &Span) -> Value {
        let is_root = self.tree.spans.first().is_some_and(|first| first.span_id == span.span_id);
        let mut attributes: Vec<Value> = operation(span).into_iter().collect();
        attributes.extend(named(span, self.privacy));
        attributes.extend(self.rest(&span.attrs, MAPPED));
        if is_root {
            attributes.extend(self.identity());
        }
        let mut exported = json!({
            "traceId": self.trace_id,
            "spanId": self.span_id(&span.span_id),
            "name": title(span),
            "kind": if is_remote(span) { CLIENT } else { INTERNAL },
            "startTimeUnixNano": nanos(span.start_ms),
            "endTimeUnixNano": nanos(span.end_ms.unwrap_or(span.start_ms)),
            "attributes": attributes,
            "events": if is_root { self.events() } else { Vec::new() },
            "status": self.status(&span.status, span.attrs.get("error").and_then(Value::as_str)),
        });
        if let Some(parent) = &span.parent_span_id {
            exported["parentSpanId"] = self.span_id(parent).into();
        }
        exported
    }

    /// A run that has no spans is one itself.
    fn run(&self) -> Value {
        let trace = &self.tree.trace;
        let start = trace.started_at_ms.unwrap_or(0);
        let status = match trace.status {
            TraceStatus::Error => SpanStatus::Error,
            TraceStatus::Completed => SpanStatus::Ok,
            TraceStatus::Running
            | TraceStatus::Cancelled
            | TraceStatus::BudgetExhausted
            | TraceStatus::Other(_) => SpanStatus::Running,
        };
        json!({
            "traceId": self.trace_id,
            "spanId": self.span_id("run"),
            "name": "run",
            "kind": INTERNAL,
            "startTimeUnixNano": nanos(start),
            "endTimeUnixNano": nanos(start + trace.duration_ms.unwrap_or(0)),
            "attributes": self.identity(),
            "events": self.events(),
            "status": self.status(&status, trace.error_message.as_deref()),
        })
    }

    /// What is known of the run as a whole; its first span has it.
    fn identity(&self) -> Vec<Value> {
        let Trace { session_id, chat_id, user_id, status, .. } = &self.tree.trace;
        let text = |value: &Option<String>| value.clone().map(Value::String);
        let known = [
            ("gen_ai.conversation.id", text(session_id).or_else(|| text(chat_id))),
            ("user.id", text(user_id)),
            ("steerable.trace.status", Some(status.word().into())),
        ];
        known.into_iter().filter_map(|(name, value)| Some(attribute(name, value?))).collect()
    }

    fn events(&self) -> Vec<Value> {
        let events = self.tree.events.iter().map(|event| {
            let mut attributes = vec![
                attribute("steerable.event.kind", event.kind.word().into()),
                attribute("steerable.event.sequence", event.sequence.into()),
            ];
            attributes.extend(event.status.as_ref().map(level));
            attributes.extend(event.payload.iter().flat_map(|payload| self.rest(payload, &[])));
            json!({"timeUnixNano": nanos(event.timestamp_ms), "name": event.name, "attributes": attributes})
        });
        events.collect()
    }

    /// What has no name in the conventions keeps its own, behind a prefix.
    fn rest<'m>(
        &self,
        members: &'m Map<String, Value>,
        mapped: &'m [&'m str],
    ) -> impl Iterator<Item = Value> + use<'m> {
        let privacy = self.privacy;
        let told = members.iter().filter(move |(name, value)| {
            !mapped.contains(&name.as_str()) && !value.is_null() && may_leave(privacy, name, value)
        });
        told.map(|(name, value)| attribute(&format!("steerable.{name}"), value.clone()))
    }

    fn status(&self, status: &SpanStatus, message: Option<&str>) -> Value {
        match status {
            SpanStatus::Ok => json!({"code": 1}),
            SpanStatus::Error | SpanStatus::Timeout => match (self.privacy, message) {
                (Privacy::Full, Some(message)) => json!({"code": 2, "message": message}),
                (Privacy::Full, None) | (Privacy::Metadata, _) => json!({"code": 2}),
            },
            SpanStatus::Cancelled | SpanStatus::Running | SpanStatus::Other(_) => json!({}),
        }
    }

    fn span_id(&self, name: &str) -> String {
        hash(&[self.tree.trace.trace_id.as_str(), name])
    }
}

/// `SPAN_KIND_INTERNAL` and `SPAN_KIND_CLIENT`.
const INTERNAL: u8 = 1;
const CLIENT: u8 = 3;

/// Members of spans that have names in the conventions.
const MAPPED: &[&str] = &[
    "provider",
    "model",
    "maxTokens",
    "temperature",
    "finishReason",
    "promptTokens",
    "completionTokens",
    "cachedPromptTokens",
    "tool",
    "callId",
    "kind",
    "error",
];

/// Texts that are names of things and not what somebody said.
const NAMES: &[&str] = &[
    "provider",
    "model",
    "finishReason",
    "tool",
    "toolName",
    "callId",
    "mode",
    "decision",
    "kind",
    "category",
    "budget",
    "server",
    "status",
    "recordId",
];

fn may_leave(privacy: Privacy, name: &str, value: &Value) -> bool {
    match privacy {
        Privacy::Full => true,
        Privacy::Metadata => match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => true,
            Value::String(_) => NAMES.contains(&name),
            Value::Array(_) | Value::Object(_) => false,
        },
    }
}

/// What a span does, in the conventions' word for it.
fn operation(span: &Span) -> Option<Value> {
    let name = match span.kind {
        SpanKind::Llm => "chat",
        SpanKind::Tool => "execute_tool",
        SpanKind::Custom if span.name == "agent.run" => "invoke_agent",
        SpanKind::Policy
        | SpanKind::Budget
        | SpanKind::Retry
        | SpanKind::Completion
        | SpanKind::Transport
        | SpanKind::Storage
        | SpanKind::Custom
        | SpanKind::Other(_) => return None,
    };
    Some(attribute("gen_ai.operation.name", name.into()))
}

/// The members that have names in the conventions, under those.
fn named(span: &Span, privacy: Privacy) -> impl Iterator<Item = Value> {
    let attrs = &span.attrs;
    let get = |name: &str| attrs.get(name).filter(|value| !value.is_null()).cloned();
    let text = |name: &str| attrs.get(name).and_then(Value::as_str);
    let tool =
        text("tool").or_else(|| span.name.strip_prefix("tool.")).filter(|_| span.kind == SpanKind::Tool);
    let failed = matches!(span.status, SpanStatus::Error | SpanStatus::Timeout);
    let error_type = text("kind").unwrap_or_else(|| span.status.word());
    let pairs = [
        ("gen_ai.provider.name", text("provider").map(|word| provider(word).into())),
        ("gen_ai.request.model", get("model")),
        ("gen_ai.request.max_tokens", get("maxTokens")),
        ("gen_ai.request.temperature", get("temperature").and_then(|value| value.as_f64()).map(Value::from)),
        ("gen_ai.response.finish_reasons", get("finishReason").map(|reason| json!([reason]))),
        ("gen_ai.usage.input_tokens", get("promptTokens")),
        ("gen_ai.usage.output_tokens", get("completionTokens")),
        ("gen_ai.usage.cache_read.input_tokens", get("cachedPromptTokens")),
        ("gen_ai.tool.name", tool.map(Value::from)),
        ("gen_ai.tool.call.id", get("callId")),
        ("error.type", failed.then(|| error_type.into())),
        ("error.message", get("error").filter(|_| privacy == Privacy::Full)),
    ];
    pairs.into_iter().filter_map(|(name, value)| Some(attribute(name, value?)))
}

/// A provider by the name that the conventions have for it.
fn provider(word: &str) -> &str {
    match word {
        "openai" | "openai_compat" | "openai-compatible" | "openai-responses" | "openai_responses"
        | "responses" => "openai",
        "anthropic" | "claude" | "messages" => "anthropic",
        "google" | "gemini" | "google-genai" | "google_genai" => "gcp.gemini",
        "xai" => "x_ai",
        other => other,
    }
}

/// The name of a span: what it does and with what, as the conventions want it; ours if they have none.
fn title(span: &Span) -> String {
    let text = |name: &str| span.attrs.get(name).and_then(Value::as_str);
    match span.kind {
        SpanKind::Llm => text("model").map_or_else(|| "chat".to_owned(), |model| format!("chat {model}")),
        SpanKind::Tool => {
            let tool = text("tool").or_else(|| span.name.strip_prefix("tool.")).unwrap_or(&span.name);
            format!("execute_tool {tool}")
        }
        SpanKind::Custom if span.name == "agent.run" => "invoke_agent".to_owned(),
        SpanKind::Policy
        | SpanKind::Budget
        | SpanKind::Retry
        | SpanKind::Completion
        | SpanKind::Transport
        | SpanKind::Storage
        | SpanKind::Custom
        | SpanKind::Other(_) => span.name.clone(),
    }
}

fn is_remote(span: &Span) -> bool {
    matches!(span.kind, SpanKind::Llm | SpanKind::Transport)
}

fn level(status: &EventStatus) -> Value {
    attribute("steerable.event.status", status.word().into())
}

fn attribute(name: &str, value: Value) -> Value {
    json!({"key": name, "value": typed(value)})
}

/// A value with its type beside it. Whole numbers are texts there, because JSON's lose digits.
fn typed(value: Value) -> Value {
    match value {
        Value::Null => json!({}),
        Value::Bool(value) => json!({"boolValue": value}),
        Value::Number(number) if number.is_f64() => json!({"doubleValue": number}),
        Value::Number(number) => json!({"intValue": number.to_string()}),
        Value::String(text) => json!({"stringValue": text}),
        Value::Array(items) => {
            json!({"arrayValue": {"values": items.into_iter().map(typed).collect::<Vec<_>>()}})
        }
        Value::Object(members) => {
            let values: Vec<_> = members.into_iter().map(|(name, value)| attribute(&name, value)).collect();
            json!({"kvlistValue": {"values": values}})
        }
    }
}

fn nanos(millis: u64) -> String {
    (u128::from(millis) * 1_000_000).to_string()
}

/// Sixteen bytes in hex: those of our own id, or a hash of another program's.
fn trace_id(id: &str) -> String {
    let digits = id.strip_prefix("trace_").unwrap_or(id);
    let is_hex = digits.len() == 32 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_hex && digits.bytes().any(|byte| byte != b'0') {
        return digits.to_ascii_lowercase();
    }
    hash(&[id, "high"]) + &hash(&[id, "low"])
}

/// Eight bytes in hex that depend on nothing but the texts (FNV-1a). Never all zero, which would mean none.
fn hash(texts: &[&str]) -> String {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for byte in texts.iter().flat_map(|text| text.bytes().chain([0])) {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    format!("{:016x}", hash.max(1))
}
