//! Writes the notifications of streams straight into bytes: they are most of what a runtime says.

use std::io::Write as _;
use std::time::Duration;

use serde_json::{Map, Value};

use crate::chat::{ToolCall, ToolResult, Usage};

/// How many characters of a result a chunk shows.
const PREVIEW: usize = 500;

/// Writes the chunks of one stream. Each call appends one line with its newline.
#[derive(Clone, Debug)]
pub struct ChunkPen {
    /// Everything up to and with the stream's id.
    head: Box<[u8]>,
}

impl ChunkPen {
    /// A pen for the chunks of a stream.
    #[must_use]
    pub fn new(stream_id: &str) -> Self {
        let mut head = br#"{"jsonrpc":"2.0","method":"stream.chunk","params":{"streamId":"#.to_vec();
        text(&mut head, stream_id);
        Self { head: head.into() }
    }

    /// What the model says. An empty text is nothing.
    pub fn delta(&self, out: &mut Vec<u8>, delta: &str) {
        if !delta.is_empty() {
            self.begin(out, br#","delta":"#);
            text(out, delta);
            end(out);
        }
    }

    /// What the model thinks. An empty text is nothing.
    pub fn reasoning(&self, out: &mut Vec<u8>, delta: &str) {
        if !delta.is_empty() {
            self.begin(out, br#","reasoningDelta":"#);
            text(out, delta);
            end(out);
        }
    }

    /// A call. `unread` is what came instead of arguments.
    pub fn tool_call(&self, out: &mut Vec<u8>, call: &ToolCall, unread: Option<&str>) {
        self.begin(out, br#","toolCall":{"id":"#);
        text(out, &call.id);
        out.extend_from_slice(br#","name":"#);
        text(out, &call.name);
        out.extend_from_slice(br#","arguments":"#);
        raw(out, call.arguments.get());
        if let Some(unread) = unread {
            out.extend_from_slice(br#","argumentsText":"#);
            text(out, unread);
        }
        out.push(b'}');
        end(out);
    }

    /// Why the model stopped, in the provider's word.
    pub fn finish(&self, out: &mut Vec<u8>, reason: &str) {
        self.begin(out, br#","finishReason":"#);
        text(out, reason);
        end(out);
    }

    /// What the call cost.
    pub fn usage(&self, out: &mut Vec<u8>, usage: Usage) {
        self.begin(out, br#","usage":"#);
        write_usage(out, usage, Cached::IfAny);
        end(out);
    }

    /// What came of a call.
    pub fn tool_result(&self, out: &mut Vec<u8>, call: &ToolCall, result: &ToolResult, took: Duration) {
        self.begin(out, br#","toolResult":{"id":"#);
        text(out, &call.id);
        out.extend_from_slice(br#","name":"#);
        text(out, &call.name);
        let millis = took.as_millis();
        // Writing to a vector cannot fail, here and below.
        let _ = write!(out, r#","success":{},"durationMs":{millis}"#, result.success);
        if let Some(error) = &result.error {
            out.extend_from_slice(br#","error":"#);
            text(out, error);
        }
        if let Some(preview) = preview(result) {
            out.extend_from_slice(br#","resultPreview":"#);
            text(out, &preview);
        }
        out.push(b'}');
        end(out);
    }

    /// Something that the host may want to show.
    pub fn notice(&self, out: &mut Vec<u8>, notice: &Map<String, Value>) {
        self.begin(out, br#","notice":"#);
        let _ = serde_json::to_writer(&mut *out, notice);
        end(out);
    }

    fn begin(&self, out: &mut Vec<u8>, member: &[u8]) {
        out.extend_from_slice(&self.head);
        out.extend_from_slice(member);
    }
}

/// How a stream ended, as its terminal says it.
#[derive(Clone, Debug)]
pub enum Terminal<'a> {
    /// A plain stream is done.
    Done,
    /// A plain stream was cancelled.
    Cancelled,
    /// A turn is over.
    Turn(TurnEnd<'a>),
    /// It failed.
    Failed(Failed<'a>),
}

/// How a turn ended.
#[derive(Clone, Debug)]
pub struct TurnEnd<'a> {
    /// `completed`, `budget_exhausted` or `cancelled`.
    pub status: &'static str,
    /// Why.
    pub reason: Option<&'a str>,
    /// Its trace.
    pub trace_id: &'a str,
    /// Its transcript.
    pub record_id: &'a str,
    /// What it cost.
    pub usage: Usage,
    /// The structured answer.
    pub output: Option<&'a Value>,
}

/// Why a stream failed.
#[derive(Clone, Debug)]
pub struct Failed<'a> {
    /// The stable word.
    pub kind: &'a str,
    /// A sentence for people.
    pub message: &'a str,
    /// The provider's HTTP status.
    pub status: Option<u16>,
    /// When the provider wants to be asked again.
    pub retry_after: Option<Duration>,
    /// Whether asking again may help.
    pub retryable: bool,
    /// A turn's trace and transcript.
    pub turn: Option<(&'a str, &'a str)>,
}

/// Appends a terminal to `out`, with its newline.
pub fn write_terminal(out: &mut Vec<u8>, stream_id: &str, terminal: &Terminal<'_>) {
    let method = match terminal {
        Terminal::Done | Terminal::Cancelled | Terminal::Turn(_) => "stream.done",
        Terminal::Failed(_) => "stream.error",
    };
    let _ = write!(out, r#"{{"jsonrpc":"2.0","method":"{method}","params":{{"streamId":"#);
    text(out, stream_id);
    match terminal {
        Terminal::Done => out.extend_from_slice(br#","ok":true"#),
        Terminal::Cancelled => out.extend_from_slice(br#","ok":false,"cancelled":true"#),
        Terminal::Turn(turn) => write_turn_end(out, turn),
        Terminal::Failed(failed) => write_failed(out, failed),
    }
    end(out);
}

fn write_turn_end(out: &mut Vec<u8>, turn: &TurnEnd<'_>) {
    let _ = write!(out, r#","ok":{},"status":"{}""#, turn.status == "completed", turn.status);
    if let Some(reason) = turn.reason {
        out.extend_from_slice(br#","reason":"#);
        text(out, reason);
    }
    out.extend_from_slice(br#","traceId":"#);
    text(out, turn.trace_id);
    out.extend_from_slice(br#","recordId":"#);
    text(out, turn.record_id);
    out.extend_from_slice(br#","usage":"#);
    write_usage(out, turn.usage, Cached::Always);
    if let Some(output) = turn.output {
        out.extend_from_slice(br#","output":"#);
        let _ = serde_json::to_writer(&mut *out, output);
    }
    if turn.status == "cancelled" {
        out.extend_from_slice(br#","cancelled":true"#);
    }
}

fn write_failed(out: &mut Vec<u8>, failed: &Failed<'_>) {
    out.extend_from_slice(br#","kind":"#);
    text(out, failed.kind);
    out.extend_from_slice(br#","message":"#);
    text(out, failed.message);
    if let Some(status) = failed.status {
        let _ = write!(out, r#","status":{status}"#);
    }
    if let Some(after) = failed.retry_after {
        let _ = write!(out, r#","retryAfterMs":{}"#, after.as_millis());
    }
    let _ = write!(out, r#","retryable":{}"#, failed.retryable);
    if let Some((trace_id, record_id)) = failed.turn {
        out.extend_from_slice(br#","traceId":"#);
        text(out, trace_id);
        out.extend_from_slice(br#","recordId":"#);
        text(out, record_id);
    }
}

/// When `cachedPromptTokens` is written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cached {
    IfAny,
    Always,
}

fn write_usage(out: &mut Vec<u8>, usage: Usage, cached: Cached) {
    let Usage { prompt_tokens, completion_tokens, total_tokens, cached_prompt_tokens } = usage;
    let _ = write!(
        out,
        r#"{{"promptTokens":{prompt_tokens},"completionTokens":{completion_tokens},"totalTokens":{total_tokens}"#
    );
    if cached == Cached::Always || cached_prompt_tokens > 0 {
        let _ = write!(out, r#","cachedPromptTokens":{cached_prompt_tokens}"#);
    }
    out.push(b'}');
}

/// The beginning of what a tool found, as a person would read it.
fn preview(result: &ToolResult) -> Option<String> {
    let whole = match (&result.message, &result.data) {
        (Some(message), _) => message.clone(),
        (None, Some(data)) => serde_json::to_string(data).ok()?,
        (None, None) => return None,
    };
    Some(match whole.char_indices().nth(PREVIEW) {
        Some((at, _)) => format!("{}…", &whole[..at]),
        None => whole,
    })
}

fn text(out: &mut Vec<u8>, text: &str) {
    // A string serialises and a vector takes every byte, so this cannot fail.
    let _ = serde_json::to_writer(out, text);
}

/// Copies JSON that somebody else wrote. A line break in it is white space between tokens; a blank says the same.
fn raw(out: &mut Vec<u8>, json: &str) {
    let start = out.len();
    out.extend_from_slice(json.as_bytes());
    for byte in &mut out[start..] {
        if matches!(byte, b'\n' | b'\r') {
            *byte = b' ';
        }
    }
}

fn end(out: &mut Vec<u8>) {
    out.extend_from_slice(b"}}\n");
}

#[cfg(test)]
mod tests {
    use serde_json::value::RawValue;

    use super::*;

    fn written(write: impl FnOnce(&ChunkPen, &mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&ChunkPen::new("s\"1"), &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_chunk_is_one_line_with_its_newline() {
        assert_eq!(
            written(|pen, out| pen.delta(out, "a\n\u{1}ü")),
            "{\"jsonrpc\":\"2.0\",\"method\":\"stream.chunk\",\"params\":{\"streamId\":\"s\\\"1\",\"delta\":\"a\\n\\u0001ü\"}}\n"
        );
        assert_eq!(written(|pen, out| pen.delta(out, "")), "");
        let usage =
            Usage { prompt_tokens: 1, completion_tokens: 2, total_tokens: 3, cached_prompt_tokens: 0 };
        assert!(
            written(|pen, out| pen.usage(out, usage))
                .ends_with(",\"usage\":{\"promptTokens\":1,\"completionTokens\":2,\"totalTokens\":3}}}\n")
        );
    }

    #[test]
    fn a_call_whose_arguments_have_line_breaks_stays_on_its_line() {
        let arguments = RawValue::from_string("{\n\"a\":\r\n1}".to_owned()).unwrap();
        let call = ToolCall { id: "c".into(), name: "f".into(), arguments };
        let line = written(|pen, out| pen.tool_call(out, &call, Some("{\"a\"")));
        assert_eq!(line.matches('\n').count(), 1);
        let value: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(value["params"]["toolCall"]["arguments"]["a"], 1);
        assert_eq!(value["params"]["toolCall"]["argumentsText"], "{\"a\"");
    }

    #[test]
    fn a_terminal_says_what_it_is() {
        let terminal = |terminal: Terminal<'_>| {
            let mut out = Vec::new();
            write_terminal(&mut out, "s", &terminal);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(
            terminal(Terminal::Cancelled),
            "{\"jsonrpc\":\"2.0\",\"method\":\"stream.done\",\"params\":{\"streamId\":\"s\",\"ok\":false,\"cancelled\":true}}\n"
        );
        let failed = Failed {
            kind: "rate_limit",
            message: "slow",
            status: Some(429),
            retry_after: Some(Duration::from_millis(1500)),
            retryable: true,
            turn: None,
        };
        assert_eq!(
            terminal(Terminal::Failed(failed)),
            "{\"jsonrpc\":\"2.0\",\"method\":\"stream.error\",\"params\":{\"streamId\":\"s\",\"kind\":\"rate_limit\",\"message\":\"slow\",\"status\":429,\"retryAfterMs\":1500,\"retryable\":true}}\n"
        );
        let turn = TurnEnd {
            status: "cancelled",
            reason: None,
            trace_id: "t",
            record_id: "r",
            usage: Usage::default(),
            output: None,
        };
        let value: Value = serde_json::from_str(&terminal(Terminal::Turn(turn))).unwrap();
        assert_eq!(
            (value["params"]["ok"].as_bool(), value["params"]["cancelled"].as_bool()),
            (Some(false), Some(true))
        );
    }
}
