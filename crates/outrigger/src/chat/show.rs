//! What a turn shows as it goes: to a person as words and deeds, to a program as one object a line.

use outrigger_steerable::chat::Usage;
use outrigger_steerable::host::{
    Chunk, Done, Lost, Notice, StreamEnd, StreamFailure, ToolCallChunk, ToolResultChunk,
};
use serde_json::{Value, json};

use super::screen::Screen;
use crate::say::{self, Format, gist};

/// Answered.
const COMPLETED: u8 = 0;
/// Failed.
const FAILED: u8 = 1;
/// A budget ended it.
const PARTIAL: u8 = 3;
/// Cancelled.
pub(super) const CANCELLED: u8 = 130;

/// Shows one piece of a turn; for a program, which gets them again at the end, the words are also kept in `said`.
pub(super) fn chunk(format: Format, screen: &mut Screen, chunk: &Chunk, said: &mut String) {
    if format == Format::Json {
        said.push_str(chunk.delta.as_deref().unwrap_or_default());
        return say::members(&as_members(chunk));
    }
    if let Some(text) = &chunk.reasoning_delta {
        screen.thoughts(text);
    }
    if let Some(text) = &chunk.delta {
        screen.words(text);
    }
    if let Some(call) = &chunk.tool_call {
        screen.deed("•", &call.name, &gist(call.arguments.get()));
    }
    if let Some(result) = &chunk.tool_result
        && !result.success
    {
        let why = result.error.as_deref().unwrap_or("failed");
        screen.bad(&format!("{}: {why}", result.name));
    }
    if let Some(notice) = &chunk.notice {
        show_notice(screen, notice);
    }
}

fn show_notice(screen: &mut Screen, notice: &Notice) {
    let text = |name: &str| {
        let raw = notice.member(name).map(|raw| raw.get()).unwrap_or_default();
        serde_json::from_str::<String>(raw).unwrap_or_else(|_| raw.to_owned())
    };
    match notice.kind.as_str() {
        // What was steered with was shown when it was typed, and decisions when they were made.
        "round_end" | "steer" | "approval" => {}
        "soft_timeout" => screen.warn("this turn takes long"),
        "budget_exhausted" => {
            screen.warn(&format!(
                "the budget is used up: {} of {} {}",
                text("used"),
                text("limit"),
                text("budget")
            ));
        }
        "compaction" => {
            screen.note(&format!("summed up: {} tokens are {} now", text("before"), text("after")))
        }
        "mcp_unreachable" => {
            screen.warn(&format!("the MCP server {} cannot be reached: {}", text("server"), text("error")));
        }
        "retry" => screen.warn(&format!("trying again in {} ms: {}", text("delayMs"), text("error"))),
        other => screen.note(&format!("{other}: {}", notice.raw.get())),
    }
}

/// How a turn ended, as far as its user needs to know.
pub(super) struct Ending {
    pub(super) code: u8,
    pub(super) trace: Option<String>,
}

/// Shows the end of a turn.
pub(super) fn end(format: Format, screen: &mut Screen, end: &StreamEnd, said: &str) -> Ending {
    let (code, status, error) = match end {
        StreamEnd::Done(Done { ok: true, .. }) => (COMPLETED, "completed", None),
        StreamEnd::Done(done) if done.cancelled => (CANCELLED, "cancelled", done.reason.clone()),
        StreamEnd::Done(done) => {
            (PARTIAL, done.status.as_deref().unwrap_or("incomplete"), done.reason.clone())
        }
        StreamEnd::Failed(failure) => (FAILED, "failed", Some(explain(failure))),
        StreamEnd::Lost(lost) => (FAILED, "lost", Some(lost.to_string())),
    };
    let (trace, record, usage, output) = match end {
        StreamEnd::Done(done) => (&done.trace_id, &done.record_id, done.usage, done.output.as_deref()),
        StreamEnd::Failed(failure) => (&failure.trace_id, &failure.record_id, None, None),
        StreamEnd::Lost(Lost { .. }) => (&None, &None, None, None),
    };
    match format {
        Format::Json => say::members(&[
            ("event", "ended".into()),
            ("status", status.into()),
            ("text", said.into()),
            ("output", json!(output)),
            ("error", json!(error)),
            ("session", json!(record)),
            ("trace", json!(trace)),
            ("usage", json!(usage.map(usage_json))),
            ("exit_code", code.into()),
        ]),
        Format::Text => {
            screen.break_line();
            match (code, error) {
                (COMPLETED, _) => {}
                (CANCELLED, _) => screen.note("cancelled"),
                (_, Some(error)) => screen.bad(&error),
                (_, None) => screen.bad(status),
            }
            let tokens = usage.map(|usage| {
                let cached = match usage.cached_prompt_tokens {
                    0 => String::new(),
                    cached => format!(" ({cached} cached)"),
                };
                format!("{} tokens in{cached}, {} out", usage.prompt_tokens, usage.completion_tokens)
            });
            let facts: Vec<String> = tokens.into_iter().chain(trace.clone()).collect();
            if !facts.is_empty() {
                screen.note(&facts.join(" · "));
            }
        }
    }
    Ending { code, trace: trace.clone() }
}

fn explain(failure: &StreamFailure) -> String {
    let hint = match failure.kind.as_str() {
        "auth" => "; is the key right? It comes from the environment, see outrigger chat --help",
        "rate_limit" => "; try again later",
        "context_overflow" => {
            "; the conversation is too long for this model; --context-tokens N sums it up earlier"
        }
        _ => "",
    };
    format!("{} ({}){hint}", failure.message, failure.kind)
}

fn usage_json(usage: Usage) -> Value {
    json!({
        "prompt_tokens": usage.prompt_tokens, "completion_tokens": usage.completion_tokens,
        "total_tokens": usage.total_tokens, "cached_prompt_tokens": usage.cached_prompt_tokens,
    })
}

fn as_members(chunk: &Chunk) -> Vec<(&'static str, Value)> {
    let call =
        |call: &ToolCallChunk| json!({ "id": call.id, "name": call.name, "arguments": call.arguments });
    let result = |result: &ToolResultChunk| {
        json!({
            "id": result.id, "name": result.name, "success": result.success, "error": result.error,
            "duration_ms": result.duration.map(|time| time.as_millis() as u64), "preview": result.preview,
        })
    };
    let members = [
        ("event", Some("chunk".into())),
        ("delta", chunk.delta.clone().map(Value::from)),
        ("reasoning", chunk.reasoning_delta.clone().map(Value::from)),
        ("tool_call", chunk.tool_call.as_ref().map(call)),
        ("tool_result", chunk.tool_result.as_ref().map(result)),
        ("notice", chunk.notice.as_ref().map(|notice| json!(notice.raw))),
        ("usage", chunk.usage.map(usage_json)),
        ("finish_reason", chunk.finish_reason.clone().map(Value::from)),
    ];
    members.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}
