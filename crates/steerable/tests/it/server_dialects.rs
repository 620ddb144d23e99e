//! The scripted model server's answers in the dialects whose events have names, and in Gemini's.

use serde_json::{Value, json};

use crate::server::Answer;
use crate::server_scenarios::{Wish, event};

/// One event of a dialect whose events have names.
pub(crate) fn named(value: &Value) -> Vec<u8> {
    format!("event: {}\ndata: {value}\n\n", value["type"].as_str().unwrap()).into_bytes()
}

fn all(events: &[Value]) -> Vec<u8> {
    events.iter().flat_map(named).collect()
}

pub(crate) fn messages(body: &Value, wish: &Wish) -> Answer {
    let start = json!({"type": "message_start", "message": {
        "id": "msg_1", "type": "message", "role": "assistant", "content": [], "model": "fake", "stop_reason": null,
        "usage": {"input_tokens": 8, "output_tokens": 1, "cache_read_input_tokens": 3, "cache_creation_input_tokens": 2}
    }});
    let open = |index: usize, block: Value| json!({"type": "content_block_start", "index": index, "content_block": block});
    let delta =
        |index: usize, delta: Value| json!({"type": "content_block_delta", "index": index, "delta": delta});
    let close = |index: usize| json!({"type": "content_block_stop", "index": index});
    let end = |reason: &str| json!({"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": null}, "usage": {"output_tokens": 9}});
    let stop = json!({"type": "message_stop"});
    let ping = json!({"type": "ping"});
    let say = |words: &str| {
        [
            open(0, json!({"type": "text", "text": ""})),
            delta(0, json!({"type": "text_delta", "text": words})),
            close(0),
        ]
    };
    let mut events = vec![start, ping];
    match wish.scenario.as_str() {
        "tool" if !body.to_string().contains("tool_result") => {
            events.push(open(0, json!({"type": "thinking", "thinking": "", "signature": ""})));
            events.push(delta(0, json!({"type": "thinking_delta", "thinking": "Where is "})));
            events.push(delta(0, json!({"type": "thinking_delta", "thinking": "Paris?"})));
            events.push(delta(0, json!({"type": "signature_delta", "signature": "c2ln"})));
            events.push(close(0));
            events.push(open(
                1,
                json!({"type": "tool_use", "id": "toolu_1", "name": "get_weather", "input": {}}),
            ));
            for piece in ["", "{\"ci", "ty\":\"Pa", "ris\"}"] {
                events.push(delta(1, json!({"type": "input_json_delta", "partial_json": piece})));
            }
            events.push(close(1));
            events.push(open(2, json!({"type": "tool_use", "id": "toolu_2", "name": "now", "input": {}})));
            events.push(close(2));
            events.extend([end("tool_use"), stop]);
        }
        "errmid" => {
            events.extend(say("part"));
            events.push(
                json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}),
            );
        }
        "echo" => {
            events.extend(say(&body.to_string()));
            events.extend([end("end_turn"), stop]);
        }
        _ => {
            events.extend(say("Hello world"));
            events.extend([end("end_turn"), stop]);
        }
    }
    Answer::events(all(&events))
}

pub(crate) fn responses(body: &Value, wish: &Wish) -> Answer {
    let mut events = vec![json!({"type": "response.created", "response": {"id": "resp_1"}})];
    let say = |words: &str| json!({"type": "response.output_text.delta", "item_id": "msg_1", "output_index": 0, "content_index": 0, "delta": words});
    let usage = json!({
        "input_tokens": 40, "input_tokens_details": {"cached_tokens": 30}, "output_tokens": 9,
        "output_tokens_details": {"reasoning_tokens": 4}, "total_tokens": 49
    });
    let mut last = json!({"type": "response.completed", "response": {"id": "resp_1", "status": "completed", "usage": usage}});
    match wish.scenario.as_str() {
        "tool" if !body.to_string().contains("function_call_output") => {
            let thought = json!({"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Where?"}], "encrypted_content": "blob"});
            events.push(json!({"type": "response.output_item.added", "output_index": 0, "item": {"type": "reasoning", "id": "rs_1", "summary": []}}));
            events.push(json!({"type": "response.reasoning_summary_text.delta", "item_id": "rs_1", "output_index": 0, "summary_index": 0, "delta": "Where?"}));
            events.push(json!({"type": "response.output_item.done", "output_index": 0, "item": thought}));
            let call = |arguments: &str| json!({"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "get_weather", "arguments": arguments});
            events.push(json!({"type": "response.output_item.added", "output_index": 1, "item": call("")}));
            for piece in ["{\"city\"", ":\"Paris\"}"] {
                events.push(json!({"type": "response.function_call_arguments.delta", "item_id": "fc_1", "output_index": 1, "delta": piece}));
            }
            let whole = "{\"city\":\"Paris\"}";
            events.push(json!({"type": "response.function_call_arguments.done", "item_id": "fc_1", "output_index": 1, "arguments": whole}));
            events.push(json!({"type": "response.output_item.done", "output_index": 1, "item": call(whole)}));
        }
        "errmid" => {
            events.push(say("part"));
            last = json!({"type": "response.failed", "response": {"id": "resp_1", "status": "failed", "error": {"code": "rate_limit_exceeded", "message": "Too fast"}}});
        }
        "length" => {
            events.push(say("cut"));
            last["type"] = "response.incomplete".into();
            last["response"]["status"] = "incomplete".into();
            last["response"]["incomplete_details"] = json!({"reason": "max_output_tokens"});
        }
        "echo" => events.push(say(&body.to_string())),
        _ => events.extend([say("Hello "), say("world")]),
    }
    events.push(last);
    Answer::events(all(&events))
}

pub(crate) fn gemini(body: &Value, wish: &Wish) -> Answer {
    let part = |parts: Value, finish: Option<&str>| {
        let mut candidate = json!({"content": {"role": "model", "parts": parts}, "index": 0});
        if let Some(reason) = finish {
            candidate["finishReason"] = reason.into();
        }
        json!({"candidates": [candidate], "usageMetadata": {
            "promptTokenCount": 12, "candidatesTokenCount": 5, "thoughtsTokenCount": 7, "totalTokenCount": 24, "cachedContentTokenCount": 4
        }})
    };
    let events = match wish.scenario.as_str() {
        "tool" if !body.to_string().contains("functionResponse") => vec![
            part(json!([{"text": "Where?", "thought": true}]), None),
            part(
                json!([{"functionCall": {"name": "get_weather", "args": {"city": "Paris"}}, "thoughtSignature": "c2ln"}]),
                None,
            ),
            part(json!([{"functionCall": {"name": "now"}}]), Some("STOP")),
        ],
        "errmid" => vec![
            part(json!([{"text": "part"}]), None),
            json!({"error": {"code": 503, "message": "The model is overloaded.", "status": "UNAVAILABLE"}}),
        ],
        "blocked" => vec![json!({"promptFeedback": {"blockReason": "SAFETY"}})],
        "echo" => vec![part(json!([{"text": body.to_string()}]), Some("STOP"))],
        _ => vec![part(json!([{"text": "Hello "}]), None), part(json!([{"text": "world"}]), Some("STOP"))],
    };
    let bytes: Vec<u8> = events.iter().flat_map(event).collect();
    Answer::events(bytes)
}
