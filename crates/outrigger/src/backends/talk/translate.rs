//! What a turn says, as events of the contract: words together until somebody should see them, calls, results, what it used.

use std::borrow::Cow;

use outrigger_abp::protocol::{AgentEvent, Counts, ErrorCode, EventKind, Raw, Timestamp, Usage, UsageReport};
use outrigger_steerable::host::{Chunk, Notice, StreamFailure, ToolCallChunk, ToolResultChunk};
use serde_json::{Value, json};

/// The longest message that is kept together; a longer one is several.
const MAX_MESSAGE: usize = 4 << 20;

/// Makes events of chunks. Words are held back until [`Translator::flush`], so that a model that says a letter at a time does not
/// make an event of each.
#[derive(Debug, Default)]
pub(super) struct Translator {
    /// What the agent says, since its last whole message.
    message: String,
    /// How much of it was told.
    told: usize,
    /// Thoughts that were not told.
    thoughts: String,
}

type Events = Vec<AgentEvent<'static>>;

impl Translator {
    /// What a chunk means, but for its words.
    pub(super) fn chunk(&mut self, chunk: &Chunk) -> Events {
        let mut events = Vec::new();
        if let Some(text) = &chunk.reasoning_delta {
            self.thoughts.push_str(text);
        }
        if let Some(text) = &chunk.delta {
            self.message.push_str(text);
        }
        if self.message.len() > MAX_MESSAGE || self.thoughts.len() > MAX_MESSAGE {
            events.extend(self.message());
        }
        if let Some(call) = &chunk.tool_call {
            events.extend(self.message());
            events.push(called(call));
        }
        if let Some(result) = &chunk.tool_result {
            events.extend(self.message());
            events.push(answered(result));
        }
        if let Some(notice) = &chunk.notice {
            if notice.kind == "round_end" {
                events.extend(self.message());
            }
            events.extend(noticed(notice));
        }
        events
    }

    /// Whether words wait to be told.
    pub(super) fn waits(&self) -> bool {
        self.told < self.message.len() || !self.thoughts.is_empty()
    }

    /// The words that wait.
    pub(super) fn flush(&mut self) -> Events {
        let mut events = Vec::new();
        if !self.thoughts.is_empty() {
            let text = std::mem::take(&mut self.thoughts);
            events.extend(other(json!({ "type": "thinking", "text": text })));
        }
        if self.told < self.message.len() {
            let text = self.message[self.told..].to_owned();
            self.told = self.message.len();
            events.push(AgentEvent::now(EventKind::AssistantDelta { text: text.into() }));
        }
        events
    }

    /// The words that wait, and the message that they belong to: it is whole now.
    pub(super) fn message(&mut self) -> Events {
        let mut events = self.flush();
        self.told = 0;
        let text = std::mem::take(&mut self.message);
        if !text.trim().is_empty() {
            events.push(AgentEvent::now(EventKind::AssistantMessage { text: text.into() }));
        }
        events
    }
}

fn called(call: &ToolCallChunk) -> AgentEvent<'static> {
    let input = match &call.arguments_text {
        // What is no JSON is kept as the model wrote it.
        Some(text) => Raw::of(&json!({ "arguments": text })).ok(),
        None => Raw::new(call.arguments.get()).ok().map(Raw::into_owned),
    };
    AgentEvent::now(EventKind::ToolCall {
        tool_name: call.name.clone().into(),
        tool_use_id: named(&call.id),
        parent_tool_use_id: None,
        input: input.unwrap_or(Raw::NULL),
    })
}

fn answered(result: &ToolResultChunk) -> AgentEvent<'static> {
    let said = match result.success {
        true => result.preview.as_deref(),
        false => result.error.as_deref().or(result.preview.as_deref()),
    };
    let kind = EventKind::ToolResult {
        tool_name: result.name.clone().into(),
        tool_use_id: named(&result.id),
        output: said.and_then(|said| Raw::of(&said).ok()).unwrap_or(Raw::NULL),
        is_error: !result.success,
    };
    let millis = result.duration.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
    let ext = millis.and_then(|millis| Raw::of(&json!({ "duration_ms": millis })).ok());
    AgentEvent { ext, ..AgentEvent::now(kind) }
}

fn named(id: &str) -> Option<Cow<'static, str>> {
    (!id.is_empty()).then(|| Cow::Owned(id.to_owned()))
}

/// What somebody should know. Steering and decisions are in the log already.
fn noticed(notice: &Notice) -> Option<AgentEvent<'static>> {
    let text = |name: &str| {
        let raw = notice.member(name).map(|raw| raw.get()).unwrap_or_default();
        serde_json::from_str::<String>(raw).unwrap_or_else(|_| raw.to_owned())
    };
    let message = match notice.kind.as_str() {
        "round_end" | "steer" | "approval" => return None,
        "soft_timeout" => "this turn takes long".to_owned(),
        "budget_exhausted" => {
            format!("the budget is used up: {} of {} {}", text("used"), text("limit"), text("budget"))
        }
        "compaction" => {
            format!("the conversation was summed up: {} tokens are {} now", text("before"), text("after"))
        }
        "mcp_unreachable" => {
            format!("the MCP server {} cannot be reached: {}", text("server"), text("error"))
        }
        "retry" => format!("trying again in {} ms: {}", text("delayMs"), text("error")),
        other => format!("{other}: {}", notice.raw.get()),
    };
    Some(AgentEvent::now(EventKind::Warning { message: message.into() }))
}

/// What the turn used.
pub(super) fn used(usage: outrigger_steerable::chat::Usage) -> AgentEvent<'static> {
    let usage = Usage {
        input_tokens: Some(usage.prompt_tokens),
        output_tokens: Some(usage.completion_tokens),
        cache_read_tokens: Some(usage.cached_prompt_tokens).filter(|tokens| *tokens > 0),
        ..Usage::default()
    };
    AgentEvent::now(EventKind::Usage(UsageReport { usage, turns: None, counts: Counts::Totals }))
}

/// Why the turn failed.
pub(super) fn failed(failure: &StreamFailure) -> AgentEvent<'static> {
    let error_code = Some(code(&failure.kind));
    AgentEvent::now(EventKind::Error { message: failure.message.clone().into(), error_code })
}

/// The runtime's words for what went wrong, in those of the contract.
pub(super) fn code(kind: &str) -> ErrorCode {
    match kind {
        "transport" | "server" => ErrorCode::BackendUnavailable,
        "rate_limit" => ErrorCode::BackendRateLimited,
        "timeout" => ErrorCode::BackendTimeout,
        "auth" => ErrorCode::BackendAuthFailed,
        "context_overflow" => ErrorCode::BackendContextLength,
        "invalid_request" => ErrorCode::ValidationFailed,
        _ => ErrorCode::Internal,
    }
}

/// An event beyond the contract, which readers that do not know it skip.
fn other(mut members: Value) -> Option<AgentEvent<'static>> {
    members["ts"] = Timestamp::now().to_string().into();
    let kind = members["type"].as_str().unwrap_or_default().to_owned().into();
    let members = Raw::of(&members).ok()?;
    Some(AgentEvent::now(EventKind::Other { kind, members }))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::value::RawValue;

    use super::*;

    fn raw(json: &str) -> Box<RawValue> {
        RawValue::from_string(json.to_owned()).unwrap()
    }

    fn delta(text: &str) -> Chunk {
        Chunk { delta: Some(text.to_owned()), ..Chunk::default() }
    }

    fn notice(json: &str) -> Chunk {
        let kind = serde_json::from_str::<Value>(json).unwrap()["kind"].as_str().unwrap().to_owned();
        Chunk { notice: Some(Notice { kind, raw: raw(json) }), ..Chunk::default() }
    }

    /// The events without their times.
    fn shown(events: Events) -> Vec<String> {
        let show = |event: AgentEvent<'_>| {
            let mut text = Vec::new();
            event.write(&mut text);
            let mut value: Value = serde_json::from_slice(&text).unwrap();
            value.as_object_mut().unwrap().remove("ts");
            value.to_string()
        };
        events.into_iter().map(show).collect()
    }

    #[test]
    fn words_wait_until_somebody_should_see_them_and_are_a_message_in_the_end() {
        let mut translator = Translator::default();
        assert!(!translator.waits());
        for text in ["Hel", "lo ", "you"] {
            assert_eq!(shown(translator.chunk(&delta(text))), [""; 0]);
        }
        assert!(translator.waits());
        assert_eq!(shown(translator.flush()), [r#"{"text":"Hello you","type":"assistant_delta"}"#]);
        assert!(!translator.waits());
        assert_eq!(shown(translator.chunk(&delta("!"))), [""; 0]);
        let rest = [
            r#"{"text":"!","type":"assistant_delta"}"#,
            r#"{"text":"Hello you!","type":"assistant_message"}"#,
        ];
        assert_eq!(shown(translator.message()), rest);
        assert_eq!(shown(translator.message()), [""; 0]);
    }

    #[test]
    fn everything_that_a_turn_says_has_its_event() {
        let call = |arguments: &str, arguments_text: Option<&str>| Chunk {
            tool_call: Some(ToolCallChunk {
                id: "c1".to_owned(),
                name: "read_file".to_owned(),
                arguments: raw(arguments),
                arguments_text: arguments_text.map(str::to_owned),
            }),
            ..Chunk::default()
        };
        let result = |success: bool, error: Option<&str>| Chunk {
            tool_result: Some(ToolResultChunk {
                id: "c1".to_owned(),
                name: "read_file".to_owned(),
                success,
                duration: Some(Duration::from_millis(12)),
                error: error.map(str::to_owned),
                preview: Some("12 lines".to_owned()),
            }),
            ..Chunk::default()
        };
        let thought = Chunk { reasoning_delta: Some("hm".to_owned()), ..Chunk::default() };
        let cases: Vec<(&str, Chunk, &[&str])> = vec![
            (
                "a call, with its arguments as they came",
                call(r#"{"path": "a",  "n": 1.0}"#, None),
                &[
                    r#"{"input":{"n":1.0,"path":"a"},"parent_tool_use_id":null,"tool_name":"read_file","tool_use_id":"c1","type":"tool_call"}"#,
                ],
            ),
            (
                "a call whose arguments are no JSON",
                call("{}", Some("{oops")),
                &[
                    r#"{"input":{"arguments":"{oops"},"parent_tool_use_id":null,"tool_name":"read_file","tool_use_id":"c1","type":"tool_call"}"#,
                ],
            ),
            (
                "a result",
                result(true, None),
                &[
                    r#"{"ext":{"duration_ms":12},"is_error":false,"output":"12 lines","tool_name":"read_file","tool_use_id":"c1","type":"tool_result"}"#,
                ],
            ),
            (
                "a result that is an error",
                result(false, Some("no such file")),
                &[
                    r#"{"ext":{"duration_ms":12},"is_error":true,"output":"no such file","tool_name":"read_file","tool_use_id":"c1","type":"tool_result"}"#,
                ],
            ),
            ("thoughts are told when somebody looks", thought, &[]),
            ("the end of a round without words", notice(r#"{"kind":"round_end","round":1}"#), &[]),
            ("what the log has already", notice(r#"{"kind":"steer","content":"x"}"#), &[]),
            (
                "a retry",
                notice(r#"{"kind":"retry","attempt":1,"delayMs":200,"error":"503"}"#),
                &[r#"{"message":"trying again in 200 ms: 503","type":"warning"}"#],
            ),
            (
                "something new",
                notice(r#"{"kind":"tea","hot":true}"#),
                &[r#"{"message":"tea: {\"kind\":\"tea\",\"hot\":true}","type":"warning"}"#],
            ),
        ];
        for (what, chunk, expected) in cases {
            assert_eq!(shown(Translator::default().chunk(&chunk)), expected, "{what}");
        }
    }

    #[test]
    fn a_message_is_whole_before_the_call_that_follows_it() {
        let mut translator = Translator::default();
        translator.chunk(&delta("I look."));
        translator.chunk(&Chunk { reasoning_delta: Some("hm".to_owned()), ..Chunk::default() });
        let kinds: Vec<String> = translator
            .chunk(&notice(r#"{"kind":"round_end","round":1}"#))
            .iter()
            .map(|event| event.kind.name().to_owned())
            .collect();
        assert_eq!(kinds, ["thinking", "assistant_delta", "assistant_message"]);
        translator.chunk(&delta("  \n"));
        let kinds: Vec<String> =
            translator.message().iter().map(|event| event.kind.name().to_owned()).collect();
        assert_eq!(kinds, ["assistant_delta"], "blanks are no message");
    }

    #[test]
    fn a_message_without_an_end_is_several() {
        let mut translator = Translator::default();
        assert!(translator.chunk(&delta(&"x".repeat(MAX_MESSAGE))).is_empty());
        let events = translator.chunk(&delta("y"));
        assert_eq!(events.len(), 2);
        assert!(!translator.waits());
    }

    #[test]
    fn what_it_used_and_why_it_failed_are_events_too() {
        let usage = outrigger_steerable::chat::Usage {
            prompt_tokens: 10,
            completion_tokens: 3,
            total_tokens: 13,
            cached_prompt_tokens: 0,
        };
        let AgentEvent { kind: EventKind::Usage(report), .. } = used(usage) else { panic!() };
        assert_eq!((report.usage.input_tokens, report.usage.output_tokens), (Some(10), Some(3)));
        assert_eq!((report.usage.cache_read_tokens, report.counts), (None, Counts::Totals));
        let kinds = ["rate_limit", "auth", "context_overflow", "tea"];
        let codes = kinds.map(|kind| code(kind).as_str().to_owned());
        assert_eq!(
            codes,
            ["backend_rate_limited", "backend_auth_failed", "backend_context_length", "internal"]
        );
    }
}
