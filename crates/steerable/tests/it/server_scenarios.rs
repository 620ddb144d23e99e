//! The scripted model server's answers, chosen by the model's name: `SCENARIO[,KEY=VALUE]…`, as in `chunks,n=5000,size=4`.
//!
//! Chat completions have them all: `text`, `chunks n size per_write`, `slow n`, `hang`, `nohdr`, `tool name args frag`, `tools2`,
//! `toolobj`, `reason`, `usagein`, `nodone`, `reset n`, `trunc n`, `badjson`, `errmid`, `crlf`, `multiline`, `utf8split`, `nospace`,
//! `bigdelta size`, `null`, `length`, `status code retry_after fail`, `overflow`, `echo`, `json`. A request that already has a tool's
//! message gets `tool said: …`. The other dialects have `text`, `tool`, `reason`, `errmid`, `status` and `echo`.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

use serde_json::{Value, json};

use crate::server::{Answer, Got, Step};
use crate::server_dialects;

/// The answer to a request.
pub(crate) fn answer(got: &Got) -> Answer {
    let body = got.json();
    let path = got.path.split('?').next().unwrap_or_default();
    let model = body["model"].as_str().map(str::to_owned).or_else(|| gemini_model(path));
    let wish = Wish::read(model.as_deref().unwrap_or("text"));
    if wish.scenario == "status" || wish.scenario == "overflow" {
        if let Some(answer) = refusal(got, &wish, model.as_deref().unwrap_or_default()) {
            return answer;
        }
        return answer_in(path, &body, &Wish::read("text"));
    }
    if wish.scenario == "nohdr" {
        return Answer::Silence;
    }
    answer_in(path, &body, &wish)
}

fn answer_in(path: &str, body: &Value, wish: &Wish) -> Answer {
    match path {
        _ if path.ends_with("/chat/completions") => completions(body, wish),
        _ if path.ends_with("/responses") => server_dialects::responses(body, wish),
        _ if path.ends_with("/messages") => server_dialects::messages(body, wish),
        _ if path.ends_with(":streamGenerateContent") => server_dialects::gemini(body, wish),
        _ => Answer::json(404, &json!({"error": {"message": format!("no such path: {path}")}})),
    }
}

fn gemini_model(path: &str) -> Option<String> {
    let name = path.split("/models/").nth(1)?.split(':').next()?;
    Some(name.replace("%2C", ",").replace("%3D", "="))
}

/// A model's name taken apart.
pub(crate) struct Wish {
    pub(crate) scenario: String,
    options: HashMap<String, String>,
}

impl Wish {
    fn read(model: &str) -> Self {
        let mut parts = model.split(',');
        let scenario = parts.next().unwrap_or_default().to_owned();
        let options = parts.filter_map(|part| part.split_once('='));
        Self { scenario, options: options.map(|(key, value)| (key.to_owned(), value.to_owned())).collect() }
    }

    fn number(&self, key: &str, otherwise: usize) -> usize {
        self.options.get(key).map_or(otherwise, |value| value.parse().unwrap())
    }

    fn text<'a>(&'a self, key: &str, otherwise: &'a str) -> &'a str {
        self.options.get(key).map_or(otherwise, String::as_str)
    }
}

/// An HTTP error, unless `fail=N` says that only the first N requests get one. Counted by model name and server thread group,
/// so tests that share a process choose names of their own.
fn refusal(got: &Got, wish: &Wish, model: &str) -> Option<Answer> {
    static FAILED: Mutex<Option<HashMap<String, usize>>> = Mutex::new(None);
    if let Some(most) = wish.options.get("fail") {
        let mut failed = FAILED.lock().unwrap();
        let host = got.header("host").unwrap_or_default();
        let count = failed.get_or_insert_default().entry(format!("{host} {model}")).or_default();
        *count += 1;
        if *count > most.parse().unwrap() {
            return None;
        }
    }
    let (code, message) = match wish.scenario.as_str() {
        "overflow" => (wish.number("code", 400), "This model's maximum context length is 8 tokens"),
        _ => (wish.number("code", 429), "fake failure"),
    };
    let body = json!({"error": {"message": message, "type": "fake", "code": "fake_code"}});
    let answer = Answer::json(u16::try_from(code).unwrap(), &body);
    Some(match wish.options.get("retry_after") {
        Some(seconds) => answer.with_header("retry-after", seconds),
        None => answer,
    })
}

/// One event of chat completions.
pub(crate) fn event(value: &Value) -> Vec<u8> {
    format!("data: {value}\n\n").into_bytes()
}

/// One chunk with a delta.
pub(crate) fn chunk(delta: Value, finish: Option<&str>) -> Vec<u8> {
    event(&json!({
        "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1_700_000_000, "model": "fake",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]
    }))
}

/// One chunk with a text.
pub(crate) fn text(text: &str) -> Vec<u8> {
    chunk(json!({"content": text}), None)
}

/// The usage that scenarios report.
pub(crate) fn usage(completion: usize) -> Value {
    json!({
        "prompt_tokens": 11, "completion_tokens": completion, "total_tokens": 11 + completion,
        "prompt_tokens_details": {"cached_tokens": 3}
    })
}

/// The end of an answer: the reason, the usage, the mark.
fn ending(reason: &str, completion: usize) -> Vec<u8> {
    let usage = json!({"id": "chatcmpl-1", "object": "chat.completion.chunk", "choices": [], "usage": usage(completion)});
    [chunk(json!({}), Some(reason)), event(&usage), b"data: [DONE]\n\n".to_vec()].concat()
}

fn tool_delta(index: usize, id: Option<&str>, name: Option<&str>, arguments: Value) -> Vec<u8> {
    let mut call = json!({"index": index, "function": {"arguments": arguments}});
    if let (Some(id), Some(name)) = (id, name) {
        call["id"] = id.into();
        call["type"] = "function".into();
        call["function"]["name"] = name.into();
    }
    chunk(json!({"tool_calls": [call]}), None)
}

fn pieces(text: &str, size: usize) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(rest.floor_char_boundary(size.max(4)).min(rest.len()));
        pieces.push(piece);
        rest = after;
    }
    pieces
}

fn completions(body: &Value, wish: &Wish) -> Answer {
    let none = Vec::new();
    let asked = body["messages"].as_array().unwrap_or(&none);
    let tool_said = asked.iter().rev().find(|message| message["role"] == "tool");
    let numbered = |n: usize| (0..n).map(|i| Step::Chunk(text(&format!("{i} ")))).collect::<Vec<_>>();
    let bytes = match wish.scenario.as_str() {
        "tool" | "tools2" | "toolobj" if tool_said.is_some() => {
            let said = tool_said.map(|message| message["content"].as_str().unwrap_or("(nothing)").to_owned());
            [text("tool said: "), text(&said.unwrap_or_default()), ending("stop", 2)].concat()
        }
        "chunks" => {
            let (n, per_write) = (wish.number("n", 5000), wish.number("per_write", 64));
            let one = text(&"x".repeat(wish.number("size", 4)));
            let mut steps: Vec<Step> = Vec::new();
            for first in (0..n).step_by(per_write) {
                steps.push(Step::Chunk(one.repeat(per_write.min(n - first))));
            }
            steps.extend([Step::Chunk(ending("stop", n)), Step::End]);
            return Answer::Stream(steps);
        }
        "slow" => {
            let pause = Duration::from_millis(wish.number("delay_ms", 20) as u64);
            let mut steps = Vec::new();
            for step in numbered(wish.number("n", 1000)) {
                steps.extend([step, Step::Pause(pause)]);
            }
            steps.extend([Step::Chunk(ending("stop", 2)), Step::End]);
            return Answer::Stream(steps);
        }
        "hang" => return Answer::Stream(vec![Step::Chunk(text("first")), Step::Hang]),
        "reset" | "trunc" => {
            let mut steps = numbered(wish.number("n", 3));
            steps.push(if wish.scenario == "reset" { Step::Reset } else { Step::Cut });
            return Answer::Stream(steps);
        }
        "tool" => {
            let arguments = wish.text("args", r#"{"city":"Paris","unit":"C"}"#).replace(';', ",");
            let mut bytes =
                tool_delta(0, Some("call_abc"), Some(wish.text("name", "get_weather")), json!(""));
            for piece in pieces(&arguments, wish.number("frag", 5)) {
                bytes.extend(tool_delta(0, None, None, json!(piece)));
            }
            [bytes, ending("tool_calls", 9)].concat()
        }
        "tools2" => {
            let mut bytes = tool_delta(0, Some("call_a"), Some("get_weather"), json!(""));
            bytes.extend(tool_delta(1, Some("call_b"), Some("list_files"), json!("")));
            let first = pieces(r#"{"city":"Paris"}"#, 4);
            let second = pieces(r#"{"dir":"/data","n":3}"#, 4);
            for turn in 0..first.len().max(second.len()) {
                for (index, arguments) in [&first, &second].into_iter().enumerate() {
                    if let Some(piece) = arguments.get(turn) {
                        bytes.extend(tool_delta(index, None, None, json!(piece)));
                    }
                }
            }
            [bytes, ending("tool_calls", 9)].concat()
        }
        "toolobj" => {
            let call = tool_delta(0, Some("call_o"), Some("get_weather"), json!({"city": "Oslo"}));
            [call, ending("tool_calls", 5)].concat()
        }
        "reason" => [
            chunk(json!({"reasoning_content": "think-A "}), None),
            chunk(json!({"reasoning": "think-B "}), None),
            text("answer"),
            ending("stop", 3),
        ]
        .concat(),
        "usagein" => {
            let last = json!({
                "object": "chat.completion.chunk", "usage": usage(1),
                "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]
            });
            [text("x"), event(&last), b"data: [DONE]\n\n".to_vec()].concat()
        }
        "nodone" => [text("a"), text("b"), chunk(json!({}), Some("stop"))].concat(),
        "badjson" => {
            [text("good1"), b"data: {not json\n\n".to_vec(), text("good2"), ending("stop", 2)].concat()
        }
        "errmid" => {
            let error =
                json!({"error": {"message": "upstream exploded", "type": "server_error", "code": 500}});
            [text("part"), event(&error), b"data: [DONE]\n\n".to_vec()].concat()
        }
        "crlf" => {
            let head = b": keepalive\r\n\r\nevent: message\r\nid: 7\r\nretry: 100\r\n".to_vec();
            let rest = [text("one "), b":\n\n".to_vec(), text("two"), ending("stop", 2)].concat();
            [head, String::from_utf8(rest).unwrap().replace('\n', "\r\n").into_bytes()].concat()
        }
        "multiline" => {
            let whole = String::from_utf8(text("joined")).unwrap();
            [whole.replacen("\"object\"", "\ndata: \"object\"", 1).into_bytes(), ending("stop", 1)].concat()
        }
        "utf8split" => {
            let whole = [text("\u{e9}\u{65e5}\u{672c}\u{1F600} end"), ending("stop", 2)].concat();
            let mut steps: Vec<Step> = whole.chunks(3).map(|piece| Step::Chunk(piece.to_vec())).collect();
            steps.push(Step::End);
            return Answer::Stream(steps);
        }
        "nospace" => {
            let whole = String::from_utf8([text("tight"), ending("stop", 1)].concat()).unwrap();
            whole.replace("data: ", "data:").into_bytes()
        }
        "bigdelta" => [text(&"z".repeat(wish.number("size", 1_000_000))), ending("stop", 1)].concat(),
        "null" => [
            chunk(json!({"role": "assistant", "content": null, "refusal": null}), None),
            event(&json!({"object": "chat.completion.chunk", "choices": []})),
            event(&json!({"object": "ping"})),
            chunk(json!({}), None),
            text("only"),
            ending("stop", 1),
        ]
        .concat(),
        "length" => [text("cut"), ending("length", 1)].concat(),
        "echo" => [text(&body.to_string()), ending("stop", 1)].concat(),
        "json" => {
            let whole = json!({
                "id": "x", "object": "chat.completion", "usage": usage(2), "choices": [{
                    "index": 0, "finish_reason": "tool_calls",
                    "message": {"role": "assistant", "content": "Hello world", "tool_calls": [
                        {"id": "call_1", "type": "function", "function": {"name": "get_weather", "arguments": "{\"city\":\"Rome\"}"}}
                    ]}
                }]
            });
            return Answer::json(200, &whole);
        }
        _ => [
            chunk(json!({"role": "assistant", "content": ""}), None),
            text("Hello "),
            text("world"),
            ending("stop", 2),
        ]
        .concat(),
    };
    Answer::events(bytes)
}
